/* MQTT over WebSocket (MQTT 5.0 section 6, RFC 6455), the server's side as bytes alone: path /mqtt or none (/),
 * subprotocol "mqtt", and "mqttv3.1" for older clients, binary messages. A message may hold any piece of the MQTT
 * stream.
 *
 * Extensions are not negotiated. Frames are read where they lie, so that a message of any size needs no memory. */
#ifndef DAEMON_WEBSOCKET_H
#define DAEMON_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEBSOCKET_PATH "/mqtt"
#define WEBSOCKET_REQUEST_MAX 8192u /* bytes of a request; browsers send some hundred, and their cookies */
#define WEBSOCKET_ANSWER_MAX 512u

enum websocket_request_result { WEBSOCKET_ACCEPTED = 0, WEBSOCKET_MORE = 1, WEBSOCKET_REFUSED = -1 };

struct websocket_answer {
    char bytes[WEBSOCKET_ANSWER_MAX]; /* what to send, also with WEBSOCKET_REFUSED: then hang up */
    size_t size;
    size_t request_size; /* what follows these bytes are frames */
    const char *wrong;   /* with WEBSOCKET_REFUSED: why, a constant text */
    bool from_page;      /* a browser sent it for a page of another host (Origin, RFC 6454) */
};

/* The request at the start of bytes (RFC 6455 section 4.2). WEBSOCKET_MORE: it is not whole; ask again with all bytes
 * from the start. */
enum websocket_request_result websocket_request(const char *bytes, size_t size, struct websocket_answer *answer);

enum websocket_close {
    WEBSOCKET_CLOSE_NORMAL = 1000,
    WEBSOCKET_CLOSE_PROTOCOL_ERROR = 1002,
    WEBSOCKET_CLOSE_NOT_BINARY = 1003,
};

#define WEBSOCKET_CONTROL_MAX 125u /* bytes of a control frame's payload (section 5.5) */
#define WEBSOCKET_HEAD_MAX 14u

/* Where in the stream of frames the client is. All zero at the start. */
struct websocket_reader {
    uint64_t left; /* bytes of the frame's payload not seen yet */
    uint8_t head[WEBSOCKET_HEAD_MAX];
    uint8_t head_size; /* bytes of the head seen so far; 0 between frames */
    uint8_t mask_at;   /* position in the mask of the next byte */
    bool in_payload, in_message;
    uint8_t control_size;
    uint8_t control[WEBSOCKET_CONTROL_MAX];
};

enum websocket_event {
    WEBSOCKET_NOTHING, /* used has been read, nothing came of it yet */
    WEBSOCKET_BYTES,   /* bytes of MQTT, unmasked in place */
    WEBSOCKET_PING,    /* bytes: its payload, to be sent back as WEBSOCKET_PONG; valid until the next call */
    WEBSOCKET_CLOSE,   /* the client closes: answer with close_code */
    WEBSOCKET_WRONG,   /* the rules were broken: close with close_code */
};

struct websocket_piece {
    size_t used; /* bytes of the input that are done with, at least 1 */
    uint8_t *bytes;
    size_t size;
    uint16_t close_code; /* 0: a close frame without payload */
};

/* Reads up to the next event, and at most payload_max bytes of payload. size is at least 1. After CLOSE and WRONG there
 * is no use in going on. */
enum websocket_event websocket_read(struct websocket_reader *reader, uint8_t *bytes, size_t size, size_t payload_max,
                                    struct websocket_piece *piece);

enum websocket_opcode { WEBSOCKET_BINARY = 0x2, WEBSOCKET_GOODBYE = 0x8, WEBSOCKET_PONG = 0xa };
#define WEBSOCKET_SENT_HEAD_MAX 10u
/* The head of a whole message with so many bytes; returns the head's size. */
size_t websocket_head(uint8_t head[WEBSOCKET_SENT_HEAD_MAX], enum websocket_opcode opcode, size_t size);

#endif
