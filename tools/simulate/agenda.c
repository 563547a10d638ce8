#include "tools/simulate/agenda.h"

#include "tools/simulate/memory.h"

#include <stdlib.h>

#define CHILDREN 4u

void agenda_free(struct agenda *agenda) {
    free(agenda->entries);
    *agenda = (struct agenda){0};
}

static bool before(const struct agenda_entry *a, const struct agenda_entry *b) {
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void push_late(struct agenda *agenda, struct agenda_entry entry) {
    agenda->entries = memory_room(agenda->entries, &agenda->room, agenda->count + 1, sizeof *agenda->entries);
    size_t at = agenda->count++;
    while (at > 0 && before(&entry, &agenda->entries[(at - 1) / CHILDREN])) {
        agenda->entries[at] = agenda->entries[(at - 1) / CHILDREN];
        at = (at - 1) / CHILDREN;
    }
    agenda->entries[at] = entry;
}

static void take_first(struct agenda *agenda) {
    struct agenda_entry last = agenda->entries[--agenda->count];
    for (size_t at = 0;;) {
        size_t first = at * CHILDREN + 1, least = first;
        if (first >= agenda->count) {
            agenda->entries[at] = last;
            return;
        }
        size_t end = first + CHILDREN < agenda->count ? first + CHILDREN : agenda->count;
        for (size_t child = first + 1; child < end; child++)
            least = before(&agenda->entries[child], &agenda->entries[least]) ? child : least;
        if (!before(&agenda->entries[least], &last)) {
            agenda->entries[at] = last;
            return;
        }
        agenda->entries[at] = agenda->entries[least];
        at = least;
    }
}

static struct agenda_entry *soon_at(struct agenda *agenda, uint32_t place) {
    return &agenda->soon[(agenda->soon_first + place) % AGENDA_SOON];
}

/* It comes before the last of them. */
static void push_soon(struct agenda *agenda, struct agenda_entry entry) {
    if (agenda->soon_count == AGENDA_SOON) push_late(agenda, *soon_at(agenda, --agenda->soon_count));
    uint32_t place = agenda->soon_count++;
    for (; place > 0 && before(&entry, soon_at(agenda, place - 1)); place--)
        *soon_at(agenda, place) = *soon_at(agenda, place - 1);
    *soon_at(agenda, place) = entry;
}

void agenda_push(struct agenda *agenda, uint64_t at_us, uint32_t kind, uint32_t which) {
    struct agenda_entry entry = {at_us > agenda->now_us ? at_us : agenda->now_us, agenda->pushed++, kind, which};
    if (agenda->soon_count > 0 && before(&entry, soon_at(agenda, agenda->soon_count - 1)))
        push_soon(agenda, entry);
    else
        push_late(agenda, entry);
}

bool agenda_pop(struct agenda *agenda, uint64_t until_us, struct agenda_entry *out) {
    while (agenda->soon_count < AGENDA_SOON && agenda->count > 0) {
        *soon_at(agenda, agenda->soon_count++) = agenda->entries[0];
        take_first(agenda);
    }
    if (agenda->soon_count == 0 || soon_at(agenda, 0)->at_us > until_us) {
        agenda->now_us = until_us > agenda->now_us ? until_us : agenda->now_us;
        return false;
    }
    *out = *soon_at(agenda, 0);
    agenda->soon_first = (agenda->soon_first + 1) % AGENDA_SOON;
    agenda->soon_count--;
    agenda->now_us = out->at_us;
    return true;
}
