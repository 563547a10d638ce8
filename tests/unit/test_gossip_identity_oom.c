/* Brokers that find each other, by an address, by multicast, by the roll, and that quarrel over a name or a key, while
 * memory is short: nothing crashes, nothing is lost for good, and nobody is shown who should not be. */
#include "tests/unit/oom.h"

#include <stdlib.h>
#define calloc __real_calloc /* the test's own network always gets what it needs */
#include "tests/unit/gossip_net.h"
#undef calloc

static struct member_info seen(struct net *net, int by, int whom) {
    struct member_info info = {0};
    struct member_id id = net_id(net, whom);
    gossip_member_find(net->nodes[by].gossip, net->now_ms, &id, &info);
    return info;
}

/* gossip_new() itself may fail. */
static void start(struct net *net, int index) {
    bool armed = shortage.armed;
    long every = shortage.every;
    shortage.armed = false;
    shortage.every = 0;
    net_start(net, index);
    shortage.armed = armed;
    shortage.every = every;
}

static void any_allocation_may_fail_while_a_broker_joins(void **state) {
    (void)state;
    long nth = 0;
    for (bool failed = true; failed; nth++) {
        struct net *net = net_new(3, 11);
        for (int i = 0; i < 2; i++)
            net_start(net, i);
        net_row(net, 0, "kept/#", true);
        assert_true(net_until(net, net_agreed, 10000));
        shortage_after(nth);
        start(net, 2);
        net_run(net, 150);
        shortage_over();
        failed = shortage.failed;
        if (!net_until(net, net_all_alive, 10000) || !net_until(net, net_agreed, 10000))
            fail_msg("allocation %ld: no recovery", nth);
        assert_true(net_has_row(net, 2, 0, "kept/#"));
        net_free(net);
    }
    print_message("%ld allocations\n", nth);
    assert_true(nth > 20);
}

/* P25: a table of members large enough for the roll to be called. */
static void a_broker_joins_many_while_memory_is_short_all_the_time(void **state) {
    (void)state;
    for (long every = 2; every < 4; every++) {
        struct net *net = net_new(25, 12);
        for (int i = 0; i < 24; i++)
            net_start(net, i);
        assert_true(net_until(net, net_agreed, 20000));
        shortage.every = every;
        start(net, 24);
        net_run(net, 500);
        shortage.every = 0;
        if (!net_until(net, net_agreed, 60000)) fail_msg("each %ldth: no recovery", every);
        net_free(net);
    }
}

/* P3 */
static void brokers_find_each_other_by_multicast_while_memory_is_short_all_the_time(void **state) {
    (void)state;
    for (long every = 2; every < 8; every++) {
        struct net *net = net_new(4, 13);
        for (int i = 0; i < 4; i++) {
            net->nodes[i].seeks = net->nodes[i].announce_nothing = true;
            net->nodes[i].bootstrap_count = 0;
        }
        shortage.every = every;
        for (int i = 0; i < 4; i++)
            start(net, i);
        net_run(net, 3000);
        shortage.every = 0;
        if (!net_until(net, net_all_alive, 60000)) fail_msg("each %ldth: no recovery", every);
        net_free(net);
    }
}

static bool original_is_shown_and_the_other_refused(struct net *net) {
    for (int i = 0; i < 3; i++) {
        if (i != 1 && (seen(net, i, 1).state != MEMBER_ALIVE || seen(net, i, 3).trouble != MEMBER_TROUBLE_NAME))
            return false;
        if (seen(net, i, 3).state != MEMBER_UNVERIFIED) return false;
    }
    return true;
}

/* P4: who cannot be remembered as refused is not taken for good either. */
static void a_second_key_under_a_name_is_refused_while_memory_is_short(void **state) {
    (void)state;
    long nth = 0;
    for (bool failed = true; failed; nth++) {
        struct net *net = net_new(4, 14);
        strcpy(net->nodes[3].name, net->nodes[1].name);
        strcpy(net->nodes[3].token, "edge-2/4");
        net->nodes[3].bootstrap[1] = 2; /* nobody passes on word of it */
        net->nodes[3].bootstrap_count = 2;
        for (int i = 0; i < 3; i++)
            net_start(net, i);
        net_run(net, 3000);
        shortage_after(nth);
        start(net, 3);
        net_run(net, 150);
        shortage_over();
        failed = shortage.failed;
        if (!net_until(net, original_is_shown_and_the_other_refused, 20000))
            fail_msg("allocation %ld: not refused", nth);
        net_free(net);
    }
    print_message("%ld allocations\n", nth);
    assert_true(nth > 5);
}

static bool clone_is_noticed(struct net *net) {
    return net->nodes[1].event_count[GOSSIP_CLONED] + net->nodes[3].event_count[GOSSIP_CLONED] > 0 &&
           seen(net, 0, 1).trouble == MEMBER_TROUBLE_CLONED && seen(net, 2, 1).trouble == MEMBER_TROUBLE_CLONED;
}

static void a_cloned_key_is_noticed_while_memory_is_short_all_the_time(void **state) {
    (void)state;
    for (long every = 2; every < 8; every++) {
        struct net *net = net_new(4, 341);
        net_clone(net, 3, 1);
        for (int i = 0; i < 3; i++)
            net_start(net, i);
        net_run(net, 1000);
        shortage.every = every;
        start(net, 3);
        net_run(net, 10000);
        shortage.every = 0;
        if (!net_until(net, clone_is_noticed, 60000)) fail_msg("each %ldth: not noticed", every);
        net_kill(net, 3);
        net_run(net, 700000);
        net_row(net, 1, "after/#", true);
        net_run(net, 5000);
        assert_true(net_has_row(net, 0, 1, "after/#"));
        assert_true(net_has_row(net, 2, 1, "after/#"));
        net_free(net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail_while_a_broker_joins),
        cmocka_unit_test(a_broker_joins_many_while_memory_is_short_all_the_time),
        cmocka_unit_test(brokers_find_each_other_by_multicast_while_memory_is_short_all_the_time),
        cmocka_unit_test(a_second_key_under_a_name_is_refused_while_memory_is_short),
        cmocka_unit_test(a_cloned_key_is_noticed_while_memory_is_short_all_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
