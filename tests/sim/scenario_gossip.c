/* The registry at larger numbers, and what it costs: section 5 and 9. */
#include "tests/sim/scenario.h"

#include <string.h>

struct change {
    uint64_t rows;
};

static bool row_is_everywhere(struct world *world, void *context) {
    const struct change *change = context;
    for (size_t i = 0; i < world->node_count; i++) {
        struct gossip_counters counters;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        if (counters.rows_own + counters.rows_others != change->rows) return false;
    }
    return true;
}

/* Variants: 20 brokers, where an owner tells all at once, and 40, where rumours carry it. */
static bool registry_change_is_known_within_a_second(struct run *run, struct world *world) {
    size_t count = run->variant == 0 ? 20 : 40;
    struct change change = {1};
    network_set_weather(world->network,
                        &(struct network_weather){.delay_us = 5000, .jitter_us = 5000, .loss_ppm = 10000});
    world_add_nodes(world, count);
    world_start_all(world);
    if (!run_settle(run, world, 15000)) return false;
    for (; change.rows <= 5; change.rows++) {
        char filter[32];
        snprintf(filter, sizeof filter, "row/%llu", (unsigned long long)change.rows);
        struct world_node *node = world->nodes[dice_below(&world->dice, count)];
        gossip_row_put(node_gossip(node->node), world_node_now_ms(node), GOSSIP_NEWSUB, filter, strlen(filter));
        node_pump(node->node, world_node_now_ms(node));
        world_flush(node);
        uint64_t put_ms = world_now_ms(world);
        CHECK(world_run_until(world, 10000, row_is_everywhere, &change), "row %llu is not everywhere after 10 s",
              (unsigned long long)change.rows);
        uint64_t took_ms = world_now_ms(world) - put_ms;
        CHECK(took_ms <= 1000, "a row took %llu ms to %zu brokers", (unsigned long long)took_ms, count);
        world_run_ms(world, 500);
    }
    return run_settle(run, world, 5000);
}

static bool idle_broker_sends_under_four_kib_per_second(struct run *run, struct world *world) {
    world_add_nodes(world, 20);
    world_start_all(world);
    if (!run_settle(run, world, 15000)) return false;
    world_run_ms(world, 30000);
    struct network_counters before, after;
    network_read_counters(world->network, &before);
    world_run_ms(world, 60000);
    network_read_counters(world->network, &after);
    uint64_t per_s = (after.datagram_bytes - before.datagram_bytes) / 60 / 20;
    CHECK(per_s <= 4096, "an idle broker of 20 sends %llu bytes per second", (unsigned long long)per_s);
    return true;
}

/* A table of many packets, in calm and in bad weather. */
static bool large_table_reaches_a_late_starter(struct run *run, struct world *world) {
    if (run->variant == 1)
        network_set_weather(world->network,
                            &(struct network_weather){
                                .delay_us = 20000, .jitter_us = 20000, .loss_ppm = 100000, .duplicate_ppm = 20000});
    world_add_nodes(world, 4);
    for (size_t i = 0; i < 3; i++)
        world_start(world, i);
    struct sim_client *client = world_add_plain_client(world, "greedy", 0);
    for (unsigned i = 0; i < 400; i++) {
        char filter[64];
        snprintf(filter, sizeof filter, "building/%u/floor/%u/a-rather-long-name", i % 20, i);
        sim_client_subscribe(client, filter, (uint8_t)(i % 3));
    }
    world_run_ms(world, 60000);
    world_start(world, 3);
    return run_settle(run, world, run->variant == 1 ? 10000 : 5000);
}

/* 512 rows of a kind are allowed: more filters are covered by wider ones, and still only what was asked for is
 * delivered. */
static bool more_filters_than_rows_still_deliver_exactly(struct run *run, struct world *world) {
    world_add_nodes(world, 2);
    world_start_all(world);
    struct sim_client *many = world_add_plain_client(world, "many", 0),
                      *publisher = world_add_plain_client(world, "publisher", 1);
    for (unsigned i = 0; i < 700; i++) {
        char filter[64];
        snprintf(filter, sizeof filter, "dev/%u/t", i * 2);
        sim_client_subscribe(many, filter, 1);
    }
    if (!run_settle(run, world, 60000)) return false;
    for (unsigned i = 0; i < 100; i++) {
        char topic[64];
        snprintf(topic, sizeof topic, "dev/%u/t", (unsigned)dice_below(&world->dice, 1400));
        sim_client_publish(publisher, topic, 1, false, 16);
        world_run_ms(world, 20);
    }
    world_run_ms(world, 5000);
    struct gossip_counters counters;
    gossip_read_counters(node_gossip(world->nodes[0]->node), &counters);
    CHECK(counters.rows_own <= 1024, "edge-1 shows %llu rows", (unsigned long long)counters.rows_own);
    return run_verify(run, world, 0, CHECKS_ONCE);
}

/* Rows come and go while one broker is cut off; what was deleted meanwhile is not shown again by anyone. */
static bool deleted_rows_do_not_come_back(struct run *run, struct world *world) {
    static const bool sides[4] = {false, false, false, true};
    world_add_nodes(world, 4);
    world_start_all(world);
    for (size_t i = 0; i < 4; i++) {
        char id[64];
        snprintf(id, sizeof id, "fickle-%zu", i + 1);
        struct sim_client *client = world_add_plain_client(world, id, i);
        for (unsigned filter = 0; filter < 30; filter++) {
            snprintf(id, sizeof id, "fickle/%zu/%u", i, filter);
            sim_client_subscribe(client, id, 0);
        }
    }
    if (!run_settle(run, world, 10000)) return false;
    world_partition(world, sides);
    for (unsigned change = 0; change < 200; change++) {
        char filter[64];
        size_t of = change % 4;
        snprintf(filter, sizeof filter, "fickle/%zu/%u", of, (unsigned)dice_below(&world->dice, 30));
        if (dice_below(&world->dice, 3) == 0)
            sim_client_subscribe(world->clients[of], filter, 0);
        else
            sim_client_unsubscribe(world->clients[of], filter);
        world_run_ms(world, 100);
    }
    world_run_ms(world, 10000); /* past the linger of what was unsubscribed last */
    network_heal(world->network);
    if (!run_settle(run, world, 10000)) return false;
    world_run_ms(world, 30000);
    return run_settle(run, world, 0);
}

/* edge-1 and edge-2 never reach each other, and each change falls into a second in which nobody reaches edge-2: rumours
 * of it have died down by then, and only digests with the other two can tell. */
static bool digests_repair_what_rumours_missed(struct run *run, struct world *world) {
    world_add_nodes(world, 4);
    world_start_all(world);
    struct sim_client *client = world_add_plain_client(world, "client", 0);
    if (!run_settle(run, world, 10000)) return false;
    struct change change = {1};
    for (unsigned i = 0; i < 10; i++, change.rows++) {
        char filter[64];
        snprintf(filter, sizeof filter, "missed/%u", i);
        for (size_t other = 0; other < 4; other++) {
            world_cut(world, 1, other, other != 1);
            world_cut(world, other, 1, other != 1);
        }
        sim_client_subscribe(client, filter, 0);
        world_run_ms(world, 1200);
        for (size_t other = 2; other < 4; other++) {
            world_cut(world, 1, other, false);
            world_cut(world, other, 1, false);
        }
        CHECK(world_run_until(world, 10000, row_is_everywhere, &change),
              "row %u did not reach edge-2 by way of the others", i);
        world_run_ms(world, 1000);
    }
    return true;
}

const struct scenario scenarios_gossip[] = {
    {"large_table_reaches_a_late_starter", large_table_reaches_a_late_starter, 2, NULL},
    {"more_filters_than_rows_still_deliver_exactly", more_filters_than_rows_still_deliver_exactly, 1, NULL},
    {"digests_repair_what_rumours_missed", digests_repair_what_rumours_missed, 1, NULL},
    {"deleted_rows_do_not_come_back", deleted_rows_do_not_come_back, 1, NULL},
    {"registry_change_is_known_within_a_second", registry_change_is_known_within_a_second, 2, NULL},
    {"idle_broker_sends_under_four_kib_per_second", idle_broker_sends_under_four_kib_per_second, 1, NULL},
    {0},
};
