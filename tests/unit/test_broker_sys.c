/* $SYS as dashboards made for Mosquitto read it. */
#include "mqtt_client.h"

static struct world world;
static struct client watcher;

static int begin(void **state) {
    (void)state;
    world.options.limits.sys_interval_s = 10;
    world.options.version = "1.2.3";
    world_begin(&world);
    pass(&world, 0); /* the first round */
    return 0;
}

static int end(void **state) {
    (void)state;
    if (watcher.handle) client_cut(&watcher);
    world_end(&world);
    return 0;
}

static void again(void) {
    struct broker_options options = world.options;

    world_end(&world);
    world.options = options;
    world_begin(&world);
    pass(&world, 0);
}

static void watch(const char *filter) {
    client_connect(&world, &watcher, 4, "watcher");
    client_subscribe(&watcher, filter, 2);
}

/* What the topic holds, "" if nothing. */
static const char *held(const char *topic, char out[256]) {
    struct client client;
    char got[256], whole[128];

    client_connect(&world, &client, 4, "held");
    snprintf(whole, sizeof whole, "$SYS/broker/%s", topic);
    client_subscribe(&client, whole, 0);
    next_packet(&client, got, sizeof got);
    out[0] = '\0';
    if (got[0] != '\0') {
        char head[160];
        snprintf(head, sizeof head, "publish retain q0 %s '", whole);
        assert_memory_equal(got, head, strlen(head));
        snprintf(out, 256, "%.*s", (int)(strlen(got) - strlen(head) - 1), got + strlen(head));
    }
    client_cut(&client);
    return out;
}

static void expect_held(const char *topic, const char *value) {
    char got[256];

    held(topic, got);
    if (strcmp(got, value) != 0) fail_msg("%s is '%s', not '%s'", topic, got, value);
}

static void all_topics_are_there_from_the_start(void **state) {
    static const char *const topics[] = {
        "version",
        "uptime",
        "clients/total",
        "clients/connected",
        "clients/active",
        "clients/disconnected",
        "clients/inactive",
        "clients/maximum",
        "clients/expired",
        "messages/received",
        "messages/sent",
        "messages/stored",
        "messages/inflight",
        "store/messages/count",
        "store/messages/bytes",
        "subscriptions/count",
        "shared_subscriptions/count",
        "retained messages/count",
        "bytes/received",
        "bytes/sent",
        "publish/messages/received",
        "publish/messages/sent",
        "publish/messages/dropped",
        "publish/bytes/received",
        "publish/bytes/sent",
        "load/messages/received/1min",
        "load/messages/received/5min",
        "load/messages/received/15min",
        "load/messages/sent/1min",
        "load/publish/received/1min",
        "load/publish/sent/5min",
        "load/publish/dropped/15min",
        "load/bytes/received/1min",
        "load/bytes/sent/1min",
        "load/sockets/1min",
        "load/connections/1min",
    };
    char got[256];
    (void)state;

    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
        if (held(topics[i], got)[0] == '\0') fail_msg("no %s", topics[i]);
    expect_held("version", "hobnob version 1.2.3");
    expect_held("uptime", "0 seconds");
    expect_held("clients/connected", "0");
    expect_held("load/messages/received/1min", "0.00");
    expect_held("heap/current size", ""); /* nobody has told */
}

static void values_have_the_units_of_mosquitto(void **state) {
    struct client sleeper, clients[3];
    (void)state;

    client_connect_with(&world, &sleeper, 5, &(struct connect){.id = "sleeper", .properties = "11 00000e10"});
    client_subscribe(&sleeper, "t", 1);
    client_subscribe(&sleeper, "$share/g/t/+", 1);
    client_cut(&sleeper);
    for (int i = 0; i < 3; i++)
        client_connect(&world, &clients[i], 5, "");
    client_subscribe(&clients[0], "t", 1);
    say_publish(&clients[1], &(struct publish){.topic = "t", .payload = "12345", .qos = 1, .id = 1, .retain = true});
    expect(&clients[0], "publish q1 id=1*");
    broker_set_memory_used(world.broker, 1000);
    pass(&world, 10000);
    broker_set_memory_used(world.broker, 900);
    pass(&world, 10000);
    expect_held("uptime", "20 seconds");
    expect_held("clients/total", "4");
    expect_held("clients/connected", "3");
    expect_held("clients/disconnected", "1");
    expect_held("clients/maximum", "3");
    expect_held("subscriptions/count", "3");
    expect_held("shared_subscriptions/count", "1");
    expect_held("retained messages/count", "1");
    expect_held("messages/inflight", "1");
    expect_held("messages/stored", "3"); /* retained, in flight, waiting for the sleeper */
    expect_held("store/messages/count", "3");
    expect_held("publish/messages/received", "1");
    expect_held("publish/bytes/received", "5");
    expect_held("publish/messages/sent", "1");
    expect_held("publish/bytes/sent", "5");
    expect_held("heap/current", "900");
    expect_held("heap/maximum", "1000");
    expect_held("heap/current size", "900");
    expect_held("heap/maximum size", "1000");
    say_ack(&clients[0], 4, 1);
    pass(&world, 3600000);
    expect_held("messages/inflight", "0");
    expect_held("messages/stored", "1");
    expect_held("clients/expired", "1");
    expect_held("subscriptions/count", "1");
    expect_held("shared_subscriptions/count", "0");
    for (int i = 0; i < 3; i++)
        client_cut(&clients[i]);
}

static void idle_broker_tells_its_uptime_and_what_that_costs_in_bytes(void **state) {
    char got[256];
    (void)state;

    watch("$SYS/#");
    do
        next_packet(&watcher, got, sizeof got);
    while (got[0] != '\0');
    pass(&world, 20000000); /* what its own coming has changed has settled */
    do
        next_packet(&watcher, got, sizeof got);
    while (got[0] != '\0');
    pass(&world, 10000);
    expect(&watcher, "publish q0 $SYS/broker/uptime '20010 seconds'"); /* live, so without retain */
    for (;;) {
        next_packet(&watcher, got, sizeof got);
        if (got[0] == '\0') break;
        if (strstr(got, "bytes/sent") == NULL) fail_msg("told for nothing: %s", got);
    }
}

static void telling_is_not_counted(void **state) {
    struct broker_counters before, after;
    (void)state;

    watch("$SYS/#");
    client_read(&watcher);
    before = counters(&world);
    pass(&world, 100000);
    client_read(&watcher);
    after = counters(&world);
    assert_int_equal(before.packets_sent, after.packets_sent);
    assert_int_equal(before.publications_sent, after.publications_sent);
    assert_int_equal(before.publications_received, after.publications_received);
    assert_int_equal(after.retained_messages, 0);
}

static void wildcards_do_not_see_it(void **state) {
    (void)state;

    watch("#");
    say_subscribe(&watcher, 1, "+/broker/uptime", 0);
    expect(&watcher, "suback 1 00");
    pass(&world, 30000);
    expect_nothing(&watcher);
}

static void no_limit_counts_it(void **state) {
    struct client client;
    (void)state;

    world.options.limits.retained_messages_max = 1;
    again();
    pass(&world, 100000);
    client_connect(&world, &client, 5, "a");
    say_publish(&client, &(struct publish){.topic = "t", .payload = "x", .retain = true, .qos = 1, .id = 1});
    expect(&client, "puback 1");
    expect_held("uptime", "100 seconds");
    assert_int_equal(counters(&world).not_retained, 0);
    client_cut(&client);
}

static void no_journal_has_it(void **state) {
    struct broker_journal journal;
    (void)state;

    world.options.durable = true;
    again();
    pass(&world, 100000);
    assert_false(broker_take_journal(world.broker, &journal));
}

static void loads_are_averages_by_the_minute(void **state) {
    struct client client;
    char got[256];
    double average = 0;
    (void)state;

    client_connect(&world, &client, 4, "a");
    for (int second = 1; second <= 60; second++) {
        for (int i = 0; i < 10; i++)
            say_publish(&client, &(struct publish){.topic = "t"});
        pass(&world, 1000);
    }
    /* 600 a minute for a minute: 600 * (1 - 1/e) */
    average = atof(held("load/publish/received/1min", got));
    assert_true(average > 379 && average < 380);
    average = atof(held("load/publish/received/5min", got));
    assert_true(average > 108 && average < 109);
    average = atof(held("load/publish/received/15min", got));
    assert_true(average > 38 && average < 39);
    pass(&world, 60000); /* and what is left of it a minute later */
    average = atof(held("load/publish/received/1min", got));
    assert_true(average > 139 && average < 140);
    pass(&world, 3600000);
    expect_held("load/publish/received/1min", "0.00");
    client_cut(&client);
}

static void it_can_be_left_out(void **state) {
    char got[256];
    (void)state;

    world.options.limits.sys_interval_s = UINT32_MAX;
    again();
    assert_true(broker_deadline_ms(world.broker) == UINT64_MAX);
    assert_string_equal(held("uptime", got), "");
}

static void interval_is_held(void **state) {
    (void)state;

    world.options.limits.sys_interval_s = 60;
    again();
    assert_int_equal(broker_deadline_ms(world.broker), world.now + 60000);
    pass(&world, 59999);
    expect_held("uptime", "0 seconds");
    pass(&world, 1);
    expect_held("uptime", "60 seconds");
}

static void bridges_tell_how_they_are_there(void **state) {
    struct client bridge;
    (void)state;

    client_connect_with(&world, &bridge, 4,
                        &(struct connect){.id = "edge.bridge",
                                          .will_topic = "$SYS/broker/connection/edge.bridge/state",
                                          .will_payload = "0",
                                          .will_retain = true});
    say_publish(
        &bridge,
        &(struct publish){
            .topic = "$SYS/broker/connection/edge.bridge/state", .payload = "1", .retain = true, .qos = 1, .id = 1});
    expect(&bridge, "puback 1");
    expect_held("connection/edge.bridge/state", "1");
    client_cut(&bridge);
    expect_held("connection/edge.bridge/state", "0");
    assert_int_equal(counters(&world).retained_messages, 0);
}

static void retained_walks_of_both_stores_in_one_subscribe_are_apart(void **state) {
    struct client client;
    struct packet body = {.size = 0}, packet;
    char got[256];
    int sys = 0, others = 0;
    (void)state;

    client_connect(&world, &client, 4, "a");
    for (int i = 0; i < 50; i++) {
        char topic[16];
        snprintf(topic, sizeof topic, "t/%d", i);
        say_publish(&client, &(struct publish){.topic = topic, .payload = "x", .retain = true});
    }
    put16(&body, 7);
    put_text(&body, "$SYS/broker/load/#");
    put8(&body, 0);
    put_text(&body, "#");
    put8(&body, 0);
    put_text(&body, "$SYS/broker/clients/+");
    put8(&body, 0);
    packet = packet_of(0x82, &body);
    say(&client, &packet);
    expect(&client, "suback 7 00 00 00");
    for (;;) {
        next_packet(&client, got, sizeof got);
        if (got[0] == '\0') break;
        *(strstr(got, " $SYS/") != NULL ? &sys : &others) += 1;
    }
    assert_int_equal(others, 50);
    assert_int_equal(sys, 27 + 7);
    client_cut(&client);
}

static void stopped_broker_tells_nothing_more(void **state) {
    (void)state;
    broker_stop(world.broker, world.now);
    assert_true(broker_deadline_ms(world.broker) == UINT64_MAX);
    broker_tick(world.broker, world.now + 100000);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(all_topics_are_there_from_the_start),
        TEST(values_have_the_units_of_mosquitto),
        TEST(idle_broker_tells_its_uptime_and_what_that_costs_in_bytes),
        TEST(telling_is_not_counted),
        TEST(wildcards_do_not_see_it),
        TEST(no_limit_counts_it),
        TEST(no_journal_has_it),
        TEST(loads_are_averages_by_the_minute),
        TEST(it_can_be_left_out),
        TEST(interval_is_held),
        TEST(bridges_tell_how_they_are_there),
        TEST(retained_walks_of_both_stores_in_one_subscribe_are_apart),
        TEST(stopped_broker_tells_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
