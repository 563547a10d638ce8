#include "broker/acks.h"
#include "broker/durable.h"
#include "broker/engine.h"

/* PUBREL or PUBCOMP. Either ends the client's memory of a packet id, so ours must have outlived a crash before: all
 * that the journal says of this session so far. */
static void send_ack(struct broker *broker, struct client *client, enum mqtt_type type, uint16_t packet_id,
                     enum mqtt_reason reason) {
    uint8_t packet[MQTT_SMALL_MAX];
    size_t size = mqtt_encode_ack(packet, client->version, type, packet_id, reason);

    acks_send(broker, client, type == MQTT_PUBREL ? ACK_PUBREL : ACK_PUBCOMP, packet, size,
              client->session->durable ? broker->journal.last : 0);
}

/* What the client can speak of. A packet id that is given but waits for the store, or for room in the output, it can
 * only have guessed. */
static struct outgoing *sent_as(const struct session *session, uint16_t packet_id) {
    struct outgoing *outgoing = session_inflight(session, packet_id);

    return outgoing != NULL && outgoing->sent ? outgoing : NULL;
}

/* An id that is not in flight is no fault: the acknowledgement may be of a session or a publication that is no more. */
static void on_puback(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_ack *ack) {
    struct session *session = client->session;
    struct outgoing *outgoing = sent_as(session, ack->packet_id);

    if (outgoing == NULL) return;
    if (outgoing->qos != 1) {
        client_fault(broker, now_ms, client, MQTT_PROTOCOL_ERROR);
        return;
    }
    session_outgoing_done(broker, session, outgoing);
    session_pump(broker, now_ms, session);
}

static void on_pubrec(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_ack *ack) {
    struct session *session = client->session;
    struct outgoing *outgoing = sent_as(session, ack->packet_id);

    if (outgoing == NULL) {
        if (ack->reason < 0x80) send_ack(broker, client, MQTT_PUBREL, ack->packet_id, MQTT_PACKET_ID_NOT_FOUND);
        return;
    }
    if (outgoing->qos != 2) {
        client_fault(broker, now_ms, client, MQTT_PROTOCOL_ERROR);
        return;
    }
    if (ack->reason >= 0x80) {
        /* Refused by the client; the packet id is free again (section 4.3.3). */
        session_outgoing_done(broker, session, outgoing);
        session_pump(broker, now_ms, session);
        return;
    }
    if (!outgoing->released) session_outgoing_released(broker, session, outgoing);
    if (outgoing->in_air)
        send_ack(broker, client, MQTT_PUBREL, ack->packet_id, MQTT_SUCCESS);
    else
        session_pump(broker, now_ms,
                     session); /* answered on this connection before it was sent again: its turn comes */
}

static void on_pubcomp(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_ack *ack) {
    struct session *session = client->session;
    struct outgoing *outgoing = sent_as(session, ack->packet_id);

    if (outgoing == NULL) return;
    if (outgoing->qos != 2 || !outgoing->released) {
        client_fault(broker, now_ms, client, MQTT_PROTOCOL_ERROR);
        return;
    }
    session_outgoing_done(broker, session, outgoing);
    session_pump(broker, now_ms, session);
}

static void on_pubrel(struct broker *broker, struct client *client, const struct mqtt_ack *ack) {
    bool found = session_received_remove(client->session, ack->packet_id);

    if (found) durable_received_end(broker, client->session, ack->packet_id);
    send_ack(broker, client, MQTT_PUBCOMP, ack->packet_id, found ? MQTT_SUCCESS : MQTT_PACKET_ID_NOT_FOUND);
}

void on_ack(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
            struct mqtt_view body) {
    struct mqtt_ack ack;
    enum mqtt_reason reason = mqtt_decode_ack(client->version, frame, body, &ack);

    if (reason != MQTT_SUCCESS) {
        client_fault(broker, now_ms, client, reason);
        return;
    }
    switch (frame->type) {
    case MQTT_PUBACK: on_puback(broker, now_ms, client, &ack); break;
    case MQTT_PUBREC: on_pubrec(broker, now_ms, client, &ack); break;
    case MQTT_PUBREL: on_pubrel(broker, client, &ack); break;
    default: on_pubcomp(broker, now_ms, client, &ack); break;
    }
}
