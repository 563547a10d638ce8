#include "broker/session.h"

#include "broker/durable.h"
#include "broker/engine.h"
#include "broker/hash.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

static unsigned client_id_hash(const struct broker *broker, const void *client_id, size_t size) {
    return (unsigned)hash_bytes(broker->seed, client_id, size);
}

struct session *session_find(const struct broker *broker, const void *client_id, size_t size) {
    struct session *session;

    HASH_FIND_BYHASHVALUE(hh, broker->sessions, client_id, size, client_id_hash(broker, client_id, size), session);
    return session;
}

struct session *session_new(struct broker *broker, const void *client_id, size_t size) {
    struct session *session = calloc(1, sizeof *session + size);

    if (session == NULL) return NULL;
    session->subscriber.kind = SUBSCRIBER_SESSION;
    session->number = ++broker->last_number;
    session->will_due_ms = session->expires_at_ms = UINT64_MAX;
    session->client_id_size = (uint32_t)size;
    if (size > 0) memcpy(session->client_id, client_id, size);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, broker->sessions, session->client_id, size, client_id_hash(broker, client_id, size),
                                session);
    if (session->hh.tbl == NULL) {
        free(session);
        return NULL;
    }
    broker->counters.sessions++;
    return session;
}

void session_free(struct broker *broker, struct session *session) {
    share_forget(session);
    filters_deinit(&session->filters);
    session_drop_outgoing(broker, session);
    free(session->received);
    free(session->principal);
    message_unref(session->will);
    free(session);
}

/* For how long others are to keep what matches while this broker is away. */
static enum keep_level level_of(uint8_t options, uint32_t expiry_s) {
    if ((options & 3) == 0) return KEEP_NOT;
    return expiry_s != 0 ? KEEP_LASTING : KEEP_RUN;
}

static void tell_level(struct broker *broker, uint64_t now_ms, const struct filter *filter, enum keep_level before,
                       enum keep_level level) {
    federation_keep(broker->federation, now_ms, filter->text, filter->size, before, level);
}

/* Publishes the will; it is then gone. */
static void will_publish(struct broker *broker, uint64_t now_ms, struct message *will, uint64_t expiry_s) {
    will->expires_at_ms = message_expires_at_ms(now_ms, expiry_s);
    route_local(broker, now_ms, will, false);
    message_unref(will);
}

void session_end(struct broker *broker, uint64_t now_ms, struct session *session) {
    struct message *will = session->will;
    uint64_t will_expiry_s = session->will_expiry_s;

    share_end(broker, now_ms, session);
    durable_session_end(broker, session);
    for (uint32_t i = 0; i < session->filters.count; i++) {
        const struct filter *filter = &session->filters.items[i];
        size_t inner = topic_share_split(filter->text, filter->size);
        if (inner == 0) subs_remove(broker->subs, filter->text, filter->size, &session->subscriber);
        if (inner > 0) broker->counters.shared_subscriptions--;
        federation_unsubscribed(broker->federation, now_ms, filter->text, filter->size);
        tell_level(broker, now_ms, filter, level_of(filter->options, session->expiry_s), KEEP_NOT);
    }
    broker->counters.subscriptions -= session->filters.count;
    timer_clear(&broker->session_timers, &session->timer);
    HASH_DEL(broker->sessions, session);
    broker->counters.sessions--;
    session->will = NULL;
    session_free(broker, session);
    if (will != NULL) will_publish(broker, now_ms, will, will_expiry_s);
}

void session_attach(struct broker *broker, struct session *session, struct client *client) {
    timer_clear(&broker->session_timers, &session->timer);
    session->will_due_ms = session->expires_at_ms = UINT64_MAX;
    message_unref(session->will);
    session->will = NULL;
    session->client = client;
    session->received_before = (uint16_t)session->received_count;
    client->session = session;
    share_attach(session);
}

void session_set_timer(struct broker *broker, struct session *session) {
    uint64_t first = session->will_due_ms < session->expires_at_ms ? session->will_due_ms : session->expires_at_ms;

    timer_set(&broker->session_timers, &session->timer, first);
}

void session_begin_absence(struct broker *broker, uint64_t now_ms, struct session *session) {
    if (session->expiry_s != UINT32_MAX) session->expires_at_ms = now_ms + session->expiry_s * 1000ull;
    if (session->will != NULL) session->will_due_ms = now_ms + session->will_delay_s * 1000ull;
    session_set_timer(broker, session);
}

static void take_will_and_publish(struct broker *broker, uint64_t now_ms, struct session *session) {
    struct message *will = session->will;

    session->will = NULL;
    session->will_due_ms = UINT64_MAX;
    if (will != NULL) will_publish(broker, now_ms, will, session->will_expiry_s);
}

void session_detach(struct broker *broker, uint64_t now_ms, struct session *session, enum will_fate fate) {
    struct outgoing *outgoing;

    session->client = NULL;
    session->in_air = 0;
    session->resend = session->inflight;
    for (outgoing = session->inflight; outgoing != NULL; outgoing = outgoing->next)
        outgoing->in_air = false;
    if (fate == WILL_DROPPED || (fate == WILL_DEFERRED && !session->durable)) {
        message_unref(session->will);
        session->will = NULL;
    }
    if (session->expiry_s == 0) {
        session_end(broker, now_ms, session);
        return;
    }
    share_detach(broker, now_ms, session);
    session_begin_absence(broker, now_ms, session);
    durable_session(broker, now_ms, session);
    if (session->will != NULL && session->will_delay_s == 0 && fate == WILL_DUE)
        session_timeout(broker, now_ms, session);
}

void session_timeout(struct broker *broker, uint64_t now_ms, struct session *session) {
    if (session->expires_at_ms <= now_ms) {
        broker->counters.sessions_expired++;
        session_end(broker, now_ms, session);
        return;
    }
    if (session->will_due_ms <= now_ms) {
        take_will_and_publish(broker, now_ms, session);
        durable_session(broker, now_ms, session);
    }
    session_set_timer(broker, session);
}

bool session_holds(const struct broker *broker, const struct session *session, const char *filter, size_t size) {
    return filters_find(&session->filters, broker->seed, filter, size) < session->filters.count;
}

static uint8_t options_of(const struct subscription *subscription) {
    return (uint8_t)(subscription->qos | (subscription->no_local ? 4 : 0) |
                     (subscription->retain_as_published ? 8 : 0) | subscription->retain_handling << 4);
}

void session_set_expiry(struct broker *broker, uint64_t now_ms, struct session *session, uint32_t expiry_s) {
    uint32_t before_s = session->expiry_s;

    session->expiry_s = expiry_s;
    if ((before_s != 0) == (expiry_s != 0)) return;
    for (uint32_t i = 0; i < session->filters.count; i++) {
        const struct filter *filter = &session->filters.items[i];
        tell_level(broker, now_ms, filter, level_of(filter->options, before_s), level_of(filter->options, expiry_s));
    }
}

/* A new filter has no options. */
static void set_options(struct broker *broker, uint64_t now_ms, const struct session *session, struct filter *filter,
                        const struct subscription *subscription) {
    enum keep_level before = level_of(filter->options, session->expiry_s);

    filter->options = options_of(subscription);
    filter->identifier = subscription->identifier;
    tell_level(broker, now_ms, filter, before, level_of(filter->options, session->expiry_s));
    durable_subscribed(broker, session, filter);
}

/* Into the tree, or into the group that stands there for it. */
static enum subs_result enter(struct broker *broker, struct session *session, const char *filter, size_t size,
                              const struct subscription *subscription) {
    return topic_share_split(filter, size) != 0
               ? share_join(broker, session, filter, size, subscription)
               : subs_add(broker->subs, filter, size, &session->subscriber, subscription);
}

static void leave(struct broker *broker, uint64_t now_ms, struct session *session, const char *filter, size_t size) {
    if (topic_share_split(filter, size) != 0)
        share_leave(broker, now_ms, session, filter, size);
    else
        subs_remove(broker->subs, filter, size, &session->subscriber);
}

enum subs_result session_subscribe(struct broker *broker, uint64_t now_ms, struct session *session, const char *filter,
                                   size_t size, const struct subscription *subscription) {
    uint32_t position = filters_find(&session->filters, broker->seed, filter, size);
    size_t inner = topic_share_split(filter, size);
    enum subs_result result;

    if (position < session->filters.count) {
        result = enter(broker, session, filter, size, subscription);
        if (result == SUBS_REPLACED)
            set_options(broker, now_ms, session, &session->filters.items[position], subscription);
        return result;
    }
    if (filters_add(&session->filters, broker->seed, filter, size) != 0) return SUBS_NO_MEMORY;
    result = enter(broker, session, filter, size, subscription);
    if (result == SUBS_NO_MEMORY) {
        filters_remove(&session->filters, session->filters.count - 1);
        return result;
    }
    /* A subscription that the other brokers cannot be told of would miss what they publish: better none. */
    if (federation_subscribed(broker->federation, now_ms, filter, size) != 0) {
        leave(broker, now_ms, session, filter, size);
        filters_remove(&session->filters, session->filters.count - 1);
        return SUBS_NO_MEMORY;
    }
    broker->counters.subscriptions++;
    broker->counters.shared_subscriptions += inner > 0;
    set_options(broker, now_ms, session, &session->filters.items[position], subscription);
    return SUBS_OK;
}

enum subs_result session_unsubscribe(struct broker *broker, uint64_t now_ms, struct session *session,
                                     const char *filter, size_t size) {
    uint32_t position = filters_find(&session->filters, broker->seed, filter, size);
    size_t inner = topic_share_split(filter, size);
    const struct filter *held;

    if (position == session->filters.count) return SUBS_NOT_FOUND;
    held = &session->filters.items[position];
    leave(broker, now_ms, session, filter, size);
    durable_unsubscribed(broker, session, held);
    federation_unsubscribed(broker->federation, now_ms, filter, size);
    tell_level(broker, now_ms, held, level_of(held->options, session->expiry_s), KEEP_NOT);
    filters_remove(&session->filters, position);
    broker->counters.subscriptions--;
    broker->counters.shared_subscriptions -= inner > 0;
    return SUBS_OK;
}
