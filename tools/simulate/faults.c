/* What goes wrong: by the plan's schedule, or drawn at the plan's rates. A fault that lasts becomes a trouble, which
 * ends by itself or with the chaos. */
#include "tools/simulate/world.h"

#include "tools/simulate/memory.h"

#include <stdlib.h>
#include <string.h>

#define STALL_EVERY_US AGENDA_S
#define HOSTILE_EVERY_US (50 * AGENDA_MS)
#define LOSS_DEFAULT 0.3
#define MTU_DEFAULT 576u
#define ROTATE_DEFAULT_US (10 * AGENDA_S) /* from one step to the next */

/* ---- whom it happens to ---- */

static bool is_target(const struct world *world, const struct broker *broker, const struct plan_fault *fault) {
    if (fault->site != PLAN_ANY && broker->site != fault->site) return false;
    bool runs = broker->node && !broker->leaving && !broker->away;
    switch (fault->kind) {
    case FAULT_PAUSE:
    case FAULT_STALL: return runs && broker->frozen_us <= world_now_us(world);
    case FAULT_SLOW: return runs && broker->slow_us == 0;
    case FAULT_OLD: return runs && !broker->older;
    case FAULT_BLOCKED: return runs && !broker->blocked;
    case FAULT_ROTATE: return runs && !broker->older && broker->frozen_us <= world_now_us(world);
    case FAULT_MOVE: return true;
    default: return runs;
    }
}

static struct broker *draw_target(struct world *world, const struct plan_fault *fault) {
    if (fault->broker != PLAN_ANY) {
        struct broker *broker = &world->brokers[fault->broker];
        return is_target(world, broker, fault) ? broker : NULL;
    }
    uint32_t start = (uint32_t)dice_below(&world->chaos_dice, world->broker_count);
    for (uint32_t i = 0; i < world->broker_count; i++) {
        struct broker *broker = &world->brokers[(start + i) % world->broker_count];
        if (is_target(world, broker, fault)) return broker;
    }
    return NULL;
}

static size_t new_trouble(struct world *world, const struct plan_fault *fault, const struct broker *broker) {
    size_t at = 0;
    while (at < world->trouble_count && world->troubles[at].active)
        at++;
    if (at == world->trouble_count) {
        world->troubles = memory_room(world->troubles, &world->trouble_room, at + 1, sizeof *world->troubles);
        world->trouble_count++;
    }
    world->troubles[at] = (struct trouble){.active = true,
                                           .fault = *fault,
                                           .broker = broker ? broker->index : PLAN_ANY,
                                           .cut = NETWORK_CUTS_MAX,
                                           .number = ++world->troubles_made};
    return at;
}

static void ends_later(struct world *world, size_t trouble) {
    const struct plan_fault *fault = &world->troubles[trouble].fault;
    if (fault->for_us == PLAN_NEVER) return;
    agenda_push(&world->agenda, world_now_us(world) + fault->for_us, EVENT_TROUBLE, world->troubles[trouble].number);
}

/* By its number, since its place may be another's by then; SIZE_MAX when it is over. */
static size_t find_trouble(const struct world *world, uint32_t number) {
    for (size_t i = 0; i < world->trouble_count; i++)
        if (world->troubles[i].active && world->troubles[i].number == number) return i;
    return SIZE_MAX;
}

/* ---- partitions ---- */

static void draw_sides(struct world *world, const struct plan_fault *fault, uint8_t *sides) {
    uint32_t parts = fault->shape == SHAPE_THIRDS ? 3 : 2, count = world->broker_max;
    uint32_t alone =
        fault->broker != PLAN_ANY ? fault->broker : (uint32_t)dice_below(&world->chaos_dice, world->broker_count);
    uint32_t turn = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct broker *broker = &world->brokers[i];
        switch (fault->shape) {
        case SHAPE_ONE: sides[i] = i == alone ? 0 : 1; break;
        case SHAPE_SITES:
            sides[i] = 1;
            for (uint32_t j = 0; j < fault->site_count; j++)
                if (broker->site == fault->sites[j]) sides[i] = 0;
            break;
        default: sides[i] = (uint8_t)(turn++ % parts);
        }
    }
    if (fault->shape != SHAPE_HALF && fault->shape != SHAPE_THIRDS) return;
    for (uint32_t i = world->broker_count; i > 1; i--) { /* equal parts, of anybody */
        uint32_t other = (uint32_t)dice_below(&world->chaos_dice, i);
        uint8_t side = sides[i - 1];
        sides[i - 1] = sides[other];
        sides[other] = side;
    }
}

static void begin_partition(struct world *world, const struct plan_fault *fault) {
    uint8_t *sides = memory_new(world->broker_max, 1);
    draw_sides(world, fault, sides);
    uint32_t ring_size = fault->shape == SHAPE_RING ? world->broker_count : 0;
    uint32_t cut = network_cut(world->network, sides, fault->one_way, ring_size);
    free(sides);
    if (cut == NETWORK_CUTS_MAX) return;
    size_t trouble = new_trouble(world, fault, NULL);
    world->troubles[trouble].cut = cut;
    world->troubles[trouble].cut_on = true;
    ends_later(world, trouble);
    if (fault->flap_us > 0)
        agenda_push(&world->agenda, world_now_us(world) + fault->flap_us, EVENT_FLAP, world->troubles[trouble].number);
}

static void flap(struct world *world, uint32_t number) {
    size_t at = find_trouble(world, number);
    if (at == SIZE_MAX) return;
    struct trouble *trouble = &world->troubles[at];
    trouble->cut_on = !trouble->cut_on;
    network_cut_active(world->network, trouble->cut, trouble->cut_on);
    world->last_trouble_us = world_now_us(world);
    agenda_push(&world->agenda, world_now_us(world) + trouble->fault.flap_us, EVENT_FLAP, number);
}

/* ---- the network ---- */

/* Everything to and from the fault's site, or everything. */
static void set_weather(struct world *world, const struct plan_fault *fault, bool on) {
    uint32_t count = world->plan->site_count;
    double loss = on ? (fault->share > 0 ? fault->share : LOSS_DEFAULT) : 0;
    uint32_t mtu = on ? (fault->amount_us > 0 ? (uint32_t)fault->amount_us : MTU_DEFAULT) : 0;
    for (uint32_t from = 0; from < count; from++) {
        for (uint32_t to = 0; to < count; to++) {
            bool out = fault->site == PLAN_ANY || from == fault->site,
                 in = fault->site == PLAN_ANY || to == fault->site;
            if (!out && (!in || fault->one_way)) continue;
            if (fault->kind == FAULT_LOSS) network_set_loss(world->network, from, to, loss);
            if (fault->kind == FAULT_MTU) network_set_mtu(world->network, from, to, mtu);
        }
    }
}

/* ---- brokers ---- */

static void stall(struct world *world, uint32_t number) {
    size_t at = find_trouble(world, number);
    if (at == SIZE_MAX) return;
    struct trouble *trouble = &world->troubles[at];
    struct broker *broker = &world->brokers[trouble->broker];
    broker->frozen_us = world_now_us(world) + trouble->fault.amount_us;
    agenda_push(&world->agenda, broker->frozen_us + dice_wait(&world->chaos_dice, STALL_EVERY_US), EVENT_STALL, number);
}

static void move(struct world *world, struct broker *broker) {
    network_move(world->network, broker->index);
    if (!broker->node) return;
    /* The daemon finds out by what its peers see; its bootstrap is resolved again in its own time. */
    world_trace(world, broker, "has another address");
}

static bool begin_stranger(struct world *world, const struct plan_fault *fault, struct broker *original) {
    static const enum broker_sort sorts[FAULT_COUNT] = {
        [FAULT_CLONE] = SORT_CLONE, [FAULT_FOREIGN] = SORT_FOREIGN, [FAULT_HOSTILE] = SORT_HOSTILE};
    uint32_t site = original
                        ? original->site
                        : (fault->site != PLAN_ANY ? fault->site
                                                   : (uint32_t)dice_below(&world->chaos_dice, world->plan->site_count));
    struct broker *stranger = broker_stranger(world, sorts[fault->kind], site);
    if (!stranger) return false;
    stranger->epoch = 0;
    if (original) {
        stranger->identity = original->identity;
        stranger->crypto = original->crypto;
        stranger->crypto.on_signed = NULL;
        stranger->ring = original->ring;
        stranger->epoch = original->epoch; /* its disk was copied too, and raises the epoch as the original did */
        memcpy(stranger->name, original->name, sizeof stranger->name);
    }
    broker_start(world, stranger, DISK_KEPT);
    if (fault->kind == FAULT_HOSTILE) {
        hostile_begin(world, stranger);
        agenda_push(&world->agenda, world_now_us(world) + HOSTILE_EVERY_US, EVENT_HOSTILE, stranger->index);
    }
    size_t trouble = new_trouble(world, fault, stranger);
    ends_later(world, trouble);
    return true;
}

/* An admin finds a broker that runs, or tries again. */
static void rotate(struct world *world, uint32_t number) {
    size_t at = find_trouble(world, number);
    if (at == SIZE_MAX || !world->strategy->core) return;
    struct trouble *trouble = &world->troubles[at];
    const struct plan_fault *fault = &trouble->fault;
    struct broker *broker = draw_target(world, fault), *second = NULL;
    for (uint32_t i = 0; broker && fault->count > 1 && i < world->broker_count && !second; i++)
        if (&world->brokers[i] != broker && is_target(world, &world->brokers[i], fault)) second = &world->brokers[i];
    if (broker) {
        trouble->steps--;
        world->last_trouble_us = world_now_us(world);
        issuer_act(world, fault->at_once ? ISSUER_BEGINS_ANEW : ISSUER_GOES_ON, broker, second);
    }
    if (world->troubles[at].steps == 0) /* they may have moved */
        world->troubles[at].active = false;
    else
        agenda_push(&world->agenda, world_now_us(world) + (fault->amount_us > 0 ? fault->amount_us : ROTATE_DEFAULT_US),
                    EVENT_ROTATE, number);
}

static void begin_rotation(struct world *world, const struct plan_fault *fault) {
    size_t trouble = new_trouble(world, fault, NULL);
    world->troubles[trouble].steps = fault->at_once ? 1 : ISSUER_STEPS;
    rotate(world, world->troubles[trouble].number);
}

static void restart_as(struct world *world, struct broker *broker, bool older) {
    broker_stop(world, broker);
    broker->older = older;
    broker_start(world, broker, DISK_KEPT);
}

/* False: nobody is there to whom it could happen. */
static bool begin_at(struct world *world, const struct plan_fault *fault, struct broker *broker) {
    size_t trouble;
    switch (fault->kind) {
    case FAULT_CRASH:
        broker_stop(world, broker);
        broker->away = true;
        break;
    case FAULT_LEAVE:
        broker->leaving = broker->away = true;
        broker->strategy->leave(broker->node, broker_now_ms(world, broker));
        broker_touched(world, broker);
        break;
    case FAULT_PAUSE: broker->frozen_us = world_now_us(world) + fault->for_us; return true;
    case FAULT_STALL:
        trouble = new_trouble(world, fault, broker);
        ends_later(world, trouble);
        stall(world, world->troubles[trouble].number);
        return true;
    case FAULT_SLOW: broker->slow_us = fault->amount_us; break;
    case FAULT_CLOCK: broker->crypto.wall_offset_ms += fault->jump_ms; return true;
    case FAULT_MOVE: move(world, broker); return true;
    case FAULT_CLONE: return begin_stranger(world, fault, broker);
    case FAULT_OLD: restart_as(world, broker, true); break;
    case FAULT_BLOCKED: broker->blocked = true; break;
    default: return false;
    }
    ends_later(world, new_trouble(world, fault, broker));
    return true;
}

static bool needs_broker(enum fault_kind kind) {
    return kind <= FAULT_OLD || kind == FAULT_BLOCKED;
}

static void begin(struct world *world, const struct plan_fault *fault) {
    uint32_t count = fault->count > 0 ? fault->count : 1;
    measure_trouble(world);
    for (uint32_t i = 0; needs_broker(fault->kind) && i < count; i++) {
        struct broker *broker = draw_target(world, fault);
        if (!broker) return;
        world_trace(world, broker, "fault: %s", fault_name(fault->kind));
        begin_at(world, fault, broker);
    }
    if (needs_broker(fault->kind)) return;
    world_trace(world, NULL, "fault: %s", fault_name(fault->kind));
    switch (fault->kind) {
    case FAULT_PARTITION: begin_partition(world, fault); break;
    case FAULT_ROTATE: begin_rotation(world, fault); break;
    case FAULT_LOSS:
    case FAULT_MTU:
        set_weather(world, fault, true);
        ends_later(world, new_trouble(world, fault, NULL));
        break;
    default: begin_stranger(world, fault, NULL);
    }
}

/* ---- the end of a trouble ---- */

static void come_back(struct world *world, struct broker *broker, enum fault_disk disk) {
    if (broker->node) broker_stop(world, broker); /* it was still leaving */
    broker->away = false;
    broker_start(world, broker, disk);
}

/* It starts as a new one when it comes back. If it is still leaving, it leaves at once. */
static void end_older(struct world *world, struct broker *broker) {
    if (broker->node) broker_stop(world, broker);
    broker->older = false;
}

static void end(struct world *world, size_t at) {
    struct trouble trouble = world->troubles[at];
    struct broker *broker = trouble.broker != PLAN_ANY ? &world->brokers[trouble.broker] : NULL;
    world->troubles[at].active = false;
    world->last_trouble_us = world_now_us(world);
    world_trace(world, broker, "end of: %s", fault_name(trouble.fault.kind));
    switch (trouble.fault.kind) {
    case FAULT_CRASH:
    case FAULT_LEAVE: come_back(world, broker, trouble.fault.disk); break;
    case FAULT_SLOW: broker->slow_us = 0; break;
    case FAULT_BLOCKED: broker->blocked = false; break;
    case FAULT_OLD:
        if (broker->away)
            end_older(world, broker);
        else
            restart_as(world, broker, false);
        break;
    case FAULT_CLONE:
    case FAULT_FOREIGN:
    case FAULT_HOSTILE:
        broker_stop(world, broker);
        hostile_end(broker);
        broker->used = false;
        break;
    case FAULT_PARTITION:
        network_heal(world->network, trouble.cut);
        measure_healed(world);
        break;
    case FAULT_LOSS:
    case FAULT_MTU: set_weather(world, &trouble.fault, false); break;
    default: break;
    }
}

void faults_end_all(struct world *world) {
    for (size_t i = 0; i < world->trouble_count; i++)
        if (world->troubles[i].active) end(world, i);
    for (uint32_t i = 0; i < world->broker_count; i++) {
        struct broker *broker = &world->brokers[i];
        bool was_frozen = broker->frozen_us > world_now_us(world);
        broker->frozen_us = 0;
        if (was_frozen && broker->node) {
            broker->tick_us = world_now_us(world);
            agenda_push(&world->agenda, broker->tick_us, EVENT_TICK, i);
        }
    }
}

/* ---- drawn faults ---- */

static void draw_amounts(struct world *world, struct plan_fault *fault) {
    struct dice *dice = &world->chaos_dice;
    uint64_t longest = world->plan->duration_us / 3;
    fault->for_us = dice_magnitude(dice, AGENDA_S / 2, longest > AGENDA_S ? longest : AGENDA_S);
    fault->shape = (enum fault_shape)dice_below(dice, world->plan->site_count > 1 ? 5 : 4);
    fault->disk = (enum fault_disk)dice_below(dice, 3);
    fault->one_way = dice_below(dice, 4) == 0;
    if (dice_below(dice, 4) == 0) fault->flap_us = dice_magnitude(dice, 500 * AGENDA_MS, 10 * AGENDA_S);
    fault->sites[0] = (uint32_t)dice_below(dice, world->plan->site_count);
    fault->site_count = 1;
    fault->share = dice_real(dice) * 0.6;
    switch (fault->kind) {
    case FAULT_SLOW: fault->amount_us = dice_magnitude(dice, 100 * AGENDA_MS, 10 * AGENDA_S); break;
    case FAULT_STALL: fault->amount_us = dice_magnitude(dice, 100 * AGENDA_MS, 5 * AGENDA_S); break;
    case FAULT_MTU: fault->amount_us = dice_between(dice, 300, 1200); break;
    case FAULT_CLOCK: fault->jump_ms = (int64_t)dice_below(dice, 7200000) - 3600000; break;
    case FAULT_ROTATE:
        fault->amount_us = dice_magnitude(dice, 100 * AGENDA_MS, 10 * AGENDA_S);
        fault->at_once = dice_below(dice, 5) == 0;
        fault->count = dice_below(dice, 5) == 0 ? 2 : 1;
        break;
    default: break;
    }
}

static void draw_next(struct world *world, enum fault_kind kind) {
    uint64_t mean = world->plan->chaos_us[kind];
    if (mean == 0 || world->quiet) return;
    agenda_push(&world->agenda, world_now_us(world) + dice_wait(&world->chaos_dice, mean), EVENT_CHAOS, kind);
}

static void chaos(struct world *world, enum fault_kind kind) {
    if (world->quiet) return;
    struct plan_fault fault = {.kind = kind, .broker = PLAN_ANY, .site = PLAN_ANY};
    draw_amounts(world, &fault);
    begin(world, &fault);
    draw_next(world, kind);
}

/* ---- the schedule ---- */

void faults_begin(struct world *world) {
    for (size_t i = 0; i < world->plan->fault_count; i++)
        agenda_push(&world->agenda, world->plan->faults[i].at_us, EVENT_FAULT, (uint32_t)i);
    for (uint32_t kind = 0; kind < FAULT_COUNT; kind++)
        draw_next(world, (enum fault_kind)kind);
}

static void on_schedule(struct world *world, uint32_t which) {
    const struct plan_fault *fault = &world->plan->faults[which];
    if (world->quiet) return;
    begin(world, fault);
    if (fault->every_us > 0) agenda_push(&world->agenda, world_now_us(world) + fault->every_us, EVENT_FAULT, which);
}

void faults_on_event(struct world *world, const struct agenda_entry *entry) {
    size_t at;
    switch ((enum world_event)entry->kind) {
    case EVENT_FAULT: on_schedule(world, entry->which); break;
    case EVENT_CHAOS: chaos(world, (enum fault_kind)entry->which); break;
    case EVENT_FLAP: flap(world, entry->which); break;
    case EVENT_STALL: stall(world, entry->which); break;
    case EVENT_ROTATE: rotate(world, entry->which); break;
    case EVENT_TROUBLE:
        at = find_trouble(world, entry->which);
        if (at != SIZE_MAX) end(world, at);
        break;
    default: break;
    }
}
