/* MQTT packets as bytes, for the clients of the simulator. Written from the specification, apart from broker/'s codec,
 * so that a mistake in the one does not hide the same mistake in the other. MQTT 3.1.1 section 2, MQTT 5.0 section 2.
 */
#ifndef SIM_PACKET_H
#define SIM_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum packet_type {
    PACKET_CONNECT = 1,
    PACKET_CONNACK,
    PACKET_PUBLISH,
    PACKET_PUBACK,
    PACKET_PUBREC,
    PACKET_PUBREL,
    PACKET_PUBCOMP,
    PACKET_SUBSCRIBE,
    PACKET_SUBACK,
    PACKET_UNSUBSCRIBE,
    PACKET_UNSUBACK,
    PACKET_PINGREQ,
    PACKET_PINGRESP,
    PACKET_DISCONNECT
};

/* ---- writing ---- */

struct packet {
    uint8_t *bytes; /* the first PACKET_HEAD_MAX are kept for type and length */
    size_t size, room;
};
#define PACKET_HEAD_MAX 5u

void packet_init(struct packet *packet);
void packet_deinit(struct packet *packet);
void packet_u8(struct packet *packet, uint8_t value);
void packet_u16(struct packet *packet, uint16_t value);
void packet_u32(struct packet *packet, uint32_t value);
void packet_bytes(struct packet *packet, const void *bytes, size_t size);
void packet_text(struct packet *packet, const char *text); /* with its length before it */
/* The finished packet, borrowed from it. */
const uint8_t *packet_finish(struct packet *packet, enum packet_type type, uint8_t flags, size_t *size);

/* ---- reading ---- */

struct packet_view {
    enum packet_type type;
    uint8_t flags;
    const uint8_t *at, *end; /* what is left of the body */
    bool bad;                /* something was read past the end */
};

/* A whole packet at the start of these bytes? Returns its size, 0 if more bytes are needed. */
size_t packet_next(const uint8_t *bytes, size_t size, struct packet_view *view);
uint8_t view_u8(struct packet_view *view);
uint16_t view_u16(struct packet_view *view);
uint32_t view_variable(struct packet_view *view); /* a variable byte integer */
const uint8_t *view_bytes(struct packet_view *view, size_t size);
void view_skip_properties(struct packet_view *view);

#endif
