#include "tests/sim/world.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOKEN_VALID_S (30 * 24 * 3600)
#define RESOLVE_US (5000u * HEAP_MS)
#define LOOK_MS 10u
#define LEAVE_LOOK_US (10u * HEAP_MS)

struct world *world_new(const struct world_options *options) {
    struct world *world = calloc(1, sizeof *world);
    assert(world != NULL);
    world->options = *options;
    world->heap = heap_new();
    world->network = network_new(world->heap, options->seed);
    if (world->options.commit_us_max == 0) world->options.commit_us_max = DEFAULT_COMMIT_US;
    dice_init(&world->dice, options->seed, "world");
    dice_init(&world->disk_dice, options->seed, "disk");
    trace_init(&world->trace, options->trace);
    journal_init(&world->journal);
    world->issuer = credentials_key(&world->dice);
    credentials_ring(&world->dice, &world->ring);
    return world;
}

static void stop(struct world_node *node, enum network_power power) {
    node_free(node->node);
    node->node = NULL;
    node->leaving = false;
    node->run++;
    node->connection_count = node->ready_count = 0;
    network_set_power(node->world->network, node->host, power);
}

void world_free(struct world *world) {
    if (world == NULL) return;
    for (size_t i = 0; i < world->node_count; i++) {
        struct world_node *node = world->nodes[i];
        node_free(node->node);
        world_disk_free(node);
        world_hostile_free(node);
        world_policies_free(node);
        auth_key_free(node->key);
        free(node->token);
        free(node->bootstrap);
        free(node->connections);
        free(node->ready);
        free(node->ready_is_link);
        free(node);
    }
    for (size_t i = 0; i < world->client_count; i++)
        sim_client_free(world->clients[i]);
    free(world->nodes);
    free(world->clients);
    heap_free(world->heap);
    network_free(world->network);
    journal_deinit(&world->journal);
    auth_key_free(world->issuer);
    free(world);
}

/* ---- brokers ---- */

struct world_node *world_add_node(struct world *world, const char *name) {
    struct world_node *node = calloc(1, sizeof *node);
    world->nodes = realloc(world->nodes, (world->node_count + 1) * sizeof(struct world_node *));
    assert(node != NULL && world->nodes != NULL);
    node->world = world;
    node->index = world->node_count;
    world->nodes[world->node_count++] = node;
    snprintf(node->name, sizeof node->name, "%s", name);
    node->key = credentials_key(&world->dice);
    node->ring = world->ring;
    node->federation = "simulation";
    node->gossip_limits = world->options.gossip_limits;
    node->disk = disk_new();
    struct network_ports ports = world_network_ports(node);
    node->host = network_add_host(world->network, &ports);
    network_set_power(world->network, node->host, NETWORK_DOWN);
    world_set_token(world, node->index, CREDENTIALS_GOOD);
    return node;
}

void world_add_nodes(struct world *world, size_t count) {
    size_t *all = calloc(count, sizeof *all);
    assert(all != NULL);
    for (size_t i = 0; i < count; i++) {
        char name[WORLD_NAME_MAX];
        snprintf(name, sizeof name, "edge-%zu", i + 1);
        all[i] = world_add_node(world, name)->index;
    }
    for (size_t i = 0; i < count; i++)
        world_know(world, all[i], all, count);
    free(all);
}

void world_know(struct world *world, size_t node, const size_t *peers, size_t count) {
    struct world_node *of = world->nodes[node];
    of->bootstrap = realloc(of->bootstrap, count * sizeof *peers + 1);
    assert(of->bootstrap != NULL);
    memcpy(of->bootstrap, peers, count * sizeof *peers);
    of->bootstrap_count = count;
}

void world_set_token(struct world *world, size_t node, enum credentials_fault fault) {
    struct world_node *of = world->nodes[node];
    free(of->token);
    of->token = credentials_token(&world->dice, world->issuer, of->name, of->key, world_node_wall_ms(of) / 1000,
                                  TOKEN_VALID_S, fault);
}

uint64_t world_node_now_ms(const struct world_node *node) {
    return node->clock_base_ms + heap_now_us(node->world->heap) / HEAP_MS;
}

int64_t world_node_wall_ms(const struct world_node *node) {
    return (int64_t)WORLD_WALL_S * 1000 + (int64_t)(heap_now_us(node->world->heap) / HEAP_MS) + node->wall_skew_ms;
}

/* ---- starting and stopping ---- */

struct node_event {
    struct event event;
    struct world_node *node;
    uint64_t run;
};

void world_push(struct world_node *node, uint64_t delay_us, void (*fire)(struct event *)) {
    struct node_event *event = calloc(1, sizeof *event);
    assert(event != NULL);
    event->event.fire = fire;
    event->node = node;
    event->run = node->run;
    heap_push(node->world->heap, &event->event, delay_us);
}

struct world_node *world_take(struct event *event) {
    struct node_event *of = (struct node_event *)event;
    uint64_t paused_us = network_paused_us(of->node->world->network, of->node->host);
    if (paused_us != 0 && of->run == of->node->run) {
        heap_push(of->node->world->heap, event, paused_us);
        return NULL;
    }
    struct world_node *node = of->run == of->node->run && of->node->node != NULL ? of->node : NULL;
    free(of);
    return node;
}

static void on_resolve_time(struct event *event) {
    struct world_node *node = world_take(event);
    if (node == NULL) return;
    struct gossip_address addresses[64];
    size_t count = node->bootstrap_count < 64 ? node->bootstrap_count : 64;
    for (size_t i = 0; i < count; i++)
        addresses[i] =
            network_address(node->world->network, node->world->nodes[node->bootstrap[i]]->host, WORLD_PEERS_PORT);
    gossip_set_bootstrap(node_gossip(node->node), world_node_now_ms(node), addresses, count);
    node_pump(node->node, world_node_now_ms(node));
    world_flush(node);
    world_push(node, RESOLVE_US, on_resolve_time);
}

void world_start(struct world *world, size_t index) {
    struct world_node *node = world->nodes[index];
    assert(node->node == NULL);
    network_set_power(world->network, node->host, NETWORK_UP);
    node->run++;
    node->started_us = heap_now_us(world->heap);
    assert(node->run <= WORLD_STARTS);
    node->starts_us[node->run - 1] = node->started_us;
    node->clock_base_ms = 1000 + dice_below(&world->dice, 1u << 30); /* monotonic clocks have nothing in common */
    node->armed_ms = UINT64_MAX;
    node->saved_epoch++;
    struct node_options options = {
        .name = node->name,
        .federation = node->federation,
        .key = node->key,
        .issuers = (const struct auth_key *const *)&world->issuer,
        .issuer_count = 1,
        .token = node->token,
        .token_size = strlen(node->token),
        .ring = &node->ring,
        .advertise = network_address(world->network, node->host, WORLD_PEERS_PORT),
        .epoch = node->saved_epoch,
        .durable = true,
        .policy = world_policy_of(node),
        .seed = dice_next(&world->dice),
        .broker_limits = world->options.broker_limits,
        .gossip_limits = node->gossip_limits,
        .ports = world_node_ports(node),
    };
    trace_line(&world->trace, heap_now_us(world->heap), node->name, "starts, epoch %" PRIu64, node->saved_epoch);
    node->node = node_new(&options, world_node_now_ms(node), world_node_wall_ms(node));
    assert(node->node != NULL);
    world_disk_restore(node);
    world_push(node, 0, on_resolve_time);
    if (node->hostility != NULL) world_hostile_start(node);
}

void world_start_all(struct world *world) {
    for (size_t i = 0; i < world->node_count; i++)
        world_start(world, i);
}

/* The subscriptions there ended with it: of clients whose sessions are not kept, or of all if the disk is lost. */
static void sessions_end(struct world_node *node, bool kept_too) {
    struct journal *journal = &node->world->journal;
    for (size_t i = 0; i < journal->subscription_count; i++) {
        struct journal_subscription *entry = &journal->subscriptions[i];
        if (!kept_too && sim_client_is_persistent(node->world->clients[entry->client])) continue;
        if (entry->broker_host == node->host && entry->granted_us != JOURNAL_NEVER && entry->ended_us == JOURNAL_NEVER)
            entry->ended_us = heap_now_us(node->world->heap);
    }
}

void world_crash(struct world *world, size_t index, enum network_power how) {
    struct world_node *node = world->nodes[index];
    if (node->node == NULL) return;
    trace_line(&world->trace, heap_now_us(world->heap), node->name, how == NETWORK_DARK ? "loses power" : "is killed");
    sessions_end(node, false);
    world_disk_crash(node);
    node->crashed_us = heap_now_us(world->heap);
    stop(node, how);
}

static void on_leave_look(struct event *event) {
    struct world_node *node = world_take(event);
    if (node == NULL) return;
    if (!node_left(node->node)) {
        world_push(node, LEAVE_LOOK_US, on_leave_look);
        return;
    }
    trace_line(&node->world->trace, heap_now_us(node->world->heap), node->name, "has left");
    world_disk_flush(node);
    stop(node, NETWORK_DOWN);
}

void world_leave(struct world *world, size_t index) {
    struct world_node *node = world->nodes[index];
    if (node->node == NULL || node->leaving) return;
    trace_line(&world->trace, heap_now_us(world->heap), node->name, "leaves");
    sessions_end(node, false);
    node->leaving = true;
    node_leave(node->node, world_node_now_ms(node));
    world_flush(node);
    world_push(node, LEAVE_LOOK_US, on_leave_look);
}

void world_lose_disk(struct world *world, size_t index) {
    struct world_node *node = world->nodes[index];
    assert(node->node == NULL);
    sessions_end(node, true);
    disk_free(node->disk);
    node->disk = disk_new();
    node->saved_epoch = 0;
    node->disk_losses++;
}

void world_pause(struct world *world, size_t index, uint64_t ms) {
    struct world_node *node = world->nodes[index];
    if (node->node == NULL || node->leaving) return;
    trace_line(&world->trace, heap_now_us(world->heap), node->name, "is paused for %" PRIu64 " ms", ms);
    network_pause(world->network, node->host, ms * HEAP_MS);
}

/* ---- clients ---- */

struct sim_client *world_add_client(struct world *world, const struct sim_client_options *options, size_t node) {
    world->clients = realloc(world->clients, (world->client_count + 1) * sizeof(struct sim_client *));
    assert(world->clients != NULL);
    struct sim_client *client =
        sim_client_new(world->heap, world->network, &world->trace, &world->journal, world->client_count, options);
    world->clients[world->client_count++] = client;
    sim_client_connect(client, world->nodes[node]->host);
    return client;
}

struct sim_client *world_add_plain_client(struct world *world, const char *id, size_t node) {
    return world_add_client(world, &(struct sim_client_options){.id = id, .version = 5}, node);
}

/* ---- faults of paths, and time ---- */

void world_partition(struct world *world, const bool *side) {
    for (size_t a = 0; a < world->node_count; a++)
        for (size_t b = 0; b < world->node_count; b++)
            network_cut(world->network, world->nodes[a]->host, world->nodes[b]->host, side[a] != side[b]);
    trace_line(&world->trace, heap_now_us(world->heap), "network", "is partitioned");
}

void world_cut(struct world *world, size_t from, size_t to, bool cut) {
    trace_line(&world->trace, heap_now_us(world->heap), "network", "%zu to %zu %s", from + 1, to + 1,
               cut ? "is cut" : "is whole");
    network_cut(world->network, world->nodes[from]->host, world->nodes[to]->host, cut);
}

void world_run_ms(struct world *world, uint64_t ms) {
    uint64_t until = heap_now_us(world->heap) + ms * HEAP_MS;
    while (heap_fired(world->heap) < WORLD_EVENTS_MAX && heap_step(world->heap, until))
        continue;
}

bool world_run_until(struct world *world, uint64_t max_ms, bool (*holds)(struct world *world, void *context),
                     void *context) {
    for (uint64_t waited = 0; !holds(world, context); waited += LOOK_MS) {
        if (waited >= max_ms) return false;
        world_run_ms(world, LOOK_MS);
    }
    return true;
}

uint64_t world_now_ms(const struct world *world) {
    return heap_now_us(world->heap) / HEAP_MS;
}

const struct world_log *world_log_of(const struct world_node *node, const char *event) {
    for (size_t i = 0; i < node->log_count; i++)
        if (strcmp(node->logs[i].event, event) == 0) return &node->logs[i];
    return NULL;
}
