#include "two_clients.h"

static const struct connect resume_311 = {.id = "b", .resume = true};
static const struct connect resume_5 = {.id = "b", .resume = true, .properties = "11 00000064"}; /* expiry 100 s */

static void b_connects(int version, const struct connect *connect, bool present) {
    client_open(&world, &b, version);
    say_connect(&b, connect);
    expect(&b, present ? "connack present=1 00*" : "connack present=0 00*");
}

static void publish_1(const char *payload) {
    say_publish(&a, &(struct publish){.topic = "t", .payload = payload, .qos = 1, .id = 1});
    expect(&a, "puback 1");
}

static void session_keeps_subscriptions_and_queues_what_was_missed(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        const struct connect *connect = version == 4 ? &resume_311 : &resume_5;
        b_connects(version, connect, false);
        client_subscribe(&b, "t", 1);
        client_cut(&b);
        publish_1("1");
        say_publish(&a, &(struct publish){.topic = "t", .payload = "zero"});
        publish_1("2");
        b_connects(version, connect, true);
        expect(&b, "publish q1 id=1 t '1'");
        expect(&b, "publish q1 id=2 t '2'");
        expect_nothing(&b);
        say_disconnect(&b);
        expect_end(&b);
        /* Clean start ends it. */
        client_connect(&world, &b, version, "b");
        publish_1("3");
        expect_nothing(&b);
        client_cut(&b);
        assert_int_equal(counters(&world).sessions, 1);
        assert_int_equal(counters(&world).subscriptions, 0);
    }
}

static void clean_session_is_not_kept(void **state) {
    (void)state;
    client_connect(&world, &b, 4, "b");
    client_subscribe(&b, "t", 1);
    client_cut(&b);
    assert_int_equal(counters(&world).sessions, 1);
    assert_int_equal(counters(&world).subscriptions, 0);
    b_connects(4, &resume_311, false);
}

static void unacknowledged_is_sent_again_with_dup_in_order(void **state) {
    (void)state;
    b_connects(5, &resume_5, false);
    client_subscribe(&b, "t", 2);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "1", .qos = 2, .id = 1});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "2", .qos = 1, .id = 2});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "3", .qos = 2, .id = 3});
    expect(&b, "publish q2 id=1 t '1'");
    expect(&b, "publish q1 id=2 t '2'");
    expect(&b, "publish q2 id=3 t '3'");
    say_ack(&b, 5, 1);
    expect(&b, "pubrel 1");
    client_cut(&b);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "4", .qos = 1, .id = 4});
    b_connects(5, &resume_5, true);
    expect(&b, "pubrel 1");
    expect(&b, "publish dup q1 id=2 t '2'");
    expect(&b, "publish dup q2 id=3 t '3'");
    expect(&b, "publish q1 id=4 t '4'");
    say_ack(&b, 7, 1);
    say_ack(&b, 4, 2);
    say_ack(&b, 5, 3);
    expect(&b, "pubrel 3");
    say_ack(&b, 7, 3);
    say_ack(&b, 4, 4);
    client_cut(&b);
    b_connects(5, &resume_5, true);
    expect_nothing(&b);
}

static void redelivery_keeps_to_a_smaller_receive_maximum(void **state) {
    (void)state;
    b_connects(5, &resume_5, false);
    client_subscribe(&b, "t", 1);
    publish_1("1");
    publish_1("2");
    publish_1("3");
    for (int i = 0; i < 3; i++)
        expect(&b, "publish q1 *");
    client_cut(&b);
    b_connects(5, &(struct connect){.id = "b", .resume = true, .properties = "11 00000064 21 0001"}, true);
    expect(&b, "publish dup q1 id=1 t '1'");
    expect_nothing(&b);
    /* An acknowledgement of the earlier connection's packet counts too. */
    say_ack(&b, 4, 2);
    expect_nothing(&b);
    say_ack(&b, 4, 1);
    expect(&b, "publish dup q1 id=3 t '3'");
    publish_1("4");
    expect_nothing(&b);
    say_ack(&b, 4, 3);
    expect(&b, "publish q1 id=4 t '4'");
}

static void pubrec_before_redelivery_is_answered_once_its_turn_comes(void **state) {
    (void)state;
    b_connects(5, &resume_5, false);
    client_subscribe(&b, "t", 2);
    for (unsigned id = 1; id <= 2; id++) {
        say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 2, .id = id});
        expect(&b, "publish q2 *");
    }
    client_cut(&b);
    b_connects(5, &(struct connect){.id = "b", .resume = true, .properties = "11 00000064 21 0001"}, true);
    expect(&b, "publish dup q2 id=1 t 'x'");
    say_ack(&b, 5, 2);
    expect_nothing(&b);
    say_ack(&b, 5, 1);
    expect(&b, "pubrel 1");
    say_ack(&b, 7, 1);
    expect(&b, "pubrel 2");
    say_ack(&b, 7, 2);
    expect_nothing(&b);
}

static void qos2_ids_are_remembered_across_connections(void **state) {
    (void)state;
    client_subscribe(&a, "t", 0);
    b_connects(4, &resume_311, false);
    say_publish(&b, &(struct publish){.topic = "t", .payload = "x", .qos = 2, .id = 7});
    expect(&b, "pubrec 7");
    expect(&a, "publish q0 t 'x'");
    client_cut(&b);
    b_connects(4, &resume_311, true);
    say_publish(&b, &(struct publish){.topic = "t", .payload = "x", .qos = 2, .id = 7, .dup = true});
    expect(&b, "pubrec 7");
    expect_nothing(&a);
    say_ack(&b, 6, 7);
    expect(&b, "pubcomp 7");
}

static void v311_client_may_leave_many_qos2_publications_open(void **state) {
    (void)state;
    b_connects(4, &resume_311, false);
    for (unsigned id = 300; id > 0; id--) {
        say_publish(&b, &(struct publish){.topic = "t", .qos = 2, .id = id});
        expect(&b, "pubrec *");
    }
    for (unsigned id = 1; id <= 300; id++) {
        char expected[32];
        say_ack(&b, 6, id);
        snprintf(expected, sizeof expected, "pubcomp %u", id);
        expect(&b, expected);
    }
}

static void session_expires_when_its_time_is_over(void **state) {
    (void)state;
    b_connects(5, &resume_5, false);
    client_subscribe(&b, "t", 1);
    client_cut(&b);
    pass(&world, 99999);
    assert_int_equal(counters(&world).sessions, 2);
    b_connects(5, &resume_5, true);
    pass(&world, 200000);
    client_cut(&b);
    pass(&world, 100000);
    assert_int_equal(counters(&world).sessions, 1);
    assert_int_equal(counters(&world).subscriptions, 0);
    b_connects(5, &resume_5, false);
}

static void session_expiry_is_capped_and_the_cap_is_told(void **state) {
    (void)state;
    client_cut(&a);
    world_end(&world);
    world.options.limits.session_expiry_max_s = 50;
    world_begin(&world);
    client_open(&world, &b, 5);
    say_connect(&b, &(struct connect){.id = "b", .properties = "11 ffffffff"});
    expect(&b, "connack present=0 00 11=50 *");
    client_cut(&b);
    client_open(&world, &b, 4);
    say_connect(&b, &resume_311);
    expect(&b, "connack present=1 00");
    client_cut(&b);
    pass(&world, 49999);
    assert_int_equal(counters(&world).sessions, 1);
    pass(&world, 1);
    assert_int_equal(counters(&world).sessions, 0);
    client_open(&world, &b, 5);
    say_connect(&b, &(struct connect){.id = "b", .properties = "11 0000000a"});
    expect(&b, "connack present=0 00 21=*"); /* as asked for, so nothing is said of it */
    say_hex(&b, "e0 07 00 05 11 ffffffff");
    expect_end(&b);
    pass(&world, 49999);
    assert_int_equal(counters(&world).sessions, 1);
    pass(&world, 1);
    assert_int_equal(counters(&world).sessions, 0);
}

static void session_can_live_for_ever(void **state) {
    (void)state;
    client_cut(&a);
    world_end(&world);
    world.options.limits.session_expiry_max_s = UINT32_MAX;
    world_begin(&world);
    client_open(&world, &b, 5);
    say_connect(&b, &(struct connect){.id = "b", .properties = "11 ffffffff"});
    expect(&b, "connack present=0 00 21=*");
    client_cut(&b);
    assert_true(broker_deadline_ms(world.broker) == UINT64_MAX);
    pass(&world, UINT32_MAX * 2000ull);
    assert_int_equal(counters(&world).sessions, 1);
}

static void disconnect_changes_the_expiry(void **state) {
    (void)state;
    b_connects(5, &resume_5, false);
    say_hex(&b, "e0 07 00 05 11 00000005");
    expect_end(&b);
    pass(&world, 4999);
    assert_int_equal(counters(&world).sessions, 2);
    pass(&world, 1);
    assert_int_equal(counters(&world).sessions, 1);
    /* Not from zero: there is nothing to keep. */
    client_connect(&world, &b, 5, "b");
    say_hex(&b, "e0 07 00 05 11 00000005");
    expect(&b, "disconnect 82");
    expect_end(&b);
    /* To zero: at once. */
    b_connects(5, &resume_5, false);
    say_hex(&b, "e0 07 00 05 11 00000000");
    expect_end(&b);
    assert_int_equal(counters(&world).sessions, 1);
}

static void faulty_disconnects(void **state) {
    static const struct {
        const char *hex, *answer;
    } rows[] = {
        {"e1 00", "disconnect 81"},
        {"e0 01 8e", "disconnect 82"},
        {"e0 04 00 02 0b 01", "disconnect 81"},
        {"e0 03 00 00 00", "disconnect 81"},
        {"e0 0c 00 0a 11 00000005 11 00000005", "disconnect 82"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        client_connect(&world, &b, 5, "b");
        say_hex(&b, rows[i].hex);
        expect(&b, rows[i].answer);
        expect_end(&b);
    }
}

static void takeover_ends_the_old_connection_and_keeps_the_session(void **state) {
    struct client old;
    (void)state;

    b_connects(5, &resume_5, false);
    client_subscribe(&b, "t", 1);
    publish_1("1");
    expect(&b, "publish q1 id=1 t '1'");
    old = b;
    b_connects(5, &resume_5, true);
    expect(&b, "publish dup q1 id=1 t '1'");
    expect(&old, "disconnect 8e");
    expect_end(&old);
    assert_int_equal(counters(&world).takeovers, 1);
    assert_int_equal(counters(&world).clients_connected, 2);
    publish_1("2");
    expect(&b, "publish q1 id=2 t '2'");
}

static void takeover_of_a_session_without_expiry_starts_anew(void **state) {
    struct client old;
    (void)state;

    client_connect(&world, &b, 4, "b");
    client_subscribe(&b, "t", 1);
    old = b;
    b_connects(4, &resume_311, false);
    expect_end(&old);
    publish_1("1");
    expect_nothing(&b);
}

static void late_words_of_a_client_taken_over_are_not_heard(void **state) {
    struct client old;
    (void)state;

    b_connects(5, &resume_5, false);
    old = b;
    b_connects(5, &resume_5, true);
    client_subscribe(&a, "t", 0);
    say_publish(&old, &(struct publish){.topic = "t", .payload = "late"});
    expect_nothing(&a);
    expect(&old, "disconnect 8e");
    expect_end(&old);
}

static void queue_is_bounded_by_messages_and_by_bytes(void **state) {
    static const struct broker_limits limits[] = {{.queue_messages_max = 3}, {.queue_bytes_max = 1000}};
    (void)state;

    for (size_t i = 0; i < 2; i++) {
        client_cut(&a);
        world_end(&world);
        world.options.limits = limits[i];
        world_begin(&world);
        client_connect(&world, &a, 5, "a");
        b_connects(5, &resume_5, false);
        client_subscribe(&b, "t", 1);
        client_cut(&b);
        for (int n = 0; n < 10; n++)
            publish_1("0123456789");
        assert_in_range(counters(&world).dropped_queue_full, 3, 9);
        assert_in_range(counters(&world).queued_bytes, 100, 10000);
        assert_int_equal(counters(&world).queued_messages + counters(&world).dropped_queue_full, 10);
        b_connects(5, &resume_5, true);
        for (uint64_t n = counters(&world).dropped_queue_full; n < 10; n++)
            expect(&b, "publish q1 *");
        expect_nothing(&b);
        assert_int_equal(counters(&world).queued_bytes + counters(&world).queued_messages, 0);
        client_cut(&b);
    }
}

static void absent(const char *id, const char *filter, unsigned qos) {
    struct client client;

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = id, .resume = true, .properties = "11 00 00 00 64"});
    expect(&client, "connack *");
    client_subscribe(&client, filter, qos);
    client_cut(&client);
}

static void publish_kilobytes(const char *topic, unsigned count) {
    char payload[1001];

    memset(payload, 'x', 1000);
    payload[1000] = '\0';
    for (unsigned n = 0; n < count; n++) {
        say_publish(&a, &(struct publish){.topic = topic, .payload = payload, .qos = 1, .id = 1});
        expect(&a, "puback 1");
    }
}

/* Of 1,000,000 bytes half is for all, and of the other half each of at most 50 sessions has 10,000. */
static void queues_of_all_sessions_are_bounded_together_and_each_has_its_part(void **state) {
    struct client live;
    char id[16];
    (void)state;

    client_cut(&a);
    world_end(&world);
    world.options.limits = (struct broker_limits){.queues_bytes_max = 1000000, .sessions_max = 50};
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    for (unsigned n = 0; n < 20; n++) { /* a publication for all of them is held once */
        snprintf(id, sizeof id, "shares-%u", n);
        absent(id, "shared", 1);
    }
    publish_kilobytes("shared", 100);
    assert_int_equal(counters(&world).dropped_queue_full, 0);
    assert_true(counters(&world).queued_bytes > 2000000);
    assert_in_range(counters(&world).held_bytes, 100000, 499999);
    absent("greedy", "greedy", 1);
    publish_kilobytes("greedy", 600);
    assert_in_range(counters(&world).held_bytes, 490000, 500000);
    assert_int_equal(counters(&world).at_limit[BROKER_AT_QUEUES_BYTES_MAX], counters(&world).dropped_queue_full);
    absent("modest", "modest", 2);
    publish_kilobytes("modest", 20);
    client_open(&world, &b, 5);
    say_connect(&b, &(struct connect){.id = "modest", .resume = true});
    expect(&b, "connack *");
    for (unsigned n = 0; n < 8; n++)
        expect(&b, "publish q1 *");
    client_cut(&b);
    client_connect(&world, &live, 5, "live"); /* who is there does not notice */
    client_subscribe(&live, "live", 1);
    for (unsigned n = 1; n < 20; n++) {
        publish_kilobytes("live", 1);
        expect(&live, "publish q1 *");
    }
    pass(&world, 200000);
    client_cut(&live);
    assert_int_equal(counters(&world).sessions, 1);
    assert_int_equal(counters(&world).held_bytes, 0);
}

static void what_is_in_flight_is_held_until_it_is_acknowledged(void **state) {
    uint64_t held;
    (void)state;

    b_connects(5, &resume_5, false);
    client_subscribe(&b, "t", 2);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "0123456789", .qos = 2, .id = 1});
    expect(&a, "pubrec 1");
    expect(&b, "publish q2 *");
    held = counters(&world).held_bytes;
    assert_true(held > 10);
    say_ack(&b, 5, 1); /* PUBREC */
    expect(&b, "pubrel 1");
    assert_in_range(counters(&world).held_bytes, 1, held - 10);
    say_ack(&b, 7, 1); /* PUBCOMP */
    assert_int_equal(counters(&world).held_bytes, 0);
    client_cut(&b);
}

static void subscription_identifiers_count_in_the_queue(void **state) {
    (void)state;

    client_cut(&a);
    world_end(&world);
    world.options.limits = (struct broker_limits){.queue_bytes_max = 100000};
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    b_connects(5, &resume_5, false);
    for (unsigned n = 0; n < 500; n++) {
        /* 500 filters that all match t/t/t/t/t/t/t/t/t, each with an identifier. */
        char filter[18], properties[16];
        for (unsigned level = 0; level < 9; level++) {
            filter[2 * level] = n >> level & 1 ? '+' : 't';
            filter[2 * level + 1] = level < 8 ? '/' : '\0';
        }
        snprintf(properties, sizeof properties, "0b %02x%02x", (n + 128) % 128 | 128, (n + 128) / 128);
        say_subscribe_with(&b, 1, filter, 1, properties);
        expect(&b, "suback 1 01");
    }
    client_cut(&b);
    for (int n = 0; n < 100; n++) {
        say_publish(&a, &(struct publish){.topic = "t/t/t/t/t/t/t/t/t", .qos = 1, .id = 1});
        expect(&a, "puback 1");
    }
    assert_in_range(counters(&world).dropped_queue_full, 50, 99);
}

static void retained_on_reconnect_only_by_a_new_subscription(void **state) {
    (void)state;
    b_connects(5, &resume_5, false);
    client_subscribe(&b, "t", 0);
    client_cut(&b);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .retain = true});
    b_connects(5, &resume_5, true);
    expect_nothing(&b);
}

static void idle_sessions_leave_no_work(void **state) {
    (void)state;
    assert_true(broker_deadline_ms(world.broker) == UINT64_MAX);
    b_connects(5, &resume_5, false);
    client_cut(&b);
    assert_int_equal(broker_deadline_ms(world.broker), world.now + 100000);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_a, end)
    const struct CMUnitTest tests[] = {
        TEST(session_keeps_subscriptions_and_queues_what_was_missed),
        TEST(clean_session_is_not_kept),
        TEST(unacknowledged_is_sent_again_with_dup_in_order),
        TEST(redelivery_keeps_to_a_smaller_receive_maximum),
        TEST(pubrec_before_redelivery_is_answered_once_its_turn_comes),
        TEST(qos2_ids_are_remembered_across_connections),
        TEST(v311_client_may_leave_many_qos2_publications_open),
        TEST(session_expires_when_its_time_is_over),
        TEST(session_expiry_is_capped_and_the_cap_is_told),
        TEST(session_can_live_for_ever),
        TEST(disconnect_changes_the_expiry),
        TEST(faulty_disconnects),
        TEST(takeover_ends_the_old_connection_and_keeps_the_session),
        TEST(takeover_of_a_session_without_expiry_starts_anew),
        TEST(late_words_of_a_client_taken_over_are_not_heard),
        TEST(queue_is_bounded_by_messages_and_by_bytes),
        TEST(queues_of_all_sessions_are_bounded_together_and_each_has_its_part),
        TEST(what_is_in_flight_is_held_until_it_is_acknowledged),
        TEST(subscription_identifiers_count_in_the_queue),
        TEST(retained_on_reconnect_only_by_a_new_subscription),
        TEST(idle_sessions_leave_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
