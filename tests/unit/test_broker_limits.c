/* What happens at each named limit: the protocol's answer, the counter, the line for the log, and that nobody else is
 * harmed. */
#include "limits_fixture.h"

static void every_limit_has_a_name(void **state) {
    (void)state;
    for (int i = 0; i < BROKER_AT_COUNT; i++)
        assert_non_null(broker_limit_name((enum broker_at)i));
}

/* ---- connections ---- */

static void the_longest_silent_makes_room_for_one_more(void **state) {
    struct client silent[3], speaker;
    (void)state;

    world.options.limits.connecting_max = 3;
    again();
    client_connect(&world, &speaker, 4, "speaker");
    broker_handle longest = 1;
    assert_int_equal(broker_clients_connecting(world.broker, &longest), 0);
    assert_int_equal(longest, 0);
    for (int i = 0; i < 3; i++)
        client_open(&world, &silent[i], 5);
    assert_int_equal(broker_clients_connecting(world.broker, &longest), 3);
    assert_int_equal(longest, silent[0].handle);
    say_connect(&silent[0], &(struct connect){.id = "first"}); /* the oldest is no longer silent */
    expect(&silent[0], "connack present=0 00*");
    assert_int_equal(broker_clients_connecting(world.broker, &longest), 2);
    assert_int_equal(longest, silent[1].handle);
    for (int i = 0; i < 2; i++) {
        struct client more;
        client_open(&world, &more, 5);
        client_forget(&more);
    }
    expect_end(&silent[1]);
    client_read(&silent[2]);
    assert_false(broker_client_ended(world.broker, silent[2].handle));
    assert_int_equal(at_limit(BROKER_AT_CONNECTING_MAX), 1);
    expect_note("limits.connecting_max is reached: connection from 127.0.0.1:4711 closed, without CONNECT for the "
                "longest time");
    say_hex(&speaker, "c000");
    expect(&speaker, "pingresp");
    client_cut(&speaker);
    client_cut(&silent[0]);
    client_cut(&silent[2]);
}

static void ten_thousand_silent_connections_keep_nobody_out(void **state) {
    struct client client;
    (void)state;

    for (int i = 0; i < 10100; i++) {
        client_open(&world, &client, 5);
        client_forget(&client);
    }
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a"});
    expect(&client, "connack present=0 00*");
    assert_int_equal(at_limit(BROKER_AT_CONNECTING_MAX), 101);
    client_cut(&client);
}

static void no_connect_in_time_is_counted(void **state) {
    struct client client;
    (void)state;

    world.options.limits.connect_timeout_ms = 100;
    again();
    client_open(&world, &client, 5);
    pass(&world, 100);
    expect_end(&client);
    assert_int_equal(at_limit(BROKER_AT_CONNECT_TIMEOUT_MS), 1);
}

/* ---- lines for the log ---- */

static void a_limit_speaks_once_in_ten_seconds_and_then_says_how_often(void **state) {
    struct client client;
    struct broker_note note;
    (void)state;

    world.options.limits.clients_max = 1;
    again();
    client_connect(&world, &client, 4, "a");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(broker_client_open(world.broker, world.now, &(struct broker_origin){.address = "far:1"}), 0);
        pass(&world, 1000);
    }
    expect_note("limits.clients_max is reached: connection from far:1 refused");
    assert_false(broker_next_note(world.broker, &note));
    pass(&world, 4999);
    assert_false(broker_next_note(world.broker, &note));
    pass(&world, 1);
    expect_note("limits.clients_max is reached: 4 more times in the last 10 s");
    assert_int_equal(at_limit(BROKER_AT_CLIENTS_MAX), 5);
    pass(&world, 100000);
    assert_false(broker_next_note(world.broker, &note));
    assert_int_equal(broker_client_open(world.broker, world.now, &(struct broker_origin){.address = "far:2"}), 0);
    expect_note("limits.clients_max is reached: connection from far:2 refused");
    client_cut(&client);
}

/* ---- packets that do not arrive whole ---- */

static void say_piece(struct client *client, size_t size) {
    uint8_t *piece = calloc(1, size);

    broker_client_input(world.broker, world.now, client->handle, piece, size);
    free(piece);
}

static void announced_size_costs_nothing(void **state) {
    struct client victim, honest;
    (void)state;

    world.options.limits.partial_bytes_max = 100000;
    world.options.limits.packet_size_max = 100000;
    again();
    client_connect(&world, &honest, 5, "honest");
    say_hex(&honest, "30 80 40 00 01 74"); /* 8 KiB announced */
    for (int i = 0; i < 500; i++) {
        client_connect(&world, &victim, 5, "");
        say_hex(&victim, "30 a0 8d 06 00 01 74"); /* 100,000 bytes announced */
        client_forget(&victim);
    }
    assert_int_equal(at_limit(BROKER_AT_PARTIAL_BYTES_MAX), 0);
    client_cut(&honest);
}

static void the_longest_on_its_way_makes_room_for_others(void **state) {
    struct client slow, fast, idle;
    (void)state;

    world.options.limits.partial_bytes_max = 60000;
    world.options.limits.packet_size_max = 50000;
    again();
    client_connect(&world, &slow, 5, "slow");
    client_connect(&world, &idle, 5, "idle");
    client_connect(&world, &fast, 5, "fast");
    client_subscribe(&idle, "t", 0);
    slow.tells_reasons = true;
    say_hex(&idle, "c0");                      /* something small is nobody's trouble */
    say_hex(&slow, "30 c0 b8 02 00 01 74 00"); /* 40,000 bytes announced */
    say_piece(&slow, 30000);
    say_hex(&fast, "30 b0 ea 01 00 01 74 00"); /* 30,000 bytes */
    say_piece(&fast, 29000);
    expect_nothing(&slow);
    say_piece(&fast, 996);
    say_hex(&idle, "00");
    expect(&idle, "publish q0 t '*");
    expect(&idle, "pingresp");
    say_hex(&fast, "30 c0 b8 02 00 01 74 00");
    say_piece(&fast, 35000);
    expect(&slow, "disconnect 97 1f=the broker's room for packets that have not arrived whole is used up");
    expect_end(&slow);
    say_piece(&fast, 4996);
    expect(&idle, "publish q0 t '*");
    assert_int_equal(at_limit(BROKER_AT_PARTIAL_BYTES_MAX), 1);
    client_cut(&fast);
    client_cut(&idle);
}

/* 10,000 clients that send all but the last byte: what they hold together is bounded. */
static void partial_packets_of_a_crowd_are_bounded_together(void **state) {
    enum { CROWD = 200 };
    struct client crowd[CROWD], honest;
    int left = 0;
    (void)state;

    world.options.limits.partial_bytes_max = 1000000;
    world.options.limits.packet_size_max = 100000;
    again();
    for (int i = 0; i < CROWD; i++) {
        client_connect(&world, &crowd[i], 4, "");
        say_hex(&crowd[i], "30 9c 8d 06 00 01 74");
        say_piece(&crowd[i], 99000);
    }
    for (int i = 0; i < CROWD; i++) {
        client_read(&crowd[i]);
        left += !broker_client_ended(world.broker, crowd[i].handle);
        client_forget(&crowd[i]);
    }
    assert_int_equal(left, 10);
    assert_int_equal(at_limit(BROKER_AT_PARTIAL_BYTES_MAX), CROWD - 10);
    client_connect(&world, &honest, 4, "honest");
    say_hex(&honest, "30 9c 8d 06 00 01 74");
    say_piece(&honest, 99993);
    say_hex(&honest, "c000");
    expect(&honest, "pingresp");
    client_cut(&honest);
}

static void packet_size_is_refused_as_soon_as_it_is_announced(void **state) {
    struct client client;
    (void)state;

    world.options.limits.packet_size_max = 1000;
    again();
    client_connect(&world, &client, 5, "a");
    say_hex(&client, "30 e6 07");
    expect(&client, "disconnect 95");
    expect_end(&client);
    client_connect(&world, &client, 4, "a");
    say_hex(&client, "30 e6 07");
    expect_end(&client);
    client_connect(&world, &client, 4, "a");
    say_hex(&client, "30 e5 07"); /* 1,000 with its header */
    expect_nothing(&client);
    assert_false(broker_client_ended(world.broker, client.handle));
    assert_int_equal(at_limit(BROKER_AT_PACKET_SIZE_MAX), 2);
    client_cut(&client);
}

/* ---- memory in total ---- */

static void short_of_memory_nothing_that_lasts_is_taken(void **state) {
    struct client old, v4, v5;
    (void)state;

    client_connect_with(&world, &old, 5, &(struct connect){.id = "old", .properties = "11 00000064"});
    client_connect(&world, &v4, 4, "v4");
    client_connect(&world, &v5, 5, "v5");
    client_subscribe(&v4, "t", 1);
    client_cut(&old);
    broker_set_memory_short(world.broker, world.now, true);

    client_open(&world, &old, 5);
    say_connect(&old, &(struct connect){.id = "new"});
    expect(&old, "connack present=0 97");
    expect_end(&old);
    client_open(&world, &old, 4);
    say_connect(&old, &(struct connect){.id = "new"});
    expect(&old, "connack present=0 03");
    expect_end(&old);
    /* One that has its session comes back. */
    client_connect_with(&world, &old, 5, &(struct connect){.id = "old", .resume = true});
    say_subscribe(&old, 1, "t", 0);
    expect(&old, "suback 1 97");
    say_publish(&old, &(struct publish){.topic = "t", .qos = 1, .id = 1});
    expect(&old, "puback 1 97");
    say_publish(&old, &(struct publish){.topic = "t", .qos = 2, .id = 2});
    expect(&old, "pubrec 2 97");
    say_publish(&old, &(struct publish){.topic = "t"});
    expect_nothing(&v4);
    say_publish(&old, &(struct publish){.topic = "d", .retain = true, .qos = 1, .id = 1}); /* makes room */
    expect(&old, "puback 1");
    say_subscribe(&v4, 1, "u", 0);
    expect(&v4, "suback 1 80");
    say_subscribe(&v4, 1, "t", 0); /* it has that one */
    expect(&v4, "suback 1 00");
    say_publish(&v4, &(struct publish){.topic = "t", .qos = 1, .id = 1});
    expect_end(&v4);
    assert_int_equal(at_limit(BROKER_AT_MEMORY_BYTES_MAX), 2 + 1 + 3 + 1 + 1);

    broker_set_memory_short(world.broker, world.now, false);
    client_subscribe(&v5, "t", 1);
    say_publish(&old, &(struct publish){.topic = "t", .qos = 1, .id = 1});
    expect(&old, "puback 1");
    expect(&v5, "publish q1 id=1 t ''");
    client_cut(&old);
    client_cut(&v5);
}

static void short_of_memory_large_packets_on_their_way_are_given_up(void **state) {
    struct client slow;
    (void)state;

    world.options.limits.partial_bytes_max = 100000;
    world.options.limits.packet_size_max = 100000;
    again();
    client_connect(&world, &slow, 5, "slow");
    say_hex(&slow, "30 9c 8d 06 00 01 74");
    say_piece(&slow, 50000);
    broker_set_memory_short(world.broker, world.now, true);
    expect(&slow, "disconnect 97");
    expect_end(&slow);
}

/* ---- what is dropped for one client only ---- */

static void packet_larger_than_the_client_takes_is_dropped_for_it_alone(void **state) {
    struct client small, large;
    (void)state;

    client_connect_with(&world, &small, 5, &(struct connect){.id = "small", .properties = "27 00000064"});
    client_connect(&world, &large, 5, "large");
    client_subscribe(&small, "t", 1);
    client_subscribe(&large, "t", 1);
    for (unsigned qos = 0; qos < 2; qos++) {
        char payload[101];
        memset(payload, 'p', 100);
        payload[100] = '\0';
        say_publish(&large, &(struct publish){.topic = "t", .payload = payload, .qos = qos, .id = 1});
        expect(&large, qos == 0 ? "publish q0 t '*" : "publish q1 id=1 t '*");
        if (qos == 1) expect(&large, "puback 1");
    }
    say_publish(&large, &(struct publish){.topic = "t", .payload = "x"});
    expect(&small, "publish q0 t 'x'");
    assert_int_equal(counters(&world).dropped_too_large, 2);
    client_cut(&small);
    client_cut(&large);
}

static void expired_in_the_queue_is_counted(void **state) {
    struct client client, other;
    (void)state;

    client_connect_with(&world, &client, 5, &(struct connect){.id = "a", .properties = "11 00000064"});
    client_subscribe(&client, "t", 1);
    client_cut(&client);
    client_connect(&world, &other, 5, "b");
    say_publish(&other, &(struct publish){.topic = "t", .qos = 1, .id = 1, .properties = "02 00000005"});
    expect(&other, "puback 1");
    pass(&world, 5001);
    client_connect_with(&world, &client, 5, &(struct connect){.id = "a", .resume = true});
    expect_nothing(&client);
    assert_int_equal(counters(&world).dropped_expired, 1);
    client_cut(&client);
    client_cut(&other);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(every_limit_has_a_name),
        TEST(the_longest_silent_makes_room_for_one_more),
        TEST(ten_thousand_silent_connections_keep_nobody_out),
        TEST(no_connect_in_time_is_counted),
        TEST(a_limit_speaks_once_in_ten_seconds_and_then_says_how_often),
        TEST(announced_size_costs_nothing),
        TEST(the_longest_on_its_way_makes_room_for_others),
        TEST(partial_packets_of_a_crowd_are_bounded_together),
        TEST(packet_size_is_refused_as_soon_as_it_is_announced),
        TEST(short_of_memory_nothing_that_lasts_is_taken),
        TEST(short_of_memory_large_packets_on_their_way_are_given_up),
        TEST(packet_larger_than_the_client_takes_is_dropped_for_it_alone),
        TEST(expired_in_the_queue_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
