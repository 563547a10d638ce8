/* Seeded chance (xoshiro256**, Blackman and Vigna 2018). Each user has a stream of its own, so that a fault drawn in
 * one place does not change what is drawn in another. */
#ifndef SIM_DICE_H
#define SIM_DICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dice {
    uint64_t state[4];
};

/* The same seed and stream name give the same numbers. */
void dice_init(struct dice *dice, uint64_t seed, const char *stream);
uint64_t dice_next(struct dice *dice);
/* 0 to bound - 1; 0 for a bound of 0. */
uint64_t dice_below(struct dice *dice, uint64_t bound);
/* True in ppm of a million cases. */
bool dice_ppm(struct dice *dice, uint32_t ppm);
void dice_bytes(struct dice *dice, uint8_t *bytes, size_t size);

#endif
