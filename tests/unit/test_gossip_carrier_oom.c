/* Two brokers that reach each other over links only, once for each allocation that fails: nothing crashes, nothing
 * leaks, and once memory is there again they agree. */
#include "tests/unit/gossip_net.h"

#include "tests/unit/oom.h"

static void scenario(struct net *net) {
    struct member_id one = net_id(net, 1);
    struct gossip *gossip = net->nodes[0].gossip;
    gossip_link_up(gossip, net->now_ms, &one);
    gossip_row_put(gossip, net->now_ms, GOSSIP_NEWSUB, "a/#", 3);
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
        net_run(net, 20000); /* by now they know that only the link is left */
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

/* Each so many allocations fail while a packet is taken in and answered; the network's own are made in between. */
static void packets_that_find_no_memory_are_counted_and_told_again(void **state) {
    (void)state;
    static const long rates[] = {2, 3, 7};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct net *net = net_new(3, 6 + r);
        struct gossip_counters counters;
        net->links = true;
        for (int i = 0; i < 9; i++)
            net->cut[i / 3][i % 3] = true;
        for (int i = 0; i < 3; i++)
            net_start(net, i);
        assert_true(net_until(net, net_agreed, 20000));
        net_run(net, 20000); /* by now they know that only the link is left */
        for (int i = 0; i < 200; i++) {
            char filter[16];
            snprintf(filter, sizeof filter, "m/%d", i % 50);
            net_row(net, i % 3, filter, i % 5 != 0);
            struct net_packet *packet = net->packets;
            bool by_link = packet && packet->kind == NET_LINK_PACKET && net->link[packet->to][packet->from];
            net->now_ms += 25; /* the row is due to be told */
            shortage.every = rates[r];
            if (by_link) {
                struct member_id from = net_id(net, packet->from);
                net->packets = packet->next;
                gossip_link_receive(net->nodes[packet->to].gossip, net->now_ms, &from, packet->bytes, packet->size);
                free(packet);
            }
            gossip_tick(net->nodes[i % 3].gossip, net->now_ms);
            shortage.every = 0;
            for (int j = 0; j < 3; j++)
                net_drain(net, j);
            net_run(net, 20);
        }
        uint64_t dropped = 0;
        for (int i = 0; i < 3; i++) {
            gossip_read_counters(net->nodes[i].gossip, &counters);
            dropped += counters.queue_dropped;
        }
        assert_true(dropped > 0);
        assert_true(net_until(net, net_agreed, 60000));
        net_free(net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(packets_that_find_no_memory_are_counted_and_told_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
