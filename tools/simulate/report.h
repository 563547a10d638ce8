/* What a run found, for people and for programs. */
#ifndef SIMULATE_REPORT_H
#define SIMULATE_REPORT_H

#include "tools/simulate/measure.h"
#include "tools/simulate/plan.h"

/* why: what broke; empty when all held. Both return false when memory is short. */
bool report_print(const struct plan *plan, const struct result *result, const char *why);
bool report_print_json(const struct plan *plan, const char *strategy, const struct result *result, const char *why);

/* 12 ms, 3.4 s, 2.0 min: a time as people read it. */
void report_time(uint64_t us, char out[24]);

#endif
