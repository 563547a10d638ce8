/* Networks that let streams pass and drop datagrams: everywhere or for one pair, from the start or later, both ways or
 * one, and back. P19: members stay members, the registry agrees, delivery goes on. */
#include "tests/sim/scenario.h"

#define SETTLE_MS 5000u

static void watch(struct world *world) {
    for (size_t node = 0; node < world->node_count; node++) {
        char id[64];
        snprintf(id, sizeof id, "watch-%zu", node + 1);
        struct sim_client_options options = {.id = id, .version = 5, .keep_alive_s = 2, .reconnects = true};
        sim_client_subscribe(world_add_client(world, &options, node), "load/#", 2);
    }
}

static bool watched_brokers(struct run *run, struct world *world, size_t count) {
    world_add_nodes(world, count);
    world_start_all(world);
    watch(world);
    return run_settle(run, world, SETTLE_MS);
}

static void publish_for(struct world *world, uint64_t ms) {
    for (uint64_t passed = 0; passed < ms; passed += 500) {
        sim_client_publish(world->clients[dice_below(&world->dice, world->client_count)], "load/a",
                           (uint8_t)dice_below(&world->dice, 3), false, 16 + dice_below(&world->dice, 400));
        world_run_ms(world, 500);
    }
}

static void block_all(struct world *world, bool blocked) {
    for (size_t a = 0; a < world->node_count; a++)
        for (size_t b = 0; b < world->node_count; b++)
            network_block(world->network, world->nodes[a]->host, world->nodes[b]->host, blocked);
}

static uint64_t deaths(const struct world *world) {
    uint64_t sum = 0;
    for (size_t i = 0; i < world->node_count; i++) {
        struct gossip_counters counters;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        sum += counters.deaths;
    }
    return sum;
}

static uint64_t by_link(const struct world *world) {
    uint64_t sum = 0;
    for (size_t i = 0; i < world->node_count; i++) {
        struct gossip_counters counters;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        sum += counters.members_by_link;
    }
    return sum;
}

/* Variants: 2, 3, 6 brokers. */
static bool brokers_without_datagrams_form_a_federation(struct run *run, struct world *world) {
    static const size_t counts[3] = {2, 3, 6};
    size_t count = counts[run->variant];
    world_add_nodes(world, count);
    block_all(world, true);
    world_start_all(world);
    if (!run_settle(run, world, 15000)) return false;
    watch(world);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    uint64_t from_us = heap_now_us(world->heap);
    publish_for(world, 60000);
    CHECK(deaths(world) == 0, "%llu false deaths", (unsigned long long)deaths(world));
    CHECK(by_link(world) == count * (count - 1), "%llu ways by link", (unsigned long long)by_link(world));
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, from_us, CHECKS_ONCE);
}

/* Variants: 2 and 5 brokers. From the first moment on nothing may be lost: the links that carry publications stand. */
static bool datagrams_that_cease_are_no_death(struct run *run, struct world *world) {
    if (!watched_brokers(run, world, run->variant == 0 ? 2 : 5)) return false;
    publish_for(world, 2000);
    block_all(world, true);
    publish_for(world, 300000);
    CHECK(deaths(world) == 0, "%llu false deaths", (unsigned long long)deaths(world));
    block_all(world, false);
    publish_for(world, 40000);
    CHECK(deaths(world) == 0, "%llu false deaths", (unsigned long long)deaths(world));
    CHECK(by_link(world) == 0, "%llu ways by link, though datagrams pass", (unsigned long long)by_link(world));
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, 0, CHECKS_ONCE);
}

/* Variants: no business between the brokers, so no link when datagrams cease: 2 and 4 brokers. */
static bool datagrams_that_cease_where_no_link_is_are_no_death(struct run *run, struct world *world) {
    world_add_nodes(world, run->variant == 0 ? 2 : 4);
    world_start_all(world);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_run_ms(world, 90000); /* links of the start are closed as idle */
    block_all(world, true);
    world_run_ms(world, 300000);
    CHECK(deaths(world) == 0, "%llu false deaths", (unsigned long long)deaths(world));
    return run_settle(run, world, SETTLE_MS);
}

/* Variants: of a pair among 2, of a pair among 4, of one broker among 4: what it sends, what it should get. */
static bool datagrams_that_pass_one_way_are_enough(struct run *run, struct world *world) {
    if (!watched_brokers(run, world, run->variant == 0 ? 2 : 4)) return false;
    for (size_t other = 1; other < (run->variant < 2 ? 2 : world->node_count); other++)
        network_block(world->network, world->nodes[run->variant == 3 ? other : 0]->host,
                      world->nodes[run->variant == 3 ? 0 : other]->host, true);
    publish_for(world, 120000);
    CHECK(deaths(world) == 0, "%llu false deaths", (unsigned long long)deaths(world));
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, 0, CHECKS_ONCE);
}

/* Without datagrams a broker dies, returns under a new address, and is taken in again. */
static bool broker_comes_back_without_datagrams(struct run *run, struct world *world) {
    if (!watched_brokers(run, world, 3)) return false;
    block_all(world, true);
    world_run_ms(world, 20000);
    world_crash(world, 2, run->variant == 0 ? NETWORK_DOWN : NETWORK_DARK);
    world_run_ms(world, 20000);
    if (run->variant == 1) network_move_host(world->network, world->nodes[2]->host);
    world_start(world, 2);
    if (!run_settle(run, world, 45000)) return false; /* the longest back-off of a dial to an address, */
    world_run_ms(world, 11000);                       /* and of one to a member */
    uint64_t again_us = heap_now_us(world->heap);
    publish_for(world, 10000);
    return run_settle(run, world, 30000) && run_verify(run, world, again_us, CHECKS_ONCE);
}

/* Partitions too: only links can heal them. */
static bool partition_heals_without_datagrams(struct run *run, struct world *world) {
    static const bool sides[4] = {false, false, true, true};
    if (!watched_brokers(run, world, 4)) return false;
    block_all(world, true);
    publish_for(world, 20000);
    world_partition(world, sides);
    world_run_ms(world, 60000);
    network_heal(world->network);
    world_run_ms(world, 60000);
    uint64_t again_us = heap_now_us(world->heap);
    publish_for(world, 10000);
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, again_us, CHECKS_ONCE);
}

const struct scenario scenarios_datagrams[] = {
    {"brokers_without_datagrams_form_a_federation", brokers_without_datagrams_form_a_federation, 3, NULL},
    {"datagrams_that_cease_are_no_death", datagrams_that_cease_are_no_death, 2, NULL},
    {"datagrams_that_cease_where_no_link_is_are_no_death", datagrams_that_cease_where_no_link_is_are_no_death, 2, NULL},
    {"datagrams_that_pass_one_way_are_enough", datagrams_that_pass_one_way_are_enough, 4, NULL},
    {"broker_comes_back_without_datagrams", broker_comes_back_without_datagrams, 2, NULL},
    {"partition_heals_without_datagrams", partition_heals_without_datagrams, 1, NULL},
    {0},
};
