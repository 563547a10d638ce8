/* What holds for all packets alike: header flags, strings, and what of them passes through unchanged. */
#include "two_clients.h"

/* Connects as "bad" and says this, after which the connection must be over, in 5.0 with this reason. */
static void expect_refused(int version, const struct packet *packet, const char *reason, const char *what) {
    struct client bad;
    char got[256], expected[32];

    client_connect(&world, &bad, version, "bad");
    say(&bad, packet);
    next_packet(&bad, got, sizeof got);
    snprintf(expected, sizeof expected, "disconnect %s", reason);
    if (strcmp(got, version == 5 ? expected : "") != 0 || !broker_client_ended(world.broker, bad.handle))
        fail_msg("MQTT level %d, %s: '%s'", version, what, got);
    client_cut(&bad);
}

/* MQTT-2.1.3-1, 3.1.1: MQTT-2.2.2-1 and -2: of all types but PUBLISH, each flag but those of table 2-2 is malformed. */
static void reserved_header_flags_are_malformed(void **state) {
    static const struct {
        unsigned type, flags;
        const char *body, *body_5;
    } rows[] = {
        {4, 0, "0001", NULL},
        {5, 0, "0001", NULL},
        {6, 2, "0001", NULL},
        {7, 0, "0001", NULL},
        {8, 2, "0001 0001 61 00", "0001 00 0001 61 00"},
        {10, 2, "0001 0001 61", "0001 00 0001 61"},
        {12, 0, "", NULL},
        {14, 0, "", NULL},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned flags = 0; flags < 32; flags++) {
            int version = flags < 16 ? 4 : 5;
            struct packet body = {.size = 0}, packet;
            char what[32];
            if (flags % 16 == rows[i].flags) continue;
            put_hex(&body, version == 5 && rows[i].body_5 ? rows[i].body_5 : rows[i].body);
            packet = packet_of(rows[i].type << 4 | flags % 16, &body);
            snprintf(what, sizeof what, "type %u flags %u", rows[i].type, flags % 16);
            expect_refused(version, &packet, "81", what);
        }
    }
}

/* Types that only a server sends, and the two that are reserved in 3.1.1. */
static void types_that_no_client_sends_end_the_connection(void **state) {
    static const struct {
        const char *hex, *reason;
    } rows[] = {{"00 00", "81"},         {"20 02 0000", "82"}, {"90 04 0001 00 00", "82"},
                {"b0 03 0001 00", "82"}, {"d0 00", "82"},      {"f0 00", "82"}};
    (void)state;

    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        struct packet packet = {.size = 0};
        put_hex(&packet, rows[i / 2].hex);
        expect_refused(i % 2 ? 5 : 4, &packet, rows[i / 2].reason, rows[i / 2].hex);
    }
}

/* MQTT-1.5.4-1, MQTT-1.5.4-2, MQTT-1.5.7-1; 3.1.1: MQTT-1.5.3-1, MQTT-1.5.3-2: in each place where a string may stand.
 */
static void no_string_may_be_ill_formed(void **state) {
    /* An overlong form, a surrogate, beyond U+10FFFF, a byte that is none, cut short, U+0000: all of three bytes. */
    static const char *const texts[] = {"c1bf61", "eda080", "61f490", "61ff61", "6161c3", "610061"};
    static const struct {
        int version;
        const char *what, *before, *after;
    } places[] = {
        {4, "topic of PUBLISH", "30 06 0003", "78"},
        {5, "topic of PUBLISH", "30 06 0003", "00"},
        {4, "filter of SUBSCRIBE", "82 08 0001 0003", "00"},
        {5, "filter of SUBSCRIBE", "82 09 0001 00 0003", "00"},
        {4, "filter of UNSUBSCRIBE", "a2 07 0001 0003", ""},
        {5, "filter of UNSUBSCRIBE", "a2 08 0001 00 0003", ""},
        {5, "content type", "30 0a 0001 74 06 03 0003", ""},
        {5, "response topic", "30 0a 0001 74 06 08 0003", ""},
        {5, "name of a user property", "30 0d 0001 74 09 26 0003", "0001 61"},
        {5, "value of a user property", "30 0d 0001 74 09 26 0001 61 0003", ""},
        {5, "user property of PUBACK", "40 0d 0001 00 09 26 0003", "0001 61"},
        {5, "reason string of PUBREC", "50 0a 0001 00 06 1f 0003", ""},
        {5, "reason string of DISCONNECT", "e0 08 00 06 1f 0003", ""},
    };
    (void)state;

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        for (size_t j = 0; j < sizeof texts / sizeof texts[0]; j++) {
            struct packet packet = {.size = 0};
            put_hex(&packet, places[i].before);
            put_hex(&packet, texts[j]);
            put_hex(&packet, places[i].after);
            assert_int_equal(packet.bytes[1], packet.size - 2);
            expect_refused(places[i].version, &packet, "81", places[i].what);
        }
    }
}

/* MQTT-1.5.4-3 (3.1.1: MQTT-1.5.3-3), MQTT-4.7.3-4: what looks alike is not the same, and nothing is stripped or
 * composed. */
static void topics_are_compared_and_passed_on_byte_by_byte(void **state) {
    static const char *const topics[] = {"\xef\xbb\xbft",   "t", "T", "t ", " t", "t/", "/t", "\xc3\xa9", "e\xcc\x81",
                                         "\xf0\x9f\x90\x9d"};
    (void)state;

    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++) {
        client_subscribe(&b, topics[i], 0);
        for (size_t j = 0; j < sizeof topics / sizeof topics[0]; j++)
            say_publish(&a, &(struct publish){.topic = topics[j], .properties = "26 0003 efbbbf 0003 efbbbf"});
        {
            char expected[128];
            snprintf(expected, sizeof expected, "publish q0 %s 26=\xef\xbb\xbf:\xef\xbb\xbf ''", topics[i]);
            expect(&b, expected);
        }
        expect_nothing(&b);
        say_unsubscribe(&b, 1, topics[i]);
        expect(&b, "unsuback 1 00");
    }
}

/* MQTT-4.7.3-3: all 65,535 bytes may be used. */
static void longest_topic_is_taken_and_passed_on(void **state) {
    size_t size = 65535;
    char *topic = malloc(size + 1);
    (void)state;

    memset(topic, 't', size);
    topic[size] = '\0';
    client_subscribe(&b, "+", 0);
    {
        struct packet head = {.size = 0};
        put8(&head, 0x30);
        put_length(&head, 2 + size + 1);
        put16(&head, (unsigned)size);
        say(&a, &head);
        say_bytes(&a, topic, size);
        say_hex(&a, "00");
    }
    expect(&b, "publish q0 tttttttttt...65535 ''");
    free(topic);
}

/* MQTT-2.2.2-1: a packet of 5.0 has its property length, and it counts no more than there is. */
static void property_length_must_be_there_and_fit(void **state) {
    static const char *const rows[] = {
        "30 03 0001 74",             /* none in PUBLISH */
        "30 05 0001 74 05 01",       /* longer than the packet */
        "30 06 0001 74 8000 78",     /* not the shortest form */
        "30 08 0001 74 ffffffff 7f", /* five bytes */
        "82 02 0001",                /* none in SUBSCRIBE */
        "a2 02 0001",                /* none in UNSUBSCRIBE */
        "40 05 0001 00 02 01",       /* longer than the PUBACK */
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct packet packet = {.size = 0};
        put_hex(&packet, rows[i]);
        expect_refused(5, &packet, "81", rows[i]);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_a_b, end)
    const struct CMUnitTest tests[] = {
        TEST(reserved_header_flags_are_malformed),  TEST(types_that_no_client_sends_end_the_connection),
        TEST(no_string_may_be_ill_formed),          TEST(topics_are_compared_and_passed_on_byte_by_byte),
        TEST(longest_topic_is_taken_and_passed_on), TEST(property_length_must_be_there_and_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
