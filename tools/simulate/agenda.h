/* What is still to happen, by time. Virtual time in microseconds: nothing else in the simulator knows what time it is.
 *
 * Entries of the same microsecond come out in the order in which they went in, so a run is a pure function of its seed.
 * Entries are values in one array: nothing is allocated for one, and they are never taken back. Whoever no longer wants
 * an entry passes over it when it comes.
 */
#ifndef SIMULATE_AGENDA_H
#define SIMULATE_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENDA_MS ((uint64_t)1000)
#define AGENDA_S (1000 * AGENDA_MS)

struct agenda_entry {
    uint64_t at_us, order;
    uint32_t kind, which; /* the user's */
};

#define AGENDA_SOON 16u

struct agenda {
    struct agenda_entry soon[AGENDA_SOON]; /* the earliest, in order, from soon_first on, round and round */
    uint32_t soon_first, soon_count;
    struct agenda_entry *entries; /* the others: a heap with four children a node, entries[0] is the earliest of it */
    size_t count, room;
    uint64_t now_us, pushed;
};

void agenda_free(struct agenda *agenda);
/* A time that is over means now. */
void agenda_push(struct agenda *agenda, uint64_t at_us, uint32_t kind, uint32_t which);
/* The earliest, if it is not later than until_us, and moves the clock to it; else moves the clock to until_us and
 * returns false. */
bool agenda_pop(struct agenda *agenda, uint64_t until_us, struct agenda_entry *out);
/* What comes so many entries after the next one, if nothing is put before it; NULL: that is not known. At least
 * AGENDA_SOON - 2 are known while there are as many. */
static inline const struct agenda_entry *agenda_soon(const struct agenda *agenda, uint32_t after) {
    return after < agenda->soon_count ? &agenda->soon[(agenda->soon_first + after) % AGENDA_SOON] : NULL;
}

#endif
