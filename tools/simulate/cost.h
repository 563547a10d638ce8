/* What a run costs the machine that it runs on. The one place of the simulator that knows real time; nothing that is
 * simulated depends on it. */
#ifndef SIMULATE_COST_H
#define SIMULATE_COST_H

/* On a machine with other work the first is longer than the second. */
struct cost {
    double wall_s, cpu_s;
};

/* So far. */
struct cost cost_now(void);
struct cost cost_since(const struct cost *begun);
/* Bytes that the process has had in memory at most. */
double cost_resident_max(void);

#endif
