#include "tools/simulate/dice.h"

#include <math.h>

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void dice_init(struct dice *dice, uint64_t seed, const char *stream) {
    uint64_t state = seed;
    for (const char *c = stream; *c != '\0'; c++)
        state = splitmix(&state) ^ (uint8_t)*c;
    for (int i = 0; i < 4; i++)
        dice->state[i] = splitmix(&state);
}

uint64_t dice_between(struct dice *dice, uint64_t least, uint64_t most) {
    return most <= least ? least : least + dice_below(dice, most - least + 1);
}

uint64_t dice_magnitude(struct dice *dice, uint64_t least, uint64_t most) {
    if (most <= least) return least;
    double drawn = (double)least * pow((double)most / (double)least, dice_real(dice));
    return (uint64_t)drawn;
}

uint64_t dice_wait(struct dice *dice, uint64_t mean) {
    return (uint64_t)(-log(1.0 - dice_real(dice)) * (double)mean) + 1;
}
