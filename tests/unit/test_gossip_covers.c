/* Covers behind the door of the gossip: what other brokers see of them. */
#include "gossip_net.h"

#define ROWS_MAX 512

static void put_devices(struct net *net, int from, int to, bool put) {
    for (int i = from; i < to; i++) {
        char filter[64];
        snprintf(filter, sizeof filter, "site/hall-%d/dev-%d/t", i % 7, i);
        assert_int_not_equal(net_row(net, 0, filter, put), 0);
        if (i % 500 == 499) net_run(net, 20);
    }
}

static bool has_devices(struct net *net, int at) {
    return net_has_row(net, at, 0, "site/hall-1/dev-1/t");
}

static bool is_split(struct net *net) {
    return has_devices(net, 1) && net_tables_equal(net);
}

static void other_brokers_see_covers_come_and_go(void **unused) {
    (void)unused;
    struct net *net = net_new_running(3, 7);
    put_devices(net, 0, 20000, true);
    assert_true(net_until(net, net_agreed, 10000));
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_int_equal(counters.filters_own, 20000);
    assert_true(counters.rows_own <= ROWS_MAX && counters.rows_merged > 0);
    assert_true(net_has_row(net, 1, 0, "site/hall-1/+/t"));
    put_devices(net, 300, 20000, false);
    assert_true(net_until(net, is_split, 20000));
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_int_equal(counters.rows_merged, 0);
    assert_int_equal(counters.rows_own, 300);
    assert_false(net_has_row(net, 1, 0, "site/hall-1/+/t"));
    net_free(net);
}

static void a_cover_that_lets_through_too_much_is_a_warning(void **unused) {
    (void)unused;
    struct net *net = net_new_running(2, 8);
    struct gossip *gossip = net->nodes[0].gossip;
    put_devices(net, 0, 2000, true);
    for (int i = 0; i < 700; i++) {
        char topic[64];
        int size = snprintf(topic, sizeof topic, "site/hall-1/dev-%d/t", 5000 + i);
        gossip_note_unwanted(gossip, net->now_ms, GOSSIP_NEWSUB, topic, (size_t)size);
        gossip_note_wanted(gossip, net->now_ms, GOSSIP_NEWSUB, 50);
        net_run(net, 100);
    }
    assert_int_equal(net->nodes[0].event_count[GOSSIP_WARNING], 1);
    struct gossip_counters counters;
    gossip_read_counters(gossip, &counters);
    assert_int_equal(counters.over_covered, 1);
    assert_true(counters.unwanted > 0);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_brokers_see_covers_come_and_go),
        cmocka_unit_test(a_cover_that_lets_through_too_much_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
