/* G5: a publication of QoS 1 or 2 that was acknowledged reaches the clients of other brokers once, though the broker
 * that acknowledged it dies and begins anew with its disk, at whatever point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policies.h"
#include "with_disk.h"

enum { MESSAGES = 8 };

/* A client at B, whose session ends with it, hears "t" from A. */
static struct pair hearing_new(void) {
    struct pair pair = pair_with(true, 0);
    pair.hears = client_connect(pair.world, B);
    client_subscribe(pair.world, pair.hears, "t", 2);
    run(&pair, 1000);
    client_publish(pair.world, pair.says, "t", "warm", 2, false);
    run(&pair, 1000);
    assert_int_equal(client_got(pair.hears, "warm"), 1);
    return pair;
}

static void begin_anew(struct pair *pair) {
    assert_true(site_start(pair->world, A));
    pair->says = client_connect(pair->world, A);
    commit_at(pair, A);
}

static void crash_a(struct pair *pair) {
    die_at(pair, A);
    begin_anew(pair);
    world_meet(pair->world);
}

/* True if it was acknowledged before the next commit. */
static void publish(struct pair *pair, int number, int qos) {
    char payload[12];
    snprintf(payload, sizeof payload, "%d", number);
    client_publish(pair->world, pair->says, "t", payload, qos, false);
    world_run(pair->world, 60);
}

static int acknowledged(const struct pair *pair) {
    return pair->says->pubacks + pair->says->pubcomps;
}

static int times_got(const struct pair *pair, int number) {
    char payload[12];
    snprintf(payload, sizeof payload, "%d", number);
    return client_got(pair->hears, payload);
}

static void expect_in_order(const struct pair *pair) {
    int last = -1, number;
    for (int i = 0; i < pair->hears->received_count; i++) {
        if (sscanf(pair->hears->received[i].payload, "%d", &number) != 1) continue;
        assert_true(number > last);
        last = number;
    }
}

/* It dies before publication died, and of those before it the first are on its disk. */
static void try_death(int died, int saved, bool apart) {
    struct pair pair = hearing_new();
    bool sure[MESSAGES] = {false};
    if (apart) part(&pair);
    for (int i = 0; i < MESSAGES; i++) {
        if (i == died) crash_a(&pair);
        if (i == died && apart)
            broker_peer_gone(pair.world->sites[A].broker, pair.world->now_ms, &pair.world->sites[B].id);
        int before = acknowledged(&pair);
        publish(&pair, i, 1 + i % 2);
        if (i < saved || i >= died) run(&pair, 10);
        sure[i] = acknowledged(&pair) > before;
    }
    if (died == MESSAGES) crash_a(&pair);
    meet(&pair);
    for (int i = 0; i < MESSAGES; i++) {
        int got = times_got(&pair, i);
        bool unsent = i % 2 == 1 && i >= saved && i < died; /* of QoS 2, which its publisher will send again */
        if (got > 1 || (sure[i] && got == 0) || (unsent && got > 0))
            fail_msg("died before %d with %d saved%s: %d %s and came %d times", died, saved, apart ? ", apart" : "", i,
                     sure[i] ? "was acknowledged" : "was not acknowledged", got);
    }
    expect_in_order(&pair);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    assert_int_equal(world_link(pair.world, B, A).lost, 0);
    assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), 0);
    assert_int_equal(disk_count(pair.disks[A], RECORD_MESSAGE), 0);
    pair_end(&pair);
}

static void each_comes_once_wherever_its_broker_dies(void **state) {
    (void)state;
    for (int died = 0; died <= MESSAGES; died++)
        for (int saved = 0; saved <= died; saved++) {
            try_death(died, saved, false);
            try_death(died, saved, true);
        }
}

static void what_waits_for_an_absent_broker_outlives_many_deaths(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    part(&pair);
    for (int i = 0; i < MESSAGES; i++) {
        publish(&pair, i, 1 + i % 2);
        run(&pair, 100);
        crash_a(&pair);
        broker_peer_gone(pair.world->sites[A].broker, pair.world->now_ms, &pair.world->sites[B].id);
        assert_int_equal(link_at_a(&pair).joined_here, 1);
        assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), i + 1);
    }
    meet(&pair);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(times_got(&pair, i), 1);
    expect_in_order(&pair);
    assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), 0);
    pair_end(&pair);
}

/* More than are reserved at a time, so that some must have been reserved on the way. */
static void numbers_that_were_sent_are_not_used_again(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    uint64_t frames = world_link(pair.world, B, A).frames_sent;
    client_publish(pair.world, pair.says, "t", "0", 2, false);
    commit_at(&pair, A);
    assert_int_equal(times_got(&pair, 0), 1);
    for (int i = 0; i < 20000; i++) {
        client_publish(pair.world, pair.says, "t", "x", 0, false);
        if (i % 1000 == 0) commit_at(&pair, A);
    }
    assert_true(link_at_a(&pair).publications_sent > 19000);
    assert_int_equal(world_link(pair.world, B, A).frames_sent,
                     frames);       /* so that all are known by their numbers alone */
    pair.hears->received_count = 2; /* "warm" and "0" */
    crash_a(&pair);
    for (int i = 1; i < MESSAGES; i++)
        publish(&pair, i, 1);
    run(&pair, 1000);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(times_got(&pair, i), 1);
    pair_end(&pair);
}

/* Nothing of it may be sent, as it might be sent again under another number; one of QoS 1 may. */
static void qos_2_is_sent_once_it_is_on_the_disk(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    publish(&pair, 1, 1);
    publish(&pair, 2, 2);
    publish(&pair, 3, 0);
    world_run(pair.world, 5000);
    assert_int_equal(times_got(&pair, 1), 1);
    assert_int_equal(times_got(&pair, 2) + times_got(&pair, 3), 0);
    commit_at(&pair, A);
    assert_int_equal(times_got(&pair, 2), 1);
    assert_int_equal(times_got(&pair, 3), 1);
    pair_end(&pair);
}

static void for_subscriptions_at_qos_0_no_disk_is_asked(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    client_subscribe(pair.world, pair.hears, "t", 0);
    run(&pair, 1000);
    assert_int_equal(disk_count(pair.disks[A], RECORD_JOIN), 0);
    int before = acknowledged(&pair);
    publish(&pair, 1, 2);
    publish(&pair, 2, 1);
    assert_int_equal(times_got(&pair, 1) + times_got(&pair, 2), 2);
    assert_int_equal(acknowledged(&pair), before + 2);
    pair_end(&pair);
}

static void a_disk_that_fails_holds_up_no_other_broker(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    broker_set_store_failing(pair.world->sites[A].broker, pair.world->now_ms, true);
    int before = acknowledged(&pair);
    for (int i = 0; i < MESSAGES; i++)
        publish(&pair, i, 1 + i % 2);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(times_got(&pair, i), 1);
    assert_int_equal(acknowledged(&pair), before + MESSAGES);
    broker_set_store_failing(pair.world->sites[A].broker, pair.world->now_ms, false);
    run(&pair, 1000);
    publish(&pair, MESSAGES, 2);
    run(&pair, 1000);
    assert_int_equal(times_got(&pair, MESSAGES), 1);
    pair_end(&pair);
}

static void copy_record(void *context, const struct record *record) {
    int result = record_write(context, record);
    assert_int_equal(result, 0);
}

static struct disk *disk_copy(const struct disk *disk) {
    struct disk *copy = disk_new();
    struct record_buffer buffer = {0};
    disk_read(disk, copy_record, &buffer);
    disk_commit(copy, buffer.bytes, buffer.size);
    free(buffer.bytes);
    return copy;
}

/* The other broker has seen what an older disk knows nothing of; it dials, or is dialled. */
static void with_an_older_disk_the_numbering_begins_anew(void **state) {
    (void)state;
    for (int dialled = 0; dialled < 2; dialled++) {
        struct pair pair = hearing_new();
        struct disk *older = disk_copy(pair.disks[A]);
        for (int i = 0; i < 40000; i++) {
            client_publish(pair.world, pair.says, "t", "x", 0, false);
            if (i % 1000 == 0) run(&pair, 100);
            pair.hears->received_count = 0;
        }
        run(&pair, 1000);
        die_at(&pair, A);
        disk_free(pair.disks[A]);
        pair.disks[A] = pair.world->sites[A].restore_context = older;
        begin_anew(&pair);
        publish(&pair, 0, 1);
        world_tell_alive(pair.world, B, A);
        if (dialled) world_tell_alive(pair.world, A, B);
        run(&pair, 12000);
        for (int i = 1; i < MESSAGES; i++)
            publish(&pair, i, 1 + i % 2);
        run(&pair, 1000);
        for (int i = 0; i < MESSAGES; i++)
            assert_int_equal(times_got(&pair, i), 1);
        pair_end(&pair);
    }
}

static void what_is_kept_ends_in_time_though_the_broker_dies(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    part(&pair);
    publish(&pair, 1, 1);
    for (int hour = 0; hour < 22; hour += 2) {
        run(&pair, 2 * 3600000);
        crash_a(&pair);
        broker_peer_gone(pair.world->sites[A].broker, pair.world->now_ms, &pair.world->sites[B].id);
        assert_int_equal(link_at_a(&pair).outbox_messages, 1);
    }
    run(&pair, 2 * 3600000);
    run(&pair, 1000);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    assert_int_equal(link_at_a(&pair).joined_here, 0);
    assert_int_equal(disk_count(pair.disks[A], RECORD_PEER), 0);
    assert_int_equal(disk_count(pair.disks[A], RECORD_JOIN), 0);
    assert_int_equal(disk_count(pair.disks[A], RECORD_MESSAGE), 0);
    pair_end(&pair);
}

/* While its own broker was away too, the other one was started anew: its sessions of before are no more. */
static void a_session_that_ended_meanwhile_is_owed_nothing(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    part(&pair);
    publish(&pair, 1, 1);
    run(&pair, 1000);
    die_at(&pair, B);
    assert_true(site_start(pair.world, B));
    crash_a(&pair);
    struct client *later = client_connect(pair.world, B);
    client_subscribe(pair.world, later, "t", 1);
    meet(&pair);
    assert_int_equal(client_got(later, "1"), 0);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    publish(&pair, 2, 1);
    run(&pair, 1000);
    assert_int_equal(client_got(later, "2"), 1);
    pair_end(&pair);
}

static void a_journal_that_begins_anew_tells_of_what_waits(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    part(&pair);
    for (int i = 0; i < MESSAGES; i++)
        publish(&pair, i, 1 + i % 2);
    assert_true(broker_restart_journal(pair.world->sites[A].broker, pair.world->now_ms));
    run(&pair, 100);
    assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), MESSAGES);
    crash_a(&pair);
    meet(&pair);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(times_got(&pair, i), 1);
    pair_end(&pair);
}

/* So it asks for none of them; what is published to one while the other is away waits all the same. */
static void a_broker_that_begins_anew_keeps_for_topics_that_it_has_not_told_of_again(void **state) {
    (void)state;
    for (int absent = 0; absent < 2; absent++) {
        struct pair pair = hearing_new();
        if (absent) part(&pair); /* while it begins anew */
        crash_a(&pair);
        meet(&pair);
        run(&pair, 40000); /* longer than anything lingers */
        part(&pair);
        publish(&pair, 1, 1);
        run(&pair, 1000);
        meet(&pair);
        assert_int_equal(times_got(&pair, 1), 1);
        client_unsubscribe(pair.world, pair.hears, "t");
        run(&pair, 10000);
        assert_int_equal(link_at_a(&pair).joined_here, 0);
        pair_end(&pair);
    }
}

/* Nobody publishes to it for so long that it is no longer told of. */
static void an_idle_topic_stays_joined_for_those_that_are_kept(void **state) {
    (void)state;
    struct pair pair = hearing_new();
    run(&pair, 3 * 3600000);
    assert_int_equal(link_at_a(&pair).joined_here, 1);
    part(&pair);
    publish(&pair, 1, 2);
    run(&pair, 3600000);
    meet(&pair);
    assert_int_equal(times_got(&pair, 1), 1);
    client_subscribe(pair.world, pair.hears, "t", 0); /* and then it need not be */
    run(&pair, 3 * 3600000);
    run(&pair, 10000);
    assert_int_equal(link_at_a(&pair).joined_here, 0);
    pair_end(&pair);
}

/* After a crash the joins are known before the name of who made them: what waits is kept until that is known. */
static void an_absent_broker_gets_what_its_name_is_let_have(void **state) {
    (void)state;
    struct policy *policy = POLICY({"", POLICY_EXPORT, NULL}, {"site-1", POLICY_EXPORT, "t"});
    struct pair pair = hearing_new();
    client_subscribe(pair.world, pair.hears, "u", 2);
    run(&pair, 1000);
    client_publish(pair.world, pair.says, "u", "warm", 2, false);
    run(&pair, 1000);
    part(&pair);
    pair.world->sites[A].policy = policy;
    die_at(&pair, A);
    begin_anew(&pair);
    assert_int_equal(link_at_a(&pair).joined_here, 2);
    client_publish(pair.world, pair.says, "t", "1", 1, false);
    client_publish(pair.world, pair.says, "u", "2", 1, false);
    run(&pair, 100);
    assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), 2);
    meet(&pair);
    assert_int_equal(times_got(&pair, 1), 1);
    assert_int_equal(times_got(&pair, 2), 0);
    assert_int_equal(link_at_a(&pair).given_up[GIVEN_UP_POLICY], 1);
    assert_int_equal(link_at_a(&pair).joined_here, 1);
    assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), 0);
    pair_end(&pair);
    policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_comes_once_wherever_its_broker_dies),
        cmocka_unit_test(what_waits_for_an_absent_broker_outlives_many_deaths),
        cmocka_unit_test(numbers_that_were_sent_are_not_used_again),
        cmocka_unit_test(qos_2_is_sent_once_it_is_on_the_disk),
        cmocka_unit_test(for_subscriptions_at_qos_0_no_disk_is_asked),
        cmocka_unit_test(a_disk_that_fails_holds_up_no_other_broker),
        cmocka_unit_test(with_an_older_disk_the_numbering_begins_anew),
        cmocka_unit_test(what_is_kept_ends_in_time_though_the_broker_dies),
        cmocka_unit_test(a_session_that_ended_meanwhile_is_owed_nothing),
        cmocka_unit_test(a_journal_that_begins_anew_tells_of_what_waits),
        cmocka_unit_test(a_broker_that_begins_anew_keeps_for_topics_that_it_has_not_told_of_again),
        cmocka_unit_test(an_idle_topic_stays_joined_for_those_that_are_kept),
        cmocka_unit_test(an_absent_broker_gets_what_its_name_is_let_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
