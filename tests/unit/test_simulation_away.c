/* G5: what is published for sessions that outlive their connections waits while their broker is away, for whatever
 * reason it is, and comes once when it is back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "with_disk.h"

static void publish(struct pair *pair, const char *payload, int qos, bool retain) {
    client_publish(pair->world, pair->says, "t", payload, qos, retain);
    run(pair, 100);
}

/* B's session of "cz", which lasts or not, has subscribed to "t" at this QoS, and its client has gone. */
static struct pair away_within(int qos, bool lasts, uint64_t queue_bytes) {
    struct pair pair = pair_new(queue_bytes);
    struct client *hears = client_connect_as(pair.world, B, 'z', !lasts);
    commit(&pair);
    client_subscribe(pair.world, hears, "t", qos);
    run(&pair, 1000);
    publish(&pair, "warm", 1, false);
    run(&pair, 1000);
    assert_int_equal(client_got(hears, "warm"), 1);
    pair.hears = hears;
    if (lasts) broker_client_closed(pair.world->sites[B].broker, pair.world->now_ms, hears->handle);
    run(&pair, 1000);
    return pair;
}

static struct pair away_new(int qos, bool lasts) {
    return away_within(qos, lasts, 0);
}

static void crash(struct pair *pair) {
    die(pair);
    broker_peer_gone(pair->world->sites[A].broker, pair->world->now_ms, &pair->world->sites[B].id);
    world_run(pair->world, 1000);
}

static void start(struct pair *pair) {
    assert_true(site_start(pair->world, B));
    meet(pair);
}

static void qos_1_and_2_wait_through_a_cut_of_any_length(void **state) {
    (void)state;
    static const uint64_t hours[] = {0, 1, 23};
    for (size_t i = 0; i < sizeof hours / sizeof *hours; i++) {
        struct pair pair = away_new(2, true);
        part(&pair);
        publish(&pair, "1", 1, false);
        run(&pair, hours[i] * 3600000);
        publish(&pair, "none", 0, false);
        publish(&pair, "2", 2, false);
        publish(&pair, "3", 1, false);
        assert_int_equal(link_at_a(&pair).outbox_messages, 3);
        assert_int_equal(link_at_a(&pair).given_up[GIVEN_UP_AWAY], 1);
        meet(&pair);
        assert_int_equal(link_at_a(&pair).outbox_messages, 0);
        expect_sequence(come_back(&pair), (const char *const[]){"1", "2", "3"}, 3);
        assert_int_equal(world_link(pair.world, B, A).lost, 0);
        pair_end(&pair);
    }
}

static void they_wait_while_the_other_is_not_running(void **state) {
    (void)state;
    struct pair pair = away_new(2, true);
    publish(&pair, "0", 2, false);
    crash(&pair);
    client_publish(pair.world, pair.says, "t", "1", 2, false);
    world_run(pair.world, 7200000);
    client_publish(pair.world, pair.says, "t", "2", 1, false);
    world_run(pair.world, 1000);
    start(&pair);
    expect_sequence(come_back(&pair), (const char *const[]){"0", "1", "2"}, 3);
    pair_end(&pair);
}

/* They are subscribed all the time, as their clients see it. */
static void it_waits_for_sessions_that_end_with_their_broker_too(void **state) {
    (void)state;
    struct pair pair = away_new(2, false);
    part(&pair);
    publish(&pair, "1", 2, false);
    publish(&pair, "none", 0, false);
    run(&pair, 3600000);
    publish(&pair, "2", 1, false);
    assert_int_equal(link_at_a(&pair).outbox_messages, 2);
    meet(&pair);
    expect_sequence(pair.hears, (const char *const[]){"warm", "1", "2"}, 3);
    part(&pair);
    publish(&pair, "3", 1, false);
    broker_client_closed(pair.world->sites[B].broker, pair.world->now_ms, pair.hears->handle);
    run(&pair, 10000);
    meet(&pair); /* nobody is there for it any more */
    run(&pair, 31000);
    assert_int_equal(link_at_a(&pair).joined_here, 0);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    pair_end(&pair);
}

static void for_sessions_that_ended_with_their_broker_nothing_waits(void **state) {
    (void)state;
    struct pair pair = away_new(2, false);
    part(&pair);
    publish(&pair, "1", 2, false);
    crash(&pair);
    assert_true(site_start(pair.world, B));
    uint64_t before = link_at_a(&pair).given_up[GIVEN_UP_RESTARTED];
    meet(&pair);
    assert_int_equal(link_at_a(&pair).joined_here, 0);
    assert_int_equal(link_at_a(&pair).given_up[GIVEN_UP_RESTARTED], before + 1);
    pair_end(&pair);
}

/* It was on its way when the other died; who asks later has no claim on it. */
static void what_a_session_that_ended_had_asked_for_is_given_up(void **state) {
    (void)state;
    struct pair pair = away_new(2, false);
    pair.world->hold_frames = true;
    publish(&pair, "1", 2, false);
    assert_int_equal(link_at_a(&pair).outbox_messages, 1);
    crash(&pair);
    pair.world->hold_frames = false;
    assert_true(site_start(pair.world, B));
    struct client *later = client_connect_as(pair.world, B, 'z', true);
    client_subscribe(pair.world, later, "t", 2);
    meet(&pair);
    assert_int_equal(client_got(later, "1"), 0);
    assert_int_equal(link_at_a(&pair).given_up[GIVEN_UP_RESTARTED], 1);
    assert_int_equal(link_at_a(&pair).dropped, 0);
    publish(&pair, "2", 2, false);
    assert_int_equal(client_got(later, "2"), 1);
    pair_end(&pair);
}

static void for_subscriptions_at_qos_0_nothing_waits(void **state) {
    (void)state;
    struct pair pair = away_new(0, true);
    part(&pair);
    publish(&pair, "1", 2, false);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    pair_end(&pair);
}

static void what_is_kept_changes_with_the_session(void **state) {
    (void)state;
    struct pair pair = away_new(2, true);
    struct client *hears = come_back(&pair);
    client_subscribe(pair.world, hears, "t", 0); /* replaced */
    run(&pair, 1000);
    part(&pair);
    publish(&pair, "1", 2, false);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    meet(&pair);
    client_subscribe(pair.world, hears, "t", 1);
    run(&pair, 1000);
    part(&pair);
    publish(&pair, "2", 2, false);
    assert_int_equal(link_at_a(&pair).outbox_messages, 1);
    meet(&pair);
    assert_int_equal(client_got(hears, "2"), 1);
    struct client *clean = client_connect_as(pair.world, B, 'z', true); /* takes the session's place */
    client_subscribe(pair.world, clean, "t", 1);
    run(&pair, 1000);
    crash(&pair); /* and ends */
    client_publish(pair.world, pair.says, "t", "3", 2, false);
    world_run(pair.world, 1000);
    start(&pair);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    assert_int_equal(link_at_a(&pair).joined_here, 0);
    pair_end(&pair);
}

static void nothing_waits_longer_than_the_limit(void **state) {
    (void)state;
    struct pair pair = away_new(2, true);
    part(&pair);
    publish(&pair, "1", 2, false);
    run(&pair, 24 * 3600000ull);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    assert_int_equal(link_at_a(&pair).dropped_at[LINK_AT_QUEUE_AGE], 1);
    publish(&pair, "2", 2, false);
    assert_int_equal(link_at_a(&pair).outbox_messages, 0);
    meet(&pair);
    publish(&pair, "3", 2, false);
    expect_sequence(come_back(&pair), (const char *const[]){"3"}, 1);
    pair_end(&pair);
}

static void the_limit_of_bytes_holds_for_one_that_is_away(void **state) {
    (void)state;
    struct pair pair = away_within(2, true, 10000);
    part(&pair);
    for (int i = 0; i < 300; i++)
        publish(&pair, "x", 1, false);
    struct link_info info = link_at_a(&pair);
    assert_true(info.outbox_bytes > 10000 && info.outbox_bytes <= 20000);
    assert_true(info.outbox_messages > 10);
    assert_int_equal(info.dropped_at[LINK_AT_QUEUE_BYTES], 300 - info.outbox_messages);
    meet(&pair);
    assert_int_equal(come_back(&pair)->received_count, info.outbox_messages);
    pair_end(&pair);
}

static void a_broker_that_lost_its_disk_is_kept_nothing_more_after_half_a_minute(void **state) {
    (void)state;
    struct pair pair = away_new(2, true);
    crash(&pair);
    disk_free(pair.disks[B]);
    pair_give_disk(&pair, B);
    start(&pair);
    run(&pair, 31000);
    assert_int_equal(link_at_a(&pair).joined_here, 0);
    pair_end(&pair);
}

static void retained_messages_are_the_latest_after_it(void **state) {
    (void)state;
    struct pair pair = away_new(2, true);
    publish(&pair, "old", 0, true);
    part(&pair);
    publish(&pair, "new", 0, true);
    meet(&pair);
    struct client *late = client_connect(pair.world, B);
    client_subscribe(pair.world, late, "t", 0);
    run(&pair, 1000);
    assert_int_equal(client_got(late, "new"), 1);
    assert_int_equal(client_got(late, "old"), 0);
    pair_end(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qos_1_and_2_wait_through_a_cut_of_any_length),
        cmocka_unit_test(they_wait_while_the_other_is_not_running),
        cmocka_unit_test(it_waits_for_sessions_that_end_with_their_broker_too),
        cmocka_unit_test(for_sessions_that_ended_with_their_broker_nothing_waits),
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
