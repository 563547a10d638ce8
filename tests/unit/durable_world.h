/* A broker whose journal goes into a model of the store, and that can die and begin again with what is there. */
#ifndef TESTS_UNIT_DURABLE_WORLD_H
#define TESTS_UNIT_DURABLE_WORLD_H

#include "model_store.h"

#define FOR_EVER "11 ff ff ff ff"
#define AN_HOUR "11 00 00 0e 10"

static int64_t wall_offset_ms; /* of the run under way */

HELPER void set_wall(struct world *world, int64_t offset_ms) {
    wall_offset_ms = offset_ms;
    broker_set_wall_offset(world->broker, offset_ms);
}

HELPER void world_durable(struct world *world) {
    *world = (struct world){.now = 1000000000, .options.durable = true};
    world_begin(world);
    set_wall(world, 1700000000000);
}

/* The records made so far reach the disk. */
HELPER void disk(struct world *world, struct model_store *store) {
    struct broker_journal journal;

    while (broker_take_journal(world->broker, &journal)) {
        model_apply_journal(store, &journal);
        free(journal.bytes);
        broker_durable(world->broker, world->now, journal.last);
    }
}

/* The broker dies, and another begins after away_ms, by a monotonic clock of its own. */
HELPER void restart(struct world *world, const struct model_store *store, uint64_t away_ms) {
    uint64_t wall = (uint64_t)wall_offset_ms + world->now + away_ms;

    broker_free(world->broker);
    world->now = 5000000000;
    world->options.epoch++;
    world->broker = broker_new(&world->options, world->now);
    assert_non_null(world->broker);
    set_wall(world, (int64_t)(wall - world->now));
    model_restore(store, world->broker, world->now);
}

HELPER void connect_for(struct world *world, struct model_store *store, struct client *client,
                        const struct connect *connect, const char *expected) {
    client_open(world, client, 5);
    say_connect(client, connect);
    disk(world, store);
    expect(client, expected);
}

HELPER void connect_lasting(struct world *world, struct model_store *store, struct client *client, const char *id,
                            const char *expected) {
    connect_for(world, store, client, &(struct connect){.id = id, .resume = true, .properties = FOR_EVER}, expected);
}

#endif
