/* By which way members are reached when datagrams do not pass: from the start, later, one way, for one pair; and back.
 */
#include "tests/unit/gossip_forger.h"

static void block(struct net *net, int a, int b, bool blocked) {
    net->cut[a][b] = net->cut[b][a] = blocked;
}

static void block_all(struct net *net, bool blocked) {
    for (int a = 0; a < net->count; a++)
        for (int b = 0; b < net->count; b++)
            net->cut[a][b] = blocked;
}

static struct net *net_with_links(int count, uint64_t seed) {
    struct net *net = net_new(count, seed);
    net->links = true;
    return net;
}

static uint64_t deaths(const struct net *net) {
    uint64_t sum = 0;
    for (int i = 0; i < net->count; i++)
        sum += net->nodes[i].down_events;
    return sum;
}

static struct member_info info_of(struct net *net, int at, int about) {
    struct member_info info;
    struct member_id id = net_id(net, about);
    assert_true(gossip_member_find(net->nodes[at].gossip, net->now_ms, &id, &info));
    return info;
}

static bool all_by_link(struct net *net) {
    for (int i = 0; i < net->count; i++)
        for (int j = 0; j < net->count; j++)
            if (i != j && !info_of(net, i, j).by_link) return false;
    return true;
}

static bool none_by_link(struct net *net) {
    for (int i = 0; i < net->count; i++)
        for (int j = 0; j < net->count; j++)
            if (i != j && info_of(net, i, j).by_link) return false;
    return true;
}

/* ---- P19 ---- */

static void brokers_without_datagrams_find_each_other_over_links(void **state) {
    (void)state;
    for (int count = 2; count <= 8; count += 3) {
        struct net *net = net_with_links(count, (uint64_t)count);
        block_all(net, true);
        for (int i = 0; i < count; i++)
            net_start(net, i);
        assert_true(net_until(net, net_agreed, 15000));
        net_row(net, count - 1, "a/+/b", true);
        net_run(net, 3000);
        for (int i = 0; i < count; i++)
            assert_true(net_has_row(net, i, count - 1, "a/+/b"));
        uint64_t deaths_before = deaths(net);
        net_run(net, 120000);
        assert_true(net_agreed(net));
        assert_int_equal(deaths(net), deaths_before);
        assert_true(all_by_link(net));
        net_free(net);
    }
}

/* It has links only, and with one broker only: nobody tells it its address, so its head names none, and another that
 * starts later knows no way to it. The one that has a way asks it. */
static void who_is_reached_by_others_only_is_seen_by_a_newcomer(void **state) {
    (void)state;
    struct net *net = net_with_links(4, 29163);
    struct net_node *last = &net->nodes[3];
    last->announce_nothing = last->hidden = true;
    for (int i = 0; i < 3; i++) {
        block(net, i, 3, true);
        if (i > 0) net_cut_link(net, i, 3, true);
    }
    net_start(net, 0);
    net_start(net, 3);
    net_run(net, 10000);
    assert_int_equal(net->nodes[0].sees[3], MEMBER_ALIVE);
    assert_int_equal(info_of(net, 0, 3).address.family, 0);
    net_start(net, 1);
    net_start(net, 2);
    assert_true(net_until(net, net_all_alive, 3000));
    net_run(net, 60000);
    assert_true(net_all_alive(net));
    net_free(net);
}

static bool last_two_see_each_other(struct net *net) {
    return net->nodes[3].sees[4] == MEMBER_ALIVE && net->nodes[4].sees[3] == MEMBER_ALIVE;
}

static bool loses_what_asks_for_help(struct net *net, int from, int to, const struct gossip_datagram *datagram) {
    (void)to;
    uint8_t plain[SEAL_PLAIN_MAX];
    struct packet_header header;
    struct wire_in in = net_open_packet(net, datagram, plain, &header);
    struct message message;
    while (message_get(&in, &message))
        if (from == 3 && message.kind == MESSAGE_PING_REQ) return true;
    return false;
}

/* At first no help comes, while much is said of it and nothing heard. */
static void who_is_reached_by_others_only_is_seen_again_after_a_restart(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct net *net = net_new(5, seed);
        block(net, 3, 4, true);
        for (int i = 0; i < net->count; i++)
            net_start(net, i);
        assert_true(net_until(net, net_all_alive, 40000));
        net_kill(net, 4);
        net_run(net, 10000);
        assert_int_equal(net->nodes[3].sees[4], MEMBER_DOWN);
        net->nodes[4].epoch++;
        net_start(net, 4);
        net->loses = loses_what_asks_for_help;
        for (int i = 0; i < 130; i++) { /* its rows change all the time */
            if (i == 30) net->loses = NULL;
            net_row(net, 4, "a/+/b", i % 2 == 0);
            net_run(net, 300);
        }
        if (!last_two_see_each_other(net)) fail_msg("seed %llu: not seen in 30 s", (unsigned long long)seed);
        net_free(net);
    }
}

/* P19: no rhythm of join and fail. */
static void datagrams_that_cease_are_no_death(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct net *net = net_with_links(seed < 4 ? 2 : 5, seed);
        for (int i = 0; i < net->count; i++)
            net_start(net, i);
        assert_true(net_until(net, net_agreed, 10000));
        net_run(net, 3000);
        assert_true(none_by_link(net));
        block_all(net, true);
        net_run(net, 300000);
        assert_true(net_agreed(net));
        assert_int_equal(deaths(net), 0);
        assert_true(all_by_link(net));
        net_free(net);
    }
}

static void without_links_the_same_is_a_death(void **state) {
    (void)state;
    struct net *net = net_new_running(2, 1);
    block_all(net, true);
    net_run(net, 10000);
    assert_true(deaths(net) > 0);
    net_free(net);
}

static void one_pair_without_datagrams_keeps_a_link(void **state) {
    (void)state;
    struct net *net = net_with_links(5, 7);
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 10000));
    block(net, 1, 3, true);
    net_run(net, 60000);
    assert_int_equal(deaths(net), 0);
    assert_true(info_of(net, 1, 3).by_link && info_of(net, 3, 1).by_link);
    assert_false(info_of(net, 1, 2).by_link || info_of(net, 0, 3).by_link);
    net_free(net);
}

static void datagrams_that_pass_one_way_only_are_no_death(void **state) {
    (void)state;
    for (int count = 2; count <= 4; count += 2) {
        struct net *net = net_with_links(count, 11);
        for (int i = 0; i < count; i++)
            net_start(net, i);
        assert_true(net_until(net, net_agreed, 10000));
        for (int i = 1; i < count; i++)
            net->cut[0][i] = true; /* it hears all, and nobody hears it */
        net_run(net, 120000);
        assert_int_equal(deaths(net), 0);
        assert_true(net_agreed(net));
        assert_true(info_of(net, 0, 1).by_link && info_of(net, 1, 0).by_link);
        net_free(net);
    }
}

static void datagrams_are_used_again_once_they_pass(void **state) {
    (void)state;
    struct net *net = net_with_links(4, 3);
    block_all(net, true);
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 15000));
    assert_true(net_until(net, all_by_link, 30000));
    block_all(net, false);
    assert_true(net_until(net, none_by_link, 30000));
    net_run(net, 90000);
    for (int i = 0; i < net->count; i++)
        for (int j = 0; j < net->count; j++)
            assert_false(net->link[i][j]); /* closed as idle: nobody wants them any more */
    assert_int_equal(deaths(net), 0);
    net_free(net);
}

/* A federation where datagrams pass never needs a link for gossip. */
static void loss_alone_dials_no_links(void **state) {
    (void)state;
    struct net *net = net_with_links(6, 5);
    net->loss_percent = 10;
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 15000));
    uint64_t before = net->dials;
    net_run(net, 120000);
    assert_int_equal(deaths(net), 0);
    assert_true(net->dials - before < 60); /* a few: twice in a row is no answer at 10 % loss one in 800 times */
    net_free(net);
}

static void broker_that_dies_by_link_is_down_in_time(void **state) {
    (void)state;
    struct net *net = net_with_links(5, 9);
    block_all(net, true);
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 15000));
    net_run(net, 10000);
    net_kill(net, 4);
    net_run(net, 8000);
    for (int i = 0; i < 4; i++)
        assert_int_equal(net->nodes[i].sees[4], MEMBER_DOWN);
    net->nodes[4].epoch++;
    net_start(net, 4);
    assert_true(net_until(net, net_agreed, 40000));
    net_free(net);
}

/* P19: all of it also after a cut of everything. */
static void cut_links_heal_without_datagrams(void **state) {
    (void)state;
    struct net *net = net_with_links(4, 13);
    block_all(net, true);
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 15000));
    for (int a = 0; a < 2; a++)
        for (int b = 2; b < 4; b++)
            net_cut_link(net, a, b, true);
    net_run(net, 60000);
    assert_int_equal(net->nodes[0].sees[3], MEMBER_DOWN);
    for (int a = 0; a < 2; a++)
        for (int b = 2; b < 4; b++)
            net_cut_link(net, a, b, false);
    assert_true(net_until(net, net_agreed, 60000));
    net_free(net);
}

/* More members than links: those without one are asked in turn, and news finds its way. */
static void links_are_bounded_in_a_federation_without_datagrams(void **state) {
    (void)state;
    struct net *net = net_with_links(30, 17);
    block_all(net, true);
    for (int i = 0; i < net->count; i++) {
        net->nodes[i].limits.links_max = 8;
        net_start(net, i);
    }
    assert_true(net_until(net, net_agreed, 60000));
    net_run(net, 60000);
    uint64_t before = deaths(net);
    net_row(net, 7, "late/#", true);
    net_run(net, 10000);
    for (int i = 0; i < net->count; i++)
        assert_true(net_has_row(net, i, 7, "late/#"));
    net_run(net, 120000);
    assert_true(net_agreed(net));
    assert_int_equal(deaths(net), before);
    for (int i = 0; i < net->count; i++) {
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        assert_true(counters.links_wanted <= 8);
    }
    net_free(net);
}

/* ---- what comes over a link ---- */

static void nobody_speaks_for_another_over_a_link(void **state) {
    (void)state;
    struct net *net = net_with_links(3, 2);
    block_all(net, true);
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 15000) && net_until(net, all_by_link, 30000));
    /* What 1 says to 0 over its link comes to 0 over 2's. */
    struct member_id two = net_id(net, 2), zero = net_id(net, 0);
    net_row(net, 1, "x", true);
    struct gossip_counters before, after;
    gossip_read_counters(net->nodes[0].gossip, &before);
    size_t tried = 0;
    for (struct net_packet *packet = net->packets; packet; packet = packet->next) {
        if (packet->kind != NET_LINK_PACKET || packet->from != 1 || packet->to != 0) continue;
        gossip_link_receive(net->nodes[0].gossip, net->now_ms, &two, packet->bytes, packet->size);
        tried++;
    }
    gossip_read_counters(net->nodes[0].gossip, &after);
    assert_true(tried > 0);
    assert_int_equal(after.malformed - before.malformed, tried);
    assert_false(net_has_row(net, 0, 1, "x"));
    gossip_link_receive(net->nodes[0].gossip, net->now_ms, &zero, net->packets->bytes, net->packets->size);
    static uint8_t large[GOSSIP_LINK_PACKET_MAX + 1];
    gossip_link_receive(net->nodes[0].gossip, net->now_ms, &two, large, sizeof large);
    gossip_link_receive(net->nodes[0].gossip, net->now_ms, &two, large, 0);
    gossip_read_counters(net->nodes[0].gossip, &after);
    assert_int_equal(after.malformed - before.malformed, tried + 3);
    net_free(net);
}

static void own_address_is_noticed_by_link(void **state) {
    (void)state;
    struct net *net = net_with_links(2, 4);
    block_all(net, true);
    for (int i = 0; i < 2; i++) {
        net->nodes[i].announce_nothing = true;
        net->nodes[i].bootstrap[0] = 0;
        net->nodes[i].bootstrap[1] = 1;
        net->nodes[i].bootstrap_count = 2;
        net_start(net, i);
    }
    assert_true(net_until(net, net_agreed, 15000));
    net_run(net, 20000);
    uint64_t dials = net->dials;
    net_run(net, 60000);
    assert_true(net->dials - dials <= 4); /* once a minute each: an address may change hands */
    net_free(net);
}

static void same_seed_gives_the_same_packets(void **state) {
    (void)state;
    uint64_t traces[2];
    for (int run = 0; run < 2; run++) {
        struct net *net = net_with_links(5, 21);
        net->loss_percent = 5;
        for (int i = 0; i < net->count; i++)
            net_start(net, i);
        net_run(net, 5000);
        block_all(net, true);
        net_run(net, 30000);
        block_all(net, false);
        net_run(net, 30000);
        traces[run] = net->trace;
        net_free(net);
    }
    assert_true(traces[0] == traces[1]);
}

/* Two who were given other keys are members by their link, and nothing else would say why. */
static void another_gossip_key_is_trouble_that_is_shown(void **state) {
    (void)state;
    struct net *net = net_with_links(3, 21);
    net->nodes[1].key = net_key('x');
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 30000));
    net_run(net, 30000);
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(info_of(net, i, 1).trouble, MEMBER_TROUBLE_SEALED);
        assert_int_equal(info_of(net, 1, i).trouble, MEMBER_TROUBLE_SEALED);
        assert_int_equal(info_of(net, i, 2 - i).trouble, MEMBER_TROUBLE_NONE);
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        assert_int_equal(counters.members_in_trouble, 1);
    }
    net_kill(net, 1);
    net->nodes[1].key = net->nodes[0].key;
    net_start(net, 1);
    assert_true(net_until(net, net_agreed, 30000));
    net_run(net, 60000);
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(info_of(net, i, 1).trouble, MEMBER_TROUBLE_NONE);
        assert_int_equal(info_of(net, 1, i).trouble, MEMBER_TROUBLE_NONE);
    }
    net_free(net);
}

static unsigned dials_wished(struct gossip *gossip) {
    struct gossip_link_wish wish;
    unsigned dials = 0;
    while (gossip_next_link_wish(gossip, &wish))
        dials += wish.kind == GOSSIP_LINK_DIAL;
    return dials;
}

static const uint8_t junk[100] = {1};

/* P19: after a cut in the middle of which the key was changed only a link helps, and the cut has taught patience. What
 * does not open tells that somebody is there. Anybody can send that, so a dial a minute or two is all that it gives. */
static void what_does_not_open_from_where_we_call_hurries_the_link_but_seldom(void **state) {
    (void)state;
    struct net *net = net_with_links(2, 41);
    net_start(net, 1); /* 0, its bootstrap address, is not there */
    net_run(net, 120000);
    struct gossip *gossip = net->nodes[1].gossip;
    dials_wished(gossip);
    gossip_receive(gossip, net->now_ms, &net->nodes[0].address, junk, sizeof junk);
    assert_int_equal(dials_wished(gossip), 1);
    unsigned dials = 0;
    for (int i = 0; i < 6000; i++) {
        net->now_ms += 10;
        gossip_receive(gossip, net->now_ms, &net->nodes[0].address, junk, sizeof junk);
        gossip_tick(gossip, net->now_ms);
        dials += dials_wished(gossip);
    }
    assert_in_range(dials, 2, 10);
    net_free(net);
}

/* To 0, of three. */
static struct net *net_where_1_comes_by_link(uint64_t seed) {
    struct net *net = net_with_links(3, seed);
    block(net, 0, 1, true);
    for (int i = 0; i < net->count; i++)
        net_start(net, i);
    assert_true(net_until(net, net_agreed, 30000));
    net_run(net, 10000);
    return net;
}

/* Datagrams that are blocked, and what strangers send, are nobody's other key. */
static void what_does_not_open_from_elsewhere_is_no_trouble(void **state) {
    (void)state;
    struct net *net = net_where_1_comes_by_link(22);
    struct gossip_address elsewhere = net->nodes[1].address;
    elsewhere.port++;
    for (int i = 0; i < 5; i++) {
        gossip_receive(net->nodes[0].gossip, net->now_ms, &elsewhere, junk, sizeof junk);
        gossip_receive(net->nodes[0].gossip, net->now_ms, &net->nodes[2].address, junk, sizeof junk);
        net_run(net, 2000);
    }
    assert_true(info_of(net, 0, 1).by_link);
    for (int i = 1; i < 3; i++)
        assert_int_equal(info_of(net, 0, i).trouble, MEMBER_TROUBLE_NONE);
    net_free(net);
}

/* Whoever speaks in the name of a member that has not proved where it is, and then sends what does not open. */
static void who_took_a_members_name_is_not_its_other_key(void **state) {
    (void)state;
    struct net *net = net_where_1_comes_by_link(23);
    struct gossip_address elsewhere = net->nodes[1].address;
    elsewhere.port++;
    struct forger forger = forger_new(net, 0, 1, &elsewhere);
    gossip_receive(net->nodes[0].gossip, net->now_ms, &elsewhere, junk, sizeof junk);
    net_run(net, 2000);
    assert_true(forger.bytes > 0 && info_of(net, 0, 1).by_link);
    assert_int_equal(info_of(net, 0, 1).trouble, MEMBER_TROUBLE_NONE);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brokers_without_datagrams_find_each_other_over_links),
        cmocka_unit_test(who_is_reached_by_others_only_is_seen_by_a_newcomer),
        cmocka_unit_test(who_is_reached_by_others_only_is_seen_again_after_a_restart),
        cmocka_unit_test(datagrams_that_cease_are_no_death),
        cmocka_unit_test(without_links_the_same_is_a_death),
        cmocka_unit_test(one_pair_without_datagrams_keeps_a_link),
        cmocka_unit_test(datagrams_that_pass_one_way_only_are_no_death),
        cmocka_unit_test(datagrams_are_used_again_once_they_pass),
        cmocka_unit_test(loss_alone_dials_no_links),
        cmocka_unit_test(broker_that_dies_by_link_is_down_in_time),
        cmocka_unit_test(cut_links_heal_without_datagrams),
        cmocka_unit_test(links_are_bounded_in_a_federation_without_datagrams),
        cmocka_unit_test(nobody_speaks_for_another_over_a_link),
        cmocka_unit_test(own_address_is_noticed_by_link),
        cmocka_unit_test(another_gossip_key_is_trouble_that_is_shown),
        cmocka_unit_test(what_does_not_open_from_where_we_call_hurries_the_link_but_seldom),
        cmocka_unit_test(what_does_not_open_from_elsewhere_is_no_trouble),
        cmocka_unit_test(who_took_a_members_name_is_not_its_other_key),
        cmocka_unit_test(same_seed_gives_the_same_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
