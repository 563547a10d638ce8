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

void agenda_push(struct agenda *agenda, uint64_t at_us, uint32_t kind, uint32_t which) {
    agenda->entries = memory_room(agenda->entries, &agenda->room, agenda->count + 1, sizeof *agenda->entries);
    struct agenda_entry entry = {at_us > agenda->now_us ? at_us : agenda->now_us, agenda->pushed++, kind, which};
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

bool agenda_pop(struct agenda *agenda, uint64_t until_us, struct agenda_entry *out) {
    if (agenda->count == 0 || agenda->entries[0].at_us > until_us) {
        agenda->now_us = until_us > agenda->now_us ? until_us : agenda->now_us;
        return false;
    }
    *out = agenda->entries[0];
    take_first(agenda);
    agenda->now_us = out->at_us;
    return true;
}
