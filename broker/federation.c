#include "broker/federation.h"

#include "broker/advert.h"
#include "broker/barrier.h"
#include "broker/carry.h"
#include "broker/handout.h"
#include "broker/interest.h"
#include "broker/ledger.h"
#include "broker/link.h"
#include "broker/queues.h"
#include "broker/record.h"
#include "broker/replay.h"
#include "broker/unwanted.h"
#include "broker/why_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64* (Vigna 2016): for jitter and hash seeds. */
uint64_t federation_random(struct federation *federation) {
    uint64_t x = federation->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    federation->random = x;
    return x * 0x2545f4914f6cdd1du;
}

struct federation *federation_new(const struct federation_options *options, uint64_t now_ms) {
    struct federation *federation = calloc(1, sizeof *federation);
    if (!federation) return NULL;
    federation->broker = options->broker;
    federation->subs = options->subs;
    federation->retained = options->retained;
    federation->limits = options->options->limits;
    federation->policy = options->options->policy;
    snprintf(federation->name, sizeof federation->name, "%s", options->options->name ? options->options->name : "");
    const char *named = options->options->federation;
    snprintf(federation->federation, sizeof federation->federation, "%s", named ? named : "");
    memcpy(federation->id.bytes, options->options->id, sizeof federation->id.bytes);
    federation->epoch = options->options->epoch;
    federation->random = (options->options->seed ^ 0x9e3779b97f4a7c15u) | 1;
    federation->now_ms = now_ms;
    federation->news_ms = UINT64_MAX;
    federation->generation = 1;
    federation->publication = 1;
    names_init(&federation->interests, federation_random(federation));
    names_init(&federation->adverts, federation_random(federation));
    federation->interest_tree = subs_new(federation_random(federation));
    federation->peer_rows = subs_new(federation_random(federation));
    if (!federation->interest_tree || !federation->peer_rows) {
        federation_free(federation);
        return NULL;
    }
    return federation;
}

void federation_free(struct federation *federation) {
    if (!federation) return;
    federation->ends = true;
    links_deinit(federation);
    carry_deinit(federation);
    barriers_deinit(federation);
    for (size_t i = 0; i < federation->peer_count; i++) {
        if (federation->peers[i]) peer_free(federation, federation->peers[i]);
    }
    free(federation->peers);
    interest_deinit(federation);
    adverts_deinit(federation);
    rows_deinit(federation);
    unwanted_deinit(federation);
    whys_deinit(federation);
    subs_free(federation->interest_tree);
    subs_free(federation->peer_rows);
    free(federation->token);
    free(federation->gave);
    free(federation);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void federation_dump(struct federation *federation, uint64_t before) {
    taken_dump(federation);
    kept_dump(federation, before);
}

void federation_relieve(struct federation *federation) {
    queues_relieve(federation);
}

void federation_stop(struct federation *federation) {
    taken_stop(federation);
}

void federation_durable(struct federation *federation, uint64_t now_ms) {
    federation->now_ms = now_ms;
    senders_durable(federation);
}

uint64_t federation_deadline_ms(const struct federation *federation) {
    return least(least(timers_due_ms(&federation->link_timers), timers_due_ms(&federation->peer_timers)),
                 least(least(timers_due_ms(&federation->linger_timers), timers_due_ms(&federation->barrier_timers)),
                       least(timers_due_ms(&federation->advert_timers),
                             least(federation->news_ms, whys_deadline_ms(federation)))));
}

void federation_tick(struct federation *federation, uint64_t now_ms) {
    federation->now_ms = now_ms;
    links_tick(federation);
    peers_tick(federation);
    interest_tick(federation);
    barriers_tick(federation);
    adverts_tick(federation);
    link_news_tick(federation);
    whys_tick(federation);
}

bool federation_sends(const struct subscriber *subscriber, const char *topic, size_t size) {
    return policy_lets(&((const struct peer *)(const void *)subscriber)->rules, POLICY_EXPORT, topic, size);
}

static bool keeps_here(const struct federation *federation, const struct message *message) {
    return !policy_lets_some_peer(federation->policy, POLICY_EXPORT, message->topic, message->topic_size);
}

void federation_hit(struct federation *federation, uint64_t now_ms, struct subscriber *subscriber,
                    struct message *message, bool kept) {
    struct peer *peer = (struct peer *)(void *)subscriber;
    federation->now_ms = now_ms;
    peer->hit = federation->publication;
    struct aims *aims = handout_take(federation, peer, &kept);
    if (aims) aims->what |= AIMS_OTHERS;
    if (!peer_is_away(peer) || message->qos > 0) {
        sender_publish(federation, peer, message, aims, kept && message->qos > 0);
        return;
    }
    free(aims);
    ledger_given_up(peer, GIVEN_UP_AWAY, 1);
    peer->snapshot_lost |= message->retain; /* it is shown what is retained when it comes back */
}

struct publishing {
    struct federation *federation;
    struct message *message;
    bool open; /* somebody is on his way */
};

static void hold(struct publishing *publishing, struct peer *peer, bool missed_others) {
    struct federation *federation = publishing->federation;
    const struct message *message = publishing->message;
    if (peer->held == federation->publication ||
        !policy_lets(&peer->rules, POLICY_EXPORT, message->topic, message->topic_size))
        return;
    peer->held = federation->publication;
    publishing->open |= replay_hold(federation, peer, publishing->message, missed_others);
}

/* A row of a peer asks for it. Does it come by a join that this row has led to? */
static void on_interested(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscription;
    struct publishing *publishing = context;
    uint64_t publication = publishing->federation->publication;
    if (subscriber->kind == SUBSCRIBER_PEER) {
        struct peer *peer = ((struct peer_rows *)(void *)subscriber)->peer;
        if (peer->hit != publication) hold(publishing, peer, true);
        return;
    }
    struct group_row *row = group_row_of(subscriber);
    if (!names_find(&row->peer->joins, row->named.text, row->named.size))
        hold(publishing, row->peer, row->peer->hit != publication);
}

/* Changes whenever an advert is withdrawn, or a peer may have to be invited to what it was not before. */
static uint64_t edition(const struct federation *federation) {
    return federation->generation + federation->adverts_withdrawn;
}

/* True if nobody has to be told of the topic again before the edition changes. */
static bool tell(struct federation *federation, struct message *message, struct advert *advert) {
    struct publishing publishing = {.federation = federation, .message = message};
    if (advert && advert->settled == federation->generation) return true;
    subs_match(federation->peer_rows, message->topic, message->topic_size, on_interested, &publishing);
    if (!advert || publishing.open) return false;
    advert->settled = federation->generation;
    return true;
}

int federation_retains(struct federation *federation, uint64_t now_ms, const struct message *message) {
    federation->now_ms = now_ms;
    if (keeps_here(federation, message)) return 0;
    return advert_of(federation, message->topic, message->topic_size) != NULL ? 0 : -1;
}

void federation_published(struct federation *federation, uint64_t now_ms, struct message *message,
                          struct topic_memo *memo) {
    federation->now_ms = now_ms;
    if (memo->edition == edition(federation)) {
        if (memo->advert) advert_touch(federation, memo->advert);
    } else {
        bool kept_here = keeps_here(federation, message);
        memo->advert = kept_here ? NULL : advert_of(federation, message->topic, message->topic_size);
        memo->edition = kept_here || tell(federation, message, memo->advert) ? edition(federation) : 0;
    }
    federation->publication++;
}

int federation_subscribed(struct federation *federation, uint64_t now_ms, const char *filter, size_t size) {
    federation->now_ms = now_ms;
    size_t inner = topic_share_split(filter, size);
    if (size == 0 || filter[inner] == '$' || interest_add(federation, filter, size) == 0) return 0;
    broker_note_add(federation->broker, BROKER_NOTE_WARNING,
                    "short of memory: a subscription is not known to other brokers");
    return -1;
}

void federation_unsubscribed(struct federation *federation, uint64_t now_ms, const char *filter, size_t size) {
    federation->now_ms = now_ms;
    interest_drop(federation, filter, size);
}

void federation_keep(struct federation *federation, uint64_t now_ms, const char *filter, size_t size,
                     enum keep_level before, enum keep_level level) {
    federation->now_ms = now_ms;
    interest_keep(federation, filter, size, before, level);
}

uint64_t federation_barrier(struct federation *federation, uint64_t now_ms, const char *const *filters,
                            const size_t *sizes, size_t count) {
    federation->now_ms = now_ms;
    return barrier_new(federation, filters, sizes, count);
}

bool federation_next_released(struct federation *federation, uint64_t *barrier, bool *timed_out,
                              struct unconfirmed **unconfirmed) {
    return barrier_next_released(federation, barrier, timed_out, unconfirmed);
}
