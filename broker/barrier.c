#include "broker/barrier.h"

#include <stdlib.h>
#include <utlist.h>

/* A barrier waiting for an interest. */
struct barrier_wait {
    struct barrier *barrier;
    struct interest *interest;        /* NULL once it is complete */
    struct barrier_wait *prev, *next; /* in the interest's list */
};

struct barrier {
    uint64_t number;
    struct timer timer;
    size_t missing;
    bool timed_out;
    struct barrier *prev, *next;
    size_t wait_count;
    struct barrier_wait waits[];
};

/* Everybody who could publish something that matches knows of it: publishers by a join, all others by the registry. */
static bool complete(const struct federation *federation, const struct interest *interest) {
    if (interest->missing > 0) return false;
    if (federation->alive_count == 0 || federation->alive_count > BARRIER_PEERS_MAX) return true;
    if (interest->row.sequence == 0) return false;
    for (size_t i = 0; i < federation->peer_count; i++) {
        const struct peer *peer = federation->peers[i];
        if (peer && peer->alive && peer->known_sequence < interest->row.sequence) return false;
    }
    return true;
}

static void release(struct federation *federation, struct barrier *barrier, bool timed_out) {
    barrier->timed_out = timed_out;
    timer_clear(&federation->barrier_timers, &barrier->timer);
    DL_DELETE(federation->barriers, barrier);
    DL_APPEND(federation->released, barrier);
}

static void stop_waiting(struct federation *federation, struct barrier_wait *wait) {
    struct interest *interest = wait->interest;
    wait->interest = NULL;
    wait->barrier->missing--;
    DL_DELETE(interest->waits, wait);
    if (!interest->waits) DL_DELETE2(federation->waiting, interest, waiting_prev, waiting_next);
}

uint64_t barrier_new(struct federation *federation, const char *const *filters, const size_t *sizes, size_t count) {
    struct barrier *barrier = NULL;
    for (size_t i = 0; i < count; i++) {
        struct interest *interest = (struct interest *)(void *)names_find(&federation->interests, filters[i], sizes[i]);
        if (!interest || complete(federation, interest)) continue;
        if (!barrier) {
            barrier = calloc(1, sizeof *barrier + (count - i) * sizeof barrier->waits[0]);
            if (!barrier) return 0; /* short of memory: SUBACK goes out without the wait */
        }
        struct barrier_wait *wait = &barrier->waits[barrier->wait_count++];
        wait->barrier = barrier;
        wait->interest = interest;
        if (!interest->waits) DL_APPEND2(federation->waiting, interest, waiting_prev, waiting_next);
        DL_APPEND(interest->waits, wait);
        barrier->missing++;
    }
    if (!barrier) return 0;
    barrier->number = ++federation->barrier_numbers;
    DL_APPEND(federation->barriers, barrier);
    timer_set(&federation->barrier_timers, &barrier->timer,
              federation->now_ms + federation->limits.subscribe_barrier_ms);
    federation->counters.barriers_waited++;
    return barrier->number;
}

bool barrier_next_released(struct federation *federation, uint64_t *number, bool *timed_out) {
    struct barrier *barrier = federation->released;
    if (!barrier) return false;
    *number = barrier->number;
    *timed_out = barrier->timed_out;
    DL_DELETE(federation->released, barrier);
    free(barrier);
    return true;
}

void barrier_abandon(struct federation *federation, struct interest *interest) {
    struct barrier_wait *wait, *next;
    DL_FOREACH_SAFE(interest->waits, wait, next) {
        struct barrier *barrier = wait->barrier;
        stop_waiting(federation, wait);
        if (barrier->missing == 0) release(federation, barrier, false);
    }
}

void barrier_check(struct federation *federation, struct interest *interest) {
    if (interest->waits && complete(federation, interest)) barrier_abandon(federation, interest);
}

void barrier_check_all(struct federation *federation) {
    struct interest *interest, *next;
    DL_FOREACH_SAFE2(federation->waiting, interest, next, waiting_next) {
        barrier_check(federation, interest);
    }
}

static void expire(struct federation *federation, struct barrier *barrier) {
    for (size_t i = 0; i < barrier->wait_count; i++) {
        if (barrier->waits[i].interest) stop_waiting(federation, &barrier->waits[i]);
    }
    federation->counters.barriers_timed_out++;
    release(federation, barrier, true);
}

void barriers_tick(struct federation *federation) {
    struct timer *timer;
    while ((timer = timers_take(&federation->barrier_timers, federation->now_ms)) != NULL)
        expire(federation, (struct barrier *)(void *)((char *)timer - offsetof(struct barrier, timer)));
}

void barriers_deinit(struct federation *federation) {
    while (federation->barriers)
        expire(federation, federation->barriers); /* no interest may point to it any more */
    struct barrier *barrier, *next;
    DL_FOREACH_SAFE(federation->released, barrier, next) {
        free(barrier);
    }
}
