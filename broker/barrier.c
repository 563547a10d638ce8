#include "broker/barrier.h"

#include "broker/link.h"

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
    struct unconfirmed *unconfirmed; /* who was missing then; NULL if memory was short */
    struct barrier *prev, *next;
    size_t wait_count;
    struct barrier_wait waits[];
};

/* The next position of a peer, from this one on, that does not know of it by the registry and should; peer_count if
 * there is none, or if peers are so many that it is not waited for. */
static size_t next_ignorant(const struct federation *federation, const struct interest *interest, size_t index) {
    const struct filter_text filter = interest_filter(interest);
    if (federation->alive_count > BARRIER_PEERS_MAX) return federation->peer_count;
    for (; index < federation->peer_count; index++) {
        const struct peer *peer = federation->peers[index];
        if (!peer || !peer->alive) continue;
        bool knows = interest->row.sequence > 0 && peer->known_sequence >= interest->row.sequence;
        if (!knows && policy_lets(&peer->rules, POLICY_IMPORT, filter.text, filter.size)) break;
    }
    return index;
}

/* Everybody who could publish something that matches knows of it: publishers by a join, all others by the registry. */
static bool complete(const struct federation *federation, const struct interest *interest) {
    return interest->missing == 0 && next_ignorant(federation, interest, 0) == federation->peer_count;
}

static void release(struct federation *federation, struct barrier *barrier) {
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

bool barrier_next_released(struct federation *federation, uint64_t *number, bool *timed_out,
                           struct unconfirmed **unconfirmed) {
    struct barrier *barrier = federation->released;
    if (!barrier) return false;
    *number = barrier->number;
    *timed_out = barrier->timed_out;
    *unconfirmed = barrier->unconfirmed;
    DL_DELETE(federation->released, barrier);
    free(barrier);
    return true;
}

void barrier_abandon(struct federation *federation, struct interest *interest) {
    struct barrier_wait *wait, *next;
    DL_FOREACH_SAFE(interest->waits, wait, next) {
        struct barrier *barrier = wait->barrier;
        stop_waiting(federation, wait);
        if (barrier->missing == 0) release(federation, barrier);
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

static void stop_waiting_for_all(struct federation *federation, struct barrier *barrier) {
    for (size_t i = 0; i < barrier->wait_count; i++) {
        if (barrier->waits[i].interest) stop_waiting(federation, &barrier->waits[i]);
    }
}

/* The peer is missing, for this interest or an earlier one. */
static void name_peer(const struct barrier *barrier, struct peer *peer) {
    if (peer->unconfirmed == barrier->number) return;
    peer->unconfirmed = barrier->number;
    peer->totals.subacks_unconfirmed++;
    if (barrier->unconfirmed) unconfirmed_add(barrier->unconfirmed, peer->name);
}

static void name_missing(struct federation *federation, const struct barrier *barrier,
                         const struct interest *interest) {
    for (uint16_t i = 0; i < interest->want_count; i++) {
        const struct want *want = &interest->wants[i];
        if (want_is_missing(want)) name_peer(barrier, federation->peers[want->peer]);
    }
    for (size_t i = 0; (i = next_ignorant(federation, interest, i)) < federation->peer_count; i++)
        name_peer(barrier, federation->peers[i]);
}

/* Once a minute for the same brokers; what is wrong with them has warnings of its own. */
static void note(struct federation *federation, const struct unconfirmed *unconfirmed) {
    char who[UNCONFIRMED_TEXT];
    if (!unconfirmed || unconfirmed->count == 0) return;
    unconfirmed_text(unconfirmed, who);
    bool is_news = link_refusal_level(federation, who, "subscription") == BROKER_NOTE_WARNING;
    broker_note_add(federation->broker, is_news ? BROKER_NOTE_INFO : BROKER_NOTE_DEBUG,
                    "a subscription was not confirmed within %u ms by %s",
                    (unsigned)federation->limits.subscribe_barrier_ms, who);
}

static void expire(struct federation *federation, struct barrier *barrier) {
    barrier->timed_out = true;
    barrier->unconfirmed = calloc(1, sizeof *barrier->unconfirmed);
    for (size_t i = 0; i < barrier->wait_count; i++) {
        if (barrier->waits[i].interest) name_missing(federation, barrier, barrier->waits[i].interest);
    }
    note(federation, barrier->unconfirmed);
    stop_waiting_for_all(federation, barrier);
    federation->counters.barriers_timed_out++;
    release(federation, barrier);
}

void barriers_tick(struct federation *federation) {
    struct timer *timer;
    while ((timer = timers_take(&federation->barrier_timers, federation->now_ms)) != NULL)
        expire(federation, (struct barrier *)(void *)((char *)timer - offsetof(struct barrier, timer)));
}

void barriers_deinit(struct federation *federation) {
    while (federation->barriers) {
        stop_waiting_for_all(federation, federation->barriers); /* no interest may point to it any more */
        release(federation, federation->barriers);
    }
    struct barrier *barrier, *next;
    DL_FOREACH_SAFE(federation->released, barrier, next) {
        free(barrier->unconfirmed);
        free(barrier);
    }
}
