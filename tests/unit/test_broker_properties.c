/* Table 2-4 of MQTT 5.0, written down a second time: which property may stand in which packet, how often, and with
 * which values. */
#include "mqtt_client.h"

static struct world world;

static int begin(void **state) {
    (void)state;
    world_begin(&world);
    return 0;
}

static int end(void **state) {
    (void)state;
    world_end(&world);
    return 0;
}

/* Letters of the packets with properties that a client sends. */
enum place {
    CONNECT = 'C',
    WILL = 'W',
    PUBLISH = 'P',
    PUBACK = 'a',
    PUBREC = 'r',
    PUBREL = 'l',
    PUBCOMP = 'c',
    SUBSCRIBE = 'S',
    UNSUBSCRIBE = 'U',
    DISCONNECT = 'D',
    AUTH = 'A',
};
static const char places[] = "CWParlcSUDA";

static const struct property {
    unsigned id;
    const char *in;          /* letters of the packets */
    const char *value, *bad; /* hex; bad: one that is a Protocol Error, NULL if there is none */
} table[] = {
    {0x01, "PW", "01", "02"},
    {0x02, "PW", "00000001", NULL},
    {0x03, "PW", "0001 74", NULL},
    {0x08, "PW", "0001 74", "0003 742f2b"},
    {0x09, "PW", "0003 00ff74", NULL},
    {0x0B, "PS", "ffffff7f", "00"},
    {0x11, "CD", "00000000", NULL},
    {0x12, "", "0001 74", NULL},
    {0x13, "", "0001", NULL},
    {0x15, "CA", "0001 74", NULL},
    {0x16, "CA", "0003 00ff74", NULL},
    {0x17, "C", "00", "02"},
    {0x18, "W", "ffffffff", NULL},
    {0x19, "C", "01", "02"},
    {0x1A, "", "0001 74", NULL},
    {0x1C, "D", "0001 74", NULL},
    {0x1F, "arlcDA", "0001 74", NULL},
    {0x21, "C", "0001", "0000"},
    {0x22, "C", "0000", NULL},
    {0x23, "P", "0001", "0000"},
    {0x24, "", "01", NULL},
    {0x25, "", "01", NULL},
    {0x26, "CWParlcSUDA", "0001 74 0000", NULL},
    {0x27, "C", "00000100", "00000000"},
    {0x28, "", "01", NULL},
    {0x29, "", "01", NULL},
    {0x2A, "", "01", NULL},
};
enum { PROPERTIES = sizeof table / sizeof *table };

static bool is_text(unsigned id) {
    return id == 0x03 || id == 0x08 || id == 0x15 || id == 0x1F || id == 0x26 || id == 0x1C;
}

static struct packet packet_with(enum place place, const char *properties) {
    struct packet body = {.size = 0};

    switch (place) {
    case CONNECT:
    case WILL:
        return connect_packet(5, &(struct connect){.id = "bad",
                                                   .properties = place == CONNECT ? properties : NULL,
                                                   .will_topic = place == WILL ? "w" : NULL,
                                                   .will_properties = properties});
    case PUBLISH: return publish_packet(5, &(struct publish){.topic = "t", .properties = properties});
    case PUBACK:
    case PUBREC:
    case PUBREL:
    case PUBCOMP:
        put_hex(&body, "0001 00");
        put_properties(&body, 5, properties);
        return packet_of(place == PUBACK ? 0x40 : place == PUBREC ? 0x50 : place == PUBREL ? 0x62 : 0x70, &body);
    case SUBSCRIBE:
    case UNSUBSCRIBE:
        put_hex(&body, "0001");
        put_properties(&body, 5, properties);
        put_hex(&body, place == SUBSCRIBE ? "0001 74 00" : "0001 74");
        return packet_of(place == SUBSCRIBE ? 0x82 : 0xA2, &body);
    case DISCONNECT:
    case AUTH:
        put8(&body, place == AUTH ? 0x19 : 0);
        put_properties(&body, 5, properties);
        return packet_of(place == AUTH ? 0xF0 : 0xE0, &body);
    }
    return body;
}

/* The reason of CONNACK or DISCONNECT that the packet brings, 0 if none. */
static unsigned refusal(enum place place, const char *properties) {
    struct packet packet = packet_with(place, properties);
    struct client client;
    char got[512];
    unsigned reason = 0;

    if (place == CONNECT || place == WILL)
        client_open(&world, &client, 5);
    else
        client_connect(&world, &client, 5, "bad");
    say(&client, &packet);
    while (*next_packet(&client, got, sizeof got) != '\0') {
        if (strncmp(got, "connack present=0 ", 18) == 0) assert_int_equal(sscanf(got + 18, "%2x", &reason), 1);
        if (strncmp(got, "disconnect ", 11) == 0) assert_int_equal(sscanf(got + 11, "%2x", &reason), 1);
    }
    assert_int_equal(broker_client_ended(world.broker, client.handle), reason != 0 || place == DISCONNECT);
    client_cut(&client);
    return reason;
}

static void expect_refusal(unsigned expected, enum place place, const char *properties) {
    unsigned got = refusal(place, properties);

    if (got != expected) fail_msg("packet %c, properties %s: %02x instead of %02x", place, properties, got, expected);
}

/* What comes of one that the table allows: it is taken, but for those that only a server may send, or that need what
 * these clients have not agreed on. */
static unsigned when_allowed(enum place place, unsigned id) {
    if (place == AUTH) return 0x82;                  /* MQTT-4.12.0-7 */
    if (place == PUBLISH && id == 0x0B) return 0x82; /* MQTT-3.3.4-6 */
    if (place == CONNECT && id == 0x15) return 0x8C; /* MQTT-4.12.0-1 */
    if (place == CONNECT && id == 0x16) return 0x82; /* section 3.1.2.11.10: data without a method */
    return 0;
}

/* Section 2.2.2.2: an identifier that is not for this packet, or none at all, is malformed. */
static void a_property_stands_only_where_the_table_says(void **state) {
    (void)state;
    for (const char *place = places; *place != '\0'; place++) {
        for (size_t i = 0; i < PROPERTIES; i++) {
            bool allowed = strchr(table[i].in, *place) != NULL;
            char properties[64];
            snprintf(properties, sizeof properties, "%02x %s", table[i].id, table[i].value);
            expect_refusal(allowed ? when_allowed((enum place) * place, table[i].id) : 0x81, (enum place) * place,
                           properties);
        }
    }
}

static void no_other_identifier_is_one(void **state) {
    (void)state;
    for (unsigned id = 0, next = 0; id < 256; id++) {
        char properties[32];
        if (next < PROPERTIES && id == table[next].id) {
            next++;
            continue;
        }
        snprintf(properties, sizeof properties, "%02x 01 00 00 00 00", id);
        for (const char *place = places; *place != '\0'; place++)
            expect_refusal(0x81, (enum place) * place, properties);
    }
    expect_refusal(0x81, PUBLISH, "8100 01"); /* Payload Format Indicator, padded */
    expect_refusal(0x81, PUBLISH, "8101 01");
}

/* Only user properties may come more than once. */
static void no_property_but_those_of_users_comes_twice(void **state) {
    (void)state;
    for (const char *place = places; *place != '\0'; place++) {
        for (size_t i = 0; i < PROPERTIES; i++) {
            char properties[64];
            if (strchr(table[i].in, *place) == NULL) continue;
            snprintf(properties, sizeof properties, "%02x %s 26 0000 0000 %02x %s", table[i].id, table[i].value,
                     table[i].id, table[i].value);
            expect_refusal(table[i].id == 0x26 ? when_allowed((enum place) * place, 0x26) : 0x82, (enum place) * place,
                           properties);
        }
    }
}

static void values_out_of_range_are_protocol_errors(void **state) {
    (void)state;
    for (const char *place = places; *place != '\0'; place++) {
        for (size_t i = 0; i < PROPERTIES; i++) {
            char properties[64];
            if (strchr(table[i].in, *place) == NULL || table[i].bad == NULL) continue;
            snprintf(properties, sizeof properties, "%02x %s", table[i].id, table[i].bad);
            expect_refusal(table[i].id == 0x23 ? 0x94 : 0x82, (enum place) * place, properties);
        }
    }
}

/* Each byte of each value must be there. */
static void values_cut_short_are_malformed(void **state) {
    (void)state;
    for (const char *place = places; *place != '\0'; place++) {
        for (size_t i = 0; i < PROPERTIES; i++) {
            struct packet value = {.size = 0};
            if (strchr(table[i].in, *place) == NULL) continue;
            put_hex(&value, table[i].value);
            for (size_t size = 0; size < value.size; size++) {
                char properties[64];
                snprintf(properties, sizeof properties, "%02x", table[i].id);
                for (size_t at = 0; at < size; at++)
                    snprintf(properties + 2 + 2 * at, 3, "%02x", value.bytes[at]);
                expect_refusal(0x81, (enum place) * place, properties);
            }
        }
    }
}

/* MQTT-1.5.4-1 and -2, MQTT-1.5.7-1, MQTT-3.3.2-13 and -19: in every place; and what is well-formed is taken: control
 * characters and non-characters among it (section 1.5.4 lets a receiver refuse those, and we do not). */
static void text_is_well_formed_in_every_packet(void **state) {
    static const char *const ill[] = {"c1bf61", "eda080", "edbfbf", "61f490", "61ff61", "6161c3", "610061"};
    static const char *const well[] = {"efbfbf", "efb790", "01027f", "c28061", "efbbbf"};
    (void)state;

    for (const char *place = places; *place != '\0'; place++) {
        for (size_t i = 0; i < PROPERTIES; i++) {
            unsigned id = table[i].id;
            char properties[64];
            if (strchr(table[i].in, *place) == NULL || !is_text(id)) continue;
            for (size_t n = 0; n < sizeof ill / sizeof *ill; n++) {
                snprintf(properties, sizeof properties, "%02x 0003 %s %s", id, ill[n], id == 0x26 ? "0000" : "");
                expect_refusal(0x81, (enum place) * place, properties);
                if (id != 0x26) continue;
                snprintf(properties, sizeof properties, "26 0001 6b 0003 %s", ill[n]);
                expect_refusal(0x81, (enum place) * place, properties);
            }
            for (size_t n = 0; n < sizeof well / sizeof *well; n++) {
                snprintf(properties, sizeof properties, "%02x 0003 %s %s", id, well[n], id == 0x26 ? "0000" : "");
                expect_refusal(when_allowed((enum place) * place, id), (enum place) * place, properties);
            }
        }
    }
}

/* MQTT-1.5.5-1: at most four bytes, and no more than are needed. */
static void variable_byte_integers_are_short(void **state) {
    static const char *const bad[] = {"0b 8080808001", "0b 808080808000", "0b 8100", "0b ff8000", "0b ffff8000"};
    (void)state;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refusal(0x81, SUBSCRIBE, bad[i]);
    expect_refusal(0, SUBSCRIBE, "0b 80808001");
}

/* What has no payload ends with its properties. */
static void nothing_follows_the_properties(void **state) {
    static const char *const rows[] = {"40 05 0001 00 00 00", "50 05 0001 00 00 00",           "62 05 0001 00 00 00",
                                       "70 05 0001 00 00 00", "40 09 0001 00 03 1f0000 00 00", "e0 03 00 00 00",
                                       "f0 03 19 00 00"};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct client client;
        client_connect(&world, &client, 5, "bad");
        say_hex(&client, rows[i]);
        expect(&client, "disconnect 81");
        expect_end(&client);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_property_stands_only_where_the_table_says),
        TEST(no_other_identifier_is_one),
        TEST(no_property_but_those_of_users_comes_twice),
        TEST(values_out_of_range_are_protocol_errors),
        TEST(values_cut_short_are_malformed),
        TEST(text_is_well_formed_in_every_packet),
        TEST(variable_byte_integers_are_short),
        TEST(nothing_follows_the_properties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
