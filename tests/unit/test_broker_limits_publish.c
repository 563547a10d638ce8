/* What a client may publish: the limits of topics, aliases, retained messages and Receive Maximum, as in
 * test_broker_limits.c. */
#include "limits_fixture.h"

static void topic_levels_and_size_are_held(void **state) {
    static const struct {
        const char *topic;
        bool good;
    } rows[] = {{"a/b/c", true}, {"a/b/c/d", false}, {"///", false}, {"0123456789", true}, {"01234567890", false}};
    (void)state;

    world.options.limits.topic_levels_max = 3;
    world.options.limits.topic_size_max = 10;
    again();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        /* 5.0: the acknowledgement says it; what has none is closed, as it would be lost in silence. */
        client_connect(&world, &client, 5, "a");
        say_publish(&client, &(struct publish){.topic = rows[i].topic, .qos = 1, .id = 1});
        expect(&client, rows[i].good ? "puback 1" : "puback 1 90");
        say_publish(&client, &(struct publish){.topic = rows[i].topic, .qos = 2, .id = 2});
        expect(&client, rows[i].good ? "pubrec 2" : "pubrec 2 90");
        say_subscribe(&client, 3, rows[i].topic, 0);
        expect(&client, rows[i].good ? "suback 3 00" : "suback 3 8f");
        if (!rows[i].good) say_publish(&client, &(struct publish){.topic = rows[i].topic});
        if (!rows[i].good) expect(&client, "disconnect 90");
        client_cut(&client);
        /* 3.1.1 */
        client_connect(&world, &client, 4, "a");
        say_subscribe(&client, 3, rows[i].topic, 0);
        expect(&client, rows[i].good ? "suback 3 00" : "suback 3 80");
        say_publish(&client, &(struct publish){.topic = rows[i].topic, .qos = 1, .id = 1});
        if (rows[i].good) expect(&client, "publish q0*");
        if (rows[i].good) expect(&client, "puback 1");
        client_read(&client);
        assert_true(broker_client_ended(world.broker, client.handle) == !rows[i].good);
        client_cut(&client);
        /* wills */
        client_open(&world, &client, 5);
        say_connect(&client, &(struct connect){.id = "w", .will_topic = rows[i].topic});
        expect(&client, rows[i].good ? "connack present=0 00*" : "connack present=0 90");
        client_cut(&client);
    }
    assert_int_equal(at_limit(BROKER_AT_TOPIC_LEVELS_MAX), 2 * 7);
    assert_int_equal(at_limit(BROKER_AT_TOPIC_SIZE_MAX), 7);
}

static void default_depth_is_128_levels(void **state) {
    char topic[260] = "";
    struct client client;
    (void)state;

    for (int i = 0; i < 127; i++)
        strcat(topic, "x/");
    strcat(topic, "x");
    client_connect(&world, &client, 5, "a");
    say_publish(&client, &(struct publish){.topic = topic, .qos = 1, .id = 1, .retain = true, .payload = "x"});
    expect(&client, "puback 1");
    strcat(topic, "/");
    say_publish(&client, &(struct publish){.topic = topic, .qos = 1, .id = 1, .retain = true, .payload = "x"});
    expect(&client, "puback 1 90");
    say_subscribe(&client, 1, topic, 0);
    expect(&client, "suback 1 8f");
    client_cut(&client);
}

static void reserved_topics_are_not_for_clients(void **state) {
    static const struct {
        const char *topic;
        bool good;
    } rows[] = {{"$SYS/broker/uptime", false},
                {"$SYS", false},
                {"$SYS/broker/connection/b.c/state", true}, /* where bridges of Mosquitto say how they are */
                {"$SYS/broker/connection/b/c/state", false},
                {"$share/g/t", false},
                {"$share", true},
                {"$shared/t", true},
                {"$SYSTEM/t", true},
                {"$other/t", true},
                {"a/$SYS", true}};
    struct client watcher;
    (void)state;

    client_connect(&world, &watcher, 4, "watcher");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(rows[i].topic, "$share/", 7) != 0) client_subscribe(&watcher, rows[i].topic, 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int version = 4; version <= 5; version++) {
            struct client client;
            client_connect(&world, &client, version, "a");
            client.tells_reasons = true;
            for (unsigned qos = 0; qos < 3; qos++)
                say_publish(&client, &(struct publish){.topic = rows[i].topic, .qos = qos, .id = qos, .payload = "x"});
            for (unsigned qos = 0; qos < 3 && rows[i].good; qos++)
                expect(&watcher, "publish q0*");
            if (rows[i].good || version == 4) {
                expect(&client, "puback 1");
                expect(&client, "pubrec 2");
            } else {
                expect(&client, "puback 1 87 1f=$SYS and $share are not for clients");
                expect(&client, "pubrec 2 87 1f=$SYS and $share are not for clients");
            }
            expect_nothing(&watcher);
            say_hex(&client, "c000");
            expect(&client, "pingresp");
            client_cut(&client);
        }
    }
    assert_int_equal(counters(&world).publications_denied, 4 * 2 * 3);
    client_cut(&watcher);
}

static void will_to_a_reserved_topic_is_refused(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        struct client client;
        client_open(&world, &client, version);
        say_connect(&client, &(struct connect){.id = "a", .will_topic = "$SYS/broker/uptime"});
        expect(&client, version == 4 ? "connack present=0 05" : "connack present=0 87");
        expect_end(&client);
        client_open(&world, &client, version);
        say_connect(&client, &(struct connect){.id = "a", .will_topic = "$SYS/broker/connection/a/state"});
        expect(&client, "connack present=0 00*");
        client_cut(&client);
    }
}

static void packet_id_of_a_refused_publication_is_free_again(void **state) {
    struct client client;
    (void)state;

    client_connect(&world, &client, 5, "a");
    say_publish(&client, &(struct publish){.topic = "$SYS/x", .qos = 2, .id = 7});
    expect(&client, "pubrec 7 87");
    say_publish(&client, &(struct publish){.topic = "t", .qos = 2, .id = 7});
    expect(&client, "pubrec 7");
    say_ack(&client, 6, 7);
    expect(&client, "pubcomp 7");
    client_cut(&client);
}

static void topic_aliases_have_a_bound_in_bytes(void **state) {
    struct client client;
    char topic[5001];
    (void)state;

    client_connect(&world, &client, 5, "a");
    memset(topic, 't', 5000);
    topic[5000] = '\0';
    for (int round = 0; round < 3; round++) { /* the same alias anew costs nothing more */
        for (unsigned alias = 1; alias <= 26; alias++) {
            char properties[16];
            snprintf(properties, sizeof properties, "23 %04x", alias);
            say_publish(&client, &(struct publish){.topic = topic, .properties = properties});
        }
    }
    expect_nothing(&client);
    say_publish(&client, &(struct publish){.topic = topic, .properties = "23 001b"});
    expect(&client, "disconnect 97");
    expect_end(&client);
}

static void retained_publication_that_does_not_fit_is_refused_where_the_client_can_be_told(void **state) {
    struct client watcher, client;
    (void)state;

    world.options.limits.retained_messages_max = 1;
    again();
    client_connect(&world, &watcher, 5, "watcher");
    client_subscribe(&watcher, "#", 0);
    client_connect(&world, &client, 5, "a");
    client.tells_reasons = true;
    say_publish(&client, &(struct publish){.topic = "1", .payload = "x", .retain = true, .qos = 1, .id = 1});
    expect(&client, "puback 1");
    expect(&watcher, "publish q0 1 'x'");
    say_publish(&client, &(struct publish){.topic = "2", .payload = "x", .retain = true, .qos = 1, .id = 1});
    expect(&client, "puback 1 97 1f=the store of retained messages is full");
    say_publish(&client, &(struct publish){.topic = "2", .payload = "x", .retain = true, .qos = 2, .id = 2});
    expect(&client, "pubrec 2 97*");
    expect_nothing(&watcher);
    /* In the place of another there is room. */
    say_publish(&client, &(struct publish){.topic = "1", .payload = "y", .retain = true, .qos = 1, .id = 1});
    expect(&client, "puback 1");
    expect(&watcher, "publish q0 1 'y'");
    /* Who cannot be told still reaches those who are there. */
    say_publish(&client, &(struct publish){.topic = "2", .payload = "x", .retain = true});
    expect(&watcher, "publish q0 2 'x'");
    client_cut(&client);
    client_connect(&world, &client, 4, "a");
    say_publish(&client, &(struct publish){.topic = "2", .payload = "x", .retain = true, .qos = 1, .id = 1});
    expect(&client, "puback 1");
    expect(&watcher, "publish q0 2 'x'");
    assert_int_equal(counters(&world).not_retained, 4);
    assert_int_equal(at_limit(BROKER_AT_RETAINED_MESSAGES_MAX), 4);
    client_cut(&client);
    client_cut(&watcher);
}

/* MQTT 5.0 section 3.3.4: what counts is acknowledged or not, at QoS 1 as at QoS 2, and who waits for a disk cannot be
 * hurried. */
static void receive_maximum_counts_what_waits_for_the_store(void **state) {
    (void)state;

    world.options.limits.inflight_max = 3;
    world.options.durable = true;
    for (int version = 4; version <= 5; version++) {
        struct broker_journal journal;
        struct client client;
        again();
        client_connect(&world, &client, version, "a");
        for (unsigned round = 0; round < 2; round++) {
            for (unsigned id = 1; id <= 3; id++)
                say_publish(&client,
                            &(struct publish){.topic = "t", .payload = "x", .retain = true, .qos = 1, .id = id});
            expect_nothing(&client);
            if (round == 1) break;
            assert_true(broker_take_journal(world.broker, &journal));
            broker_durable(world.broker, world.now, journal.last);
            free(journal.bytes);
            for (unsigned id = 1; id <= 3; id++)
                expect(&client, id == 1 ? "puback 1" : id == 2 ? "puback 2" : "puback 3");
        }
        say_publish(&client, &(struct publish){.topic = "u", .qos = 1, .id = 4});
        if (version == 5) {
            expect(&client, "disconnect 93");
            expect_end(&client);
        } else {
            client_read(&client); /* it has no such bound */
            assert_false(broker_client_ended(world.broker, client.handle));
            client_cut(&client);
        }
        assert_int_equal(at_limit(BROKER_AT_INFLIGHT_MAX), version == 5);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(topic_levels_and_size_are_held),
        TEST(default_depth_is_128_levels),
        TEST(reserved_topics_are_not_for_clients),
        TEST(will_to_a_reserved_topic_is_refused),
        TEST(packet_id_of_a_refused_publication_is_free_again),
        TEST(topic_aliases_have_a_bound_in_bytes),
        TEST(retained_publication_that_does_not_fit_is_refused_where_the_client_can_be_told),
        TEST(receive_maximum_counts_what_waits_for_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
