/* A broker whose memory is short, or whose store is far behind, takes from other brokers no more than from its own
 * clients; and what it does not take it gets later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"

static void set_short(struct world *world, int site, bool is_short) {
    broker_set_memory_short(world->sites[site].broker, world->now_ms, is_short);
}

static uint64_t at_memory_limit(const struct world *world, int site) {
    struct broker_counters counters;
    broker_read_counters(world->sites[site].broker, &counters);
    return counters.at_limit[BROKER_AT_MEMORY_BYTES_MAX];
}

static void short_of_memory_qos_0_of_a_peer_is_dropped(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    uint64_t links = world_counters(world, 1).links_opened;
    set_short(world, 1, true);
    for (int i = 0; i < 3; i++)
        client_publish(world, says, "t", "0", 0, false);
    world_run(world, 5000);
    assert_int_equal(at_memory_limit(world, 1), 3);
    set_short(world, 1, false);
    client_publish(world, says, "t", "after", 0, false);
    world_run(world, 5000);
    assert_int_equal(client_got(hears, "0"), 0);
    assert_int_equal(client_got(hears, "after"), 1);
    assert_int_equal(world_link(world, 1, 0).lost, 0);
    assert_int_equal(world_counters(world, 1).links_opened, links); /* the link went on */
    end(world);
}

static void short_of_memory_what_lasts_waits_at_the_peer(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    uint64_t links = world_counters(world, 1).links_opened;
    client_publish(world, says, "t", "before", 1, false);
    world_settle(world);
    set_short(world, 1, true);
    for (int i = 0; i < 30; i++) {
        char payload[12];
        snprintf(payload, sizeof payload, "%d", i);
        client_publish(world, says, "t", payload, 1 + i % 2, i % 10 == 9);
        world_run(world, 500);
    }
    assert_int_equal(hears->received_count, 2);
    assert_int_equal(at_memory_limit(world, 1), 1);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 30);
    assert_int_equal(world_counters(world, 1).links_opened, links); /* which carries the rest as before */
    set_short(world, 1, false);
    world_run(world, 5000);
    assert_int_equal(hears->received_count, 32);
    for (int i = 0; i < 30; i++)
        assert_int_equal(atoi(hears->received[2 + i].payload), i);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 0);
    assert_int_equal(world_link(world, 1, 0).lost, 0);
    assert_int_equal(world_counters(world, 1).links_opened, links + 1);
    end(world);
}

static void what_others_say_is_heard_meanwhile(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    client_subscribe(world, says, "back", 1);
    client_publish(world, hears, "back", "warm", 0, false);
    world_run(world, 1000);
    set_short(world, 1, true);
    client_publish(world, says, "t", "waits", 1, false);
    world_run(world, 200);
    client_subscribe(world, says, "more", 1);
    world_settle(world);
    set_short(world, 1, false); /* the link is behind for most of a second yet */
    client_publish(world, hears, "more", "new", 1, false);
    client_publish(world, hears, "back", "answer", 1, false);
    world_run(world, 500);
    assert_int_equal(client_got(says, "new"), 1);
    assert_int_equal(client_got(says, "answer"), 1);
    assert_int_equal(world_link(world, 1, 0).outbox_messages, 0); /* acknowledged */
    assert_int_equal(client_got(hears, "waits"), 0);
    world_run(world, 5000);
    assert_int_equal(client_got(hears, "waits"), 1);
    end(world);
}

/* Memory is short again and again: no more than a link a second is made for it. */
static void memory_that_comes_and_goes_makes_few_links(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    for (int i = 0; i < 100; i++) {
        set_short(world, 1, true);
        client_publish(world, says, "t", "x", 1, false);
        world_run(world, 50);
        set_short(world, 1, false);
        world_run(world, 50);
    }
    assert_in_range(world_counters(world, 1).links_opened, 3, 14);
    world_run(world, 5000);
    assert_int_equal(client_got(hears, "x"), 100);
    end(world);
}

static void short_of_memory_a_retained_delete_is_taken(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    struct broker_counters counters;
    client_publish(world, says, "t", "kept", 1, true);
    world_settle(world);
    set_short(world, 1, true);
    client_publish(world, says, "t", "", 0, true);
    world_settle(world);
    broker_read_counters(world->sites[1].broker, &counters);
    assert_int_equal(counters.retained_messages, 0);
    assert_int_equal(at_memory_limit(world, 1), 0);
    end(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_of_memory_qos_0_of_a_peer_is_dropped),
        cmocka_unit_test(short_of_memory_what_lasts_waits_at_the_peer),
        cmocka_unit_test(what_others_say_is_heard_meanwhile),
        cmocka_unit_test(memory_that_comes_and_goes_makes_few_links),
        cmocka_unit_test(short_of_memory_a_retained_delete_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
