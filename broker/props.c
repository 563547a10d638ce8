#include "broker/props.h"

#include "broker/topic.h"

#include <string.h>

enum prop_type { NONE = 0, BYTE, U16, U32, VARINT, TEXT, BINARY, PAIR };

#define IN(type) (1u << (type))
#define IN_CONNECT IN(MQTT_CONNECT)
#define IN_CONNACK IN(MQTT_CONNACK)
#define IN_PUBLISH IN(MQTT_PUBLISH)
#define IN_WILL IN(MQTT_WILL)
#define IN_SUBSCRIBE IN(MQTT_SUBSCRIBE)
#define IN_DISCONNECT IN(MQTT_DISCONNECT)
#define IN_AUTH IN(MQTT_AUTH)
#define IN_ACKS                                                                                                        \
    (IN(MQTT_PUBACK) | IN(MQTT_PUBREC) | IN(MQTT_PUBREL) | IN(MQTT_PUBCOMP) | IN(MQTT_SUBACK) | IN(MQTT_UNSUBACK))
#define IN_ALL 0xFFFFu

enum value_rule { ANY = 0, FLAG, NOT_ZERO };

/* MQTT 5.0 table 2-4. */
static const struct {
    uint8_t type;
    uint8_t rule;
    uint32_t packets;
} rules[PROP_SHARED_AVAILABLE + 1] = {
    [PROP_PAYLOAD_FORMAT] = {BYTE, FLAG, IN_PUBLISH | IN_WILL},
    [PROP_MESSAGE_EXPIRY] = {U32, ANY, IN_PUBLISH | IN_WILL},
    [PROP_CONTENT_TYPE] = {TEXT, ANY, IN_PUBLISH | IN_WILL},
    [PROP_RESPONSE_TOPIC] = {TEXT, ANY, IN_PUBLISH | IN_WILL},
    [PROP_CORRELATION_DATA] = {BINARY, ANY, IN_PUBLISH | IN_WILL},
    [PROP_SUBSCRIPTION_IDENTIFIER] = {VARINT, NOT_ZERO, IN_PUBLISH | IN_SUBSCRIBE},
    [PROP_SESSION_EXPIRY] = {U32, ANY, IN_CONNECT | IN_CONNACK | IN_DISCONNECT},
    [PROP_ASSIGNED_CLIENT_ID] = {TEXT, ANY, IN_CONNACK},
    [PROP_SERVER_KEEP_ALIVE] = {U16, ANY, IN_CONNACK},
    [PROP_AUTH_METHOD] = {TEXT, ANY, IN_CONNECT | IN_CONNACK | IN_AUTH},
    [PROP_AUTH_DATA] = {BINARY, ANY, IN_CONNECT | IN_CONNACK | IN_AUTH},
    [PROP_REQUEST_PROBLEM] = {BYTE, FLAG, IN_CONNECT},
    [PROP_WILL_DELAY] = {U32, ANY, IN_WILL},
    [PROP_REQUEST_RESPONSE] = {BYTE, FLAG, IN_CONNECT},
    [PROP_RESPONSE_INFORMATION] = {TEXT, ANY, IN_CONNACK},
    [PROP_SERVER_REFERENCE] = {TEXT, ANY, IN_CONNACK | IN_DISCONNECT},
    [PROP_REASON_STRING] = {TEXT, ANY, IN_CONNACK | IN_ACKS | IN_DISCONNECT | IN_AUTH},
    [PROP_RECEIVE_MAX] = {U16, NOT_ZERO, IN_CONNECT | IN_CONNACK},
    [PROP_TOPIC_ALIAS_MAX] = {U16, ANY, IN_CONNECT | IN_CONNACK},
    [PROP_TOPIC_ALIAS] = {U16, NOT_ZERO, IN_PUBLISH},
    [PROP_MAXIMUM_QOS] = {BYTE, FLAG, IN_CONNACK},
    [PROP_RETAIN_AVAILABLE] = {BYTE, FLAG, IN_CONNACK},
    [PROP_USER_PROPERTY] = {PAIR, ANY, IN_ALL},
    [PROP_PACKET_SIZE_MAX] = {U32, NOT_ZERO, IN_CONNECT | IN_CONNACK},
    [PROP_WILDCARD_AVAILABLE] = {BYTE, FLAG, IN_CONNACK},
    [PROP_SUBSCRIPTION_IDENTIFIER_AVAILABLE] = {BYTE, FLAG, IN_CONNACK},
    [PROP_SHARED_AVAILABLE] = {BYTE, FLAG, IN_CONNACK},
};

static bool read_value(struct reader *reader, uint8_t type, struct prop *prop) {
    uint8_t u8 = 0;
    uint16_t u16 = 0;

    switch (type) {
    case BYTE:
        if (!reader_u8(reader, &u8)) return false;
        prop->number = u8;
        return true;
    case U16:
        if (!reader_u16(reader, &u16)) return false;
        prop->number = u16;
        return true;
    case U32: return reader_u32(reader, &prop->number);
    case VARINT: return reader_varint(reader, &prop->number);
    case TEXT: return reader_text(reader, &prop->text);
    case BINARY: return reader_binary(reader, &prop->text);
    case PAIR: return reader_text(reader, &prop->text) && reader_text(reader, &prop->value);
    default: return false;
    }
}

bool props_next(struct reader *reader, struct prop *prop) {
    struct reader ahead = *reader;
    struct prop read = {.encoded = reader->at};

    /* All identifiers there are fit one byte of the variable byte integer. */
    if (!reader_u8(&ahead, &read.id) || read.id > PROP_SHARED_AVAILABLE ||
        !read_value(&ahead, rules[read.id].type, &read))
        return false;
    read.encoded_size = (uint32_t)(ahead.at - reader->at);
    *prop = read;
    *reader = ahead;
    return true;
}

struct reader props_reader(struct mqtt_view block) {
    /* An empty block may have no address, and C lets nothing be added to that. */
    return (struct reader){block.bytes, block.size > 0 ? block.bytes + block.size : block.bytes};
}

static bool value_allowed(const struct prop *prop) {
    if (rules[prop->id].rule == FLAG) return prop->number <= 1;
    if (prop->id == PROP_RESPONSE_TOPIC) return !topic_has_wildcard((const char *)prop->text.bytes, prop->text.size);
    return rules[prop->id].rule != NOT_ZERO || prop->number != 0;
}

enum mqtt_reason props_check(enum mqtt_type packet, struct mqtt_view block) {
    struct reader reader = props_reader(block);
    uint64_t seen = 0;
    struct prop prop;

    while (reader_left(&reader) > 0) {
        if (!props_next(&reader, &prop) || !(rules[prop.id].packets & IN(packet))) return MQTT_MALFORMED;
        if (!value_allowed(&prop)) return prop.id == PROP_TOPIC_ALIAS ? MQTT_TOPIC_ALIAS_INVALID : MQTT_PROTOCOL_ERROR;
        if (prop.id == PROP_USER_PROPERTY) continue;
        if (seen & (1ull << prop.id)) return MQTT_PROTOCOL_ERROR;
        seen |= 1ull << prop.id;
    }
    return MQTT_SUCCESS;
}

bool prop_is_for_this_hop(uint8_t id) {
    return id == PROP_TOPIC_ALIAS || id == PROP_MESSAGE_EXPIRY || id == PROP_WILL_DELAY ||
           id == PROP_SUBSCRIPTION_IDENTIFIER;
}

uint32_t props_strip(uint8_t *block, uint32_t size) {
    struct reader reader = {block, block + size};
    uint8_t *to = block;
    struct prop prop;

    while (props_next(&reader, &prop)) {
        if (prop_is_for_this_hop(prop.id)) continue;
        memmove(to, prop.encoded, prop.encoded_size);
        to += prop.encoded_size;
    }
    return (uint32_t)(to - block);
}
