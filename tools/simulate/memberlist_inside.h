/* memberlist's published rules as a strategy of the simulator: HashiCorp's library as its documentation and defaults
 * (DefaultLANConfig) describe it, written anew, so that the same network shows the same figures for both.
 *
 *   memberlist.c         the seam: time, datagrams, frames
 *   memberlist_state.c   alive, suspect, dead; refutation; suspicion with Lifeguard's confirmations
 *   memberlist_probe.c   direct, indirect and TCP probes; awareness
 *   memberlist_queue.c   the transmit-limited queue: each message 4 ceil(log10(N + 1)) times, blindly
 *   memberlist_sync.c    the whole state over TCP with one other each 30 s, more seldom with many; Join
 *   memberlist_common.c  names and rows, held once for all brokers of a run
 *
 * Rows are carried as its users do: each change is a user message in the same queue behind those of the members, and
 * all rows travel with each push/pull. Messages have the sizes that its encoding gives them (msgpack maps with the
 * names of the fields, 29 bytes of encryption a packet), but hold only what the model needs. Two things differ: packets
 * have our 1,200 bytes and not 1,400, and a broker that knows nobody calls Join again every 30 s.
 */
#ifndef SIMULATE_MEMBERLIST_INSIDE_H
#define SIMULATE_MEMBERLIST_INSIDE_H

#include "tools/simulate/strategy.h"

enum {
    PROBE_INTERVAL_MS = 1000,
    PROBE_TIMEOUT_MS = 500,
    INDIRECT_CHECKS = 3,
    GOSSIP_INTERVAL_MS = 200,
    GOSSIP_NODES = 3,
    GOSSIP_TO_THE_DEAD_MS = 30000,
    RETRANSMIT_MULT = 4,
    SUSPICION_MULT = 4,
    SUSPICION_MAX_TIMEOUT_MULT = 6,
    AWARENESS_MAX_MULTIPLIER = 8,
    PUSH_PULL_INTERVAL_MS = 30000,
    PUSH_PULL_SCALE_FROM = 32, /* members: above, the interval grows with their logarithm */
    LEAVE_MS = 5000,
    TIERS_MAX = 32,
    RELAYS = 128,
    CONFIRMATIONS_MAX = 8
};

/* ---- memberlist_common.c: what is true, by number ---- */

struct row_op {
    enum gossip_row_kind kind;
    bool put;
    uint16_t size;
    uint32_t earlier, later; /* operation + 1 on the same row, 0 for none */
    uint32_t live_bytes;     /* of all rows there are after it */
    uint64_t hash;
    const char *filter;
};
struct owner {
    char name[GOSSIP_NAME_MAX + 1];
    struct member_id id;
    struct gossip_address address;
    struct row_op *ops;
    size_t op_count, op_room;
};
struct memberlist_common {
    struct owner *owners;
    size_t count, room;
    uint32_t *by_id; /* hash table: owner + 1 */
    size_t slots;
};
void *memberlist_common_new(void);
void memberlist_common_free(void *common);
uint32_t common_owner(struct memberlist_common *common, const struct gossip_options *options);
uint32_t common_add_op(struct memberlist_common *common, uint32_t owner, enum gossip_row_kind kind, const char *filter,
                       size_t size, bool put);

/* ---- one broker ---- */

enum ml_state { ML_UNKNOWN, ML_ALIVE, ML_SUSPECT, ML_DEAD, ML_LEFT };

/* What a broker knows of another. Of its rows: the first `ops` operations, and of the 32 behind those that are set. */
struct known {
    uint32_t incarnation, changed_ms, ops, window;
    uint32_t rows_hash;
    uint8_t state;
};

enum ml_message {
    ML_PING,
    ML_INDIRECT,
    ML_ACK,
    ML_NACK,
    ML_MSG_ALIVE,
    ML_MSG_SUSPECT,
    ML_MSG_DEAD,
    ML_MSG_ROW,
    ML_PUSH_PULL,
    ML_PULL,
    ML_TCP_PING,
    ML_TCP_ACK
};
struct message_of {
    uint8_t type;
    uint16_t size;               /* on the wire */
    uint32_t who, number, other; /* whom it is about; sequence, incarnation or operation; who says so, or the first
                                    sequence */
};

struct broadcast {
    uint8_t type;
    uint32_t who, number, from;
};
struct tier {
    struct broadcast *items;
    size_t count, room;
};
struct queue {
    struct tier tiers[TIERS_MAX]; /* by how often it was sent */
    size_t count;
};

struct suspicion_of {
    uint32_t who, k, confirmed;
    uint32_t from[CONFIRMATIONS_MAX];
    uint64_t start_ms, deadline_ms;
};

struct relay_of {
    uint32_t number, origin, origin_number;
    uint64_t nack_ms; /* UINT64_MAX: said, or free */
};

struct out_frame {
    struct gossip_address to;
    uint8_t *bytes;
    size_t size;
};

struct ml {
    struct memberlist_common *common;
    uint32_t self, joins_always;
    uint64_t now_ms, random;
    struct known *known;
    size_t known_count;
    uint32_t *order; /* members, the dead too for a while; ourselves */
    size_t order_count, order_room, probe_at;
    uint64_t rows_hash, members_hash; /* of all visible ones */
    uint32_t awareness, sequence;
    uint64_t gossip_ms, next_probe_ms, next_sync_ms;
    struct {
        bool active, indirect, contacted;
        uint32_t who, number, expected_nacks, nacks;
        uint64_t timeout_ms, deadline_ms;
    } probe;
    struct relay_of relays[RELAYS];
    uint32_t next_relay;
    uint64_t relay_ms; /* none says NACK before */
    struct suspicion_of *suspicions;
    size_t suspicion_count, suspicion_room;
    struct queue members_queue, rows_queue;
    bool leaving;
    uint64_t leave_ms;
    struct gossip_datagram *datagrams;
    size_t datagram_count, datagram_room, datagram_taken;
    struct out_frame *frames;
    size_t frame_count, frame_room, frame_taken;
    uint8_t *frame_given;
    struct gossip_event *events;
    size_t event_count, event_room, event_taken;
    struct gossip_counters counters;
};

static inline uint64_t ml_random(struct ml *ml) { /* splitmix64 */
    uint64_t z = ml->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static inline uint32_t ml_below(struct ml *ml, size_t bound) {
    return bound == 0 ? 0 : (uint32_t)((ml_random(ml) >> 11) % bound);
}
struct known *ml_known(struct ml *ml, uint32_t who);
/* Up to want random others of these states (bits), the dead only for a while. */
size_t ml_pick(struct ml *ml, uint32_t *out, size_t want, uint32_t states, uint32_t but);

/* memberlist.c: packets */
struct ml_packet {
    struct gossip_datagram datagram;
    size_t wire; /* bytes so far, as they would be */
};
void packet_start(struct ml_packet *packet);
bool packet_fits(const struct ml_packet *packet, size_t size);
void packet_put(struct ml_packet *packet, const struct message_of *message);
/* With what is to be told, as far as there is room. */
void packet_send(struct ml *ml, struct ml_packet *packet, uint32_t to);
void send_message(struct ml *ml, uint32_t to, uint8_t type, uint32_t who, uint32_t number, uint32_t other);
void ml_send_frame(struct ml *ml, const struct gossip_address *to, uint8_t *bytes, size_t size);
uint16_t message_size(const struct ml *ml, uint8_t type, uint32_t who, uint32_t number, uint32_t other);
void ml_event(struct ml *ml, uint32_t who, enum member_state state);

/* memberlist_queue.c */
void queue_add(struct ml *ml, struct queue *queue, uint8_t type, uint32_t who, uint32_t number, uint32_t from);
void queue_fill(struct ml *ml, struct queue *queue, struct ml_packet *packet);
void queue_free(struct queue *queue);

/* memberlist_state.c */
void state_alive(struct ml *ml, uint32_t who, uint32_t incarnation);
void state_suspect(struct ml *ml, uint32_t who, uint32_t incarnation, uint32_t from);
void state_dead(struct ml *ml, uint32_t who, uint32_t incarnation, uint32_t from);
void state_tick(struct ml *ml);
uint64_t state_deadline_ms(const struct ml *ml);
void awareness_add(struct ml *ml, int delta);
/* The rows of the owner as far as we know: this operation too. */
void rows_learn(struct ml *ml, uint32_t owner, uint32_t op);
void rows_learn_all(struct ml *ml, uint32_t owner, uint32_t ops, uint32_t window);

/* memberlist_probe.c */
void probe_on_message(struct ml *ml, const struct message_of *message);
void probe_on_tcp_ack(struct ml *ml, uint32_t number);
void ml_probe_tick(struct ml *ml);
uint64_t ml_probe_deadline_ms(const struct ml *ml);

/* memberlist_sync.c */
void sync_with(struct ml *ml, const struct gossip_address *to, uint8_t type);
void sync_on_frame(struct ml *ml, const struct gossip_address *from, const uint8_t *bytes, size_t size);
void sync_tick(struct ml *ml);

#endif
