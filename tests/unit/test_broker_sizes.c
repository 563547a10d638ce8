/* Packets of every size pass; and the Maximum Packet Size of a client (MQTT 5.0 section 3.1.2.11.4): a packet of just
 * that size is sent, a larger one is not, and what becomes of it then. */
#include "mqtt_client.h"

static struct world world;
static struct client a, b;

static int begin(void **state) {
    (void)state;
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    return 0;
}

static int end(void **state) {
    (void)state;
    if (a.handle) client_cut(&a);
    if (b.handle) client_cut(&b);
    world_end(&world);
    return 0;
}

static void b_connects(unsigned size_max, unsigned receive_max) {
    char properties[64];

    snprintf(properties, sizeof properties, "11 00000064 27 %08x 21 %04x", size_max, receive_max);
    client_connect_with(&world, &b, 5, &(struct connect){.id = "b", .resume = true, .properties = properties});
}

static void publish(unsigned qos, const char *payload, const char *properties) {
    say_publish(&a, &(struct publish){.topic = "t", .payload = payload, .qos = qos, .id = 9, .properties = properties});
    if (qos > 0) expect(&a, qos == 1 ? "puback 9" : "pubrec 9");
    if (qos < 2) return;
    say_ack(&a, 6, 9);
    expect(&a, "pubcomp 9");
}

/* Of a PUBLISH: two bytes of header, the topic "t", property length; identifier and properties as they come. */
static void a_publication_of_the_very_size_is_sent(void **state) {
    static const struct {
        unsigned qos, options;
        const char *identifier, *properties; /* of the subscription, of the publication */
        unsigned overhead;
    } rows[] = {
        {0, 0, NULL, NULL, 6},   {1, 1, NULL, NULL, 8},           {2, 2, NULL, NULL, 8},
        {2, 0, NULL, NULL, 6},   {0, 0, "0b 8001", NULL, 9},      {1, 1, "0b 01", NULL, 10},
        {0, 0, NULL, "0101", 8}, {1, 1, NULL, "02 0000000a", 13}, {2, 2, "0b 05", "02 0000000a 0101", 17},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char payload[64], got[256];
        b_connects(60, 100);
        say_unsubscribe(&b, 1, "t");
        expect(&b, "unsuback 1 *");
        say_subscribe_with(&b, 1, "t", rows[i].options, rows[i].identifier);
        expect(&b, "suback 1 *");
        memset(payload, 'x', sizeof payload);
        payload[60 - rows[i].overhead] = '\0';
        publish(rows[i].qos, payload, rows[i].properties);
        if (strstr(next_packet(&b, got, sizeof got), payload) == NULL) fail_msg("row %zu: '%s'", i, got);
        assert_int_equal(b.got_size, b.got_at);
        payload[60 - rows[i].overhead] = 'x';
        payload[61 - rows[i].overhead] = '\0';
        publish(rows[i].qos, payload, rows[i].properties);
        if (*next_packet(&b, got, sizeof got) != '\0') fail_msg("row %zu, too large: '%s'", i, got);
        client_cut(&b);
        client_connect(&world, &b, 5, "b"); /* clean */
        client_cut(&b);
    }
    assert_int_equal(counters(&world).dropped_too_large, sizeof rows / sizeof rows[0]);
}

/* MQTT-3.1.2-25: as if it had been completed: its place in the window goes to the next, nothing of it comes again, and
 * nobody knows its identifier. */
static void what_is_too_large_is_as_if_completed(void **state) {
    (void)state;
    for (unsigned qos = 1; qos <= 2; qos++) {
        b_connects(30, 1);
        client_subscribe(&b, "t", qos);
        publish(qos, "0123456789012345678901234567890123456789", NULL);
        publish(qos, "small", NULL);
        expect(&b, qos == 1 ? "publish q1 id=2 t 'small'" : "publish q2 id=2 t 'small'");
        expect_nothing(&b);
        say_ack(&b, 5, 1);
        expect(&b, "pubrel 1 92");
        client_cut(&b);
        b_connects(1000, 10);
        expect(&b, qos == 1 ? "publish dup q1 id=2 t 'small'" : "publish dup q2 id=2 t 'small'");
        expect_nothing(&b);
        client_cut(&b);
        client_connect(&world, &b, 5, "b");
        client_cut(&b);
    }
}

/* What was in flight or queued for a client that now takes less. A PUBREL is small: its exchange is completed. */
static void a_smaller_maximum_holds_for_what_waits(void **state) {
    (void)state;
    b_connects(1000, 3);
    client_subscribe(&b, "t", 2);
    publish(2, "released: 0123456789012345678901234567890", NULL);
    publish(2, "in flight: 0123456789012345678901234567890", NULL);
    publish(1, "in flight: 0123456789012345678901234567890", NULL);
    publish(1, "queued: 0123456789012345678901234567890", NULL);
    publish(1, "small", NULL);
    for (unsigned n = 0; n < 3; n++)
        expect(&b, "publish q*");
    say_ack(&b, 5, 1);
    expect(&b, "pubrel 1");
    client_cut(&b);
    b_connects(30, 3);
    expect(&b, "pubrel 1");
    expect(&b, "publish q1 id=5 t 'small'");
    expect_nothing(&b);
    say_ack(&b, 7, 1);
    say_ack(&b, 4, 5);
    client_cut(&b);
    b_connects(1000, 3);
    expect_nothing(&b);
    assert_int_equal(counters(&world).dropped_too_large, 3);
    assert_int_equal(counters(&world).inflight_messages + counters(&world).queued_messages, 0);
}

/* What the broker answers a client of this maximum; has_reason: a Reason String is part of it. */
static size_t answer_size(unsigned size_max, const char *hex, bool *has_reason) {
    char got[512];
    size_t before, size;

    b_connects(size_max, 10);
    b.tells_reasons = true;
    before = b.got_at;
    say_hex(&b, hex);
    *has_reason = strstr(next_packet(&b, got, sizeof got), " 1f=") != NULL;
    size = b.got_at - before;
    client_cut(&b);
    return size;
}

/* MQTT-3.4.2-2, MQTT-3.5.2-2, MQTT-3.14.2-3: one that just fits comes; one byte less, and it is left out. */
static void a_reason_string_comes_if_it_fits(void **state) {
    static const char *const rows[] = {
        "32 0c 0007 245359532f6162 0001 00", /* refused: PUBACK */
        "34 0c 0007 245359532f6162 0001 00", /* PUBREC */
        "30 04 0001 23 00",                  /* a wildcard in the topic: DISCONNECT */
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool has_reason;
        size_t whole = answer_size(1000, rows[i], &has_reason);
        assert_true(has_reason);
        assert_int_equal(answer_size((unsigned)whole, rows[i], &has_reason), whole);
        assert_true(has_reason);
        assert_in_range(answer_size((unsigned)whole - 1, rows[i], &has_reason), 3, 5);
        assert_false(has_reason);
    }
}

/* MQTT-3.1.2-24: CONNACK, SUBACK and UNSUBACK of just that size are sent; where they are larger there is no way on. */
static void answers_of_the_very_size_are_sent(void **state) {
    static const char connack[] = "connack present=0 00 21=100 27=16777216 22=32";
    (void)state;

    for (unsigned more = 0; more < 2; more++) {
        for (unsigned what = 0; what < 2; what++) {
            struct packet body = {.size = 0}, packet;
            b_connects(30, 100);
            put_hex(&body, "0007 00");
            for (unsigned n = 0; n < 25 + more; n++) /* 5 bytes before the codes */
                put_hex(&body, what == 0 ? "0001 74 00" : "0001 74");
            packet = packet_of(what == 0 ? 0x82 : 0xA2, &body);
            say(&b, &packet);
            expect(&b, more ? "disconnect 97" : what == 0 ? "suback 7 00 00*" : "unsuback 7 00 11*");
            client_cut(&b);
        }
        client_connect(&world, &b, 5, "b"); /* clean */
        client_cut(&b);
        client_open(&world, &b, 5);
        say_connect(&b, &(struct connect){.id = "c", .properties = more ? "27 0000000f" : "27 00000010"});
        expect(&b, more ? "" : connack);
        assert_int_equal(broker_client_ended(world.broker, b.handle), more);
        client_cut(&b);
    }
}

static void payload_of_any_size_passes_unchanged(void **state) {
    /* Those with 4 bytes before them where the length of the packet gets one byte longer are among them. */
    static const size_t sizes[] = {0,    1,     100,   123,    124,     1024,    1025,
                                   5000, 16379, 16380, 100000, 1000000, 2097147, 2097148};
    (void)state;

    client_connect(&world, &b, 5, "b");
    client_subscribe(&b, "t", 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t total = 3 + 1 + sizes[i];
        uint8_t *bytes = malloc(total + 5);
        struct packet head = {.size = 0};
        put8(&head, 0x30);
        put_length(&head, total);
        put_text(&head, "t");
        put8(&head, 0);
        memcpy(bytes, head.bytes, head.size);
        for (size_t j = 0; j < sizes[i]; j++)
            bytes[head.size + j] = (uint8_t)(j * 7 + i);
        say_bytes(&a, bytes, head.size + sizes[i]);
        b.got_at = b.got_size;
        client_read(&b);
        assert_int_equal(b.got_size - b.got_at, head.size + sizes[i]);
        assert_memory_equal(b.got + b.got_at, bytes, head.size + sizes[i]);
        b.got_at = b.got_size;
        free(bytes);
    }
}

/* Their length takes one byte more from 128 and from 16,384 on. */
static void properties_of_any_size_pass_unchanged(void **state) {
    static const size_t sizes[] = {127, 128, 129, 5000, 16383, 16384, 16385, 65000};
    (void)state;

    client_connect(&world, &b, 5, "b");
    client_subscribe(&b, "t", 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t value_size = sizes[i] - 5, length_size = sizes[i] < 128 ? 1 : sizes[i] < 16384 ? 2 : 3;
        struct packet head = {.size = 0};
        uint8_t *bytes;
        put8(&head, 0x30);
        put_length(&head, 3 + length_size + sizes[i]);
        put_text(&head, "t");
        put_length(&head, sizes[i]);
        put_hex(&head, "26 0000");
        put16(&head, (unsigned)value_size);
        bytes = malloc(head.size + value_size);
        memcpy(bytes, head.bytes, head.size);
        memset(bytes + head.size, 'p', value_size);
        say_bytes(&a, bytes, head.size + value_size);
        client_read(&b);
        assert_int_equal(b.got_size - b.got_at, head.size + value_size);
        assert_memory_equal(b.got + b.got_at, bytes, head.size + value_size);
        b.got_at = b.got_size;
        free(bytes);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_publication_of_the_very_size_is_sent), TEST(what_is_too_large_is_as_if_completed),
        TEST(a_smaller_maximum_holds_for_what_waits), TEST(a_reason_string_comes_if_it_fits),
        TEST(answers_of_the_very_size_are_sent),      TEST(payload_of_any_size_passes_unchanged),
        TEST(properties_of_any_size_pass_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
