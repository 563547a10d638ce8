#include "broker/client.h"

#include "broker/acks.h"
#include "broker/admission.h"
#include "broker/durable.h"
#include "broker/engine.h"
#include "broker/props.h"

#include <stdlib.h>
#include <string.h>

/* Stripped properties up to this size need no allocation. */
enum { STRIP_SMALL = 256 };

/* Topics under aliases, of one client: more than 32 of the longest that people use. */
enum { ALIAS_BYTES_MAX = 128 * 1024 };

/* Keeps the topic under its alias (MQTT 5.0 section 3.3.2.3.4). */
static enum mqtt_reason alias_set(struct broker *broker, struct client *client, uint16_t alias,
                                  struct mqtt_view topic) {
    struct mqtt_view *place;
    uint8_t *copy;

    if (client->aliases == NULL) client->aliases = calloc(broker->limits.topic_alias_max, sizeof *client->aliases);
    if (client->aliases == NULL) return MQTT_QUOTA_EXCEEDED;
    place = &client->aliases[alias - 1];
    if (client->alias_bytes - place->size + topic.size > ALIAS_BYTES_MAX) return MQTT_QUOTA_EXCEEDED;
    copy = malloc(topic.size);
    if (copy == NULL) return MQTT_QUOTA_EXCEEDED;
    memcpy(copy, topic.bytes, topic.size);
    free((void *)(uintptr_t)place->bytes);
    client->alias_bytes += topic.size - place->size;
    *place = (struct mqtt_view){.bytes = copy, .size = topic.size};
    return MQTT_SUCCESS;
}

static enum mqtt_reason resolve_alias(struct broker *broker, struct client *client, struct mqtt_publish *publish) {
    if (publish->topic_alias == 0) return MQTT_SUCCESS;
    if (publish->topic_alias > broker->limits.topic_alias_max) { /* MQTT-3.3.2-9 */
        limit_reached(broker, BROKER_AT_TOPIC_ALIAS_MAX, "client '%.*s' at %s closed", CLIENT_WHO(client));
        return MQTT_TOPIC_ALIAS_INVALID;
    }
    if (publish->topic.size > 0) return alias_set(broker, client, publish->topic_alias, publish->topic);
    if (client->aliases == NULL || client->aliases[publish->topic_alias - 1].size == 0) return MQTT_PROTOCOL_ERROR;
    publish->topic = client->aliases[publish->topic_alias - 1];
    return MQTT_SUCCESS;
}

/* Borrowed, from the packet. */
static void message_fill(struct message *message, uint64_t now_ms, const struct client *client,
                         const struct mqtt_publish *publish) {
    memset(message, 0, sizeof *message);
    message->qos = publish->qos;
    message->retain = publish->retain;
    message->topic = (const char *)publish->topic.bytes;
    message->topic_size = publish->topic.size;
    message->payload = publish->payload.bytes;
    message->payload_size = publish->payload.size;
    message->properties = publish->properties.bytes;
    message->properties_size = publish->properties.size;
    message->publisher = client->session->number;
    message->expires_at_ms = message_expires_at_ms(now_ms, publish->expiry_s);
}

/* Takes the properties of this hop out, in a copy that is small as a rule. -1 when memory is short. */
static int strip(struct message *message, uint8_t small[STRIP_SMALL], uint8_t **large) {
    uint8_t *copy = small;

    if (message->properties_size > STRIP_SMALL) copy = *large = malloc(message->properties_size);
    if (copy == NULL) return -1;
    memcpy(copy, message->properties, message->properties_size);
    message->properties = copy;
    message->properties_size = props_strip(copy, message->properties_size);
    return 0;
}

/* What would have to outlive a crash is refused while the store cannot keep it. */
static bool is_refused(struct broker *broker, const struct session *session, const struct message *message) {
    return message->qos > 0 && journal_refuses(&broker->journal) &&
           ((message->qos == 2 && session->durable) || route_lasts(broker, message));
}

static enum routed publish_on(struct broker *broker, uint64_t now_ms, struct client *client,
                              const struct mqtt_publish *publish) {
    struct message message;
    uint8_t small[STRIP_SMALL], *large = NULL;
    bool only_if_retained = publish->qos > 0 && client->version >= MQTT_50; /* the client can be told */
    enum routed routed;

    message_fill(&message, now_ms, client, publish);
    if (publish->has_hop_properties && strip(&message, small, &large) != 0) {
        routed = ROUTED_NO_MEMORY;
    } else if (is_refused(broker, client->session, &message)) {
        routed = ROUTED_NOT_STORED;
    } else if (message.qos == 2 && session_received_add(client->session, publish->packet_id) < 0) {
        routed = ROUTED_NO_MEMORY;
    } else {
        routed = route_publication(broker, now_ms, &message, only_if_retained, &client->hint);
        if (routed != ROUTED && message.qos == 2) session_received_remove(client->session, publish->packet_id);
    }
    if (routed == ROUTED && message.qos == 2) durable_received(broker, client->session, publish->packet_id);
    message_return(&message);
    free(large);
    return routed;
}

/* record: which it waits for, 0 if none. */
static void acknowledge(struct broker *broker, struct client *client, const struct mqtt_publish *publish,
                        uint64_t record) {
    uint8_t packet[MQTT_SMALL_MAX];
    enum mqtt_type type = publish->qos == 1 ? MQTT_PUBACK : MQTT_PUBREC;

    if (publish->qos > 0)
        acks_send(broker, client, publish->qos == 1 ? ACK_PUBACK : ACK_PUBREC, packet,
                  mqtt_encode_ack(packet, client->version, type, publish->packet_id, MQTT_SUCCESS), record);
}

/* before: the last record when the publication came. */
static void take(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_publish *publish,
                 uint64_t before) {
    static const struct verdict full = {ADMISSION_REFUSED, MQTT_QUOTA_EXCEEDED,
                                        "the store of retained messages is full"};
    static const struct verdict failing = {ADMISSION_REFUSED, MQTT_QUOTA_EXCEEDED,
                                           "the broker's disk is full or fails"};

    switch (publish_on(broker, now_ms, client, publish)) {
    case ROUTED: acknowledge(broker, client, publish, journal_since(&broker->journal, before)); break;
    case ROUTED_NOT_RETAINED: admission_answer(broker, now_ms, client, publish, &full); break;
    case ROUTED_NOT_STORED:
        broker->counters.publications_refused++;
        if (!broker->journal.failing)
            limit_reached(broker, BROKER_AT_JOURNAL_BYTES_MAX, "a publication of client '%.*s' at %s refused",
                          CLIENT_WHO(client));
        admission_answer(broker, now_ms, client, publish, &failing);
        break;
    case ROUTED_NO_MEMORY: /* Not acknowledged, so the client still has it. */
        client_end(broker, now_ms, client, MQTT_QUOTA_EXCEEDED, WILL_DUE);
        break;
    }
}

void on_publish(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                struct mqtt_view body) {
    struct mqtt_publish publish;
    uint64_t before = broker->journal.last;
    struct verdict verdict;
    enum mqtt_reason reason;
    bool known; /* the topic is that of the last publication, and was looked into then */

    if (!admission_rate(broker, now_ms, client)) {
        client_limit(broker, now_ms, client, BROKER_AT_PUBLISH_RATE_MAX, MQTT_RATE_TOO_HIGH, NULL);
        return;
    }
    reason = mqtt_decode_publish(client->version, frame, body, &publish);
    known =
        reason == MQTT_SUCCESS && routes_hints(broker->routes, &client->hint, publish.topic.bytes, publish.topic.size);
    if (reason == MQTT_SUCCESS && !known && publish.topic.size > 0) reason = mqtt_check_topic(publish.topic);
    if (reason == MQTT_SUCCESS) reason = resolve_alias(broker, client, &publish);
    if (reason != MQTT_SUCCESS) {
        client_fault(broker, now_ms, client, reason);
        return;
    }
    /* A repetition of one that was routed is acknowledged again, and that is all (MQTT-4.3.3-10). */
    if (publish.qos == 2 && session_received_has(client->session, publish.packet_id)) {
        acknowledge(broker, client, &publish, client->session->durable ? before : 0);
        return;
    }
    verdict = admission_check(broker, client, &publish, known);
    if (verdict.admission != ADMISSION_GRANTED) {
        admission_answer(broker, now_ms, client, &publish, &verdict);
        return;
    }
    broker->counters.publications_received++;
    broker->counters.publication_bytes_received += publish.payload.size;
    take(broker, now_ms, client, &publish, before);
}
