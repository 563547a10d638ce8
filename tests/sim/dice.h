/* The dice of hobnob simulate, and what only these tests draw with them. */
#ifndef SIM_DICE_H
#define SIM_DICE_H

#include <stddef.h>

#include "tools/simulate/dice.h"

/* True in ppm of a million cases. */
bool dice_ppm(struct dice *dice, uint32_t ppm);
void dice_bytes(struct dice *dice, uint8_t *bytes, size_t size);

#endif
