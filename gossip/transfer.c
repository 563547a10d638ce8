#include "gossip/transfer.h"

#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static void transfer_free(struct transfers *transfers, struct transfer *transfer) {
    HASH_DEL(transfers->all, transfer);
    for (size_t i = 0; i < TRANSFER_WINDOW; i++)
        log_entry_unref(transfer->window[i]);
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++)
        staging_free(&transfer->staging[i]);
    free(transfer);
}

void transfers_free(struct transfers *transfers) {
    while (transfers->all)
        transfer_free(transfers, transfers->all);
}

struct transfer *transfers_find(const struct transfers *transfers, const struct member_id *id) {
    struct transfer *found;
    HASH_FIND(hh, transfers->all, id, sizeof *id, found);
    return found;
}

struct transfer *transfers_next(const struct transfer *transfer) {
    return transfer->hh.next;
}

void transfers_drop(struct transfers *transfers, const struct member_id *id) {
    struct transfer *transfer = transfers_find(transfers, id);
    if (transfer) transfer_free(transfers, transfer);
}

size_t transfers_bytes(const struct transfers *transfers) {
    size_t bytes = 0;
    for (const struct transfer *transfer = transfers->all; transfer; transfer = transfers_next(transfer)) {
        bytes += sizeof *transfer;
        for (size_t i = 0; i < TRANSFER_STAGINGS; i++)
            bytes += transfer->staging[i].room;
    }
    return bytes;
}

static struct transfer *make(struct transfers *transfers, const struct member_id *id) {
    struct transfer *transfer = transfers_find(transfers, id);
    if (transfer) return transfer;
    transfer = calloc(1, sizeof *transfer);
    if (!transfer) return NULL;
    transfer->id = *id;
    HASH_ADD(hh, transfers->all, id, sizeof transfer->id, transfer);
    if (transfer->hh.tbl) return transfer;
    free(transfer);
    return NULL;
}

/* What we are beyond is of no use, and a transfer with nothing in it is none. */
static void tidy(struct transfers *transfers, struct transfer *transfer, uint64_t sequence) {
    bool idle = !transfer->refused;
    for (size_t i = 0; i < TRANSFER_WINDOW; i++) {
        struct log_entry **slot = &transfer->window[i];
        if (*slot && (*slot)->sequence <= sequence) {
            log_entry_unref(*slot);
            *slot = NULL;
        }
        idle = idle && !*slot;
    }
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (staging->used && staging->head.checkpoint_sequence <= sequence) staging_free(staging);
        idle = idle && !staging->used;
    }
    if (idle) transfer_free(transfers, transfer);
}

/* ---- entries ---- */

static enum registry_result keep_early(struct transfers *transfers, const struct registry *registry,
                                       const struct entry *entry, const uint8_t *bytes, size_t size) {
    if (entry->sequence - registry_sequence(registry) > TRANSFER_WINDOW) return REGISTRY_GAP;
    struct transfer *transfer = make(transfers, &entry->id);
    if (!transfer) return REGISTRY_NO_MEMORY;
    struct log_entry **slot = &transfer->window[entry->sequence % TRANSFER_WINDOW];
    if (*slot && (*slot)->sequence == entry->sequence) return REGISTRY_GAP;
    struct log_entry *kept = log_entry_new(entry->sequence, bytes, size);
    if (kept) {
        log_entry_unref(*slot);
        *slot = kept;
    }
    tidy(transfers, transfer, registry_sequence(registry));
    return kept ? REGISTRY_GAP : REGISTRY_NO_MEMORY;
}

/* The log was quicker than the checkpoint whose head came first: that is folded now, or the log would grow for ever.
 * What is not as the owner signed it is forgotten, and the checkpoint goes on coming. False: memory is short. */
static bool fold_staged(struct transfer *transfer, struct registry **held, const struct registry_rules *rules,
                        const struct registry_watch *watch) {
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        const struct staging *staging = &transfer->staging[i];
        if (!staging->used || staging->head.checkpoint_sequence > registry_sequence(*held)) continue;
        switch (registry_head(held, rules, &staging->head, staging->head_bytes, staging->head_size)) {
        case REGISTRY_NO_MEMORY: return false;
        case REGISTRY_MIXED: registry_forget(held, watch); break;
        default: break;
        }
    }
    return true;
}

/* Of what waited, all that follows now. */
static void go_on(struct transfers *transfers, const struct member_id *id, struct registry **held,
                  const struct registry_rules *rules, const struct registry_watch *watch) {
    struct transfer *transfer = transfers_find(transfers, id);
    if (!transfer) return;
    bool folded = fold_staged(transfer, held, rules, watch);
    for (struct log_entry *next; folded; folded = fold_staged(transfer, held, rules, watch)) {
        next = transfer->window[(registry_sequence(*held) + 1) % TRANSFER_WINDOW];
        if (!next || registry_apply(held, rules, next, watch) != REGISTRY_OK) break;
    }
    if (folded) tidy(transfers, transfer, registry_sequence(*held));
}

enum registry_result transfers_entry(struct transfers *transfers, struct registry **held,
                                     const struct registry_rules *rules, const struct entry *entry,
                                     const uint8_t *bytes, size_t size, const struct registry_watch *watch) {
    enum registry_result expected = registry_expects(*held, entry->sequence);
    if (expected == REGISTRY_GAP) return keep_early(transfers, *held, entry, bytes, size);
    if (expected != REGISTRY_OK) return expected;
    struct log_entry *kept = log_entry_new(entry->sequence, bytes, size);
    if (!kept) return REGISTRY_NO_MEMORY;
    enum registry_result result = registry_apply(held, rules, kept, watch);
    log_entry_unref(kept);
    if (result == REGISTRY_OK) go_on(transfers, &entry->id, held, rules, watch);
    return result;
}

/* ---- checkpoints ---- */

static bool is_for(const struct staging *staging, const struct head *head) {
    return staging->used && staging->head.checkpoint_sequence == head->checkpoint_sequence &&
           memcmp(staging->head.checkpoint_root, head->checkpoint_root, sizeof head->checkpoint_root) == 0;
}

/* The place of the one with the least in it. */
static struct staging *stage(struct transfer *transfer, const struct head *head, const uint8_t *bytes, size_t size) {
    struct staging *worst = NULL;
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (is_for(staging, head)) return staging;
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

static enum registry_result commit(struct transfers *transfers, struct transfer *transfer, struct staging *staging,
                                   struct registry **held, const struct registry_rules *rules,
                                   const struct registry_watch *watch) {
    enum registry_result result =
        registry_commit(held, rules, &staging->head, staging->head_bytes, staging->head_size, staging->bytes, watch);
    if (result == REGISTRY_REFUSED) {
        transfer->refused = true;
        memcpy(transfer->refused_root, staging->head.checkpoint_root, sizeof transfer->refused_root);
        staging_free(staging);
    }
    if (result == REGISTRY_OK) {
        const struct member_id id = staging->head.id;
        transfer->refused = false;
        tidy(transfers, transfer, registry_sequence(*held));
        go_on(transfers, &id, held, rules, watch);
    }
    return result;
}

static enum registry_result begin(struct transfers *transfers, struct registry **held,
                                  const struct registry_rules *rules, const struct head *head, const uint8_t *bytes,
                                  size_t size, const struct registry_watch *watch) {
    struct transfer *transfer = make(transfers, &head->id);
    if (!transfer) return REGISTRY_NO_MEMORY;
    if (transfer->refused && memcmp(transfer->refused_root, head->checkpoint_root, sizeof transfer->refused_root) == 0)
        return REGISTRY_REFUSED;
    struct staging *staging = stage(transfer, head, bytes, size);
    if (!staging_complete(staging)) return REGISTRY_GAP;
    return commit(transfers, transfer, staging, held, rules, watch);
}

/* In one life T never falls: a later head that names an earlier checkpoint is of another life in the same epoch, and
 * what was coming of the one that is lost will never be whole, nor be what its owner says now. */
static void drop_outlived(const struct transfers *transfers, const struct head *head) {
    struct transfer *transfer = transfers_find(transfers, &head->id);
    for (size_t i = 0; transfer && i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (staging->used && staging->head.epoch == head->epoch && staging->head.incarnation < head->incarnation &&
            staging->head.checkpoint_sequence > head->checkpoint_sequence)
            staging_free(staging);
    }
}

enum registry_result transfers_head(struct transfers *transfers, struct registry **held,
                                    const struct registry_rules *rules, const struct head *head, const uint8_t *bytes,
                                    size_t size, const struct registry_watch *watch) {
    drop_outlived(transfers, head);
    enum registry_result result = registry_head(held, rules, head, bytes, size);
    if (result == REGISTRY_MIXED) {
        registry_forget(held, watch);
        transfers_drop(transfers, &head->id);
        result = head->checkpoint_sequence > 0 ? REGISTRY_GAP : REGISTRY_REPEATED;
    }
    return result == REGISTRY_GAP ? begin(transfers, held, rules, head, bytes, size, watch) : result;
}

enum registry_result transfers_chunk(struct transfers *transfers, struct registry **held,
                                     const struct registry_rules *rules, const struct message *chunk,
                                     const struct registry_watch *watch) {
    struct transfer *transfer = transfers_find(transfers, &chunk->version.id);
    if (!transfer) return REGISTRY_REPEATED;
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (!staging->used || staging->head.checkpoint_sequence != chunk->version.sequence) continue;
        if (staging_complete(staging)) /* memory was short when it was whole */
            return commit(transfers, transfer, staging, held, rules, watch);
        if (!staging_wants(staging, chunk->number) ||
            !checkpoint_proves(&staging->head, chunk->number, chunk, &rules->crypto))
            continue;
        switch (staging_add(staging, chunk->number, chunk->bytes, chunk->size)) {
        case STAGING_USELESS: return REGISTRY_REPEATED;
        case STAGING_NO_MEMORY: return REGISTRY_NO_MEMORY;
        case STAGING_TAKEN: break;
        }
        if (!staging_complete(staging)) return REGISTRY_GAP;
        return commit(transfers, transfer, staging, held, rules, watch);
    }
    return REGISTRY_REPEATED;
}
