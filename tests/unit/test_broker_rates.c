/* limits.publish_rate_max, which coming back does not get around. */
#include "broker/rates.h"
#include "mqtt_client.h"

static struct world world;

static int begin(void **state) {
    (void)state;
    return 0;
}

static int end(void **state) {
    (void)state;
    world_end(&world);
    return 0;
}

static void begin_with(uint32_t publish_rate_max) {
    world.options.limits.publish_rate_max = publish_rate_max;
    world_begin(&world);
}

static uint64_t at_limit(enum broker_at limit) {
    return counters(&world).at_limit[limit];
}

static void publish_rate_is_held_with_a_second_for_bursts(void **state) {
    (void)state;
    begin_with(10);
    for (int version = 4; version <= 5; version++) {
        struct client client;
        client_connect(&world, &client, version, version == 4 ? "a" : "b");
        client.tells_reasons = true;
        for (int i = 0; i < 10; i++)
            say_publish(&client, &(struct publish){.topic = "t", .qos = 1, .id = 1});
        for (int i = 0; i < 10; i++)
            expect(&client, "puback 1");
        pass(&world, 100); /* one more in a tenth of a second */
        say_publish(&client, &(struct publish){.topic = "t", .qos = 1, .id = 2});
        expect(&client, "puback 2");
        pass(&world, 99);
        say_publish(&client, &(struct publish){.topic = "t", .qos = 1, .id = 3});
        if (version == 5) expect(&client, "disconnect 96 1f=more publications a second than limits.publish_rate_max");
        expect_end(&client);
    }
    assert_int_equal(at_limit(BROKER_AT_PUBLISH_RATE_MAX), 2);
}

static void sustained_rate_below_the_limit_goes_on(void **state) {
    struct client client;
    (void)state;
    begin_with(1000);
    client_connect(&world, &client, 5, "a");
    for (int i = 0; i < 10000; i++) {
        say_publish(&client, &(struct publish){.topic = "t"});
        pass(&world, 1);
    }
    say_hex(&client, "c000");
    expect(&client, "pingresp");
    client_cut(&client);
}

/* ---- over connections ---- */

enum { RATE = 10 };

static void client_connect_from(struct client *client, const char *address, const char *name,
                                const struct connect *connect) {
    struct broker_origin origin = {.address = address, .certificate_name = name};

    *client = (struct client){.world = &world, .version = 5};
    client->handle = broker_client_open(world.broker, world.now, &origin);
    say_connect(client, connect);
    expect(client, "connack present=*");
}

/* How many of so many it may publish now. */
static unsigned may_publish(struct client *client, unsigned count) {
    unsigned taken = 0;

    for (; taken < count; taken++) {
        say_publish(client, &(struct publish){.topic = "t"});
        if (broker_client_ended(world.broker, client->handle)) break;
    }
    return taken;
}

static void who_comes_back_goes_on_where_it_was(void **state) {
    static const struct {
        const char *what, *properties;
        bool resume, is_cut;
    } rows[] = {
        {"clean start", NULL, false, true},
        {"a session that lasts", "11 ffffffff", true, true},
        {"a session that ends", NULL, true, true},
        {"a connection that is taken over", NULL, false, false},
    };
    (void)state;

    begin_with(RATE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct connect connect = {.id = rows[i].what, .resume = rows[i].resume, .properties = rows[i].properties};
        struct client client, again;
        client_connect_from(&client, "192.0.2.1:1000", NULL, &connect);
        assert_int_equal(may_publish(&client, RATE - 1), RATE - 1);
        if (rows[i].is_cut) client_cut(&client);
        client_connect_from(&again, "192.0.2.2:1001", NULL, &connect);
        if (may_publish(&again, 2) != 1) fail_msg("%s", rows[i].what);
        client_cut(&again);
        if (!rows[i].is_cut) client_cut(&client);
    }
}

static void who_was_closed_for_it_waits_no_longer_than_others(void **state) {
    struct client client;
    (void)state;

    begin_with(RATE);
    for (int round = 0; round < 5; round++) { /* what is refused is not counted */
        client_connect_from(&client, "192.0.2.1:1000", NULL, &(struct connect){.id = "c"});
        assert_int_equal(may_publish(&client, RATE + 1), round == 0 ? RATE : 0);
        client_cut(&client);
    }
    pass(&world, 1000);
    client_connect_from(&client, "192.0.2.1:1000", NULL, &(struct connect){.id = "c"});
    assert_int_equal(may_publish(&client, RATE + 1), RATE);
    client_cut(&client);
}

static void other_ids_are_other_clients(void **state) {
    struct client client;
    (void)state;

    begin_with(RATE);
    for (int i = 0; i < 3; i++) {
        client_connect_from(&client, "192.0.2.1:1000", NULL, &(struct connect){.id = (char[]){(char)('a' + i), 0}});
        assert_int_equal(may_publish(&client, RATE), RATE);
        client_cut(&client);
    }
}

static void who_lets_us_choose_the_id_is_known_by_certificate_or_host(void **state) {
    static const struct {
        const char *what, *address, *name;
        unsigned may;
    } rows[] = {
        {"the first", "192.0.2.1:1000", NULL, RATE},
        {"from another port", "192.0.2.1:2000", NULL, 0},
        {"from another host", "192.0.2.2:1000", NULL, RATE},
        {"one of IPv6", "[2001:db8::1]:1000", NULL, RATE},
        {"from another port", "[2001:db8::1]:1001", NULL, 0},
        {"another of IPv6", "[2001:db8::2]:1000", NULL, RATE},
        {"the socket of a file", "unix", NULL, RATE},
        {"again", "unix", NULL, 0},
        {"with a certificate", "192.0.2.1:3000", "alice", RATE},
        {"from elsewhere", "192.0.2.3:3000", "alice", 0},
        {"with another one", "192.0.2.1:3000", "bob", RATE},
    };
    (void)state;

    begin_with(RATE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        client_connect_from(&client, rows[i].address, rows[i].name, &(struct connect){.id = ""});
        if (may_publish(&client, RATE) != rows[i].may) fail_msg("%s: %s", rows[i].address, rows[i].what);
        client_cut(&client);
    }
}

static void an_assigned_id_is_kept_in_mind_too(void **state) {
    struct client client;
    char id[64] = "";
    (void)state;

    begin_with(RATE);
    client = (struct client){.world = &world, .version = 5};
    client.handle = broker_client_open(world.broker, world.now, &(struct broker_origin){.address = "192.0.2.1:1"});
    say_connect(&client, &(struct connect){.id = ""});
    client_read(&client);
    for (size_t i = 0; i + 4 < client.got_size; i++)
        if (memcmp(client.got + i, "auto", 4) == 0) snprintf(id, sizeof id, "%.20s", (const char *)client.got + i);
    assert_int_equal(strlen(id), 20);
    assert_int_equal(may_publish(&client, RATE), RATE);
    client_cut(&client);
    client_connect_from(&client, "192.0.2.9:1000", NULL, &(struct connect){.id = id});
    assert_int_equal(may_publish(&client, RATE), 0);
    client_cut(&client);
}

/* ---- the table ---- */

static void the_later_time_is_kept_and_over_in_time(void **state) {
    struct rates *rates = rates_new();
    (void)state;

    rates_keep(rates, 1000, 7, 3000);
    rates_keep(rates, 1000, 7, 2000);
    rates_keep(rates, 1000, 8, 1000); /* nothing to keep */
    assert_int_equal(rates_find(rates, 1000, 7), 3000);
    assert_int_equal(rates_find(rates, 2999, 7), 3000);
    assert_int_equal(rates_find(rates, 3000, 7), 0);
    assert_int_equal(rates_find(rates, 0, 8), 0);
    assert_int_equal(rates_find(rates, 0, 9), 0);
    rates_free(rates);
}

static void a_crowd_does_not_push_out_who_has_used_more(void **state) {
    struct rates *rates = rates_new();
    uint64_t found = 0;
    (void)state;

    rates_keep(rates, 0, 12345, 1000000);
    for (uint64_t key = 1; key <= 1000000; key++)
        if (key != 12345) rates_keep(rates, 0, key, 1000 + key % 1000);
    assert_int_equal(rates_find(rates, 0, 12345), 1000000);
    for (uint64_t key = 1; key <= 1000000; key++)
        found += rates_find(rates, 0, key) != 0;
    assert_in_range(found, 8000, 10000); /* and no more are kept */
    rates_free(rates);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(publish_rate_is_held_with_a_second_for_bursts),
        TEST(sustained_rate_below_the_limit_goes_on),
        TEST(who_comes_back_goes_on_where_it_was),
        TEST(who_was_closed_for_it_waits_no_longer_than_others),
        TEST(other_ids_are_other_clients),
        TEST(who_lets_us_choose_the_id_is_known_by_certificate_or_host),
        TEST(an_assigned_id_is_kept_in_mind_too),
        cmocka_unit_test(the_later_time_is_kept_and_over_in_time),
        cmocka_unit_test(a_crowd_does_not_push_out_who_has_used_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
