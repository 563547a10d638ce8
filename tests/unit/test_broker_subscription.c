/* What a subscription is, from SUBSCRIBE over its replacement to UNSUBSCRIBE (MQTT 5.0 sections 3.8, 3.10), and the
 * retained messages and aliases beside it. */
#include "two_clients.h"

/* MQTT-3.8.4-3, 3.1.1: MQTT-3.8.4-3: all of it is replaced: QoS, identifier and options. */
static void subscribing_again_replaces_all_of_the_subscription(void **state) {
    (void)state;
    say_subscribe_with(&b, 1, "t", 1 | 8, "0b 05");
    expect(&b, "suback 1 01");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "1", .qos = 2, .id = 1, .retain = true});
    expect(&b, "publish retain q1 id=1 t 0b=5 '1'");
    say_subscribe_with(&b, 2, "t", 2 | 0x20, "0b 06");
    expect(&b, "suback 2 02");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "2", .qos = 2, .id = 2, .retain = true});
    expect(&b, "publish q2 id=2 t 0b=6 '2'");
    say_subscribe(&b, 3, "t", 4 | 0x20);
    expect(&b, "suback 3 00");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "3", .qos = 2, .id = 3});
    expect(&b, "publish q0 t '3'");
    say_publish(&b, &(struct publish){.topic = "t", .payload = "own"});
    expect_nothing(&b);
    assert_int_equal(counters(&world).subscriptions, 1);
}

/* MQTT-3.8.4-5: as if each filter had its own SUBSCRIBE: also the same one twice in a packet. */
static void the_last_of_equal_filters_in_one_packet_holds(void **state) {
    (void)state;
    say_publish(&a, &(struct publish){.topic = "t", .payload = "kept", .retain = true});
    say_hex(&b, "82 0b 0007 00 0001 74 00 0001 74 01");
    expect(&b, "suback 7 00 01");
    expect(&b, "publish retain q0 t 'kept'");
    expect(&b, "publish retain q0 t 'kept'");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 1, .id = 1});
    expect(&b, "publish q1 id=1 t 'x'");
    expect_nothing(&b);
}

/* MQTT-3.10.4-1: character by character, not by what matches. */
static void unsubscribe_names_the_filter_itself(void **state) {
    static const char *const others[] = {"t/1", "t/#", "#", "T/+", "t/+/", "t/+/ ", "t"};
    (void)state;

    client_subscribe(&b, "t/+", 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        say_unsubscribe(&b, 2, others[i]);
        expect(&b, "unsuback 2 11");
    }
    say_publish(&a, &(struct publish){.topic = "t/1", .payload = "x"});
    expect(&b, "publish q0 t/1 'x'");
    say_unsubscribe(&b, 3, "t/+");
    expect(&b, "unsuback 3 00");
    say_publish(&a, &(struct publish){.topic = "t/1", .payload = "y"});
    expect_nothing(&b);
}

/* MQTT-3.10.4-3. */
static void what_is_under_way_is_completed_after_unsubscribe(void **state) {
    (void)state;
    client_cut(&b);
    client_connect_with(&world, &b, 5, &(struct connect){.id = "b", .properties = "11 00000064"});
    client_subscribe(&b, "t", 2);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "1", .qos = 1, .id = 1});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "2", .qos = 2, .id = 2});
    expect(&b, "publish q1 id=1 t '1'");
    expect(&b, "publish q2 id=2 t '2'");
    say_unsubscribe(&b, 3, "t");
    expect(&b, "unsuback 3 00");
    say_ack(&b, 5, 2);
    expect(&b, "pubrel 2");
    client_cut(&b);
    client_connect_with(&world, &b, 5, &(struct connect){.id = "b", .resume = true});
    expect(&b, "publish dup q1 id=1 t '1'");
    expect(&b, "pubrel 2");
    say_ack(&b, 4, 1);
    say_ack(&b, 7, 2);
    expect_nothing(&b);
}

/* MQTT-3.10.4-6. */
static void unsubscribe_of_many_filters_is_answered_once_in_their_order(void **state) {
    (void)state;
    client_subscribe(&b, "x", 0);
    client_subscribe(&b, "z", 0);
    say_hex(&b, "a2 0f 0009 00 0001 78 0001 79 0001 7a 0001 78");
    expect(&b, "unsuback 9 00 11 00 11");
    expect_nothing(&b);
    assert_int_equal(counters(&world).subscriptions, 0);
}

/* MQTT-3.3.1-5 to -8; 3.1.1: MQTT-3.3.1-5, -7, -10 to -12. */
static void retained_message_is_replaced_deleted_and_left_alone(void **state) {
    static const struct {
        const char *payload;
        bool retain;
        const char *kept; /* afterwards, NULL: nothing */
    } rows[] = {{"1", false, NULL}, {"2", true, "2"}, {"3", false, "2"}, {"", false, "2"},
                {"4", true, "4"},   {"", true, NULL}, {"", true, NULL},  {"5", true, "5"}};
    (void)state;

    for (unsigned qos = 0; qos <= 2; qos++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char expected[64];
            struct client late;
            say_publish(&a,
                        &(struct publish){
                            .topic = "t", .payload = rows[i].payload, .retain = rows[i].retain, .qos = qos, .id = 1});
            if (qos == 1) expect(&a, "puback 1");
            if (qos == 2) expect(&a, "pubrec 1");
            if (qos == 2) say_ack(&a, 6, 1);
            if (qos == 2) expect(&a, "pubcomp 1");
            client_connect(&world, &late, 4 + (int)(i % 2), "late");
            client_subscribe(&late, "t", 2);
            if (qos == 0)
                snprintf(expected, sizeof expected, "publish retain q0 t '%s'", rows[i].kept ? rows[i].kept : "");
            else
                snprintf(expected, sizeof expected, "publish retain q%u id=1 t '%s'", qos,
                         rows[i].kept ? rows[i].kept : "");
            expect(&late, rows[i].kept ? expected : "");
            client_cut(&late);
        }
        say_publish(&a, &(struct publish){.topic = "t", .retain = true});
    }
}

/* MQTT 3.1.1, MQTT-3.1.2-7: they are the broker's and not the session's. */
static void retained_message_outlives_the_session_of_its_publisher(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        struct client publisher;
        client_connect(&world, &publisher, version, "publisher");
        say_publish(&publisher, &(struct publish){.topic = "t", .payload = "x", .retain = true});
        say_disconnect(&publisher);
        expect_end(&publisher);
        say_subscribe(&b, 1, "t", 0);
        expect(&b, "suback 1 00");
        expect(&b, "publish retain q0 t 'x'");
        say_unsubscribe(&b, 2, "t");
        expect(&b, "unsuback 2 00");
    }
}

/* MQTT-3.1.2-14 and -15, for each QoS a will may have. */
static void will_is_kept_only_if_it_says_so(void **state) {
    (void)state;
    for (unsigned row = 0; row < 12; row++) {
        bool retain = row % 2;
        struct client willing, late;
        char expected[64];
        client_subscribe(&b, "w", 0);
        client_connect_with(
            &world, &willing, row < 6 ? 4 : 5,
            &(struct connect){
                .id = "w", .will_topic = "w", .will_payload = "x", .will_qos = row % 3, .will_retain = retain});
        client_cut(&willing);
        expect(&b, "publish q0 w 'x'");
        client_connect(&world, &late, 5, "late");
        client_subscribe(&late, "w", 2);
        snprintf(expected, sizeof expected, "publish retain q%u%s w 'x'", row % 3, row % 3 ? " id=1" : "");
        expect(&late, retain ? expected : "");
        client_cut(&late);
        say_publish(&a, &(struct publish){.topic = "w", .retain = true});
        expect(&b, "publish q0 w ''");
    }
}

/* MQTT-3.3.2-7. */
static void topic_aliases_end_with_the_connection(void **state) {
    (void)state;
    client_cut(&a);
    client_connect_with(&world, &a, 5, &(struct connect){.id = "a", .properties = "11 00000064"});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "1", .properties = "23 0001"});
    client_cut(&a);
    client_connect_with(&world, &a, 5, &(struct connect){.id = "a", .resume = true});
    say_publish(&a, &(struct publish){.topic = "", .payload = "2", .properties = "23 0001"});
    expect(&a, "disconnect 82");
    expect_end(&a);
}

/* MQTT-3.3.2-12; and each client's are its own. */
static void every_alias_up_to_the_maximum_is_taken(void **state) {
    (void)state;
    client_subscribe(&b, "#", 0);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned alias = 1; alias <= 32; alias++) {
            char topic[8], properties[16], expected[64];
            snprintf(topic, sizeof topic, "t/%u", alias);
            snprintf(properties, sizeof properties, "23 %04x", alias);
            say_publish(&a,
                        &(struct publish){.topic = round == 0 ? topic : "", .payload = "x", .properties = properties});
            snprintf(expected, sizeof expected, "publish q0 %s 'x'", topic);
            expect(&b, expected);
        }
    }
    say_publish(&b, &(struct publish){.topic = "", .payload = "x", .properties = "23 0001"});
    expect(&b, "disconnect 82");
    expect_end(&b);
}

/* MQTT-3.4.2-2, MQTT-3.9.2-1 and the like: a client that takes only small packets is served with small packets. */
static void answers_fit_the_smallest_maximum(void **state) {
    struct client small;
    (void)state;

    client_connect_with(&world, &small, 5, &(struct connect){.id = "small", .properties = "27 00000020 17 01"});
    client_subscribe(&small, "t", 2);
    say_publish(&small, &(struct publish){.topic = "u", .qos = 1, .id = 1});
    expect(&small, "puback 1");
    say_publish(&small, &(struct publish){.topic = "u", .qos = 2, .id = 2});
    expect(&small, "pubrec 2");
    say_ack(&small, 6, 2);
    expect(&small, "pubcomp 2");
    say_unsubscribe(&small, 3, "none");
    expect(&small, "unsuback 3 11");
    say_hex(&small, "c1 00");
    expect(&small, "disconnect 81");
    expect_end(&small);
}

/* A bridge of Mosquitto hears nothing of what it brought, and sees what is retained. */
static void bridge_of_311_has_the_options_it_cannot_ask_for(void **state) {
    struct client bridge;
    (void)state;

    client_open(&world, &bridge, 4);
    say_hex(&bridge, "10 12 0004 4d515454 84 00 0000 0006 627269646765");
    expect(&bridge, "connack present=0 00");
    client_subscribe(&bridge, "#", 1);
    say_publish(&bridge, &(struct publish){.topic = "t", .payload = "own", .qos = 1, .id = 1});
    expect(&bridge, "puback 1");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "1", .retain = true});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "2"});
    expect(&bridge, "publish retain q0 t '1'");
    expect(&bridge, "publish q0 t '2'");
    client_cut(&bridge);
    client_open(&world, &bridge, 4); /* the same session without the bit, whose subscription goes on as it was */
    say_connect(&bridge, &(struct connect){.id = "bridge", .resume = true});
    expect(&bridge, "connack present=1 00");
    say_publish(&bridge, &(struct publish){.topic = "t", .payload = "own"});
    expect_nothing(&bridge);
    client_subscribe(&bridge, "u", 1);
    say_publish(&bridge, &(struct publish){.topic = "u", .payload = "own"});
    expect(&bridge, "publish q0 u 'own'");
    client_cut(&bridge);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_a_b, end)
    const struct CMUnitTest tests[] = {
        TEST(subscribing_again_replaces_all_of_the_subscription),
        TEST(the_last_of_equal_filters_in_one_packet_holds),
        TEST(unsubscribe_names_the_filter_itself),
        TEST(what_is_under_way_is_completed_after_unsubscribe),
        TEST(unsubscribe_of_many_filters_is_answered_once_in_their_order),
        TEST(retained_message_is_replaced_deleted_and_left_alone),
        TEST(retained_message_outlives_the_session_of_its_publisher),
        TEST(will_is_kept_only_if_it_says_so),
        TEST(topic_aliases_end_with_the_connection),
        TEST(every_alias_up_to_the_maximum_is_taken),
        TEST(answers_fit_the_smallest_maximum),
        TEST(bridge_of_311_has_the_options_it_cannot_ask_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
