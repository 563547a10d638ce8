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

static void drop_window_up_to(struct transfer *transfer, uint64_t sequence) {
    for (size_t i = 0; i < TRANSFER_WINDOW; i++) {
        struct log_entry **slot = &transfer->window[i];
        if (!*slot || (*slot)->sequence > sequence) continue;
        log_entry_unref(*slot);
        *slot = NULL;
    }
}

/* What we are beyond is of no use, and a transfer with nothing in it is none. */
static void tidy(struct transfers *transfers, struct transfer *transfer, uint64_t sequence) {
    bool idle = !transfer->refused;
    drop_window_up_to(transfer, sequence);
    for (size_t i = 0; i < TRANSFER_WINDOW; i++)
        idle = idle && !transfer->window[i];
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

static bool is_later(const struct staging *staging, const struct head *than, const uint8_t *bytes, size_t size) {
    if (staging->head.incarnation != than->incarnation) return staging->head.incarnation > than->incarnation;
    return signed_compare(staging->head_bytes, staging->head_size, bytes, size) > 0;
}

static bool is_newest(const struct transfer *transfer, const struct staging *staging) {
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        const struct staging *other = &transfer->staging[i];
        if (other->used && is_later(other, &staging->head, staging->head_bytes, staging->head_size)) return false;
    }
    return true;
}

/* The log was quicker than the checkpoint whose head came first: that is folded now, or the log would grow for ever.
 * What is not as the owner signed it last is forgotten, also what waits of it, and the checkpoint goes on coming.
 * False: memory is short. */
static bool fold_staged(struct transfer *transfer, struct registry **held, const struct registry_rules *rules,
                        const struct registry_watch *watch) {
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (!staging->used || staging->head.checkpoint_sequence > registry_sequence(*held)) continue;
        switch (registry_head(held, rules, &staging->head, staging->head_bytes, staging->head_size)) {
        case REGISTRY_NO_MEMORY: return false;
        case REGISTRY_MIXED:
            if (is_newest(transfer, staging)) {
                drop_window_up_to(transfer, staging->head.checkpoint_sequence);
                registry_forget(held, watch);
            } else {
                staging_free(staging);
            }
            break;
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
           staging->head.checkpoint_size == head->checkpoint_size &&
           memcmp(staging->head.checkpoint_root, head->checkpoint_root, sizeof head->checkpoint_root) == 0 &&
           memcmp(staging->head.checkpoint_chain, head->checkpoint_chain, sizeof head->checkpoint_chain) == 0;
}

static void set_head(struct staging *staging, const struct head *head, const uint8_t *bytes, size_t size) {
    staging->head = *head;
    memcpy(staging->head_bytes, bytes, size);
    staging->head_size = size;
}

/* What is to be thrown away rather? The owner's last word stays. */
static bool is_worse(const struct transfer *transfer, const struct staging *staging, const struct staging *than,
                     const struct head *head, const uint8_t *bytes, size_t size) {
    if (!than || !staging->used || !than->used) return !than || (than->used && !staging->used);
    if (is_newest(transfer, than) && is_later(than, head, bytes, size)) return true;
    return staging->size < than->size && !(is_newest(transfer, staging) && is_later(staging, head, bytes, size));
}

static struct staging *stage(struct transfer *transfer, const struct head *head, const uint8_t *bytes, size_t size) {
    struct staging *worst = NULL;
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (is_for(staging, head)) {
            if (!is_later(staging, head, bytes, size)) set_head(staging, head, bytes, size);
            return staging;
        }
        worst = is_worse(transfer, staging, worst, head, bytes, size) ? staging : worst;
    }
    staging_free(worst);
    worst->used = true;
    set_head(worst, head, bytes, size);
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
static void drop_outlived(const struct transfers *transfers, const struct head *head, const uint8_t *bytes,
                          size_t size) {
    struct transfer *transfer = transfers_find(transfers, &head->id);
    for (size_t i = 0; transfer && i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (staging->used && staging->head.epoch == head->epoch && !is_later(staging, head, bytes, size) &&
            staging->head.checkpoint_sequence > head->checkpoint_sequence)
            staging_free(staging);
    }
}

/* But for what the owner said later. */
static void drop_contradicted(struct transfers *transfers, const struct head *head, const uint8_t *bytes, size_t size) {
    struct transfer *transfer = transfers_find(transfers, &head->id);
    if (!transfer) return;
    drop_window_up_to(transfer, UINT64_MAX);
    for (size_t i = 0; i < TRANSFER_STAGINGS; i++) {
        struct staging *staging = &transfer->staging[i];
        if (staging->used && !is_later(staging, head, bytes, size)) staging_free(staging);
    }
    tidy(transfers, transfer, 0);
}

enum registry_result transfers_head(struct transfers *transfers, struct registry **held,
                                    const struct registry_rules *rules, const struct head *head, const uint8_t *bytes,
                                    size_t size, const struct registry_watch *watch) {
    drop_outlived(transfers, head, bytes, size);
    enum registry_result result = registry_head(held, rules, head, bytes, size);
    if (result == REGISTRY_MIXED) {
        registry_forget(held, watch);
        drop_contradicted(transfers, head, bytes, size);
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
