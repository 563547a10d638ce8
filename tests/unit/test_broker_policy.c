/* Which topics may cross to a peer and from it: the lists, and the question asked of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policies.h"

static bool lets(const struct policy *policy, const char *peer, enum policy_kind way, const char *filter) {
    struct policy_rules rules = policy_rules_of(policy, peer);
    return policy_lets(&rules, way, filter, strlen(filter));
}

static bool lets_some_peer(const struct policy *policy, enum policy_kind way, const char *filter) {
    return policy_lets_some_peer(policy, way, filter, strlen(filter));
}

static void without_a_policy_everything_passes_but_dollar_topics(void **state) {
    (void)state;
    struct policy *empty = policy_new();
    for (int i = 0; i < 2; i++) {
        const struct policy *policy = i == 0 ? NULL : empty;
        assert_true(lets(policy, "b", POLICY_EXPORT, "a/b"));
        assert_true(lets(policy, "b", POLICY_IMPORT, "#"));
        assert_true(lets_some_peer(policy, POLICY_EXPORT, "a"));
        assert_false(lets(policy, "b", POLICY_EXPORT, "$SYS/x"));
        assert_false(lets(policy, "b", POLICY_IMPORT, "$x/#"));
        assert_false(lets_some_peer(policy, POLICY_IMPORT, "$x"));
    }
    policy_free(empty);
}

/* One export list; what may go, and of which filters something may. */
static void a_list_lets_pass_what_a_filter_of_it_matches(void **state) {
    static const struct {
        const char *listed, *asked;
        bool passes;
    } cases[] = {
        {"a/#", "a/b/c", true},  {"a/#", "a", true},     {"a/#", "b", false},    {"a/+", "a/b/c", false},
        {"a/+", "a/#", true},    {"a/+", "#", true},     {"a/+", "+/b", true},   {"a/+", "b/+", false},
        {"a/+", "+/+/c", false}, {"#", "$a", false},     {"+/#", "$a/b", false}, {"a/b", "a/b", true},
        {"a/b", "a/+", true},    {"a/b", "a/b/#", true}, {"a/b", "a", false},    {"/a", "a", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct policy *policy = POLICY({"", POLICY_EXPORT, cases[i].listed});
        if (lets(policy, "b", POLICY_EXPORT, cases[i].asked) != cases[i].passes)
            fail_msg("export %s, asked %s", cases[i].listed, cases[i].asked);
        assert_int_equal(lets_some_peer(policy, POLICY_EXPORT, cases[i].asked), cases[i].passes);
        assert_int_equal(lets(policy, "b", POLICY_IMPORT, cases[i].asked), cases[i].asked[0] != '$');
        policy_free(policy);
    }
}

static void what_is_private_passes_neither_way_whatever_is_listed(void **state) {
    (void)state;
    struct policy *policy = POLICY({"", POLICY_PRIVATE, "own/#"}, {"", POLICY_EXPORT, "own/a"},
                                   {"hq", POLICY_EXPORT, "#"}, {"hq", POLICY_IMPORT, "own/b"});
    static const char *const peers[] = {"hq", "b"};
    for (int i = 0; i < 2; i++) {
        for (int way = POLICY_EXPORT; way <= POLICY_IMPORT; way++) {
            assert_false(lets(policy, peers[i], (enum policy_kind)way, "own/a"));
            assert_false(lets(policy, peers[i], (enum policy_kind)way, "own/+"));
            assert_false(lets(policy, peers[i], (enum policy_kind)way, "own/b"));
        }
    }
    assert_true(lets(policy, "hq", POLICY_EXPORT, "#"));
    assert_true(lets(policy, "hq", POLICY_EXPORT, "+/a"));
    policy_free(policy);
}

static void the_list_of_a_peer_takes_the_place_of_that_of_all(void **state) {
    (void)state;
    struct policy *policy = POLICY({"", POLICY_EXPORT, "status/#"}, {"hq", POLICY_EXPORT, "plant/#"},
                                   {"guest", POLICY_EXPORT, NULL}, {"hq", POLICY_IMPORT, "orders/#"});
    assert_true(lets(policy, "any", POLICY_EXPORT, "status/1"));
    assert_false(lets(policy, "any", POLICY_EXPORT, "plant/1"));
    assert_true(lets(policy, "any", POLICY_IMPORT, "anything"));
    assert_false(lets(policy, "hq", POLICY_EXPORT, "status/1"));
    assert_true(lets(policy, "hq", POLICY_EXPORT, "plant/1"));
    assert_false(lets(policy, "hq", POLICY_IMPORT, "status/1"));
    assert_false(lets(policy, "guest", POLICY_EXPORT, "#"));
    assert_true(lets(policy, "guest", POLICY_IMPORT, "#"));
    assert_true(lets_some_peer(policy, POLICY_EXPORT, "plant/1"));
    assert_true(lets_some_peer(policy, POLICY_EXPORT, "status/1"));
    assert_false(lets_some_peer(policy, POLICY_EXPORT, "orders/1"));
    policy_free(policy);
}

static void an_empty_list_lets_nothing_pass(void **state) {
    (void)state;
    struct policy *policy = POLICY({"", POLICY_EXPORT, NULL});
    assert_false(lets(policy, "b", POLICY_EXPORT, "a"));
    assert_false(lets_some_peer(policy, POLICY_EXPORT, "#"));
    assert_true(lets(policy, "b", POLICY_IMPORT, "a"));
    policy_free(policy);
}

static void policies_are_equal_if_they_say_the_same_to_each_peer(void **state) {
    (void)state;
    struct policy *a = POLICY({"", POLICY_EXPORT, "a"}, {"hq", POLICY_IMPORT, "b"}),
                  *same = POLICY({"hq", POLICY_IMPORT, "b"}, {"", POLICY_EXPORT, "a"}),
                  *other_filter = POLICY({"", POLICY_EXPORT, "a"}, {"hq", POLICY_IMPORT, "c"}),
                  *other_peer = POLICY({"", POLICY_EXPORT, "a"}, {"h2", POLICY_IMPORT, "b"}),
                  *one_more = POLICY({"", POLICY_EXPORT, "a"}, {"", POLICY_EXPORT, "b"}, {"hq", POLICY_IMPORT, "b"}),
                  *private = POLICY({"", POLICY_EXPORT, "a"}, {"", POLICY_PRIVATE, "p"}, {"hq", POLICY_IMPORT, "b"}),
                  *nothing = policy_new(), *closed = POLICY({"", POLICY_IMPORT, NULL});
    struct policy *others[] = {other_filter, other_peer, one_more, private, nothing, closed};
    assert_true(policy_equal(a, same));
    assert_true(policy_equal(NULL, nothing));
    assert_true(policy_equal(NULL, NULL));
    assert_false(policy_equal(NULL, closed));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(policy_equal(a, others[i]));
        assert_false(policy_equal(others[i], a));
        policy_free(others[i]);
    }
    policy_free(a);
    policy_free(same);
}

static void the_list_that_keeps_a_topic_is_known(void **state) {
    (void)state;
    struct policy *policy = POLICY({"", POLICY_EXPORT, "status/#"}, {"", POLICY_PRIVATE, "local/#"},
                                   {"hq", POLICY_EXPORT, "plant/#"}, {"guest", POLICY_IMPORT, NULL});
    static const struct {
        const char *peer;
        enum policy_kind way;
        const char *topic;
        enum policy_verdict verdict;
    } cases[] = {
        {"any", POLICY_EXPORT, "status/1", POLICY_LETS},
        {"any", POLICY_EXPORT, "plant/1", POLICY_NOT_FOR_OTHERS},
        {"guest", POLICY_EXPORT, "plant/1", POLICY_NOT_FOR_OTHERS},
        {"guest", POLICY_IMPORT, "plant/1", POLICY_NOT_FOR_PEER},
        {"hq", POLICY_EXPORT, "plant/1", POLICY_LETS},
        {"hq", POLICY_EXPORT, "status/1", POLICY_NOT_FOR_PEER},
        {"hq", POLICY_EXPORT, "local/1", POLICY_IS_PRIVATE},
        {"any", POLICY_IMPORT, "local/1", POLICY_IS_PRIVATE},
        {"any", POLICY_IMPORT, "$SYS/1", POLICY_STAYS},
        {NULL, POLICY_EXPORT, "plant/1", POLICY_LETS}, /* a peer without a name yet */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(policy_verdict(policy, cases[i].peer, cases[i].way, cases[i].topic, strlen(cases[i].topic)),
                         cases[i].verdict);
    assert_int_equal(policy_verdict(NULL, "any", POLICY_EXPORT, "a", 1), POLICY_LETS);
    policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_policy_everything_passes_but_dollar_topics),
        cmocka_unit_test(a_list_lets_pass_what_a_filter_of_it_matches),
        cmocka_unit_test(what_is_private_passes_neither_way_whatever_is_listed),
        cmocka_unit_test(the_list_of_a_peer_takes_the_place_of_that_of_all),
        cmocka_unit_test(an_empty_list_lets_nothing_pass),
        cmocka_unit_test(the_list_that_keeps_a_topic_is_known),
        cmocka_unit_test(policies_are_equal_if_they_say_the_same_to_each_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
