/* How long a datagram is on its way: log-normal around a median, drawn from a table made once. */
#ifndef SIMULATE_DELAY_H
#define SIMULATE_DELAY_H

#include "tools/simulate/dice.h"

#define DELAY_STEPS 1024u

struct delay {
    uint32_t median_us, jitter_us;
    uint32_t us[DELAY_STEPS];
};

void delay_init(struct delay *delay, uint32_t median_us, uint32_t jitter_us);

static inline uint32_t delay_draw(const struct delay *delay, struct dice *dice) {
    return delay->us[dice_next(dice) >> 54];
}

#endif
