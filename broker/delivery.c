#include "broker/acks.h"
#include "broker/durable.h"
#include "broker/engine.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static size_t outgoing_size(size_t identifier_count) {
    return sizeof(struct outgoing) + identifier_count * sizeof(uint32_t);
}

static size_t queue_cost(const struct outgoing *outgoing) {
    return outgoing_size(outgoing->identifier_count) + message_cost(outgoing->message);
}

/* What waits costs its message once, however many wait for it. */
static void hold(struct broker *broker, const struct outgoing *outgoing) {
    broker->counters.held_bytes += outgoing_size(outgoing->identifier_count);
    if (outgoing->message != NULL && outgoing->message->holder_count++ == 0)
        broker->counters.held_bytes += message_cost(outgoing->message);
}

static void let_message_go(struct broker *broker, struct outgoing *outgoing) {
    struct message *message = outgoing->message;

    if (message == NULL) return;
    if (--message->holder_count == 0) broker->counters.held_bytes -= message_cost(message);
    message_unref(message);
    outgoing->message = NULL;
}

static void outgoing_free(struct broker *broker, struct outgoing *outgoing) {
    share_member_unref(outgoing->member);
    let_message_go(broker, outgoing);
    broker->counters.held_bytes -= outgoing_size(outgoing->identifier_count);
    free(outgoing);
}

void session_outgoing_released(struct broker *broker, const struct session *session, struct outgoing *outgoing) {
    durable_released(broker, session, outgoing);
    let_message_go(broker, outgoing);
    outgoing->released = true;
}

static void unqueue(struct broker *broker, struct session *session, struct outgoing *outgoing) {
    DL_DELETE(session->queue, outgoing);
    session->queue_count--;
    session->queue_bytes -= queue_cost(outgoing);
    broker->counters.queued_messages--;
    broker->counters.queued_bytes -= queue_cost(outgoing);
}

/* Out of the queue or of those in flight. */
static void drop(struct broker *broker, struct session *session, struct outgoing *outgoing) {
    if (outgoing->packet_id == 0) {
        unqueue(broker, session, outgoing);
    } else {
        session_inflight_remove(session, outgoing);
        broker->counters.inflight_messages--;
    }
    outgoing_free(broker, outgoing);
}

void session_outgoing_done(struct broker *broker, struct session *session, struct outgoing *outgoing) {
    durable_done(broker, session, outgoing);
    drop(broker, session, outgoing);
}

static void queue_put(struct broker *broker, struct session *session, struct outgoing *outgoing) {
    DL_APPEND(session->queue, outgoing);
    session->queue_count++;
    session->queue_bytes += queue_cost(outgoing);
    broker->counters.queued_messages++;
    broker->counters.queued_bytes += queue_cost(outgoing);
}

void session_drop_outgoing(struct broker *broker, struct session *session) {
    while (session->inflight != NULL)
        drop(broker, session, session->inflight);
    while (session->queue != NULL)
        drop(broker, session, session->queue);
}

static uint16_t id_after(uint16_t id) {
    return id == UINT16_MAX ? 1 : (uint16_t)(id + 1);
}

/* How many ids in a row are free, beginning with this one, which is. */
static uint16_t free_ids_from(const struct session *session, uint16_t id) {
    uint16_t count = UINT16_MAX;

    for (const struct outgoing *outgoing = session->inflight; outgoing != NULL; outgoing = outgoing->next) {
        uint16_t other = outgoing->packet_id;
        uint16_t distance = other > id ? (uint16_t)(other - id) : (uint16_t)(other + UINT16_MAX - id);
        if (distance < count) count = distance;
    }
    return count;
}

/* Ids are given out in turn. Those that are still in flight a round later may lie anywhere (MQTT-2.2.1-4); what comes
 * into flight meanwhile lies behind. */
static uint16_t next_packet_id(struct session *session) {
    uint16_t id = id_after(session->last_packet_id);

    if (session->free_ids == 0) {
        while (session_inflight(session, id) != NULL)
            id = id_after(id);
        session->free_ids = free_ids_from(session, id);
    }
    session->free_ids--;
    session->last_packet_id = id;
    return id;
}

static void send_release(struct broker *broker, struct client *client, const struct outgoing *outgoing) {
    uint8_t packet[MQTT_SMALL_MAX];
    size_t size = mqtt_encode_ack(packet, client->version, MQTT_PUBREL, outgoing->packet_id, MQTT_SUCCESS);

    acks_send(broker, client, ACK_PUBREL, packet, size, outgoing->record);
}

/* Sends what is in flight but not yet on this connection: PUBREL where PUBREC had come, else the PUBLISH. */
static enum client_sent send_outgoing(struct broker *broker, uint64_t now_ms, struct session *session,
                                      const struct outgoing *outgoing) {
    struct mqtt_sending sending = {.version = session->client->version,
                                   .qos = outgoing->qos,
                                   .dup = outgoing->sent,
                                   .retain = outgoing->retain,
                                   .packet_id = outgoing->packet_id,
                                   .identifiers = outgoing->identifiers,
                                   .identifier_count = outgoing->identifier_count,
                                   .message = outgoing->message};

    if (outgoing->released) {
        send_release(broker, session->client, outgoing);
        return CLIENT_SENT;
    }
    sending.expiry_left_s = message_expiry_left_s(outgoing->message, now_ms);
    return client_send_publish(broker, session->client, &sending, outgoing->message, &(struct mqtt_view){0});
}

static bool is_reachable(const struct broker *broker, const struct session *session) {
    const struct client *client = session->client;

    return client != NULL && client->doom == 0 && !client->muted && !client_output_full(broker, client);
}

/* May one more get a packet id? Those that have one but wait for the store count too. */
static bool may_begin(const struct broker *broker, const struct session *session) {
    return is_reachable(broker, session) && session->inflight_count < session->client->window;
}

/* A client must never see a QoS 2 packet id that a crash could make us forget, and give to another publication; nor a
 * PUBREL that a crash could turn back into a PUBLISH. */
static bool waits_for_store(const struct broker *broker, const struct outgoing *outgoing) {
    return outgoing->qos == 2 && !journal_has(&broker->journal, outgoing->record);
}

static void begin(struct broker *broker, struct session *session, struct outgoing *outgoing) {
    outgoing->packet_id = next_packet_id(session);
    session_inflight_add(session, outgoing);
    broker->counters.inflight_messages++;
    if (session->resend == NULL) session->resend = outgoing;
}

/* The first of the queue gets its packet id, unless it is late (MQTT-3.3.2-5). */
static void begin_next(struct broker *broker, uint64_t now_ms, struct session *session) {
    struct outgoing *outgoing = session->queue;

    if (outgoing->message->expires_at_ms < now_ms) {
        broker->counters.dropped_expired++;
        session_outgoing_done(broker, session, outgoing);
        return;
    }
    unqueue(broker, session, outgoing);
    begin(broker, session, outgoing);
    durable_sent(broker, session, outgoing);
}

/* Sends the first of those in flight that this connection has not seen; false if it has to wait. */
static bool send_next(struct broker *broker, uint64_t now_ms, struct session *session) {
    struct outgoing *outgoing = session->resend;
    enum client_sent sent;

    if (waits_for_store(broker, outgoing)) {
        acks_await(broker, session->client, outgoing->record);
        return false;
    }
    if (!outgoing->sent && outgoing->message->expires_at_ms < now_ms) {
        broker->counters.dropped_expired++;
        session_outgoing_done(broker, session, outgoing); /* it was late while it waited (MQTT-3.3.2-5) */
        return true;
    }
    sent = send_outgoing(broker, now_ms, session, outgoing);
    if (sent == CLIENT_NO_MEMORY) {
        client_doom(broker, session->client, MQTT_QUOTA_EXCEEDED);
        return false;
    }
    if (sent == CLIENT_TOO_LARGE) {
        broker->counters.dropped_too_large++;
        session_outgoing_done(broker, session, outgoing); /* as if it had been delivered (MQTT-3.1.2-25) */
        return true;
    }
    outgoing->sent = outgoing->in_air = true;
    session->in_air++;
    session->resend = outgoing->next;
    return true;
}

void session_pump(struct broker *broker, uint64_t now_ms, struct session *session) {
    for (;;) {
        while (session->queue != NULL && may_begin(broker, session))
            begin_next(broker, now_ms, session);
        if (session->resend == NULL || !is_reachable(broker, session) || session->in_air >= session->client->window ||
            !send_next(broker, now_ms, session))
            return;
    }
}

/* Nothing is before it, and it may have a packet id now. */
static bool goes_at_once(const struct broker *broker, const struct session *session) {
    return session->queue == NULL && may_begin(broker, session);
}

/* What one more would add to all that is held. */
static uint64_t cost_to_all(const struct message *message, const struct delivery *delivery) {
    const struct message *counted = message->references > 0 ? message : message->copy;
    bool held = counted != NULL && counted->holder_count > 0;

    return outgoing_size(delivery->identifier_count) + (held ? 0 : message_cost(message));
}

/* The limit that keeps one more out of the queue; BROKER_AT_COUNT if it may come in. */
static enum broker_at queue_is_at(const struct broker *broker, const struct session *session,
                                  const struct message *message, const struct delivery *delivery) {
    const struct broker_limits *limits = &broker->limits;
    uint64_t queue_bytes = session->queue_bytes + outgoing_size(delivery->identifier_count) + message_cost(message);
    uint64_t common = limits->queues_bytes_max / 2;

    if (session->queue_count >= limits->queue_messages_max) return BROKER_AT_QUEUE_MESSAGES_MAX;
    if (queue_bytes > limits->queue_bytes_max) return BROKER_AT_QUEUE_BYTES_MAX;
    if (broker->counters.held_bytes + cost_to_all(message, delivery) > common &&
        queue_bytes > common / limits->sessions_max)
        return BROKER_AT_QUEUES_BYTES_MAX;
    return BROKER_AT_COUNT;
}

/* Whether the packet is one that the client takes (MQTT-3.1.2-24). */
static bool fits(const struct session *session, const struct message *message, const struct delivery *delivery) {
    const struct client *client = session->client;
    struct mqtt_sending sending;
    uint32_t packet_size;

    if (client == NULL || client->packet_size_max == UINT32_MAX) return true;
    sending = (struct mqtt_sending){.version = client->version,
                                    .qos = delivery->qos,
                                    .expiry_left_s = message->expires_at_ms == UINT64_MAX ? MESSAGE_NO_EXPIRY : 0,
                                    .identifiers = delivery->identifiers,
                                    .identifier_count = delivery->identifier_count,
                                    .message = message};
    mqtt_publish_head_size(&sending, &packet_size);
    return packet_size <= client->packet_size_max;
}

enum session_readiness session_readiness(const struct broker *broker, const struct session *session,
                                         const struct message *message, const struct delivery *delivery) {
    if (!fits(session, message, delivery)) return SESSION_FULL;
    if (delivery->qos == 0) return is_reachable(broker, session) ? SESSION_SENDS : SESSION_FULL;
    if (goes_at_once(broker, session)) return SESSION_SENDS;
    return queue_is_at(broker, session, message, delivery) == BROKER_AT_COUNT ? SESSION_QUEUES : SESSION_FULL;
}

bool session_has_room(const struct broker *broker, const struct session *session, uint8_t qos) {
    const struct client *client = session->client;

    if (client == NULL || client->doom != 0 || client->muted) return false;
    if (qos == 0) return !client_output_full(broker, client);
    return goes_at_once(broker, session) || (session->queue_count < broker->limits.queue_messages_max / 2 &&
                                             session->queue_bytes < broker->limits.queue_bytes_max / 2);
}

static struct outgoing *outgoing_new(struct broker *broker, struct message *message, const struct delivery *delivery) {
    size_t identifiers_size = delivery->identifier_count * sizeof delivery->identifiers[0];
    struct outgoing *outgoing = malloc(outgoing_size(delivery->identifier_count));
    struct message *held = outgoing != NULL ? message_ref(message) : NULL;

    if (held == NULL) {
        free(outgoing);
        return NULL;
    }
    if (delivery->member != NULL) share_member_ref(delivery->member);
    *outgoing = (struct outgoing){.message = held,
                                  .member = delivery->member,
                                  .qos = delivery->qos,
                                  .retain = delivery->retain,
                                  .identifier_count = (uint16_t)delivery->identifier_count};
    if (identifiers_size > 0) memcpy(outgoing->identifiers, delivery->identifiers, identifiers_size);
    hold(broker, outgoing);
    return outgoing;
}

int session_put_back(struct broker *broker, struct session *session, struct message *message,
                     struct share_member *member, const struct record *record) {
    size_t identifier_count = record->identifiers.size / sizeof(uint32_t);
    struct outgoing *outgoing = malloc(outgoing_size(identifier_count));

    if (outgoing == NULL) return -1;
    *outgoing = (struct outgoing){.message = message != NULL ? message_ref(message) : NULL,
                                  .position = record->position,
                                  .packet_id = record->packet_id,
                                  .qos = record->qos,
                                  .retain = record->retain,
                                  .sent = record->packet_id != 0,
                                  .released = record->released,
                                  .identifier_count = (uint16_t)identifier_count};
    if (identifier_count > 0) memcpy(outgoing->identifiers, record->identifiers.bytes, record->identifiers.size);
    hold(broker, outgoing);
    if (message != NULL) {
        message->durable_count++;
        outgoing->member = member;
        if (member != NULL) share_member_ref(member);
    }
    if (outgoing->packet_id == 0) {
        queue_put(broker, session, outgoing);
        return 0;
    }
    session_inflight_add(session, outgoing);
    broker->counters.inflight_messages++;
    session->resend = session->inflight;
    session->last_packet_id = outgoing->packet_id;
    session->free_ids = 0;
    return 0;
}

void session_deliver(struct broker *broker, uint64_t now_ms, struct session *session, struct message *message,
                     const struct delivery *delivery) {
    struct outgoing *outgoing;
    enum broker_at limit;
    bool at_once;

    if (delivery->qos == 0) {
        session_deliver_qos0(broker, now_ms, session, message, delivery);
        return;
    }
    if (message->expires_at_ms < now_ms) return; /* MQTT-3.3.2-5; one of 0 s is for those who are there now */
    at_once = goes_at_once(broker, session);
    limit = at_once ? BROKER_AT_COUNT : queue_is_at(broker, session, message, delivery);
    if (limit != BROKER_AT_COUNT) {
        broker->counters.dropped_queue_full++;
        limit_reached(broker, limit, "a publication dropped for client '%.*s'",
                      (int)(session->client_id_size < 64 ? session->client_id_size : 64), session->client_id);
        return;
    }
    outgoing = outgoing_new(broker, message, delivery);
    if (outgoing == NULL) {
        broker->counters.dropped_queue_full++;
        if (session->client != NULL) client_doom(broker, session->client, MQTT_QUOTA_EXCEEDED);
        return;
    }
    if (!at_once) {
        queue_put(broker, session, outgoing);
        durable_queued(broker, now_ms, session, outgoing);
        return;
    }
    begin(broker, session, outgoing);
    durable_queued(broker, now_ms, session, outgoing);
    session_pump(broker, now_ms, session);
}
