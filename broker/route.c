#include "broker/engine.h"

#include <stdlib.h>

/* Where the publication under way goes. Those it reaches are linked through subscriber.hit; several hits of one session
 * are gathered in the session (one copy at the highest QoS, MQTT-3.3.4-2 to -5). */
struct route {
    struct broker *broker;
    const struct message *message;
    struct subscriber *first;
    bool to_peers;
    bool missed;
};

/* Room for one more identifier and for collecting all of them. */
static int hits_reserve(struct broker *broker) {
    uint32_t capacity = broker->hit_capacity ? broker->hit_capacity * 2 : 16;
    struct hit_identifier *hits;
    uint32_t *scratch;

    if (broker->hit_count < broker->hit_capacity) return 0;
    scratch = realloc(broker->hit_scratch, capacity * sizeof *scratch);
    if (scratch == NULL) return -1;
    broker->hit_scratch = scratch;
    hits = realloc(broker->hits, capacity * sizeof *hits);
    if (hits == NULL) return -1;
    broker->hits = hits;
    broker->hit_capacity = capacity;
    return 0;
}

static void add_identifier(struct broker *broker, struct session *session, uint32_t identifier) {
    if (hits_reserve(broker) != 0) {
        /* Without the identifier the client could not tell what this is for. */
        if (session->client != NULL) client_doom(broker, session->client, MQTT_QUOTA_EXCEEDED);
        return;
    }
    broker->hits[broker->hit_count] =
        (struct hit_identifier){.identifier = identifier, .next = session->hit_identifiers};
    session->hit_identifiers = ++broker->hit_count;
}

static bool first_hit(struct route *route, struct subscriber *subscriber) {
    if (subscriber->seen == route->broker->publication) return false;
    subscriber->seen = route->broker->publication;
    subscriber->hit = route->first;
    route->first = subscriber;
    return true;
}

static void on_hit(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct route *route = context;
    struct session *session = (struct session *)subscriber;
    uint8_t qos = subscription->qos < route->message->qos ? subscription->qos : route->message->qos;

    if (subscriber->kind == SUBSCRIBER_PEER) {
        if (route->to_peers) first_hit(route, subscriber);
        return;
    }
    if (subscriber->kind == SUBSCRIBER_SHARE) {
        if (!route->missed) first_hit(route, subscriber); /* retained messages are not for groups */
        return;
    }
    if (subscription->no_local && session->number == route->message->publisher) return;
    if (first_hit(route, subscriber)) {
        session->hit_qos = qos;
        session->hit_retain = false;
        session->hit_identifiers = 0;
    }
    if (qos > session->hit_qos) session->hit_qos = qos;
    if (subscription->retain_as_published && route->message->retain) session->hit_retain = true;
    if (subscription->identifier != 0) add_identifier(route->broker, session, subscription->identifier);
}

static void deliver_to(struct broker *broker, uint64_t now_ms, struct session *session, struct message *message) {
    struct delivery delivery = {
        .qos = session->hit_qos, .retain = session->hit_retain, .identifiers = broker->hit_scratch};

    for (uint32_t at = session->hit_identifiers; at != 0; at = broker->hits[at - 1].next)
        broker->hit_scratch[delivery.identifier_count++] = broker->hits[at - 1].identifier;
    session_deliver(broker, now_ms, session, message, &delivery);
}

/* missed: the message is no live one but part of what a peer retained before we joined. A client that is about to get
 * the retained messages of a new subscription would otherwise get it twice. */
static void route(struct broker *broker, uint64_t now_ms, struct message *message, bool to_peers, bool missed) {
    struct route route = {.broker = broker, .message = message, .to_peers = to_peers, .missed = missed};
    struct subscriber *next;

    if (missed) held_mark(broker, message->topic, message->topic_size);
    broker->publication++;
    broker->hit_count = 0;
    subs_match(broker->subs, message->topic, message->topic_size, on_hit, &route);
    for (struct subscriber *subscriber = route.first; subscriber != NULL; subscriber = next) {
        struct session *session = (struct session *)subscriber;
        next = subscriber->hit;
        if (subscriber->kind == SUBSCRIBER_PEER)
            federation_hit(broker->federation, now_ms, subscriber, message);
        else if (subscriber->kind == SUBSCRIBER_SHARE)
            share_deliver(broker, now_ms, subscriber, message);
        else if (!missed || session->client == NULL || !held_covers(broker, session->client))
            deliver_to(broker, now_ms, session, message);
    }
}

/* Into the retained store; counts and notes what it does not take. */
static enum retained_result retain(struct broker *broker, uint64_t now_ms, struct message *message) {
    enum retained_result result = retained_set(broker->retained, now_ms, message);
    enum broker_at limit = retained_count(broker->retained) >= broker->limits.retained_messages_max
                               ? BROKER_AT_RETAINED_MESSAGES_MAX
                               : BROKER_AT_RETAINED_BYTES_MAX;

    if (result >= 0) return result;
    broker->counters.not_retained++;
    limit_reached(broker, result == RETAINED_FULL ? limit : BROKER_AT_MEMORY_BYTES_MAX, "not retained: topic '%.*s'",
                  (int)(message->topic_size < 100 ? message->topic_size : 100), message->topic);
    return result;
}

/* What a publication would meet, without meeting it. */
struct look {
    const struct message *message;
    bool lasts;
};

static void on_look(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct look *look = context;
    const struct session *session = (const struct session *)subscriber;

    if (subscriber->kind == SUBSCRIBER_SHARE && share_lasts(subscriber)) look->lasts = true;
    if (subscriber->kind != SUBSCRIBER_SESSION || !session->durable || subscription->qos == 0) return;
    if (subscription->no_local && session->number == look->message->publisher) return;
    look->lasts = true;
}

bool route_lasts(const struct broker *broker, const struct message *message) {
    struct look look = {.message = message, .lasts = message->retain};

    if (!look.lasts) subs_match(broker->subs, message->topic, message->topic_size, on_look, &look);
    return look.lasts;
}

enum routed route_local(struct broker *broker, uint64_t now_ms, struct message *message, bool only_if_retained) {
    if (message->retain) message->stamp = clock_stamp(broker, now_ms);
    /* What cannot be queued must not be acknowledged. */
    if ((message->qos > 0 || message->retain) && !message_keep(message)) return ROUTED_NO_MEMORY;
    if (message->retain && retain(broker, now_ms, message) < 0 && only_if_retained) return ROUTED_NOT_RETAINED;
    route(broker, now_ms, message, true, false);
    federation_published(broker->federation, now_ms, message);
    return ROUTED;
}

void broker_deliver_from_peer(struct broker *broker, uint64_t now_ms, struct message *message) {
    broker->now_ms = now_ms;
    if (message->retain) {
        broker_clock_seen(broker, now_ms, &message->stamp);
        retain(broker, now_ms, message);
    }
    route(broker, now_ms, message, false, false);
}

void broker_merge_retained(struct broker *broker, uint64_t now_ms, struct message *message) {
    /* A delete is news only to those who were shown something. */
    bool known = retained_has(broker->retained, message->topic, message->topic_size);
    enum retained_result result;

    broker->now_ms = now_ms;
    broker_clock_seen(broker, now_ms, &message->stamp);
    result = retain(broker, now_ms, message);
    if (result == RETAINED_STORED && (message->payload_size > 0 || known)) route(broker, now_ms, message, false, true);
}
