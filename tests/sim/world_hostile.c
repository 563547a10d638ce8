/* Brokers that do harm: their attacks are those of tests/hostile, one round of each that runs every HOSTILE_ROUND_MS.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hostile/attacks.h"
#include "tests/sim/world.h"

#define ATTACKS_MAX 16u

struct world_hostility {
    struct hostile hostile;
    struct {
        uint64_t round, rounds;
    } attacks[ATTACKS_MAX]; /* by the number of their word */
};

static void send_at_once(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    struct world_node *node = context;
    network_datagram(node->world->network, node->host, WORLD_PEERS_PORT, to, bytes, size);
}

void world_make_hostile(struct world *world, size_t index) {
    struct world_node *node = world->nodes[index];
    assert(node->hostility == NULL && node->node == NULL);
    node->hostility = calloc(1, sizeof *node->hostility);
    assert(node->hostility != NULL);
    node->hostility->hostile.send = send_at_once;
    node->hostility->hostile.context = node;
    node->gossip_limits.datagram_bytes_per_s = 1u << 30;
    node->gossip_limits.datagrams_queued_max = 1u << 20;
}

void world_attack(struct world *world, size_t index, const char *word, uint64_t rounds) {
    struct world_node *node = world->nodes[index];
    size_t at = 0;
    for (const char *known; (known = hostile_word_at(at)) != NULL && strcmp(known, word) != 0; at++)
        continue;
    assert(node->hostility != NULL && hostile_word_at(at) != NULL && at < ATTACKS_MAX);
    trace_line(&world->trace, heap_now_us(world->heap), node->name, "attacks: %s, %" PRIu64 " rounds", word, rounds);
    node->hostility->attacks[at].rounds = node->hostility->attacks[at].round + rounds;
}

void world_desist(struct world *world, size_t index) {
    struct world_hostility *hostility = world->nodes[index]->hostility;
    for (size_t i = 0; i < ATTACKS_MAX; i++)
        hostility->attacks[i].rounds = hostility->attacks[i].round;
}

bool world_attacks(const struct world_node *node) {
    for (size_t i = 0; node->hostility != NULL && i < ATTACKS_MAX; i++)
        if (node->hostility->attacks[i].round < node->hostility->attacks[i].rounds) return true;
    return false;
}

static void on_round(struct event *event) {
    struct world_node *node = world_take(event);
    if (node == NULL) return;
    struct world_hostility *hostility = node->hostility;
    hostility->hostile.gossip = node_gossip(node->node);
    node_tick(node->node, world_node_now_ms(node)); /* so that its core knows the time */
    for (size_t i = 0; i < ATTACKS_MAX; i++)
        if (hostility->attacks[i].round < hostility->attacks[i].rounds)
            hostile_attack_named(hostile_word_at(i))(&hostility->hostile, hostility->attacks[i].round++);
    node_pump(node->node, world_node_now_ms(node));
    world_flush(node);
    world_push(node, HOSTILE_ROUND_MS * HEAP_MS, on_round);
}

void world_hostile_start(struct world_node *node) {
    world_push(node, HOSTILE_ROUND_MS * HEAP_MS, on_round);
}

void world_hostile_hear(struct world_node *node, const struct gossip_address *from, const uint8_t *bytes, size_t size) {
    hostile_hear(&node->hostility->hostile, from, bytes, size);
}

void world_hostile_free(struct world_node *node) {
    free(node->hostility);
}
