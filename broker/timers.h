/* Timers: a pairing heap (Fredman et al. 1986) of nodes that live in their owners, so that setting one never fails and
 * an idle owner costs nothing else. Equal times fire in the order they were set.
 */
#ifndef BROKER_TIMERS_H
#define BROKER_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised when not set. Must not move or be freed while set. */
struct timer {
    uint64_t due_ms;
    uint64_t order;
    struct timer *child, *next;
    struct timer
        *back; /* the left sibling, or the parent of a first child; itself at the top of the heap; NULL when not set */
};

struct timers {
    struct timer *top;
    uint64_t order;
};

/* Sets or moves it. due_ms UINT64_MAX is never: the same as timer_clear. */
void timer_set(struct timers *timers, struct timer *timer, uint64_t due_ms);
void timer_clear(struct timers *timers, struct timer *timer);
bool timer_is_set(const struct timer *timer);
/* UINT64_MAX if none is set. */
uint64_t timers_due_ms(const struct timers *timers);
/* Takes out and returns the first one that is due at now_ms; NULL if none is. */
struct timer *timers_take(struct timers *timers, uint64_t now_ms);

#endif
