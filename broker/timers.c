#include "broker/timers.h"

#include <stddef.h>

static bool before(const struct timer *a, const struct timer *b) {
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

/* Makes one heap of two; either may be NULL. Both are tops without siblings. */
static struct timer *meld(struct timer *a, struct timer *b) {
    if (a == NULL || b == NULL) return a != NULL ? a : b;
    if (before(b, a)) {
        struct timer *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    if (b->next != NULL) b->next->back = b;
    b->back = a;
    a->child = b;
    return a;
}

/* Melds a list of siblings: in pairs from the left, then all from the right. */
static struct timer *meld_siblings(struct timer *first) {
    struct timer *pairs = NULL, *heap = NULL;

    while (first != NULL) {
        struct timer *a = first, *b = first->next;
        first = b != NULL ? b->next : NULL;
        a->next = NULL;
        if (b != NULL) b->next = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct timer *a = pairs;
        pairs = pairs->next;
        a->next = NULL;
        heap = meld(heap, a);
    }
    return heap;
}

static void set_top(struct timers *timers, struct timer *top) {
    timers->top = top;
    if (top != NULL) {
        top->next = NULL;
        top->back = top;
    }
}

void timer_clear(struct timers *timers, struct timer *timer) {
    struct timer *below;

    if (timer->back == NULL) return;
    below = meld_siblings(timer->child);
    if (timers->top == timer) {
        set_top(timers, below);
    } else {
        if (timer->back->child == timer)
            timer->back->child = timer->next;
        else
            timer->back->next = timer->next;
        if (timer->next != NULL) timer->next->back = timer->back;
        set_top(timers, meld(timers->top, below));
    }
    timer->child = timer->next = timer->back = NULL;
}

void timer_set(struct timers *timers, struct timer *timer, uint64_t due_ms) {
    timer_clear(timers, timer);
    if (due_ms == UINT64_MAX) return;
    timer->due_ms = due_ms;
    timer->order = timers->order++;
    timer->child = timer->next = NULL;
    set_top(timers, meld(timers->top, timer));
}

bool timer_is_set(const struct timer *timer) {
    return timer->back != NULL;
}

uint64_t timers_due_ms(const struct timers *timers) {
    return timers->top != NULL ? timers->top->due_ms : UINT64_MAX;
}

struct timer *timers_take(struct timers *timers, uint64_t now_ms) {
    struct timer *timer = timers->top;

    if (timer == NULL || timer->due_ms > now_ms) return NULL;
    timer_clear(timers, timer);
    return timer;
}
