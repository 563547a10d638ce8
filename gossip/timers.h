/* What is due next: a binary heap that knows the place of each timer, so that setting, moving and stopping one costs
 * O(log n) and asking for the first O(1). Equal deadlines come in an order that depends on nothing but what was set
 * before. */
#ifndef GOSSIP_TIMERS_H
#define GOSSIP_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    uint32_t at; /* 1 + place in the heap; 0: not set */
};

struct timers {
    struct timer_slot {
        uint64_t deadline_ms;
        struct timer *timer;
    } * slots;
    size_t count, room;
};

/* Room for so many timers at once: setting one cannot fail. False when memory is short. */
bool timers_reserve(struct timers *timers, size_t count);
/* UINT64_MAX stops it. */
void timers_set(struct timers *timers, struct timer *timer, uint64_t deadline_ms);
uint64_t timers_deadline_ms(const struct timers *timers, const struct timer *timer); /* UINT64_MAX: not set */
uint64_t timers_first_ms(const struct timers *timers);                               /* UINT64_MAX: none is set */
/* The first one if it is due; it stays set. */
struct timer *timers_due(const struct timers *timers, uint64_t now_ms);
void timers_free(struct timers *timers);

#endif
