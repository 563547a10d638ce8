/* Shared subscriptions (MQTT 5.0 section 4.8.2): what a member has not acknowledged goes to others, or waits for it. */
#include "share_fixture.h"

static void unacknowledged_qos1_goes_to_others_when_the_session_ends(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 2, "$share/g/t");
    publish_numbers(1, "t", 1, 5);
    expect(&a, "publish q1 id=1 t '1'");
    expect(&a, "publish q1 id=2 t '2'");
    member(&b, "b", false, "$share/g/t", 1);
    say_ack(&a, 4, 1);
    expect(&a, "publish q1 id=3 t '3'");
    client_cut(&a);
    expect(&b, "publish q1 id=1 t '2'");
    expect(&b, "publish q1 id=2 t '3'");
    expect(&b, "publish q1 id=3 t '4'");
    expect(&b, "publish q1 id=4 t '5'");
    expect_nothing(&b);
}

static void it_goes_to_members_without_connection_too(void **state) {
    (void)state;
    member(&b, "b", true, "$share/g/t", 1);
    client_cut(&b);
    member(&a, "a", false, "$share/g/t", 1);
    publish_numbers(1, "t", 1, 2);
    client_cut(&a);
    comes_back(&b, "b");
    expect(&b, "publish q1 id=1 t '1'");
    expect(&b, "publish q1 id=2 t '2'");
    expect_nothing(&b);
}

/* MQTT-4.8.2-5. */
static void qos2_that_was_sent_is_sent_to_nobody_else(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 2, "$share/g/t");
    publish_numbers(2, "t", 1, 3);
    expect(&a, "publish q2 id=1 t '1'");
    expect(&a, "publish q2 id=2 t '2'");
    say_ack(&a, 5, 1);
    expect(&a, "pubrel 1");
    member(&b, "b", false, "$share/g/t", 2);
    client_cut(&a);
    expect(&b, "publish q2 id=1 t '3'");
    expect_nothing(&b);
}

/* MQTT-4.8.2-4. */
static void qos2_in_flight_waits_for_the_session_that_may_come_back(void **state) {
    (void)state;
    member_with_window(&a, "a", true, 2, "$share/g/t");
    publish_numbers(2, "t", 1, 4);
    say_ack(&a, 5, 1);
    expect(&a, "publish q2 id=1 t '1'");
    expect(&a, "publish q2 id=2 t '2'");
    expect(&a, "pubrel 1");
    member(&b, "b", false, "$share/g/t", 2);
    client_cut(&a);
    expect(&b, "publish q2 id=1 t '3'"); /* never sent to a */
    expect(&b, "publish q2 id=2 t '4'");
    expect_nothing(&b);
    comes_back(&a, "a");
    expect(&a, "pubrel 1");
    expect(&a, "publish dup q2 id=2 t '2'");
    client_cut(&a);
    pass(&world, 60000); /* the session ends */
    expect_nothing(&b);
}

static void qos1_in_flight_waits_until_the_session_expires(void **state) {
    (void)state;
    member(&a, "a", true, "$share/g/t", 1);
    publish(1, "t", "1");
    expect(&a, "publish q1 id=1 t '1'");
    member(&b, "b", false, "$share/g/t", 1);
    client_cut(&a);
    expect_nothing(&b);
    pass(&world, 59999);
    expect_nothing(&b);
    pass(&world, 1);
    expect(&b, "publish q1 id=1 t '1'");
}

static void what_was_never_sent_stays_if_nobody_is_there(void **state) {
    (void)state;
    member_with_window(&a, "a", true, 1, "$share/g/t");
    member(&b, "b", true, "$share/g/t", 1);
    client_cut(&b);
    publish_numbers(1, "t", 1, 3);
    expect(&a, "publish q1 id=1 t '1'");
    client_cut(&a);
    comes_back(&b, "b");
    expect_nothing(&b);
    comes_back(&a, "a");
    expect(&a, "publish dup q1 id=1 t '1'");
    expect(&a, "publish q1 id=2 t '2'");
    expect(&a, "publish q1 id=3 t '3'");
}

static void nor_does_it_go_to_others_that_are_not_there(void **state) {
    (void)state;
    begin_with((struct broker_limits){.queue_messages_max = 1});
    member(&c, "c", true, "$share/g/t", 1);
    client_cut(&c);
    member_with_window(&a, "a", true, 1, "$share/g/t");
    member_with_window(&b, "b", false, 1, "$share/g/t");
    publish_numbers(1, "t", 1, 4);
    expect(&a, "publish q1 id=1 t '1'");
    client_cut(&a); /* b, with '2' and '4', can take no more */
    comes_back(&c, "c");
    expect_nothing(&c);
    comes_back(&a, "a");
    expect(&a, "publish dup q1 id=1 t '1'");
    expect(&a, "publish q1 id=2 t '3'");
}

static void member_that_came_back_goes_before_those_that_did_not(void **state) {
    (void)state;
    member(&b, "b", true, "$share/g/t", 1);
    member(&a, "a", true, "$share/g/t", 1);
    client_cut(&a), client_cut(&b);
    client_connect_with(
        &world, &a, 5,
        &(struct connect){.id = "a", .resume = true, .properties = "21 0001 11 0000003c"}); /* one at a time */
    publish_numbers(1, "t", 1, 3);
    comes_back(&b, "b");
    expect_nothing(&b);
    for (unsigned n = 1; n <= 3; n++) {
        expect(&a, "publish q1 *");
        say_ack(&a, 4, n);
    }
}

/* MQTT-3.10.4-3. */
static void unsubscribed_member_completes_what_was_sent_to_it(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 1, "$share/g/t");
    publish_numbers(1, "t", 1, 3);
    expect(&a, "publish q1 id=1 t '1'");
    member(&b, "b", false, "$share/g/t", 1);
    say_unsubscribe(&a, 1, "$share/g/t");
    expect(&a, "unsuback 1 00");
    expect(&b, "publish q1 id=1 t '2'");
    expect(&b, "publish q1 id=2 t '3'");
    client_cut(&a); /* without having acknowledged it */
    expect(&b, "publish q1 id=3 t '1'");
    expect_nothing(&b);
}

static void leaving_one_group_leaves_what_came_through_others(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 1, "$share/g/t");
    client_subscribe(&a, "$share/g/u", 1);
    publish(1, "t", "1");
    publish(1, "u", "2");
    publish(1, "t", "3");
    member(&b, "b", false, "$share/g/#", 0); /* another group */
    client_subscribe(&b, "$share/g/t", 1);
    client_subscribe(&b, "$share/g/u", 1);
    say_unsubscribe(&a, 1, "$share/g/t");
    expect(&a, "publish q1 id=1 t '1'");
    expect(&a, "unsuback 1 00");
    expect(&b, "publish q1 id=1 t '3'");
    expect_nothing(&b);
    say_ack(&a, 4, 1);
    expect(&a, "publish q1 id=2 u '2'");
}

static void last_member_to_unsubscribe_gets_what_waits_for_it(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 1, "$share/g/t");
    publish_numbers(1, "t", 1, 2);
    expect(&a, "publish q1 id=1 t '1'");
    say_unsubscribe(&a, 1, "$share/g/t");
    expect(&a, "unsuback 1 00");
    member(&b, "b", false, "$share/g/t", 1); /* the group has not forgotten */
    say_ack(&a, 4, 1);
    expect(&a, "publish q1 id=2 t '2'");
    client_cut(&a);
    expect(&b, "publish q1 id=1 t '2'");
}

static void subscribing_anew_is_another_membership(void **state) {
    (void)state;
    member_with_window(&a, "a", false, 1, "$share/g/t");
    publish_numbers(1, "t", 1, 2);
    expect(&a, "publish q1 id=1 t '1'");
    for (unsigned n = 0; n < 3; n++) {
        say_unsubscribe(&a, 1, "$share/g/t");
        expect(&a, "unsuback 1 00");
        client_subscribe(&a, "$share/g/t", 1);
    }
    publish(1, "t", "3");
    say_ack(&a, 4, 1);
    expect(&a, "publish q1 id=2 t '2'");
    say_ack(&a, 4, 2);
    expect(&a, "publish q1 id=3 t '3'");
    client_cut(&a);
}

/* MQTT-4.8.2-6. */
static void what_a_member_refuses_is_discarded(void **state) {
    (void)state;
    member(&a, "a", false, "$share/g/t", 2);
    publish(1, "t", "1");
    publish(2, "t", "2");
    expect(&a, "publish q1 id=1 t '1'");
    expect(&a, "publish q2 id=2 t '2'");
    member(&b, "b", false, "$share/g/t", 2);
    say_hex(&a, "40 03 0001 80");
    say_hex(&a, "50 03 0002 83");
    client_cut(&a);
    expect_nothing(&b);
}

static void only_what_came_through_the_group_is_passed_on(void **state) {
    (void)state;
    member(&a, "a", false, "$share/g/t", 1);
    client_subscribe(&a, "u", 1);
    publish(1, "u", "own");
    publish(1, "t", "shared");
    member(&b, "b", false, "$share/g/t", 1);
    client_subscribe(&b, "$share/h/u", 1);
    client_cut(&a);
    expect(&b, "publish q1 id=1 t 'shared'");
    expect_nothing(&b);
}

static void passed_on_it_takes_the_other_members_options(void **state) {
    (void)state;
    member(&a, "a", false, "$share/g/t", 1);
    say_publish(&publisher, &(struct publish){.topic = "t", .payload = "1", .qos = 2, .id = 1, .retain = true});
    expect(&a, "publish q1 id=1 t '1'");
    client_connect(&world, &b, 5, "b");
    say_subscribe_with(&b, 1, "$share/g/t", 2 | 8, "0b 07");
    expect(&b, "suback 1 02");
    client_cut(&a);
    expect(&b, "publish retain q2 id=1 t 0b=7 '1'");
}

static void session_that_is_cleaned_passes_on_before_the_new_one_joins(void **state) {
    (void)state;
    member(&a, "a", true, "$share/g/t", 1);
    publish(1, "t", "1");
    expect(&a, "publish q1 id=1 t '1'");
    member(&b, "b", false, "$share/g/t", 1);
    client_connect(&world, &c, 5, "a"); /* takes over with a clean start */
    expect(&a, "disconnect 8e");
    client_forget(&a);
    expect(&b, "publish q1 id=1 t '1'");
    expect_nothing(&c);
}

static void will_of_a_member_goes_to_the_others(void **state) {
    (void)state;
    client_connect_with(&world, &a, 5, &(struct connect){.id = "a", .will_topic = "t", .will_payload = "gone"});
    client_subscribe(&a, "$share/g/t", 1);
    publish(1, "t", "1");
    expect(&a, "publish q1 id=1 t '1'");
    member(&b, "b", false, "$share/g/t", 1);
    client_cut(&a);
    expect(&b, "publish q1 id=1 t '1'");
    expect(&b, "publish q0 t 'gone'");
}

static void a_stopping_broker_keeps_it_for_sessions_that_outlive_it(void **state) {
    (void)state;
    member(&a, "a", false, "$share/g/t", 1);
    publish(1, "t", "1");
    expect(&a, "publish q1 id=1 t '1'");
    member(&b, "b", false, "$share/g/t", 1);
    member(&c, "c", true, "$share/g/t", 1);
    broker_stop(world.broker, world.now);
    expect(&c, "publish q1 id=1 t '1'");
    expect(&c, "disconnect 8b");
    expect(&b, "disconnect 8b");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(unacknowledged_qos1_goes_to_others_when_the_session_ends),
        TEST(it_goes_to_members_without_connection_too),
        TEST(qos2_that_was_sent_is_sent_to_nobody_else),
        TEST(qos2_in_flight_waits_for_the_session_that_may_come_back),
        TEST(qos1_in_flight_waits_until_the_session_expires),
        TEST(what_was_never_sent_stays_if_nobody_is_there),
        TEST(nor_does_it_go_to_others_that_are_not_there),
        TEST(member_that_came_back_goes_before_those_that_did_not),
        TEST(unsubscribed_member_completes_what_was_sent_to_it),
        TEST(leaving_one_group_leaves_what_came_through_others),
        TEST(last_member_to_unsubscribe_gets_what_waits_for_it),
        TEST(subscribing_anew_is_another_membership),
        TEST(what_a_member_refuses_is_discarded),
        TEST(only_what_came_through_the_group_is_passed_on),
        TEST(passed_on_it_takes_the_other_members_options),
        TEST(session_that_is_cleaned_passes_on_before_the_new_one_joins),
        TEST(will_of_a_member_goes_to_the_others),
        TEST(a_stopping_broker_keeps_it_for_sessions_that_outlive_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
