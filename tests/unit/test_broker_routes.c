/* Where publications go is the same whether it was kept or is looked up, and what is kept is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/peers.h"
#include "broker/routes.h"
#include "broker/topic.h"

enum { PEERS = 2, SUBSCRIBERS = 12, FILTERS = 60, HINTS = 3 };

/* The model: every subscription, matched one by one. */
struct held {
    bool there;
    struct subscription subscription;
};

struct fixture {
    struct subs *subs;
    struct routes *routes;
    struct policy *policy;
    struct peer peers[PEERS];
    struct subscriber sessions[SUBSCRIBERS]; /* from PEERS on */
    struct held held[SUBSCRIBERS][FILTERS];
    char filters[FILTERS][32];
    struct route_hint hints[HINTS];
    uint64_t random;
};

static unsigned roll(struct fixture *fixture, unsigned sides) {
    fixture->random = fixture->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(fixture->random >> 33) % sides;
}

static void random_path(struct fixture *fixture, char out[32], bool wildcards) {
    static const char *const levels[] = {"a", "b", "", "own", "+", "#"};
    unsigned depth = 1 + roll(fixture, 3);

    out[0] = '\0';
    for (unsigned i = 0; i < depth; i++) {
        unsigned level = roll(fixture, wildcards ? 6 : 4);
        snprintf(out + strlen(out), 32 - strlen(out), "%s%s", i > 0 ? "/" : "", levels[level]);
        if (level == 5) break;
    }
    if (out[0] == '\0') snprintf(out, 32, "a");
}

static struct subscriber *subscriber(struct fixture *fixture, unsigned who) {
    return who < PEERS ? &fixture->peers[who].subscriber : &fixture->sessions[who];
}

static int begin(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fixture->random = 7;
    fixture->subs = subs_new(1);
    fixture->routes = routes_new(fixture->subs, 1);
    fixture->policy = policy_new();
    policy_list_add(policy_list(fixture->policy, "", POLICY_PRIVATE), "own/#", 5);
    fixture->peers[0].rules = policy_rules_of(fixture->policy, "");
    for (unsigned i = 0; i < FILTERS; i++)
        random_path(fixture, fixture->filters[i], true);
    for (unsigned i = 0; i < SUBSCRIBERS; i++)
        subscriber(fixture, i)->kind = i < PEERS ? SUBSCRIBER_PEER : SUBSCRIBER_SESSION;
    *state = fixture;
    return 0;
}

static int end(void **state) {
    struct fixture *fixture = *state;

    routes_free(fixture->routes);
    policy_free(fixture->policy);
    subs_free(fixture->subs);
    free(fixture);
    return 0;
}

static void change(struct fixture *fixture) {
    unsigned who = roll(fixture, SUBSCRIBERS), what = roll(fixture, FILTERS);
    const char *filter = fixture->filters[what];
    struct held *held = &fixture->held[who][what];

    for (unsigned i = 0; i < what; i++)
        if (strcmp(fixture->filters[i], filter) == 0) return; /* the same once more */
    if (held->there && roll(fixture, 2) == 0) {
        assert_int_equal(subs_remove(fixture->subs, filter, strlen(filter), subscriber(fixture, who)), SUBS_OK);
        held->there = false;
        return;
    }
    held->there = true;
    held->subscription = (struct subscription){.qos = (uint8_t)roll(fixture, 3),
                                               .no_local = roll(fixture, 3) == 0,
                                               .retain_as_published = roll(fixture, 2) == 0,
                                               .identifier = roll(fixture, 2) * (1 + what)};
    if (who < PEERS) held->subscription = (struct subscription){.qos = 2};
    assert_true(subs_add(fixture->subs, filter, strlen(filter), subscriber(fixture, who), &held->subscription) >= 0);
}

static void change_rules(struct fixture *fixture) {
    fixture->peers[roll(fixture, PEERS)].rules = policy_rules_of(roll(fixture, 2) ? fixture->policy : NULL, "");
    subs_touch(fixture->subs);
}

/* What one subscriber gets of a publication, as text. */
struct outcome {
    bool gets;
    unsigned qos, retain;
    uint64_t identifiers; /* one bit each */
};

static struct outcome by_model(const struct fixture *fixture, unsigned who, const char *topic, bool own) {
    struct outcome outcome = {0};

    if (who < PEERS && fixture->peers[who].rules.lists[POLICY_PRIVATE] &&
        (strncmp(topic, "own/", 4) == 0 || strcmp(topic, "own") == 0))
        return outcome;
    for (unsigned i = 0; i < FILTERS; i++) {
        const struct held *held = &fixture->held[who][i];
        if (!held->there || (own && held->subscription.no_local) ||
            !topic_matches(fixture->filters[i], strlen(fixture->filters[i]), topic, strlen(topic)))
            continue;
        outcome.gets = true;
        if (held->subscription.qos > outcome.qos) outcome.qos = held->subscription.qos;
        outcome.retain |= held->subscription.retain_as_published;
        if (held->subscription.identifier > 0) outcome.identifiers |= 1ull << held->subscription.identifier;
    }
    return outcome;
}

static struct outcome by_route(struct fixture *fixture, const struct route *route, unsigned who, bool own) {
    struct outcome outcome = {0};

    for (uint32_t i = 0; i < route->receiver_count; i++) {
        const struct receiver *receiver = &route->receivers[i];
        if (receiver->subscriber != subscriber(fixture, who) ||
            (receiver->scope != RECEIVES_ALL && (receiver->scope == RECEIVES_OWN) != own))
            continue;
        assert_false(outcome.gets); /* one copy */
        outcome = (struct outcome){.gets = true, .qos = receiver->qos, .retain = receiver->retain_as_published};
        assert_true(receiver->qos <= route->qos);
        for (unsigned n = 0; n < receiver->identifier_count; n++) {
            uint64_t bit = 1ull << route->identifiers[receiver->identifier_at + n];
            assert_false(outcome.identifiers & bit);
            outcome.identifiers |= bit;
        }
    }
    return outcome;
}

static void publish(struct fixture *fixture, const char *topic) {
    struct route *route = routes_find(fixture->routes, topic, strlen(topic), &fixture->hints[roll(fixture, HINTS)]);

    assert_non_null(route);
    for (unsigned who = 0; who < SUBSCRIBERS; who++) {
        for (int own = 0; own < 2; own++) {
            struct outcome expected = by_model(fixture, who, topic, own), found = by_route(fixture, route, who, own);
            assert_int_equal(found.gets, expected.gets);
            assert_int_equal(found.retain, expected.retain);
            assert_true(found.identifiers == expected.identifiers);
            if (who >= PEERS) assert_int_equal(found.qos, expected.qos);
        }
    }
}

static void a_kept_route_is_what_the_tree_says(void **state) {
    struct fixture *fixture = *state;
    char topics[8][32];

    for (unsigned round = 0; round < 4000; round++) {
        if (round % 100 == 0)
            for (unsigned i = 0; i < 8; i++)
                random_path(fixture, topics[i], false);
        if (roll(fixture, 4) == 0) change(fixture);
        if (roll(fixture, 8) == 0) change_rules(fixture);
        publish(fixture, topics[roll(fixture, 8)]);
    }
    assert_true(routes_count(fixture->routes) > 8);
}

static void a_topic_is_kept_from_its_second_publication_on(void **state) {
    struct fixture *fixture = *state;

    publish(fixture, "a/b");
    assert_int_equal(routes_count(fixture->routes), 0);
    publish(fixture, "a/b");
    assert_int_equal(routes_count(fixture->routes), 1);
    publish(fixture, "a/b");
    assert_int_equal(routes_count(fixture->routes), 1);
}

static void a_hint_is_for_its_topic_alone(void **state) {
    struct fixture *fixture = *state;
    struct route_hint hint = {0};

    assert_false(routes_hints(fixture->routes, &hint, "a/b", 3));
    for (int i = 0; i < 3; i++)
        routes_find(fixture->routes, "a/b", 3, &hint);
    assert_true(routes_hints(fixture->routes, &hint, "a/b", 3));
    assert_false(routes_hints(fixture->routes, &hint, "a/c", 3));
    assert_false(routes_hints(fixture->routes, &hint, "a/", 2));
    assert_ptr_equal(routes_find(fixture->routes, "a/b", 3, &hint), hint.route);
}

static void what_is_kept_is_bounded_and_hints_end_with_it(void **state) {
    struct fixture *fixture = *state;
    struct route_hint hint = {0};
    char topic[32];
    size_t most = 0;

    for (int i = 0; i < 3; i++)
        routes_find(fixture->routes, "first", 5, &hint);
    assert_true(routes_hints(fixture->routes, &hint, "first", 5));
    for (unsigned i = 0; i < 3u * (2 * ROUTES_MAX + 10); i++) {
        snprintf(topic, sizeof topic, "topic/%u", i / 3);
        assert_non_null(routes_find(fixture->routes, topic, strlen(topic), &fixture->hints[0]));
        if (routes_count(fixture->routes) > most) most = routes_count(fixture->routes);
    }
    assert_int_equal(most, ROUTES_MAX);
    assert_false(routes_hints(fixture->routes, &hint, "first", 5));
    assert_non_null(routes_find(fixture->routes, "first", 5, &hint));
}

static void a_topic_found_again_by_its_hint_is_not_kept_twice(void **state) {
    enum { CROWD = ROUTE_BYTES_MAX / 2 / sizeof(struct receiver), TOPICS = 2 * ROUTES_BYTES_MAX / ROUTE_BYTES_MAX - 2 };
    struct fixture *fixture = *state;
    struct subscriber *crowd = calloc(CROWD, sizeof *crowd);
    struct route_hint hint = {0};
    char topic[32];

    for (unsigned i = 0; i < CROWD; i++)
        subs_add(fixture->subs, "#", 1, &crowd[i], &(struct subscription){0});
    for (int i = 0; i < 3; i++)
        routes_find(fixture->routes, "first", 5, &hint);
    for (unsigned i = 0; i < 2 * TOPICS; i++) {
        snprintf(topic, sizeof topic, "topic/%u", i / 2);
        routes_find(fixture->routes, topic, strlen(topic), &fixture->hints[0]);
    }
    assert_int_equal(routes_count(fixture->routes), TOPICS + 1);
    assert_true(routes_hints(fixture->routes, &hint, "first", 5));
    subs_remove(fixture->subs, "#", 1, &crowd[0]);
    for (int i = 0; i < 4; i++) {
        routes_find(fixture->routes, "first", 5, &hint); /* at first the change leaves no room, and all are dropped */
        assert_true(routes_count(fixture->routes) <= 1);
    }
    assert_true(routes_hints(fixture->routes, &hint, "first", 5));
    for (unsigned i = 1; i < CROWD; i++)
        subs_remove(fixture->subs, "#", 1, &crowd[i]);
    free(crowd);
}

static void a_route_too_large_to_keep_is_found_all_the_same(void **state) {
    struct fixture *fixture = *state;
    unsigned count = ROUTE_BYTES_MAX / sizeof(struct receiver) + 1;
    struct subscriber *crowd = calloc(count, sizeof *crowd);
    struct route *route = NULL;

    for (unsigned i = 0; i < count; i++)
        subs_add(fixture->subs, "all", 3, &crowd[i], &(struct subscription){0});
    for (int i = 0; i < 3; i++)
        route = routes_find(fixture->routes, "all", 3, &fixture->hints[0]);
    assert_non_null(route);
    assert_int_equal(route->receiver_count, count);
    assert_int_equal(routes_count(fixture->routes), 0);
    for (unsigned i = 0; i < count; i++)
        subs_remove(fixture->subs, "all", 3, &crowd[i]);
    free(crowd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kept_route_is_what_the_tree_says, begin, end),
        cmocka_unit_test_setup_teardown(a_topic_is_kept_from_its_second_publication_on, begin, end),
        cmocka_unit_test_setup_teardown(a_hint_is_for_its_topic_alone, begin, end),
        cmocka_unit_test_setup_teardown(what_is_kept_is_bounded_and_hints_end_with_it, begin, end),
        cmocka_unit_test_setup_teardown(a_topic_found_again_by_its_hint_is_not_kept_twice, begin, end),
        cmocka_unit_test_setup_teardown(a_route_too_large_to_keep_is_found_all_the_same, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
