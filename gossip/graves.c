#include "gossip/graves.h"

#include <stdlib.h>
#include <string.h>

void graves_free(struct graves *graves) {
    free(graves->slots);
    memset(graves, 0, sizeof *graves);
}

static bool is_used(const struct grave *slot) {
    return slot->epoch > 0;
}

static size_t home_of(const struct graves *graves, const struct member_id *id) {
    size_t hash;
    memcpy(&hash, id->bytes, sizeof hash);
    return hash & (graves->slot_count - 1);
}

/* Its slot, or the one where it would be. There is always a free one. */
static size_t slot_of(const struct graves *graves, const struct member_id *id) {
    size_t at = home_of(graves, id);
    while (is_used(&graves->slots[at]) && memcmp(&graves->slots[at].id, id, sizeof *id) != 0)
        at = (at + 1) & (graves->slot_count - 1);
    return at;
}

static struct grave *find(const struct graves *graves, const struct member_id *id) {
    if (graves->count == 0) return NULL;
    struct grave *slot = &graves->slots[slot_of(graves, id)];
    return is_used(slot) ? slot : NULL;
}

const struct grave *graves_find(const struct graves *graves, const struct member_id *id) {
    return find(graves, id);
}

/* Those behind it close up, so that none is looked for across a gap (Knuth volume 3, 6.4, algorithm R). */
static void empty_slot(struct graves *graves, size_t gap) {
    size_t mask = graves->slot_count - 1;
    for (size_t at = (gap + 1) & mask; is_used(&graves->slots[at]); at = (at + 1) & mask) {
        size_t home = home_of(graves, &graves->slots[at].id);
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        graves->slots[gap] = graves->slots[at];
        gap = at;
    }
    graves->slots[gap].epoch = 0;
    graves->count--;
}

void graves_remove(struct graves *graves, const struct member_id *id) {
    struct grave *slot = find(graves, id);
    if (slot) empty_slot(graves, (size_t)(slot - graves->slots));
}

static bool grow(struct graves *graves) {
    if (graves->slot_count > 0 && graves->count < graves->slot_count / 4 * 3) return true;
    struct graves grown = {.count = graves->count, .slot_count = graves->slot_count ? graves->slot_count * 2 : 16};
    grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
    if (!grown.slots) return false;
    for (size_t i = 0; i < graves->slot_count; i++)
        if (is_used(&graves->slots[i])) grown.slots[slot_of(&grown, &graves->slots[i].id)] = graves->slots[i];
    free(graves->slots);
    *graves = grown;
    return true;
}

/* Those that are old enough; when all are young, the oldest. */
static void make_room(struct graves *graves, uint64_t now_ms) {
    size_t oldest = SIZE_MAX;
    for (size_t i = 0; i < graves->slot_count;) {
        struct grave *slot = &graves->slots[i];
        if (is_used(slot) && now_ms - slot->made_ms > GRAVES_KEEP_MS) {
            empty_slot(graves, i); /* another may have come here */
            continue;
        }
        if (is_used(slot) && (oldest == SIZE_MAX || slot->made_ms < graves->slots[oldest].made_ms)) oldest = i;
        i++;
    }
    if (graves->count >= GRAVES_MAX) empty_slot(graves, oldest);
}

static void raise(struct grave *grave, const struct grave *other) {
    bool higher =
        other->epoch > grave->epoch || (other->epoch == grave->epoch && other->incarnation > grave->incarnation);
    uint64_t sequence = other->epoch > grave->epoch         ? other->sequence
                        : other->epoch < grave->epoch       ? grave->sequence
                        : other->sequence > grave->sequence ? other->sequence
                                                            : grave->sequence;
    if (higher) {
        grave->epoch = other->epoch;
        grave->incarnation = other->incarnation;
    }
    grave->sequence = sequence;
    grave->made_ms = other->made_ms;
}

bool graves_put(struct graves *graves, const struct grave *grave) {
    struct grave *known = find(graves, &grave->id);
    if (known) {
        raise(known, grave);
        return true;
    }
    if (graves->count >= GRAVES_MAX) make_room(graves, grave->made_ms);
    if (!grow(graves)) return false;
    graves->slots[slot_of(graves, &grave->id)] = *grave;
    graves->count++;
    return true;
}
