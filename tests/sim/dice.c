#include "tests/sim/dice.h"

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
    for (size_t i = 0; i < 4; i++)
        dice->state[i] = splitmix(&state);
}

static uint64_t rotate(uint64_t x, unsigned by) {
    return (x << by) | (x >> (64 - by));
}

uint64_t dice_next(struct dice *dice) {
    uint64_t *s = dice->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t dice_below(struct dice *dice, uint64_t bound) {
    return bound == 0 ? 0 : dice_next(dice) % bound;
}

bool dice_ppm(struct dice *dice, uint32_t ppm) {
    return ppm != 0 && dice_below(dice, 1000000) < ppm;
}

void dice_bytes(struct dice *dice, uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(dice_next(dice) >> 32);
}
