/* What a gossip holds, for checks: read only, and nothing that a daemon needs. The simulator compares it with the truth
 * after every event, and measures by it. Nothing here changes the gossip, asks its ports or allocates.
 */
#ifndef GOSSIP_INSPECT_H
#define GOSSIP_INSPECT_H

#include "gossip/gossip.h"

/* One member as it is held, hidden ones too. Of ourselves as well: then self is set. */
struct gossip_inspected {
    struct member_id id;
    enum member_state state;
    bool self;
    bool known;                    /* its key and token were checked, and the token is still valid */
    bool visible;                  /* its rows are shown: alive or suspect, and known. Never ourselves */
    struct gossip_address address; /* where it is sent to; family 0: nowhere yet */
    /* The newest evidence of each sort; zeros for none. */
    uint64_t epoch, incarnation;
    uint64_t accused_epoch, accused_incarnation;
    uint64_t down_epoch, down_incarnation;
    /* Its log, as far as it is held. */
    uint64_t log_epoch, sequence, base_sequence;
    uint8_t chain[8];
    size_t row_count, row_bytes, base_size, log_count, log_bytes;
};

/* How full everything is that has a cap. */
struct gossip_sizes {
    size_t members, members_unverified;
    size_t datagrams, events, relays, strangers, drafts;
};

/* In no order that means anything; false past the end. */
bool gossip_inspect_at(const struct gossip *gossip, size_t index, struct gossip_inspected *out);
bool gossip_inspect_find(const struct gossip *gossip, const struct member_id *id, struct gossip_inspected *out);
bool gossip_inspect_self(const struct gossip *gossip, struct gossip_inspected *out);
void gossip_inspect_sizes(const struct gossip *gossip, struct gossip_sizes *out);

/* Bytes of checkpoints of this owner that are on their way. */
size_t gossip_inspect_staged(const struct gossip *gossip, const struct member_id *id);

/* Every row held of this owner, shown or hidden. */
typedef void gossip_inspect_on_row(void *context, enum gossip_row_kind kind, const char *filter, size_t size);
void gossip_inspect_rows(const struct gossip *gossip, const struct member_id *id, gossip_inspect_on_row *on_row,
                         void *context);

/* Every signed object held of this owner, and its public key: its head, the head of its checkpoint, and the newest
 * entries_max entries of its log. Those that wait for a key are left out. */
typedef void gossip_inspect_on_signed(void *context, const uint8_t *public_key, const uint8_t *bytes, size_t size);
void gossip_inspect_signed(const struct gossip *gossip, const struct member_id *id, size_t entries_max,
                           gossip_inspect_on_signed *on_signed, void *context);

/* gossip_expect() for a caller that looks further ahead and knows more: a packet from this member, or a tick (NULL),
 * comes. Steps 0 to GOSSIP_EXPECT_STEPS - 1: each reads what the one before it has asked memory for, so that something
 * else should be done in between. */
#define GOSSIP_EXPECT_STEPS 4u
void gossip_inspect_expect(const struct gossip *gossip, const struct member_id *from, unsigned step);

#endif
