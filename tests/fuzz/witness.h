/* Clients that behave, for fuzzing: each answers what it gets at once, and counts the numbered messages among it. */
#ifndef TESTS_FUZZ_WITNESS_H
#define TESTS_FUZZ_WITNESS_H

#include "broker/broker.h"
#include "broker/mqtt.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITNESS_MESSAGES_MAX 200u
#define WITNESS_IDS_MAX 4096u
#define WITNESS_PREFIX "w-" /* of their client ids */
#define WITNESS_ALIASES 1
#define WITNESS_TOPIC_MAX 40u
#define WITNESS_TOPICS "w/" /* all that they subscribe to begins so */

struct witness {
    const char *client_id;
    uint8_t version;
    bool keeps_session;
    broker_handle handle; /* 0: not connected */
    bool is_in;           /* CONNACK has come */
    uint8_t granted;      /* what SUBACK said */
    uint16_t packet_id;
    uint32_t unacknowledged;                                  /* publications of its own, their flow not over */
    bool taken[WITNESS_IDS_MAX];                              /* by packet id: PUBACK or PUBREC has come */
    uint8_t got[WITNESS_MESSAGES_MAX];                        /* how often each number came */
    int kept;                                                 /* of the retained message that came last; -1: none */
    char aliases[WITNESS_ALIASES + 1][WITNESS_TOPIC_MAX + 1]; /* their topics; "" if not set */
    uint8_t *rest;                                            /* the beginning of a packet */
    size_t rest_size;
};

struct witness_packet {
    uint8_t bytes[8192];
    size_t size;
};

static inline void witness_put(struct witness_packet *packet, const void *bytes, size_t size) {
    assert(packet->size + size <= sizeof packet->bytes);
    if (size > 0) memcpy(packet->bytes + packet->size, bytes, size);
    packet->size += size;
}

static inline void witness_put_u16(struct witness_packet *packet, size_t value) {
    witness_put(packet, (uint8_t[]){(uint8_t)(value >> 8), (uint8_t)value}, 2);
}

static inline void witness_put_text(struct witness_packet *packet, const char *text) {
    witness_put_u16(packet, strlen(text));
    witness_put(packet, text, strlen(text));
}

/* Puts the fixed header before the body, in two bytes of remaining length, and sends it. */
static inline void witness_send(struct witness *witness, struct broker *broker, uint64_t now, uint8_t first,
                                const struct witness_packet *body) {
    struct witness_packet packet = {.size = 0};
    witness_put(&packet, &first, 1);
    if (body->size < 128)
        witness_put(&packet, &(uint8_t){(uint8_t)body->size}, 1);
    else
        witness_put(&packet, (uint8_t[]){(uint8_t)(0x80 | (body->size & 0x7F)), (uint8_t)(body->size >> 7)}, 2);
    witness_put(&packet, body->bytes, body->size);
    broker_client_input(broker, now, witness->handle, packet.bytes, packet.size);
}

static inline void witness_connect(struct witness *witness, struct broker *broker, uint64_t now) {
    struct witness_packet body = {.size = 0};
    assert(witness->handle == 0);
    witness->handle =
        broker_client_open(broker, now, &(struct broker_origin){.from_loopback = true, .address = "witness"});
    assert(witness->handle != 0);
    witness_put_text(&body, "MQTT");
    witness_put(&body, (uint8_t[]){witness->version, witness->keeps_session ? 0 : 2, 0, 0}, 4);
    if (witness->version == MQTT_50 && witness->keeps_session)
        witness_put(&body, "\x08\x11\xff\xff\xff\xff\x22\0", 8);
    else if (witness->version == MQTT_50)
        witness_put(&body, "\x03\x22\0", 3);
    if (witness->version == MQTT_50) witness_put(&body, &(uint8_t){WITNESS_ALIASES}, 1);
    witness_put_text(&body, witness->client_id);
    witness_send(witness, broker, now, 0x10, &body);
}

static inline void witness_subscribe(struct witness *witness, struct broker *broker, uint64_t now, const char *filter,
                                     uint8_t qos) {
    struct witness_packet body = {.size = 0};
    witness_put_u16(&body, 1);
    if (witness->version == MQTT_50) witness_put(&body, "\0", 1);
    witness_put_text(&body, filter);
    witness_put(&body, &qos, 1);
    witness->granted = 0xFF;
    witness_send(witness, broker, now, 0x82, &body);
}

/* A message of this number, with padding bytes behind it. */
static inline void witness_publish(struct witness *witness, struct broker *broker, uint64_t now, const char *topic,
                                   uint8_t qos, bool retain, uint8_t number, size_t padding, bool is_delete) {
    static const uint8_t zeros[4096];
    struct witness_packet body = {.size = 0};
    witness_put_text(&body, topic);
    if (qos > 0) {
        assert(witness->packet_id + 1u < WITNESS_IDS_MAX);
        witness_put_u16(&body, ++witness->packet_id);
        witness->unacknowledged++;
    }
    if (witness->version == MQTT_50) witness_put(&body, "\0", 1);
    if (!is_delete) witness_put(&body, &number, 1);
    witness_put(&body, zeros, padding);
    witness_send(witness, broker, now, (uint8_t)(0x30 | qos << 1 | retain), &body);
}

/* Its connection is no more. */
static inline void witness_forget(struct witness *witness) {
    witness->handle = 0;
    witness->is_in = false;
    witness->rest_size = 0;
    witness->unacknowledged = 0;
    memset(witness->aliases, 0, sizeof witness->aliases);
}

static inline void witness_leave(struct witness *witness, struct broker *broker, uint64_t now, bool says_so) {
    if (witness->handle == 0) return;
    if (says_so) broker_client_input(broker, now, witness->handle, (const uint8_t *)"\xe0\0", 2);
    broker_client_closed(broker, now, witness->handle);
    witness_forget(witness);
}

static inline void witness_answer(struct witness *witness, struct broker *broker, uint64_t now, uint8_t first,
                                  uint16_t packet_id) {
    struct witness_packet body = {.size = 0};
    witness_put_u16(&body, packet_id);
    witness_send(witness, broker, now, first, &body);
}

/* MQTT 5.0 section 3.3.2.3.4. */
static inline void witness_take_topic(struct witness *witness, const struct mqtt_publish *publish) {
    char *known = witness->aliases[publish->topic_alias <= WITNESS_ALIASES ? publish->topic_alias : 0];
    assert(publish->topic_alias <= WITNESS_ALIASES && publish->topic.size <= WITNESS_TOPIC_MAX);
    if (publish->topic.size == 0) {
        assert(strncmp(known, WITNESS_TOPICS, 2) == 0 &&
               (strcmp(known + strlen(known) - 4, "kept") == 0) == publish->retain);
        return;
    }
    assert(memcmp(publish->topic.bytes, WITNESS_TOPICS, 2) == 0);
    if (publish->topic_alias == 0) return;
    memcpy(known, publish->topic.bytes, publish->topic.size);
    known[publish->topic.size] = '\0';
}

static inline void witness_take_publish(struct witness *witness, struct broker *broker, uint64_t now,
                                        const struct mqtt_frame *frame, struct mqtt_view body) {
    struct mqtt_publish publish;
    assert(mqtt_decode_publish(witness->version, frame, body, &publish) == MQTT_SUCCESS);
    witness_take_topic(witness, &publish);
    if (publish.retain) {
        assert(publish.payload.size > 0);
        witness->kept = publish.payload.bytes[0];
    } else if (publish.payload.size > 0) { /* a retained message may be deleted while somebody listens */
        assert(publish.payload.bytes[0] < WITNESS_MESSAGES_MAX);
        witness->got[publish.payload.bytes[0]]++;
    }
    if (publish.qos == 1) witness_answer(witness, broker, now, 0x40, publish.packet_id);
    if (publish.qos == 2) witness_answer(witness, broker, now, 0x50, publish.packet_id);
}

static inline void witness_take(struct witness *witness, struct broker *broker, uint64_t now,
                                const struct mqtt_frame *frame, struct mqtt_view body) {
    struct mqtt_ack ack = {0, 0};
    if (frame->type >= MQTT_PUBACK && frame->type <= MQTT_PUBCOMP) {
        assert(mqtt_decode_ack(witness->version, frame, body, &ack) == MQTT_SUCCESS);
        assert(ack.reason == MQTT_SUCCESS || ack.reason == MQTT_NO_MATCHING_SUBSCRIBERS);
    }
    switch (frame->type) {
    case MQTT_CONNACK:
        assert(body.size >= 2 && body.bytes[1] == 0);
        witness->is_in = true;
        break;
    case MQTT_SUBACK: witness->granted = body.bytes[body.size - 1]; break;
    case MQTT_PUBLISH: witness_take_publish(witness, broker, now, frame, body); break;
    case MQTT_PUBREC:
        witness->taken[ack.packet_id] = true;
        witness_answer(witness, broker, now, 0x62, ack.packet_id);
        break;
    case MQTT_PUBREL: witness_answer(witness, broker, now, 0x70, ack.packet_id); break;
    case MQTT_PUBACK:
    case MQTT_PUBCOMP:
        assert(witness->unacknowledged > 0 && ack.packet_id <= witness->packet_id);
        witness->taken[ack.packet_id] = true;
        witness->unacknowledged--;
        break;
    default: abort(); /* nothing else is for one that behaves; DISCONNECT least of all */
    }
}

/* Takes all that the broker has for it. Packets are copied first: answering may change the output. */
static inline void witness_read(struct witness *witness, struct broker *broker, uint64_t now) {
    struct broker_span spans[3];
    size_t count;
    assert(!broker_client_ended(broker, witness->handle));
    while ((count = broker_client_output(broker, witness->handle, spans, 3)) > 0) {
        size_t added = 0, at = 0;
        for (size_t i = 0; i < count; i++)
            added += spans[i].size;
        witness->rest = realloc(witness->rest, witness->rest_size + added);
        assert(witness->rest != NULL);
        for (size_t i = 0; i < count; i++) {
            memcpy(witness->rest + witness->rest_size, spans[i].bytes, spans[i].size);
            witness->rest_size += spans[i].size;
        }
        broker_client_written(broker, now, witness->handle, added);
        struct mqtt_frame frame;
        while (mqtt_read_frame(witness->rest + at, witness->rest_size - at, &frame) == MQTT_FRAME_OK &&
               frame.packet_size <= witness->rest_size - at) {
            struct mqtt_view body = {witness->rest + at + frame.header_size, frame.packet_size - frame.header_size};
            witness_take(witness, broker, now, &frame, body);
            at += frame.packet_size;
        }
        witness->rest_size -= at;
        memmove(witness->rest, witness->rest + at, witness->rest_size);
    }
}

static inline void witness_deinit(struct witness *witness) {
    free(witness->rest);
}

#endif
