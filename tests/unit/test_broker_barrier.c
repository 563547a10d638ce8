/* What a SUBACK waits for, and the retained messages that come before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"

static void suback_waits_for_joined_and_is_released_in_time(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_publish(world, says, "t", "before", 0, false);
    world_settle(world);
    world->hold_frames = true;
    client_subscribe(world, hears, "t", 0);
    world_run(world, 200);
    assert_int_equal(hears->subacks, 0);
    world->hold_frames = false;
    world_settle(world);
    assert_int_equal(hears->subacks, 1);
    assert_int_equal(world_counters(world, 1).barriers_waited, 1);
    assert_int_equal(world_counters(world, 1).barriers_timed_out, 0);
    client_publish(world, says, "t", "after", 0, false);
    world_settle(world);
    assert_int_equal(client_got(hears, "after"), 1);
    assert_int_equal(world_link(world, 0, 1).invites_sent, 0);

    world_run(world, 100);
    world->hold_frames = true;
    struct client *late = client_connect(world, 1);
    client_subscribe(world, late, "+", 0);
    world_run(world, 299);
    assert_int_equal(late->subacks, 0);
    world_run(world, 2);
    assert_int_equal(late->subacks, 1);
    assert_int_equal(world_counters(world, 1).barriers_timed_out, 1);
    client_subscribe(world, late, "#", 0); /* still waiting at the end */
    end(world);
}

static void who_has_joined_is_not_named_among_those_who_have_not(void **state) {
    (void)state;
    struct world *world = started(3);
    struct client *first = client_connect(world, 0), *third = client_connect(world, 2),
                  *hears = client_connect(world, 1);
    client_publish(world, first, "t", "m", 0, false);
    client_publish(world, third, "t", "m", 0, false);
    world_settle(world);
    world->apart[1][2] = true;
    client_subscribe(world, hears, "t", 0);
    world_run(world, 300);
    assert_int_equal(hears->subacks, 1);
    assert_int_equal(world_link(world, 1, 0).subacks_unconfirmed, 0);
    assert_int_equal(world_link(world, 1, 2).subacks_unconfirmed, 1);
    end(world);
}

static void a_filter_already_joined_waits_for_nothing(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1),
                  *second = client_connect(world, 1);
    client_publish(world, says, "t", "before", 0, false);
    client_subscribe(world, hears, "t", 0);
    world_settle(world);
    world->hold_frames = true;
    client_subscribe(world, second, "t", 0);
    client_subscribe(world, second, "$SYS/x", 0);
    world_settle(world);
    assert_int_equal(second->subacks, 2);
    end(world);
}

static void suback_waits_until_the_registry_is_known(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *hears = client_connect(world, 1);
    world->sites[0].deaf = true;
    client_subscribe(world, hears, "t", 0);
    world_run(world, 100);
    assert_int_equal(hears->subacks, 0);
    broker_peer_knows(world->sites[1].broker, world->now_ms, &world->sites[0].id, world->sites[1].sequence);
    world_settle(world);
    assert_int_equal(hears->subacks, 1);
    end(world);
}

static void a_dead_peer_does_not_hold_a_suback(void **state) {
    (void)state;
    struct world *world = started(3);
    struct client *hears = client_connect(world, 1);
    world->sites[0].deaf = true;
    client_subscribe(world, hears, "t", 0);
    world_run(world, 50);
    assert_int_equal(hears->subacks, 0);
    broker_peer_gone(world->sites[1].broker, world->now_ms, &world->sites[0].id);
    world_settle(world);
    assert_int_equal(hears->subacks, 1);
    end(world);
}

static void retained_snapshot_comes_before_the_suback(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_publish(world, says, "r/1", "one", 1, true);
    client_publish(world, says, "r/2", "two", 0, true);
    client_publish(world, says, "r/3", "gone", 0, true);
    client_publish(world, says, "r/3", "", 0, true);
    world_settle(world);
    client_subscribe(world, hears, "r/+", 1);
    world_run(world, 250);
    assert_int_equal(hears->received_count, 2);
    assert_int_equal(client_got(hears, "one"), 1);
    assert_int_equal(client_got(hears, "two"), 1);
    assert_true(hears->received[0].retain && hears->received[1].retain);
    struct client *second = client_connect(world, 1);
    client_subscribe(world, second, "r/1", 1);
    world_run(world, 10);
    assert_int_equal(second->received_count, 1);
    end(world);
}

/* The first publication is retained: it is held for the join and part of the snapshot, and still comes once. */
static void a_retained_first_message_arrives_once(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_subscribe(world, hears, "r/+", 1);
    world_settle(world);
    client_publish(world, says, "r/1", "one", 1, true);
    client_publish(world, says, "r/1", "two", 1, true);
    world_run(world, 1000);
    assert_int_equal(client_got(hears, "one"), 1);
    assert_int_equal(client_got(hears, "two"), 1);
    assert_int_equal(atoi(hears->received[0].payload), atoi("one"));
    assert_false(hears->received[0].retain);
    end(world);
}

static void a_snapshot_repeats_nothing_another_join_had(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_publish(world, says, "r/1", "one", 1, true);
    client_publish(world, says, "r/2", "two", 1, true);
    client_subscribe(world, hears, "r/1", 1);
    world_run(world, 400);
    assert_int_equal(world_link(world, 0, 1).publications_sent, 1);
    client_subscribe(world, hears, "r/+", 1);
    world_run(world, 400);
    assert_int_equal(world_link(world, 0, 1).publications_sent, 2);
    assert_int_equal(client_got(hears, "two"), 1);
    end(world);
}

static void a_snapshot_is_of_the_brokers_own_clients(void **state) {
    (void)state;
    struct world *world = started(3);
    struct client *first = client_connect(world, 0), *second = client_connect(world, 1),
                  *third = client_connect(world, 2);
    client_publish(world, first, "r/1", "of the first", 1, true);
    client_subscribe(world, second, "r/+", 1);
    world_run(world, 400);
    client_publish(world, second, "r/2", "of the second", 1, true);
    world_run(world, 400);
    client_subscribe(world, third, "r/+", 1);
    world_run(world, 400);
    assert_int_equal(client_got(third, "of the first"), 1);
    assert_int_equal(client_got(third, "of the second"), 1);
    assert_int_equal(world_link(world, 1, 2).publications_sent, 1);
    end(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suback_waits_for_joined_and_is_released_in_time),
        cmocka_unit_test(who_has_joined_is_not_named_among_those_who_have_not),
        cmocka_unit_test(a_filter_already_joined_waits_for_nothing),
        cmocka_unit_test(suback_waits_until_the_registry_is_known),
        cmocka_unit_test(a_dead_peer_does_not_hold_a_suback),
        cmocka_unit_test(retained_snapshot_comes_before_the_suback),
        cmocka_unit_test(a_retained_first_message_arrives_once),
        cmocka_unit_test(a_snapshot_repeats_nothing_another_join_had),
        cmocka_unit_test(a_snapshot_is_of_the_brokers_own_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
