/* Frames (RFC 6455 section 5). */
#include "daemon/websocket.h"

#include <string.h>

enum { FINAL = 0x80, RESERVED = 0x70, OPCODE = 0x0f, MASKED = 0x80, CONTROL = 0x08 };
enum { CONTINUATION = 0x0, TEXT = 0x1, PING = 0x9 };

static enum websocket_event wrong(struct websocket_piece *piece, uint16_t close_code) {
    piece->close_code = close_code;
    return WEBSOCKET_WRONG;
}

static size_t head_size(const struct websocket_reader *reader) {
    if (reader->head_size < 2) return 2;
    const unsigned size = reader->head[1] & 0x7f;
    return size == 127 ? 14 : size == 126 ? 8 : 6;
}

/* The first two bytes say enough to refuse a frame; 0 if it is good so far. */
static uint16_t check_start(const struct websocket_reader *reader) {
    const unsigned opcode = reader->head[0] & OPCODE, size = reader->head[1] & 0x7f;
    const bool final = (reader->head[0] & FINAL) != 0, control = (opcode & CONTROL) != 0;
    if ((reader->head[0] & RESERVED) != 0) return WEBSOCKET_CLOSE_PROTOCOL_ERROR;
    if ((reader->head[1] & MASKED) == 0) return WEBSOCKET_CLOSE_PROTOCOL_ERROR; /* section 5.1 */
    if (control && (!final || size > WEBSOCKET_CONTROL_MAX || opcode > WEBSOCKET_PONG))
        return WEBSOCKET_CLOSE_PROTOCOL_ERROR;
    if (!control && opcode > WEBSOCKET_BINARY) return WEBSOCKET_CLOSE_PROTOCOL_ERROR;
    if (!control && (opcode == CONTINUATION) != reader->in_message) return WEBSOCKET_CLOSE_PROTOCOL_ERROR;
    if (opcode == TEXT) return WEBSOCKET_CLOSE_NOT_BINARY; /* MQTT-6.0.0-1 */
    return 0;
}

/* False if the size is not in its shortest form or above 63 bits (section 5.2). */
static bool read_size(struct websocket_reader *reader) {
    const unsigned size = reader->head[1] & 0x7f;
    const size_t bytes = size == 127 ? 8 : size == 126 ? 2 : 0;
    reader->left = bytes == 0 ? size : 0;
    for (size_t i = 0; i < bytes; i++)
        reader->left = reader->left << 8 | reader->head[2 + i];
    if (bytes == 2) return reader->left >= 126;
    return bytes == 0 || (reader->left > UINT16_MAX && reader->left >> 63 == 0);
}

static const uint8_t *mask_of(const struct websocket_reader *reader) {
    return reader->head + reader->head_size - 4;
}

/* Eight bytes at a time; the mask is turned so that it begins with the next byte's. */
static void unmask(struct websocket_reader *reader, uint8_t *bytes, size_t size) {
    uint8_t turned[8];
    uint64_t wide, mask;
    size_t i = 0;
    for (size_t at = 0; at < sizeof(turned); at++)
        turned[at] = mask_of(reader)[(reader->mask_at + at) & 3];
    memcpy(&mask, turned, sizeof(mask));
    for (; i + 8 <= size; i += 8) {
        memcpy(&wide, bytes + i, sizeof(wide));
        wide ^= mask;
        memcpy(bytes + i, &wide, sizeof(wide));
    }
    for (; i < size; i++)
        bytes[i] ^= turned[i & 7];
    reader->mask_at = (uint8_t)((reader->mask_at + size) & 3);
}

static void frame_done(struct websocket_reader *reader) {
    if ((reader->head[0] & CONTROL) == 0) reader->in_message = (reader->head[0] & FINAL) == 0;
    reader->in_payload = false;
    reader->head_size = reader->control_size = 0;
}

static enum websocket_event close_event(struct websocket_reader *reader, struct websocket_piece *piece) {
    const unsigned code =
        reader->control_size >= 2 ? (unsigned)reader->control[0] << 8 | reader->control[1] : WEBSOCKET_CLOSE_NORMAL;
    const bool known = (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) || (code >= 3000 && code <= 4999);
    if (reader->control_size == 1 || !known) return wrong(piece, WEBSOCKET_CLOSE_PROTOCOL_ERROR);
    piece->close_code = reader->control_size >= 2 ? (uint16_t)code : 0;
    return WEBSOCKET_CLOSE;
}

/* A control frame is gathered, as it may be split and is small. */
static enum websocket_event read_control(struct websocket_reader *reader, const uint8_t *bytes, size_t size,
                                         struct websocket_piece *piece) {
    const size_t part = size < reader->left ? size : (size_t)reader->left;
    if (part > 0) memcpy(reader->control + reader->control_size, bytes, part);
    unmask(reader, reader->control + reader->control_size, part);
    reader->control_size = (uint8_t)(reader->control_size + part);
    reader->left -= part;
    piece->used += part;
    if (reader->left > 0) return WEBSOCKET_NOTHING;
    const unsigned opcode = reader->head[0] & OPCODE;
    if (opcode == WEBSOCKET_GOODBYE) return close_event(reader, piece);
    piece->bytes = reader->control;
    piece->size = reader->control_size;
    frame_done(reader);
    return opcode == PING ? WEBSOCKET_PING : WEBSOCKET_NOTHING; /* an unasked pong means nothing (section 5.5.3) */
}

static enum websocket_event read_payload(struct websocket_reader *reader, uint8_t *bytes, size_t size,
                                         size_t payload_max, struct websocket_piece *piece) {
    size_t part = size < payload_max ? size : payload_max;
    if (part > reader->left) part = (size_t)reader->left;
    unmask(reader, bytes, part);
    reader->left -= part;
    piece->bytes = bytes;
    piece->size = part;
    piece->used += part;
    if (reader->left == 0) frame_done(reader);
    return part > 0 ? WEBSOCKET_BYTES : WEBSOCKET_NOTHING;
}

enum websocket_event websocket_read(struct websocket_reader *reader, uint8_t *bytes, size_t size, size_t payload_max,
                                    struct websocket_piece *piece) {
    *piece = (struct websocket_piece){0};
    while (!reader->in_payload && piece->used < size) {
        reader->head[reader->head_size++] = bytes[piece->used++];
        if (reader->head_size == 2) {
            const uint16_t close_code = check_start(reader);
            if (close_code != 0) return wrong(piece, close_code);
        }
        if (reader->head_size < head_size(reader)) continue;
        if (!read_size(reader)) return wrong(piece, WEBSOCKET_CLOSE_PROTOCOL_ERROR);
        reader->in_payload = true;
        reader->mask_at = 0;
    }
    if (!reader->in_payload) return WEBSOCKET_NOTHING;
    if ((reader->head[0] & CONTROL) != 0) return read_control(reader, bytes + piece->used, size - piece->used, piece);
    return read_payload(reader, bytes + piece->used, size - piece->used, payload_max, piece);
}

size_t websocket_head(uint8_t head[WEBSOCKET_SENT_HEAD_MAX], enum websocket_opcode opcode, size_t size) {
    head[0] = (uint8_t)(FINAL | opcode);
    if (size < 126) {
        head[1] = (uint8_t)size;
        return 2;
    }
    const size_t bytes = size <= UINT16_MAX ? 2 : 8;
    head[1] = bytes == 2 ? 126 : 127;
    for (size_t i = 0; i < bytes; i++)
        head[2 + i] = (uint8_t)((uint64_t)size >> 8 * (bytes - 1 - i));
    return 2 + bytes;
}
