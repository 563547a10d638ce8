/* Seeded chance (xoshiro256**, Blackman and Vigna 2018). Each user has a stream of its own, so that what is drawn in
 * one place does not change what is drawn in another. */
#ifndef SIMULATE_DICE_H
#define SIMULATE_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state[4];
};

/* The same seed and stream name give the same numbers. */
void dice_init(struct dice *dice, uint64_t seed, const char *stream);

static inline uint64_t dice_next(struct dice *dice) {
    uint64_t *s = dice->state;
    uint64_t rotated = s[1] * 5;
    uint64_t result = ((rotated << 7) | (rotated >> 57)) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* 0 to bound - 1; 0 for a bound of 0. */
static inline uint64_t dice_below(struct dice *dice, uint64_t bound) {
    return bound == 0 ? 0 : dice_next(dice) % bound;
}

/* 0 up to, but not, 1. */
static inline double dice_real(struct dice *dice) {
    return (double)(dice_next(dice) >> 11) * 0x1p-53;
}

static inline bool dice_chance(struct dice *dice, double probability) {
    return probability > 0 && dice_real(dice) < probability;
}

/* least to most, each as likely as any other. */
uint64_t dice_between(struct dice *dice, uint64_t least, uint64_t most);
/* least to most, each order of magnitude as likely as any other. least over 0. */
uint64_t dice_magnitude(struct dice *dice, uint64_t least, uint64_t most);
/* Until the next of what happens once per mean, at any time as likely as at any other (exponential). */
uint64_t dice_wait(struct dice *dice, uint64_t mean);

#endif
