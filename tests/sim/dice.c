#include "tests/sim/dice.h"

bool dice_ppm(struct dice *dice, uint32_t ppm) {
    return ppm != 0 && dice_below(dice, 1000000) < ppm;
}

void dice_bytes(struct dice *dice, uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(dice_next(dice) >> 32);
}
