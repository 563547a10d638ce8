/* Many gossips at once: a network for joins of hundreds and thousands, in which a token has the size of a real one and
 * every datagram is counted where it goes. Datagrams take 1 to 3 ms, a node reads one each 0.05 ms, and what does not
 * fit into its socket's buffer meanwhile is lost. */
#ifndef TESTS_UNIT_GOSSIP_STORM_H
#define TESTS_UNIT_GOSSIP_STORM_H

#include "datagram_reader.h"

#include "gossip/message.h"
#include "gossip/seal.h"

#define STORM_TOKEN_SIZE 700u
#define STORM_BUFFER 300u /* datagrams: what Linux's 208 KiB hold */
#define STORM_READ_US 50u

struct storm_packet {
    uint64_t at_us, order;
    uint32_t from, to;
    size_t size;
    uint8_t *bytes;
};

struct storm_node {
    struct gossip *gossip;
    struct net_identity identity;
    struct gossip_address address;
    uint64_t due_ms; /* of the tick in the heap that counts */
    uint64_t busy_until_us;
    uint32_t waiting;
    uint32_t sees; /* others that it shows alive or suspect */
    uint8_t *seen;
    uint64_t bytes_in, bytes_out, packets_in, packets_out, dropped;
    uint64_t second, second_in, second_in_max; /* bytes that came in the present second, and in the worst */
    uint64_t full_ms;                          /* when it saw all; 0 not yet */
    struct said said;                          /* to it; messages by their kind, if storm->opens */
};

struct storm {
    uint64_t now_us, order;
    uint32_t count, seeds, expected; /* running */
    uint32_t full;                   /* nodes that see all expected others */
    uint64_t random;
    bool multicast;
    bool opens;                 /* every datagram, to count what it says */
    uint32_t eager_members_max; /* 0: the default */
    uint32_t seed_bytes_per_s;  /* that each seed may send; 0: the default */
    uint32_t loss_percent;
    struct storm_node *nodes;
    struct storm_packet *heap;
    size_t heap_count, heap_room;
};

/* ---- the agenda: packets, and ticks, which have no bytes ---- */

static inline bool storm_before(const struct storm_packet *a, const struct storm_packet *b) {
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static inline void storm_push(struct storm *storm, struct storm_packet packet) {
    packet.order = storm->order++;
    if (storm->heap_count == storm->heap_room) {
        storm->heap_room = storm->heap_room * 2 + 64;
        storm->heap = realloc(storm->heap, storm->heap_room * sizeof *storm->heap);
    }
    size_t at = storm->heap_count++;
    while (at > 0 && storm_before(&packet, &storm->heap[(at - 1) / 2])) {
        storm->heap[at] = storm->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    storm->heap[at] = packet;
}

static inline struct storm_packet storm_pop(struct storm *storm) {
    struct storm_packet first = storm->heap[0], last = storm->heap[--storm->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < storm->heap_count && storm_before(&storm->heap[child + 1], &storm->heap[child])) child++;
        if (child >= storm->heap_count || !storm_before(&storm->heap[child], &last)) break;
        storm->heap[at] = storm->heap[child];
        at = child;
    }
    if (storm->heap_count > 0) storm->heap[at] = last;
    return first;
}

/* ---- nodes ---- */

static inline void storm_who_is(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *token,
                                size_t token_size, struct gossip_who *who) {
    struct net_identity *identity = context;
    memset(who, 0, sizeof *who);
    identity->questions++;
    unsigned number = public_key[1] + 256u * public_key[2];
    if (token_size != STORM_TOKEN_SIZE || strtoul((const char *)token, NULL, 10) != number) return;
    who->allowed = true;
    who->valid_for_ms = UINT64_MAX;
    snprintf(who->name, sizeof who->name, "edge-%u", number);
}

static inline struct storm *storm_new(uint32_t count, uint32_t seeds, uint64_t seed) {
    struct storm *storm = calloc(1, sizeof *storm);
    storm->nodes = calloc(count, sizeof *storm->nodes);
    storm->count = count;
    storm->seeds = seeds;
    storm->random = seed * 2654435761u + 88172645463325252u;
    storm->now_us = 1000000;
    for (uint32_t i = 0; i < count; i++) {
        struct storm_node *node = &storm->nodes[i];
        node->address =
            (struct gossip_address){.family = 4, .ip = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}, .port = 7100};
        node->identity.public_key[0] = 4;
        node->identity.public_key[1] = (uint8_t)i;
        node->identity.public_key[2] = (uint8_t)(i >> 8);
        node->due_ms = UINT64_MAX;
        node->seen = calloc(count, 1);
    }
    return storm;
}

static inline uint32_t storm_random(struct storm *storm) {
    storm->random ^= storm->random << 13;
    storm->random ^= storm->random >> 7;
    storm->random ^= storm->random << 17;
    return (uint32_t)(storm->random >> 11);
}

static inline void storm_send(struct storm *storm, uint32_t from, uint32_t to, const struct gossip_datagram *datagram) {
    struct storm_packet packet = {.at_us = storm->now_us + 1000 + storm_random(storm) % 2000, .from = from, .to = to};
    if (storm_random(storm) % 100 < storm->loss_percent) return;
    packet.size = datagram->size;
    packet.bytes = malloc(datagram->size);
    memcpy(packet.bytes, datagram->bytes, datagram->size);
    storm_push(storm, packet);
}

static inline void storm_note(struct storm *storm, struct storm_node *node, const struct gossip_event *event) {
    if (event->kind != GOSSIP_MEMBER) return;
    unsigned long about = strtoul(event->name + 5, NULL, 10);
    bool sees = event->state == MEMBER_ALIVE || event->state == MEMBER_SUSPECT;
    bool was_full = node->sees + 1 == storm->expected;
    node->sees += (uint32_t)sees - node->seen[about];
    node->seen[about] = sees;
    bool is_full = node->sees + 1 == storm->expected;
    storm->full += (uint32_t)is_full - (uint32_t)was_full;
    if (is_full && node->full_ms == 0) node->full_ms = storm->now_us / 1000;
}

static inline void storm_drain(struct storm *storm, uint32_t index) {
    struct storm_node *node = &storm->nodes[index];
    struct gossip_datagram datagram;
    struct gossip_event event;
    while (gossip_next_datagram(node->gossip, &datagram)) {
        node->bytes_out += datagram.size + 28; /* with the headers of IP and UDP */
        node->packets_out++;
        if (datagram.to.ip[0] == 239) {
            for (uint32_t to = 0; to < storm->count; to++)
                if (to != index) storm_send(storm, index, to, &datagram);
        } else if (datagram.to.ip[0] == 10) {
            uint32_t to = datagram.to.ip[2] * 256u + datagram.to.ip[3];
            if (to < storm->count) storm_send(storm, index, to, &datagram);
        }
    }
    while (gossip_next_event(node->gossip, &event))
        storm_note(storm, node, &event);
    uint64_t due_ms = gossip_deadline_ms(node->gossip);
    if (due_ms == node->due_ms) return;
    node->due_ms = due_ms;
    if (due_ms != UINT64_MAX) storm_push(storm, (struct storm_packet){.at_us = due_ms * 1000, .to = index});
}

/* All that run are expected to see one another. */
static inline void storm_start(struct storm *storm, uint32_t index) {
    struct storm_node *node = &storm->nodes[index];
    char token[STORM_TOKEN_SIZE + 1];
    struct gossip_key key = {.id = "key1", .key = {0x5a}};
    snprintf(token, sizeof token, "%-700u", index);
    struct gossip_options options = {
        .name = "edge",
        .federation = "home",
        .epoch = 1,
        .seed = storm->random + index * 7919u,
        .advertise = node->address,
        .public_key = node->identity.public_key,
        .token = (const uint8_t *)token,
        .token_size = STORM_TOKEN_SIZE,
        .keys = &key,
        .key_count = 1,
        .crypto = {&node->identity, net_seal, net_open, net_sha256, net_sign, net_verify, net_id_of, storm_who_is,
                   net_read_ring},
    };
    char name[16];
    snprintf(name, sizeof name, "edge-%u", index);
    options.name = name;
    options.limits.members_max = 20000;
    options.limits.eager_members_max = storm->eager_members_max;
    if (index < storm->seeds) options.limits.datagram_bytes_per_s = storm->seed_bytes_per_s;
    node->gossip = gossip_new(&options, storm->now_us / 1000);
    struct gossip_address seeds[64];
    for (uint32_t i = 0; i < storm->seeds; i++)
        seeds[i] = storm->nodes[i].address;
    const struct gossip_address group = {.family = 4, .ip = {239, 255, 71, 17}, .port = 7117};
    gossip_set_bootstrap(node->gossip, storm->now_us / 1000, seeds, storm->seeds);
    if (storm->multicast) gossip_set_groups(node->gossip, storm->now_us / 1000, &group, 1, &node->address);
    storm_drain(storm, index);
}

static inline void storm_expect(struct storm *storm, uint32_t expected) {
    storm->expected = expected;
    storm->full = 0;
    for (uint32_t i = 0; i < storm->count; i++)
        storm->full += storm->nodes[i].gossip && storm->nodes[i].sees + 1 == expected;
}

/* What is not a message is counted as kind 0. */
static inline void storm_open(struct storm_node *node, const struct storm_packet *packet) {
    struct gossip_key key = {.id = "key1", .key = {0x5a}};
    node->said.count[0]++;
    node->said.bytes[0] += 28 + datagram_read(&key, packet->bytes, packet->size, &node->said);
}

static inline void storm_deliver(struct storm *storm, struct storm_packet *packet) {
    struct storm_node *node = &storm->nodes[packet->to];
    if (!node->gossip) return;
    uint64_t behind = node->busy_until_us > storm->now_us ? node->busy_until_us - storm->now_us : 0;
    if (behind / STORM_READ_US >= STORM_BUFFER) {
        node->dropped++;
        return;
    }
    node->busy_until_us = storm->now_us + behind + STORM_READ_US;
    node->bytes_in += packet->size + 28;
    node->packets_in++;
    if (node->second != storm->now_us / 1000000) node->second_in = 0;
    node->second = storm->now_us / 1000000;
    node->second_in += packet->size + 28;
    if (node->second_in > node->second_in_max) node->second_in_max = node->second_in;
    if (storm->opens) storm_open(node, packet);
    gossip_receive(node->gossip, storm->now_us / 1000, &storm->nodes[packet->from].address, packet->bytes,
                   packet->size);
    storm_drain(storm, packet->to);
}

static inline void storm_step(struct storm *storm) {
    struct storm_packet packet = storm_pop(storm);
    storm->now_us = packet.at_us > storm->now_us ? packet.at_us : storm->now_us;
    if (packet.bytes) {
        storm_deliver(storm, &packet);
        free(packet.bytes);
        return;
    }
    struct storm_node *node = &storm->nodes[packet.to];
    if (!node->gossip || node->due_ms != packet.at_us / 1000) return;
    node->due_ms = UINT64_MAX;
    gossip_tick(node->gossip, storm->now_us / 1000);
    storm_drain(storm, packet.to);
}

static inline bool storm_until_full(struct storm *storm, uint64_t ms) {
    uint64_t until = storm->now_us + ms * 1000;
    while (storm->heap_count > 0 && storm->heap[0].at_us <= until && storm->full < storm->expected)
        storm_step(storm);
    return storm->full == storm->expected;
}

static inline void storm_run(struct storm *storm, uint64_t ms) {
    uint64_t until = storm->now_us + ms * 1000;
    while (storm->heap_count > 0 && storm->heap[0].at_us <= until)
        storm_step(storm);
    storm->now_us = until;
}

static inline void storm_reset_counts(struct storm *storm) {
    for (uint32_t i = 0; i < storm->count; i++) {
        struct storm_node *node = &storm->nodes[i];
        node->bytes_in = node->bytes_out = node->packets_in = node->packets_out = node->dropped = 0;
        node->second_in = node->second_in_max = node->full_ms = 0;
        memset(&node->said, 0, sizeof node->said);
    }
}

/* The mean of nodes first to end - 1, and the worst second of any. */
static inline void storm_print(const struct storm *storm, const char *what, uint32_t first, uint32_t end) {
    double in = 0, out = 0, packets_in = 0, packets_out = 0, dropped = 0, questions = 0;
    uint64_t worst = 0, most = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct storm_node *node = &storm->nodes[i];
        in += (double)node->bytes_in;
        out += (double)node->bytes_out;
        packets_in += (double)node->packets_in;
        packets_out += (double)node->packets_out;
        dropped += (double)node->dropped;
        questions += (double)node->identity.questions;
        worst = node->second_in_max > worst ? node->second_in_max : worst;
        most = node->bytes_in > most ? node->bytes_in : most;
    }
    double n = end - first;
    printf("  %-8s in %8.0f kB %7.0f packets, out %8.0f kB %7.0f packets, worst second in %7.0f kB, most in %8.0f kB, "
           "lost %.0f, tokens judged %.0f\n",
           what, in / n / 1000, packets_in / n, out / n / 1000, packets_out / n, (double)worst / 1000,
           (double)most / 1000, dropped / n, questions / n);
}

/* What nodes first to end - 1 were told, by kind, in the mean. */
static inline void storm_print_kinds(const struct storm *storm, uint32_t first, uint32_t end) {
    for (uint32_t kind = 0; kind < READER_KINDS; kind++) {
        double count = 0, bytes = 0;
        for (uint32_t i = first; i < end; i++) {
            count += (double)storm->nodes[i].said.count[kind];
            bytes += (double)storm->nodes[i].said.bytes[kind];
        }
        if (count > 0) printf("    kind %2u: %8.1f, %8.0f B\n", kind, count / (end - first), bytes / (end - first));
    }
}

static inline void storm_free(struct storm *storm) {
    for (uint32_t i = 0; i < storm->count; i++) {
        gossip_free(storm->nodes[i].gossip);
        free(storm->nodes[i].seen);
    }
    for (size_t i = 0; i < storm->heap_count; i++)
        free(storm->heap[i].bytes);
    free(storm->heap);
    free(storm->nodes);
    free(storm);
}

#endif
