/* What is on its way to us of one owner: entries that came before those between, and checkpoints in pieces.
 *
 * A checkpoint is kept per (T, root), two at once: an owner that writes a new one, or dies, in the middle does not make
 * the older transfer worthless. Owners of which nothing is missing have no transfer.
 */
#ifndef GOSSIP_TRANSFER_H
#define GOSSIP_TRANSFER_H

#include "gossip/registry.h"
#include "gossip/staging.h"

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

#define TRANSFER_WINDOW 8u /* entries kept that came before those between */
#define TRANSFER_STAGINGS 2u

struct transfer {
    struct member_id id;
    struct log_entry *window[TRANSFER_WINDOW]; /* by sequence modulo the size */
    struct staging staging[TRANSFER_STAGINGS];
    bool refused;
    uint8_t refused_root[32]; /* a checkpoint that was no good when it was whole, and is not fetched again */
    UT_hash_handle hh;
};

/* By owner; all zeros is empty. */
struct transfers {
    struct transfer *all;
};

void transfers_free(struct transfers *transfers);
/* NULL: nothing is on its way. */
struct transfer *transfers_find(const struct transfers *transfers, const struct member_id *id);
struct transfer *transfers_next(const struct transfer *transfer); /* in the order in which they began */
void transfers_drop(struct transfers *transfers, const struct member_id *id);
/* Of memory that arrived and was not applied. */
size_t transfers_bytes(const struct transfers *transfers);

/* A verified entry of this owner and epoch. GAP: kept if it was near; ask for what lies between. */
enum registry_result transfers_entry(struct transfers *transfers, struct registry **held,
                                     const struct registry_rules *rules, const struct entry *entry,
                                     const uint8_t *bytes, size_t size, const struct registry_watch *watch);

/* A verified head of this epoch. OK: we hold its T, and the log below is folded. GAP: the checkpoint must be fetched.
 * REPEATED: we are beyond it. If what we hold contradicts it, the owner's word counts: all of it is forgotten, and the
 * checkpoint fetched. */
enum registry_result transfers_head(struct transfers *transfers, struct registry **held,
                                    const struct registry_rules *rules, const struct head *head, const uint8_t *bytes,
                                    size_t size, const struct registry_watch *watch);

/* A chunk from anybody: message.{version.id, version.sequence, number, bytes, proof}. OK: the checkpoint is whole and
 * was taken. GAP: more chunks wanted. REPEATED: none that we want. REFUSED: the whole is over a limit, or not rows. */
enum registry_result transfers_chunk(struct transfers *transfers, struct registry **held,
                                     const struct registry_rules *rules, const struct message *chunk,
                                     const struct registry_watch *watch);

#endif
