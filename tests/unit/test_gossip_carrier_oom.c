/* Two brokers that reach each other over links only, once for each allocation that fails: nothing crashes, nothing
 * leaks, and once memory is there again they agree. */
#include "tests/unit/gossip_net.h"

#include "tests/unit/oom.h"

static void scenario(struct net *net) {
    struct member_id one = net_id(net, 1);
    struct gossip *gossip = net->nodes[0].gossip;
    gossip_link_up(gossip, net->now_ms, &one);
    net_row(net, 0, "a/#", true);
    gossip_tick(gossip, net->now_ms + 300);
    gossip_link_down(gossip, net->now_ms, &one);
    gossip_link_up(gossip, net->now_ms, &one);
    struct gossip_link_packet packet;
    struct gossip_link_wish wish;
    while (gossip_next_link_packet(gossip, &packet))
        gossip_link_receive(net->nodes[1].gossip, net->now_ms, &(struct member_id){{0}}, packet.bytes, packet.size);
    while (gossip_next_link_wish(gossip, &wish))
        continue;
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    long nth = 0;
    for (bool failed = true; failed; nth++) {
        struct net *net = net_new(2, 5);
        net->links = true;
        net->cut[0][1] = net->cut[1][0] = true;
        net_start(net, 0);
        net_start(net, 1);
        assert_true(net_until(net, net_agreed, 20000));
        shortage_after(nth);
        scenario(net);
        shortage_over();
        failed = shortage.failed;
        if (!net_until(net, net_agreed, 30000)) fail_msg("no recovery");
        net_row(net, 0, "b/#", true);
        net_run(net, 5000);
        assert_true(net_has_row(net, 1, 0, "b/#"));
        net_free(net);
    }
    assert_true(nth > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
