/* The seam between the simulated world and the protocol under test. A strategy is what one broker runs: Hobnob's own
 * gossip core, or another system's published rules on the same network, so that figures can be compared.
 *
 * The world gives datagrams, frames and time, and after each call fetches, until they return false, next_datagram,
 * next_frame and next_event. Nothing may call back. Time is the broker's own monotonic clock. The same options and
 * calls must give the same answers (order must not depend on where memory lies).
 */
#ifndef SIMULATE_STRATEGY_H
#define SIMULATE_STRATEGY_H

#include "gossip/gossip.h"
#include "gossip/inspect.h"

/* A message on a reliable, ordered channel between two brokers (TCP; a link): no size limit, sent again until it is
 * there. It is lost only with the channel: when a broker ends, or when the path stays cut for longer than a few
 * seconds. */
struct strategy_frame {
    struct gossip_address to; /* a channel is opened when there is none */
    const uint8_t *bytes;     /* borrowed until the next call of any function of this instance */
    size_t size;
};

struct strategy {
    const char *name;
    const char *about; /* a line for --help */

    /* What all brokers of a run share, so that a model of many need not hold alike things many times: given to create.
     * NULL: nothing. */
    void *(*common_new)(void);
    void (*common_free)(void *common);

    /* A broker starts. Options are valid during the call, except for the context of the crypto, which outlives the
     * instance. NULL when memory is short. */
    void *(*create)(const struct gossip_options *options, void *common, uint64_t now_ms);
    void (*destroy)(void *node); /* it crashes: no last words */
    void (*set_bootstrap)(void *node, uint64_t now_ms, const struct gossip_address *addresses, size_t count);

    void (*receive)(void *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes, size_t size);
    uint64_t (*deadline_ms)(const void *node);
    void (*tick)(void *node, uint64_t now_ms);
    bool (*next_datagram)(void *node, struct gossip_datagram *datagram);

    /* NULL when the strategy has no use for channels. */
    void (*receive_frame)(void *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes,
                          size_t size);
    bool (*next_frame)(void *node, struct strategy_frame *frame);

    /* GOSSIP_MEMBER for alive, suspect, down and left; GOSSIP_ROW for rows that come and go; GOSSIP_EPOCH to be kept
     * on disk. Ids are those of the crypto's id_of. */
    bool (*next_event)(void *node, struct gossip_event *event);

    void (*row)(void *node, uint64_t now_ms, enum gossip_row_kind kind, const char *filter, size_t size, bool put);
    void (*leave)(void *node, uint64_t now_ms);
    bool (*left)(const void *node);

    /* Equal tables (who is here, and all their rows) have equal hashes. */
    uint64_t (*table_hash)(const void *node);
    void (*read_counters)(const void *node, struct gossip_counters *out);

    /* Hobnob's own core, for the invariants; NULL: they are not checked. */
    struct gossip *(*core)(void *node);
};

extern const struct strategy strategy_hobnob;
extern const struct strategy strategy_memberlist, strategy_memberlist_joining; /* memberlist_inside.h */

/* By name; NULL for none. */
const struct strategy *strategy_find(const char *name);
/* The i-th; NULL past the end. */
const struct strategy *strategy_at(size_t index);

#endif
