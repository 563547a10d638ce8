#include "tools/simulate/cost.h"

#include <sys/resource.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct cost cost_now(void) {
    return (struct cost){seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

struct cost cost_since(const struct cost *begun) {
    struct cost now = cost_now();
    return (struct cost){now.wall_s - begun->wall_s, now.cpu_s - begun->cpu_s};
}

double cost_resident_max(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : 0;
}
