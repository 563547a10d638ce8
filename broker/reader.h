/* Reading MQTT's data types (MQTT 5.0 section 1.5) out of borrowed bytes, never past their end. A reader that returned
 * false has not moved. */
#ifndef BROKER_READER_H
#define BROKER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mqtt_view {
    const uint8_t *bytes; /* borrowed, never NULL when it was read */
    uint32_t size;
};

struct reader {
    const uint8_t *at, *end;
};

size_t reader_left(const struct reader *reader);
bool reader_u8(struct reader *reader, uint8_t *out);
bool reader_u16(struct reader *reader, uint16_t *out);
bool reader_u32(struct reader *reader, uint32_t *out);
/* Variable byte integer, in the shortest form only (MQTT-1.5.5-1). */
bool reader_varint(struct reader *reader, uint32_t *out);
/* That many raw bytes. */
bool reader_take(struct reader *reader, uint32_t size, struct mqtt_view *out);
/* Two bytes of size and the bytes. */
bool reader_binary(struct reader *reader, struct mqtt_view *out);
/* The same, and well-formed UTF-8. */
bool reader_text(struct reader *reader, struct mqtt_view *out);

#endif
