#include "tools/simulate/measure.h"

#include "tools/simulate/memory.h"
#include "tools/simulate/world.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_MAX 512u           /* followed at a time; more are made, and not followed */
#define CHANGE_US (120 * AGENDA_S) /* then what is missing is missing */
#define DEATHS_MAX 64u
#define DEATH_US (300 * AGENDA_S)
#define REACHED_US (15 * AGENDA_S) /* a death soon after a fault is no false one: the fault may be why */
#define AGAIN_US (60 * AGENDA_S)
#define RINGS_MAX 16u /* that are waited for; others are not measured */

/* Who is still waited for: a bit for each broker. */
struct waiting {
    bool used;
    uint32_t owner, left;
    uint64_t key, since_us;
    bool active;
    uint64_t *bits;
};

/* A key ring that not all use yet. */
struct given {
    uint32_t ring; /* of issuer.h; 0: none */
    uint64_t since_us;
};

struct measure {
    struct result result;
    struct given rings[RINGS_MAX];
    uint32_t words;
    struct waiting changes[CHANGES_MAX], deaths[DEATHS_MAX];
    size_t change_top;      /* those below may be used */
    uint64_t *false_us;     /* by broker: when it was last called down falsely */
    uint64_t heal_since_us; /* UINT64_MAX: nobody waits for a healing */
    uint64_t idle_from_us, idle_to_us, load_from_us;
    uint64_t idle_bytes, idle_datagrams, load_bytes;
    uint64_t last_poll_us;
    uint64_t starting; /* brokers that started late and do not agree yet */
};

static size_t heap_in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

struct measure *measure_new(const struct world *world) {
    struct measure *measure = memory_new(1, sizeof *measure);
    measure->words = (world->broker_max + 63) / 64;
    for (size_t i = 0; i < CHANGES_MAX; i++)
        measure->changes[i].bits = memory_new(measure->words, sizeof(uint64_t));
    for (size_t i = 0; i < DEATHS_MAX; i++)
        measure->deaths[i].bits = memory_new(measure->words, sizeof(uint64_t));
    measure->false_us = memory_new(world->broker_max, sizeof *measure->false_us);
    measure->heal_since_us = measure->idle_from_us = measure->idle_to_us = measure->load_from_us = UINT64_MAX;
    measure->result.formed_us = measure->result.settled_us = UINT64_MAX;
    return measure;
}

void measure_free(struct measure *measure) {
    if (!measure) return;
    for (size_t i = 0; i < CHANGES_MAX; i++)
        free(measure->changes[i].bits);
    for (size_t i = 0; i < DEATHS_MAX; i++)
        free(measure->deaths[i].bits);
    free(measure->false_us);
    free(measure);
}

struct result *measure_result(struct measure *measure) {
    return &measure->result;
}

/* ---- waiting for everybody ---- */

static void begin(struct world *world, struct waiting *waiting, const struct broker *owner, uint64_t key, bool active) {
    memset(waiting->bits, 0, world->measure->words * sizeof *waiting->bits);
    waiting->used = true;
    waiting->owner = owner->index;
    waiting->key = key;
    waiting->active = active;
    waiting->since_us = world_now_us(world);
    waiting->left = 0;
    for (uint32_t i = 0; i < world->broker_count; i++) {
        const struct broker *broker = &world->brokers[i];
        if (broker == owner || !broker_is_well(world, broker) || broker->joined_us == UINT64_MAX) continue;
        if (!network_reaches(world->network, owner->index, i) || !network_reaches(world->network, i, owner->index))
            continue;
        waiting->bits[i / 64] |= (uint64_t)1 << (i % 64);
        waiting->left++;
    }
    if (waiting->left == 0) waiting->used = false;
}

/* True if it was waited for. */
static bool strike(struct waiting *waiting, uint32_t broker) {
    uint64_t bit = (uint64_t)1 << (broker % 64);
    if (!waiting->used || !(waiting->bits[broker / 64] & bit)) return false;
    waiting->bits[broker / 64] &= ~bit;
    waiting->left--;
    return true;
}

void measure_change(struct world *world, struct broker *owner, uint64_t row_hash, bool active) {
    struct measure *measure = world->measure;
    for (size_t i = 0; i < CHANGES_MAX; i++) {
        if (measure->changes[i].used) continue;
        begin(world, &measure->changes[i], owner, row_hash, active);
        if (measure->changes[i].used) measure->result.changes++;
        if (i >= measure->change_top) measure->change_top = i + 1;
        return;
    }
}

static void on_row(struct world *world, struct broker *viewer, const struct gossip_event *event) {
    struct measure *measure = world->measure;
    if (measure->change_top == 0 || viewer->sort != SORT_HONEST) return;
    uint64_t hash = truth_row_hash(event->row_kind, event->filter, event->filter_size);
    for (size_t i = 0; i < measure->change_top; i++) {
        struct waiting *change = &measure->changes[i];
        if (change->key != hash || change->active != event->active || !strike(change, viewer->index)) continue;
        uint64_t took = world_now_us(world) - change->since_us;
        tally_add(&measure->result.know, took);
        if (change->left > 0) continue;
        tally_add(&measure->result.know_last, took);
        change->used = false;
    }
    while (measure->change_top > 0 && !measure->changes[measure->change_top - 1].used)
        measure->change_top--;
}

static void note_false_death(struct world *world, const struct broker *viewer, const struct broker *dead) {
    struct measure *measure = world->measure;
    uint64_t now = world_now_us(world);
    if (!broker_is_well(world, viewer) || !broker_runs(dead) || dead->sort != SORT_HONEST) return;
    if (world->trouble_count > 0 && now < world->last_trouble_us + REACHED_US) return;
    if (!network_reaches(world->network, viewer->index, dead->index) ||
        !network_reaches(world->network, dead->index, viewer->index))
        return;
    if (!broker_is_well(world, dead)) {
        measure->result.slow_deaths++;
        return;
    }
    measure->result.false_deaths++;
    if (measure->false_us[dead->index] == 0 || now - measure->false_us[dead->index] > AGAIN_US) {
        measure->result.false_death_brokers++;
        measure->false_us[dead->index] = now;
    }
}

void measure_event(struct world *world, struct broker *viewer, const struct gossip_event *event) {
    struct measure *measure = world->measure;
    if (event->kind == GOSSIP_ROW) {
        on_row(world, viewer, event);
        return;
    }
    if (event->kind != GOSSIP_MEMBER || event->state != MEMBER_DOWN || viewer->sort != SORT_HONEST) return;
    uint32_t identity = world_identity(world, &event->id);
    if (identity >= world->broker_count) return;
    for (size_t i = 0; i < DEATHS_MAX; i++) {
        struct waiting *death = &measure->deaths[i];
        if (death->owner != identity || !strike(death, viewer->index)) continue;
        uint64_t took = world_now_us(world) - death->since_us;
        tally_add(&measure->result.detect, took);
        if (death->left > 0) continue;
        tally_add(&measure->result.detect_last, took);
        death->used = false;
    }
    note_false_death(world, viewer, world_owner(world, identity));
}

/* ---- brokers come and go ---- */

void measure_start(struct world *world, struct broker *broker) {
    struct measure *measure = world->measure;
    broker->bytes_at_start = network_bytes_received(world->network, broker->index);
    if (broker->sort == SORT_HONEST) measure->starting++;
    for (size_t i = 0; i < DEATHS_MAX; i++) /* who has not noticed yet need not any more */
        if (measure->deaths[i].used && measure->deaths[i].owner == broker->index) measure->deaths[i].used = false;
}

static void drop_changes_of(struct measure *measure, uint32_t broker) {
    for (size_t i = 0; i < measure->change_top; i++) {
        struct waiting *change = &measure->changes[i];
        strike(change, broker);
        if (change->used && (change->owner == broker || change->left == 0)) change->used = false;
    }
}

void measure_stop(struct world *world, struct broker *broker) {
    struct measure *measure = world->measure;
    bool crashed = !broker->leaving && broker->sort == SORT_HONEST && broker->joined_us != UINT64_MAX;
    drop_changes_of(measure, broker->index);
    if (broker->sort == SORT_HONEST && broker->joined_us == UINT64_MAX) measure->starting--;
    for (size_t i = 0; i < DEATHS_MAX; i++) {
        strike(&measure->deaths[i], broker->index);
        if (measure->deaths[i].left == 0) measure->deaths[i].used = false;
    }
    for (size_t i = 0; crashed && i < DEATHS_MAX; i++) {
        if (measure->deaths[i].used) continue;
        begin(world, &measure->deaths[i], broker, 0, true);
        if (measure->deaths[i].used) measure->result.crashes++;
        return;
    }
}

void measure_healed(struct world *world) {
    world->measure->heal_since_us = world_now_us(world);
}

void measure_trouble(struct world *world) {
    world->last_trouble_us = world_now_us(world);
    world->measure->result.faults++;
    world->measure->heal_since_us = UINT64_MAX; /* what comes now is not only the healing */
}

void measure_ring_given(struct world *world, uint32_t ring) {
    struct given *rings = world->measure->rings;
    for (size_t i = 0; i < RINGS_MAX; i++) {
        if (rings[i].ring != 0) continue;
        rings[i] = (struct given){ring, world_now_us(world)};
        return;
    }
}

/* ---- now and then ---- */

/* It, or a later one. */
static bool all_use(const struct world *world, uint32_t ring) {
    for (uint32_t i = 0; i < world->broker_count; i++) {
        const struct broker *broker = &world->brokers[i];
        bool runs = broker_runs(broker) && !broker->older && broker->frozen_us <= world_now_us(world);
        if (runs && issuer_order(world->issuer, broker->ring, ring) < 0) return false;
    }
    return true;
}

static void follow_rings(struct world *world) {
    for (size_t i = 0; i < RINGS_MAX; i++) {
        struct given *given = &world->measure->rings[i];
        if (given->ring == 0 || !all_use(world, given->ring)) continue;
        tally_add(&world->measure->result.rings, world_now_us(world) - given->since_us);
        given->ring = 0;
    }
}

static uint64_t all_bytes(const struct world *world, uint64_t *datagrams) {
    struct network_counters counters;
    network_read_counters(world->network, &counters);
    if (datagrams) *datagrams = counters.datagrams;
    return counters.bytes;
}

void measure_load_begins(struct world *world) {
    struct measure *measure = world->measure;
    measure->load_from_us = world_now_us(world);
    measure->load_bytes = all_bytes(world, NULL);
}

/* The quiet time at the beginning, and then the load. */
static void follow_phases(struct world *world, bool agrees) {
    struct measure *measure = world->measure;
    uint64_t now = world_now_us(world);
    bool all_started = now > world->plan->start_us;
    if (agrees && all_started && measure->result.formed_us == UINT64_MAX) {
        measure->result.formed_us = now;
        measure->idle_from_us = now + world->plan->idle_us / 3;
        world->load_us = now + world->plan->idle_us;
        for (uint32_t i = 0; world->plan->load.change_us > 0 && i < world->broker_count; i++)
            agenda_push(&world->agenda, world->load_us + dice_wait(&world->load_dice, world->plan->load.change_us),
                        EVENT_CHANGE, i);
    }
    if (measure->idle_bytes == 0 && now >= measure->idle_from_us) {
        measure->idle_from_us = now;
        measure->idle_bytes = all_bytes(world, &measure->idle_datagrams);
    }
    if (now < world->load_us || measure->load_from_us != UINT64_MAX) return;
    if (measure->idle_bytes > 0 && now > measure->idle_from_us) {
        double per = (double)(now - measure->idle_from_us) / 1e6 * world->broker_count;
        uint64_t datagrams, bytes = all_bytes(world, &datagrams);
        measure->result.idle_bytes_per_s = (double)(bytes - measure->idle_bytes) / per;
        measure->result.idle_datagrams_per_s = (double)(datagrams - measure->idle_datagrams) / per;
    }
    measure_load_begins(world);
}

static void follow_joins(struct world *world, bool agrees) {
    struct measure *measure = world->measure;
    uint64_t now = world_now_us(world);
    if (measure->starting == 0 || (!agrees && world->broker_count > 64)) return;
    for (uint32_t i = 0; i < world->broker_count; i++) {
        struct broker *broker = &world->brokers[i];
        if (!broker_runs(broker) || broker->joined_us != UINT64_MAX || !agrees) continue;
        broker->joined_us = now;
        measure->starting--;
        if (measure->result.formed_us == UINT64_MAX || broker->starts == 1) continue;
        tally_add(&measure->result.join, now - broker->started_us);
        tally_add(&measure->result.join_bytes,
                  network_bytes_received(world->network, broker->index) - broker->bytes_at_start);
    }
}

static void forget_old(struct world *world) {
    struct measure *measure = world->measure;
    uint64_t now = world_now_us(world);
    for (size_t i = 0; i < measure->change_top; i++) {
        struct waiting *change = &measure->changes[i];
        if (!change->used || now - change->since_us < CHANGE_US) continue;
        change->used = false;
        measure->result.changes_incomplete++;
    }
    for (size_t i = 0; i < DEATHS_MAX; i++)
        if (measure->deaths[i].used && now - measure->deaths[i].since_us > DEATH_US) measure->deaths[i].used = false;
}

void measure_poll(struct world *world, bool agrees) {
    struct measure *measure = world->measure;
    uint64_t now = world_now_us(world), well = 0;
    for (uint32_t i = 0; i < world->broker_count; i++)
        well += broker_is_well(world, &world->brokers[i]);
    measure->result.broker_hours += (double)well * (double)(now - measure->last_poll_us) / 3.6e9;
    measure->last_poll_us = now;
    follow_joins(world, agrees);
    follow_phases(world, agrees);
    follow_rings(world);
    if (agrees && measure->heal_since_us != UINT64_MAX) {
        tally_add(&measure->result.heal, now - measure->heal_since_us);
        measure->heal_since_us = UINT64_MAX;
    }
    forget_old(world);
}

/* What the brokers hold is what the heap loses with them. */
static void weigh(struct world *world) {
    size_t before = heap_in_use();
    double running = 0;
    for (uint32_t i = 0; i < world->broker_max; i++) {
        struct broker *broker = &world->brokers[i];
        if (!broker->node) continue;
        running += broker_runs(broker);
        broker->strategy->destroy(broker->node);
        broker->node = NULL;
    }
    if (running > 1) world->measure->result.bytes_per_member = (double)(before - heap_in_use()) / (running * running);
}

void measure_end(struct world *world) {
    struct measure *measure = world->measure;
    struct result *result = &measure->result;
    uint64_t now = world_now_us(world);
    result->simulated_us = now;
    result->events = world->events;
    result->bytes = all_bytes(world, &result->datagrams);
    result->trace_hash = world->trace_hash;
    if (measure->load_from_us < now)
        result->steady_bytes_per_s = (double)(result->bytes - measure->load_bytes) /
                                     ((double)(now - measure->load_from_us) / 1e6 * world->broker_count);
    for (uint32_t i = 0; i < world->broker_count; i++) {
        const struct broker *broker = &world->brokers[i];
        struct gossip_counters counters;
        if (!broker->node) continue;
        broker->strategy->read_counters(broker->node, &counters);
        result->suspicions += counters.suspicions;
        result->refutations += counters.refutations;
    }
    weigh(world);
}
