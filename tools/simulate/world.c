#include "tools/simulate/world.h"

#include "tools/simulate/memory.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define POLL_US (100 * AGENDA_MS)
#define LARGE_PAGES_FROM 200u      /* brokers */
#define RESOLVE_US (30 * AGENDA_S) /* as the daemon does */

/* ---- who is who ---- */

static uint32_t slot_of(const struct world *world, const struct member_id *id) {
    uint32_t first;
    memcpy(&first, id->bytes, sizeof first);
    return first & world->id_mask;
}

uint32_t world_identity(const struct world *world, const struct member_id *id) {
    for (uint32_t slot = slot_of(world, id); world->ids[slot] != 0; slot = (slot + 1) & world->id_mask) {
        uint32_t identity = world->ids[slot] - 1;
        if (memcmp(&world->id_of[identity], id, sizeof *id) == 0) return identity;
    }
    return UINT32_MAX;
}

static void make_ids(struct world *world) {
    uint32_t size = 64;
    while (size < 2 * world->broker_max)
        size *= 2;
    world->ids = memory_new(size, sizeof *world->ids);
    world->id_mask = size - 1;
    world->id_of = memory_new(world->broker_max, sizeof *world->id_of);
    for (uint32_t identity = 0; identity < world->broker_max; identity++) {
        struct standin standin;
        standin_init(&standin, &world->crypto, identity);
        world->id_of[identity] = standin_id(standin.public_key);
        uint32_t slot = slot_of(world, &world->id_of[identity]);
        while (world->ids[slot] != 0)
            slot = (slot + 1) & world->id_mask;
        world->ids[slot] = identity + 1;
    }
}

/* ---- what is said ---- */

void world_trace(struct world *world, const struct broker *broker, const char *format, ...) {
    if (!world->trace) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(world->trace, "%12.6f %-12s ", (double)world_now_us(world) / 1e6, broker ? broker->name : "");
    vfprintf(world->trace, format, arguments);
    fputc('\n', world->trace);
    va_end(arguments);
}

void world_break(struct world *world, const char *format, ...) {
    if (world->why[0] != '\0') return;
    char what[WORLD_WHY_MAX - 32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    snprintf(world->why, sizeof world->why, "at %.3f s: %s", (double)world_now_us(world) / 1e6, what);
    world_trace(world, NULL, "BROKEN %s", world->why);
}

/* ---- beginning and end ---- */

static void make_broker(struct world *world, uint32_t index) {
    const struct plan *plan = world->plan;
    struct broker *broker = &world->brokers[index];
    broker->index = broker->identity = index;
    broker->strategy = world->strategy;
    broker->tick_us = broker->joined_us = UINT64_MAX;
    standin_init(&broker->crypto, &world->crypto, index);
    broker->drift_ppm =
        (int32_t)dice_between(&world->dice, 0, 2 * (uint64_t)plan->drift_ppm) - (int32_t)plan->drift_ppm;
    if (index >= world->broker_count) return;
    broker->used = true;
    broker->site = plan_site_of(plan, index);
    plan_broker_name(plan, index, broker->name);
    network_place(world->network, index, broker->site, plan->sites[broker->site].nat);
    for (uint32_t i = 0; i < plan->load.publishers + plan->load.subscribers; i++) {
        broker->rows = memory_room(broker->rows, &broker->row_room, broker->row_count + 1, sizeof *broker->rows);
        broker->rows[broker->row_count++] =
            (struct wanted_row){i < plan->load.publishers ? GOSSIP_NEWPUB : GOSSIP_NEWSUB, broker->rows_made++};
    }
    if (dice_chance(&world->dice, plan->slow_share)) broker->slow_us = plan->slow_us;
    uint64_t at = index < plan->bootstrap_count ? 0 : dice_below(&world->dice, plan->start_us + 1);
    agenda_push(&world->agenda, at, EVENT_START, index);
    agenda_push(&world->agenda, at + RESOLVE_US, EVENT_RESOLVE, index);
}

struct world *world_new(const struct plan *plan, const struct strategy *strategy, FILE *trace, enum sabotage sabotage) {
    struct world *world = memory_new(1, sizeof *world);
    world->plan = plan;
    world->strategy = strategy ? strategy : &strategy_hobnob;
    world->trace = trace;
    world->sabotage = sabotage;
    world->broker_count = plan->broker_count;
    world->broker_max = plan->broker_count + WORLD_STRANGERS_MAX;
    world->load_us = UINT64_MAX;
    dice_init(&world->dice, plan->seed, "world");
    dice_init(&world->chaos_dice, plan->seed, "chaos");
    dice_init(&world->load_dice, plan->seed, "load");
    world->crypto = (struct standin_world){dice_next(&world->dice), &world->agenda.now_us};
    if (world->broker_count > WORLD_MANY) memory_without_holes();
    world->truth = truth_new();
    world->shared = plan->alone ? NULL : gossip_shared_new();
    if (!world->shared && !plan->alone) memory_is_short();
    world->network = network_new(plan, &world->agenda, plan->seed, world->broker_max, EVENT_ARRIVAL);
    world->channels = channels_new();
    world->links = links_new();
    world->issuer = issuer_new(world);
    if (world->strategy->common_new) world->common = world->strategy->common_new();
    world->brokers = memory_new(world->broker_max, sizeof *world->brokers);
    make_ids(world);
    for (uint32_t i = 0; i < world->broker_max; i++)
        make_broker(world, i);
    world->measure = measure_new(world);
    agenda_push(&world->agenda, POLL_US, EVENT_POLL, 0);
    faults_begin(world);
    return world;
}

void world_free(struct world *world) {
    if (!world) return;
    for (uint32_t i = 0; i < world->broker_max; i++) {
        struct broker *broker = &world->brokers[i];
        if (broker->node) broker->strategy->destroy(broker->node);
        hostile_end(broker);
        free(broker->rows);
        free(broker->watch);
    }
    gossip_shared_free(world->shared);
    channels_free(world->channels);
    links_free(world->links);
    issuer_free(world->issuer);
    if (world->strategy->common_free) world->strategy->common_free(world->common);
    measure_free(world->measure);
    truth_free(world->truth);
    network_free(world->network);
    agenda_free(&world->agenda);
    free(world->brokers);
    free(world->troubles);
    free(world->ids);
    free(world->id_of);
    free(world);
}

/* ---- agreement ---- */

static bool counts(const struct broker *broker) {
    return broker->sort == SORT_HONEST && broker_runs(broker);
}

bool world_agrees(const struct world *world) {
    const struct broker *first = NULL;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < world->broker_count; i++) {
        const struct broker *broker = &world->brokers[i];
        if (!counts(broker)) continue;
        uint64_t its = broker->strategy->table_hash(broker->node);
        if (world->sabotage == SABOTAGE_DISAGREE && i == 1) its++;
        if (first && its != hash) return false;
        first = first ? first : broker;
        hash = its;
    }
    /* A table with nobody else in it agrees with nobody. */
    return first != NULL;
}

/* All end on one ring, and know it of each other. */
static bool shares_ring(const struct world *world, const struct broker *viewer, const struct member_info *own,
                        const struct broker *owner, char why[WORLD_WHY_MAX]) {
    struct gossip *core = viewer->strategy->core(viewer->node);
    struct member_info seen;
    bool found = gossip_member_find(core, broker_now_ms(world, viewer), &world->id_of[owner->identity], &seen);
    if (found && seen.ring == own->ring && memcmp(seen.ring_mark, own->ring_mark, sizeof own->ring_mark) == 0 &&
        viewer->ring == owner->ring)
        return true;
    snprintf(why, WORLD_WHY_MAX, "P22: %s uses ring %llu and sees %s with ring %llu, which keeps ring %llu",
             viewer->name, (unsigned long long)own->ring, owner->name, (unsigned long long)(found ? seen.ring : 0),
             (unsigned long long)issuer_number(world->issuer, owner->ring));
    return false;
}

static bool sees_truly(const struct world *world, const struct broker *viewer, const struct member_info *own,
                       const struct broker *owner, char why[WORLD_WHY_MAX]) {
    static const char *const states[] = {"unverified", "alive", "suspect", "down", "left"};
    struct gossip_inspected held = {0};
    uint64_t rows_hash = 0;
    bool known = gossip_inspect_find(viewer->strategy->core(viewer->node), &world->id_of[owner->identity], &held);
    if (!counts(owner)) {
        if (!known || !held.visible) return true;
        snprintf(why, WORLD_WHY_MAX, "%s still shows %s, which does not run", viewer->name, owner->name);
        return false;
    }
    if (!known || !held.visible) {
        snprintf(why, WORLD_WHY_MAX, "%s sees %s %s, which is alive", viewer->name, owner->name,
                 known ? states[held.state] : "not at all");
        return false;
    }
    bool found = truth_find(world->truth, owner->identity, held.log_epoch, held.sequence, held.chain, &rows_hash);
    if (held.epoch == author_epoch(owner->author) && held.sequence == author_sequence(owner->author) && found &&
        rows_hash == author_rows_hash(owner->author))
        return shares_ring(world, viewer, own, owner, why);
    snprintf(why, WORLD_WHY_MAX,
             "%s holds %s at epoch %llu, sequence %llu%s (%zu entries above %llu), and the owner is at epoch %llu, "
             "sequence %llu",
             viewer->name, owner->name, (unsigned long long)held.epoch, (unsigned long long)held.sequence,
             found ? "" : ", a state it never had", held.log_count, (unsigned long long)held.base_sequence,
             (unsigned long long)author_epoch(owner->author), (unsigned long long)author_sequence(owner->author));
    return false;
}

static bool sees_all_truly(const struct world *world, const struct broker *viewer, char why[WORLD_WHY_MAX]) {
    struct member_info own = {0};
    (void)gossip_member_at(viewer->strategy->core(viewer->node), broker_now_ms(world, viewer), 0, &own);
    for (uint32_t i = 0; i < world->broker_count; i++)
        if (i != viewer->index && !sees_truly(world, viewer, &own, &world->brokers[i], why)) return false;
    return true;
}

bool world_is_true(struct world *world, char why[WORLD_WHY_MAX]) {
    for (uint32_t i = 0; world->strategy->core && i < world->broker_count; i++)
        if (counts(&world->brokers[i]) && !sees_all_truly(world, &world->brokers[i], why)) return false;
    if (world_agrees(world)) return true;
    snprintf(why, WORLD_WHY_MAX, "the tables of the brokers differ");
    return false;
}

/* ---- the loop ---- */

static void poll(struct world *world) {
    measure_poll(world, world_agrees(world));
    invariants_poll(world);
    links_poll(world);
    if (world->broker_count >= LARGE_PAGES_FROM) memory_in_large_pages(&world->heap_end);
    agenda_push(&world->agenda, world_now_us(world) + POLL_US, EVENT_POLL, 0);
}

static void happen(struct world *world, const struct agenda_entry *entry) {
    struct broker *broker = entry->which < world->broker_max ? &world->brokers[entry->which] : NULL;
    world->events++;
    switch ((enum world_event)entry->kind) {
    case EVENT_ARRIVAL: broker_receive(world, entry->which); break;
    case EVENT_FRAME: channels_on_event(world, entry->which); break;
    case EVENT_LINK: links_on_event(world, entry->which); break;
    case EVENT_TICK:
        if (entry->at_us == broker->tick_us) broker_tick(world, broker);
        break;
    case EVENT_START:
        if (!broker->node && !broker->away) broker_start(world, broker, DISK_KEPT);
        break;
    case EVENT_CHANGE: broker_change(world, broker); break;
    case EVENT_RESOLVE:
        broker_resolve(world, broker);
        agenda_push(&world->agenda, world_now_us(world) + RESOLVE_US, EVENT_RESOLVE, entry->which);
        break;
    case EVENT_HOSTILE: hostile_act(world, broker); break;
    case EVENT_POLL: poll(world); break;
    default: faults_on_event(world, entry);
    }
}

#define PROGRESS_EVENTS 65536u

static bool run_until(struct world *world, uint64_t until_us, bool (*done)(struct world *world),
                      world_on_progress *progress, void *context) {
    struct agenda_entry entry;
    while (world->why[0] == '\0' && agenda_pop(&world->agenda, until_us, &entry)) {
        ahead_fetch(world);
        happen(world, &entry);
        if (progress && world->events % PROGRESS_EVENTS == 0) progress(context, world);
        if (done && entry.kind == EVENT_POLL && done(world)) return true;
    }
    return false;
}

static bool is_settled(struct world *world) {
    char why[WORLD_WHY_MAX];
    return world_agrees(world) && world_is_true(world, why);
}

bool world_run(struct world *world, world_on_progress *progress, void *context) {
    const struct plan *plan = world->plan;
    run_until(world, plan->duration_us, NULL, progress, context);
    world->quiet = true;
    uint64_t ended_us = world_now_us(world);
    if (world->why[0] == '\0') faults_end_all(world);
    if (plan->calms) network_calm(world->network);
    if (world->why[0] == '\0' && run_until(world, ended_us + plan->settle_us, is_settled, progress, context))
        measure_result(world->measure)->settled_us = world_now_us(world) - ended_us;
    else if (world->why[0] == '\0') {
        char why[WORLD_WHY_MAX - 96] = "", full[WORLD_WHY_MAX];
        world_is_true(world, full);
        memcpy(why, full, sizeof why - 1);
        world_break(world, "liveness: %.0f s after the last fault %s", (double)plan->settle_us / 1e6, why);
    }
    measure_end(world);
    return world->why[0] == '\0';
}
