/* One owner's part of the registry at one sequence: its checkpoint, the log above it, and the rows they make.
 *
 * A registry is always exactly the owner's state at its sequence: an entry is applied wholly or not at all, and a
 * checkpoint takes the place of everything at once. Deletes exist only in the log; only the owner drops them, by
 * signing a head with a newer checkpoint. The caller has checked signatures, and that id and epoch are this owner's.
 *
 * An owner that has published nothing in its epoch has no registry: NULL stands for sequence 0. Registries are counted.
 * One that somebody else holds too is never changed, the change makes another: so that in a process with many gossips
 * all that are equally far share one, if they have a pool to find it (shared.h).
 */
#ifndef GOSSIP_REGISTRY_H
#define GOSSIP_REGISTRY_H

#include "gossip/checkpoint.h"
#include "gossip/shared.h"
#include "gossip/signed.h"

/* A signed entry as it came. */
struct log_entry {
    uint32_t refs;
    uint64_t sequence;
    size_t size;
    uint8_t bytes[];
};
/* NULL: no memory. */
struct log_entry *log_entry_new(uint64_t sequence, const uint8_t *bytes, size_t size);
void log_entry_unref(struct log_entry *entry);

struct registry_limits {
    uint32_t rows_max; /* of each kind, as the owner keeps it; a replica bears four times that in all, because changes
                          pass through larger states */
    uint32_t owner_bytes_max; /* of filters, and of a checkpoint */
    uint32_t log_entries_max; /* as the owner keeps it; a replica bears four times that */
};

/* Where a registry stands. Two with the same are the same. */
struct registry_place {
    struct member_id id;
    uint64_t epoch, sequence, base_sequence;
    uint8_t chain[8]; /* at sequence */
    uint8_t base_root[32];
};

struct registry {
    struct shared shared; /* by where it stands */
    struct registry_place at;
    struct rowset rows;
    struct checkpoint *base; /* NULL: the empty beginning */
    struct log_entry **log;  /* base_sequence + 1 up to sequence */
    size_t log_count, log_room, log_bytes;
};

struct registry_rules {
    struct gossip_crypto crypto;
    struct registry_limits limits;
    struct gossip_shared *pool; /* may be NULL */
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
    REGISTRY_GAP = 2,        /* something between is missing, or the checkpoint */
    REGISTRY_NO_MEMORY = -1, /* nothing changed; it will be offered again */
    REGISTRY_REFUSED = -2,   /* over a limit, as no honest owner is that has our limits */
    REGISTRY_MIXED = -3,     /* it contradicts what we hold: two lives of the owner used one epoch */
    REGISTRY_LOG_FULL = -4   /* for now: a head of its owner, with a newer checkpoint, makes room */
};

/* ---- what it is; NULL is welcome ---- */
uint64_t registry_sequence(const struct registry *registry);
uint64_t registry_base_sequence(const struct registry *registry);
const struct rowset *registry_rows(const struct registry *registry);
/* NULL if it is not in the log. */
const struct log_entry *registry_entry(const struct registry *registry, uint64_t sequence);
/* Bytes that go when it goes: of rows, log and checkpoint. */
size_t registry_bytes(const struct registry *registry);
/* Each owner's entry follows on the one before. */
enum registry_result registry_expects(const struct registry *registry, uint64_t sequence);

/* ---- changes: *held becomes the next state, or stays as it is ---- */
void registry_unref(struct registry *registry);
/* Lets go of it and tells that its rows went. */
void registry_forget(struct registry **held, const struct registry_watch *watch);

/* The entry is shared, not copied. */
enum registry_result registry_apply(struct registry **held, const struct registry_rules *rules, struct log_entry *entry,
                                    const struct registry_watch *watch);

/* A verified head with T at most our sequence: folds the log up to T. REPEATED: we are beyond. MIXED: the owner signed
 * another state; its word counts, so the caller forgets ours and fetches the checkpoint. GAP: T is above ours. */
enum registry_result registry_head(struct registry **held, const struct registry_rules *rules, const struct head *head,
                                   const uint8_t *bytes, size_t size);

/* All chunks of the checkpoint that this verified head names are there, and were checked. */
enum registry_result registry_commit(struct registry **held, const struct registry_rules *rules,
                                     const struct head *head, const uint8_t *head_bytes, size_t head_size,
                                     const uint8_t *bytes, const struct registry_watch *watch);

/* Goes back to a sequence within its log. REPEATED: there is nothing to undo. */
enum registry_result registry_rewind(struct registry **held, const struct registry_rules *rules, uint64_t sequence,
                                     const struct registry_watch *watch);

/* Owner only: the present state becomes the checkpoint, and goes on in this epoch. The head that names it is given
 * later, by checkpoint_set_head. False when memory is short. */
bool registry_checkpoint(struct registry **held, const struct registry_rules *rules, uint64_t epoch);

#endif
