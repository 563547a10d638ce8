/* A small federation in which everything goes wrong, drawn from a seed: 5 to 8 brokers at one to three sites, bad
 * weather, and all faults. What hobnob simulate runs without a file. */
#ifndef SIMULATE_PLAN_DRAW_H
#define SIMULATE_PLAN_DRAW_H

#include "tools/simulate/plan.h"

void plan_draw(struct plan *plan, uint64_t seed);

#endif
