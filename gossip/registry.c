#include "gossip/registry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The most operations one entry can hold: each takes four bytes at least. */
#define OPS_MAX (ENTRY_BODY_MAX / 4)

static void drop_log(struct registry *registry) {
    for (size_t i = 0; i < registry->log_count; i++)
        free(registry->log[i]);
    registry->log_count = 0;
    registry->log_bytes = 0;
}

static void drop_window(struct registry *registry) {
    for (size_t i = 0; i < REGISTRY_WINDOW; i++)
        free(registry->window[i]);
    memset(registry->window, 0, sizeof registry->window);
}

void registry_free(struct registry *registry) {
    drop_log(registry);
    drop_window(registry);
    for (size_t i = 0; i < STAGING_PER_OWNER; i++)
        staging_free(&registry->staging[i]);
    rows_free(&registry->rows);
    free(registry->log);
    free(registry->base);
    memset(registry, 0, sizeof *registry);
}

void registry_reset(struct registry *registry, uint64_t epoch) {
    registry_free(registry);
    registry->epoch = epoch;
}

enum registry_result registry_expects(const struct registry *registry, const struct entry *entry) {
    if (entry->epoch != registry->epoch) return REGISTRY_OTHER_EPOCH;
    if (entry->sequence <= registry->sequence) return REGISTRY_REPEATED;
    return entry->sequence == registry->sequence + 1 ? REGISTRY_OK : REGISTRY_GAP;
}

static struct log_entry *entry_new(const struct entry *entry, const uint8_t *bytes, size_t size) {
    struct log_entry *kept = malloc(sizeof *kept + size);
    if (!kept) return NULL;
    kept->sequence = entry->sequence;
    kept->size = size;
    memcpy(kept->bytes, bytes, size);
    return kept;
}

static bool reserve_log(struct registry *registry) {
    if (registry->log_count < registry->log_room) return true;
    size_t room = registry->log_room ? registry->log_room * 2 : 8;
    struct log_entry **log = realloc(registry->log, room * sizeof *log);
    if (!log) return false;
    registry->log = log;
    registry->log_room = room;
    return true;
}

/* Everything an entry needs is allocated before the first row changes. */
static bool prepare(struct registry *registry, struct entry entry, struct row *made[OPS_MAX], size_t *made_count) {
    struct entry_op op;
    *made_count = 0;
    while (entry_next(&entry, &op)) {
        if (op.deletes) continue;
        assert(*made_count < OPS_MAX);
        struct row *row = row_new(op.kind, op.filter, op.size);
        if (!row) goto fail;
        made[(*made_count)++] = row;
    }
    if (rows_reserve(&registry->rows, *made_count) && reserve_log(registry)) return true;
fail:
    while (*made_count > 0)
        free(made[--*made_count]);
    return false;
}

static bool within_limits(const struct registry *registry, const struct registry_limits *limits, struct entry entry,
                          size_t size) {
    size_t rows = registry->rows.count, bytes = registry->rows.bytes;
    struct entry_op op;
    while (entry_next(&entry, &op)) {
        if (op.deletes) continue;
        rows++;
        bytes += op.size;
    }
    return rows <= 4 * (size_t)limits->rows_max + OPS_MAX &&
           bytes <= (size_t)limits->owner_bytes_max + ENTRY_BODY_MAX &&
           registry->log_count < 4 * (size_t)limits->log_entries_max &&
           registry->log_bytes + size <= (size_t)limits->owner_bytes_max + MESSAGE_BLOB_MAX;
}

static void tell(const struct registry_watch *watch, const struct entry_op *op, bool active) {
    if (watch->on_row) watch->on_row(watch->context, op->kind, op->filter, op->size, active);
}

static enum registry_result apply_next(struct registry *registry, const struct gossip_crypto *crypto,
                                       const struct registry_limits *limits, struct entry entry, struct log_entry *kept,
                                       const struct registry_watch *watch) {
    struct row *made[OPS_MAX];
    size_t made_count, used = 0;
    if (!within_limits(registry, limits, entry, kept->size)) return REGISTRY_REFUSED;
    if (!prepare(registry, entry, made, &made_count)) return REGISTRY_NO_MEMORY;
    struct entry_op op;
    while (entry_next(&entry, &op)) {
        bool changed = op.deletes ? rows_delete(&registry->rows, op.kind, op.filter, op.size)
                                  : rows_put_made(&registry->rows, made[used++]);
        if (changed) tell(watch, &op, !op.deletes);
    }
    registry->log[registry->log_count++] = kept;
    registry->log_bytes += kept->size;
    registry->sequence = kept->sequence;
    entry_chain(kept->bytes, kept->size, crypto, registry->chain);
    return REGISTRY_OK;
}

/* What waited in the window and now follows. */
static void apply_window(struct registry *registry, const struct gossip_crypto *crypto,
                         const struct registry_limits *limits, const struct registry_watch *watch) {
    for (;;) {
        struct log_entry **slot = &registry->window[(registry->sequence + 1) % REGISTRY_WINDOW];
        struct log_entry *kept = *slot;
        if (!kept || kept->sequence != registry->sequence + 1) return;
        struct entry entry;
        bool readable = entry_read(kept->bytes, kept->size, &entry);
        assert(readable);
        enum registry_result result = apply_next(registry, crypto, limits, entry, kept, watch);
        if (result != REGISTRY_OK) free(kept);
        *slot = NULL;
        if (result != REGISTRY_OK) return;
    }
}

static enum registry_result keep_early(struct registry *registry, const struct entry *entry, const uint8_t *bytes,
                                       size_t size) {
    if (entry->sequence - registry->sequence > REGISTRY_WINDOW) return REGISTRY_GAP;
    struct log_entry **slot = &registry->window[entry->sequence % REGISTRY_WINDOW];
    if (*slot && (*slot)->sequence == entry->sequence) return REGISTRY_GAP;
    struct log_entry *kept = entry_new(entry, bytes, size);
    if (!kept) return REGISTRY_NO_MEMORY;
    free(*slot);
    *slot = kept;
    return REGISTRY_GAP;
}

enum registry_result registry_apply(struct registry *registry, const struct gossip_crypto *crypto,
                                    const struct registry_limits *limits, const uint8_t *bytes, size_t size,
                                    const struct registry_watch *watch) {
    struct entry entry;
    if (!entry_read(bytes, size, &entry)) return REGISTRY_REFUSED;
    enum registry_result expected = registry_expects(registry, &entry);
    if (expected == REGISTRY_GAP) return keep_early(registry, &entry, bytes, size);
    if (expected != REGISTRY_OK) return expected;
    struct log_entry *kept = entry_new(&entry, bytes, size);
    if (!kept) return REGISTRY_NO_MEMORY;
    enum registry_result result = apply_next(registry, crypto, limits, entry, kept, watch);
    if (result != REGISTRY_OK) {
        free(kept);
        return result;
    }
    apply_window(registry, crypto, limits, watch);
    return REGISTRY_OK;
}

static void drop_log_up_to(struct registry *registry, uint64_t sequence) {
    size_t gone = 0;
    while (gone < registry->log_count && registry->log[gone]->sequence <= sequence) {
        registry->log_bytes -= registry->log[gone]->size;
        free(registry->log[gone++]);
    }
    registry->log_count -= gone;
    if (gone > 0) memmove(registry->log, registry->log + gone, registry->log_count * sizeof *registry->log);
}

void registry_set_base_head(struct registry *registry, const uint8_t *bytes, size_t size) {
    assert(size <= HEAD_SIZE_MAX);
    memcpy(registry->base_head, bytes, size);
    registry->base_head_size = size;
}

static void set_base(struct registry *registry, uint8_t *base, size_t size, uint64_t sequence) {
    free(registry->base);
    registry->base = base;
    registry->base_size = size;
    registry->base_sequence = sequence;
    drop_log_up_to(registry, sequence);
}

/* The state at an earlier sequence: the base and the log up to there. */
static bool rows_at(const struct registry *registry, uint64_t sequence, struct rows *rows) {
    if (rows_decode(registry->base, registry->base_size, SIZE_MAX, rows) != ROWS_DECODED) return false;
    for (size_t i = 0; i < registry->log_count && registry->log[i]->sequence <= sequence; i++) {
        struct entry entry;
        struct entry_op op;
        entry_read(registry->log[i]->bytes, registry->log[i]->size, &entry);
        while (entry_next(&entry, &op)) {
            if (op.deletes) {
                rows_delete(rows, op.kind, op.filter, op.size);
            } else if (rows_put(rows, op.kind, op.filter, op.size) == ROWS_NO_MEMORY) {
                rows_free(rows);
                return false;
            }
        }
    }
    return true;
}

/* Empty is encoded as one byte of memory, so that NULL means no memory. */
static uint8_t *encode_new(const struct rows *rows, size_t *size) {
    *size = rows_encoded_size(rows);
    uint8_t *bytes = malloc(*size + 1);
    if (bytes) rows_encode(rows, bytes);
    return bytes;
}

static enum registry_result fold(struct registry *registry, const struct gossip_crypto *crypto,
                                 const struct head *head) {
    struct rows rows = {0};
    if (!rows_at(registry, head->checkpoint_sequence, &rows)) return REGISTRY_NO_MEMORY;
    size_t size;
    uint8_t *base = encode_new(&rows, &size);
    rows_free(&rows);
    if (!base) return REGISTRY_NO_MEMORY;
    uint8_t root[32];
    crypto->sha256(crypto->context, base, size, root);
    if (memcmp(root, head->checkpoint_root, sizeof root) != 0) {
        free(base);
        return REGISTRY_REFUSED;
    }
    set_base(registry, base, size, head->checkpoint_sequence);
    return REGISTRY_OK;
}

static struct staging *stage(struct registry *registry, const struct head *head, const uint8_t *bytes, size_t size) {
    struct staging *worst = NULL;
    for (size_t i = 0; i < STAGING_PER_OWNER; i++) {
        struct staging *staging = &registry->staging[i];
        if (staging->used && staging->head.checkpoint_sequence == head->checkpoint_sequence) return staging;
        bool better = !worst || (worst->used && (!staging->used || staging->size < worst->size));
        worst = better ? staging : worst;
    }
    staging_free(worst);
    worst->used = true;
    worst->head = *head;
    memcpy(worst->head_bytes, bytes, size);
    worst->head_size = size;
    return worst;
}

/* Rows of one set that are not in the other. */
static void tell_missing(const struct rows *from, const struct rows *in, bool active,
                         const struct registry_watch *watch) {
    size_t index;
    for (size_t i = 0; watch->on_row && i < from->count; i++) {
        const struct row *row = from->items[i];
        if (!rows_find(in, (enum gossip_row_kind)row->kind, row->filter, row->size, &index))
            watch->on_row(watch->context, (enum gossip_row_kind)row->kind, row->filter, row->size, active);
    }
}

static enum registry_result commit(struct registry *registry, struct staging *staging,
                                   const struct gossip_crypto *crypto, const struct registry_limits *limits,
                                   const struct registry_watch *watch) {
    const struct head *head = &staging->head;
    uint8_t root[32] = {0};
    crypto->sha256(crypto->context, staging->bytes ? staging->bytes : root, staging->size, root);
    struct rows rows = {0};
    enum rows_decoded decoded =
        memcmp(root, head->checkpoint_root, sizeof root) != 0
            ? ROWS_MALFORMED
            : rows_decode(staging->bytes, staging->size, 4 * (size_t)limits->rows_max + OPS_MAX, &rows);
    if (decoded == ROWS_DECODE_NO_MEMORY) return REGISTRY_NO_MEMORY;
    if (decoded == ROWS_MALFORMED) {
        staging_free(staging);
        return REGISTRY_REFUSED;
    }
    tell_missing(&registry->rows, &rows, false, watch);
    tell_missing(&rows, &registry->rows, true, watch);
    rows_free(&registry->rows);
    registry->rows = rows;
    drop_log(registry);
    set_base(registry, staging->bytes, staging->size, head->checkpoint_sequence);
    registry_set_base_head(registry, staging->head_bytes, staging->head_size);
    registry->sequence = head->checkpoint_sequence;
    memcpy(registry->chain, head->checkpoint_chain, sizeof registry->chain);
    staging->bytes = NULL;
    staging_free(staging);
    apply_window(registry, crypto, limits, watch);
    return REGISTRY_OK;
}

/* Its owner signed another state at this sequence than we hold: two lives of it used one epoch, and we took entries of
 * both. */
static bool contradicts(const struct registry *registry, const struct gossip_crypto *crypto, const struct head *head) {
    uint8_t root[32] = {0};
    if (head->checkpoint_sequence == registry->sequence)
        return memcmp(registry->chain, head->checkpoint_chain, sizeof registry->chain) != 0;
    if (head->checkpoint_sequence != registry->base_sequence || !registry->base) return false;
    registry_root(registry, crypto, root);
    return memcmp(root, head->checkpoint_root, sizeof root) != 0;
}

static void forget_all(struct registry *registry, const struct registry_watch *watch) {
    const struct rows none = {0};
    tell_missing(&registry->rows, &none, false, watch);
    registry_reset(registry, registry->epoch);
}

enum registry_result registry_head(struct registry *registry, const struct gossip_crypto *crypto,
                                   const struct registry_limits *limits, const struct head *head, const uint8_t *bytes,
                                   size_t size, const struct registry_watch *watch) {
    if (head->epoch != registry->epoch) return REGISTRY_OTHER_EPOCH;
    if (head->checkpoint_size > limits->owner_bytes_max) return REGISTRY_REFUSED;
    bool mixed = contradicts(registry, crypto, head);
    if (!mixed && head->checkpoint_sequence > registry->base_sequence &&
        head->checkpoint_sequence <= registry->sequence) {
        enum registry_result result = fold(registry, crypto, head);
        mixed = result == REGISTRY_REFUSED;
        if (result != REGISTRY_OK && !mixed) return result;
    }
    if (mixed) forget_all(registry, watch);
    if (head->checkpoint_sequence > registry->sequence) {
        struct staging *staging = stage(registry, head, bytes, size);
        return staging_complete(staging) ? commit(registry, staging, crypto, limits, watch) : REGISTRY_GAP;
    }
    if (head->checkpoint_sequence < registry->base_sequence) return REGISTRY_REPEATED;
    registry_set_base_head(registry, bytes, size);
    return REGISTRY_OK;
}

enum registry_result registry_chunk(struct registry *registry, const struct gossip_crypto *crypto,
                                    const struct registry_limits *limits, uint64_t checkpoint, uint64_t index,
                                    const uint8_t *bytes, size_t size, const struct registry_watch *watch) {
    struct staging *staging = NULL;
    for (size_t i = 0; i < STAGING_PER_OWNER; i++) {
        if (registry->staging[i].used && registry->staging[i].head.checkpoint_sequence <= registry->sequence)
            staging_free(&registry->staging[i]); /* the log was quicker */
        if (registry->staging[i].used && registry->staging[i].head.checkpoint_sequence == checkpoint)
            staging = &registry->staging[i];
    }
    if (!staging) return REGISTRY_REPEATED;
    switch (staging_complete(staging) ? STAGING_TAKEN : staging_add(staging, index, bytes, size)) {
    case STAGING_USELESS: return REGISTRY_REPEATED;
    case STAGING_NO_MEMORY: return REGISTRY_NO_MEMORY;
    case STAGING_TAKEN: break;
    }
    return staging_complete(staging) ? commit(registry, staging, crypto, limits, watch) : REGISTRY_GAP;
}

bool registry_checkpoint(struct registry *registry) {
    size_t size;
    uint8_t *base = encode_new(&registry->rows, &size);
    if (!base) return false;
    set_base(registry, base, size, registry->sequence);
    return true;
}

void registry_root(const struct registry *registry, const struct gossip_crypto *crypto, uint8_t root[32]) {
    crypto->sha256(crypto->context, registry->base ? registry->base : root, registry->base_size, root);
}

const struct log_entry *registry_entry(const struct registry *registry, uint64_t sequence) {
    if (sequence <= registry->base_sequence || sequence > registry->sequence) return NULL;
    return registry->log[sequence - registry->base_sequence - 1];
}
