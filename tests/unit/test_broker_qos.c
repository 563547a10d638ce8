/* The delivery protocols of QoS 0, 1 and 2 by the letter (MQTT 5.0 sections 4.3, 4.4, 4.9), in both versions. */
#include "two_clients.h"

/* A session that is kept; b is its client. */
static void b_connects(int version) {
    client_connect_with(&world, &b, version, &(struct connect){.id = "b", .resume = true, .properties = "11 00000064"});
}

static void publish(const char *payload, unsigned qos, const char *properties) {
    say_publish(&a, &(struct publish){.topic = "t", .payload = payload, .qos = qos, .id = 1, .properties = properties});
    if (qos == 1) expect(&a, "puback 1");
    if (qos == 2) {
        expect(&a, "pubrec 1");
        say_ack(&a, 6, 1);
        expect(&a, "pubcomp 1");
    }
}

/* MQTT-3.3.1-3. */
static void dup_of_the_publisher_is_not_passed_on(void **state) {
    (void)state;
    b_connects(5);
    client_subscribe(&b, "t", 2);
    for (unsigned qos = 1; qos <= 2; qos++) {
        char expected[32];
        say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = qos, .id = qos, .dup = true});
        snprintf(expected, sizeof expected, "publish q%u id=%u t 'x'", qos, qos);
        expect(&b, expected);
    }
}

/* MQTT-4.3.2-5; 3.1.1: MQTT-4.3.2-2. */
static void packet_id_that_was_acknowledged_is_new_again(void **state) {
    (void)state;
    b_connects(4);
    client_subscribe(&b, "t", 0);
    for (int i = 0; i < 3; i++) {
        say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 1, .id = 7, .dup = i > 0});
        expect(&a, "puback 7");
        expect(&b, "publish q0 t 'x'");
    }
    for (int i = 0; i < 3; i++) {
        say_publish(&a, &(struct publish){.topic = "t", .payload = "y", .qos = 2, .id = 7, .dup = i > 0});
        expect(&a, "pubrec 7");
        expect(&b, "publish q0 t 'y'");
        say_ack(&a, 6, 7);
        expect(&a, "pubcomp 7");
    }
}

/* The ids of QoS 1 and QoS 2, and those of the two directions, are told apart (section 2.2.1). */
static void packet_ids_of_both_directions_are_apart(void **state) {
    (void)state;
    b_connects(5);
    client_subscribe(&b, "t", 2);
    publish("to b", 2, NULL);
    expect(&b, "publish q2 id=1 t 'to b'");
    say_publish(&b, &(struct publish){.topic = "u", .payload = "from b", .qos = 2, .id = 1});
    expect(&b, "pubrec 1");
    say_ack(&b, 5, 1);
    expect(&b, "pubrel 1");
    say_ack(&b, 6, 1);
    expect(&b, "pubcomp 1");
    say_ack(&b, 7, 1);
    expect_nothing(&b);
    say_ack(&b, 6, 1);
    expect(&b, "pubcomp 1 92");
}

/* MQTT-4.4.0-1: a new connection is the only reason to send again. */
static void nothing_is_sent_again_on_the_same_connection(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        b_connects(version);
        client_subscribe(&b, "t", 2);
        publish("1", 1, NULL);
        publish("2", 2, NULL);
        expect(&b, "publish q1 *");
        expect(&b, "publish q2 *");
        pass(&world, 3600 * 1000);
        expect_nothing(&b);
        client_cut(&b);
        client_connect(&world, &b, version, "b"); /* clean */
        client_cut(&b);
    }
}

/* MQTT-4.3.3-4 and -6; 3.1.1: MQTT-4.3.3-1. */
static void pubrel_is_sent_again_and_never_the_publication_after_it(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        char expected[32];
        unsigned id = 0;
        b_connects(version);
        client_subscribe(&b, "t", 2);
        publish("x", 2, NULL);
        next_packet(&b, expected, sizeof expected);
        assert_int_equal(sscanf(expected, "publish q2 id=%u t 'x'", &id), 1);
        snprintf(expected, sizeof expected, "pubrel %u", id);
        say_ack(&b, 5, id);
        expect(&b, expected);
        say_ack(&b, 5, id); /* the client asks again */
        expect(&b, expected);
        for (int i = 0; i < 3; i++) {
            client_cut(&b);
            b_connects(version);
            expect(&b, expected);
            expect_nothing(&b);
        }
        say_ack(&b, 7, id);
        client_cut(&b);
        b_connects(version);
        expect_nothing(&b);
        client_cut(&b);
    }
}

/* MQTT-4.4.0-2. */
static void publication_refused_by_its_receiver_is_not_sent_again(void **state) {
    (void)state;
    b_connects(5);
    client_subscribe(&b, "t", 2);
    publish("1", 1, NULL);
    publish("2", 2, NULL);
    expect(&b, "publish q1 id=1 t '1'");
    expect(&b, "publish q2 id=2 t '2'");
    publish("3", 2, NULL);
    expect(&b, "publish q2 id=3 t '3'");
    say_hex(&b, "40 03 0001 83");
    say_hex(&b, "50 03 0002 97"); /* no PUBREL for what was refused */
    say_hex(&b, "50 03 0003 80");
    say_hex(&b, "50 03 0003 80"); /* nor for what nobody knows any more */
    expect_nothing(&b);
    client_cut(&b);
    b_connects(5);
    expect_nothing(&b);
}

/* MQTT-4.3.3-7: the expiry ends when the publication is on its way. */
static void what_was_sent_does_not_expire_any_more(void **state) {
    (void)state;
    b_connects(5);
    client_subscribe(&b, "t", 2);
    publish("2", 2, "02 00000005");
    expect(&b, "publish q2 id=1 t 02=5 '2'");
    client_cut(&b);
    pass(&world, 10000);
    b_connects(5);
    expect(&b, "publish dup q2 id=1 t 02=0 '2'");
    say_ack(&b, 5, 1);
    expect(&b, "pubrel 1");
    say_ack(&b, 7, 1);
}

/* MQTT-4.3.3-13: what came of the publication does not concern its sender. */
static void expired_publication_is_acknowledged_to_the_end(void **state) {
    (void)state;
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 2, .id = 9, .properties = "02 00000001"});
    expect(&a, "pubrec 9");
    pass(&world, 5000);
    say_publish(&a, &(struct publish){
                        .topic = "t", .payload = "x", .qos = 2, .id = 9, .dup = true, .properties = "02 00000001"});
    expect(&a, "pubrec 9");
    say_ack(&a, 6, 9);
    expect(&a, "pubcomp 9");
}

/* MQTT-3.3.4-10, MQTT-4.9.0-3. */
static void full_window_delays_nothing_but_publications(void **state) {
    (void)state;
    client_connect_with(&world, &b, 5, &(struct connect){.id = "b", .properties = "21 0001"});
    client_subscribe(&b, "t", 1);
    publish("1", 1, NULL);
    publish("2", 1, NULL);
    expect(&b, "publish q1 id=1 t '1'");
    say_hex(&b, "c0 00");
    expect(&b, "pingresp");
    say_subscribe(&b, 5, "u", 0);
    expect(&b, "suback 5 00");
    say_unsubscribe(&b, 6, "u");
    expect(&b, "unsuback 6 00");
    say_publish(&b, &(struct publish){.topic = "v", .qos = 1, .id = 7});
    expect(&b, "puback 7");
    say_publish(&b, &(struct publish){.topic = "v", .qos = 2, .id = 8});
    expect(&b, "pubrec 8");
    say_ack(&b, 6, 8);
    expect(&b, "pubcomp 8");
    expect_nothing(&b);
    say_ack(&b, 4, 1);
    expect(&b, "publish q1 id=2 t '2'");
}

/* MQTT-4.6.0-5: at one QoS, in the order published, also through the queue and over a reconnection. */
static void order_is_kept_through_queue_and_reconnection(void **state) {
    unsigned next = 0;
    (void)state;

    b_connects(5);
    client_subscribe(&b, "t", 1);
    client_cut(&b);
    for (unsigned n = 0; n < 250; n++) {
        char payload[8];
        snprintf(payload, sizeof payload, "%u", n);
        publish(payload, 1, NULL);
    }
    for (int connection = 0; connection < 3; connection++) {
        unsigned id, payload;
        char got[64];
        b_connects(5);
        for (unsigned n = 0; n < 83 + (connection == 2); n++) { /* of the hundred in flight the rest comes again */
            char *quote;
            next_packet(&b, got, sizeof got);
            assert_non_null(strstr(got, "id="));
            quote = strchr(got, '\'');
            assert_non_null(quote);
            assert_int_equal(sscanf(strstr(got, "id="), "id=%u", &id), 1);
            assert_int_equal(sscanf(quote, "'%u", &payload), 1);
            assert_int_equal(payload, next++);
            say_ack(&b, 4, id);
        }
        client_cut(&b);
    }
    assert_int_equal(next, 250);
}

/* MQTT-4.6.0-2 to -4 bind the client; the broker does not depend on them. */
static void acknowledgements_are_taken_in_any_order(void **state) {
    (void)state;
    b_connects(5);
    client_subscribe(&b, "t", 2);
    for (unsigned n = 1; n <= 3; n++)
        publish("1", 1, NULL);
    for (unsigned n = 4; n <= 6; n++)
        publish("2", 2, NULL);
    for (unsigned n = 1; n <= 6; n++)
        expect(&b, "publish q*");
    for (unsigned id = 3; id >= 1; id--)
        say_ack(&b, 4, id);
    for (unsigned id = 6; id >= 4; id--) {
        char expected[16];
        say_ack(&b, 5, id);
        snprintf(expected, sizeof expected, "pubrel %u", id);
        expect(&b, expected);
    }
    say_ack(&b, 7, 5);
    say_ack(&b, 7, 4);
    say_ack(&b, 7, 6);
    client_cut(&b);
    b_connects(5);
    expect_nothing(&b);
}

/* Tables 3-4 to 3-7 of MQTT 5.0, and what of table 3-10 a client may send (MQTT-3.4.2-1, MQTT-3.5.2-1, MQTT-3.6.2-1,
 * MQTT-3.7.2-1, MQTT-3.14.2-1). */
static void reason_codes_are_those_of_their_tables(void **state) {
    static const struct {
        unsigned first_byte;
        const char *codes;
    } rows[] = {{0x40, "00 10 80 83 87 90 91 97 99"},
                {0x50, "00 10 80 83 87 90 91 97 99"},
                {0x62, "00 92"},
                {0x70, "00 92"},
                {0xE0, "00 04 80 81 82 83 90 93 94 95 96 97 98 99"}};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned code = 0; code < 256; code++) {
            struct packet body = {.size = 0}, packet;
            char text[8], got[256];
            bool fault;
            snprintf(text, sizeof text, "%02x", code);
            if (rows[i].first_byte != 0xE0) put16(&body, 7);
            put8(&body, code);
            packet = packet_of(rows[i].first_byte, &body);
            client_connect(&world, &b, 5, "b");
            say(&b, &packet);
            next_packet(&b, got, sizeof got);
            fault = strcmp(got, "disconnect 82") == 0;
            if (fault == (strstr(rows[i].codes, text) != NULL))
                fail_msg("%02x with %s: '%s'", rows[i].first_byte, text, got);
            client_cut(&b);
        }
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_a, end)
    const struct CMUnitTest tests[] = {
        TEST(dup_of_the_publisher_is_not_passed_on),
        TEST(packet_id_that_was_acknowledged_is_new_again),
        TEST(packet_ids_of_both_directions_are_apart),
        TEST(nothing_is_sent_again_on_the_same_connection),
        TEST(pubrel_is_sent_again_and_never_the_publication_after_it),
        TEST(publication_refused_by_its_receiver_is_not_sent_again),
        TEST(what_was_sent_does_not_expire_any_more),
        TEST(expired_publication_is_acknowledged_to_the_end),
        TEST(full_window_delays_nothing_but_publications),
        TEST(order_is_kept_through_queue_and_reconnection),
        TEST(acknowledgements_are_taken_in_any_order),
        TEST(reason_codes_are_those_of_their_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
