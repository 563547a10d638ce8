/* P12: how many members are kept, who makes room for whom, and how much waits to be sent. */
#include "gossip_forger.h"

#include "gossip/inspect.h"
#include "gossip/state.h"

static struct gossip_sizes sizes_at(const struct net *net, int at) {
    struct gossip_sizes sizes;
    gossip_inspect_sizes(net->nodes[at].gossip, &sizes);
    return sizes;
}

/* Those who come to a full table are not taken in, there; nobody who is alive makes room for them. */
static void a_full_table_takes_in_nobody_and_loses_nobody_alive(void **state) {
    (void)state;
    struct net *net = net_new(8, 500);
    net->nodes[0].limits.members_max = 4;
    for (int i = 0; i < 4; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 10000));
    assert_int_equal(sizes_at(net, 0).members, 4);
    for (int i = 4; i < 8; i++) {
        net->nodes[i].bootstrap[0] = 1;
        net_start(net, i);
    }
    for (int i = 0; i < 300; i++) {
        net_run(net, 50);
        assert_int_equal(sizes_at(net, 0).members, 4);
    }
    for (int i = 1; i < 4; i++)
        assert_int_equal(net->nodes[0].sees[i], MEMBER_ALIVE);
    for (int i = 4; i < 8; i++) {
        assert_int_not_equal(net->nodes[0].sees[i], MEMBER_ALIVE);
        assert_int_equal(net->nodes[1].sees[i], MEMBER_ALIVE); /* it has room */
    }
    assert_int_equal(net->nodes[0].down_events, 0);
    assert_int_equal(net->nodes[0].gossip->members.quiet_room, 4); /* no memory for whom there is no place */
    net_free(net);
}

/* Who has the gossip key invents brokers without end: they take one another's places, and not even that of a member
 * that is down. */
static void strangers_take_only_the_places_of_strangers(void **state) {
    (void)state;
    struct net *net = net_new_running(4, 501);
    struct member_id dead = net_id(net, 3);
    net_run(net, 1000);
    net_kill(net, 3);
    net_run(net, 8000);
    assert_int_equal(net->nodes[0].sees[3], MEMBER_DOWN);
    struct gossip_address den = {.family = 4, .ip = {192, 0, 2, 66}, .port = 666};
    struct forger forger = forger_new(net, 0, 3, &den);
    size_t most = 0;
    for (uint64_t i = 0; i < 3000; i++) {
        for (size_t b = 0; b < 16; b++)
            forger.header.id.bytes[b] = (uint8_t)net_random(net);
        forger_say(&forger, &(struct message){.kind = MESSAGE_PING, .number = 2 + 2 * i});
        if (i % 5 == 0) net_run(net, 10);
        size_t now = sizes_at(net, 0).members_unverified;
        most = now > most ? now : most;
    }
    assert_int_equal(most, UNVERIFIED_MAX);
    struct gossip_inspected found;
    assert_true(gossip_inspect_find(net->nodes[0].gossip, &dead, &found));
    assert_true(found.known);
    for (int i = 1; i < 3; i++)
        assert_int_equal(net->nodes[0].sees[i], MEMBER_ALIVE);
    net_free(net);
}

/* P16: a socket that takes nothing for a while: what waits has a bound, and what is dropped is counted. */
static void a_queue_that_nobody_empties_stays_within_its_bound(void **state) {
    (void)state;
    struct net *net = net_new(4, 502);
    net->nodes[0].limits.datagrams_queued_max = 16;
    for (int i = 0; i < 4; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 10000));
    struct gossip *gossip = net->nodes[0].gossip;
    for (int i = 0; i < 500; i++) {
        char filter[300];
        snprintf(filter, sizeof filter, "full/%0200d", i);
        gossip_row_put(gossip, net->now_ms, GOSSIP_NEWSUB, filter, strlen(filter));
        net->now_ms += 20;
        gossip_tick(gossip, net->now_ms);
        assert_true(sizes_at(net, 0).datagrams <= 16);
    }
    struct gossip_counters counters;
    gossip_read_counters(gossip, &counters);
    assert_true(counters.queue_dropped > 0);
    net_drain(net, 0);
    assert_true(net_until(net, net_agreed, 30000));
    net_free(net);
}

/* P14: what does not fit into a datagram begins the next one, at once. */
static void what_does_not_fit_begins_the_next_datagram(void **state) {
    (void)state;
    struct net *net = net_new_running(2, 503);
    struct gossip *gossip = net->nodes[0].gossip;
    struct gossip_datagram datagram;
    net_run(net, 1000);
    size_t said = 0, sent = 0;
    net_row(net, 0, "first", true); /* goes at once; what comes now gathers for a moment */
    for (int i = 0; i < 24; i++) {  /* three to an entry, eight entries */
        char filter[300];
        snprintf(filter, sizeof filter, "much/%0250d", i);
        gossip_row_put(gossip, net->now_ms, GOSSIP_NEWSUB, filter, strlen(filter));
        said += strlen(filter);
    }
    net->now_ms += 25;
    gossip_tick(gossip, net->now_ms);
    while (gossip_next_datagram(gossip, &datagram)) {
        assert_true(datagram.size <= GOSSIP_DATAGRAM_MAX);
        sent += datagram.size;
    }
    assert_true(sent > said);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_table_takes_in_nobody_and_loses_nobody_alive),
        cmocka_unit_test(strangers_take_only_the_places_of_strangers),
        cmocka_unit_test(a_queue_that_nobody_empties_stays_within_its_bound),
        cmocka_unit_test(what_does_not_fit_begins_the_next_datagram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
