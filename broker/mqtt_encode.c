#include "broker/mqtt.h"
#include "broker/props.h"

#include <assert.h>
#include <string.h>

static uint8_t *put_u16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

static uint8_t *put_u32(uint8_t *at, uint32_t value) {
    return put_u16(put_u16(at, value >> 16), value & 0xFFFF);
}

static uint8_t *put_varint(uint8_t *at, uint32_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static uint32_t varint_size(uint32_t value) {
    return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : 4;
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t size) {
    if (size > 0) memcpy(at, bytes, size);
    return at + size;
}

static uint8_t *put_text(uint8_t *at, const char *text, size_t size) {
    return put_bytes(put_u16(at, (uint32_t)size), text, size);
}

static uint8_t *put_text_property(uint8_t *at, enum prop_id id, const char *text) {
    *at = (uint8_t)id;
    return put_text(at + 1, text, strlen(text));
}

static uint8_t *put_u16_property(uint8_t *at, enum prop_id id, uint16_t value) {
    *at = (uint8_t)id;
    return put_u16(at + 1, value);
}

static uint8_t *put_u32_property(uint8_t *at, enum prop_id id, uint32_t value) {
    *at = (uint8_t)id;
    return put_u32(at + 1, value);
}

/* MQTT 3.1.1 table 3.1; the codes that have no counterpart there become "server unavailable". */
static uint8_t connack_code_311(uint8_t reason) {
    switch (reason) {
    case MQTT_SUCCESS: return 0;
    case MQTT_UNSUPPORTED_VERSION: return 1;
    case MQTT_CLIENT_ID_INVALID: return 2;
    case MQTT_BAD_USER_OR_PASSWORD: return 4;
    case MQTT_NOT_AUTHORIZED: return 5;
    default: return 3;
    }
}

static uint8_t *put_view_property(uint8_t *at, enum prop_id id, struct mqtt_view view) {
    *at = (uint8_t)id;
    return put_text(at + 1, (const char *)view.bytes, view.size);
}

/* The largest first byte, length, fixed part and length of properties of a packet with properties. */
enum { FRAME_MAX = 16 };

/* A packet whose body is a fixed part and properties. Returns its size. */
static size_t put_packet(uint8_t *out, uint8_t first, const uint8_t *fixed, size_t fixed_size,
                         const uint8_t *properties, size_t properties_size) {
    size_t remaining = fixed_size + varint_size((uint32_t)properties_size) + properties_size;
    uint8_t *at = out;

    *at++ = first;
    at = put_varint(at, (uint32_t)remaining);
    at = put_bytes(at, fixed, fixed_size);
    at = put_varint(at, (uint32_t)properties_size);
    return (size_t)(put_bytes(at, properties, properties_size) - out);
}

static uint8_t *put_welcome_properties(uint8_t *at, const struct mqtt_connack *connack) {
    if (connack->has_session_expiry) at = put_u32_property(at, PROP_SESSION_EXPIRY, connack->session_expiry_s);
    if (connack->receive_max != UINT16_MAX) at = put_u16_property(at, PROP_RECEIVE_MAX, connack->receive_max);
    if (connack->packet_size_max != UINT32_MAX)
        at = put_u32_property(at, PROP_PACKET_SIZE_MAX, connack->packet_size_max);
    if (connack->assigned_client_id != NULL)
        at = put_text_property(at, PROP_ASSIGNED_CLIENT_ID, connack->assigned_client_id);
    if (connack->topic_alias_max != 0) at = put_u16_property(at, PROP_TOPIC_ALIAS_MAX, connack->topic_alias_max);
    if (connack->has_server_keep_alive) at = put_u16_property(at, PROP_SERVER_KEEP_ALIVE, connack->server_keep_alive_s);
    if (connack->response_information != NULL)
        at = put_text_property(at, PROP_RESPONSE_INFORMATION, connack->response_information);
    if (connack->auth_method.size > 0) at = put_view_property(at, PROP_AUTH_METHOD, connack->auth_method);
    if (connack->auth_data.size > 0) at = put_view_property(at, PROP_AUTH_DATA, connack->auth_data);
    return at;
}

static void assert_sizes(const struct mqtt_connack *connack) {
    assert(connack->assigned_client_id == NULL || strlen(connack->assigned_client_id) <= 64);
    assert(connack->reason_string == NULL || strlen(connack->reason_string) <= MQTT_REASON_STRING_MAX);
    assert(connack->response_information == NULL ||
           strlen(connack->response_information) <= MQTT_RESPONSE_INFORMATION_MAX);
    assert(connack->auth_method.size <= MQTT_AUTH_METHOD_MAX && connack->auth_data.size <= MQTT_AUTH_DATA_MAX);
}

size_t mqtt_encode_connack(uint8_t out[MQTT_LARGE_MAX], uint8_t version, const struct mqtt_connack *connack) {
    uint8_t fixed[2] = {connack->session_present && connack->reason == MQTT_SUCCESS, connack->reason};
    uint8_t properties[MQTT_LARGE_MAX - FRAME_MAX], *at = properties;

    assert_sizes(connack);
    if (version < MQTT_50) {
        const uint8_t packet[4] = {MQTT_CONNACK << 4, 2, fixed[0], connack_code_311(connack->reason)};
        memcpy(out, packet, sizeof packet);
        return sizeof packet;
    }
    if (connack->reason == MQTT_SUCCESS) at = put_welcome_properties(at, connack);
    if (connack->reason_string != NULL) at = put_text_property(at, PROP_REASON_STRING, connack->reason_string);
    return put_packet(out, MQTT_CONNACK << 4, fixed, sizeof fixed, properties, (size_t)(at - properties));
}

size_t mqtt_encode_auth(uint8_t out[MQTT_LARGE_MAX], enum mqtt_reason reason, struct mqtt_view method,
                        struct mqtt_view data) {
    uint8_t fixed[1] = {(uint8_t)reason};
    uint8_t properties[MQTT_LARGE_MAX - FRAME_MAX], *at;

    assert(method.size <= MQTT_AUTH_METHOD_MAX && data.size <= MQTT_AUTH_DATA_MAX);
    at = put_view_property(properties, PROP_AUTH_METHOD, method);
    if (data.size > 0) at = put_view_property(at, PROP_AUTH_DATA, data);
    return put_packet(out, MQTT_AUTH << 4, fixed, sizeof fixed, properties, (size_t)(at - properties));
}

/* With a Reason String as its only property, if there is one. */
static size_t put_reason_packet(uint8_t *out, uint8_t first, const uint8_t *fixed, size_t fixed_size,
                                const char *reason_string) {
    uint8_t properties[3 + MQTT_REASON_STRING_MAX], *at;

    if (reason_string == NULL) {
        out[0] = first;
        out[1] = (uint8_t)fixed_size;
        memcpy(out + 2, fixed, fixed_size);
        return 2 + fixed_size;
    }
    assert(strlen(reason_string) <= MQTT_REASON_STRING_MAX);
    at = put_text_property(properties, PROP_REASON_STRING, reason_string);
    return put_packet(out, first, fixed, fixed_size, properties, (size_t)(at - properties));
}

size_t mqtt_encode_ack(uint8_t out[MQTT_SMALL_MAX], uint8_t version, enum mqtt_type type, uint16_t packet_id,
                       enum mqtt_reason reason) {
    out[0] = (uint8_t)(type << 4 | (type == MQTT_PUBREL ? 2 : 0));
    out[1] = 2;
    put_u16(out + 2, packet_id);
    if (version < MQTT_50 || reason == MQTT_SUCCESS) return 4;
    out[1] = 3;
    out[4] = (uint8_t)reason;
    return 5;
}

size_t mqtt_encode_refusal(uint8_t out[MQTT_SMALL_MAX], enum mqtt_type type, uint16_t packet_id,
                           enum mqtt_reason reason, const char *reason_string) {
    const uint8_t fixed[3] = {(uint8_t)(packet_id >> 8), (uint8_t)packet_id, (uint8_t)reason};

    return put_reason_packet(out, (uint8_t)(type << 4), fixed, sizeof fixed, reason_string);
}

size_t mqtt_encode_pingresp(uint8_t out[MQTT_SMALL_MAX]) {
    out[0] = MQTT_PINGRESP << 4;
    out[1] = 0;
    return 2;
}

size_t mqtt_encode_disconnect(uint8_t out[MQTT_SMALL_MAX], enum mqtt_reason reason, const char *reason_string) {
    const uint8_t fixed[1] = {(uint8_t)reason};

    return put_reason_packet(out, MQTT_DISCONNECT << 4, fixed, sizeof fixed, reason_string);
}

static uint32_t suback_properties_size(const struct mqtt_suback *suback) {
    size_t size = suback->reason_string != NULL ? 3 + strlen(suback->reason_string) : 0;

    for (size_t i = 0; i < suback->user_property_count; i++)
        size += 5 + strlen(suback->user_properties[i].name) + strlen(suback->user_properties[i].value);
    return (uint32_t)size;
}

static uint32_t suback_remaining(const struct mqtt_suback *suback) {
    uint32_t codes = (uint32_t)suback->code_count, properties;

    if (suback->version < MQTT_50) return 2 + (suback->type == MQTT_SUBACK ? codes : 0);
    properties = suback_properties_size(suback);
    return 2 + varint_size(properties) + properties + codes;
}

size_t mqtt_suback_size(const struct mqtt_suback *suback) {
    uint32_t remaining = suback_remaining(suback);
    return 1 + (size_t)varint_size(remaining) + remaining;
}

static uint8_t *put_suback_properties(uint8_t *at, const struct mqtt_suback *suback) {
    at = put_varint(at, suback_properties_size(suback));
    if (suback->reason_string != NULL) at = put_text_property(at, PROP_REASON_STRING, suback->reason_string);
    for (size_t i = 0; i < suback->user_property_count; i++) {
        const struct mqtt_user_property *user = &suback->user_properties[i];
        at = put_text_property(at, PROP_USER_PROPERTY, user->name);
        at = put_text(at, user->value, strlen(user->value));
    }
    return at;
}

void mqtt_encode_suback(uint8_t *out, const struct mqtt_suback *suback) {
    uint8_t *at = out;

    *at++ = (uint8_t)(suback->type << 4);
    at = put_varint(at, suback_remaining(suback));
    at = put_u16(at, suback->packet_id);
    if (suback->version >= MQTT_50) at = put_suback_properties(at, suback);
    if (suback->version >= MQTT_50 || suback->type == MQTT_SUBACK) put_bytes(at, suback->codes, suback->code_count);
}

/* What does not fit a variable byte integer cannot be sent. */
#define REMAINING_MAX 268435455u

static uint64_t publish_properties_size(const struct mqtt_sending *sending) {
    uint64_t size = sending->message->properties_size;

    if (sending->topic_alias != 0) size += 3;
    if (sending->expiry_left_s != MESSAGE_NO_EXPIRY) size += 5;
    for (size_t i = 0; i < sending->identifier_count; i++)
        size += 1 + varint_size(sending->identifiers[i]);
    return size;
}

static uint32_t publish_topic_size(const struct mqtt_sending *sending) {
    return sending->topic_is_known ? 0 : sending->message->topic_size;
}

/* What the publisher has given, as it stands. */
static uint32_t publish_tail_size(const struct mqtt_sending *sending) {
    return (sending->version >= MQTT_50 ? sending->message->properties_size : 0) + sending->message->payload_size;
}

size_t mqtt_publish_head_size(struct mqtt_sending *sending, uint32_t *packet_size) {
    uint64_t remaining =
        2 + (uint64_t)publish_topic_size(sending) + (sending->qos > 0 ? 2 : 0) + sending->message->payload_size;
    uint64_t properties = 0;

    if (sending->version >= MQTT_50) {
        properties = publish_properties_size(sending);
        remaining += properties <= REMAINING_MAX ? varint_size((uint32_t)properties) + properties : properties;
    }
    if (remaining > REMAINING_MAX) {
        *packet_size = UINT32_MAX;
        return 0;
    }
    sending->remaining = (uint32_t)remaining;
    sending->properties_size = (uint32_t)properties;
    *packet_size = 1 + varint_size((uint32_t)remaining) + (uint32_t)remaining;
    return *packet_size - publish_tail_size(sending);
}

void mqtt_encode_publish_head(uint8_t *out, const struct mqtt_sending *sending) {
    const struct message *message = sending->message;
    uint8_t *at = out;

    *at++ = (uint8_t)(MQTT_PUBLISH << 4 | (sending->dup ? 8 : 0) | sending->qos << 1 | (sending->retain ? 1 : 0));
    at = put_varint(at, sending->remaining);
    at = put_text(at, message->topic, publish_topic_size(sending));
    if (sending->qos > 0) at = put_u16(at, sending->packet_id);
    if (sending->version < MQTT_50) return;
    at = put_varint(at, sending->properties_size);
    if (sending->properties_size == message->properties_size) return; /* none of this hop, as a rule */
    if (sending->topic_alias != 0) at = put_u16_property(at, PROP_TOPIC_ALIAS, sending->topic_alias);
    for (size_t i = 0; i < sending->identifier_count; i++) {
        *at++ = PROP_SUBSCRIPTION_IDENTIFIER;
        at = put_varint(at, sending->identifiers[i]);
    }
    if (sending->expiry_left_s != MESSAGE_NO_EXPIRY)
        put_u32_property(at, PROP_MESSAGE_EXPIRY, (uint32_t)sending->expiry_left_s);
}

void mqtt_encode_publish_tail(uint8_t *out, const struct mqtt_sending *sending) {
    const struct message *message = sending->message;

    if (sending->version >= MQTT_50) out = put_bytes(out, message->properties, message->properties_size);
    put_bytes(out, message->payload, message->payload_size);
}
