/* A network of gossips in memory, on a clock that the test sets. Loss, delay and cuts come from a seed. */
#ifndef TESTS_UNIT_GOSSIP_NET_H
#define TESTS_UNIT_GOSSIP_NET_H

#include "gossip_net_crypto.h"

#include "gossip/verbs.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef GOSSIP_NET_WITHOUT_CMOCKA
#include <cmocka.h>
#else /* a fuzz target */
#include <assert.h>
#define assert_true(condition) assert(condition)
#define assert_non_null(pointer) assert((pointer) != NULL)
#define fail_msg(...) abort()
#endif

#define NET_NODES_MAX 40

enum net_kind { NET_DATAGRAM, NET_LINK_PACKET, NET_LINK_DIAL };

struct net_packet {
    struct net_packet *next;
    enum net_kind kind;
    uint64_t at_ms, order;
    int from, to;
    struct gossip_address source; /* of a dial: where to, or family 0 if it was to a member */
    size_t size;
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
};

struct net_node {
    struct gossip *gossip; /* NULL: not running */
    /* Of one that does not run: what comes to it. */
    void (*puppet)(void *context, const struct net_packet *packet);
    void *puppet_context;
    struct net_identity identity;
    char name[64], token[1000];
    size_t token_size; /* 0: all of token's text */
    uint64_t epoch, seed;
    uint64_t epoch_before, again; /* starts in one epoch: never with the same seed */
    struct gossip_address address;
    struct gossip_key key;
    uint8_t ring[16]; /* kept, as its events said */
    size_t ring_size;
    const char *federation;
    bool announce_nothing; /* advertise family 0 */
    bool hidden;           /* no link can be dialled to it, as behind a NAT */
    struct gossip_limits limits;
    int bootstrap[4], bootstrap_count;
    bool seeks; /* by multicast, */
    int lan;    /* which reaches those with the same number */
    /* What its events said. */
    enum member_state sees[NET_NODES_MAX];
    uint64_t sees_since_ms[NET_NODES_MAX];
    uint64_t knows[NET_NODES_MAX];
    uint64_t event_count[GOSSIP_RING + 1];
    uint64_t down_events;
    char last_text[200];
    struct gossip_address cloned_from;
    uint64_t saved_epoch;
    /* Asked for again only once the node has been touched: to ask all at each step is most of the time of a long run.
     */
    bool deadline_known;
    uint64_t deadline_ms;
};

struct net {
    uint64_t now_ms, order, random;
    int count;
    struct net_node nodes[NET_NODES_MAX];
    uint32_t loss_percent, delay_min_ms, delay_max_ms;
    bool cut[NET_NODES_MAX][NET_NODES_MAX]; /* from, to: datagrams */
    /* Sees each datagram that is not cut off; true: it is lost. NULL: nobody looks. */
    bool (*loses)(struct net *net, int from, int to, const struct gossip_datagram *datagram);
    void *loses_context;
    /* Links, for tests that turn them on: ordered, without loss, dialled in a round trip. */
    bool links;
    bool link_cut[NET_NODES_MAX][NET_NODES_MAX]; /* between the two; set by net_cut_link() */
    bool link[NET_NODES_MAX][NET_NODES_MAX];     /* up, as this one sees it */
    uint64_t link_at_ms[NET_NODES_MAX][NET_NODES_MAX], link_used_ms[NET_NODES_MAX][NET_NODES_MAX];
    uint64_t link_kept_ms[NET_NODES_MAX][NET_NODES_MAX];
    uint64_t link_bytes_per_s; /* that each link passes, each way; 0: as many as come */
    uint64_t dials, link_packets, link_bytes;
    struct net_packet *packets;
    uint64_t trace; /* hash of every datagram, its time and its way */
    uint64_t sent, largest, multicast;
    uint64_t to[NET_NODES_MAX]; /* sent to each alone, also to one that does not run */
};

static inline uint64_t net_random(struct net *net) {
    net->random ^= net->random << 13;
    net->random ^= net->random >> 7;
    net->random ^= net->random << 17;
    return net->random;
}

static inline struct member_id net_id(const struct net *net, int node) {
    struct member_id id = {{0}};
    net_id_of(NULL, net->nodes[node].identity.public_key, &id);
    return id;
}

static inline int net_node_of(const struct net *net, const struct member_id *id) {
    for (int i = 0; i < net->count; i++) {
        struct member_id other = net_id(net, i);
        if (memcmp(&other, id, sizeof other) == 0) return i;
    }
    return -1;
}

static inline struct net *net_new(int count, uint64_t seed) {
    struct net *net = calloc(1, sizeof *net);
    net->count = count;
    net->random = seed * 2654435761u + 88172645463325252u;
    net->now_ms = 1000;
    net->delay_min_ms = 0;
    net->delay_max_ms = 1;
    for (int i = 0; i < NET_NODES_MAX; i++) { /* those beyond count never run, and can be forged */
        struct net_node *node = &net->nodes[i];
        node->identity.public_key[0] = 4;
        node->identity.public_key[1] = (uint8_t)(i + 1);
        for (size_t j = 2; j < GOSSIP_PUBLIC_KEY_SIZE; j++)
            node->identity.public_key[j] = (uint8_t)(j * 7 + (size_t)i);
        snprintf(node->name, sizeof node->name, "edge-%d", i + 1);
        snprintf(node->token, sizeof node->token, "edge-%d/%d", i + 1, i + 1);
        node->epoch = 1;
        node->limits.awake_max = i % 2 == 0 ? 0 : 1; /* at every second one members sleep whenever they can */
        node->seed = seed * 1000 + (uint64_t)i;
        node->federation = "home";
        node->address = (struct gossip_address){.family = 4, .ip = {10, 0, 0, (uint8_t)(i + 1)}, .port = 7100};
        memset(node->key.key, 0x5a, sizeof node->key.key);
        memcpy(node->key.id, "key1", 4);
        node->bootstrap[0] = 0;
        node->bootstrap_count = 1;
    }
    return net;
}

/* Two brokers with one key and one token. */
static inline void net_clone(struct net *net, int which, int of) {
    net->nodes[which].identity = net->nodes[of].identity;
    strcpy(net->nodes[which].token, net->nodes[of].token);
}

static inline void net_drain(struct net *net, int from);

static inline void net_start(struct net *net, int index) {
    struct net_node *node = &net->nodes[index];
    node->again = node->epoch == node->epoch_before ? node->again + 1 : 0;
    node->epoch_before = node->epoch;
    uint64_t again = node->again;
    struct gossip_options options = {
        .name = node->name,
        .federation = node->federation,
        .epoch = node->epoch,
        .seed = node->seed + node->epoch * 7919 + again * 15485863,
        .public_key = node->identity.public_key,
        .token = (const uint8_t *)node->token,
        .token_size = node->token_size ? node->token_size : strlen(node->token),
        .keys = &node->key,
        .key_count = 1,
        .limits = node->limits,
        .crypto = {&node->identity, net_seal, net_open, net_sha256, net_sign, net_verify, net_id_of, net_who_is,
                   net_read_ring},
    };
    struct gossip_ring ring = {0};
    if (node->ring_size > 0) {
        net_read_ring(NULL, node->ring, node->ring_size, &ring);
        options.keys = ring.keys;
        options.key_count = ring.key_count;
        options.ring = node->ring;
        options.ring_size = node->ring_size;
        options.ring_number = ring.number;
        memcpy(options.ring_digest, ring.digest, sizeof ring.digest);
    }
    if (!node->announce_nothing) options.advertise = node->address;
    for (int i = 0; i < NET_NODES_MAX; i++)
        node->sees[i] = MEMBER_UNVERIFIED;
    memset(node->knows, 0, sizeof node->knows);
    node->gossip = gossip_new(&options, net->now_ms);
    assert_non_null(node->gossip);
    struct gossip_address bootstrap[4];
    for (int i = 0; i < node->bootstrap_count; i++)
        bootstrap[i] = net->nodes[node->bootstrap[i]].address;
    gossip_set_bootstrap(node->gossip, net->now_ms, bootstrap, (size_t)node->bootstrap_count);
    const struct gossip_address group = {.family = 4, .ip = {239, 255, 71, 0}, .port = 7199};
    if (node->seeks) gossip_set_groups(node->gossip, net->now_ms, &group, 1, &node->address);
    net_drain(net, index);
}

static inline void net_touched(struct net *net, int index);

/* Both ends learn of it. */
static inline void net_link_set(struct net *net, int a, int b, bool up) {
    const int ends[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        int at = ends[i], other = ends[1 - i];
        if (net->link[at][other] == up) continue;
        net->link[at][other] = up;
        net->link_used_ms[at][other] = net->now_ms;
        if (!net->nodes[at].gossip) continue;
        struct member_id id = net_id(net, other);
        if (up)
            gossip_link_up(net->nodes[at].gossip, net->now_ms, &id);
        else
            gossip_link_down(net->nodes[at].gossip, net->now_ms, &id);
        net_touched(net, at);
    }
}

static inline void net_cut_link(struct net *net, int a, int b, bool cut) {
    net->link_cut[a][b] = net->link_cut[b][a] = cut;
    if (cut) net_link_set(net, a, b, false);
}

static inline void net_kill(struct net *net, int index) {
    gossip_free(net->nodes[index].gossip);
    net->nodes[index].gossip = NULL;
    for (int i = 0; i < net->count; i++)
        if (net->link[index][i] || net->link[i][index]) net_link_set(net, index, i, false);
}

static inline void net_free(struct net *net) {
    for (int i = 0; i < net->count; i++)
        if (net->nodes[i].gossip) net_kill(net, i);
    while (net->packets) {
        struct net_packet *packet = net->packets;
        net->packets = packet->next;
        free(packet);
    }
    free(net);
}

static inline void net_put_kind(struct net *net, enum net_kind kind, int from, int to,
                                const struct gossip_address *source, const uint8_t *bytes, size_t size) {
    uint64_t spread = net->delay_max_ms - net->delay_min_ms + 1;
    struct net_packet *packet = calloc(1, sizeof *packet), **place = &net->packets;
    packet->kind = kind;
    packet->at_ms = net->now_ms + net->delay_min_ms + net_random(net) % spread;
    if (kind == NET_LINK_PACKET) {
        if (packet->at_ms < net->link_at_ms[from][to]) packet->at_ms = net->link_at_ms[from][to];
        if (net->link_bytes_per_s > 0) packet->at_ms += size * 1000 / net->link_bytes_per_s;
        net->link_at_ms[from][to] = packet->at_ms;
    }
    packet->order = net->order++;
    packet->from = from;
    packet->to = to;
    packet->source = *source;
    packet->size = size;
    if (size > 0) memcpy(packet->bytes, bytes, size);
    while (*place && (*place)->at_ms <= packet->at_ms)
        place = &(*place)->next;
    packet->next = *place;
    *place = packet;
}

static inline void net_put(struct net *net, int from, int to, const struct gossip_address *source, const uint8_t *bytes,
                           size_t size) {
    net_put_kind(net, NET_DATAGRAM, from, to, source, bytes, size);
}

static inline void net_note_event(struct net *net, int index, const struct gossip_event *event) {
    struct net_node *node = &net->nodes[index];
    int about = net_node_of(net, &event->id);
    node->event_count[event->kind]++;
    if (event->text[0]) memcpy(node->last_text, event->text, sizeof node->last_text);
    if (event->kind == GOSSIP_EPOCH) node->saved_epoch = event->epoch;
    if (event->kind == GOSSIP_CLONED) node->cloned_from = event->address;
    if (event->kind == GOSSIP_RING) {
        const uint8_t *ring;
        gossip_ring_held(node->gossip, &ring, &node->ring_size);
        assert_true(node->ring_size <= sizeof node->ring);
        memcpy(node->ring, ring, node->ring_size);
    }
    if (about < 0) return;
    if (event->kind == GOSSIP_MEMBER) {
        node->sees[about] = event->state;
        node->sees_since_ms[about] = net->now_ms;
        node->down_events += event->state == MEMBER_DOWN;
    }
    if (event->kind == GOSSIP_KNOWS) node->knows[about] = event->sequence;
}

static inline bool net_address_equal(const struct gossip_address *a, const struct gossip_address *b) {
    return a->family == b->family && memcmp(a->ip, b->ip, 16) == 0 && a->port == b->port;
}

static inline void net_dial(struct net *net, int from, const struct gossip_link_wish *wish) {
    struct gossip_address nowhere = {0};
    int keep = wish->kind == GOSSIP_LINK_KEEP ? net_node_of(net, &wish->id) : -1;
    if (keep >= 0) net->link_kept_ms[from][keep] = net->now_ms + wish->for_ms;
    if (keep >= 0 && !net->link[from][keep]) {
        net->dials++;
        if (net->nodes[keep].hidden) return;
        net_put_kind(net, NET_LINK_DIAL, from, keep, &nowhere, NULL, 0);
    }
    for (int to = 0; wish->kind == GOSSIP_LINK_DIAL && to < net->count; to++) {
        if (!net_address_equal(&net->nodes[to].address, &wish->address)) continue;
        net->dials++;
        net_put_kind(net, NET_LINK_DIAL, from, to, &wish->address, NULL, 0);
    }
}

static inline void net_drain_links(struct net *net, int from) {
    struct net_node *node = &net->nodes[from];
    struct gossip_link_packet packet;
    struct gossip_link_wish wish;
    while (gossip_next_link_packet(node->gossip, &packet)) {
        int to = net_node_of(net, &packet.to);
        if (to < 0 || !net->link[from][to]) continue;
        net->trace = net_mix(net->trace ^ net->now_ms ^ (uint64_t)from << 40, packet.bytes, packet.size);
        net->link_packets++;
        net->link_bytes += packet.size;
        net->link_used_ms[from][to] = net->link_used_ms[to][from] = net->now_ms;
        net_put_kind(net, NET_LINK_PACKET, from, to, &node->address, packet.bytes, packet.size);
    }
    while (gossip_next_link_wish(node->gossip, &wish))
        if (net->links) net_dial(net, from, &wish);
    for (int to = 0; to < net->count; to++) {
        bool kept = net->link_kept_ms[from][to] > net->now_ms || net->link_kept_ms[to][from] > net->now_ms;
        if (net->link[from][to] && !kept && net->now_ms > net->link_used_ms[from][to] + 60000)
            net_link_set(net, from, to, false);
    }
}

/* What arrived by stream. */
static inline void net_arrive(struct net *net, const struct net_packet *packet) {
    struct gossip *gossip = net->nodes[packet->to].gossip;
    struct member_id from = net_id(net, packet->from), to = net_id(net, packet->to);
    if (packet->kind == NET_LINK_PACKET) {
        if (!net->link[packet->to][packet->from]) return;
        gossip_link_receive(gossip, net->now_ms, &from, packet->bytes, packet->size);
        net_touched(net, packet->to);
        return;
    }
    struct gossip *dialler = net->nodes[packet->from].gossip;
    if (!dialler || net->link_cut[packet->from][packet->to]) return;
    if (packet->source.family != 0) gossip_link_found(dialler, net->now_ms, &packet->source, &to);
    net_touched(net, packet->from);
    if (packet->from != packet->to) net_link_set(net, packet->from, packet->to, true);
}

static inline void net_drain(struct net *net, int from) {
    struct net_node *node = &net->nodes[from];
    struct gossip_datagram datagram;
    struct gossip_event event;
    if (members_fault(node->gossip)) fail_msg("%s", members_fault(node->gossip));
    while (gossip_next_datagram(node->gossip, &datagram)) {
        assert_true(datagram.size <= GOSSIP_DATAGRAM_MAX);
        net->trace = net_mix(net->trace ^ net->now_ms ^ (uint64_t)from << 32, datagram.bytes, datagram.size);
        net->sent++;
        net->largest = datagram.size > net->largest ? datagram.size : net->largest;
        for (int to = 0; to < net->count; to++) {
            struct gossip_address *address = &net->nodes[to].address;
            bool is_group = datagram.to.ip[0] == 239;
            bool reaches = is_group ? net->nodes[to].seeks && net->nodes[to].lan == node->lan
                                    : memcmp(address->ip, datagram.to.ip, 16) == 0 && address->port == datagram.to.port;
            if (!reaches || net->cut[from][to]) continue;
            if (net->loses && net->loses(net, from, to, &datagram)) continue;
            net->multicast += is_group;
            net->to[to] += !is_group;
            if (net_random(net) % 100 >= net->loss_percent)
                net_put(net, from, to, &node->address, datagram.bytes, datagram.size);
        }
    }
    while (gossip_next_event(node->gossip, &event))
        net_note_event(net, from, &event);
    net_drain_links(net, from);
}

static inline void net_forget_deadlines(struct net *net) {
    for (int i = 0; i < net->count; i++)
        net->nodes[i].deadline_known = false;
}

/* What came to the node, or was due at it, has been done. */
static inline void net_touched(struct net *net, int index) {
    net_drain(net, index);
    net->nodes[index].deadline_known = false;
}

/* The node with the first deadline before *next, or -1. */
static inline int net_first_due(struct net *net, uint64_t *next) {
    int due = -1;
    for (int i = 0; i < net->count; i++) {
        struct net_node *node = &net->nodes[i];
        if (!node->gossip) continue;
        if (!node->deadline_known) node->deadline_ms = gossip_deadline_ms(node->gossip);
        node->deadline_known = true;
        if (node->deadline_ms < *next) {
            *next = node->deadline_ms;
            due = i;
        }
    }
    return due;
}

static inline void net_turn(struct net *net, uint64_t until_ms) {
    uint64_t next = until_ms;
    int due = net_first_due(net, &next);
    struct net_packet *packet = net->packets;
    if (packet && packet->at_ms <= next) {
        net->packets = packet->next;
        net->now_ms = packet->at_ms > net->now_ms ? packet->at_ms : net->now_ms;
        if (net->nodes[packet->to].gossip && packet->kind != NET_DATAGRAM) {
            net_arrive(net, packet);
        } else if (net->nodes[packet->to].gossip) {
            gossip_receive(net->nodes[packet->to].gossip, net->now_ms, &packet->source, packet->bytes, packet->size);
            net_touched(net, packet->to);
        } else if (net->nodes[packet->to].puppet) {
            net->nodes[packet->to].puppet(net->nodes[packet->to].puppet_context, packet);
        }
        free(packet);
        return;
    }
    net->now_ms = next > net->now_ms ? next : net->now_ms;
    if (due >= 0) {
        for (int i = 0; i < 4 && gossip_deadline_ms(net->nodes[due].gossip) <= net->now_ms; i++)
            gossip_tick(net->nodes[due].gossip, net->now_ms);
        if (gossip_deadline_ms(net->nodes[due].gossip) <= net->now_ms)
            fail_msg("the deadline does not move: the loop would spin");
        net_touched(net, due);
    }
}

/* One step of what comes first, up to `until`. */
static inline void net_step(struct net *net, uint64_t until_ms) {
    net_forget_deadlines(net); /* the test may have done anything since the last one */
    net_turn(net, until_ms);
}

static inline void net_run(struct net *net, uint64_t ms) {
    uint64_t until = net->now_ms + ms;
    net_forget_deadlines(net);
    while (net->now_ms < until)
        net_turn(net, until);
}

/* Runs until the condition holds; false after ms. */
static inline bool net_until(struct net *net, bool (*holds)(struct net *net), uint64_t ms) {
    uint64_t until = net->now_ms + ms;
    net_forget_deadlines(net);
    while (net->now_ms < until) {
        if (holds(net)) return true;
        net_turn(net, until);
    }
    return holds(net);
}

static inline bool net_all_alive(struct net *net) {
    for (int i = 0; i < net->count; i++)
        for (int j = 0; j < net->count; j++)
            if (i != j && net->nodes[i].gossip && net->nodes[j].gossip && net->nodes[i].sees[j] != MEMBER_ALIVE)
                return false;
    return true;
}

static inline bool net_tables_equal(struct net *net) {
    int first = -1;
    for (int i = 0; i < net->count; i++) {
        if (!net->nodes[i].gossip) continue;
        if (first < 0) first = i;
        if (gossip_table_hash(net->nodes[i].gossip) != gossip_table_hash(net->nodes[first].gossip)) return false;
    }
    return true;
}

static inline bool net_agreed(struct net *net) {
    return net_all_alive(net) && net_tables_equal(net);
}

struct net_row_query {
    struct member_id owner;
    const char *filter;
    int found;
};
static inline bool net_match_row(void *context, const struct member_info *owner, enum gossip_row_kind kind,
                                 const char *filter, size_t size) {
    struct net_row_query *query = context;
    (void)kind;
    if (memcmp(&owner->id, &query->owner, sizeof owner->id) == 0 && strlen(query->filter) == size &&
        memcmp(filter, query->filter, size) == 0)
        query->found++;
    return true;
}

static inline bool net_has_row(struct net *net, int at, int owner, const char *filter) {
    struct net_row_query query = {net_id(net, owner), filter, 0};
    gossip_walk_rows(net->nodes[at].gossip, net->now_ms, net_match_row, &query);
    return query.found > 0;
}

static inline uint64_t net_row(struct net *net, int at, const char *filter, bool put) {
    struct gossip *gossip = net->nodes[at].gossip;
    uint64_t sequence = put ? gossip_row_put(gossip, net->now_ms, GOSSIP_NEWSUB, filter, strlen(filter))
                            : gossip_row_delete(gossip, net->now_ms, GOSSIP_NEWSUB, filter, strlen(filter));
    net_drain(net, at);
    return sequence;
}

static inline struct net *net_new_running(int count, uint64_t seed) {
    struct net *net = net_new(count, seed);
    for (int i = 0; i < count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 10000));
    return net;
}

#endif
