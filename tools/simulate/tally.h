/* Many numbers, kept as counts: any share of them to within 1.6 %, in constant memory. */
#ifndef SIMULATE_TALLY_H
#define SIMULATE_TALLY_H

#include <stdint.h>

#define TALLY_STEPS 64u /* of each doubling */
#define TALLY_BUCKETS (TALLY_STEPS * 40u)

struct tally {
    uint64_t count, max, sum;
    uint32_t buckets[TALLY_BUCKETS];
};

void tally_add(struct tally *tally, uint64_t value);
/* The value that this share (0 to 1) of all does not pass; 0 when there are none. */
uint64_t tally_at(const struct tally *tally, double share);

#endif
