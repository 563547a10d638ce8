/* Members fall asleep, wake, are suspected and die while memory is short: nothing crashes, whoever is dead is found to
 * be, and whoever lives is there in the end. */
#include "tests/unit/oom.h"

#include <stdlib.h>
#define calloc __real_calloc /* the test's own network always gets what it needs */
#include "tests/unit/gossip_net.h"
#undef calloc

enum { NODES = 12 }; /* at every second one members sleep whenever they can */

static bool last_is_down(struct net *net) {
    for (int i = 0; i + 1 < net->count; i++)
        if (net->nodes[i].sees[net->count - 1] != MEMBER_DOWN) return false;
    return true;
}

static void nothing_is_wrong(struct net *net) {
    for (int i = 0; i < net->count; i++)
        if (net->nodes[i].gossip) assert_null(members_fault(net->nodes[i].gossip));
}

static void a_death_is_noticed_though_memory_is_short_all_the_time(void **state) {
    (void)state;
    for (long every = 2; every < 6; every++) {
        struct net *net = net_new_running(NODES, 21);
        net_run(net, 3000);
        shortage.every = every;
        net_kill(net, NODES - 1);
        bool noticed = net_until(net, last_is_down, 20000);
        shortage.every = 0;
        assert_true(noticed || net_until(net, last_is_down, 10000));
        assert_true(net_until(net, net_agreed, 20000));
        nothing_is_wrong(net);
        net_free(net);
    }
}

static void any_allocation_may_fail_while_one_is_suspected(void **state) {
    (void)state;
    long nth = 0;
    for (bool failed = true; failed; nth++) {
        struct net *net = net_new_running(4, 22);
        net_run(net, 3000);
        net_kill(net, 3);
        net_run(net, 400); /* so that most of what is asked for is asked for by the suspicion */
        shortage_after(nth);
        net_run(net, 1500);
        shortage_over();
        failed = shortage.failed && nth < 60;
        assert_true(net_until(net, last_is_down, 10000));
        nothing_is_wrong(net);
        net_free(net);
    }
    print_message("%ld allocations\n", nth);
    assert_true(nth > 10);
}

static void who_cannot_get_a_portrait_stays_awake_and_is_as_good(void **state) {
    (void)state;
    struct net *net = net_new_running(NODES, 23);
    for (long every = 1; every < 4; every++) {
        shortage.every = every;
        net_run(net, 5000);
        shortage.every = 0;
        nothing_is_wrong(net);
    }
    net_row(net, 0, "a/b", true);
    assert_true(net_until(net, net_agreed, 20000));
    for (int i = 1; i < NODES; i++)
        assert_true(net_has_row(net, i, 0, "a/b"));
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_is_noticed_though_memory_is_short_all_the_time),
        cmocka_unit_test(any_allocation_may_fail_while_one_is_suspected),
        cmocka_unit_test(who_cannot_get_a_portrait_stays_awake_and_is_as_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
