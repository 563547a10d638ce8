#include "broker/admission.h"

#include "broker/acks.h"
#include "broker/engine.h"
#include "broker/topic.h"

#include <string.h>

#define NS_PER_S 1000000000ull

bool admission_rate(struct broker *broker, uint64_t now_ms, struct client *client) {
    uint64_t now_ns = now_ms * 1000000u, full_ns;

    if (broker->limits.publish_rate_max == 0) return true;
    full_ns = client->rate_full_ns > now_ns ? client->rate_full_ns : now_ns;
    full_ns += NS_PER_S / broker->limits.publish_rate_max;
    if (full_ns - now_ns > NS_PER_S) return false;
    client->rate_full_ns = full_ns;
    return true;
}

static bool begins_with(const char *topic, size_t size, const char *level) {
    size_t level_size = strlen(level);

    return size >= level_size && memcmp(topic, level, level_size) == 0 &&
           (size == level_size || topic[level_size] == '/');
}

bool admission_topic_denied(const char *topic, size_t size) {
    static const char bridges[] = "$SYS/broker/connection/+/state";

    if (size == 0 || topic[0] != '$') return false;
    if (topic_is_shared(topic, size)) return true;
    return begins_with(topic, size, "$SYS") && !topic_matches(bridges, sizeof bridges - 1, topic, size);
}

enum mqtt_reason admission_topic(struct broker *broker, const struct client *client, const char *topic, size_t size,
                                 enum mqtt_reason reason) {
    if (size > broker->limits.topic_size_max) {
        limit_reached(broker, BROKER_AT_TOPIC_SIZE_MAX, "a topic of %zu bytes of client '%.*s' at %s refused", size,
                      CLIENT_WHO(client));
        return reason;
    }
    if (topic_levels(topic, size) > broker->limits.topic_levels_max) {
        limit_reached(broker, BROKER_AT_TOPIC_LEVELS_MAX, "a topic of %zu levels of client '%.*s' at %s refused",
                      topic_levels(topic, size), CLIENT_WHO(client));
        return reason;
    }
    return MQTT_SUCCESS;
}

enum mqtt_reason admission_subscription(struct broker *broker, const struct session *session, const char *filter,
                                        size_t size, size_t inner) {
    const struct client *client = session->client;
    enum mqtt_reason reason = admission_topic(broker, client, filter + inner, size - inner, MQTT_TOPIC_FILTER_INVALID);

    if (reason != MQTT_SUCCESS || session_holds(broker, session, filter, size)) return reason;
    if (session->filters.count >= broker->limits.subscriptions_per_client) {
        limit_reached(broker, BROKER_AT_SUBSCRIPTIONS, "a subscription of client '%.*s' at %s refused",
                      CLIENT_WHO(client));
        return MQTT_QUOTA_EXCEEDED;
    }
    if (broker->memory_short) {
        limit_reached(broker, BROKER_AT_MEMORY_BYTES_MAX, "a subscription of client '%.*s' at %s refused",
                      CLIENT_WHO(client));
        return MQTT_QUOTA_EXCEEDED;
    }
    return MQTT_SUCCESS;
}

/* What makes room is welcome. */
static bool is_delete(const struct mqtt_publish *publish) {
    return publish->retain && publish->payload.size == 0;
}

static struct verdict memory_verdict(struct broker *broker, const struct client *client,
                                     const struct mqtt_publish *publish) {
    limit_reached(broker, BROKER_AT_MEMORY_BYTES_MAX, "a publication of client '%.*s' at %s %s", CLIENT_WHO(client),
                  publish->qos > 0 ? "refused" : "dropped");
    return (struct verdict){.admission = publish->qos > 0 ? ADMISSION_REFUSED : ADMISSION_DROPPED,
                            .reason = MQTT_QUOTA_EXCEEDED,
                            .why = "the broker's memory is used up (limits.memory_bytes_max)"};
}

/* Publications at QoS 1 and 2 that came and are not acknowledged, this one not among them. The quota begins anew with
 * each connection (MQTT 5.0 section 4.9), and a client that has lost its state never releases what came before. */
static uint32_t unacknowledged(const struct client *client) {
    const struct session *session = client->session;
    uint32_t before = session->received_before;

    return (session->received_count > before ? session->received_count - before : 0) + acks_held(client, ACK_PUBACK);
}

static struct verdict topic_verdict(struct broker *broker, const struct client *client,
                                    const struct mqtt_publish *publish) {
    const char *topic = (const char *)publish->topic.bytes;

    if (topic[0] == '$' && admission_topic_denied(topic, publish->topic.size)) {
        broker->counters.publications_denied++;
        return (struct verdict){ADMISSION_DROPPED, MQTT_NOT_AUTHORIZED, "$SYS and $share are not for clients"};
    }
    if (admission_topic(broker, client, topic, publish->topic.size, MQTT_TOPIC_NAME_INVALID) != MQTT_SUCCESS)
        return (struct verdict){ADMISSION_REFUSED, MQTT_TOPIC_NAME_INVALID,
                                "the topic name has more bytes or levels than the broker's limits allow"};
    return (struct verdict){ADMISSION_GRANTED, MQTT_SUCCESS, NULL};
}

struct verdict admission_check(struct broker *broker, const struct client *client, const struct mqtt_publish *publish,
                               bool topic_known) {
    struct verdict verdict = {ADMISSION_GRANTED, MQTT_SUCCESS, NULL};

    if (publish->qos > 0 && client->version >= MQTT_50 && unacknowledged(client) >= broker->limits.inflight_max) {
        limit_reached(broker, BROKER_AT_INFLIGHT_MAX, "client '%.*s' at %s closed, it sent more at once than it may",
                      CLIENT_WHO(client));
        return (struct verdict){ADMISSION_CLOSED, MQTT_RECEIVE_MAX_EXCEEDED, NULL}; /* section 3.3.4 */
    }
    if (!topic_known) verdict = topic_verdict(broker, client, publish);
    if (verdict.admission == ADMISSION_GRANTED && broker->memory_short && !is_delete(publish))
        return memory_verdict(broker, client, publish);
    return verdict;
}

void admission_answer(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_publish *publish,
                      const struct verdict *verdict) {
    uint8_t packet[MQTT_SMALL_MAX];
    enum mqtt_type type = publish->qos == 1 ? MQTT_PUBACK : MQTT_PUBREC;
    enum ack_kind kind = publish->qos == 1 ? ACK_PUBACK : ACK_PUBREC;
    const char *why = verdict->why != NULL ? verdict->why : mqtt_reason_text(verdict->reason);
    size_t size;

    if (verdict->admission == ADMISSION_CLOSED ||
        (verdict->admission == ADMISSION_REFUSED && (publish->qos == 0 || client->version < MQTT_50))) {
        client->why = verdict->why;
        client_end(broker, now_ms, client, verdict->reason, WILL_DUE);
        return;
    }
    if (publish->qos == 0) return;
    if (client->version < MQTT_50) {
        acks_send(broker, client, kind, packet,
                  mqtt_encode_ack(packet, client->version, type, publish->packet_id, MQTT_SUCCESS), 0);
        return;
    }
    size = mqtt_encode_refusal(packet, type, publish->packet_id, verdict->reason,
                               client->no_problem_information ? NULL : why);
    if (size > client->packet_size_max) /* MQTT-3.4.2-2 */
        size = mqtt_encode_refusal(packet, type, publish->packet_id, verdict->reason, NULL);
    acks_send(broker, client, kind, packet, size, 0);
}
