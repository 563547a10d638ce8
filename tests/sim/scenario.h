/* Scenarios: each is a fact about worlds, named after it. */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include "tests/sim/checks.h"

/* One run of a scenario, in a world of its own. */
struct run {
    uint64_t seed;
    unsigned variant; /* 0 to scenario.variants - 1 */
    char failure[CHECKS_WHY + 200];
};

struct scenario {
    const char *name;
    bool (*play)(struct run *run, struct world *world); /* true if the fact holds; else run->failure says why not */
    unsigned variants;                                  /* 0 is 1 */
    void (*adjust)(struct world_options *options);      /* before the world is made; may be NULL */
};

extern const struct scenario scenarios_delivery[], scenarios_links[], scenarios_faults[], scenarios_gossip[],
    scenarios_datagrams[], scenarios_share[], scenarios_trust[], scenarios_disk[],
    scenarios_hostile[]; /* ended by an entry without name */
extern const struct scenario scenario_random, scenario_random_hostile;

/* Fails the run and returns false. */
bool run_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) return run_fail(run, __VA_ARGS__);                                                           \
    } while (0)

/* Until all brokers agree and all clients are idle, at most max_ms; fails the run otherwise. */
bool run_settle(struct run *run, struct world *world, uint64_t max_ms);
/* What every scenario ends with: the checks of checks.h that hold whatever happened, and delivery of what was sent
 * since from_us. */
bool run_verify(struct run *run, struct world *world, uint64_t from_us, enum checks_repeats repeats);
/* The variant-th order of 0, 1, 2. */
const size_t *run_order(unsigned variant);

#endif
