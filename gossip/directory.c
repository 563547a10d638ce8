#include "gossip/directory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int compare(const struct directory_slot *slot, struct directory_ids ids, uint32_t prefix,
                   const struct member_id *id) {
    if (slot->prefix != prefix) return slot->prefix < prefix ? -1 : 1;
    return memcmp(ids.id_of(ids.context, slot->number - 1), id, sizeof *id);
}

/* The first place, from its home on, that is empty or holds this id or a larger one. */
static size_t seek(const struct directory *directory, struct directory_ids ids, const struct member_id *id,
                   int *order) {
    uint32_t prefix = id_prefix(id);
    size_t at = directory_home(directory, prefix);
    *order = 1;
    for (; at < directory->room && directory->slots[at].number != 0; at++) {
        *order = compare(&directory->slots[at], ids, prefix, id);
        if (*order >= 0) return at;
    }
    *order = 1;
    return at;
}

uint32_t directory_find(const struct directory *directory, struct directory_ids ids, const struct member_id *id) {
    int order;
    size_t at = seek(directory, ids, id, &order);
    return order == 0 ? directory->slots[at].number - 1 : DIRECTORY_NOBODY;
}

/* At least one empty place behind all that are taken. */
static bool lengthen(struct directory *directory) {
    if (directory->room > 0 && directory->slots[directory->room - 1].number == 0) return true;
    size_t room = directory->room + 8;
    struct directory_slot *slots = realloc(directory->slots, room * sizeof *slots);
    if (!slots) return false;
    memset(slots + directory->room, 0, (room - directory->room) * sizeof *slots);
    directory->slots = slots;
    directory->room = room;
    return true;
}

/* Where each falls, in order. Returns the end; writes only when there are slots to write to. */
static size_t spread(const struct directory *from, struct directory *to) {
    size_t next = 0;
    for (size_t i = 0; i < from->room; i++) {
        if (from->slots[i].number == 0) continue;
        size_t at = directory_home(to, from->slots[i].prefix);
        at = at > next ? at : next;
        if (to->slots) to->slots[at] = from->slots[i];
        next = at + 1;
    }
    return next;
}

/* At most four fifths are taken, so that runs stay short. */
static bool widen(struct directory *directory) {
    if (directory->count < directory->size / 5 * 4) return lengthen(directory);
    struct directory wider = {.size = directory->size + directory->size / 4 + 10, .count = directory->count};
    size_t end = spread(directory, &wider);
    wider.room = (end > wider.size ? end : wider.size) + 8;
    wider.slots = calloc(wider.room, sizeof *wider.slots);
    if (!wider.slots) return false;
    spread(directory, &wider);
    free(directory->slots);
    *directory = wider;
    return true;
}

bool directory_add(struct directory *directory, struct directory_ids ids, const struct member_id *id, uint32_t number) {
    if (!widen(directory)) return false;
    int order;
    size_t at = seek(directory, ids, id, &order), end = at;
    assert(order != 0);
    while (directory->slots[end].number != 0)
        end++;
    memmove(directory->slots + at + 1, directory->slots + at, (end - at) * sizeof *directory->slots);
    directory->slots[at] = (struct directory_slot){id_prefix(id), number + 1};
    directory->count++;
    return true;
}

void directory_remove(struct directory *directory, struct directory_ids ids, const struct member_id *id) {
    int order;
    size_t at = seek(directory, ids, id, &order), end = at + 1;
    assert(order == 0);
    /* Those behind move down, as far as they are not at home. */
    while (end < directory->room && directory->slots[end].number != 0 &&
           directory_home(directory, directory->slots[end].prefix) < end)
        end++;
    memmove(directory->slots + at, directory->slots + at + 1, (end - at - 1) * sizeof *directory->slots);
    directory->slots[end - 1] = (struct directory_slot){0};
    directory->count--;
}

uint32_t directory_after(const struct directory *directory, struct directory_ids ids, const struct member_id *id) {
    size_t place = directory_place_after(directory, ids, id);
    return directory_next(directory, &place);
}

size_t directory_place_after(const struct directory *directory, struct directory_ids ids, const struct member_id *id) {
    int order;
    size_t at = seek(directory, ids, id, &order);
    return at + (order == 0);
}

uint32_t directory_next(const struct directory *directory, size_t *place) {
    while (*place < directory->room)
        if (directory->slots[(*place)++].number != 0) return directory->slots[*place - 1].number - 1;
    return DIRECTORY_NOBODY;
}

uint32_t directory_previous(const struct directory *directory, size_t *place) {
    while (*place > 0)
        if (directory->slots[--*place].number != 0) return directory->slots[*place].number - 1;
    return DIRECTORY_NOBODY;
}

void directory_free(struct directory *directory) {
    free(directory->slots);
    *directory = (struct directory){0};
}
