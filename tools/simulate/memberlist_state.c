#include "tools/simulate/memberlist_inside.h"

#include "tools/simulate/memory.h"

#include <math.h>

void awareness_add(struct ml *ml, int delta) {
    int score = (int)ml->awareness + delta;
    ml->awareness = score < 0 ? 0 : score < AWARENESS_MAX_MULTIPLIER ? (uint32_t)score : AWARENESS_MAX_MULTIPLIER - 1;
}

/* ---- what is visible ---- */

static bool is_visible(uint8_t state) {
    return state == ML_ALIVE || state == ML_SUSPECT;
}

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t table_part(uint32_t who, const struct known *known) {
    return mix(((uint64_t)who << 32 | known->rows_hash) + 0x9e3779b97f4a7c15u);
}

static void set_state(struct ml *ml, uint32_t who, uint8_t state) {
    static const enum member_state told[] = {MEMBER_DOWN, MEMBER_ALIVE, MEMBER_SUSPECT, MEMBER_DOWN, MEMBER_LEFT};
    struct known *known = ml_known(ml, who);
    if (known->state == state) return;
    if (is_visible(known->state)) ml->rows_hash ^= table_part(who, known);
    if (is_visible(state)) ml->rows_hash ^= table_part(who, known);
    known->state = state;
    known->changed_ms = (uint32_t)ml->now_ms;
    if (who != ml->self) ml_event(ml, who, told[state]);
}

/* ---- suspicion ---- */

static struct suspicion_of *suspicion_find(struct ml *ml, uint32_t who) {
    for (size_t i = 0; i < ml->suspicion_count; i++)
        if (ml->suspicions[i].who == who) return &ml->suspicions[i];
    return NULL;
}

static void suspicion_end(struct ml *ml, uint32_t who) {
    struct suspicion_of *suspicion = suspicion_find(ml, who);
    if (suspicion) *suspicion = ml->suspicions[--ml->suspicion_count];
}

static void suspicion_time(const struct ml *ml, struct suspicion_of *suspicion) {
    double nodes = (double)ml->order_count;
    double least = SUSPICION_MULT * fmax(1, log10(fmax(1, nodes))) * PROBE_INTERVAL_MS;
    double most = SUSPICION_MAX_TIMEOUT_MULT * least, wait = least;
    if (suspicion->k > 0) {
        double part = log((double)suspicion->confirmed + 1) / log((double)suspicion->k + 1);
        wait = fmax(least, most - part * (most - least));
    }
    suspicion->deadline_ms = suspicion->start_ms + (uint64_t)wait;
}

static bool suspicion_confirm(struct ml *ml, struct suspicion_of *suspicion, uint32_t from) {
    if (suspicion->confirmed >= suspicion->k) return false;
    for (uint32_t i = 0; i <= suspicion->confirmed; i++)
        if (suspicion->from[i] == from) return false;
    suspicion->from[++suspicion->confirmed] = from;
    suspicion_time(ml, suspicion);
    return true;
}

static void suspicion_begin(struct ml *ml, uint32_t who, uint32_t from) {
    uint32_t k = SUSPICION_MULT - 2;
    if (ml->order_count < k + 2) k = 0; /* nobody there to confirm */
    ml->suspicions = memory_room(ml->suspicions, &ml->suspicion_room, ml->suspicion_count + 1, sizeof *ml->suspicions);
    struct suspicion_of *suspicion = &ml->suspicions[ml->suspicion_count++];
    *suspicion = (struct suspicion_of){.who = who, .k = k, .from = {from}, .start_ms = ml->now_ms};
    suspicion_time(ml, suspicion);
}

/* ---- messages ---- */

static void refute(struct ml *ml, uint32_t accused) {
    struct known *self = ml_known(ml, ml->self);
    self->incarnation = (accused >= self->incarnation ? accused : self->incarnation) + 1;
    ml->counters.refutations++;
    awareness_add(ml, 1);
    queue_add(ml, &ml->members_queue, ML_MSG_ALIVE, ml->self, self->incarnation, ml->self);
}

/* A newcomer goes to a random place of the round. */
static void add_member(struct ml *ml, uint32_t who) {
    ml->order = memory_room(ml->order, &ml->order_room, ml->order_count + 1, sizeof *ml->order);
    uint32_t place = ml_below(ml, ml->order_count + 1);
    ml->order[ml->order_count++] = who;
    ml->order[ml->order_count - 1] = ml->order[place];
    ml->order[place] = who;
    ml_known(ml, who)->incarnation = 0;
}

void state_alive(struct ml *ml, uint32_t who, uint32_t incarnation) {
    struct known *known = ml_known(ml, who);
    bool self = who == ml->self, fresh = known->state == ML_UNKNOWN;
    if (self) {
        if (!fresh && incarnation > known->incarnation) refute(ml, incarnation);
        if (!fresh) return;
    }
    if (fresh) {
        add_member(ml, who);
        known = ml_known(ml, who);
    } else if (incarnation <= known->incarnation) {
        return;
    }
    suspicion_end(ml, who);
    known->incarnation = incarnation;
    queue_add(ml, &ml->members_queue, ML_MSG_ALIVE, who, incarnation, who);
    set_state(ml, who, ML_ALIVE);
}

void state_suspect(struct ml *ml, uint32_t who, uint32_t incarnation, uint32_t from) {
    struct known *known = ml_known(ml, who);
    if (known->state == ML_UNKNOWN || incarnation < known->incarnation) return;
    struct suspicion_of *suspicion = suspicion_find(ml, who);
    if (suspicion) {
        if (suspicion_confirm(ml, suspicion, from))
            queue_add(ml, &ml->members_queue, ML_MSG_SUSPECT, who, incarnation, from);
        return;
    }
    if (known->state != ML_ALIVE) return;
    if (who == ml->self) {
        refute(ml, incarnation);
        return;
    }
    known->incarnation = incarnation;
    ml->counters.suspicions++;
    queue_add(ml, &ml->members_queue, ML_MSG_SUSPECT, who, incarnation, from);
    set_state(ml, who, ML_SUSPECT);
    suspicion_begin(ml, who, from);
}

void state_dead(struct ml *ml, uint32_t who, uint32_t incarnation, uint32_t from) {
    struct known *known = ml_known(ml, who);
    if (known->state == ML_UNKNOWN || incarnation < known->incarnation) return;
    suspicion_end(ml, who);
    if (known->state == ML_DEAD || known->state == ML_LEFT) return;
    if (who == ml->self && !ml->leaving) {
        refute(ml, incarnation);
        return;
    }
    known->incarnation = incarnation;
    ml->counters.deaths++;
    queue_add(ml, &ml->members_queue, ML_MSG_DEAD, who, incarnation, from);
    set_state(ml, who, from == who ? ML_LEFT : ML_DEAD);
}

void state_tick(struct ml *ml) {
    for (size_t i = 0; i < ml->suspicion_count;) {
        struct suspicion_of *suspicion = &ml->suspicions[i];
        if (ml->now_ms < suspicion->deadline_ms) {
            i++;
            continue;
        }
        uint32_t who = suspicion->who;
        state_dead(ml, who, ml_known(ml, who)->incarnation, ml->self);
        suspicion_end(ml, who);
    }
}

uint64_t state_deadline_ms(const struct ml *ml) {
    uint64_t deadline = UINT64_MAX;
    for (size_t i = 0; i < ml->suspicion_count; i++)
        if (ml->suspicions[i].deadline_ms < deadline) deadline = ml->suspicions[i].deadline_ms;
    return deadline;
}

/* ---- rows ---- */

static bool knows_op(const struct known *known, uint32_t op) {
    return op < known->ops || (op - known->ops < 32 && (known->window >> (op - known->ops) & 1));
}

static void row_event(struct ml *ml, uint32_t owner, const struct row_op *op) {
    ml->events = memory_room(ml->events, &ml->event_room, ml->event_count + 1, sizeof *ml->events);
    ml->events[ml->event_count++] = (struct gossip_event){.kind = GOSSIP_ROW,
                                                          .id = ml->common->owners[owner].id,
                                                          .row_kind = op->kind,
                                                          .active = op->put,
                                                          .filter = op->filter,
                                                          .filter_size = op->size};
}

/* The newest known operation on a row decides. */
static void apply(struct ml *ml, uint32_t who, uint32_t number) {
    struct known *known = ml_known(ml, who);
    const struct row_op *ops = ml->common->owners[who].ops, *op = &ops[number];
    for (uint32_t later = op->later; later != 0; later = ops[later - 1].later)
        if (knows_op(known, later - 1)) return;
    uint32_t earlier = op->earlier;
    while (earlier != 0 && !knows_op(known, earlier - 1))
        earlier = ops[earlier - 1].earlier;
    if ((earlier != 0 && ops[earlier - 1].put) == op->put) return;
    if (is_visible(known->state)) ml->rows_hash ^= table_part(who, known);
    known->rows_hash ^= (uint32_t)mix(op->hash);
    if (is_visible(known->state)) ml->rows_hash ^= table_part(who, known);
    if (who != ml->self) row_event(ml, who, op);
}

/* False: there is no such op, it is known, or it is too far ahead and the next push/pull brings it. */
static bool take(struct ml *ml, uint32_t owner, uint32_t op) {
    struct known *known = ml_known(ml, owner);
    if (op >= ml->common->owners[owner].op_count || knows_op(known, op) || op - known->ops >= 32) return false;
    apply(ml, owner, op);
    known = ml_known(ml, owner);
    known->window |= (uint32_t)1 << (op - known->ops);
    while (known->window & 1) {
        known->window >>= 1;
        known->ops++;
    }
    return true;
}

void rows_learn(struct ml *ml, uint32_t owner, uint32_t op) {
    if (take(ml, owner, op) && ml->common->owners[owner].ops[op].size > 0)
        queue_add(ml, &ml->rows_queue, ML_MSG_ROW, owner, op, owner);
}

void rows_learn_all(struct ml *ml, uint32_t owner, uint32_t ops, uint32_t window) {
    for (uint32_t op = ml_known(ml, owner)->ops; op < ops; op++)
        take(ml, owner, op);
    for (uint32_t i = 0; i < 32; i++)
        if (window >> i & 1) take(ml, owner, ops + i);
}
