/* A client for tests of the broker's door: builds packets by hand and describes what it gets as text, independently of
 * broker/mqtt.c.
 *
 * struct world holds one broker and a clock that the test sets. say_*() sends a packet, expect() takes the next packet
 * the client has got and compares its description; a final * stands for any rest.
 */
#ifndef TESTS_UNIT_MQTT_CLIENT_H
#define TESTS_UNIT_MQTT_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/broker.h"

#define HELPER static __attribute__((unused))

struct world {
    struct broker *broker;
    uint64_t now;
    struct broker_options options;
};

struct client {
    struct world *world;
    broker_handle handle;
    int version;
    uint8_t *got;
    size_t got_size, got_at;
    bool unread;        /* the test holds its output back */
    bool tells_reasons; /* the Reason Strings of CONNACK, PUBACK, PUBREC, DISCONNECT are part of the description */
};

struct packet {
    uint8_t bytes[8192];
    size_t size;
};

/* ---- the world ---- */

HELPER void world_begin(struct world *world) {
    world->now = world->now ? world->now : 1000;
    world->options.name = "edge-1";
    if (world->options.limits.sys_interval_s == 0) world->options.limits.sys_interval_s = UINT32_MAX;
    world->options.epoch = 1;
    world->options.seed = 42;
    memcpy(world->options.id, "0123456789abcdef", 16);
    world->broker = broker_new(&world->options, world->now);
    assert_non_null(world->broker);
}

HELPER void world_end(struct world *world) {
    broker_free(world->broker);
    memset(world, 0, sizeof *world);
}

/* Lets time pass, stopping at every deadline on the way. */
HELPER void pass(struct world *world, uint64_t ms) {
    uint64_t end = world->now + ms;

    for (;;) {
        uint64_t due = broker_deadline_ms(world->broker);
        if (due > end) break;
        world->now = due > world->now ? due : world->now;
        broker_tick(world->broker, world->now);
    }
    world->now = end;
}

HELPER void client_open(struct world *world, struct client *client, int version) {
    *client = (struct client){.world = world, .version = version};
    client->handle = broker_client_open(world->broker, world->now,
                                        &(struct broker_origin){.from_loopback = true, .address = "127.0.0.1:4711"});
    assert_int_not_equal(client->handle, 0);
}

/* The transport breaks. */
HELPER void client_cut(struct client *client) {
    broker_client_closed(client->world->broker, client->world->now, client->handle);
    free(client->got);
    *client = (struct client){0};
}

HELPER void client_forget(struct client *client) {
    free(client->got);
    *client = (struct client){0};
}

/* ---- building ---- */

HELPER void put(struct packet *packet, const void *bytes, size_t size) {
    assert_true(packet->size + size <= sizeof packet->bytes);
    if (size > 0) memcpy(packet->bytes + packet->size, bytes, size);
    packet->size += size;
}

HELPER void put8(struct packet *packet, unsigned value) {
    put(packet, &(uint8_t){(uint8_t)value}, 1);
}

HELPER void put16(struct packet *packet, unsigned value) {
    put8(packet, value >> 8);
    put8(packet, value & 0xFF);
}

HELPER void put32(struct packet *packet, uint32_t value) {
    put16(packet, value >> 16);
    put16(packet, value & 0xFFFF);
}

HELPER void put_text(struct packet *packet, const char *text) {
    put16(packet, (unsigned)strlen(text));
    put(packet, text, strlen(text));
}

HELPER void put_length(struct packet *packet, size_t length) {
    do {
        put8(packet, (unsigned)((length & 0x7F) | (length > 0x7F ? 0x80 : 0)));
        length >>= 7;
    } while (length > 0);
}

/* The bytes of a hex string; spaces are skipped. */
HELPER void put_hex(struct packet *packet, const char *hex) {
    unsigned value;

    for (; *hex != '\0'; hex++) {
        if (*hex == ' ') continue;
        assert_int_equal(sscanf(hex, "%2x", &value), 1);
        put8(packet, value);
        hex++;
    }
}

/* Properties given in hex, with their length before them; nothing in 3.1.1. */
HELPER void put_properties(struct packet *packet, int version, const char *hex) {
    struct packet properties = {.size = 0};

    if (version < 5) return;
    put_hex(&properties, hex ? hex : "");
    put_length(packet, properties.size);
    put(packet, properties.bytes, properties.size);
}

HELPER struct packet packet_of(unsigned first_byte, const struct packet *body) {
    struct packet packet = {.size = 0};

    put8(&packet, first_byte);
    put_length(&packet, body->size);
    put(&packet, body->bytes, body->size);
    return packet;
}

/* ---- sending ---- */

HELPER void say_bytes(struct client *client, const void *bytes, size_t size) {
    /* A copy of exact size on the heap, so that reading past it is seen. */
    uint8_t *copy = malloc(size ? size : 1);

    if (size > 0) memcpy(copy, bytes, size);
    broker_client_input(client->world->broker, client->world->now, client->handle, copy, size);
    free(copy);
}

HELPER void say(struct client *client, const struct packet *packet) {
    say_bytes(client, packet->bytes, packet->size);
}

HELPER void say_hex(struct client *client, const char *hex) {
    struct packet packet = {.size = 0};

    put_hex(&packet, hex);
    say(client, &packet);
}

struct connect {
    const char *id;
    bool resume; /* clean start, clean session 0 */
    unsigned keep_alive;
    const char *properties; /* hex */
    const char *user, *password;
    const char *will_topic, *will_payload, *will_properties;
    unsigned will_qos;
    bool will_retain;
};

HELPER struct packet connect_packet(int version, const struct connect *connect) {
    struct packet body = {.size = 0};
    unsigned flags = connect->resume ? 0 : 2;

    if (connect->will_topic) flags |= 4u | connect->will_qos << 3 | (connect->will_retain ? 0x20u : 0);
    flags |= connect->user ? 0x80u : 0;
    flags |= connect->password ? 0x40u : 0;
    put_text(&body, "MQTT");
    put8(&body, (unsigned)version);
    put8(&body, flags);
    put16(&body, connect->keep_alive);
    put_properties(&body, version, connect->properties);
    put_text(&body, connect->id);
    if (connect->will_topic) {
        put_properties(&body, version, connect->will_properties);
        put_text(&body, connect->will_topic);
        put_text(&body, connect->will_payload ? connect->will_payload : "");
    }
    if (connect->user) put_text(&body, connect->user);
    if (connect->password) put_text(&body, connect->password);
    return packet_of(0x10, &body);
}

HELPER void say_connect(struct client *client, const struct connect *connect) {
    struct packet packet = connect_packet(client->version, connect);

    say(client, &packet);
}

struct publish {
    const char *topic, *payload;
    unsigned qos, id;
    bool retain, dup;
    const char *properties; /* hex */
};

HELPER struct packet publish_packet(int version, const struct publish *publish) {
    struct packet body = {.size = 0};

    put_text(&body, publish->topic);
    if (publish->qos > 0) put16(&body, publish->id);
    put_properties(&body, version, publish->properties);
    if (publish->payload) put(&body, publish->payload, strlen(publish->payload));
    return packet_of(0x30u | (publish->dup ? 8u : 0) | publish->qos << 1 | (publish->retain ? 1u : 0), &body);
}

HELPER void say_publish(struct client *client, const struct publish *publish) {
    struct packet packet = publish_packet(client->version, publish);

    say(client, &packet);
}

HELPER void say_subscribe_with(struct client *client, unsigned id, const char *filter, unsigned options,
                               const char *properties) {
    struct packet body = {.size = 0}, packet;

    put16(&body, id);
    put_properties(&body, client->version, properties);
    put_text(&body, filter);
    put8(&body, options);
    packet = packet_of(0x82, &body);
    say(client, &packet);
}

HELPER void say_subscribe(struct client *client, unsigned id, const char *filter, unsigned options) {
    say_subscribe_with(client, id, filter, options, NULL);
}

HELPER void say_unsubscribe(struct client *client, unsigned id, const char *filter) {
    struct packet body = {.size = 0}, packet;

    put16(&body, id);
    put_properties(&body, client->version, NULL);
    put_text(&body, filter);
    packet = packet_of(0xA2, &body);
    say(client, &packet);
}

/* PUBACK 4, PUBREC 5, PUBREL 6, PUBCOMP 7. */
HELPER void say_ack(struct client *client, unsigned type, unsigned id) {
    uint8_t bytes[4] = {(uint8_t)(type << 4 | (type == 6 ? 2 : 0)), 2, (uint8_t)(id >> 8), (uint8_t)id};

    say_bytes(client, bytes, sizeof bytes);
}

HELPER void say_disconnect(struct client *client) {
    say_hex(client, "e0 00");
}

/* ---- receiving ---- */

/* Takes all output there is, in spans as a socket would. */
HELPER void client_read(struct client *client) {
    struct broker_span spans[4];
    broker_handle named;
    size_t count;

    while (broker_next_client(client->world->broker, &named)) {
    }
    if (client->unread) return;
    while ((count = broker_client_output(client->world->broker, client->handle, spans, 4)) > 0) {
        size_t total = 0;
        for (size_t i = 0; i < count; i++) {
            client->got = realloc(client->got, client->got_size + spans[i].size + 1);
            assert_non_null(client->got);
            memcpy(client->got + client->got_size, spans[i].bytes, spans[i].size);
            client->got_size += spans[i].size;
            total += spans[i].size;
        }
        broker_client_written(client->world->broker, client->world->now, client->handle, total);
    }
}

struct cursor {
    const uint8_t *at, *end;
};

HELPER unsigned take8(struct cursor *cursor) {
    assert_true(cursor->at < cursor->end);
    return *cursor->at++;
}

HELPER unsigned take16(struct cursor *cursor) {
    unsigned high = take8(cursor);
    return high << 8 | take8(cursor);
}

HELPER size_t take_length(struct cursor *cursor) {
    size_t value = 0;
    unsigned byte, shift = 0;

    do {
        byte = take8(cursor);
        value |= (size_t)(byte & 0x7F) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

/* Text that would be long is cut, with its size. */
HELPER void describe_text(char *out, size_t size, const uint8_t *text, size_t text_size) {
    size_t at = strlen(out);

    if (text_size > 100)
        snprintf(out + at, size - at, "%.*s...%zu", 10, (const char *)text, text_size);
    else
        snprintf(out + at, size - at, "%.*s", (int)text_size, (const char *)text);
}

HELPER void describe_properties(char *out, size_t size, struct cursor *cursor) {
    size_t length = take_length(cursor);
    const uint8_t *end = cursor->at + length;

    assert_true(end <= cursor->end);
    while (cursor->at < end) {
        unsigned id = take8(cursor);
        size_t at = strlen(out);
        unsigned text_size;
        uint32_t number;
        switch (id) {
        case 0x01:
        case 0x24:
        case 0x25:
        case 0x28:
        case 0x29:
        case 0x2A: snprintf(out + at, size - at, " %02x=%u", id, take8(cursor)); break;
        case 0x13:
        case 0x21:
        case 0x22:
        case 0x23: snprintf(out + at, size - at, " %02x=%u", id, take16(cursor)); break;
        case 0x02:
        case 0x11:
        case 0x27:
            number = (uint32_t)take16(cursor) << 16;
            number |= take16(cursor);
            snprintf(out + at, size - at, " %02x=%u", id, number);
            break;
        case 0x0B: snprintf(out + at, size - at, " %02x=%zu", id, take_length(cursor)); break;
        case 0x03:
        case 0x08:
        case 0x09:
        case 0x12:
        case 0x15:
        case 0x16:
        case 0x1A:
        case 0x1F:
        case 0x26:
            text_size = take16(cursor);
            snprintf(out + at, size - at, " %02x=%.*s", id, (int)text_size, (const char *)cursor->at);
            cursor->at += text_size;
            if (id == 0x26) {
                text_size = take16(cursor);
                at = strlen(out);
                snprintf(out + at, size - at, ":%.*s", (int)text_size, (const char *)cursor->at);
                cursor->at += text_size;
            }
            break;
        default: fail_msg("property %02x from the broker", id);
        }
    }
    assert_ptr_equal(cursor->at, end);
}

HELPER void describe_publish(char *out, size_t size, int version, unsigned flags, struct cursor *cursor) {
    unsigned qos = (flags >> 1) & 3;
    size_t topic_size = take16(cursor);
    const uint8_t *topic = cursor->at;

    cursor->at += topic_size;
    snprintf(out, size, "publish%s%s q%u", flags & 8 ? " dup" : "", flags & 1 ? " retain" : "", qos);
    if (qos > 0) snprintf(out + strlen(out), size - strlen(out), " id=%u", take16(cursor));
    snprintf(out + strlen(out), size - strlen(out), " ");
    describe_text(out, size, topic, topic_size);
    if (version == 5) describe_properties(out, size, cursor);
    snprintf(out + strlen(out), size - strlen(out), " '");
    describe_text(out, size, cursor->at, (size_t)(cursor->end - cursor->at));
    snprintf(out + strlen(out), size - strlen(out), "'");
    cursor->at = cursor->end;
}

HELPER void describe(char *out, size_t size, int version, unsigned first, struct cursor *cursor) {
    static const char *const names[] = {"puback", "pubrec", "pubrel", "pubcomp"};
    unsigned type = first >> 4, id;

    switch (type) {
    case 2:
        snprintf(out, size, "connack present=%u", take8(cursor));
        snprintf(out + strlen(out), size - strlen(out), " %02x", take8(cursor));
        if (version == 5) describe_properties(out, size, cursor);
        break;
    case 3: describe_publish(out, size, version, first & 15, cursor); break;
    case 4:
    case 5:
    case 6:
    case 7:
        assert_int_equal(first & 15, type == 6 ? 2 : 0);
        id = take16(cursor);
        snprintf(out, size, "%s %u", names[type - 4], id);
        if (cursor->at < cursor->end) snprintf(out + strlen(out), size - strlen(out), " %02x", take8(cursor));
        if (cursor->at < cursor->end) describe_properties(out, size, cursor);
        break;
    case 9:
    case 11:
        snprintf(out, size, "%s %u", type == 9 ? "suback" : "unsuback", take16(cursor));
        if (version == 5) describe_properties(out, size, cursor);
        while (cursor->at < cursor->end)
            snprintf(out + strlen(out), size - strlen(out), " %02x", take8(cursor));
        break;
    case 13: snprintf(out, size, "pingresp"); break;
    case 14:
        snprintf(out, size, "disconnect %02x", take8(cursor));
        if (cursor->at < cursor->end) describe_properties(out, size, cursor);
        break;
    case 15:
        assert_int_equal(first & 15, 0);
        snprintf(out, size, "auth %02x", take8(cursor));
        describe_properties(out, size, cursor);
        break;
    default: fail_msg("packet type %u from the broker", type);
    }
    assert_ptr_equal(cursor->at, cursor->end);
}

/* The next packet as text, "" if there is none. */
HELPER const char *next_packet(struct client *client, char *out, size_t size) {
    struct cursor cursor;
    unsigned first;
    size_t length;

    client_read(client);
    out[0] = '\0';
    if (client->got_at == client->got_size) return out;
    cursor = (struct cursor){client->got + client->got_at, client->got + client->got_size};
    first = take8(&cursor);
    length = take_length(&cursor);
    assert_true(length <= (size_t)(cursor.end - cursor.at));
    cursor.end = cursor.at + length;
    client->got_at = (size_t)(cursor.end - client->got);
    describe(out, size, client->version, first, &cursor);
    if (!client->tells_reasons && first >> 4 != 9 && first >> 4 != 3 && strstr(out, " 1f=") != NULL)
        *strstr(out, " 1f=") = '\0'; /* it is the last property of ours */
    return out;
}

#define expect(client, text) expect_at(client, text, __FILE__, __LINE__)
HELPER void expect_at(struct client *client, const char *text, const char *file, int line) {
    char got[1024];
    size_t size = strlen(text);

    next_packet(client, got, sizeof got);
    if (size > 0 && text[size - 1] == '*' ? strncmp(got, text, size - 1) != 0 : strcmp(got, text) != 0) {
        print_error("%s:%d: expected \"%s\", got \"%s\"\n", file, line, text, got);
        _fail(file, line);
    }
}

#define expect_nothing(client) expect_at(client, "", __FILE__, __LINE__)

/* The connection has been ended by the broker, with nothing left to say. */
#define expect_end(client) expect_end_at(client, __FILE__, __LINE__)
HELPER void expect_end_at(struct client *client, const char *file, int line) {
    expect_at(client, "", file, line);
    if (!broker_client_ended(client->world->broker, client->handle)) {
        print_error("%s:%d: the connection is still open\n", file, line);
        _fail(file, line);
    }
    client_forget(client);
}

/* ---- shorthands ---- */

HELPER void client_connect_with(struct world *world, struct client *client, int version,
                                const struct connect *connect) {
    client_open(world, client, version);
    say_connect(client, connect);
    expect(client, connect->resume ? "connack present=*" : "connack present=0 00*");
}

HELPER void client_connect(struct world *world, struct client *client, int version, const char *id) {
    client_connect_with(world, client, version, &(struct connect){.id = id});
}

HELPER void client_subscribe(struct client *client, const char *filter, unsigned options) {
    char expected[32];

    say_subscribe(client, 99, filter, options);
    snprintf(expected, sizeof expected, "suback 99 %02x", options & 3);
    expect(client, expected);
}

HELPER struct broker_counters counters(const struct world *world) {
    struct broker_counters out;

    broker_read_counters(world->broker, &out);
    return out;
}

#endif
