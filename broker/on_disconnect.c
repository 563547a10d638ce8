#include "broker/client.h"

#include "broker/engine.h"

void on_disconnect(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                   struct mqtt_view body) {
    struct session *session = client->session;
    struct mqtt_disconnect disconnect;
    enum mqtt_reason reason = mqtt_decode_disconnect(client->version, frame, body, &disconnect);

    if (session == NULL) { /* it gives up before it is authenticated */
        client->why = "it has disconnected";
        client_end(broker, now_ms, client, MQTT_SUCCESS, WILL_DROPPED);
        return;
    }
    if (reason == MQTT_SUCCESS && disconnect.has_session_expiry && session->expiry_s == 0 &&
        disconnect.session_expiry_s != 0)
        reason = MQTT_PROTOCOL_ERROR; /* section 3.14.2.2.2 */
    if (reason != MQTT_SUCCESS) {
        client_fault(broker, now_ms, client, reason);
        return;
    }
    if (disconnect.has_session_expiry)
        session_set_expiry(broker, now_ms, session,
                           disconnect.session_expiry_s < broker->limits.session_expiry_max_s
                               ? disconnect.session_expiry_s
                               : broker->limits.session_expiry_max_s);
    client->why = "it has disconnected";
    client_end(broker, now_ms, client, MQTT_SUCCESS, disconnect.reason == MQTT_SUCCESS ? WILL_DROPPED : WILL_DUE);
}
