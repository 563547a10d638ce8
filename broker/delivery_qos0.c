#include "broker/engine.h"
#include "broker/session.h"

static enum client_sent encode(struct broker *broker, uint64_t now_ms, struct client *client, struct message *message,
                               const struct delivery *delivery, struct mqtt_view *encoded) {
    struct mqtt_sending sending = {.version = client->version,
                                   .retain = delivery->retain,
                                   .expiry_left_s = message_expiry_left_s(message, now_ms),
                                   .identifiers = delivery->identifiers,
                                   .identifier_count = delivery->identifier_count,
                                   .message = message};

    return client_send_publish(broker, client, &sending, message, encoded);
}

void session_deliver_qos0(struct broker *broker, uint64_t now_ms, struct session *session, struct message *message,
                          const struct delivery *delivery) {
    struct client *client = session->client;
    struct mqtt_view unshared = {0}, *packet = &unshared;
    enum client_sent sent;

    if (client == NULL || client->doom != 0 || client->muted) return;
    if (client_output_full(broker, client)) {
        broker->counters.dropped_qos0++;
        limit_reached(broker, BROKER_AT_OUTPUT_BYTES_MAX, "QoS 0 dropped for client '%.*s', which reads too slowly",
                      (int)(session->client_id_size < 64 ? session->client_id_size : 64), session->client_id);
        return;
    }
    if (delivery->encodings != NULL && delivery->identifier_count == 0 && client->aliases_out_max == 0)
        packet = &delivery->encodings->packets[client->version >= MQTT_50][delivery->retain];
    if (packet->size > 0)
        sent = client_send_encoded(broker, client, message, *packet);
    else
        sent = encode(broker, now_ms, client, message, delivery, packet);
    if (sent == CLIENT_SENT) return;
    if (sent == CLIENT_TOO_LARGE) broker->counters.dropped_too_large++;
    if (sent == CLIENT_NO_MEMORY) client_doom(broker, client, MQTT_QUOTA_EXCEEDED);
}
