#include "broker/engine.h"

/* A publication on its way. */
struct passage {
    struct broker *broker;
    uint64_t now_ms;
    struct message *message;
    bool from_peer;
    bool missed; /* no live one but part of what a peer retained before we joined */
};

/* What cannot be queued must not be acknowledged: so all that may fail comes before anything is done. NULL when memory
 * is short. */
static struct route *prepare(struct broker *broker, struct message *message, struct route_hint *hint) {
    struct route *route = routes_find(broker->routes, message->topic, message->topic_size, hint);
    bool keeps = message->retain || (message->qos > 0 && route != NULL && route->qos > 0);

    if (route != NULL && (!keeps || message_keep(message))) return route;
    limit_reached(broker, BROKER_AT_MEMORY_BYTES_MAX, "no memory for a publication: topic '%.*s'",
                  (int)(message->topic_size < 100 ? message->topic_size : 100), message->topic);
    return NULL;
}

static void to_session(const struct passage *passage, const struct route *route, const struct receiver *receiver,
                       struct encodings *encodings) {
    struct session *session = (struct session *)receiver->subscriber;
    struct message *message = passage->message;
    struct delivery delivery = {.qos = receiver->qos < message->qos ? receiver->qos : message->qos,
                                .retain = receiver->retain_as_published && message->retain,
                                .identifiers = route->identifiers + receiver->identifier_at,
                                .identifier_count = receiver->identifier_count,
                                .encodings = encodings};

    if (receiver->scope != RECEIVES_ALL && (receiver->scope == RECEIVES_OWN) != (session->number == message->publisher))
        return;
    /* A client that is about to get the retained messages of a new subscription would get it twice. */
    if (passage->missed && session->client != NULL && held_covers(passage->broker, session->client)) return;
    session_deliver(passage->broker, passage->now_ms, session, message, &delivery);
}

/* Before peers are hit: what goes to one for members of groups too goes there once. */
static void to_groups(const struct passage *passage, const struct route *route) {
    for (uint32_t i = 0; i < route->receiver_count; i++) {
        struct subscriber *subscriber = route->receivers[i].subscriber;
        if (subscriber->kind == SUBSCRIBER_SHARE)
            share_deliver(passage->broker, passage->now_ms, subscriber, passage->message);
    }
}

static void pass(const struct passage *passage, const struct route *route) {
    struct encodings encodings = {0};

    if (passage->missed) held_mark(passage->broker, passage->message->topic, passage->message->topic_size);
    if (route->has_groups && !passage->from_peer) to_groups(passage, route);
    for (uint32_t i = 0; i < route->receiver_count; i++) {
        struct subscriber *subscriber = route->receivers[i].subscriber;
        switch (subscriber->kind) {
        case SUBSCRIBER_SESSION: to_session(passage, route, &route->receivers[i], &encodings); break;
        case SUBSCRIBER_SHARE: break;
        case SUBSCRIBER_PEER:
            if (!passage->from_peer)
                federation_hit(passage->broker->federation, passage->now_ms, subscriber, passage->message,
                               route->receivers[i].qos > 0);
            break;
        }
    }
    if (route->has_groups && !passage->from_peer)
        federation_settle(passage->broker->federation, passage->now_ms, passage->message);
}

/* Into the retained store; counts and notes what it does not take. */
static enum retained_result retain(struct broker *broker, uint64_t now_ms, struct message *message) {
    enum retained_result result =
        retained_set(sys_retained_for(broker, message->topic, message->topic_size), now_ms, message);
    enum broker_at limit = retained_count(broker->retained) >= broker->limits.retained_messages_max
                               ? BROKER_AT_RETAINED_MESSAGES_MAX
                               : BROKER_AT_RETAINED_BYTES_MAX;

    if (result >= 0) return result;
    broker->counters.not_retained++;
    limit_reached(broker, result == RETAINED_FULL ? limit : BROKER_AT_MEMORY_BYTES_MAX, "not retained: topic '%.*s'",
                  (int)(message->topic_size < 100 ? message->topic_size : 100), message->topic);
    return result;
}

enum routed route_publication(struct broker *broker, uint64_t now_ms, struct message *message, bool only_if_retained,
                              struct route_hint *hint) {
    struct passage passage = {.broker = broker, .now_ms = now_ms, .message = message};
    struct route *route;

    if (message->retain) message->stamp = clock_stamp(broker, now_ms);
    route = prepare(broker, message, hint);
    if (route == NULL) return ROUTED_NO_MEMORY;
    if (message->retain && retain(broker, now_ms, message) < 0 && only_if_retained) return ROUTED_NOT_RETAINED;
    pass(&passage, route);
    federation_published(broker->federation, now_ms, message, &route->memo);
    return ROUTED;
}

/* What a publication would meet, without meeting it. */
struct look {
    const struct message *message;
    bool to_peers, lasts;
};

static void on_look(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct look *look = context;
    const struct session *session = (const struct session *)subscriber;

    if (subscriber->kind == SUBSCRIBER_SHARE && share_lasts(subscriber)) look->lasts = true;
    if (subscriber->kind == SUBSCRIBER_PEER && look->to_peers && subscription->qos > 0 &&
        federation_sends(subscriber, look->message->topic, look->message->topic_size))
        look->lasts = true;
    if (subscriber->kind != SUBSCRIBER_SESSION || !session->durable || subscription->qos == 0) return;
    if (subscription->no_local && session->number == look->message->publisher) return;
    look->lasts = true;
}

static bool would_last(const struct broker *broker, const struct message *message, bool to_peers) {
    struct look look = {.message = message, .to_peers = to_peers, .lasts = message->retain};

    if (!look.lasts) subs_match(broker->subs, message->topic, message->topic_size, on_look, &look);
    return look.lasts;
}

/* While the store fails, other brokers get what they can without it. */
bool route_lasts(const struct broker *broker, const struct message *message) {
    return would_last(broker, message, !broker->journal.failing);
}

enum routed route_local(struct broker *broker, uint64_t now_ms, struct message *message, bool only_if_retained) {
    return route_publication(broker, now_ms, message, only_if_retained, &(struct route_hint){0});
}

bool broker_takes_from_peers(const struct broker *broker) {
    return !broker->memory_short && (broker->journal.failing || !journal_is_half_full(&broker->journal));
}

static void note_refusal(struct broker *broker, enum broker_at limit, const struct message *message, const char *what) {
    limit_reached(broker, limit, "a publication of another broker %s: topic '%.*s'", what,
                  (int)(message->topic_size < 100 ? message->topic_size : 100), message->topic);
}

/* What a client here would be refused has to wait at the other broker, whose client has its acknowledgement already: it
 * counts against limits.link_queue_bytes there. A store that fails may do so for long, and must not keep the site from
 * what needs no store: the queues and the journal have bounds of their own. False if it is not to be routed, and then
 * *taken says what becomes of it. */
static bool admit(struct broker *broker, const struct message *message, enum peer_taken *taken) {
    bool lasts = message->qos > 0 || message->retain;
    bool is_delete = message->retain && message->payload_size == 0;

    if (broker->memory_short && !is_delete) {
        note_refusal(broker, BROKER_AT_MEMORY_BYTES_MAX, message, lasts ? "has to wait" : "dropped");
        *taken = lasts ? PEER_TAKEN_LATER : PEER_TAKEN;
        return false;
    }
    if (lasts && !broker->journal.failing && journal_refuses(&broker->journal) && would_last(broker, message, false)) {
        note_refusal(broker, BROKER_AT_JOURNAL_BYTES_MAX, message, "has to wait");
        *taken = PEER_TAKEN_LATER;
        return false;
    }
    return true;
}

/* What nobody here is in the group for any more goes back. */
static void to_named_groups(struct broker *broker, uint64_t now_ms, struct message *message,
                            struct publication groups) {
    const char *group;
    size_t size;

    while (publication_next_group(&groups, &group, &size)) {
        struct share *share = share_find(broker, group, size);
        if (share == NULL || !share_deliver_here(broker, now_ms, share, message))
            federation_return(broker->federation, now_ms, message, group, size);
    }
}

enum peer_taken broker_deliver_from_peer(struct broker *broker, uint64_t now_ms, struct message *message,
                                         const struct publication *sent) {
    struct passage passage = {.broker = broker, .now_ms = now_ms, .message = message, .from_peer = true};
    bool for_groups = sent != NULL && sent->group_count > 0, for_others = sent == NULL || !sent->groups_only;
    const struct route *route;
    enum peer_taken taken;

    broker->now_ms = now_ms;
    if (!admit(broker, message, &taken)) return taken;
    route = prepare(broker, message, &broker->peers_hint);
    if (route == NULL || (for_groups && !message_keep(message))) return PEER_TAKEN_NO_MEMORY;
    if (message->retain && for_others) {
        broker_clock_seen(broker, now_ms, &message->stamp);
        retain(broker, now_ms, message);
    }
    if (for_others) pass(&passage, route);
    if (for_groups) to_named_groups(broker, now_ms, message, *sent);
    return PEER_TAKEN;
}

enum peer_taken broker_deliver_again(struct broker *broker, uint64_t now_ms, struct message *message,
                                     const struct subscriber *from, const struct publication *sent) {
    struct publication groups = *sent;
    const char *group;
    size_t size;
    enum peer_taken taken;

    broker->now_ms = now_ms;
    if (!admit(broker, message, &taken)) return taken;
    if (!message_keep(message)) return PEER_TAKEN_NO_MEMORY;
    broker->share_returner = from;
    while (publication_next_group(&groups, &group, &size))
        broker_share_again(broker, now_ms, group, size, false, message);
    broker->share_returner = NULL;
    federation_settle(broker->federation, now_ms, message);
    return PEER_TAKEN;
}

enum peer_taken broker_merge_retained(struct broker *broker, uint64_t now_ms, struct message *message) {
    struct passage passage = {
        .broker = broker, .now_ms = now_ms, .message = message, .from_peer = true, .missed = true};
    /* A delete is news only to those who were shown something. */
    bool known = retained_has(broker->retained, message->topic, message->topic_size);
    const struct route *route;
    enum peer_taken taken;

    broker->now_ms = now_ms;
    if (!admit(broker, message, &taken)) return taken;
    route = prepare(broker, message, &broker->peers_hint);
    if (route == NULL) return PEER_TAKEN_NO_MEMORY;
    broker_clock_seen(broker, now_ms, &message->stamp);
    if (retain(broker, now_ms, message) == RETAINED_STORED && (message->payload_size > 0 || known))
        pass(&passage, route);
    return PEER_TAKEN;
}
