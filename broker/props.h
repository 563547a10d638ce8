/* MQTT 5.0 properties (section 2.2.2.2): which may stand in which packet, of what type, how often.
 *
 * A block of properties is checked once as a whole; after that it is walked without further questions.
 */
#ifndef BROKER_PROPS_H
#define BROKER_PROPS_H

#include "broker/mqtt.h"

enum prop_id {
    PROP_PAYLOAD_FORMAT = 0x01,
    PROP_MESSAGE_EXPIRY = 0x02,
    PROP_CONTENT_TYPE = 0x03,
    PROP_RESPONSE_TOPIC = 0x08,
    PROP_CORRELATION_DATA = 0x09,
    PROP_SUBSCRIPTION_IDENTIFIER = 0x0B,
    PROP_SESSION_EXPIRY = 0x11,
    PROP_ASSIGNED_CLIENT_ID = 0x12,
    PROP_SERVER_KEEP_ALIVE = 0x13,
    PROP_AUTH_METHOD = 0x15,
    PROP_AUTH_DATA = 0x16,
    PROP_REQUEST_PROBLEM = 0x17,
    PROP_WILL_DELAY = 0x18,
    PROP_REQUEST_RESPONSE = 0x19,
    PROP_RESPONSE_INFORMATION = 0x1A,
    PROP_SERVER_REFERENCE = 0x1C,
    PROP_REASON_STRING = 0x1F,
    PROP_RECEIVE_MAX = 0x21,
    PROP_TOPIC_ALIAS_MAX = 0x22,
    PROP_TOPIC_ALIAS = 0x23,
    PROP_MAXIMUM_QOS = 0x24,
    PROP_RETAIN_AVAILABLE = 0x25,
    PROP_USER_PROPERTY = 0x26,
    PROP_PACKET_SIZE_MAX = 0x27,
    PROP_WILDCARD_AVAILABLE = 0x28,
    PROP_SUBSCRIPTION_IDENTIFIER_AVAILABLE = 0x29,
    PROP_SHARED_AVAILABLE = 0x2A,
};

struct prop {
    uint8_t id;
    uint32_t number;        /* of the number types */
    struct mqtt_view text;  /* of text and binary; the name of a user property */
    struct mqtt_view value; /* of a user property */
    const uint8_t *encoded; /* the whole property as it stands */
    uint32_t encoded_size;
};

/* MQTT_SUCCESS, or why the packet must be refused: MQTT_MALFORMED for an unknown property, one that may not stand in
 * this packet or is cut short; MQTT_PROTOCOL_ERROR for a repetition or a forbidden value; MQTT_TOPIC_ALIAS_INVALID for
 * alias 0. */
enum mqtt_reason props_check(enum mqtt_type packet, struct mqtt_view block);

/* The next property of a checked block; false at its end. Start with {block.bytes, block.bytes + block.size}. */
bool props_next(struct reader *reader, struct prop *prop);
struct reader props_reader(struct mqtt_view block);

/* True for the properties of a PUBLISH or will that concern this hop alone and are not passed on as they stand. */
bool prop_is_for_this_hop(uint8_t id);
/* Removes those, moving the others together; returns the new size. The block must be checked. */
uint32_t props_strip(uint8_t *block, uint32_t size);

#endif
