/* The packets of MQTT 3.1.1 and 5.0 that a load generator sends and counts: as few of them as will do, each written and
 * read with as few instructions as will do, so that the broker is what is measured.
 */
#ifndef TOOLS_BENCH_WIRE_H
#define TOOLS_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_type {
    BENCH_CONNACK = 2,
    BENCH_PUBLISH = 3,
    BENCH_PUBACK = 4,
    BENCH_PUBREC = 5,
    BENCH_PUBREL = 6,
    BENCH_PUBCOMP = 7,
    BENCH_SUBACK = 9,
    BENCH_DISCONNECT = 14,
};

struct bench_login {
    uint8_t version; /* 4 or 5 */
    const char *client_id;
    const char *user, *password; /* NULL: none; a password needs a user */
    uint32_t session_expiry_s;   /* 5.0; 0: none, and a clean start */
};
/* CONNECT, keep alive off. Returns its size; 0 if room bytes are too few. */
size_t bench_write_connect(uint8_t *out, size_t room, const struct bench_login *login);
/* SUBSCRIBE with packet id 1. */
size_t bench_write_subscribe(uint8_t *out, size_t room, uint8_t version, const char *filter, uint8_t qos);

#define BENCH_ACK_SIZE 4u
/* PUBACK, PUBREC, PUBREL or PUBCOMP of success. */
void bench_write_ack(uint8_t out[BENCH_ACK_SIZE], enum bench_type type, uint16_t packet_id);
#define BENCH_DISCONNECT_MAX 9u
/* Ends the session too (5.0). */
size_t bench_write_disconnect(uint8_t out[BENCH_DISCONNECT_MAX], uint8_t version);

/* What each payload begins with: when it was sent and which it is. In the sender's own byte order: who reads it is the
 * process that wrote it. */
struct bench_stamp {
    uint32_t time_100ns; /* of a clock that wraps around */
    uint16_t publisher;
    uint16_t number; /* of this publisher; wraps around */
};

/* A PUBLISH to be copied, with places to fill in. */
struct bench_template {
    uint8_t *bytes; /* malloc */
    size_t size, packet_id_at, stamp_at;
    uint8_t qos;
};
/* payload_size: at least a stamp's. False when memory is short. */
bool bench_template_init(struct bench_template *template, uint8_t version, const char *topic, uint8_t qos,
                         size_t payload_size);
void bench_template_deinit(struct bench_template *template);
/* Writes template->size bytes. */
void bench_write_publish(uint8_t *out, const struct bench_template *template, uint16_t packet_id,
                         const struct bench_stamp *stamp);

struct bench_packet {
    uint8_t type, flags;
    uint8_t reason;         /* of CONNACK, acknowledgements, SUBACK (its first), DISCONNECT; 0 if left out */
    uint8_t qos;            /* of PUBLISH */
    uint16_t packet_id;     /* 0 if it has none */
    uint16_t receive_max;   /* of CONNACK (5.0); 0 if none */
    const uint8_t *payload; /* of PUBLISH; borrowed from the bytes read */
    size_t payload_size;
    size_t size; /* of all of it */
};
/* 1: a whole packet; 0: more bytes are needed; -1: this is no MQTT. */
int bench_read_packet(uint8_t version, const uint8_t *bytes, size_t size, struct bench_packet *packet);

#endif
