/* Two brokers of peers.h, A and B. One that has a disk can die and begin again with what is there. */
#ifndef TESTS_UNIT_WITH_DISK_H
#define TESTS_UNIT_WITH_DISK_H

#include "joined.h"

#include "tests/sim/disk.h"

struct pair {
    struct world *world;
    struct client *says;   /* at A */
    struct client *hears;  /* at B; the test's */
    struct disk *disks[2]; /* NULL: it has none */
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

/* What this one has said so far is on its disk. */
static inline void commit_at(struct pair *pair, int index) {
    struct broker *broker = pair->world->sites[index].broker;
    struct broker_journal journal;
    while (broker && pair->disks[index] && broker_take_journal(broker, &journal)) {
        disk_commit(pair->disks[index], journal.bytes, journal.size);
        free(journal.bytes);
        broker_durable(broker, pair->world->now_ms, journal.last);
    }
    world_settle(pair->world);
}

static inline void commit(struct pair *pair) {
    commit_at(pair, A);
    commit_at(pair, B);
}

/* Time passes, and the disks are quick. */
static inline void run(struct pair *pair, uint64_t ms) {
    world_run(pair->world, ms);
    commit(pair);
}

static inline void pair_give_disk(struct pair *pair, int index) {
    struct site *site = &pair->world->sites[index];
    site->durable = true;
    site->restore = pair_restore;
    site->restore_context = pair->disks[index] = disk_new();
}

/* B has a disk, and A too or not. queue_bytes: limits.link_queue_bytes at A; 0: the default. */
static inline struct pair pair_with(bool both, uint64_t queue_bytes) {
    struct pair pair = {.world = world_of(2)};
    pair.world->sites[A].limits.link_queue_bytes = queue_bytes;
    pair_give_disk(&pair, B);
    if (both) pair_give_disk(&pair, A);
    assert_true(world_start(pair.world));
    pair.says = client_connect(pair.world, A);
    return pair;
}

static inline struct pair pair_new(uint64_t queue_bytes) {
    return pair_with(false, queue_bytes);
}

static inline void pair_end(struct pair *pair) {
    char why[DISK_WHY];
    for (int i = 0; i < 2; i++)
        if (pair->disks[i] && !disk_is_sound(pair->disks[i], why)) fail_msg("%s", why);
    end(pair->world);
    disk_free(pair->disks[A]);
    disk_free(pair->disks[B]);
}

/* The client of "cz" at B, whose session is kept or made. */
static inline struct client *come_back(struct pair *pair) {
    struct client *hears = client_connect_as(pair->world, B, 'z', false);
    run(pair, 1000);
    run(pair, 1000);
    return hears;
}

/* It is no more, and what was not on its disk neither. */
static inline void die_at(struct pair *pair, int index) {
    broker_free(pair->world->sites[index].broker);
    pair->world->sites[index].broker = NULL;
    world_cut(pair->world, A, B);
}

static inline void die(struct pair *pair) {
    die_at(pair, B);
}

static inline struct link_info link_at_a(struct pair *pair) {
    return world_link(pair->world, A, B);
}

/* Each holds the other dead. */
static inline void part(struct pair *pair) {
    struct world *world = pair->world;
    world->apart[A][B] = world->apart[B][A] = true;
    world_cut(world, A, B);
    broker_peer_gone(world->sites[A].broker, world->now_ms, &world->sites[B].id);
    broker_peer_gone(world->sites[B].broker, world->now_ms, &world->sites[A].id);
    run(pair, 1000);
}

static inline void meet(struct pair *pair) {
    struct world *world = pair->world;
    world->apart[A][B] = world->apart[B][A] = false;
    world_meet(world);
    run(pair, 29000);
    run(pair, 1000); /* what the disks had to keep first */
}

static inline void expect_sequence(const struct client *hears, const char *const *payloads, int count) {
    assert_int_equal(hears->received_count, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(hears->received[i].payload, payloads[i]);
}

#endif
