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

struct agenda {
    struct agenda_entry *entries; /* a heap with four children a node: the earliest is entries[0] */
    size_t count, room;
    uint64_t now_us, pushed;
};

void agenda_free(struct agenda *agenda);
/* A time that is over means now. */
void agenda_push(struct agenda *agenda, uint64_t at_us, uint32_t kind, uint32_t which);
/* The earliest, if it is not later than until_us, and moves the clock to it; else moves the clock to until_us and
 * returns false. */
bool agenda_pop(struct agenda *agenda, uint64_t until_us, struct agenda_entry *out);

#endif
