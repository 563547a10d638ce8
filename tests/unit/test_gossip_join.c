#include "gossip_net.h"

static void three_brokers_that_know_one_address_find_each_other_in_under_a_second(void **state) {
    (void)state;
    struct net *net = net_new(3, 1);
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    uint64_t start = net->now_ms;
    assert_true(net_until(net, net_all_alive, 1000));
    printf("all alive after %llu ms, %llu datagrams\n", (unsigned long long)(net->now_ms - start),
           (unsigned long long)net->sent);
    net_free(net);
}

static bool row_is_everywhere(struct net *net) {
    for (int i = 0; i < net->count; i++)
        if (net->nodes[i].gossip && !net_has_row(net, i, 1, "sensors/+/heat")) return false;
    return true;
}

static bool owner_knows_that_all_know(struct net *net) {
    for (int i = 0; i < net->count; i++)
        if (i != 1 && net->nodes[i].gossip && net->nodes[1].knows[i] < 1) return false;
    return true;
}

static void a_row_is_known_to_all_and_its_owner_knows_in_one_round_trip(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 2);
    net_run(net, 1000);
    assert_int_equal(net_row(net, 1, "sensors/+/heat", true), 1);
    assert_true(net_until(net, row_is_everywhere, 2));
    assert_true(net_until(net, owner_knows_that_all_know, 4));
    assert_true(net_tables_equal(net));
    net_free(net);
}

/* Proofs of addresses are exchanged within the few packets that a join takes anyway, in nearly whatever order these
 * arrive; else the next question settles it. */
static void who_comes_back_is_known_within_a_few_round_trips(void **state) {
    (void)state;
    int slow = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct net *net = net_new_running(3, seed);
        net_run(net, 2000 + seed * 37);
        net_kill(net, 1);
        net_run(net, seed % 2 == 0 ? 100 : 8000); /* not missed yet, or declared down */
        net->nodes[1].epoch = 2;
        net->nodes[1].bootstrap[1] = 2;
        net->nodes[1].bootstrap_count = 2;
        net_start(net, 1);
        for (int i = 0; i < 3; i++)
            net->nodes[1].sees[i] = MEMBER_UNVERIFIED;
        slow += !net_until(net, net_all_alive, 30);
        if (!net_until(net, net_all_alive, 270)) fail_msg("seed %d: not within 300 ms", (int)seed);
        net_free(net);
    }
    assert_in_range(slow, 0, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_back_is_known_within_a_few_round_trips),
        cmocka_unit_test(three_brokers_that_know_one_address_find_each_other_in_under_a_second),
        cmocka_unit_test(a_row_is_known_to_all_and_its_owner_knows_in_one_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
