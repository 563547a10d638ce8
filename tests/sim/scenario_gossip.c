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

/* Variants: 20 brokers, where an owner tells all at once, and 50, where rumours carry it. */
static bool registry_change_is_known_within_a_second(struct run *run, struct world *world) {
    size_t count = run->variant == 0 ? 20 : 50;
    struct change change = {1};
    network_set_weather(world->network, &(struct network_weather){.delay_us = 5000, .jitter_us = 5000, .loss_ppm = 10000});
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
        CHECK(world_run_until(world, 10000, row_is_everywhere, &change), "row %llu is not everywhere after 10 s", (unsigned long long)change.rows);
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

const struct scenario scenarios_gossip[] = {
    {"registry_change_is_known_within_a_second", registry_change_is_known_within_a_second, 2, NULL},
    {"idle_broker_sends_under_four_kib_per_second", idle_broker_sends_under_four_kib_per_second, 1, NULL},
    {0},
};
