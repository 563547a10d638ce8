/* A federation to be simulated, from YAML. All faults of the file are named at once, each "FILE:LINE: what is wrong;
 * what to write". examples/simulate has files to begin with, hobnob(1) lists the keys. */
#ifndef SIMULATE_PLAN_READ_H
#define SIMULATE_PLAN_READ_H

#include "tools/simulate/plan.h"

#define PLAN_COMPLAINTS_MAX 50u

struct plan_complaint {
    int line; /* 0: of the whole file */
    char text[400];
};

struct plan_complaints {
    size_t count;
    struct plan_complaint items[PLAN_COMPLAINTS_MAX];
};

/* False when there are complaints; the plan is then to be freed all the same. */
bool plan_parse(struct plan *plan, const char *text, size_t size, struct plan_complaints *complaints);
bool plan_read(struct plan *plan, const char *path, struct plan_complaints *complaints);

#endif
