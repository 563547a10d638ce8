/* Every packet that a client may send, in both versions: the decoder reads nothing outside, its views lie inside, and a
 * publication that was taken apart and put together again is the same. The first byte of the input is the version and
 * whether a packet's end is cut off; packets follow one after the other. */
#include "broker/mqtt.h"
#include "broker/props.h"
#include "broker/topic.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct mqtt_view view, struct mqtt_view body) {
    if (view.size == 0) return;
    assert(view.bytes >= body.bytes && view.bytes + view.size <= body.bytes + body.size);
}

static void connect(const struct mqtt_frame *frame, struct mqtt_view body) {
    struct mqtt_connect out = {0};
    if (mqtt_decode_connect(frame, body, &out) != MQTT_SUCCESS) return;
    assert(out.version == MQTT_311 || out.version == MQTT_50);
    assert(out.will_qos <= 2 && (out.has_will || (out.will_qos == 0 && !out.will_retain)));
    check_inside(out.client_id, body);
    if (out.has_will) {
        check_inside(out.will_topic, body);
        check_inside(out.will_payload, body);
        check_inside(out.will_properties, body);
        assert(topic_name_valid((const char *)out.will_topic.bytes, out.will_topic.size));
        assert(props_check(MQTT_WILL, out.will_properties) == MQTT_SUCCESS);
    }
    if (out.has_user_name) check_inside(out.user_name, body);
    if (out.has_password) check_inside(out.password, body);
}

/* As the broker would send it on, to a subscriber of the same version. */
static void send_on(uint8_t version, const struct mqtt_publish *publish) {
    uint8_t *properties = malloc(publish->properties.size + 1);
    assert(properties != NULL);
    if (publish->properties.size > 0) memcpy(properties, publish->properties.bytes, publish->properties.size);
    const struct message message = {.qos = publish->qos,
                                    .topic = (const char *)publish->topic.bytes,
                                    .topic_size = publish->topic.size,
                                    .payload = publish->payload.bytes,
                                    .payload_size = publish->payload.size,
                                    .properties = properties,
                                    .properties_size = props_strip(properties, publish->properties.size)};
    struct mqtt_sending sending = {.version = version,
                                   .qos = publish->qos,
                                   .dup = publish->dup,
                                   .retain = publish->retain,
                                   .packet_id = publish->packet_id,
                                   .expiry_left_s = publish->expiry_s,
                                   .message = &message};
    uint32_t packet_size;
    size_t head_size = mqtt_publish_head_size(&sending, &packet_size);
    assert(packet_size == head_size + (version == MQTT_50 ? message.properties_size : 0) + message.payload_size);
    uint8_t *packet = malloc(packet_size);
    assert(packet != NULL);
    mqtt_encode_publish_head(packet, &sending);
    mqtt_encode_publish_tail(packet + head_size, &sending);

    struct mqtt_frame frame;
    struct mqtt_publish again;
    assert(mqtt_read_frame(packet, packet_size, &frame) == MQTT_FRAME_OK && frame.packet_size == packet_size);
    struct mqtt_view body = {packet + frame.header_size, packet_size - frame.header_size};
    assert(mqtt_decode_publish(version, &frame, body, &again) == MQTT_SUCCESS);
    assert(again.qos == publish->qos && again.dup == publish->dup && again.retain == publish->retain);
    assert(again.packet_id == publish->packet_id && again.expiry_s == publish->expiry_s && again.topic_alias == 0);
    assert(again.topic.size == publish->topic.size && again.payload.size == publish->payload.size);
    assert(memcmp(again.topic.bytes, publish->topic.bytes, again.topic.size) == 0);
    if (again.payload.size > 0) assert(memcmp(again.payload.bytes, publish->payload.bytes, again.payload.size) == 0);
    free(packet);
    free(properties);
}

static void publish(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body) {
    struct mqtt_publish out = {0};
    if (mqtt_decode_publish(version, frame, body, &out) != MQTT_SUCCESS) return;
    assert(out.qos <= 2 && (out.qos > 0) == (out.packet_id > 0));
    check_inside(out.topic, body);
    check_inside(out.properties, body);
    check_inside(out.payload, body);
    assert(version == MQTT_50 ||
           (out.properties.size == 0 && out.topic_alias == 0 && out.expiry_s == MESSAGE_NO_EXPIRY));
    assert(props_check(MQTT_PUBLISH, out.properties) == MQTT_SUCCESS);
    if (out.topic.size == 0) {
        assert(out.topic_alias > 0);
        return;
    }
    bool is_valid = topic_name_valid((const char *)out.topic.bytes, out.topic.size);
    assert((mqtt_check_topic(out.topic) == MQTT_SUCCESS) == is_valid);
    if (is_valid) send_on(version, &out);
}

static void subscribe(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body) {
    struct mqtt_subscribe out = {0};
    struct mqtt_view filter;
    uint8_t options;
    uint32_t count = 0;
    if (mqtt_decode_subscribe(version, frame, body, &out) != MQTT_SUCCESS) return;
    assert(out.packet_id > 0 && out.filter_count > 0);
    while (mqtt_next_filter((enum mqtt_type)frame->type, &out, &filter, &options)) {
        check_inside(filter, body);
        assert((options & 3) < 3 && (frame->type == MQTT_SUBSCRIBE || options == 0));
        count++;
    }
    assert(count == out.filter_count);
}

static void decode(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body) {
    struct mqtt_ack ack;
    struct mqtt_disconnect disconnect;
    switch (frame->type) {
    case MQTT_CONNECT: connect(frame, body); break;
    case MQTT_PUBLISH: publish(version, frame, body); break;
    case MQTT_PUBACK:
    case MQTT_PUBREC:
    case MQTT_PUBREL:
    case MQTT_PUBCOMP:
        if (mqtt_decode_ack(version, frame, body, &ack) == MQTT_SUCCESS) assert(ack.packet_id > 0);
        break;
    case MQTT_SUBSCRIBE:
    case MQTT_UNSUBSCRIBE: subscribe(version, frame, body); break;
    case MQTT_DISCONNECT: (void)mqtt_decode_disconnect(version, frame, body, &disconnect); break;
    default: break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    uint8_t version = (data[0] & 1) != 0 ? MQTT_50 : MQTT_311;
    uint32_t cut = data[0] >> 1;
    data++, size--;
    while (size > 0) {
        struct mqtt_frame frame;
        enum mqtt_framing framing = mqtt_read_frame(data, size, &frame);
        if (framing != MQTT_FRAME_OK) {
            assert(framing == MQTT_FRAME_MALFORMED || size < 5);
            return 0;
        }
        assert(frame.header_size >= 2 && frame.header_size <= 5 && frame.packet_size >= frame.header_size);
        size_t there = frame.packet_size < size ? frame.packet_size : size;
        uint32_t body_size = there > frame.header_size + cut ? (uint32_t)(there - frame.header_size - cut) : 0;
        /* Memory of exactly this size, so that a read past its end is seen. */
        uint8_t *body = malloc(body_size + (body_size == 0));
        assert(body != NULL);
        if (body_size > 0) memcpy(body, data + frame.header_size, body_size);
        decode(version, &frame, (struct mqtt_view){body, body_size});
        free(body);
        data += there, size -= there;
    }
    return 0;
}
