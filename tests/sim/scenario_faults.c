/* Brokers that die, come back, move and leave: G10. */
#include "tests/sim/scenario.h"

#include <string.h>

#define SETTLE_MS 5000u
#define CLIENT_NOTICES_MS 1200u /* that its broker lost power: a ping goes unanswered */

static bool watched_brokers(struct run *run, struct world *world, size_t count) {
    world_add_nodes(world, count);
    world_start_all(world);
    for (size_t node = 0; node < count; node++) {
        char id[64];
        snprintf(id, sizeof id, "watch-%zu", node + 1);
        sim_client_subscribe(
            world_add_client(
                world, &(struct sim_client_options){.id = id, .version = 5, .keep_alive_s = 1, .reconnects = true},
                node),
            "load/#", 2);
    }
    return run_settle(run, world, SETTLE_MS);
}

/* One publication by every client, which must reach every client. */
static bool all_is_well(struct run *run, struct world *world, uint64_t settle_ms) {
    uint64_t began_ms = world_now_ms(world);
    if (!run_settle(run, world, settle_ms)) return false;
    world_run_ms(world, CLIENT_NOTICES_MS); /* then all are idle in truth */
    settle_ms += CLIENT_NOTICES_MS - (world_now_ms(world) - began_ms);
    if (!run_settle(run, world, settle_ms)) return false;
    uint64_t from_us = heap_now_us(world->heap);
    for (size_t i = 0; i < world->client_count; i++)
        sim_client_publish(world->clients[i], "load/well", (uint8_t)(i % 3), false, 32);
    world_run_ms(world, 2000);
    return run_verify(run, world, from_us, CHECKS_ONCE);
}

/* Variants: killed or without power; back with its epoch or without; always knowing one peer only. */
static bool crash_and_restart_with_one_bootstrap_peer(struct run *run, struct world *world) {
    enum network_power how = run->variant & 1 ? NETWORK_DARK : NETWORK_DOWN;
    size_t peer = 2;
    if (!watched_brokers(run, world, 3)) return false;
    sim_client_publish(world->clients[1], "load/before", 0, false, 16);
    world_run_ms(world, 500);
    world_crash(world, 1, how);
    for (unsigned i = 0; i < 20; i++) {
        size_t number = sim_client_publish(world->clients[i % 2 * 2], "load/without", 1, false, 16);
        world_run_ms(world, 250);
        CHECK(journal_copies(&world->journal, 0, number, false) == 1 &&
                  journal_copies(&world->journal, 2, number, false) == 1,
              "publication %u between the other two did not arrive within 250 ms", i);
    }
    if (run->variant & 2) world->nodes[1]->saved_epoch = 0;
    world_know(world, 1, &peer, 1);
    world_start(world, 1);
    return all_is_well(run, world, 5000);
}

/* Back before anybody has missed it. */
static bool quick_restart_is_noticed(struct run *run, struct world *world) {
    if (!watched_brokers(run, world, 3)) return false;
    for (unsigned i = 0; i < 5; i++) {
        world_crash(world, i % 3, NETWORK_DOWN);
        world_run_ms(world, 20 + 100 * i);
        if (i == 3) world->nodes[i % 3]->saved_epoch = 0;
        world_start(world, i % 3);
        if (!all_is_well(run, world, 5000)) return false;
    }
    return true;
}

static bool all_restart_in_any_order(struct run *run, struct world *world) {
    const size_t *order = run_order(run->variant);
    if (!watched_brokers(run, world, 3)) return false;
    for (size_t i = 0; i < 3; i++)
        world_crash(world, i, run->variant & 1 ? NETWORK_DARK : NETWORK_DOWN);
    world_run_ms(world, 10000);
    for (size_t i = 0; i < 3; i++) {
        world_start(world, order[i]);
        world_run_ms(world, 500);
    }
    return all_is_well(run, world, 5000);
}

/* All bootstrap peers of edge-3 are down when it starts, and come back much later. */
static bool bootstrap_peers_are_tried_for_ever(struct run *run, struct world *world) {
    world_add_nodes(world, 3);
    world_start(world, 2);
    sim_client_subscribe(
        world_add_client(world, &(struct sim_client_options){.id = "waits", .version = 5, .reconnects = true}, 2),
        "load/#", 1);
    world_run_ms(world, 3600u * 1000u);
    size_t none = 0;
    world_know(world, 0, &none, 0); /* only edge-3 can find them */
    world_know(world, 1, &none, 0);
    world_start(world, 0);
    world_start(world, 1);
    sim_client_subscribe(world_add_plain_client(world, "other", 0), "load/#", 1);
    return all_is_well(run, world, 10000);
}

static bool restart_under_a_new_address(struct run *run, struct world *world) {
    if (!watched_brokers(run, world, 3)) return false;
    size_t peer = 0;
    world_crash(world, 2, run->variant == 0 ? NETWORK_DOWN : NETWORK_DARK);
    world_run_ms(world, run->variant == 0 ? 100 : 30000);
    network_move_host(world->network, world->nodes[2]->host);
    world_know(world, 2, &peer, 1);
    world_start(world, 2);
    return all_is_well(run, world, 5000);
}

static bool leaving_is_known_at_once(struct run *run, struct world *world) {
    if (!watched_brokers(run, world, 4)) return false;
    sim_client_drop(world->clients[3]);
    world_leave(world, 3);
    world_run_ms(world, 1000);
    CHECK(world->nodes[3]->node == NULL, "edge-4 has not left after 1 s");
    char why[CHECKS_WHY];
    CHECK(checks_registry_agrees(world, why), "%s", why);
    for (size_t i = 0; i < 3; i++) {
        struct gossip_counters counters;
        gossip_read_counters(node_gossip(world->nodes[i]->node), &counters);
        CHECK(counters.deaths == 0 && counters.suspicions == 0, "leaving looked like a death to %s",
              world->nodes[i]->name);
    }
    world_run_ms(world, 5000);
    world_start(world, 3);
    sim_client_connect(world->clients[3], world->nodes[3]->host);
    return all_is_well(run, world, 5000);
}

/* Variants: shorter than a suspicion, longer than a death, minutes. */
static bool paused_broker_condemns_nobody_and_comes_back(struct run *run, struct world *world) {
    static const uint64_t lengths_ms[] = {1000, 10000, 300000};
    if (!watched_brokers(run, world, 4)) return false;
    sim_client_drop(world->clients[3]); /* it would only wait */
    world_pause(world, 3, lengths_ms[run->variant]);
    world_run_ms(world, lengths_ms[run->variant] + 10);
    struct gossip_counters counters;
    world_run_ms(world, 1000);
    gossip_read_counters(node_gossip(world->nodes[3]->node), &counters);
    CHECK(counters.deaths == 0, "the paused broker declared %llu others dead", (unsigned long long)counters.deaths);
    sim_client_connect(world->clients[3], world->nodes[3]->host);
    return all_is_well(run, world, 5000);
}

/* Wall clocks serve tokens and stamps only; tokens are good for 30 days here. */
static bool wall_clock_jumps_disturb_nothing(struct run *run, struct world *world) {
    static const int64_t jumps_s[] = {3600, -7200, 86400, -86400};
    if (!watched_brokers(run, world, 3)) return false;
    for (size_t i = 0; i < 4; i++) {
        world->nodes[i % 3]->wall_skew_ms += jumps_s[i] * 1000;
        world_run_ms(world, 5000);
        if (!all_is_well(run, world, 5000)) return false;
        world_crash(world, i % 3, NETWORK_DOWN); /* comes back with the wrong time */
        world_start(world, i % 3);
        if (!all_is_well(run, world, 5000)) return false;
    }
    return true;
}

struct death {
    size_t node;
};

static bool is_noticed(struct world *world, void *context) {
    const struct death *death = context;
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    struct member_id id;
    auth_key_thumbprint(world->nodes[death->node]->key, thumbprint);
    memcpy(id.bytes, thumbprint, sizeof id.bytes);
    for (size_t i = 0; i < world->node_count; i++) {
        struct member_info info;
        if (world->nodes[i]->node == NULL) continue;
        if (!gossip_member_find(node_gossip(world->nodes[i]->node), world_node_now_ms(world->nodes[i]), &id, &info))
            return false;
        if (info.state != MEMBER_DOWN) return false;
    }
    return true;
}

/* Section 9: within 3 s at default settings. */
static bool death_is_noticed_in_three_seconds(struct run *run, struct world *world) {
    static const size_t counts[] = {3, 5, 10};
    size_t count = counts[run->variant];
    world_add_nodes(world, count);
    world_start_all(world);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (size_t i = 0; i < 5; i++) {
        struct death death = {.node = (size_t)dice_below(&world->dice, count)};
        world_run_ms(world, dice_below(&world->dice, 1000));
        world_crash(world, death.node, i % 2 == 0 ? NETWORK_DARK : NETWORK_DOWN);
        uint64_t died_ms = world_now_ms(world);
        CHECK(world_run_until(world, 10000, is_noticed, &death), "the death of edge-%zu is not noticed in 10 s",
              death.node + 1);
        uint64_t took_ms = world_now_ms(world) - died_ms;
        CHECK(took_ms <= 3000, "the death of edge-%zu of %zu is noticed by all after %llu ms", death.node + 1, count,
              (unsigned long long)took_ms);
        world_start(world, death.node);
        if (!run_settle(run, world, SETTLE_MS)) return false;
    }
    return true;
}

const struct scenario scenarios_faults[] = {
    {"crash_and_restart_with_one_bootstrap_peer", crash_and_restart_with_one_bootstrap_peer, 4, NULL},
    {"quick_restart_is_noticed", quick_restart_is_noticed, 1, NULL},
    {"all_restart_in_any_order", all_restart_in_any_order, 6, NULL},
    {"bootstrap_peers_are_tried_for_ever", bootstrap_peers_are_tried_for_ever, 1, NULL},
    {"restart_under_a_new_address", restart_under_a_new_address, 2, NULL},
    {"leaving_is_known_at_once", leaving_is_known_at_once, 1, NULL},
    {"paused_broker_condemns_nobody_and_comes_back", paused_broker_condemns_nobody_and_comes_back, 3, NULL},
    {"wall_clock_jumps_disturb_nothing", wall_clock_jumps_disturb_nothing, 1, NULL},
    {"death_is_noticed_in_three_seconds", death_is_noticed_in_three_seconds, 3, NULL},
    {0},
};
