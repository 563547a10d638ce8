/* One owner's part of the registry: its checkpoint, the log above it, and the rows they make.
 *
 * rows is always exactly the owner's state at sequence: an entry is applied wholly or not at all, and a checkpoint
 * takes the place of everything at once. Deletes exist only in the log; only the owner drops them, by signing a head
 * with a newer checkpoint. The caller has checked signatures.
 */
#ifndef GOSSIP_REGISTRY_H
#define GOSSIP_REGISTRY_H

#include "gossip/rows.h"
#include "gossip/signed.h"
#include "gossip/staging.h"

#define REGISTRY_WINDOW 8u /* entries kept that came before those between */

struct log_entry {
    uint64_t sequence;
    size_t size;
    uint8_t bytes[];
};

struct registry_limits {
    uint32_t rows_max; /* of each kind, as the owner keeps it; a replica bears four times that in all, because changes
                          pass through larger states */
    uint32_t owner_bytes_max; /* of filters, and of a checkpoint */
    uint32_t log_entries_max; /* as the owner keeps it; a replica bears four times that */
};

struct registry {
    uint64_t epoch, sequence;
    uint8_t chain[8]; /* at sequence */
    struct rows rows;

    uint64_t base_sequence; /* T */
    uint8_t *base;          /* the encoded rows at T */
    size_t base_size;
    uint8_t base_head[HEAD_SIZE_MAX]; /* the newest signed head that names T; size 0 for the empty beginning */
    size_t base_head_size;

    struct log_entry **log; /* base_sequence + 1 up to sequence */
    size_t log_count, log_room, log_bytes;
    struct log_entry *window[REGISTRY_WINDOW];
    struct staging staging[STAGING_PER_OWNER];
};

/* A row came or went. */
typedef void registry_on_row(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool active);
struct registry_watch {
    registry_on_row *on_row; /* NULL: nobody looks */
    void *context;
};

enum registry_result {
    REGISTRY_OK = 0,
    REGISTRY_REPEATED = 1,
    REGISTRY_GAP = 2, /* kept if it was near; ask for what lies between */
    REGISTRY_OTHER_EPOCH = 3,
    REGISTRY_NO_MEMORY = -1, /* nothing changed; it will be offered again */
    REGISTRY_REFUSED = -2    /* over a limit, or a head that contradicts its log */
};

void registry_free(struct registry *registry);
/* Empty, at the beginning of this epoch. */
void registry_reset(struct registry *registry, uint64_t epoch);

/* What would registry_apply say, before the signature is worth checking? */
enum registry_result registry_expects(const struct registry *registry, const struct entry *entry);
enum registry_result registry_apply(struct registry *registry, const struct gossip_crypto *crypto,
                                    const struct registry_limits *limits, const uint8_t *bytes, size_t size,
                                    const struct registry_watch *watch);

/* A verified head of this epoch. Folds the log when we hold T already (OK), or says GAP: the checkpoint must be fetched
 * (staging is prepared). An empty checkpoint needs no fetching and is taken at once. If what we hold contradicts it,
 * the owner's word counts: all of it is forgotten, and the checkpoint fetched. */
enum registry_result registry_head(struct registry *registry, const struct gossip_crypto *crypto,
                                   const struct registry_limits *limits, const struct head *head, const uint8_t *bytes,
                                   size_t size, const struct registry_watch *watch);

/* One chunk of a checkpoint that is being fetched. OK: committed. GAP: more chunks wanted. REPEATED: not ours. REFUSED:
 * the whole was not what the head promised; it starts again. */
enum registry_result registry_chunk(struct registry *registry, const struct gossip_crypto *crypto,
                                    const struct registry_limits *limits, uint64_t checkpoint, uint64_t index,
                                    const uint8_t *bytes, size_t size, const struct registry_watch *watch);

/* Owner only: the present state becomes the checkpoint. The head that names it is given later with
 * registry_set_base_head. */
bool registry_checkpoint(struct registry *registry);
void registry_set_base_head(struct registry *registry, const uint8_t *bytes, size_t size);
void registry_root(const struct registry *registry, const struct gossip_crypto *crypto, uint8_t root[32]);

/* NULL if it is not in the log. */
const struct log_entry *registry_entry(const struct registry *registry, uint64_t sequence);

#endif
