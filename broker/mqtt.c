#include "broker/mqtt.h"

#include "broker/props.h"
#include "broker/topic.h"

#include <string.h>

enum mqtt_framing mqtt_read_frame(const uint8_t *bytes, size_t size, struct mqtt_frame *frame) {
    uint32_t remaining = 0;

    for (size_t i = 1; i < 5; i++) {
        if (size <= i) return MQTT_FRAME_MORE;
        remaining |= (uint32_t)(bytes[i] & 0x7F) << (7 * (i - 1));
        if (bytes[i] & 0x80) continue;
        if (i > 1 && bytes[i] == 0) return MQTT_FRAME_MALFORMED; /* not the shortest form */
        frame->type = bytes[0] >> 4;
        frame->flags = bytes[0] & 0x0F;
        frame->header_size = (uint8_t)(i + 1);
        frame->packet_size = (uint32_t)(i + 1) + remaining;
        return MQTT_FRAME_OK;
    }
    return MQTT_FRAME_MALFORMED;
}

/* The property block of a packet; empty in 3.1.1. */
static enum mqtt_reason read_properties(uint8_t version, enum mqtt_type type, struct reader *reader,
                                        struct mqtt_view *out) {
    uint32_t size = 0;

    *out = (struct mqtt_view){.bytes = reader->at, .size = 0};
    if (version < MQTT_50) return MQTT_SUCCESS;
    if (!reader_varint(reader, &size) || !reader_take(reader, size, out)) return MQTT_MALFORMED;
    return props_check(type, *out);
}

static bool view_is(struct mqtt_view view, const char *text) {
    return view.size == strlen(text) && memcmp(view.bytes, text, view.size) == 0;
}

static void take_connect_properties(struct mqtt_view block, struct mqtt_connect *out) {
    struct reader reader = props_reader(block);
    struct prop prop;

    while (props_next(&reader, &prop)) {
        switch (prop.id) {
        case PROP_SESSION_EXPIRY:
            out->has_session_expiry = true;
            out->session_expiry_s = prop.number;
            break;
        case PROP_RECEIVE_MAX: out->receive_max = (uint16_t)prop.number; break;
        case PROP_PACKET_SIZE_MAX: out->packet_size_max = prop.number; break;
        case PROP_TOPIC_ALIAS_MAX: out->topic_alias_max = (uint16_t)prop.number; break;
        case PROP_REQUEST_PROBLEM: out->no_problem_information = prop.number == 0; break;
        case PROP_REQUEST_RESPONSE: out->wants_response_information = prop.number == 1; break;
        case PROP_AUTH_METHOD: out->auth_method = prop.text; break;
        case PROP_AUTH_DATA:
            out->auth_data = prop.text;
            out->has_auth_data = true;
            break;
        default: break;
        }
    }
}

static enum mqtt_reason read_will(struct reader *reader, struct mqtt_connect *out) {
    struct reader properties;
    struct prop prop;
    enum mqtt_reason reason = read_properties(out->version, MQTT_WILL, reader, &out->will_properties);

    if (reason != MQTT_SUCCESS) return reason;
    if (!reader_text(reader, &out->will_topic) || !reader_binary(reader, &out->will_payload)) return MQTT_MALFORMED;
    properties = props_reader(out->will_properties);
    while (props_next(&properties, &prop)) {
        if (prop.id == PROP_WILL_DELAY) out->will_delay_s = prop.number;
        if (prop.id == PROP_MESSAGE_EXPIRY) out->will_expiry_s = prop.number;
    }
    if (out->will_topic.size == 0 || topic_has_wildcard((const char *)out->will_topic.bytes, out->will_topic.size))
        return MQTT_TOPIC_NAME_INVALID;
    return MQTT_SUCCESS;
}

static enum mqtt_reason take_connect_flags(uint8_t flags, struct mqtt_connect *out) {
    if (flags & 0x01) return MQTT_MALFORMED; /* MQTT-3.1.2-3 */
    out->clean_start = flags & 0x02;
    out->has_will = flags & 0x04;
    out->will_qos = (flags >> 3) & 3;
    out->will_retain = flags & 0x20;
    out->has_password = flags & 0x40;
    out->has_user_name = flags & 0x80;
    if (out->will_qos == 3 || (!out->has_will && (out->will_qos != 0 || out->will_retain)))
        return MQTT_MALFORMED; /* MQTT-3.1.2-11 to -13 */
    if (out->version < MQTT_50 && out->has_password && !out->has_user_name)
        return MQTT_MALFORMED; /* MQTT 3.1.1: MQTT-3.1.2-22 */
    return MQTT_SUCCESS;
}

enum mqtt_reason mqtt_decode_connect(const struct mqtt_frame *frame, struct mqtt_view body, struct mqtt_connect *out) {
    struct reader reader = props_reader(body);
    struct mqtt_view name, properties;
    enum mqtt_reason reason;
    uint8_t version, flags;

    *out = (struct mqtt_connect){
        .packet_size_max = UINT32_MAX, .receive_max = UINT16_MAX, .will_expiry_s = MESSAGE_NO_EXPIRY};
    if (frame->flags != 0 || !reader_text(&reader, &name) || !reader_u8(&reader, &version)) return MQTT_MALFORMED;
    if (!view_is(name, "MQTT") && !view_is(name, "MQIsdp")) return MQTT_MALFORMED;
    out->is_bridge = version == (MQTT_311 | MQTT_BRIDGE);
    if (out->is_bridge) version = MQTT_311;
    out->version = version;
    if (!view_is(name, "MQTT") || (version != MQTT_311 && version != MQTT_50)) return MQTT_UNSUPPORTED_VERSION;
    if (!reader_u8(&reader, &flags)) return MQTT_MALFORMED;
    reason = take_connect_flags(flags, out);
    if (reason != MQTT_SUCCESS) return reason;
    if (!reader_u16(&reader, &out->keep_alive_s)) return MQTT_MALFORMED;
    reason = read_properties(version, MQTT_CONNECT, &reader, &properties);
    if (reason != MQTT_SUCCESS) return reason;
    take_connect_properties(properties, out);
    if (out->has_auth_data && out->auth_method.bytes == NULL) return MQTT_PROTOCOL_ERROR; /* section 3.1.2.11.10 */
    if (!reader_text(&reader, &out->client_id)) return MQTT_MALFORMED;
    reason = out->has_will ? read_will(&reader, out) : MQTT_SUCCESS;
    if (reason != MQTT_SUCCESS) return reason;
    if ((out->has_user_name && !reader_text(&reader, &out->user_name)) ||
        (out->has_password && !reader_binary(&reader, &out->password)) || reader_left(&reader) > 0)
        return MQTT_MALFORMED;
    return MQTT_SUCCESS;
}

static enum mqtt_reason take_publish_properties(struct mqtt_publish *out) {
    struct reader reader = props_reader(out->properties);
    struct prop prop;

    while (props_next(&reader, &prop)) {
        if (prop.id == PROP_SUBSCRIPTION_IDENTIFIER) return MQTT_PROTOCOL_ERROR; /* MQTT-3.3.4-6 */
        if (prop.id == PROP_TOPIC_ALIAS) out->topic_alias = (uint16_t)prop.number;
        if (prop.id == PROP_MESSAGE_EXPIRY) out->expiry_s = prop.number;
        out->has_hop_properties = out->has_hop_properties || prop_is_for_this_hop(prop.id);
    }
    return MQTT_SUCCESS;
}

enum mqtt_reason mqtt_decode_publish(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                     struct mqtt_publish *out) {
    struct reader reader = props_reader(body);
    enum mqtt_reason reason;

    *out = (struct mqtt_publish){.dup = frame->flags & 8,
                                 .retain = frame->flags & 1,
                                 .qos = (frame->flags >> 1) & 3,
                                 .expiry_s = MESSAGE_NO_EXPIRY};
    if (out->qos == 3 || (out->qos == 0 && out->dup) || !reader_binary(&reader, &out->topic)) return MQTT_MALFORMED;
    if (out->qos > 0 && !reader_u16(&reader, &out->packet_id)) return MQTT_MALFORMED;
    if (out->qos > 0 && out->packet_id == 0) return MQTT_PROTOCOL_ERROR; /* MQTT-2.2.1-3 */
    reason = read_properties(version, MQTT_PUBLISH, &reader, &out->properties);
    if (reason == MQTT_SUCCESS) reason = take_publish_properties(out);
    if (reason != MQTT_SUCCESS) return reason;
    if (out->topic.size == 0 && out->topic_alias == 0) return version < MQTT_50 ? MQTT_MALFORMED : MQTT_PROTOCOL_ERROR;
    reader_take(&reader, (uint32_t)reader_left(&reader), &out->payload);
    return MQTT_SUCCESS;
}

enum mqtt_reason mqtt_check_topic(struct mqtt_view topic) {
    if (!topic_utf8_valid((const char *)topic.bytes, topic.size)) return MQTT_MALFORMED;
    return topic_has_wildcard((const char *)topic.bytes, topic.size) ? MQTT_TOPIC_NAME_INVALID /* MQTT-3.3.2-2 */
                                                                     : MQTT_SUCCESS;
}

/* Which reason codes a client may send in an acknowledgement (tables 3-4, 3-5, 3-6, 3-7). */
static bool ack_reason_allowed(enum mqtt_type type, uint8_t reason) {
    if (type == MQTT_PUBREL || type == MQTT_PUBCOMP)
        return reason == MQTT_SUCCESS || reason == MQTT_PACKET_ID_NOT_FOUND;
    switch (reason) {
    case MQTT_SUCCESS:
    case MQTT_NO_MATCHING_SUBSCRIBERS:
    case MQTT_UNSPECIFIED_ERROR:
    case MQTT_IMPLEMENTATION_ERROR:
    case MQTT_NOT_AUTHORIZED:
    case MQTT_TOPIC_NAME_INVALID:
    case MQTT_PACKET_ID_IN_USE:
    case MQTT_QUOTA_EXCEEDED:
    case MQTT_PAYLOAD_FORMAT_INVALID: return true;
    default: return false;
    }
}

enum mqtt_reason mqtt_decode_ack(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                 struct mqtt_ack *out) {
    struct reader reader = props_reader(body);
    struct mqtt_view properties;
    enum mqtt_reason reason;

    *out = (struct mqtt_ack){.reason = MQTT_SUCCESS};
    if (frame->flags != (frame->type == MQTT_PUBREL ? 2 : 0) || !reader_u16(&reader, &out->packet_id))
        return MQTT_MALFORMED;
    if (out->packet_id == 0) return MQTT_PROTOCOL_ERROR;
    /* Reason code and properties may be left out in 5.0 (section 3.4.2.1, 3.4.2.2.1). */
    if (version >= MQTT_50 && reader_left(&reader) > 0) {
        reader_u8(&reader, &out->reason);
        if (reader_left(&reader) > 0) {
            reason = read_properties(version, frame->type, &reader, &properties);
            if (reason != MQTT_SUCCESS) return reason;
        }
    }
    if (reader_left(&reader) > 0) return MQTT_MALFORMED;
    return ack_reason_allowed(frame->type, out->reason) ? MQTT_SUCCESS : MQTT_PROTOCOL_ERROR;
}

enum mqtt_reason mqtt_decode_auth(const struct mqtt_frame *frame, struct mqtt_view body, struct mqtt_auth *out) {
    struct reader reader = props_reader(body), properties;
    struct mqtt_view block = {0};
    struct prop prop;
    enum mqtt_reason reason;
    bool has_method = false;

    *out = (struct mqtt_auth){.reason = MQTT_SUCCESS};
    if (frame->flags != 0) return MQTT_MALFORMED; /* MQTT-3.15.1-1 */
    if (reader_u8(&reader, &out->reason)) {
        reason = read_properties(MQTT_50, MQTT_AUTH, &reader, &block);
        if (reason != MQTT_SUCCESS) return reason;
    }
    if (reader_left(&reader) > 0) return MQTT_MALFORMED;
    properties = props_reader(block);
    while (props_next(&properties, &prop)) {
        if (prop.id == PROP_AUTH_METHOD) {
            out->method = prop.text;
            has_method = true;
        }
        if (prop.id == PROP_AUTH_DATA) out->data = prop.text;
    }
    /* A client neither confirms (table 3-11) nor leaves the method out (section 3.15.2.2.2). */
    if (!has_method || (out->reason != MQTT_CONTINUE_AUTHENTICATION && out->reason != MQTT_RE_AUTHENTICATE))
        return MQTT_PROTOCOL_ERROR;
    return MQTT_SUCCESS;
}

bool mqtt_next_filter(enum mqtt_type type, struct mqtt_subscribe *subscribe, struct mqtt_view *filter,
                      uint8_t *options) {
    *options = 0;
    return reader_text(&subscribe->filters, filter) &&
           (type == MQTT_UNSUBSCRIBE || reader_u8(&subscribe->filters, options));
}

bool mqtt_check_filter(struct mqtt_view filter) {
    if (topic_is_shared((const char *)filter.bytes, filter.size)) return true;
    for (size_t i = 0; i < filter.size; i++) {
        uint8_t byte = filter.bytes[i];
        if (byte != '+' && byte != '#') continue;
        if ((i > 0 && filter.bytes[i - 1] != '/') ||
            (i + 1 < filter.size && (byte == '#' || filter.bytes[i + 1] != '/')))
            return false;
    }
    return filter.size > 0;
}

static enum mqtt_reason check_options(uint8_t version, uint8_t options) {
    if ((options & 3) == 3 || (options & (version < MQTT_50 ? 0xFC : 0xC0)))
        return MQTT_MALFORMED; /* MQTT-3.8.3-5; 3.1.1: MQTT-3-8.3-4 */
    return (options & 0x30) == 0x30 ? MQTT_PROTOCOL_ERROR : MQTT_SUCCESS;
}

enum mqtt_reason mqtt_decode_subscribe(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                       struct mqtt_subscribe *out) {
    struct reader reader = props_reader(body), properties;
    struct mqtt_view block, filter;
    struct prop prop;
    struct mqtt_subscribe walk;
    enum mqtt_reason reason;
    uint8_t options;

    *out = (struct mqtt_subscribe){0};
    if (frame->flags != 2 || !reader_u16(&reader, &out->packet_id)) return MQTT_MALFORMED;
    if (out->packet_id == 0) return MQTT_PROTOCOL_ERROR;
    reason = read_properties(version, frame->type, &reader, &block);
    if (reason != MQTT_SUCCESS) return reason;
    properties = props_reader(block);
    while (props_next(&properties, &prop))
        if (prop.id == PROP_SUBSCRIPTION_IDENTIFIER) out->identifier = prop.number;
    out->filters = reader;
    if (reader_left(&reader) == 0) return MQTT_PROTOCOL_ERROR; /* MQTT-3.8.3-2, MQTT-3.10.3-2 */
    walk = *out;
    while (reader_left(&walk.filters) > 0) {
        if (!mqtt_next_filter(frame->type, &walk, &filter, &options)) return MQTT_MALFORMED;
        reason = check_options(version, options);
        if (reason != MQTT_SUCCESS) return reason;
        if (++out->filter_count > MQTT_FILTERS_MAX) return MQTT_QUOTA_EXCEEDED;
    }
    return MQTT_SUCCESS;
}

/* Which reason codes a client may send in DISCONNECT (table 3-10). */
static bool disconnect_reason_allowed(uint8_t reason) {
    return reason == MQTT_SUCCESS || reason == MQTT_DISCONNECT_WITH_WILL || (reason >= 0x80 && reason <= 0x83) ||
           reason == MQTT_TOPIC_NAME_INVALID || (reason >= 0x93 && reason <= 0x99);
}

enum mqtt_reason mqtt_decode_disconnect(uint8_t version, const struct mqtt_frame *frame, struct mqtt_view body,
                                        struct mqtt_disconnect *out) {
    struct reader reader = props_reader(body), properties;
    struct mqtt_view block;
    struct prop prop;
    enum mqtt_reason reason;

    *out = (struct mqtt_disconnect){.reason = MQTT_SUCCESS};
    if (frame->flags != 0) return MQTT_MALFORMED;
    if (version >= MQTT_50 && reader_u8(&reader, &out->reason) && reader_left(&reader) > 0) {
        reason = read_properties(version, MQTT_DISCONNECT, &reader, &block);
        if (reason != MQTT_SUCCESS) return reason;
        properties = props_reader(block);
        while (props_next(&properties, &prop)) {
            if (prop.id != PROP_SESSION_EXPIRY) continue;
            out->has_session_expiry = true;
            out->session_expiry_s = prop.number;
        }
    }
    if (reader_left(&reader) > 0) return MQTT_MALFORMED;
    return disconnect_reason_allowed(out->reason) ? MQTT_SUCCESS : MQTT_PROTOCOL_ERROR;
}
