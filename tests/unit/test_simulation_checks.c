/* The simulator's checks see what they are there to see. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/checks.h"

/* One broker that is not started, and three clients: 0 publishes, 1 and 2 may subscribe. */
static int open_world(void **state) {
    struct world *world = world_new(&(struct world_options){.seed = 1});
    world_add_node(world, "edge-1");
    world_add_plain_client(world, "publisher", 0);
    world_add_plain_client(world, "one", 0);
    world_add_plain_client(world, "two", 0);
    *state = world;
    return 0;
}

static int close_world(void **state) {
    world_free(*state);
    return 0;
}

static void add_subscription(struct world *world, size_t client, const char *filter, uint8_t qos, uint64_t granted_us) {
    char text[64];
    strcpy(text, filter);
    journal_add_subscription(
        &world->journal,
        &(struct journal_subscription){
            .client = client, .filter = text, .qos = qos, .granted_us = granted_us, .ended_us = JOURNAL_NEVER});
}

static size_t add_publication(struct world *world, const char *topic, uint8_t qos, uint64_t sent_us) {
    char text[64];
    strcpy(text, topic);
    return journal_add_publication(
        &world->journal, &(struct journal_publication){
                             .topic = text, .qos = qos, .size = 16, .sent_us = sent_us, .acked_us = sent_us + 1});
}

static void add_receipt(struct world *world, size_t client, size_t publication, uint8_t qos) {
    uint64_t number;
    const char *topic = world->journal.publications[publication].topic;
    uint8_t *payload = journal_payload_new(&world->journal, publication);
    assert_true(journal_receive(&world->journal, topic, strlen(topic), payload, 16,
                                &(struct journal_receipt){.client = client, .qos = qos}, &number));
    assert_int_equal(number, publication);
    free(payload);
}

static bool is_good(const struct world *world, enum checks_repeats repeats) {
    char why[CHECKS_WHY];
    return checks_never(world, why) && checks_delivery(world, 0, repeats, why) && checks_order(world, why) &&
           checks_acknowledged(world, why);
}

static void filters_match_as_the_specification_says(void **state) {
    (void)state;
    static const struct {
        const char *filter, *topic;
        bool matches;
    } rules[] = {
        {"sport/tennis/player1/#", "sport/tennis/player1", true},
        {"sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", true},
        {"sport/#", "sport", true},
        {"#", "a/b", true},
        {"sport/tennis/+", "sport/tennis/player1", true},
        {"sport/tennis/+", "sport/tennis/player1/ranking", false},
        {"sport/+", "sport", false},
        {"sport/+", "sport/", true},
        {"+/+", "/finance", true},
        {"/+", "/finance", true},
        {"+", "/finance", false},
        {"#", "$SYS/a", false},
        {"+/a", "$SYS/a", false},
        {"$SYS/#", "$SYS/a", true},
        {"a/b", "a/bc", false},
        {"a/bc", "a/b", false},
        {"a/b", "a/b/c", false},
        {"a", "a", true},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        assert_int_equal(checks_matches(rules[i].filter, rules[i].topic), rules[i].matches);
}

static void one_copy_is_good_none_and_two_are_not(void **state) {
    struct world *world = *state;
    add_subscription(world, 1, "a/+", 2, 10);
    size_t number = add_publication(world, "a/b", 2, 20);
    assert_false(is_good(world, CHECKS_ONCE));
    add_receipt(world, 1, number, 2);
    assert_true(is_good(world, CHECKS_ONCE));
    add_receipt(world, 1, number, 2);
    assert_false(is_good(world, CHECKS_ONCE));
    assert_false(is_good(world, CHECKS_QOS1_MAY_REPEAT));
}

static void repeated_qos_1_is_good_where_it_is_allowed(void **state) {
    struct world *world = *state;
    add_subscription(world, 1, "#", 2, 10);
    size_t number = add_publication(world, "a/b", 1, 20);
    add_receipt(world, 1, number, 1);
    add_receipt(world, 1, number, 1);
    assert_false(is_good(world, CHECKS_ONCE));
    assert_true(is_good(world, CHECKS_QOS1_MAY_REPEAT));
}

static void copy_without_subscription_is_not_good(void **state) {
    struct world *world = *state;
    add_subscription(world, 1, "c", 2, 10);
    add_receipt(world, 1, add_publication(world, "a/b", 0, 20), 0);
    assert_false(is_good(world, CHECKS_ONCE));
}

static void copy_long_after_the_subscription_ended_is_not_good(void **state) {
    struct world *world = *state;
    add_subscription(world, 1, "a", 2, 10);
    world->journal.subscriptions[0].ended_us = 100;
    add_receipt(world, 1, add_publication(world, "a", 0, 200), 0);
    assert_true(is_good(world, CHECKS_ONCE));
    add_receipt(world, 1, add_publication(world, "a", 0, 200 + 20000 * HEAP_MS), 0);
    assert_false(is_good(world, CHECKS_ONCE));
}

static void subscription_granted_later_may_miss_it(void **state) {
    struct world *world = *state;
    add_subscription(world, 1, "a/b", 2, 30);
    add_publication(world, "a/b", 0, 20);
    assert_true(is_good(world, CHECKS_ONCE));
}

static void other_order_is_not_good(void **state) {
    struct world *world = *state;
    add_subscription(world, 1, "#", 2, 10);
    size_t first = add_publication(world, "a", 1, 20), other = add_publication(world, "b", 1, 21),
           second = add_publication(world, "a", 1, 22);
    add_receipt(world, 1, other, 1);
    add_receipt(world, 1, first, 1);
    add_receipt(world, 1, second, 1);
    assert_true(is_good(world, CHECKS_ONCE));
    size_t third = add_publication(world, "a", 1, 23), fourth = add_publication(world, "a", 1, 24);
    add_receipt(world, 1, fourth, 1);
    add_receipt(world, 1, third, 1);
    assert_false(is_good(world, CHECKS_ONCE));
}

static void missing_acknowledgement_is_not_good(void **state) {
    struct world *world = *state;
    size_t number = add_publication(world, "a", 1, 20);
    world->journal.publications[number].acked_us = JOURNAL_NEVER;
    assert_false(is_good(world, CHECKS_ONCE));
    world->journal.publications[number].forgotten = true;
    assert_true(is_good(world, CHECKS_ONCE));
}

static void damaged_payload_is_not_good(void **state) {
    struct world *world = *state;
    uint64_t number;
    add_subscription(world, 1, "a", 0, 10);
    add_receipt(world, 1, add_publication(world, "a", 0, 20), 0);
    assert_false(journal_receive(&world->journal, "a", 1, (const uint8_t *)"0 .............x", 16,
                                 &(struct journal_receipt){.client = 1}, &number));
    assert_false(is_good(world, CHECKS_ONCE));
}

static void retained_copy_is_not_a_second_one(void **state) {
    struct world *world = *state;
    add_subscription(world, 1, "a", 0, 10);
    size_t number = add_publication(world, "a", 0, 20);
    add_receipt(world, 1, number, 0);
    add_receipt(world, 1, number, 0);
    world->journal.receipts[1].retain = true;
    assert_true(is_good(world, CHECKS_ONCE));
    assert_int_equal(journal_copies(&world->journal, 1, number, false), 1);
    assert_int_equal(journal_copies(&world->journal, 1, number, true), 2);
}

/* Two at edge-1 and edge-2, at the moment 0. */
static struct checks_crossing crossing(const struct world *world, const char *topic, uint64_t since_us) {
    return checks_crossing(world, world->nodes[0]->host, world->nodes[1]->host, topic, since_us);
}

static void both_ends_decide_what_may_cross(void **state) {
    static const struct world_rule exports[] = {{"", POLICY_EXPORT, "a/#"}, {"edge-2", POLICY_EXPORT, "b"}},
                                   imports[] = {{"edge-1", POLICY_IMPORT, "+"}, {"", POLICY_PRIVATE, "p"}},
                                   later[] = {{"", POLICY_EXPORT, NULL}};
    struct world *world = *state;
    world_add_node(world, "edge-2");
    assert_true(crossing(world, "b", 0).always);
    world_set_policy(world, 0, exports, 2);
    assert_true(crossing(world, "b", 0).always);
    assert_false(crossing(world, "a/1", 0).ever); /* the list of the peer takes the place */
    world_set_policy(world, 1, imports, 2);
    assert_true(crossing(world, "b", 0).always);
    assert_false(crossing(world, "p", 0).ever);
    world_run_ms(world, 10);
    world_set_policy(world, 0, later, 1);
    assert_true(crossing(world, "b", 0).ever && !crossing(world, "b", 0).always);
    assert_false(crossing(world, "b", 10001).ever);
    assert_true(checks_crossing(world, world->nodes[0]->host, world->nodes[0]->host, "b", 10001).always);
}

static void copy_that_may_not_cross_is_not_good(void **state) {
    static const struct world_rule nothing = {"", POLICY_EXPORT, NULL};
    struct world *world = *state;
    world_add_node(world, "edge-2");
    add_subscription(world, 1, "a", 0, 10);
    world->journal.subscriptions[0].broker_host = world->nodes[1]->host;
    size_t number = add_publication(world, "a", 0, 20);
    world->journal.publications[number].broker_host = world->nodes[0]->host;
    assert_false(is_good(world, CHECKS_ONCE));
    world_set_policy(world, 0, &nothing, 1);
    assert_true(is_good(world, CHECKS_ONCE));
    add_receipt(world, 1, number, 0);
    assert_false(is_good(world, CHECKS_ONCE));
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_match_as_the_specification_says),
        IN_WORLD(one_copy_is_good_none_and_two_are_not),
        IN_WORLD(repeated_qos_1_is_good_where_it_is_allowed),
        IN_WORLD(copy_without_subscription_is_not_good),
        IN_WORLD(copy_long_after_the_subscription_ended_is_not_good),
        IN_WORLD(subscription_granted_later_may_miss_it),
        IN_WORLD(other_order_is_not_good),
        IN_WORLD(missing_acknowledgement_is_not_good),
        IN_WORLD(damaged_payload_is_not_good),
        IN_WORLD(retained_copy_is_not_a_second_one),
        IN_WORLD(both_ends_decide_what_may_cross),
        IN_WORLD(copy_that_may_not_cross_is_not_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
