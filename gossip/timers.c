#include "gossip/timers.h"

#include <assert.h>
#include <stdlib.h>

bool timers_reserve(struct timers *timers, size_t count) {
    if (count <= timers->room) return true;
    size_t room = timers->room + timers->room / 4 + 16;
    room = room > count ? room : count;
    struct timer_slot *slots = realloc(timers->slots, room * sizeof *slots);
    if (!slots) return false;
    timers->slots = slots;
    timers->room = room;
    return true;
}

static void put(struct timers *timers, size_t at, struct timer_slot slot) {
    timers->slots[at] = slot;
    slot.timer->at = (uint32_t)at + 1;
}

static void rise(struct timers *timers, size_t at) {
    struct timer_slot slot = timers->slots[at];
    while (at > 0 && timers->slots[(at - 1) / 2].deadline_ms > slot.deadline_ms) {
        put(timers, at, timers->slots[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(timers, at, slot);
}

static void sink(struct timers *timers, size_t at) {
    struct timer_slot slot = timers->slots[at];
    for (size_t child; (child = 2 * at + 1) < timers->count; at = child) {
        if (child + 1 < timers->count && timers->slots[child + 1].deadline_ms < timers->slots[child].deadline_ms)
            child++;
        if (timers->slots[child].deadline_ms >= slot.deadline_ms) break;
        put(timers, at, timers->slots[child]);
    }
    put(timers, at, slot);
}

static void stop(struct timers *timers, struct timer *timer) {
    if (timer->at == 0) return;
    size_t at = timer->at - 1;
    timer->at = 0;
    if (at == --timers->count) return;
    uint64_t before = timers->slots[at].deadline_ms;
    put(timers, at, timers->slots[timers->count]);
    if (timers->slots[at].deadline_ms < before)
        rise(timers, at);
    else
        sink(timers, at);
}

void timers_set(struct timers *timers, struct timer *timer, uint64_t deadline_ms) {
    if (deadline_ms == UINT64_MAX) {
        stop(timers, timer);
        return;
    }
    if (timer->at == 0) {
        assert(timers->count < timers->room);
        put(timers, timers->count, (struct timer_slot){deadline_ms, timer});
        rise(timers, timers->count++);
        return;
    }
    struct timer_slot *slot = &timers->slots[timer->at - 1];
    uint64_t before = slot->deadline_ms;
    slot->deadline_ms = deadline_ms;
    if (deadline_ms < before)
        rise(timers, timer->at - 1);
    else if (deadline_ms > before)
        sink(timers, timer->at - 1);
}

uint64_t timers_deadline_ms(const struct timers *timers, const struct timer *timer) {
    return timer->at > 0 ? timers->slots[timer->at - 1].deadline_ms : UINT64_MAX;
}

uint64_t timers_first_ms(const struct timers *timers) {
    return timers->count > 0 ? timers->slots[0].deadline_ms : UINT64_MAX;
}

struct timer *timers_due(const struct timers *timers, uint64_t now_ms) {
    return timers->count > 0 && timers->slots[0].deadline_ms <= now_ms ? timers->slots[0].timer : NULL;
}

void timers_free(struct timers *timers) {
    free(timers->slots);
    *timers = (struct timers){0};
}
