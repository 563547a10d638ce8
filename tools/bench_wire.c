#include "bench_wire.h"

#include <stdlib.h>
#include <string.h>

#define REMAINING_MAX 268435455u
#define PROP_SESSION_EXPIRY 0x11u
#define PROP_RECEIVE_MAX 0x21u

/* ---- writing ---- */

static uint8_t *put_u16(uint8_t *at, size_t value) {
    *at++ = (uint8_t)(value >> 8);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_text(uint8_t *at, const char *text) {
    size_t size = strlen(text);
    at = put_u16(at, size);
    memcpy(at, text, size);
    return at + size;
}

static uint8_t *put_expiry(uint8_t *at, uint32_t seconds) {
    *at++ = PROP_SESSION_EXPIRY;
    at = put_u16(at, seconds >> 16);
    return put_u16(at, seconds & 0xFFFF);
}

static uint8_t *put_varint(uint8_t *at, size_t value) {
    do {
        *at++ = (uint8_t)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        value >>= 7;
    } while (value > 0);
    return at;
}

static size_t varint_size(size_t value) {
    return value < 128 ? 1 : value < 16384 ? 2 : value < 2097152 ? 3 : 4;
}

size_t bench_write_connect(uint8_t *out, size_t room, const struct bench_login *login) {
    bool v5 = login->version == 5;
    size_t properties = v5 ? login->session_expiry_s > 0 ? 6 : 1 : 0;
    size_t remaining = 10 + properties + 2 + strlen(login->client_id);
    if (login->user != NULL) remaining += 2 + strlen(login->user);
    if (login->password != NULL) remaining += 2 + strlen(login->password);
    if (remaining > UINT16_MAX || 1 + varint_size(remaining) + remaining > room) return 0;

    uint8_t *at = out;
    *at++ = 0x10;
    at = put_varint(at, remaining);
    at = put_text(at, "MQTT");
    *at++ = login->version;
    *at++ = (uint8_t)((login->user != NULL ? 0x80 : 0) | (login->password != NULL ? 0x40 : 0) |
                      (login->session_expiry_s > 0 ? 0 : 0x02));
    at = put_u16(at, 0);
    if (v5) *at++ = (uint8_t)(properties - 1);
    if (properties > 1) at = put_expiry(at, login->session_expiry_s);
    at = put_text(at, login->client_id);
    if (login->user != NULL) at = put_text(at, login->user);
    if (login->password != NULL) at = put_text(at, login->password);
    return (size_t)(at - out);
}

size_t bench_write_subscribe(uint8_t *out, size_t room, uint8_t version, const char *filter, uint8_t qos) {
    size_t remaining = 5u + (version == 5 ? 1u : 0u) + strlen(filter);
    if (remaining > UINT16_MAX || 1 + varint_size(remaining) + remaining > room) return 0;
    uint8_t *at = out;
    *at++ = 0x82;
    at = put_varint(at, remaining);
    at = put_u16(at, 1);
    if (version == 5) *at++ = 0;
    at = put_text(at, filter);
    *at++ = qos;
    return (size_t)(at - out);
}

void bench_write_ack(uint8_t out[BENCH_ACK_SIZE], enum bench_type type, uint16_t packet_id) {
    out[0] = (uint8_t)(type << 4 | (type == BENCH_PUBREL ? 2 : 0));
    out[1] = 2;
    put_u16(out + 2, packet_id);
}

size_t bench_write_disconnect(uint8_t out[BENCH_DISCONNECT_MAX], uint8_t version) {
    uint8_t *at = out;
    *at++ = 0xE0;
    *at++ = version == 5 ? 7 : 0;
    if (version != 5) return 2;
    *at++ = 0;
    *at++ = 5;
    at = put_expiry(at, 0);
    return (size_t)(at - out);
}

bool bench_template_init(struct bench_template *template, uint8_t version, const char *topic, uint8_t qos,
                         size_t payload_size) {
    size_t remaining = 2 + strlen(topic) + (qos > 0 ? 2u : 0u) + (version == 5 ? 1u : 0u) + payload_size;
    if (remaining > REMAINING_MAX) return false;
    template->size = 1 + varint_size(remaining) + remaining;
    template->qos = qos;
    template->bytes = calloc(1, template->size);
    if (template->bytes == NULL) return false;
    uint8_t *at = template->bytes;
    *at++ = (uint8_t)(0x30 | qos << 1);
    at = put_varint(at, remaining);
    at = put_text(at, topic);
    template->packet_id_at = (size_t)(at - template->bytes);
    if (qos > 0) at += 2;
    if (version == 5) *at++ = 0;
    template->stamp_at = (size_t)(at - template->bytes);
    for (size_t i = sizeof(struct bench_stamp); i < payload_size; i++)
        at[i] = (uint8_t)('a' + i % 26);
    return true;
}

void bench_template_deinit(struct bench_template *template) {
    free(template->bytes);
    template->bytes = NULL;
}

void bench_write_publish(uint8_t *out, const struct bench_template *template, uint16_t packet_id,
                         const struct bench_stamp *stamp) {
    memcpy(out, template->bytes, template->size);
    if (template->qos > 0) put_u16(out + template->packet_id_at, packet_id);
    memcpy(out + template->stamp_at, stamp, sizeof *stamp);
}

/* ---- reading ---- */

static uint16_t get_u16(const uint8_t *at) {
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Steps over a variable byte integer; false if it does not end within its four bytes or before the end. */
static bool get_varint(const uint8_t **at, const uint8_t *end, size_t *value) {
    *value = 0;
    for (unsigned shift = 0; shift <= 21 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (size_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* The body of a PUBLISH, as section 3.3 of MQTT 5.0 has it. */
static bool read_publish(uint8_t version, const uint8_t *at, const uint8_t *end, struct bench_packet *packet) {
    packet->qos = packet->flags >> 1 & 3;
    if (end - at < 2) return false;
    size_t topic_size = get_u16(at), skipped = 0;
    at += 2;
    if ((size_t)(end - at) < topic_size + (packet->qos > 0 ? 2u : 0u)) return false;
    at += topic_size;
    if (packet->qos > 0) {
        packet->packet_id = get_u16(at);
        at += 2;
    }
    if (version == 5 && (!get_varint(&at, end, &skipped) || (size_t)(end - at) < skipped)) return false;
    packet->payload = at + skipped;
    packet->payload_size = (size_t)(end - packet->payload);
    return true;
}

/* Receive Maximum among the properties of a CONNACK; they come in any order, so the others must be known. */
static uint16_t find_receive_max(const uint8_t *at, const uint8_t *end) {
    while (at < end) {
        uint8_t id = *at++;
        size_t left = (size_t)(end - at), size;
        switch (id) {
        case PROP_RECEIVE_MAX: return left >= 2 ? get_u16(at) : 0;
        case 0x24:
        case 0x25:
        case 0x28:
        case 0x29:
        case 0x2A: size = 1; break;
        case 0x13:
        case 0x22: size = 2; break;
        case 0x11:
        case 0x27: size = 4; break;
        case 0x26: /* two texts */
            if (left < 2) return 0;
            size = 2u + get_u16(at);
            if (left < size + 2) return 0;
            size += 2u + get_u16(at + size);
            break;
        default: size = left >= 2 ? 2u + get_u16(at) : left; break;
        }
        if (size > left) return 0;
        at += size;
    }
    return 0;
}

static bool read_connack(uint8_t version, const uint8_t *at, const uint8_t *end, struct bench_packet *packet) {
    if (end - at < 2) return false;
    packet->reason = at[1];
    at += 2;
    size_t properties;
    if (version == 5 && at < end && get_varint(&at, end, &properties) && properties <= (size_t)(end - at))
        packet->receive_max = find_receive_max(at, at + properties);
    return true;
}

/* Packet id, then in 5.0 perhaps a reason. */
static bool read_ack(const uint8_t *at, const uint8_t *end, struct bench_packet *packet) {
    if (end - at < 2) return false;
    packet->packet_id = get_u16(at);
    packet->reason = end - at > 2 ? at[2] : 0;
    return true;
}

static bool read_suback(uint8_t version, const uint8_t *at, const uint8_t *end, struct bench_packet *packet) {
    size_t skipped = 0;
    if (end - at < 3) return false;
    packet->packet_id = get_u16(at);
    at += 2;
    if (version == 5 && (!get_varint(&at, end, &skipped) || (size_t)(end - at) < skipped + 1)) return false;
    packet->reason = at[skipped];
    return true;
}

static bool read_body(uint8_t version, const uint8_t *at, const uint8_t *end, struct bench_packet *packet) {
    switch (packet->type) {
    case BENCH_PUBLISH: return read_publish(version, at, end, packet);
    case BENCH_CONNACK: return read_connack(version, at, end, packet);
    case BENCH_PUBACK:
    case BENCH_PUBREC:
    case BENCH_PUBREL:
    case BENCH_PUBCOMP: return read_ack(at, end, packet);
    case BENCH_SUBACK: return read_suback(version, at, end, packet);
    case BENCH_DISCONNECT: packet->reason = at < end ? at[0] : 0; return true;
    default: return true;
    }
}

int bench_read_packet(uint8_t version, const uint8_t *bytes, size_t size, struct bench_packet *packet) {
    if (size < 2) return 0;
    const uint8_t *at = bytes + 1, *end = bytes + size;
    size_t remaining;
    if (!get_varint(&at, end, &remaining)) return size > 4 ? -1 : 0;
    if ((size_t)(end - at) < remaining) return 0;
    *packet = (struct bench_packet){.type = bytes[0] >> 4, .flags = bytes[0] & 15};
    packet->size = (size_t)(at - bytes) + remaining;
    return read_body(version, at, at + remaining, packet) ? 1 : -1;
}
