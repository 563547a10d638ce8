#include "tests/sim/scenario.h"

#include <stdarg.h>

#define TICKS_PER_S_MAX 400u

bool run_fail(struct run *run, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->failure, sizeof run->failure, format, arguments);
    va_end(arguments);
    return false;
}

static bool settled(struct world *world, void *why) {
    if (!checks_clients_idle(world)) {
        snprintf(why, CHECKS_WHY, "a client is not connected or waits for an answer");
        return false;
    }
    return checks_registry_agrees(world, why);
}

bool run_settle(struct run *run, struct world *world, uint64_t max_ms) {
    char why[CHECKS_WHY] = "";
    bool good = world_run_until(world, max_ms, settled, why);
    if (!good) checks_trace_members(world);
    CHECK(good, "not settled after %llu ms (now %llu): %s", (unsigned long long)max_ms,
          (unsigned long long)world_now_ms(world), why);
    return true;
}

bool run_verify(struct run *run, struct world *world, uint64_t from_us, enum checks_repeats repeats) {
    char why[CHECKS_WHY] = "";
    CHECK(checks_never(world, why) && checks_survival(world, why) && checks_delivery(world, from_us, repeats, why) &&
              checks_order(world, why) && checks_acknowledged(world, why) && checks_calm(world, TICKS_PER_S_MAX, why) &&
              checks_ledgers(world, why),
          "%s", why);
    return true;
}

const size_t *run_order(unsigned variant) {
    static const size_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    return orders[variant % 6];
}
