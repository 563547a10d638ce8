/* What many brokers say while nothing happens, and that the little they say is enough. */
#include "gossip_net.h"

enum { MANY = 40 }; /* more than eager_members_max */

static struct net *running(int count, uint64_t seed) {
    struct net *net = net_new_running(count, seed);
    net->delay_min_ms = 1;
    net->delay_max_ms = 5;
    return net;
}

static void who_is_idle_among_many_sends_five_datagrams_a_second(void **state) {
    (void)state;
    struct net *net = running(MANY, 5);
    net_run(net, 60000); /* until many have proved to one another where they are */
    uint64_t before = net->sent;
    net_run(net, 20000);
    uint64_t each = (net->sent - before) / MANY;
    print_message("%d datagrams of each in 20 s\n", (int)each);
    assert_in_range(each, 90, 115);
    net_free(net);
}

/* The node that follows this one in the ring of ids, or the one before it. */
static int beside(const struct net *net, int node, bool before) {
    struct member *member =
        before ? members_predecessor(net->nodes[node].gossip) : members_successor(net->nodes[node].gossip);
    for (int i = 0; i < net->count; i++)
        if (net->nodes[i].gossip && id_equal(&net->nodes[i].gossip->self->id, &member->id)) return i;
    fail_msg("no neighbour");
    return -1;
}

static bool seen_down_by_all(const struct net *net, const int *dead, int count) {
    for (int i = 0; i < net->count; i++)
        for (int j = 0; j < count; j++)
            if (net->nodes[i].gossip && net->nodes[i].sees[dead[j]] != MEMBER_DOWN) return false;
    return true;
}

/* How long until all the others hold all of them dead, at the worst of some seeds. Two are neighbours in the ring. */
static uint64_t worst_of_deaths(int together, uint64_t seeds) {
    uint64_t worst = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct net *net = running(MANY, seed);
        net_run(net, 3000 + seed * 137);
        int dead[2] = {(int)seed, beside(net, (int)seed, false)};
        uint64_t start = net->now_ms;
        for (int i = 0; i < together; i++)
            net_kill(net, dead[i]);
        while (!seen_down_by_all(net, dead, together) && net->now_ms < start + 10000)
            net_run(net, 10);
        if (net->now_ms - start > worst) worst = net->now_ms - start;
        net_free(net);
    }
    print_message("noticed by all after %d ms at the latest\n", (int)worst);
    return worst;
}

static void a_death_among_many_is_noticed_by_all_within_3_s(void **state) {
    (void)state;
    assert_in_range(worst_of_deaths(1, 3), 500, 3000);
}

/* Who would have asked the second is dead too: whoever is behind it misses its questions, and whoever asked the first
 * goes on to it at once. */
static void neighbours_that_die_together_are_noticed_within_4_s(void **state) {
    (void)state;
    assert_in_range(worst_of_deaths(2, 4), 500, 4000);
}

static void the_neighbours_in_the_ring_are_each_others(void **state) {
    (void)state;
    struct net *net = running(7, 3);
    bool passed[7] = {false};
    for (int i = 0, node = 0; i < 7; i++) {
        int next = beside(net, node, false);
        assert_int_equal(beside(net, next, true), node);
        assert_false(passed[next]);
        passed[next] = true;
        node = next;
    }
    net_free(net);
}

/* Questions of the one before us stop, and it is asked; nobody else would do so. */
static void who_stops_asking_is_asked(void **state) {
    (void)state;
    struct net *net = running(MANY, 9);
    net_run(net, 20000);
    int before = beside(net, 0, true);
    struct gossip_counters at_first, later;
    gossip_read_counters(net->nodes[0].gossip, &at_first);
    net_run(net, 10000);
    gossip_read_counters(net->nodes[0].gossip, &later);
    uint64_t usual = later.probes_sent - at_first.probes_sent;
    net->nodes[before].gossip->next_probe_ms = NEVER; /* it asks nobody in turn any more */
    net_run(net, 10000);
    at_first = later;
    gossip_read_counters(net->nodes[0].gossip, &later);
    assert_in_range(later.probes_sent - at_first.probes_sent, usual + 10, usual + 22);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_idle_among_many_sends_five_datagrams_a_second),
        cmocka_unit_test(a_death_among_many_is_noticed_by_all_within_3_s),
        cmocka_unit_test(neighbours_that_die_together_are_noticed_within_4_s),
        cmocka_unit_test(the_neighbours_in_the_ring_are_each_others),
        cmocka_unit_test(who_stops_asking_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
