/* Large transfers: over links, paced, by turns, going on where they broke off; and by datagrams where no link is to be
 * had. */
#include "tests/unit/gossip_net.h"

#include "gossip/inspect.h"

#define ROWS 480
#define ROW_SIZE 600u

static struct net *net_with_links(int count, uint64_t seed) {
    struct net *net = net_new(count, seed);
    net->links = true;
    return net;
}

/* About 280 kB of rows. */
static void fill(struct net *net, int at) {
    char filter[ROW_SIZE + 1];
    for (int i = 0; i < ROWS; i++) {
        memset(filter, 'x', ROW_SIZE);
        filter[ROW_SIZE] = '\0';
        snprintf(filter, 32, "site-%d/row-%d/", at, i);
        filter[strlen(filter)] = 'y';
        net_row(net, at, filter, true);
    }
}

static struct gossip_counters counters_of(const struct net *net, int at) {
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[at].gossip, &counters);
    return counters;
}

static uint64_t rows_at(const struct net *net, int at) {
    return counters_of(net, at).rows_others;
}

/* Brokers 0 to count - 1 run and hold the rows of the first. */
static struct net *filled(int running, int count, uint64_t seed) {
    struct net *net = net_with_links(count, seed);
    for (int i = 0; i < running; i++)
        net_start(net, i);
    net_run(net, 5000);
    fill(net, 0);
    net_run(net, 20000);
    for (int i = 1; i < running; i++)
        assert_int_equal(rows_at(net, i), ROWS);
    return net;
}

/* P25 */
static int begun_of(const struct net *net, int owner) {
    struct member_id id = net_id(net, owner);
    int begun = 0;
    for (int i = 0; i < net->count; i++)
        begun += i != owner && (rows_at(net, i) > 0 || gossip_inspect_staged(net->nodes[i].gossip, &id) > 0);
    return begun;
}

static void large_checkpoint_comes_over_a_link(void **state) {
    (void)state;
    struct net *net = filled(3, 4, 1);
    uint64_t links_before = net->link_bytes;
    net_start(net, 3);
    assert_true(net_until(net, net_agreed, 15000));
    assert_int_equal(rows_at(net, 3), ROWS);
    assert_true(net->link_bytes - links_before > ROWS * ROW_SIZE * 9 / 10);
    assert_true(counters_of(net, 3).bytes_received < ROWS * ROW_SIZE / 4); /* by datagram */
    net_free(net);
}

static void without_links_it_comes_by_datagrams(void **state) {
    (void)state;
    struct net *net = filled(2, 3, 2);
    net->links = false;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            if (net->link[a][b]) net_link_set(net, a, b, false);
    net_start(net, 2);
    assert_true(net_until(net, net_agreed, 30000));
    assert_int_equal(rows_at(net, 2), ROWS);
    net_free(net);
}

/* P25: a storm is served by turns, at a pace. */
static void those_who_come_at_once_are_served_by_turns(void **state) {
    (void)state;
    struct net *net = net_with_links(14, 3);
    for (int i = 0; i < 14; i++) {
        net->nodes[i].limits.transfers_max = 2;
        net->nodes[i].limits.transfer_bytes_per_s = 200000;
    }
    net_start(net, 0);
    net_run(net, 1000);
    fill(net, 0);
    net_run(net, 6000); /* who hears nobody waits 5 s for what others remember of him */
    uint64_t start_ms = net->now_ms;
    for (int i = 1; i < 14; i++)
        net_start(net, i);
    uint64_t second_ms = net->now_ms, sent = counters_of(net, 0).link_bytes_sent, most = 0;
    while (!net_agreed(net) && net->now_ms < start_ms + 120000) {
        net_run(net, 100);
        if (net->now_ms < start_ms + 2000) assert_in_range(begun_of(net, 0), 0, 2);
        if (net->now_ms < second_ms + 1000) continue;
        uint64_t now_sent = counters_of(net, 0).link_bytes_sent;
        most = now_sent - sent > most ? now_sent - sent : most;
        sent = now_sent;
        second_ms = net->now_ms;
    }
    assert_true(net_agreed(net));
    for (int i = 1; i < 14; i++)
        assert_int_equal(rows_at(net, i), ROWS);
    assert_true(counters_of(net, 0).transfers_put_off > 0);
    assert_true(most < 200000 + 131072 + 60000); /* the pace, the burst, and all that is small */
    net_free(net);
}

/* P25: what came is not asked for again, and the rest comes from another. */
static void transfer_goes_on_with_another(void **state) {
    (void)state;
    for (int how = 0; how < 2; how++) {
        struct net *net = filled(3, 4, 4 + (uint64_t)how);
        net->delay_min_ms = net->delay_max_ms = 20;
        net_start(net, 3);
        uint64_t before = counters_of(net, 3).link_bytes_received;
        for (int i = 0; i < 3000 && counters_of(net, 3).link_bytes_received < before + 100000; i++)
            net_run(net, 5);
        assert_true(rows_at(net, 3) == 0); /* on its way */
        for (int i = 0; i < 2; i++) {
            if (how == 0 && !net->link[3][i]) continue;
            net_cut_link(net, 3, i, true);
            net->cut[3][i] = net->cut[i][3] = true;
            if (how == 0) break;
        }
        assert_true(net_until(net, net_tables_equal, 30000));
        assert_int_equal(rows_at(net, 3), ROWS);
        uint64_t received = counters_of(net, 3).link_bytes_received + counters_of(net, 3).bytes_received;
        assert_true(received <
                    (uint64_t)ROWS * ROW_SIZE * 2); /* half more for proofs and headers, and what was under way */
        net_free(net);
    }
}

static void cut_off(struct net *net, int at, bool cut) {
    for (int i = 0; i < net->count; i++) {
        if (i == at) continue;
        net_cut_link(net, at, i, cut);
        net->cut[at][i] = net->cut[i][at] = cut;
    }
}

/* What broker 2 receives over links until it has all of broker 0, by a radio of 50 kB a second that is cut so often on
 * the way. */
static uint64_t received_by_radio(int cuts) {
    struct net *net = filled(2, 3, 14);
    net->link_bytes_per_s = 50000;
    net->delay_min_ms = 150;
    net->delay_max_ms = 250;
    net_start(net, 2);
    for (int i = 0; i < cuts; i++) {
        uint64_t before = counters_of(net, 2).link_bytes_received, until_ms = net->now_ms + 60000;
        while (counters_of(net, 2).link_bytes_received < before + 90000 && net->now_ms < until_ms)
            net_run(net, 10);
        assert_int_equal(rows_at(net, 2), 0); /* on its way */
        cut_off(net, 2, true);
        net_run(net, 20000);
        assert_int_not_equal(net->nodes[0].sees[2], MEMBER_ALIVE);
        cut_off(net, 2, false);
    }
    assert_true(net_until(net, net_tables_equal, 60000));
    assert_int_equal(rows_at(net, 2), ROWS);
    uint64_t received = counters_of(net, 2).link_bytes_received;
    net_free(net);
    return received;
}

/* P25: nor by a slow radio, which is not only slow: what was there before a cut is there behind it. */
static void what_came_before_a_cut_is_not_sent_again_by_a_slow_radio(void **state) {
    (void)state;
    uint64_t whole = received_by_radio(0), cut = received_by_radio(3);
    print_message("%d B, and %d B with three cuts\n", (int)whole, (int)cut);
    assert_in_range(whole, ROWS * ROW_SIZE, ROWS * ROW_SIZE * 7 / 4);
    assert_in_range(cut, whole / 2, whole * 11 / 10); /* some comes by datagrams, until there is a link again */
}

static void many_owners_that_differ_are_compared_over_a_link(void **state) {
    (void)state;
    struct net *net = net_with_links(14, 6);
    for (int i = 0; i < 14; i++)
        net->nodes[i].limits.datagram_buckets_max = 1;
    for (int i = 0; i < 13; i++)
        net_start(net, i);
    net_run(net, 30000);
    for (int i = 0; i < 13; i++)
        for (int row = 0; row < 5; row++) {
            char filter[40];
            snprintf(filter, sizeof filter, "site-%d/%d", i, row);
            net_row(net, i, filter, true);
        }
    net_run(net, 20000);
    assert_true(net_agreed(net));
    uint64_t dials = net->dials, packets = net->link_packets;
    net_start(net, 13);
    assert_true(net_until(net, net_agreed, 30000));
    assert_int_equal(rows_at(net, 13), 13 * 5);
    assert_true(net->dials > dials && net->link_packets > packets + 10);
    net_free(net);
}

/* Whoever puts us off for ever does not keep us from the others. */
static void helper_that_never_has_time_is_gone_around(void **state) {
    (void)state;
    struct net *net = net_with_links(4, 7);
    net->nodes[0].limits.transfer_bytes_per_s = net->nodes[1].limits.transfer_bytes_per_s = 1;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_run(net, 5000);
    fill(net, 0);
    net_run(net, 20000);
    net_start(net, 3);
    assert_true(net_until(net, net_agreed, 20000));
    assert_int_equal(rows_at(net, 3), ROWS);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_checkpoint_comes_over_a_link),
        cmocka_unit_test(without_links_it_comes_by_datagrams),
        cmocka_unit_test(those_who_come_at_once_are_served_by_turns),
        cmocka_unit_test(transfer_goes_on_with_another),
        cmocka_unit_test(what_came_before_a_cut_is_not_sent_again_by_a_slow_radio),
        cmocka_unit_test(many_owners_that_differ_are_compared_over_a_link),
        cmocka_unit_test(helper_that_never_has_time_is_gone_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
