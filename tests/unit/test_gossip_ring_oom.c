/* A key ring that is given, passed on and found to be in conflict while memory is short: it is used, kept and known
 * everywhere all the same, and none of it twice. P22. */
#include "tests/unit/oom.h"

#include <stdlib.h>
#define calloc __real_calloc /* the test's own network always gets what it needs */
#include "tests/unit/gossip_net.h"
#undef calloc

static void give(struct net *net, int node, uint8_t number, const char *keys) {
    uint8_t ring[16];
    size_t size = net_ring(number, keys, ring);
    assert_int_equal(gossip_take_ring(net->nodes[node].gossip, net->now_ms, ring, size, NULL), GOSSIP_RING_TAKEN);
    net_drain(net, node);
}

static bool all_use_it_and_know_it(struct net *net) {
    struct member_info first, info;
    if (!gossip_member_at(net->nodes[0].gossip, net->now_ms, 0, &first) || first.ring == 0) return false;
    for (int i = 0; i < net->count; i++) {
        if (net->nodes[i].ring_size == 0) return false; /* it was not told to keep it */
        for (size_t j = 0; j < (size_t)net->count; j++)
            if (!gossip_member_at(net->nodes[i].gossip, net->now_ms, j, &info) || info.ring != first.ring ||
                memcmp(info.ring_mark, first.ring_mark, sizeof info.ring_mark) != 0)
                return false;
    }
    return net_agreed(net);
}

static struct net *running(int count) {
    struct net *net = net_new(count, 7);
    net->links = true;
    for (int i = 0; i < count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 20000));
    return net;
}

/* The failing one is at the broker that is given it first, or at one that hears of it. */
static void any_allocation_may_fail_when_a_ring_comes(void **state) {
    (void)state;
    long nth = 0;
    for (bool failed = true; failed; nth++) {
        struct net *net = running(2);
        shortage_after(nth);
        give(net, 0, 1, "Zn");
        net_run(net, 200);
        shortage_over();
        failed = shortage.failed;
        if (!net_until(net, all_use_it_and_know_it, 10000)) fail_msg("allocation %ld: no recovery", nth);
        for (int i = 0; i < 2; i++)
            assert_int_equal(net->nodes[i].event_count[GOSSIP_RING], 1);
        net_free(net);
    }
    print_message("%ld allocations\n", nth);
    assert_true(nth > 5);
}

static void rings_change_while_memory_is_short_all_the_time(void **state) {
    (void)state;
    for (long every = 2; every < 8; every++) {
        struct net *net = running(3);
        shortage.every = every;
        give(net, 0, 1, "Zn");
        net_run(net, 1500);
        give(net, 0, 2, "nZ");
        net_run(net, 1500);
        give(net, 1, 3, "n");
        give(net, 2, 3, "m"); /* two admins at once */
        net_run(net, 1500);
        shortage.every = 0;
        if (!net_until(net, all_use_it_and_know_it, 30000)) fail_msg("each %ldth: no recovery", every);
        net_free(net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail_when_a_ring_comes),
        cmocka_unit_test(rings_change_while_memory_is_short_all_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
