/* Worlds of peers.h in the states that tests begin with. */
#ifndef TESTS_UNIT_JOINED_H
#define TESTS_UNIT_JOINED_H

#include "ledgers.h"

/* Sites, by their places. */
enum { A, B, C };

static inline struct world *world_of(int sites) {
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world_init(world, sites);
    return world;
}

static inline void end(struct world *world) {
    ledgers_add_up(world);
    world_free(world);
    free(world);
}

static inline struct world *started(int sites) {
    struct world *world = world_of(sites);
    assert_true(world_start(world));
    world_settle(world);
    return world;
}

/* A and B with B joined to "t" at A. link_idle_ms: 0 for the default. */
static inline struct world *joined_idle(struct client **says, struct client **hears, uint32_t link_idle_ms) {
    struct world *world = world_of(2);
    world->sites[0].limits.link_idle_ms = world->sites[1].limits.link_idle_ms = link_idle_ms;
    assert_true(world_start(world));
    *says = client_connect(world, 0);
    *hears = client_connect(world, 1);
    client_subscribe(world, *hears, "t", 2);
    world_settle(world);
    client_publish(world, *says, "t", "warm", 0, false);
    world_run(world, 200);
    assert_int_equal(client_got(*hears, "warm"), 1);
    return world;
}

static inline struct world *joined(struct client **says, struct client **hears) {
    return joined_idle(says, hears, 0);
}

#endif
