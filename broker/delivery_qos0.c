#include "broker/engine.h"
#include "broker/session.h"

void session_deliver_qos0(struct broker *broker, uint64_t now_ms, struct session *session, struct message *message,
                          const struct delivery *delivery) {
    struct client *client = session->client;
    struct mqtt_sending sending;

    if (client == NULL || client->doom != 0 || client->muted) return;
    if (client_output_full(broker, client)) {
        broker->counters.dropped_qos0++;
        limit_reached(broker, BROKER_AT_OUTPUT_BYTES_MAX, "QoS 0 dropped for client '%.*s', which reads too slowly",
                      (int)(session->client_id_size < 64 ? session->client_id_size : 64), session->client_id);
        return;
    }
    sending = (struct mqtt_sending){.version = client->version,
                                    .retain = delivery->retain,
                                    .expiry_left_s = message_expiry_left_s(message, now_ms),
                                    .identifiers = delivery->identifiers,
                                    .identifier_count = delivery->identifier_count,
                                    .message = message};
    switch (client_send_publish(broker, client, &sending, message)) {
    case CLIENT_SENT: break;
    case CLIENT_TOO_LARGE: broker->counters.dropped_too_large++; break;
    case CLIENT_NO_MEMORY: client_doom(broker, client, MQTT_QUOTA_EXCEEDED); break;
    }
}
