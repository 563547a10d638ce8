#include "broker/reader.h"

#include "broker/topic.h"

size_t reader_left(const struct reader *reader) {
    return (size_t)(reader->end - reader->at);
}

bool reader_u8(struct reader *reader, uint8_t *out) {
    if (reader_left(reader) < 1) return false;
    *out = *reader->at++;
    return true;
}

bool reader_u16(struct reader *reader, uint16_t *out) {
    if (reader_left(reader) < 2) return false;
    *out = (uint16_t)(reader->at[0] << 8 | reader->at[1]);
    reader->at += 2;
    return true;
}

bool reader_u32(struct reader *reader, uint32_t *out) {
    if (reader_left(reader) < 4) return false;
    *out = (uint32_t)reader->at[0] << 24 | (uint32_t)reader->at[1] << 16 | (uint32_t)reader->at[2] << 8 | reader->at[3];
    reader->at += 4;
    return true;
}

bool reader_varint(struct reader *reader, uint32_t *out) {
    uint32_t value = 0;

    for (unsigned i = 0; i < 4 && i < reader_left(reader); i++) {
        uint8_t byte = reader->at[i];
        value |= (uint32_t)(byte & 0x7F) << (7 * i);
        if (byte & 0x80) continue;
        if (i > 0 && byte == 0) return false;
        reader->at += i + 1;
        *out = value;
        return true;
    }
    return false;
}

bool reader_take(struct reader *reader, uint32_t size, struct mqtt_view *out) {
    if (reader_left(reader) < size) return false;
    *out = (struct mqtt_view){.bytes = reader->at, .size = size};
    reader->at += size;
    return true;
}

bool reader_binary(struct reader *reader, struct mqtt_view *out) {
    struct reader ahead = *reader;
    uint16_t size;

    if (!reader_u16(&ahead, &size) || !reader_take(&ahead, size, out)) return false;
    *reader = ahead;
    return true;
}

bool reader_text(struct reader *reader, struct mqtt_view *out) {
    struct reader ahead = *reader;
    struct mqtt_view text;

    if (!reader_binary(&ahead, &text) || !topic_utf8_valid((const char *)text.bytes, text.size)) return false;
    *out = text;
    *reader = ahead;
    return true;
}
