/* Shared subscriptions (MQTT 5.0 section 4.8.2): who is a member, and which of them a publication goes to. */
#include "broker/federation.h"
#include "share_fixture.h"

/* ---- who is in ---- */

static void each_publication_goes_to_one_member_in_turn(void **state) {
    (void)state;
    for (unsigned qos = 0; qos <= 2; qos++) {
        member(&a, "a", false, "$share/g/t/+", qos);
        member(&b, "b", false, "$share/g/t/+", qos);
        client_connect(&world, &c, 4, "c"); /* 3.1.1 clients too */
        client_subscribe(&c, "$share/g/t/+", qos);
        publish_numbers(qos, "t/1", 1, 6);
        for (unsigned round = 0; round < 2; round++) {
            char expected[3][32];
            for (unsigned n = 0; n < 3; n++) {
                char id[8] = "";
                if (qos > 0) snprintf(id, sizeof id, " id=%u", round + 1);
                snprintf(expected[n], sizeof expected[n], "publish q%u%s t/1 '%u'", qos, id, round * 3 + n + 1);
            }
            expect(&a, expected[0]);
            expect(&b, expected[1]);
            expect(&c, expected[2]);
        }
        expect_nothing(&a);
        expect_nothing(&b);
        expect_nothing(&c);
        client_cut(&a), client_cut(&b), client_cut(&c);
    }
}

/* MQTT-4.8.2-3. */
static void each_member_gets_the_qos_that_it_was_granted(void **state) {
    (void)state;
    for (unsigned qos = 0; qos <= 2; qos++) {
        struct client *const members[] = {&a, &b, &c};
        for (unsigned granted = 0; granted <= 2; granted++)
            member(members[granted], granted == 0 ? "a" : granted == 1 ? "b" : "c", false, "$share/g/t", granted);
        publish_numbers(qos, "t", 1, 3);
        for (unsigned granted = 0; granted <= 2; granted++) {
            char got[64];
            next_packet(members[granted], got, sizeof got);
            assert_memory_equal(got, "publish q", 9);
            assert_int_equal(got[9] - '0', qos < granted ? qos : granted);
            expect_nothing(members[granted]);
        }
        client_cut(&a), client_cut(&b), client_cut(&c);
    }
}

static void each_group_gets_its_copy_beside_ordinary_subscriptions(void **state) {
    (void)state;
    client_connect(&world, &a, 5, "a");
    say_subscribe_with(&a, 1, "$share/g/t", 1, "0b 01");
    say_subscribe_with(&a, 2, "$share/h/t", 0, "0b 02");
    say_subscribe_with(&a, 3, "$share/g/#", 2, "0b 03"); /* another filter is another group */
    say_subscribe_with(&a, 4, "t", 1, "0b 04");
    say_subscribe_with(&a, 5, "+", 2, "0b 05");
    for (unsigned n = 1; n <= 5; n++)
        expect(&a, "suback *");
    publish(1, "t", "x");
    {
        unsigned copies = 0, seen = 0;
        char packet[64];
        while (*next_packet(&a, packet, sizeof packet) != '\0') {
            copies++;
            seen |= strstr(packet, "0b=5 0b=4") || strstr(packet, "0b=4 0b=5") ? 1u : 0;
            seen |= strstr(packet, "q1") && strstr(packet, " t 0b=1 'x'") ? 2u : 0;
            seen |= strcmp(packet, "publish q0 t 0b=2 'x'") == 0 ? 4u : 0;
            seen |= strstr(packet, "q1") && strstr(packet, " t 0b=3 'x'") ? 8u : 0;
        }
        assert_int_equal(copies, 4);
        assert_int_equal(seen, 15);
    }
}

static void subscribing_again_replaces_the_options(void **state) {
    (void)state;
    client_connect(&world, &a, 5, "a");
    say_subscribe_with(&a, 1, "$share/g/t", 1, "0b 01");
    say_subscribe_with(&a, 2, "$share/g/t", 8, "0b 02"); /* QoS 0, retain as published */
    expect(&a, "suback 1 01");
    expect(&a, "suback 2 00");
    assert_int_equal(counters(&world).subscriptions, 1);
    say_publish(&publisher, &(struct publish){.topic = "t", .payload = "x", .qos = 1, .id = 1, .retain = true});
    expect(&a, "publish retain q0 t 0b=2 'x'");
    expect_nothing(&a);
}

static void unsubscribed_member_gets_nothing_more(void **state) {
    (void)state;
    member(&a, "a", false, "$share/g/t", 0);
    member(&b, "b", false, "$share/g/t", 0);
    say_unsubscribe(&a, 1, "$share/g/t");
    expect(&a, "unsuback 1 00");
    say_unsubscribe(&a, 2, "$share/g/t");
    expect(&a, "unsuback 2 11");
    say_unsubscribe(&b, 3, "$share/h/t");
    expect(&b, "unsuback 3 11");
    say_unsubscribe(&b, 4, "t");
    expect(&b, "unsuback 4 11");
    publish_numbers(0, "t", 1, 2);
    expect(&b, "publish q0 t '1'");
    expect(&b, "publish q0 t '2'");
    expect_nothing(&a);
    client_cut(&b);
    publish(0, "t", "3");
    assert_int_equal(counters(&world).subscriptions, 0);
    assert_int_equal(counters(&world).shared_subscriptions, 0);
    client_subscribe(&a, "$share/g/t", 0);
    publish(0, "t", "4");
    expect(&a, "publish q0 t '4'");
}

static void ill_formed_share_has_its_own_code(void **state) {
    static const char *const bad[] = {
        "$share/",    "$share/g",    "$share/g/",   "$share//a",   "$share/+/a",
        "$share/#/a", "$share/g+/a", "$share/a#/b", "$share/g/a+", "$share/g/#/a",
    };
    (void)state;

    client_connect(&world, &a, 5, "a");
    client_connect(&world, &b, 4, "b");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        say_subscribe(&a, 1, bad[i], 0);
        expect(&a, "suback 1 8f");
        say_subscribe(&b, 1, bad[i], 0);
        expect(&b, "suback 1 80");
    }
    assert_int_equal(counters(&world).subscriptions, 0);
    client_subscribe(&a, "$share/g/$x/#", 0);
    client_subscribe(&b, "$share", 0); /* an ordinary topic */
    publish(0, "$x/1", "x");
    publish(0, "$share", "y");
    expect(&a, "publish q0 $x/1 'x'");
    expect(&b, "publish q0 $share 'y'");
}

static void dollar_topics_are_hidden_from_a_groups_wildcards(void **state) {
    (void)state;
    member(&a, "a", false, "$share/g/#", 0);
    publish(0, "$x/1", "x");
    publish(0, "y", "y");
    expect(&a, "publish q0 y 'y'");
}

static void retained_messages_are_not_for_groups(void **state) {
    (void)state;
    say_publish(&publisher, &(struct publish){.topic = "t", .payload = "old", .retain = true});
    member(&a, "a", false, "$share/g/t", 0);
    say_publish(&publisher, &(struct publish){.topic = "t", .payload = "new", .retain = true});
    expect(&a, "publish q0 t 'new'"); /* live, so without its flag */
    expect_nothing(&a);
}

static void nor_is_the_snapshot_of_another_brokers(void **state) {
    struct message template = {.retain = true,
                               .topic = "t",
                               .topic_size = 1,
                               .payload = (const uint8_t *)"x",
                               .payload_size = 1,
                               .expires_at_ms = UINT64_MAX,
                               .stamp = {.wall_ms = 5000}};
    struct message *message = message_new(&template);
    (void)state;

    member(&a, "a", false, "$share/g/t", 0);
    client_subscribe(&a, "+", 0);
    broker_merge_retained(world.broker, world.now, message);
    expect(&a, "publish q0 t 'x'");
    expect_nothing(&a);
    message_unref(message);
}

/* The other one's broker chooses among all members. */
static void what_comes_from_another_broker_is_for_the_groups_it_names(void **state) {
    static const char groups[] = "\xaa$share/g/t\xaa$share/i/t";
    struct publication sent = {
        .groups_only = true, .group_count = 2, .groups = (const uint8_t *)groups, .groups_size = sizeof groups - 1};
    struct message message = {
        .topic = "t", .topic_size = 1, .payload = (const uint8_t *)"x", .payload_size = 1, .expires_at_ms = UINT64_MAX};
    (void)state;

    member(&a, "a", false, "$share/g/t", 0);
    client_subscribe(&a, "$share/h/t", 0);
    client_subscribe(&a, "+", 0);
    broker_deliver_from_peer(world.broker, world.now, &message, NULL);
    expect(&a, "publish q0 t 'x'"); /* as to an ordinary subscriber */
    expect_nothing(&a);
    broker_deliver_from_peer(world.broker, world.now, &message, &sent);
    expect(&a, "publish q0 t 'x'"); /* as to a member of g */
    expect_nothing(&a);
    sent.groups_only = false;
    broker_deliver_from_peer(world.broker, world.now, &message, &sent);
    expect(&a, "publish q0 t 'x'");
    expect(&a, "publish q0 t 'x'");
    expect_nothing(&a);
    message_return(&message);
}

static void shared_subscriptions_count_against_the_limit(void **state) {
    (void)state;
    begin_with((struct broker_limits){.subscriptions_per_client = 2});
    member(&a, "a", false, "$share/g/t", 0);
    client_subscribe(&a, "$share/h/t", 0);
    say_subscribe(&a, 1, "$share/i/t", 0);
    expect(&a, "suback 1 97");
    client_subscribe(&a, "$share/g/t", 1);
}

/* ---- who is chosen ---- */

static void members_with_a_full_window_are_passed_over(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 1, "$share/g/t");
    member_with_window(&b, "b", false, 10, "$share/g/t");
    publish_numbers(1, "t", 1, 4);
    expect(&a, "publish q1 id=1 t '1'");
    expect(&b, "publish q1 id=1 t '2'");
    expect(&b, "publish q1 id=2 t '3'");
    expect(&b, "publish q1 id=3 t '4'");
    say_ack(&a, 4, 1);
    publish_numbers(1, "t", 5, 6);
    expect(&a, "publish q1 id=2 t '5'");
    expect(&b, "publish q1 id=4 t '6'");
}

static void when_all_windows_are_full_the_shortest_queue_grows(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 1, "$share/g/t");
    member_with_window(&b, "b", false, 1, "$share/g/t");
    publish_numbers(1, "t", 1, 6);
    expect(&a, "publish q1 id=1 t '1'");
    expect(&b, "publish q1 id=1 t '2'");
    say_ack(&b, 4, 1);
    expect(&b, "publish q1 id=2 t '4'");
    publish(1, "t", "7"); /* b has one that waits, a has two */
    for (unsigned n = 2; n <= 4; n++)
        say_ack(&b, 4, n);
    expect(&b, "publish q1 id=3 t '6'");
    expect(&b, "publish q1 id=4 t '7'");
    say_ack(&a, 4, 1);
    expect(&a, "publish q1 id=2 t '3'");
    say_ack(&a, 4, 2);
    expect(&a, "publish q1 id=3 t '5'");
    expect_nothing(&b);
}

static void member_without_connection_gets_only_what_no_other_can(void **state) {
    (void)state;
    member(&a, "a", true, "$share/g/t", 1);
    client_cut(&a);
    member(&b, "b", false, "$share/g/t", 1);
    publish(1, "t", "1");
    expect(&b, "publish q1 id=1 t '1'");
    say_ack(&b, 4, 1);
    client_cut(&b);
    publish(1, "t", "2");
    publish(0, "t", "nobody is there");
    comes_back(&a, "a");
    expect(&a, "publish q1 id=1 t '2'");
    expect_nothing(&a);
}

static void members_without_connection_share_too(void **state) {
    (void)state;
    member(&a, "a", true, "$share/g/t", 1);
    member(&b, "b", true, "$share/g/t", 1);
    client_cut(&a), client_cut(&b);
    publish_numbers(1, "t", 1, 4);
    comes_back(&a, "a");
    comes_back(&b, "b");
    expect(&a, "publish q1 id=1 t '1'");
    expect(&b, "publish q1 id=1 t '2'");
    expect(&a, "publish q1 id=2 t '3'");
    expect(&b, "publish q1 id=2 t '4'");
    expect_nothing(&a);
    expect_nothing(&b);
}

static void drop_is_counted_once(void **state) {
    (void)state;
    begin_with((struct broker_limits){.queue_messages_max = 1});
    member_with_window(&a, "a", false, 1, "$share/g/t");
    member_with_window(&b, "b", false, 1, "$share/g/t");
    publish_numbers(1, "t", 1, 5);
    assert_int_equal(counters(&world).dropped_queue_full, 1);
    client_cut(&a), client_cut(&b);
    begin_with((struct broker_limits){.output_bytes_max = 1000});
    member(&a, "a", false, "$share/g/t", 0);
    a.unread = true;
    for (unsigned n = 0; counters(&world).dropped_qos0 == 0; n++) {
        assert_true(n < 100);
        publish(0, "t", "0123456789012345678901234567890123456789");
    }
    assert_int_equal(counters(&world).dropped_qos0, 1);
    a.unread = false;
}

static void packet_too_large_for_one_member_goes_to_another(void **state) {
    (void)state;
    client_connect_with(&world, &a, 5, &(struct connect){.id = "a", .properties = "27 00000014"});
    client_subscribe(&a, "$share/g/t", 1);
    member(&b, "b", false, "$share/g/t", 1);
    publish(1, "t", "no more than 20 bytes, it says");
    publish(1, "t", "no more than 20 bytes, it says");
    expect(&b, "publish q1 id=1 t 'no more*");
    expect(&b, "publish q1 id=2 t 'no more*");
    publish(1, "t", "little");
    expect(&a, "publish q1 id=1 t 'little'");
}

static void a_large_group_of_busy_members_shares_evenly(void **state) {
    enum { MEMBERS = 200 };
    struct client members[MEMBERS];
    (void)state;

    for (unsigned n = 0; n < MEMBERS; n++) {
        char id[8];
        snprintf(id, sizeof id, "m%u", n);
        member_with_window(&members[n], id, false, 1, "$share/g/t");
    }
    for (unsigned n = 0; n < 3 * MEMBERS; n++)
        publish(1, "t", "x");
    for (unsigned n = 0; n < MEMBERS; n++) { /* though not all are asked each time */
        for (unsigned id = 1; id <= 3; id++) {
            expect(&members[n], "publish *");
            say_ack(&members[n], 4, id);
        }
        expect_nothing(&members[n]);
        client_cut(&members[n]);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(each_publication_goes_to_one_member_in_turn),
        TEST(each_member_gets_the_qos_that_it_was_granted),
        TEST(each_group_gets_its_copy_beside_ordinary_subscriptions),
        TEST(subscribing_again_replaces_the_options),
        TEST(unsubscribed_member_gets_nothing_more),
        TEST(ill_formed_share_has_its_own_code),
        TEST(dollar_topics_are_hidden_from_a_groups_wildcards),
        TEST(retained_messages_are_not_for_groups),
        TEST(nor_is_the_snapshot_of_another_brokers),
        TEST(what_comes_from_another_broker_is_for_the_groups_it_names),
        TEST(shared_subscriptions_count_against_the_limit),
        TEST(members_with_a_full_window_are_passed_over),
        TEST(when_all_windows_are_full_the_shortest_queue_grows),
        TEST(member_without_connection_gets_only_what_no_other_can),
        TEST(members_without_connection_share_too),
        TEST(drop_is_counted_once),
        TEST(packet_too_large_for_one_member_goes_to_another),
        TEST(a_large_group_of_busy_members_shares_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
