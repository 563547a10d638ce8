#include "tools/simulate/strategy.h"

#include <string.h>

static const struct strategy *const strategies[] = {&strategy_hobnob, &strategy_memberlist,
                                                    &strategy_memberlist_joining};

const struct strategy *strategy_at(size_t index) {
    return index < sizeof strategies / sizeof *strategies ? strategies[index] : NULL;
}

const struct strategy *strategy_find(const char *name) {
    const struct strategy *strategy;
    for (size_t i = 0; (strategy = strategy_at(i)) != NULL; i++)
        if (strcmp(strategy->name, name) == 0) return strategy;
    return NULL;
}
