#include "gossip/registry.h"

#include <stdlib.h>
#include <string.h>

/* The most operations one entry can hold: each takes four bytes at least. */
#define OPS_MAX (ENTRY_BODY_MAX / 4)
#define ROW_OVERHEAD 48u /* bytes of memory beside the filter */

static const struct rowset no_rows;

struct log_entry *log_entry_new(uint64_t sequence, const uint8_t *bytes, size_t size) {
    struct log_entry *entry = malloc(sizeof *entry + size);
    if (!entry) return NULL;
    entry->refs = 1;
    entry->sequence = sequence;
    entry->size = size;
    memcpy(entry->bytes, bytes, size);
    return entry;
}

void log_entry_unref(struct log_entry *entry) {
    if (entry && --entry->refs == 0) free(entry);
}

/* ---- what it is ---- */

uint64_t registry_sequence(const struct registry *registry) {
    return registry ? registry->at.sequence : 0;
}

uint64_t registry_base_sequence(const struct registry *registry) {
    return registry ? registry->at.base_sequence : 0;
}

const struct rowset *registry_rows(const struct registry *registry) {
    return registry ? &registry->rows : &no_rows;
}

const struct log_entry *registry_entry(const struct registry *registry, uint64_t sequence) {
    if (!registry || sequence <= registry->at.base_sequence || sequence > registry->at.sequence) return NULL;
    return registry->log[sequence - registry->at.base_sequence - 1];
}

/* The checkpoint shares its rows with ours but for those that the log changed, which are no more than the log is long.
 */
size_t registry_bytes(const struct registry *registry) {
    if (!registry) return 0;
    const struct rowset *base = registry->base ? &registry->base->rows : &no_rows;
    size_t count = registry->rows.count > base->count ? registry->rows.count : base->count;
    size_t bytes = registry->rows.bytes > base->bytes ? registry->rows.bytes : base->bytes;
    return sizeof *registry + count * ROW_OVERHEAD + bytes + 2 * registry->log_bytes +
           2 * CHECKPOINT_HASH_SIZE * (size_t)checkpoint_chunks(rowset_encoded_size(base));
}

enum registry_result registry_expects(const struct registry *registry, uint64_t sequence) {
    if (sequence <= registry_sequence(registry)) return REGISTRY_REPEATED;
    return sequence == registry_sequence(registry) + 1 ? REGISTRY_OK : REGISTRY_GAP;
}

/* ---- holders ---- */

static void drop_log_up_to(struct registry *registry, uint64_t sequence) {
    size_t gone = 0;
    while (gone < registry->log_count && registry->log[gone]->sequence <= sequence) {
        registry->log_bytes -= registry->log[gone]->size;
        log_entry_unref(registry->log[gone++]);
    }
    registry->log_count -= gone;
    if (gone > 0) memmove(registry->log, registry->log + gone, registry->log_count * sizeof(struct log_entry *));
}

void registry_unref(struct registry *registry) {
    if (!registry || !shared_unref(&registry->shared)) return;
    drop_log_up_to(registry, UINT64_MAX);
    rowset_free(&registry->rows);
    checkpoint_unref(registry->base);
    free(registry->log);
    free(registry);
}

static uint64_t hash_of(const struct registry_place *at) {
    return wire_load_u64(at->chain) ^ wire_load_u64(at->base_root) ^ wire_load_u64(at->id.bytes) ^
           at->sequence * 0x9e3779b97f4a7c15u;
}

static bool is_at(const struct shared *shared, const void *wanted) {
    return memcmp(&((const struct registry *)(const void *)shared)->at, wanted, sizeof(struct registry_place)) == 0;
}

/* A new reference to one that stands there already, or NULL. */
static struct registry *find(const struct registry_rules *rules, const struct registry_place *at) {
    return (struct registry *)(void *)shared_find(rules->pool, SHARED_REGISTRY, hash_of(at), is_at, at);
}

static void take(struct registry **held, struct registry *other) {
    registry_unref(*held);
    *held = other;
}

static struct registry *copy(const struct registry *from) {
    struct registry *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    shared_init(&made->shared, SHARED_REGISTRY, 0);
    made->log = malloc((from->log_count + 1) * sizeof(struct log_entry *));
    if (!made->log) {
        free(made);
        return NULL;
    }
    made->at = from->at;
    made->rows = rowset_share(&from->rows);
    made->base = from->base;
    if (made->base) made->base->refs++;
    made->log_count = from->log_count;
    made->log_room = from->log_count + 1;
    made->log_bytes = from->log_bytes;
    for (size_t i = 0; i < from->log_count; i++) {
        made->log[i] = from->log[i];
        made->log[i]->refs++;
    }
    return made;
}

/* Ours alone, to be changed, with room for one more entry. NULL: no memory, and nothing happened. */
static struct registry *begin_change(struct registry **held) {
    struct registry *registry = *held;
    if (!registry || !shared_is_alone(&registry->shared)) {
        const struct registry nothing = {0};
        struct registry *made = copy(registry ? registry : &nothing);
        if (!made) return NULL;
        take(held, made);
        return made;
    }
    if (registry->log_count == registry->log_room) {
        size_t room = registry->log_room * 2 + 8;
        struct log_entry **log = realloc(registry->log, room * sizeof(struct log_entry *));
        if (!log) return NULL;
        registry->log = log;
        registry->log_room = room;
    }
    shared_withdraw(&registry->shared);
    return registry;
}

static void end_change(struct registry *registry, const struct registry_place *at, const struct registry_rules *rules) {
    registry->at = *at;
    registry->shared.hash = hash_of(at);
    shared_offer(rules->pool, &registry->shared);
}

static struct registry_place place_of(const struct registry *registry, const struct registry_rules *rules) {
    if (registry) return registry->at;
    struct registry_place beginning;
    memset(&beginning, 0, sizeof beginning);
    checkpoint_empty_root(&rules->crypto, beginning.base_root);
    return beginning;
}

/* ---- rows ---- */

static void tell(const struct registry_watch *watch, const struct rowset_row *row, bool active) {
    if (watch->on_row) watch->on_row(watch->context, row->kind, row->filter, row->size, active);
}

/* Rows of one set that are not in the other. */
static void tell_missing(const struct rowset *from, const struct rowset *in, bool active,
                         const struct registry_watch *watch) {
    struct rowset_walk walk;
    struct rowset_row row;
    if (!watch->on_row) return;
    for (rowset_begin(from, &walk); rowset_next(&walk, &row);)
        if (!rowset_has(in, row.kind, row.filter, row.size)) tell(watch, &row, active);
}

void registry_forget(struct registry **held, const struct registry_watch *watch) {
    tell_missing(registry_rows(*held), &no_rows, false, watch);
    take(held, NULL);
}

static enum rowset_result change(struct rowset *rows, const struct entry_op *op) {
    return op->deletes ? rowset_delete(rows, op->kind, op->filter, op->size)
                       : rowset_put(rows, op->kind, op->filter, op->size);
}

/* rows is only good for rowset_free when this says false: no memory. */
static bool change_all(struct rowset *rows, const struct log_entry *kept) {
    struct entry entry;
    struct entry_op op;
    entry_read(kept->bytes, kept->size, &entry);
    while (entry_next(&entry, &op))
        if (change(rows, &op) == ROWSET_NO_MEMORY) return false;
    return true;
}

/* The last word on a filter counts: what came and went within one entry was never there. */
static bool is_said_again(struct entry rest, const struct entry_op *op) {
    struct entry_op later;
    while (entry_next(&rest, &later))
        if (later.kind == op->kind && later.size == op->size && memcmp(later.filter, op->filter, op->size) == 0)
            return true;
    return false;
}

static void tell_changes(const struct log_entry *kept, const struct rowset *before, const struct rowset *after,
                         const struct registry_watch *watch) {
    struct entry entry;
    struct entry_op op;
    if (!watch->on_row) return;
    entry_read(kept->bytes, kept->size, &entry);
    while (entry_next(&entry, &op)) {
        bool active = rowset_has(after, op.kind, op.filter, op.size);
        struct rowset_row row = {op.kind, op.filter, op.size};
        if (active != rowset_has(before, op.kind, op.filter, op.size) && !is_said_again(entry, &op))
            tell(watch, &row, active);
    }
}

/* ---- entries ---- */

static enum registry_result within_limits(const struct registry *registry, const struct registry_limits *limits,
                                          const struct log_entry *kept) {
    size_t rows = registry_rows(registry)->count, bytes = registry_rows(registry)->bytes;
    size_t log_count = registry ? registry->log_count : 0, log_bytes = registry ? registry->log_bytes : 0;
    struct entry entry;
    struct entry_op op;
    entry_read(kept->bytes, kept->size, &entry);
    while (entry_next(&entry, &op)) {
        if (op.deletes) continue;
        rows++;
        bytes += op.size;
    }
    if (rows > 4 * (size_t)limits->rows_max + OPS_MAX || bytes > (size_t)limits->owner_bytes_max + ENTRY_BODY_MAX)
        return REGISTRY_REFUSED;
    bool full = log_count >= 4 * (size_t)limits->log_entries_max ||
                log_bytes + kept->size > (size_t)limits->owner_bytes_max + MESSAGE_BLOB_MAX;
    return full ? REGISTRY_LOG_FULL : REGISTRY_OK;
}

static struct registry_place place_after(const struct registry *registry, const struct registry_rules *rules,
                                         const struct log_entry *kept) {
    struct registry_place at = place_of(registry, rules);
    struct entry entry;
    entry_read(kept->bytes, kept->size, &entry);
    at.id = entry.id;
    at.epoch = entry.epoch;
    at.sequence = entry.sequence;
    entry_chain(kept->bytes, kept->size, &rules->crypto, at.chain);
    return at;
}

enum registry_result registry_apply(struct registry **held, const struct registry_rules *rules, struct log_entry *entry,
                                    const struct registry_watch *watch) {
    enum registry_result expected = registry_expects(*held, entry->sequence);
    if (expected != REGISTRY_OK) return expected;
    enum registry_result within = within_limits(*held, &rules->limits, entry);
    if (within != REGISTRY_OK) return within;
    struct registry_place at = place_after(*held, rules, entry);
    struct registry *known = find(rules, &at);
    if (known) {
        tell_changes(entry, registry_rows(*held), &known->rows, watch);
        take(held, known);
        return REGISTRY_OK;
    }
    struct rowset rows = rowset_share(registry_rows(*held));
    struct registry *registry = change_all(&rows, entry) ? begin_change(held) : NULL;
    if (!registry) {
        rowset_free(&rows);
        return REGISTRY_NO_MEMORY;
    }
    tell_changes(entry, &registry->rows, &rows, watch);
    rowset_free(&registry->rows);
    registry->rows = rows;
    registry->log[registry->log_count++] = entry;
    registry->log_bytes += entry->size;
    entry->refs++;
    end_change(registry, &at, rules);
    return REGISTRY_OK;
}

/* ---- checkpoints ---- */

static void set_base(struct registry *registry, struct checkpoint *base) {
    checkpoint_unref(registry->base);
    registry->base = base;
    drop_log_up_to(registry, base->sequence);
}

/* The checkpoint at a sequence within the log: the base, and the log up to there. */
static struct checkpoint *checkpoint_at(const struct registry *registry, const struct registry_rules *rules,
                                        uint64_t sequence) {
    struct rowset rows = rowset_share(registry->base ? &registry->base->rows : &no_rows);
    uint8_t chain[8] = {0};
    if (registry->base) memcpy(chain, registry->base->chain, sizeof chain);
    struct checkpoint *made = NULL;
    bool ok = true;
    for (size_t i = 0; ok && i < registry->log_count && registry->log[i]->sequence <= sequence; i++) {
        ok = change_all(&rows, registry->log[i]);
        entry_chain(registry->log[i]->bytes, registry->log[i]->size, &rules->crypto, chain);
    }
    if (ok && sequence == registry->at.sequence) { /* so that its rows are those that we have, and not as many more */
        rowset_free(&rows);
        rows = rowset_share(&registry->rows);
    }
    if (ok) made = checkpoint_new(&rows, sequence, chain, &rules->crypto);
    rowset_free(&rows);
    return made;
}

static bool is_same(const struct checkpoint *checkpoint, const struct head *head) {
    return memcmp(checkpoint->root, head->checkpoint_root, sizeof checkpoint->root) == 0 &&
           memcmp(checkpoint->chain, head->checkpoint_chain, sizeof checkpoint->chain) == 0;
}

static enum registry_result fold(struct registry **held, const struct registry_rules *rules, const struct head *head,
                                 const uint8_t *bytes, size_t size) {
    struct registry_place at = (*held)->at;
    at.base_sequence = head->checkpoint_sequence;
    memcpy(at.base_root, head->checkpoint_root, sizeof at.base_root);
    struct registry *known = find(rules, &at);
    if (known) {
        take(held, known);
        return REGISTRY_OK;
    }
    struct checkpoint *base = checkpoint_at(*held, rules, head->checkpoint_sequence);
    if (!base) return REGISTRY_NO_MEMORY;
    bool same = is_same(base, head);
    struct registry *registry = same ? begin_change(held) : NULL;
    if (!registry) {
        checkpoint_unref(base);
        return same ? REGISTRY_NO_MEMORY : REGISTRY_MIXED;
    }
    checkpoint_set_head(base, bytes, size);
    set_base(registry, base);
    end_change(registry, &at, rules);
    return REGISTRY_OK;
}

enum registry_result registry_head(struct registry **held, const struct registry_rules *rules, const struct head *head,
                                   const uint8_t *bytes, size_t size) {
    struct registry_place at = place_of(*held, rules);
    if (head->checkpoint_size > rules->limits.owner_bytes_max) return REGISTRY_REFUSED;
    if (head->checkpoint_sequence > at.sequence) return REGISTRY_GAP;
    if (head->checkpoint_sequence < at.base_sequence)
        return checkpoint_is_outdated((*held)->base, head, bytes, size) ? REGISTRY_MIXED : REGISTRY_REPEATED;
    if (head->checkpoint_sequence == at.sequence && memcmp(head->checkpoint_chain, at.chain, sizeof at.chain) != 0)
        return REGISTRY_MIXED;
    if (head->checkpoint_sequence > at.base_sequence) return fold(held, rules, head, bytes, size);
    return memcmp(head->checkpoint_root, at.base_root, sizeof at.base_root) == 0 ? REGISTRY_OK : REGISTRY_MIXED;
}

/* Another state takes the place of all we have. */
static void replace(struct registry **held, struct registry *other, const struct registry_watch *watch) {
    tell_missing(registry_rows(*held), &other->rows, false, watch);
    tell_missing(&other->rows, registry_rows(*held), true, watch);
    take(held, other);
}

static struct registry *registry_at(struct checkpoint *base, const struct registry_place *at,
                                    const struct registry_rules *rules) {
    const struct registry nothing = {0};
    struct registry *made = copy(&nothing);
    if (!made) return NULL;
    base->refs++;
    made->base = base;
    made->rows = rowset_share(&base->rows);
    end_change(made, at, rules);
    return made;
}

enum registry_result registry_commit(struct registry **held, const struct registry_rules *rules,
                                     const struct head *head, const uint8_t *head_bytes, size_t head_size,
                                     const uint8_t *bytes, const struct registry_watch *watch) {
    struct registry_place at = {.id = head->id,
                                .epoch = head->epoch,
                                .sequence = head->checkpoint_sequence,
                                .base_sequence = head->checkpoint_sequence};
    memcpy(at.chain, head->checkpoint_chain, sizeof at.chain);
    memcpy(at.base_root, head->checkpoint_root, sizeof at.base_root);
    struct registry *known = find(rules, &at);
    if (known) {
        replace(held, known, watch);
        return REGISTRY_OK;
    }
    struct rowset rows = {0};
    size_t rows_max = 4 * (size_t)rules->limits.rows_max + OPS_MAX;
    switch (rowset_decode(bytes, (size_t)head->checkpoint_size, rows_max, &rows)) {
    case ROWSET_MALFORMED: return REGISTRY_REFUSED;
    case ROWSET_DECODE_NO_MEMORY: return REGISTRY_NO_MEMORY;
    case ROWSET_DECODED: break;
    }
    struct checkpoint *base = checkpoint_new(&rows, head->checkpoint_sequence, at.chain, &rules->crypto);
    bool same = base && is_same(base, head); /* an empty one came without chunks that would have shown it */
    struct registry *made = same ? registry_at(base, &at, rules) : NULL;
    if (made) {
        checkpoint_set_head(base, head_bytes, head_size);
        replace(held, made, watch);
    }
    enum registry_result result = made ? REGISTRY_OK : base && !same ? REGISTRY_REFUSED : REGISTRY_NO_MEMORY;
    checkpoint_unref(base);
    rowset_free(&rows);
    return result;
}

/* As it was when its log began. False: no memory. */
static bool at_base(const struct registry *registry, const struct registry_rules *rules, struct registry **out) {
    struct registry_place at = registry->at;
    if (!registry->base) return true; /* NULL is it */
    at.sequence = at.base_sequence;
    memcpy(at.chain, registry->base->chain, sizeof at.chain);
    *out = find(rules, &at);
    if (!*out) *out = registry_at(registry->base, &at, rules);
    return *out != NULL;
}

enum registry_result registry_rewind(struct registry **held, const struct registry_rules *rules, uint64_t sequence,
                                     const struct registry_watch *watch) {
    const struct registry *now = *held;
    const struct registry_watch nobody = {0};
    struct registry *earlier = NULL;
    if (!registry_entry(now, sequence + 1)) return REGISTRY_REPEATED;
    bool ok = at_base(now, rules, &earlier);
    for (size_t i = 0; ok && now->log[i]->sequence <= sequence; i++)
        ok = registry_apply(&earlier, rules, now->log[i], &nobody) == REGISTRY_OK;
    if (!ok) {
        registry_unref(earlier);
        return REGISTRY_NO_MEMORY;
    }
    tell_missing(&now->rows, registry_rows(earlier), false, watch);
    tell_missing(registry_rows(earlier), &now->rows, true, watch);
    take(held, earlier);
    return REGISTRY_OK;
}

bool registry_checkpoint(struct registry **held, const struct registry_rules *rules, uint64_t epoch) {
    if (!*held) return true; /* nothing was published: sequence 0 of any epoch */
    struct checkpoint *base = checkpoint_new(&(*held)->rows, (*held)->at.sequence, (*held)->at.chain, &rules->crypto);
    struct registry *registry = base ? begin_change(held) : NULL;
    if (!registry) {
        checkpoint_unref(base);
        return false;
    }
    struct registry_place at = registry->at;
    at.epoch = epoch;
    at.base_sequence = base->sequence;
    memcpy(at.base_root, base->root, sizeof at.base_root);
    set_base(registry, base);
    end_change(registry, &at, rules);
    return true;
}
