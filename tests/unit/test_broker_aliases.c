/* The topic aliases that a client gets from us: MQTT 5.0 sections 3.1.2.11.5 and 3.3.2.3.4. The other direction is in
 * test_broker_publish.c and test_broker_subscription.c. */
#include "alias_reader.h"

enum { LIMIT = 32 };

static struct world world;
static struct client publisher, subscriber;

static int begin(void **state) {
    (void)state;
    world.options.limits.topic_alias_out_max = LIMIT;
    world_begin(&world);
    client_connect(&world, &publisher, 5, "publisher");
    return 0;
}

static int end(void **state) {
    (void)state;
    if (subscriber.world != NULL) client_cut(&subscriber);
    client_cut(&publisher);
    world_end(&world);
    return 0;
}

static void subscriber_connect(const char *properties, const char *filter, unsigned qos) {
    client_connect_with(&world, &subscriber, 5, &(struct connect){.id = "subscriber", .properties = properties});
    client_subscribe(&subscriber, filter, qos);
}

static void publish(const char *topic, const char *payload) {
    say_publish(&publisher, &(struct publish){.topic = topic, .payload = payload});
}

static void publish_numbered(const char *prefix, unsigned number) {
    char topic[32];

    snprintf(topic, sizeof topic, "%s/%u", prefix, number);
    publish(topic, "x");
}

static void expect_numbered(const char *prefix, unsigned number, unsigned alias) {
    char expected[64], property[16] = "";

    if (alias > 0) snprintf(property, sizeof property, " 23=%u", alias);
    snprintf(expected, sizeof expected, "publish q0 %s/%u%s 'x'", prefix, number, property);
    expect(&subscriber, expected);
}

/* The topic stands for nothing: it is left out. */
static void expect_known(unsigned alias) {
    char expected[64];

    snprintf(expected, sizeof expected, "publish q0  23=%u 'x'", alias);
    expect(&subscriber, expected);
}

static void the_topic_comes_once_and_then_its_alias(void **state) {
    (void)state;
    subscriber_connect("22 0005", "room/#", 1);
    publish("room/kitchen", "x");
    expect(&subscriber, "publish q0 room/kitchen 23=1 'x'");
    publish("room/kitchen", "x");
    expect_known(1);
    publish("room/bedroom", "other");
    expect(&subscriber, "publish q0 room/bedroom 23=2 'other'");
    say_publish(&publisher, &(struct publish){.topic = "room/kitchen", .payload = "x", .qos = 1, .id = 1});
    expect(&subscriber, "publish q1 id=1  23=1 'x'");
    say_publish(&publisher, &(struct publish){.topic = "room/cellar", .payload = "x", .qos = 1, .id = 2});
    expect(&subscriber, "publish q1 id=2 room/cellar 23=3 'x'");
    publish("room/cellar", "x");
    expect_known(3);
}

static void a_publication_of_qos_2_has_its_topic(void **state) {
    (void)state;
    subscriber_connect("22 0005", "room/#", 2);
    publish("room/kitchen", "x");
    expect(&subscriber, "publish q0 room/kitchen 23=1 'x'");
    say_publish(&publisher, &(struct publish){.topic = "room/kitchen", .payload = "x", .qos = 2, .id = 1});
    expect(&subscriber, "publish q2 id=1 room/kitchen 'x'");
    publish("room/kitchen", "x");
    expect_known(1);
}

/* MQTT-3.1.2-26 and MQTT-3.3.2-11: none above the client's maximum; and none above ours. */
static void no_alias_is_above_what_the_client_takes(void **state) {
    static const struct {
        const char *properties;
        unsigned highest;
    } rows[] = {{"22 0001", 1}, {"22 0002", 2}, {"22 001f", 31}, {"22 0021", LIMIT}, {"22 ffff", LIMIT}};
    (void)state;

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        subscriber_connect(rows[row].properties, "many/#", 0);
        for (unsigned round = 0; round < 2; round++) {
            for (unsigned n = 1; n <= rows[row].highest; n++) {
                publish_numbered("many/topics", n);
                if (round == 0) expect_numbered("many/topics", n, n);
                if (round == 1) expect_known(n);
            }
        }
        publish_numbered("many/topics", rows[row].highest + 1);
        expect_numbered("many/topics", rows[row].highest + 1, 0);
        client_cut(&subscriber);
    }
}

/* MQTT-3.1.2-27. */
static void no_alias_is_sent_to_who_takes_none(void **state) {
    static const char *const properties[] = {NULL, "22 0000"};
    (void)state;

    for (int version = 4; version <= 5; version++) {
        for (size_t row = 0; row < 2; row++) {
            client_connect_with(&world, &subscriber, version,
                                &(struct connect){.id = "subscriber", .properties = properties[row]});
            client_subscribe(&subscriber, "room/#", 0);
            for (int n = 0; n < 3; n++) {
                say_publish(&publisher,
                            &(struct publish){.topic = "room/kitchen", .payload = "x", .properties = "23 0001"});
                expect(&subscriber, "publish q0 room/kitchen 'x'");
            }
            client_cut(&subscriber);
        }
    }
}

/* As there are clients that ask for what they do not understand. */
static void no_alias_is_sent_without_a_limit(void **state) {
    struct world none = {.now = 0};
    struct client client;
    (void)state;

    world_begin(&none);
    client_connect_with(&none, &client, 5, &(struct connect){.id = "client", .properties = "22 0005"});
    client_subscribe(&client, "room/#", 0);
    for (int n = 0; n < 3; n++) {
        say_publish(&client, &(struct publish){.topic = "room/kitchen", .payload = "x"});
        expect(&client, "publish q0 room/kitchen 'x'");
    }
    client_cut(&client);
    world_end(&none);
}

static void a_topic_as_short_as_an_alias_has_none(void **state) {
    (void)state;
    subscriber_connect("22 0005", "#", 0);
    for (int n = 0; n < 3; n++) {
        publish("a/b", "x");
        expect(&subscriber, "publish q0 a/b 'x'");
        publish("1234567", "x");
        expect(&subscriber, "publish q0 1234567 'x'");
    }
    publish("12345678", "x");
    expect(&subscriber, "publish q0 12345678 23=1 'x'");
}

/* MQTT-3.3.2-7, also for what was sent with an alias and was not acknowledged. */
static void aliases_end_with_the_connection(void **state) {
    struct connect connect = {.id = "subscriber", .properties = "11 00000064 22 0005", .resume = true};
    (void)state;

    client_connect_with(&world, &subscriber, 5, &connect);
    client_subscribe(&subscriber, "#", 1);
    for (unsigned n = 1; n <= 2; n++)
        say_publish(&publisher, &(struct publish){.topic = "room/kitchen", .payload = "x", .qos = 1, .id = n});
    expect(&subscriber, "publish q1 id=1 room/kitchen 23=1 'x'");
    expect(&subscriber, "publish q1 id=2  23=1 'x'");
    client_cut(&subscriber);
    client_connect_with(&world, &subscriber, 5, &connect);
    expect(&subscriber, "publish dup q1 id=1 room/kitchen 23=1 'x'");
    expect(&subscriber, "publish dup q1 id=2  23=1 'x'");
    client_cut(&subscriber);
    connect.properties = "11 00000064";
    client_connect_with(&world, &subscriber, 5, &connect);
    expect(&subscriber, "publish dup q1 id=1 room/kitchen 'x'");
    expect(&subscriber, "publish dup q1 id=2 room/kitchen 'x'");
}

/* One client's aliases are none of another's; who takes none gets what it always got. */
static void each_client_has_its_own(void **state) {
    struct client plain[3], late;
    (void)state;

    subscriber_connect("22 0005", "room/#", 0);
    for (int i = 0; i < 3; i++) {
        client_connect(&world, &plain[i], i == 0 ? 4 : 5, i == 0 ? "p0" : i == 1 ? "p1" : "p2");
        client_subscribe(&plain[i], "room/#", 0);
    }
    publish("room/bedroom", "x");
    client_connect_with(&world, &late, 5, &(struct connect){.id = "late", .properties = "22 0005"});
    client_subscribe(&late, "room/#", 0);
    for (int n = 0; n < 2; n++)
        publish("room/kitchen", "x");
    expect(&subscriber, "publish q0 room/bedroom 23=1 'x'");
    expect(&subscriber, "publish q0 room/kitchen 23=2 'x'");
    expect(&subscriber, "publish q0  23=2 'x'");
    expect(&late, "publish q0 room/kitchen 23=1 'x'");
    expect(&late, "publish q0  23=1 'x'");
    for (int i = 0; i < 3; i++) {
        expect(&plain[i], "publish q0 room/bedroom 'x'");
        expect(&plain[i], "publish q0 room/kitchen 'x'");
        expect(&plain[i], "publish q0 room/kitchen 'x'");
        client_cut(&plain[i]);
    }
    client_cut(&late);
}

/* All other properties stay, in the order in which they always came. */
static void an_alias_stands_beside_other_properties(void **state) {
    (void)state;
    client_connect_with(&world, &subscriber, 5, &(struct connect){.id = "subscriber", .properties = "22 0005"});
    say_subscribe_with(&subscriber, 1, "room/#", 0, "0b 07");
    expect(&subscriber, "suback 1 00");
    for (int n = 0; n < 2; n++)
        say_publish(&publisher, &(struct publish){.topic = "room/kitchen",
                                                  .payload = "x",
                                                  .properties = "23 0004 02 0000003c 26 0001 6b 0001 76"});
    expect(&subscriber, "publish q0 room/kitchen 23=1 0b=7 02=60 26=k:v 'x'");
    expect(&subscriber, "publish q0  23=1 0b=7 02=60 26=k:v 'x'");
}

/* Fixed header 2, topic 2 + 12, length of properties 1: 17 bytes, the alias is 3 more (MQTT-3.1.2-24). */
static void the_maximum_packet_size_holds_with_and_without(void **state) {
    char payload[64] = "";
    (void)state;

    subscriber_connect("22 0005 27 00000040", "#", 0);
    memset(payload, 'p', 48);
    publish("room/kitchen", payload); /* 65 bytes */
    expect_nothing(&subscriber);
    payload[47] = '\0'; /* 64 without an alias */
    publish("room/kitchen", payload);
    expect(&subscriber, "publish q0 room/kitchen 'ppp*");
    payload[44] = '\0'; /* 64 with one */
    publish("room/kitchen", payload);
    expect(&subscriber, "publish q0 room/kitchen 23=1 'ppp*");
    memset(payload, 'q', 56); /* 64 with the alias alone */
    publish("room/kitchen", payload);
    expect(&subscriber, "publish q0  23=1 'qqq*");
    payload[56] = 'q';
    publish("room/kitchen", payload);
    expect_nothing(&subscriber);
    assert_int_equal(counters(&world).dropped_too_large, 2);
}

static void what_the_output_limit_dropped_set_no_alias(void **state) {
    char payload[1001] = "";
    unsigned got = 0;
    char packet[1100];
    (void)state;

    memset(payload, 'p', 1000);
    subscriber_connect("22 0005", "#", 0);
    subscriber.unread = true;
    while (counters(&world).dropped_qos0 == 0)
        publish("room/kitchen", payload);
    publish("room/bedroom", "x");
    assert_int_equal(counters(&world).dropped_qos0, 2);
    subscriber.unread = false;
    while (*next_packet(&subscriber, packet, sizeof packet) != '\0')
        assert_true(strncmp(packet, got++ == 0 ? "publish q0 room/kitchen 23=1 " : "publish q0  23=1 ", 17) == 0);
    assert_true(got > 4000);
    publish("room/bedroom", "x");
    expect(&subscriber, "publish q0 room/bedroom 23=2 'x'");
    publish("room/bedroom", "x");
    expect_known(2);
}

static void the_least_recently_used_alias_is_given_anew(void **state) {
    (void)state;
    subscriber_connect("22 0003", "#", 0);
    for (unsigned n = 1; n <= 3; n++) {
        publish_numbered("full/house", n);
        expect_numbered("full/house", n, n);
    }
    publish_numbered("full/house", 1); /* now 2 is the oldest */
    expect_known(1);
    publish_numbered("full/house", 4); /* once is not enough */
    expect_numbered("full/house", 4, 0);
    publish_numbered("full/house", 4);
    expect_numbered("full/house", 4, 2);
    publish_numbered("full/house", 4);
    expect_known(2);
    publish_numbered("full/house", 3);
    expect_known(3);
    publish_numbered("full/house", 2);
    expect_numbered("full/house", 2, 0);
    publish_numbered("full/house", 2);
    expect_numbered("full/house", 2, 1);
    publish_numbered("full/house", 4);
    expect_known(2);
}

/* A store that is shown, and more topics in turn than there are aliases, leave most of them where they are. */
static void topics_that_do_not_come_again_push_nobody_out(void **state) {
    char packet[256];
    unsigned known = 0;
    (void)state;

    for (unsigned n = 0; n < 1000; n++) {
        char topic[32];
        snprintf(topic, sizeof topic, "kept/topics/%u", n);
        say_publish(&publisher, &(struct publish){.topic = topic, .payload = "x", .retain = true});
    }
    subscriber_connect("22 000a", "live/#", 0);
    for (unsigned n = 1; n <= 10; n++) {
        publish_numbered("live/topics", n);
        expect_numbered("live/topics", n, n);
    }
    client_subscribe(&subscriber, "kept/#", 0);
    for (unsigned n = 0; n < 1000; n++) {
        next_packet(&subscriber, packet, sizeof packet);
        assert_true(strncmp(packet, "publish retain q0 kept/topics/", 30) == 0);
        assert_null(strstr(packet, " 23="));
    }
    for (unsigned n = 1; n <= 10; n++) {
        publish_numbered("live/topics", n);
        expect_known(n);
    }
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned n = 0; n < 30; n++) {
            publish_numbered("live/topics", n);
            while (*next_packet(&subscriber, packet, sizeof packet) != '\0')
                if (strncmp(packet, "publish q0  23=", 15) == 0) known++;
        }
    }
    assert_true(known > 20 * 5); /* of 10 at a time; each taking the oldest would make it 0 */
}

static void what_is_retained_takes_the_aliases_that_are_free(void **state) {
    char packet[256];
    unsigned aliases = 0;
    (void)state;

    for (int n = 0; n < 3; n++) {
        char topic[] = "kept/long/0";
        topic[10] = (char)('0' + n);
        say_publish(&publisher, &(struct publish){.topic = topic, .payload = "x", .retain = true});
    }
    subscriber_connect("22 0002", "kept/#", 0);
    while (*next_packet(&subscriber, packet, sizeof packet) != '\0')
        if (strstr(packet, " 23=") != NULL) aliases++;
    assert_int_equal(aliases, 2);
}

/* All topics together have a bound; the oldest make room. */
static void aliases_have_a_bound_in_bytes(void **state) {
    enum { SIZE = 8000, COUNT = 20 };
    static char topic[SIZE + 1];
    struct alias_reader reader = {.alias_max = LIMIT};
    struct publication got;
    unsigned used;
    (void)state;

    client_connect_with(&world, &reader.client, 5, &(struct connect){.id = "reader", .properties = "22 ffff"});
    client_subscribe(&reader.client, "#", 0);
    for (int n = 0; n < 3 * COUNT; n++) {
        memset(topic, 'a' + n / 3, SIZE);
        publish(topic, "x");
        assert_true(reader_next(&reader, &got));
        assert_string_equal(got.topic, topic);
        assert_int_equal(got.without_topic, n % 3 == 2 || (n % 3 == 1 && n / 3 < 16));
    }
    used = reader.used;
    assert_int_equal(reader.set + reader.set_anew, COUNT);
    for (int n = COUNT - 16; n < COUNT; n++) { /* 128 KiB hold 16 of them: the last */
        memset(topic, 'a' + n, SIZE);
        publish(topic, "x");
        assert_true(reader_next(&reader, &got));
        assert_string_equal(got.topic, topic);
    }
    assert_int_equal(reader.used, used + 16);
    reader_cut(&reader);
}

/* While memory is short what is known is used, and nothing new is kept. */
static void no_alias_is_set_while_memory_is_short(void **state) {
    static const char *const topics[] = {"room/kitchen", "room/kitchen", "room/bedroom", "room/bedroom",
                                         "room/bedroom"};
    (void)state;
    subscriber_connect("22 0005 21 0001", "#", 1);
    for (unsigned n = 0; n < 5; n++)
        say_publish(&publisher, &(struct publish){.topic = topics[n], .payload = "x", .qos = 1, .id = n + 1});
    expect(&subscriber, "publish q1 id=1 room/kitchen 23=1 'x'");
    broker_set_memory_short(world.broker, world.now, true);
    say_ack(&subscriber, 4, 1);
    expect(&subscriber, "publish q1 id=2  23=1 'x'");
    say_ack(&subscriber, 4, 2);
    expect(&subscriber, "publish q1 id=3 room/bedroom 'x'");
    say_ack(&subscriber, 4, 3);
    expect(&subscriber, "publish q1 id=4 room/bedroom 'x'");
    broker_set_memory_short(world.broker, world.now, false);
    say_ack(&subscriber, 4, 4);
    expect(&subscriber, "publish q1 id=5 room/bedroom 23=2 'x'");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_topic_comes_once_and_then_its_alias),
        TEST(a_publication_of_qos_2_has_its_topic),
        TEST(no_alias_is_above_what_the_client_takes),
        TEST(no_alias_is_sent_to_who_takes_none),
        TEST(no_alias_is_sent_without_a_limit),
        TEST(a_topic_as_short_as_an_alias_has_none),
        TEST(aliases_end_with_the_connection),
        TEST(each_client_has_its_own),
        TEST(an_alias_stands_beside_other_properties),
        TEST(the_maximum_packet_size_holds_with_and_without),
        TEST(what_the_output_limit_dropped_set_no_alias),
        TEST(the_least_recently_used_alias_is_given_anew),
        TEST(topics_that_do_not_come_again_push_nobody_out),
        TEST(what_is_retained_takes_the_aliases_that_are_free),
        TEST(aliases_have_a_bound_in_bytes),
        TEST(no_alias_is_set_while_memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
