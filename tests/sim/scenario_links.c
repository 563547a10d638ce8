/* Links that break and paths that fail, while the brokers live: G5, G9, G10. */
#include "tests/sim/scenario.h"

#define SETTLE_MS 5000u

static bool watched_brokers(struct run *run, struct world *world, size_t count) {
    world_add_nodes(world, count);
    world_start_all(world);
    for (size_t node = 0; node < count; node++) {
        char id[64];
        snprintf(id, sizeof id, "watch-%zu", node + 1);
        sim_client_subscribe(
            world_add_client(world, &(struct sim_client_options){.id = id, .version = 5, .reconnects = true}, node),
            "load/#", 2);
    }
    return run_settle(run, world, SETTLE_MS);
}

static void publish_some(struct world *world, unsigned count, uint64_t every_ms, uint8_t qos_min) {
    static const char *const topics[] = {"load/a", "load/b/c", "load/d"};
    for (unsigned i = 0; i < count; i++) {
        uint8_t qos = (uint8_t)(qos_min + dice_below(&world->dice, 3u - qos_min));
        sim_client_publish(world->clients[dice_below(&world->dice, world->client_count)],
                           topics[dice_below(&world->dice, 3)], qos, false, 16 + dice_below(&world->dice, 400));
        world_run_ms(world, every_ms);
    }
}

/* Every 700 ms on average a link is cut, a hundred times, with messages on it. */
static bool qos_1_and_2_survive_flapping_links(struct run *run, struct world *world) {
    network_set_weather(world->network, &(struct network_weather){.delay_us = 10000, .jitter_us = 10000});
    if (!watched_brokers(run, world, 3)) return false;
    for (unsigned i = 0; i < 100; i++) {
        publish_some(world, 3, dice_below(&world->dice, 100), 1);
        size_t a = dice_below(&world->dice, 3), b = (a + 1 + dice_below(&world->dice, 2)) % 3;
        network_reset(world->network, world->nodes[a]->host, world->nodes[b]->host);
        world_run_ms(world, dice_below(&world->dice, 1000));
    }
    world_run_ms(world, 15000); /* longer than the longest back-off */
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, 0, CHECKS_ONCE);
}

static bool loss_of_twenty_percent_still_delivers(struct run *run, struct world *world) {
    network_set_weather(world->network, &(struct network_weather){.delay_us = 20000,
                                                                  .jitter_us = 30000,
                                                                  .loss_ppm = 200000,
                                                                  .duplicate_ppm = 20000,
                                                                  .late_ppm = 20000,
                                                                  .late_us = 300000});
    if (!watched_brokers(run, world, 3)) return false;
    publish_some(world, 60, 50, 0);
    world_run_ms(world, 15000);
    return run_settle(run, world, 10000) && run_verify(run, world, 0, CHECKS_ONCE);
}

static bool partition_heals_and_registry_agrees(struct run *run, struct world *world) {
    static const bool sides[5] = {false, false, true, true, true};
    static const uint64_t lengths_ms[4] = {1000, 10000, 120000, 600000};
    if (!watched_brokers(run, world, 5)) return false;
    publish_some(world, 10, 50, 0);
    world_run_ms(world, 2000);
    world_partition(world, sides);
    sim_client_subscribe(world->clients[0], "only/left", 1);
    sim_client_subscribe(world->clients[4], "only/right", 1);
    sim_client_unsubscribe(world->clients[1], "load/#");
    publish_some(world, 10, 50, 0);
    world_run_ms(world, lengths_ms[run->variant]);
    network_heal(world->network);
    uint64_t healed_us = heap_now_us(world->heap);
    if (!run_settle(run, world, 5000)) return false;
    world_run_ms(world, 11000); /* the longest back-off of a link */
    uint64_t again_us = heap_now_us(world->heap);
    sim_client_publish(world->clients[3], "only/left", 1, false, 16);
    sim_client_publish(world->clients[1], "only/right", 1, false, 16);
    publish_some(world, 20, 50, 0);
    world_run_ms(world, 6000);
    (void)healed_us;
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, again_us, CHECKS_ONCE);
}

/* G9: cut off from all others, a broker's clients do not notice. */
static bool broker_alone_serves_its_own_site(struct run *run, struct world *world) {
    static const bool sides[3] = {true, false, false};
    if (!watched_brokers(run, world, 3)) return false;
    world_partition(world, sides);
    for (unsigned i = 0; i < 40; i++) {
        struct sim_client *client = world_add_plain_client(world, "own", 0);
        size_t subscribed = sim_client_subscribe(client, "own/+", 1),
               sent = sim_client_publish(world->clients[0], "load/own", 2, false, 16);
        world_run_ms(world, 500);
        const struct journal_subscription *entry = &world->journal.subscriptions[subscribed];
        CHECK(entry->granted_us != JOURNAL_NEVER && entry->granted_us - entry->asked_us < 400 * HEAP_MS,
              "a SUBACK took too long without peers");
        CHECK(world->journal.publications[sent].acked_us != JOURNAL_NEVER &&
                  journal_copies(&world->journal, 0, sent, false) == 1,
              "a publication waited for absent peers");
        sim_client_disconnect(client);
    }
    network_heal(world->network);
    world_run_ms(world, 11000);
    uint64_t again_us = heap_now_us(world->heap);
    publish_some(world, 10, 50, 0);
    world_run_ms(world, 6000);
    char why[CHECKS_WHY];
    CHECK(checks_registry_agrees(world, why), "%s", why);
    CHECK(checks_delivery(world, again_us, CHECKS_ONCE, why) && checks_never(world, why), "%s", why);
    return true;
}

static uint64_t deaths(const struct world *world) {
    uint64_t sum = 0;
    for (size_t i = 0; i < world->node_count; i++) {
        struct gossip_counters counters;
        if (world->nodes[i]->node == NULL) continue;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        sum += counters.deaths;
    }
    return sum;
}

/* Indirect probes go around it. */
static bool one_way_cut_between_two_is_no_death(struct run *run, struct world *world) {
    if (!watched_brokers(run, world, 4)) return false;
    world_cut(world, 0, 1, true);
    world_run_ms(world, 60000);
    CHECK(deaths(world) == 0, "%llu false deaths", (unsigned long long)deaths(world));
    network_heal(world->network);
    world_run_ms(world, 11000);
    uint64_t again_us = heap_now_us(world->heap);
    publish_some(world, 20, 50, 0);
    world_run_ms(world, 6000);
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, again_us, CHECKS_ONCE);
}

static bool no_false_death_at_ten_percent_loss(struct run *run, struct world *world) {
    network_set_weather(world->network,
                        &(struct network_weather){.delay_us = 10000, .jitter_us = 20000, .loss_ppm = 100000});
    if (!watched_brokers(run, world, 5)) return false;
    world_run_ms(world, 3600u * 1000u);
    CHECK(deaths(world) == 0, "%llu false deaths in an hour", (unsigned long long)deaths(world));
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, 0, CHECKS_ONCE);
}

const struct scenario scenarios_links[] = {
    {"qos_1_and_2_survive_flapping_links", qos_1_and_2_survive_flapping_links, 1, NULL},
    {"loss_of_twenty_percent_still_delivers", loss_of_twenty_percent_still_delivers, 1, NULL},
    {"partition_heals_and_registry_agrees", partition_heals_and_registry_agrees, 4, NULL},
    {"broker_alone_serves_its_own_site", broker_alone_serves_its_own_site, 1, NULL},
    {"one_way_cut_between_two_is_no_death", one_way_cut_between_two_is_no_death, 1, NULL},
    {"no_false_death_at_ten_percent_loss", no_false_death_at_ten_percent_loss, 1, NULL},
    {0},
};
