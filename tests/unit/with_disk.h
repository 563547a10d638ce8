/* Two brokers of peers.h, A and B, of which B has a disk: it can die and begin again with what is there. */
#ifndef TESTS_UNIT_WITH_DISK_H
#define TESTS_UNIT_WITH_DISK_H

#include "joined.h"

#include "tests/sim/disk.h"

enum { A, B };

struct pair {
    struct world *world;
    struct client *says; /* at A */
    struct disk *disk;   /* of B */
};

struct pair_restoring {
    struct broker *broker;
    uint64_t now_ms;
};

static inline void pair_restore_one(void *context, const struct record *record) {
    const struct pair_restoring *restoring = context;
    broker_restore(restoring->broker, restoring->now_ms, record);
}

static inline void pair_restore(struct broker *broker, uint64_t now_ms, void *context) {
    struct pair_restoring restoring = {broker, now_ms};
    uint64_t first_number = disk_read(context, pair_restore_one, &restoring);
    assert_true(broker_restored(broker, now_ms, first_number));
}

/* What B has said so far is on its disk. */
static inline void commit(struct pair *pair) {
    struct broker *broker = pair->world->sites[B].broker;
    struct broker_journal journal;
    while (broker_take_journal(broker, &journal)) {
        disk_commit(pair->disk, journal.bytes, journal.size);
        free(journal.bytes);
        broker_durable(broker, pair->world->now_ms, journal.last);
    }
    world_settle(pair->world);
}

/* Time passes, and the disk is quick. */
static inline void run(struct pair *pair, uint64_t ms) {
    world_run(pair->world, ms);
    commit(pair);
}

/* queue_bytes: limits.link_queue_bytes at A; 0: the default. */
static inline struct pair pair_new(uint64_t queue_bytes) {
    struct pair pair = {.world = world_of(2), .disk = disk_new()};
    struct site *site = &pair.world->sites[B];
    pair.world->sites[A].limits.link_queue_bytes = queue_bytes;
    site->durable = true;
    site->restore = pair_restore;
    site->restore_context = pair.disk;
    assert_true(world_start(pair.world));
    pair.says = client_connect(pair.world, A);
    return pair;
}

static inline void pair_end(struct pair *pair) {
    char why[DISK_WHY];
    if (!disk_is_sound(pair->disk, why)) fail_msg("%s", why);
    end(pair->world);
    disk_free(pair->disk);
}

/* The client of "cz" at B, whose session is kept or made. */
static inline struct client *come_back(struct pair *pair) {
    struct client *hears = client_connect_as(pair->world, B, 'z', false);
    run(pair, 1000);
    run(pair, 1000);
    return hears;
}

/* B is no more, and what was not on its disk neither. */
static inline void die(struct pair *pair) {
    broker_free(pair->world->sites[B].broker);
    pair->world->sites[B].broker = NULL;
    world_cut(pair->world, A, B);
}

static inline struct link_info link_at_a(struct pair *pair) {
    return world_link(pair->world, A, B);
}

#endif
