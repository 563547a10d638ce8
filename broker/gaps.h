/* Numbers of one peer that were passed over, so that one that comes after all is told from one that comes again.
 *
 * An honest peer leaves no gap, so few are remembered: what comes late out of one that was forgotten is taken for a
 * repetition.
 */
#ifndef BROKER_GAPS_H
#define BROKER_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GAPS_MAX = 8 };

struct gap {
    uint64_t first, end;
};

/* All zero at first. */
struct gaps {
    uint64_t stream; /* of the numbering they are in */
    size_t count;
    struct gap gaps[GAPS_MAX]; /* the one to be forgotten next first */
};

/* first to end - 1 were passed over; those of an earlier numbering are forgotten. */
void gaps_add(struct gaps *gaps, uint64_t stream, uint64_t first, uint64_t end);
/* True, once, if the number was passed over. */
bool gaps_take(struct gaps *gaps, uint64_t stream, uint64_t sequence);

#endif
