#include "broker/client.h"

#include "broker/acks.h"
#include "broker/durable.h"
#include "broker/engine.h"
#include "broker/props.h"

#include <stdlib.h>
#include <string.h>

/* Stripped properties up to this size need no allocation. */
enum { STRIP_SMALL = 256 };

/* Keeps the topic under its alias (MQTT 5.0 section 3.3.2.3.4). */
static enum mqtt_reason alias_set(struct broker *broker, struct client *client, uint16_t alias,
                                  struct mqtt_view topic) {
    struct mqtt_view *place;
    uint8_t *copy;

    if (client->aliases == NULL) client->aliases = calloc(broker->limits.topic_alias_max, sizeof *client->aliases);
    copy = client->aliases != NULL ? malloc(topic.size) : NULL;
    if (copy == NULL) return MQTT_QUOTA_EXCEEDED;
    memcpy(copy, topic.bytes, topic.size);
    place = &client->aliases[alias - 1];
    free((void *)(uintptr_t)place->bytes);
    *place = (struct mqtt_view){.bytes = copy, .size = topic.size};
    return MQTT_SUCCESS;
}

static enum mqtt_reason resolve_alias(struct broker *broker, struct client *client, struct mqtt_publish *publish) {
    if (publish->topic_alias == 0) return MQTT_SUCCESS;
    if (publish->topic_alias > broker->limits.topic_alias_max) return MQTT_TOPIC_ALIAS_INVALID; /* MQTT-3.3.2-9 */
    if (publish->topic.size > 0) return alias_set(broker, client, publish->topic_alias, publish->topic);
    if (client->aliases == NULL || client->aliases[publish->topic_alias - 1].size == 0) return MQTT_PROTOCOL_ERROR;
    publish->topic = client->aliases[publish->topic_alias - 1];
    return MQTT_SUCCESS;
}

/* Borrowed, from the packet. */
static struct message message_of(uint64_t now_ms, const struct client *client, const struct mqtt_publish *publish) {
    struct message message = {.qos = publish->qos,
                              .retain = publish->retain,
                              .topic = (const char *)publish->topic.bytes,
                              .topic_size = publish->topic.size,
                              .payload = publish->payload.bytes,
                              .payload_size = publish->payload.size,
                              .properties = publish->properties.bytes,
                              .properties_size = publish->properties.size,
                              .publisher = client->session->number,
                              .expires_at_ms = UINT64_MAX};

    if (publish->expiry_s != UINT32_MAX) message.expires_at_ms = now_ms + publish->expiry_s * 1000ull;
    return message;
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

enum published { PUBLISHED, NO_MEMORY, REFUSED }; /* unless published, nothing happened */

/* What would have to outlive a crash is refused while the store cannot keep it. */
static bool is_refused(struct broker *broker, const struct session *session, const struct message *message) {
    return message->qos > 0 && journal_refuses(&broker->journal) &&
           ((message->qos == 2 && session->durable) || route_lasts(broker, message));
}

static enum published publish_on(struct broker *broker, uint64_t now_ms, const struct client *client,
                                 const struct mqtt_publish *publish) {
    struct message message = message_of(now_ms, client, publish);
    uint8_t small[STRIP_SMALL], *large = NULL;
    enum published result = PUBLISHED;

    if (publish->has_hop_properties && strip(&message, small, &large) != 0)
        result = NO_MEMORY;
    else if (is_refused(broker, client->session, &message))
        result = REFUSED;
    else if (message.qos == 2 && session_received_add(client->session, publish->packet_id) < 0)
        result = NO_MEMORY;
    else if (route_local(broker, now_ms, &message) != 0) {
        result = NO_MEMORY;
        if (message.qos == 2) session_received_remove(client->session, publish->packet_id);
    }
    if (result == PUBLISHED && message.qos == 2) durable_received(broker, client->session, publish->packet_id);
    message_return(&message);
    free(large);
    return result;
}

/* record: which it waits for, 0 if none. */
static void acknowledge(struct broker *broker, struct client *client, const struct mqtt_publish *publish,
                        enum mqtt_reason reason, uint64_t record) {
    uint8_t packet[MQTT_SMALL_MAX];
    enum mqtt_type type = publish->qos == 1 ? MQTT_PUBACK : MQTT_PUBREC;

    if (publish->qos > 0)
        acks_send(broker, client, publish->qos == 1 ? ACK_PUBACK : ACK_PUBREC, packet,
                  mqtt_encode_ack(packet, client->version, type, publish->packet_id, reason), record);
}

/* The store cannot keep it: the client is told so, or where its version has no words for it, closed. */
static void refuse(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_publish *publish) {
    broker->counters.publications_refused++;
    if (client->version >= MQTT_50)
        acknowledge(broker, client, publish, MQTT_QUOTA_EXCEEDED, 0);
    else
        client_end(broker, now_ms, client, MQTT_QUOTA_EXCEEDED, WILL_DUE);
}

/* Whether this QoS 2 publication is a repetition of one that was routed (MQTT-4.3.3-10), or one too many. */
static enum mqtt_reason check_qos2(struct broker *broker, const struct client *client,
                                   const struct mqtt_publish *publish, bool *again) {
    *again = session_received_has(client->session, publish->packet_id);
    if (!*again && client->version >= MQTT_50 && client->session->received_count >= broker->limits.inflight_max)
        return MQTT_RECEIVE_MAX_EXCEEDED; /* section 3.3.4 */
    return MQTT_SUCCESS;
}

void on_publish(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                struct mqtt_view body) {
    struct mqtt_publish publish;
    bool again = false;
    uint64_t before = broker->journal.last;
    enum published result;
    enum mqtt_reason reason = mqtt_decode_publish(client->version, frame, body, &publish);

    if (reason == MQTT_SUCCESS) reason = resolve_alias(broker, client, &publish);
    if (reason == MQTT_SUCCESS && publish.qos == 2) reason = check_qos2(broker, client, &publish, &again);
    if (reason != MQTT_SUCCESS) {
        client_fault(broker, now_ms, client, reason);
        return;
    }
    if (again) {
        acknowledge(broker, client, &publish, MQTT_SUCCESS, client->session->durable ? before : 0);
        return;
    }
    broker->counters.publications_received++;
    result = publish_on(broker, now_ms, client, &publish);
    if (result == PUBLISHED)
        acknowledge(broker, client, &publish, MQTT_SUCCESS, journal_since(&broker->journal, before));
    else if (result == REFUSED)
        refuse(broker, now_ms, client, &publish);
    else /* not acknowledged, so the client still has it */
        client_end(broker, now_ms, client, MQTT_QUOTA_EXCEEDED, WILL_DUE);
}
