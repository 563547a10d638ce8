/* What happens is counted: metrics and the admin's tables say what these say. */
#include "gossip_net.h"

static struct gossip_counters counted(const struct net *net, int at) {
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[at].gossip, &counters);
    return counters;
}

static bool sees_suspect(struct net *net) {
    return net->nodes[0].sees[1] == MEMBER_SUSPECT;
}

static void each_datagram_is_counted_where_it_goes_and_where_it_comes(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 11);
    net_run(net, 3000);
    while (net->packets)
        net_run(net, 1);
    uint64_t sent = 0, received = 0, bytes_sent = 0, bytes_received = 0;
    for (int i = 0; i < 3; i++) {
        struct gossip_counters counters = counted(net, i);
        sent += counters.datagrams_sent;
        received += counters.datagrams_received;
        bytes_sent += counters.bytes_sent;
        bytes_received += counters.bytes_received;
    }
    assert_int_equal(sent, net->sent);
    assert_int_equal(received, sent);
    assert_int_equal(bytes_received, bytes_sent);
    net_free(net);
}

static void each_entry_is_counted_and_its_repetitions_apart(void **state) {
    (void)state;
    struct net *net = net_new_running(2, 12);
    net_run(net, 1000);
    for (int i = 0; i < 3; i++) {
        char filter[16];
        snprintf(filter, sizeof filter, "a/%d", i);
        net_row(net, 0, filter, true);
        net_run(net, 1000);
    }
    assert_int_equal(counted(net, 1).entries_received, 3);
    uint64_t repeated = counted(net, 1).entries_repeated;
    net->cut[1][0] = true; /* nobody hears that it had the next one */
    net_row(net, 0, "a/3", true);
    net_run(net, 500);
    assert_int_equal(counted(net, 1).entries_received, 4);
    assert_true(counted(net, 1).entries_repeated > repeated);
    net_free(net);
}

static void a_checkpoint_is_counted_once_at_either_end(void **state) {
    (void)state;
    struct net *net = net_new(2, 13);
    net_start(net, 0);
    for (int i = 0; i < 300; i++) {
        char filter[32];
        snprintf(filter, sizeof filter, "site/row/%d", i);
        net_row(net, 0, filter, true);
        net_run(net, 25);
    }
    net_start(net, 1);
    assert_true(net_until(net, net_agreed, 5000));
    assert_int_equal(counted(net, 0).checkpoints_sent, 1);
    assert_int_equal(counted(net, 1).checkpoints_received, 1);
    assert_true(counted(net, 0).filter_bytes > 300 * 10);
    net_free(net);
}

static void who_is_refused_or_suspected_is_counted(void **state) {
    (void)state;
    struct net *net = net_new(2, 14);
    strcpy(net->nodes[1].token, "bad/2");
    for (int i = 0; i < 2; i++)
        net_start(net, i);
    net_run(net, 5000);
    assert_true(counted(net, 0).refused_token > 0);
    assert_int_equal(counted(net, 0).members_alive, 1);
    net_free(net);
    net = net_new_running(2, 15);
    net_kill(net, 1);
    assert_true(net_until(net, sees_suspect, 5000));
    assert_int_equal(counted(net, 0).members_suspect, 1);
    assert_int_equal(counted(net, 0).members_alive, 1);
    net_free(net);
}

static void two_with_one_key_are_counted(void **state) {
    (void)state;
    struct net *net = net_new(4, 16);
    net_clone(net, 3, 1);
    for (int i = 0; i < 4; i++)
        net_start(net, i);
    net_run(net, 20000);
    assert_true(counted(net, 1).clones_seen + counted(net, 3).clones_seen > 0);
    assert_true(counted(net, 0).clones_seen > 0); /* one of them says so */
    net_free(net);
}

static void what_goes_over_links_is_counted(void **state) {
    (void)state;
    struct net *net = net_new(2, 17);
    net->links = true;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            net->cut[i][j] = true;
    for (int i = 0; i < 2; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 20000));
    net_run(net, 20000);
    uint64_t sent = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(counted(net, i).members_by_link, 1);
        assert_true(counted(net, i).link_packets_received > 0);
        sent += counted(net, i).link_packets_sent;
    }
    assert_in_range(sent, net->link_packets, net->link_packets + 10); /* a few while no link was up */
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_datagram_is_counted_where_it_goes_and_where_it_comes),
        cmocka_unit_test(each_entry_is_counted_and_its_repetitions_apart),
        cmocka_unit_test(a_checkpoint_is_counted_once_at_either_end),
        cmocka_unit_test(who_is_refused_or_suspected_is_counted),
        cmocka_unit_test(two_with_one_key_are_counted),
        cmocka_unit_test(what_goes_over_links_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
