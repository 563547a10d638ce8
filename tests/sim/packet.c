#include "tests/sim/packet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void packet_init(struct packet *packet) {
    *packet = (struct packet){.size = PACKET_HEAD_MAX, .room = 256};
    packet->bytes = malloc(packet->room);
    assert(packet->bytes != NULL);
}

void packet_deinit(struct packet *packet) {
    free(packet->bytes);
}

void packet_bytes(struct packet *packet, const void *bytes, size_t size) {
    if (packet->size + size > packet->room) {
        packet->room = (packet->size + size) * 2;
        packet->bytes = realloc(packet->bytes, packet->room);
        assert(packet->bytes != NULL);
    }
    if (size != 0) memcpy(packet->bytes + packet->size, bytes, size);
    packet->size += size;
}

void packet_u8(struct packet *packet, uint8_t value) {
    packet_bytes(packet, &value, 1);
}

void packet_u16(struct packet *packet, uint16_t value) {
    packet_u8(packet, (uint8_t)(value >> 8));
    packet_u8(packet, (uint8_t)value);
}

void packet_u32(struct packet *packet, uint32_t value) {
    packet_u16(packet, (uint16_t)(value >> 16));
    packet_u16(packet, (uint16_t)value);
}

void packet_text(struct packet *packet, const char *text) {
    size_t size = strlen(text);
    packet_u16(packet, (uint16_t)size);
    packet_bytes(packet, text, size);
}

const uint8_t *packet_finish(struct packet *packet, enum packet_type type, uint8_t flags, size_t *size) {
    uint8_t length[4];
    size_t digits = 0;
    for (size_t left = packet->size - PACKET_HEAD_MAX;; left >>= 7) {
        length[digits++] = (uint8_t)((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
        if (left <= 0x7f) break;
        assert(digits < sizeof length);
    }
    uint8_t *start = packet->bytes + PACKET_HEAD_MAX - digits - 1;
    start[0] = (uint8_t)((unsigned)type << 4 | flags);
    memcpy(start + 1, length, digits);
    *size = (size_t)(packet->bytes + packet->size - start);
    return start;
}

size_t packet_next(const uint8_t *bytes, size_t size, struct packet_view *view) {
    size_t length = 0, at = 1;
    for (unsigned shift = 0;; shift += 7) {
        if (at >= size) return 0;
        uint8_t digit = bytes[at++];
        length |= (size_t)(digit & 0x7f) << shift;
        if ((digit & 0x80) == 0) break;
        assert(shift < 21); /* the broker writes no malformed length */
    }
    if (size - at < length) return 0;
    view->type = (enum packet_type)(bytes[0] >> 4);
    view->flags = bytes[0] & 0x0f;
    view->at = bytes + at;
    view->end = view->at + length;
    view->bad = false;
    return at + length;
}

const uint8_t *view_bytes(struct packet_view *view, size_t size) {
    const uint8_t *bytes = view->at;
    if ((size_t)(view->end - view->at) < size) {
        view->bad = true;
        return NULL;
    }
    view->at += size;
    return bytes;
}

uint8_t view_u8(struct packet_view *view) {
    const uint8_t *bytes = view_bytes(view, 1);
    return bytes != NULL ? bytes[0] : 0;
}

uint16_t view_u16(struct packet_view *view) {
    const uint8_t *bytes = view_bytes(view, 2);
    return bytes != NULL ? (uint16_t)((unsigned)bytes[0] << 8 | bytes[1]) : 0;
}

uint32_t view_variable(struct packet_view *view) {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 28; shift += 7) {
        uint8_t digit = view_u8(view);
        value |= (uint32_t)(digit & 0x7f) << shift;
        if ((digit & 0x80) == 0) return value;
    }
    view->bad = true;
    return 0;
}

void view_skip_properties(struct packet_view *view) {
    view_bytes(view, view_variable(view));
}
