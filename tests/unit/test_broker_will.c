#include "mqtt_client.h"

static struct world world;
static struct client watcher, client;

static int begin(void **state) {
    (void)state;
    world_begin(&world);
    client_connect(&world, &watcher, 5, "watcher");
    client_subscribe(&watcher, "will", 2);
    return 0;
}

static int end(void **state) {
    (void)state;
    client_cut(&watcher);
    if (client.handle) client_cut(&client);
    world_end(&world);
    return 0;
}

/* Expiry of the session and will delay in seconds. */
static void connect_with_will(int version, bool resume, unsigned expiry, unsigned delay) {
    char properties[32], will_properties[32];

    snprintf(properties, sizeof properties, "11 %08x", expiry);
    snprintf(will_properties, sizeof will_properties, "18 %08x", delay);
    client_connect_with(&world, &client, version,
                        &(struct connect){.id = "c",
                                          .resume = resume,
                                          .keep_alive = 10,
                                          .properties = properties,
                                          .will_topic = "will",
                                          .will_payload = "gone",
                                          .will_properties = will_properties});
}

static void cut_connection_sends_the_will(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        connect_with_will(version, false, 0, 0);
        client_cut(&client);
        expect(&watcher, "publish q0 will 'gone'");
        expect_nothing(&watcher);
    }
}

static void keep_alive_timeout_sends_the_will(void **state) {
    (void)state;
    connect_with_will(5, false, 0, 0);
    pass(&world, 15000);
    expect(&watcher, "publish q0 will 'gone'");
    expect(&client, "disconnect 8d");
    expect_end(&client);
}

static void protocol_error_sends_the_will(void **state) {
    (void)state;
    connect_with_will(4, false, 0, 0);
    say_hex(&client, "00 00");
    expect(&watcher, "publish q0 will 'gone'");
    expect_end(&client);
}

static void disconnect_drops_the_will_unless_it_asks_for_it(void **state) {
    static const struct {
        int version;
        const char *hex;
        bool sent;
    } rows[] = {{4, "e0 00", false},
                {5, "e0 00", false},
                {5, "e0 01 00", false},
                {5, "e0 01 04", true},
                {5, "e0 02 80 00", true}};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        connect_with_will(rows[i].version, false, 100, 0);
        say_hex(&client, rows[i].hex);
        expect_end(&client);
        expect(&watcher, rows[i].sent ? "publish q0 will 'gone'" : "");
        pass(&world, 200000);
        say_hex(&watcher, "c0 00");
        expect(&watcher, "pingresp");
    }
}

static void delayed_will_waits(void **state) {
    (void)state;
    connect_with_will(5, false, 100, 5);
    client_cut(&client);
    pass(&world, 4999);
    expect_nothing(&watcher);
    pass(&world, 1);
    expect(&watcher, "publish q0 will 'gone'");
    assert_int_equal(counters(&world).sessions, 2);
    pass(&world, 95000);
    expect_nothing(&watcher);
    assert_int_equal(counters(&world).sessions, 1);
}

static void delayed_will_comes_with_the_end_of_the_session(void **state) {
    (void)state;
    connect_with_will(5, false, 5, 100);
    client_cut(&client);
    pass(&world, 4999);
    expect_nothing(&watcher);
    pass(&world, 1);
    expect(&watcher, "publish q0 will 'gone'");
    /* Without a life of the session the delay is none. */
    connect_with_will(5, false, 0, 100);
    client_cut(&client);
    expect(&watcher, "publish q0 will 'gone'");
}

static void coming_back_in_time_drops_a_delayed_will(void **state) {
    (void)state;
    connect_with_will(5, false, 100, 5);
    client_cut(&client);
    pass(&world, 4000);
    client_connect_with(&world, &client, 5, &(struct connect){.id = "c", .resume = true});
    pass(&world, 10000);
    expect_nothing(&watcher);
    client_cut(&client);
    expect_nothing(&watcher);
}

/* A loop that is busy ticks late. */
static void coming_back_late_sends_a_delayed_will_though_no_tick_has_come(void **state) {
    (void)state;
    connect_with_will(5, false, 100, 5);
    client_cut(&client);
    world.now += 5000;
    client_connect_with(&world, &client, 5, &(struct connect){.id = "c", .resume = true});
    expect(&watcher, "publish q0 will 'gone'");
    client_cut(&client);
}

static void a_session_that_is_over_is_not_resumed_though_no_tick_has_come(void **state) {
    (void)state;
    connect_with_will(5, false, 100, 200);
    client_cut(&client);
    world.now += 100000;
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "c", .resume = true});
    expect(&client, "connack present=0 00*");
    expect(&watcher, "publish q0 will 'gone'");
    assert_int_equal(counters(&world).sessions_expired, 1);
    client_cut(&client);
}

static void coming_back_clean_sends_a_delayed_will(void **state) {
    (void)state;
    connect_with_will(5, false, 100, 5);
    client_cut(&client);
    client_connect(&world, &client, 5, "c");
    expect(&watcher, "publish q0 will 'gone'");
}

static void takeover_sends_the_will_unless_it_is_delayed_and_the_session_goes_on(void **state) {
    static const struct {
        int version;
        unsigned delay;
        bool resume, sent;
    } rows[] = {{4, 0, true, true}, {5, 0, true, true}, {5, 0, false, true}, {5, 5, true, false}, {5, 5, false, true}};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client old;
        connect_with_will(rows[i].version, rows[i].version == 4, 100, rows[i].delay);
        old = client;
        client_connect_with(&world, &client, rows[i].version, &(struct connect){.id = "c", .resume = rows[i].resume});
        expect(&watcher, rows[i].sent ? "publish q0 will 'gone'" : "");
        client_read(&old);
        client_forget(&old);
        client_cut(&client);
        client_connect(&world, &client, 5, "c");
        client_cut(&client);
        expect_nothing(&watcher);
    }
}

static void will_is_retained_with_its_qos_and_properties(void **state) {
    (void)state;
    client_connect_with(
        &world, &client, 5,
        &(struct connect){.id = "c",
                          .will_topic = "will",
                          .will_payload = "gone",
                          .will_qos = 1,
                          .will_retain = true,
                          .will_properties =
                              "26 0001 6b 0001 31 18 00000000 02 0000000a 03 0001 63 26 0001 6b 0001 32"});
    pass(&world, 5000); /* expiry runs from publication on */
    client_cut(&client);
    expect(&watcher, "publish q1 id=1 will 02=10 26=k:1 03=c 26=k:2 'gone'");
    say_subscribe(&watcher, 1, "will", 0);
    expect(&watcher, "suback 1 00");
    expect(&watcher, "publish retain q0 will 02=10 26=k:1 03=c 26=k:2 'gone'");
}

static void large_will_comes_with_its_properties(void **state) {
    static char payload[3000];
    (void)state;
    memset(payload, 'x', sizeof payload - 1);
    client_connect_with(&world, &client, 5,
                        &(struct connect){.id = "c",
                                          .will_topic = "will",
                                          .will_payload = payload,
                                          .will_properties = "26 0001 6b 0001 31 18 00000000 03 0001 63"});
    client_cut(&client);
    expect(&watcher, "publish q0 will 26=k:1 03=c 'xxxxxxxxxx...2999'");
}

static void wills_of_a_crowd_reach_each_other_without_trouble(void **state) {
    struct client crowd[20];
    (void)state;

    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "c%d", i);
        client_connect_with(&world, &crowd[i], 5,
                            &(struct connect){.id = id, .keep_alive = 10, .will_topic = "will", .will_payload = id});
        client_subscribe(&crowd[i], "will", 1);
    }
    pass(&world, 15000);
    for (int i = 0; i < 20; i++)
        expect(&watcher, "publish q0 will 'c*");
    expect_nothing(&watcher);
    for (int i = 0; i < 20; i++) {
        client_read(&crowd[i]);
        assert_true(broker_client_ended(world.broker, crowd[i].handle));
        client_forget(&crowd[i]);
    }
}

static void will_may_have_the_longest_expiry(void **state) {
    (void)state;
    client_connect_with(
        &world, &client, 5,
        &(struct connect){
            .id = "c", .will_topic = "will", .will_payload = "gone", .will_properties = "02 ffffffff 18 00000000"});
    client_cut(&client);
    expect(&watcher, "publish q0 will 02=4294967295 'gone'");
}

/* MQTT-3.8.3-3: the will is its client's own publication. */
static void no_local_keeps_a_clients_own_will_away(void **state) {
    (void)state;
    for (unsigned no_local = 0; no_local < 2; no_local++) {
        client_connect_with(
            &world, &client, 5,
            &(struct connect){
                .id = "c", .properties = "11 00000064", .will_topic = "will", .will_payload = "gone", .will_qos = 1});
        client_subscribe(&client, "will", 1 | no_local << 2);
        client_cut(&client);
        expect(&watcher, "publish q1 id=*");
        client_connect_with(&world, &client, 5, &(struct connect){.id = "c", .resume = true});
        expect(&client, no_local ? "" : "publish q1 id=1 will 'gone'");
        client_cut(&client);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(cut_connection_sends_the_will),
        TEST(keep_alive_timeout_sends_the_will),
        TEST(protocol_error_sends_the_will),
        TEST(disconnect_drops_the_will_unless_it_asks_for_it),
        TEST(delayed_will_waits),
        TEST(delayed_will_comes_with_the_end_of_the_session),
        TEST(coming_back_in_time_drops_a_delayed_will),
        TEST(coming_back_late_sends_a_delayed_will_though_no_tick_has_come),
        TEST(a_session_that_is_over_is_not_resumed_though_no_tick_has_come),
        TEST(coming_back_clean_sends_a_delayed_will),
        TEST(takeover_sends_the_will_unless_it_is_delayed_and_the_session_goes_on),
        TEST(will_is_retained_with_its_qos_and_properties),
        TEST(large_will_comes_with_its_properties),
        TEST(will_may_have_the_longest_expiry),
        TEST(no_local_keeps_a_clients_own_will_away),
        TEST(wills_of_a_crowd_reach_each_other_without_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
