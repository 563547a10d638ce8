/* G5: what is published for sessions that outlive their connections waits while their broker is away, for whatever
 * reason it is, and comes once when it is back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"

#include "tests/sim/disk.h"

enum { A, B };

struct away {
    struct world *world;
    struct client *says;
    struct disk *disk;
};

struct restoring {
    struct broker *broker;
    uint64_t now_ms;
};

static void restore_one(void *context, const struct record *record) {
    const struct restoring *restoring = context;
    broker_restore(restoring->broker, restoring->now_ms, record);
}

static void restore(struct broker *broker, uint64_t now_ms, void *context) {
    struct restoring restoring = {broker, now_ms};
    uint64_t first_number = disk_read(context, restore_one, &restoring);
    assert_true(broker_restored(broker, now_ms, first_number));
}

/* What B has said so far is on its disk. */
static void commit(struct away *away) {
    struct broker *broker = away->world->sites[B].broker;
    struct broker_journal journal;
    while (broker_take_journal(broker, &journal)) {
        disk_commit(away->disk, journal.bytes, journal.size);
        free(journal.bytes);
        broker_durable(broker, away->world->now_ms, journal.last);
    }
    world_settle(away->world);
}

static void run(struct away *away, uint64_t ms) {
    world_run(away->world, ms);
    commit(away);
    world_settle(away->world);
}

static void publish(struct away *away, const char *payload, int qos, bool retain) {
    client_publish(away->world, away->says, "t", payload, qos, retain);
    run(away, 100);
}

/* B's session of "cz", which lasts or not, has subscribed to "t" at this QoS, and its client has gone. */
static struct away away_within(int qos, bool lasts, uint64_t queue_bytes) {
    struct away away = {.world = world_of(2), .disk = disk_new()};
    away.world->sites[A].limits.link_queue_bytes = queue_bytes;
    struct site *site = &away.world->sites[B];
    site->durable = true;
    site->restore = restore;
    site->restore_context = away.disk;
    assert_true(world_start(away.world));
    away.says = client_connect(away.world, A);
    struct client *hears = client_connect_as(away.world, B, 'z', !lasts);
    commit(&away);
    client_subscribe(away.world, hears, "t", qos);
    run(&away, 1000);
    publish(&away, "warm", 1, false);
    run(&away, 1000);
    assert_int_equal(client_got(hears, "warm"), 1);
    if (lasts) broker_client_closed(site->broker, away.world->now_ms, hears->handle);
    run(&away, 1000);
    return away;
}

static struct away away_new(int qos, bool lasts) {
    return away_within(qos, lasts, 0);
}

static void away_end(struct away *away) {
    char why[DISK_WHY];
    if (!disk_is_sound(away->disk, why)) fail_msg("%s", why);
    end(away->world);
    disk_free(away->disk);
}

/* Each holds the other dead. */
static void part(struct away *away) {
    struct world *world = away->world;
    world->apart[A][B] = world->apart[B][A] = true;
    world_cut(world, A, B);
    broker_peer_gone(world->sites[A].broker, world->now_ms, &world->sites[B].id);
    broker_peer_gone(world->sites[B].broker, world->now_ms, &world->sites[A].id);
    run(away, 1000);
}

static void meet(struct away *away) {
    struct world *world = away->world;
    world->apart[A][B] = world->apart[B][A] = false;
    world_meet(world);
    run(away, 30000);
}

static void crash(struct away *away) {
    struct world *world = away->world;
    broker_free(world->sites[B].broker);
    world->sites[B].broker = NULL;
    world_cut(world, A, B);
    broker_peer_gone(world->sites[A].broker, world->now_ms, &world->sites[B].id);
    world_run(world, 1000);
}

static void start(struct away *away) {
    assert_true(site_start(away->world, B));
    meet(away);
}

static struct client *come_back(struct away *away) {
    struct client *hears = client_connect_as(away->world, B, 'z', false);
    run(away, 1000);
    run(away, 1000);
    return hears;
}

static void expect_sequence(const struct client *hears, const char *const *payloads, int count) {
    assert_int_equal(hears->received_count, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(hears->received[i].payload, payloads[i]);
}

static struct link_info link_at_a(struct away *away) {
    return world_link(away->world, A, B);
}

static void qos_1_and_2_wait_through_a_cut_of_any_length(void **state) {
    (void)state;
    static const uint64_t hours[] = {0, 1, 23};
    for (size_t i = 0; i < sizeof hours / sizeof *hours; i++) {
        struct away away = away_new(2, true);
        part(&away);
        publish(&away, "1", 1, false);
        run(&away, hours[i] * 3600000);
        publish(&away, "none", 0, false);
        publish(&away, "2", 2, false);
        publish(&away, "3", 1, false);
        assert_int_equal(link_at_a(&away).outbox_messages, 3);
        meet(&away);
        assert_int_equal(link_at_a(&away).outbox_messages, 0);
        expect_sequence(come_back(&away), (const char *const[]){"1", "2", "3"}, 3);
        assert_int_equal(world_link(away.world, B, A).lost, 0);
        away_end(&away);
    }
}

static void they_wait_while_the_other_is_not_running(void **state) {
    (void)state;
    struct away away = away_new(2, true);
    publish(&away, "0", 2, false);
    crash(&away);
    client_publish(away.world, away.says, "t", "1", 2, false);
    world_run(away.world, 7200000);
    client_publish(away.world, away.says, "t", "2", 1, false);
    world_run(away.world, 1000);
    start(&away);
    expect_sequence(come_back(&away), (const char *const[]){"0", "1", "2"}, 3);
    away_end(&away);
}

static void for_sessions_that_end_nothing_waits(void **state) {
    (void)state;
    struct away away = away_new(2, false);
    part(&away);
    publish(&away, "1", 2, false);
    assert_int_equal(link_at_a(&away).outbox_messages, 0);
    assert_int_equal(link_at_a(&away).joined_here, 0);
    away_end(&away);
}

/* It was on its way when the other died; who asks later has no claim on it. */
static void what_a_session_that_ended_had_asked_for_is_given_up(void **state) {
    (void)state;
    struct away away = away_new(2, false);
    away.world->hold_frames = true;
    publish(&away, "1", 2, false);
    assert_int_equal(link_at_a(&away).outbox_messages, 1);
    crash(&away);
    away.world->hold_frames = false;
    uint64_t before = link_at_a(&away).dropped;
    assert_true(site_start(away.world, B));
    struct client *later = client_connect_as(away.world, B, 'z', true);
    client_subscribe(away.world, later, "t", 2);
    meet(&away);
    assert_int_equal(client_got(later, "1"), 0);
    assert_int_equal(link_at_a(&away).dropped, before + 1);
    publish(&away, "2", 2, false);
    assert_int_equal(client_got(later, "2"), 1);
    away_end(&away);
}

static void for_subscriptions_at_qos_0_nothing_waits(void **state) {
    (void)state;
    struct away away = away_new(0, true);
    part(&away);
    publish(&away, "1", 2, false);
    assert_int_equal(link_at_a(&away).outbox_messages, 0);
    away_end(&away);
}

static void what_is_kept_changes_with_the_session(void **state) {
    (void)state;
    struct away away = away_new(2, true);
    struct client *hears = come_back(&away);
    client_subscribe(away.world, hears, "t", 0); /* replaced */
    run(&away, 1000);
    part(&away);
    publish(&away, "1", 2, false);
    assert_int_equal(link_at_a(&away).outbox_messages, 0);
    meet(&away);
    client_subscribe(away.world, hears, "t", 1);
    run(&away, 1000);
    part(&away);
    publish(&away, "2", 2, false);
    assert_int_equal(link_at_a(&away).outbox_messages, 1);
    meet(&away);
    assert_int_equal(client_got(hears, "2"), 1);
    struct client *clean = client_connect_as(away.world, B, 'z', true); /* takes the session's place */
    client_subscribe(away.world, clean, "t", 1);
    run(&away, 1000);
    part(&away);
    publish(&away, "3", 2, false);
    assert_int_equal(link_at_a(&away).outbox_messages, 0);
    away_end(&away);
}

static void nothing_waits_longer_than_the_limit(void **state) {
    (void)state;
    struct away away = away_new(2, true);
    part(&away);
    publish(&away, "1", 2, false);
    run(&away, 24 * 3600000ull);
    assert_int_equal(link_at_a(&away).outbox_messages, 0);
    assert_int_equal(link_at_a(&away).dropped, 1);
    publish(&away, "2", 2, false);
    assert_int_equal(link_at_a(&away).outbox_messages, 0);
    meet(&away);
    publish(&away, "3", 2, false);
    expect_sequence(come_back(&away), (const char *const[]){"3"}, 1);
    away_end(&away);
}

static void the_limit_of_bytes_holds_for_one_that_is_away(void **state) {
    (void)state;
    struct away away = away_within(2, true, 10000);
    part(&away);
    for (int i = 0; i < 300; i++)
        publish(&away, "x", 1, false);
    struct link_info info = link_at_a(&away);
    assert_true(info.outbox_bytes > 10000 && info.outbox_bytes <= 20000);
    assert_true(info.outbox_messages > 10);
    assert_int_equal(info.dropped, 300 - info.outbox_messages);
    meet(&away);
    assert_int_equal(come_back(&away)->received_count, info.outbox_messages);
    away_end(&away);
}

static void a_broker_that_lost_its_disk_is_kept_nothing_more_after_half_a_minute(void **state) {
    (void)state;
    struct away away = away_new(2, true);
    crash(&away);
    disk_free(away.disk);
    away.disk = away.world->sites[B].restore_context = disk_new();
    start(&away);
    run(&away, 31000);
    assert_int_equal(link_at_a(&away).joined_here, 0);
    away_end(&away);
}

static void retained_messages_are_the_latest_after_it(void **state) {
    (void)state;
    struct away away = away_new(2, true);
    publish(&away, "old", 0, true);
    part(&away);
    publish(&away, "new", 0, true);
    meet(&away);
    struct client *late = client_connect(away.world, B);
    client_subscribe(away.world, late, "t", 0);
    run(&away, 1000);
    assert_int_equal(client_got(late, "new"), 1);
    assert_int_equal(client_got(late, "old"), 0);
    away_end(&away);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qos_1_and_2_wait_through_a_cut_of_any_length),
        cmocka_unit_test(they_wait_while_the_other_is_not_running),
        cmocka_unit_test(for_sessions_that_end_nothing_waits),
        cmocka_unit_test(what_a_session_that_ended_had_asked_for_is_given_up),
        cmocka_unit_test(for_subscriptions_at_qos_0_nothing_waits),
        cmocka_unit_test(what_is_kept_changes_with_the_session),
        cmocka_unit_test(nothing_waits_longer_than_the_limit),
        cmocka_unit_test(the_limit_of_bytes_holds_for_one_that_is_away),
        cmocka_unit_test(a_broker_that_lost_its_disk_is_kept_nothing_more_after_half_a_minute),
        cmocka_unit_test(retained_messages_are_the_latest_after_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
