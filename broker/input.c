#include "broker/client.h"

#include "broker/connect.h"
#include "broker/engine.h"
#include "broker/foreign.h"
#include "broker/partial.h"

/* Longest CONNECT: four strings of 64 KiB, and room for properties. Before it nothing is known of the far end. */
enum { CONNECT_SIZE_MAX = 512 * 1024 };
/* Bytes at a time that count as a sign of life in the midst of a packet. */
enum { LONG_PIECE = 1000 };

static void on_pingreq(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                       struct mqtt_view body) {
    uint8_t packet[MQTT_SMALL_MAX];

    if (frame->flags != 0 || body.size != 0) {
        client_fault(broker, now_ms, client, MQTT_MALFORMED);
        return;
    }
    client_send(broker, client, packet, mqtt_encode_pingresp(packet));
}

static void on_packet(struct broker *broker, uint64_t now_ms, struct client *client, const uint8_t *packet,
                      const struct mqtt_frame *frame) {
    struct mqtt_view body = {.bytes = packet + frame->header_size, .size = frame->packet_size - frame->header_size};

    client->heard_ms = now_ms;
    broker->counters.packets_received++;
    switch (frame->type) {
    case MQTT_CONNECT: on_connect(broker, now_ms, client, frame, body); break;
    case MQTT_PUBLISH: on_publish(broker, now_ms, client, frame, body); break;
    case MQTT_PUBACK:
    case MQTT_PUBREC:
    case MQTT_PUBREL:
    case MQTT_PUBCOMP: on_ack(broker, now_ms, client, frame, body); break;
    case MQTT_SUBSCRIBE: on_subscribe(broker, now_ms, client, frame, body); break;
    case MQTT_UNSUBSCRIBE: on_unsubscribe(broker, now_ms, client, frame, body); break;
    case MQTT_PINGREQ: on_pingreq(broker, now_ms, client, frame, body); break;
    case MQTT_DISCONNECT: on_disconnect(broker, now_ms, client, frame, body); break;
    case MQTT_AUTH: on_auth(broker, now_ms, client, frame, body); break;
    default: client_fault(broker, now_ms, client, frame->type == 0 ? MQTT_MALFORMED : MQTT_PROTOCOL_ERROR);
    }
}

/* Reads the header as soon as it is there and refuses what is refused whatever follows. False if the client was ended.
 */
static bool read_header(struct broker *broker, uint64_t now_ms, struct client *client, const uint8_t *bytes,
                        size_t size, struct mqtt_frame *frame, enum mqtt_framing *framing) {
    bool fresh = client->state == CLIENT_NEW;
    uint32_t size_max = broker->limits.packet_size_max;

    *framing = MQTT_FRAME_MORE;
    if (size > 0 && exchange_is_open(client) && bytes[0] >> 4 != MQTT_AUTH && bytes[0] >> 4 != MQTT_DISCONNECT) {
        connect_refuse(broker, now_ms, client, NULL, MQTT_50, MQTT_PROTOCOL_ERROR); /* MQTT-3.1.2-30 */
        return false;
    }
    if (size > 0 && fresh && !exchange_is_open(client) && bytes[0] >> 4 != MQTT_CONNECT) {
        client_fault(broker, now_ms, client, MQTT_PROTOCOL_ERROR); /* MQTT-3.1.0-1 */
        return false;
    }
    *framing = mqtt_read_frame(bytes, size, frame);
    if (*framing == MQTT_FRAME_MALFORMED) {
        client_fault(broker, now_ms, client, MQTT_MALFORMED);
        return false;
    }
    if (fresh && size_max > CONNECT_SIZE_MAX) size_max = CONNECT_SIZE_MAX;
    if (*framing == MQTT_FRAME_OK && frame->packet_size > size_max) {
        client_limit(broker, now_ms, client, BROKER_AT_PACKET_SIZE_MAX, MQTT_PACKET_TOO_LARGE, NULL);
        return false;
    }
    return true;
}

/* Appends to the packet that is not whole. False if the client was ended, or is about to be. */
static bool keep(struct broker *broker, uint64_t now_ms, struct client *client, const uint8_t *bytes, size_t size,
                 uint32_t packet_size) {
    if (partial_append(broker, client, bytes, size, packet_size) != 0) {
        broker_note_add(broker, BROKER_NOTE_WARNING, "no memory for a packet of client '%.*s' at %s: connection closed",
                        CLIENT_WHO(client));
        client_end(broker, now_ms, client, MQTT_QUOTA_EXCEEDED, WILL_DUE);
        return false;
    }
    return client->doom == 0;
}

/* Adds bytes to the packet that is not whole, and handles it once it is. Returns how many bytes were used, 0 if the
 * client was ended. */
static size_t complete(struct broker *broker, uint64_t now_ms, struct client *client, const uint8_t *bytes,
                       size_t size) {
    struct mqtt_frame frame;
    enum mqtt_framing framing;
    size_t take = 1;

    if (!read_header(broker, now_ms, client, client->partial->bytes, client->partial->size, &frame, &framing)) return 0;
    if (framing == MQTT_FRAME_OK) {
        take = frame.packet_size - client->partial->size;
        if (take > size) take = size;
    }
    if (!keep(broker, now_ms, client, bytes, take, framing == MQTT_FRAME_OK ? frame.packet_size : UINT32_MAX) ||
        !read_header(broker, now_ms, client, client->partial->bytes, client->partial->size, &frame, &framing))
        return 0;
    if (framing == MQTT_FRAME_OK && client->partial->size == frame.packet_size) {
        struct partial *partial = partial_take(broker, client);
        on_packet(broker, now_ms, client, partial->bytes, &frame);
        partial_free(broker, partial);
    }
    return take;
}

void client_input(struct broker *broker, uint64_t now_ms, struct client *client, const uint8_t *bytes, size_t size) {
    struct mqtt_frame frame;
    enum mqtt_framing framing;

    if (client->state == CLIENT_NEW && client->partial == NULL && client->why == NULL)
        client->why = foreign_protocol(bytes, size);
    /* Keep alive counts packets (MQTT-3.1.2-22); but who is busy sending a long one is not silent. */
    if (size >= LONG_PIECE) client->heard_ms = now_ms;
    while (size > 0 && client->state != CLIENT_ENDED && client->doom == 0) {
        size_t used;
        if (client->partial != NULL) {
            used = complete(broker, now_ms, client, bytes, size);
        } else {
            if (!read_header(broker, now_ms, client, bytes, size, &frame, &framing)) return;
            if (framing != MQTT_FRAME_OK || frame.packet_size > size) {
                keep(broker, now_ms, client, bytes, size, framing == MQTT_FRAME_OK ? frame.packet_size : UINT32_MAX);
                return;
            }
            on_packet(broker, now_ms, client, bytes, &frame);
            used = frame.packet_size;
        }
        bytes += used;
        size -= used;
    }
}
