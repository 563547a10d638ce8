/* How a broker finds the others at first, and again, and again. */
#include "gossip_net.h"

#include "gossip/state.h"

static const struct gossip_address nobody = {.family = 4, .ip = {10, 9, 9, 9}, .port = 7100};

static bool all_but_the_last_are_alive(struct net *net) {
    net->count--;
    bool alive = net_all_alive(net);
    net->count++;
    return alive;
}

static uint64_t sent_to_nobody(struct net *net, int index) {
    struct gossip_datagram datagram;
    struct gossip_event event;
    uint64_t count = 0;
    while (gossip_next_datagram(net->nodes[index].gossip, &datagram))
        count += memcmp(datagram.to.ip, nobody.ip, 4) == 0;
    while (gossip_next_event(net->nodes[index].gossip, &event))
        continue;
    return count;
}

/* P3: a name may have many addresses, of which one is good. */
static void each_of_sixty_four_addresses_is_tried(void **state) {
    (void)state;
    for (int place = 0; place < 64; place += 21) {
        struct net *net = net_new(2, (uint64_t)place + 1);
        struct gossip_address many[64];
        for (int i = 0; i < 64; i++)
            many[i] = (struct gossip_address){.family = 4, .ip = {10, 8, 0, (uint8_t)i}, .port = 7100};
        many[place] = net->nodes[0].address;
        net_start(net, 0);
        net->nodes[1].bootstrap_count = 0;
        net_start(net, 1);
        gossip_set_bootstrap(net->nodes[1].gossip, net->now_ms, many, 64);
        net_drain(net, 1);
        assert_true(net_until(net, net_all_alive, 45000));
        net_free(net);
    }
}

/* P25: of a thousand that start at once each address gets its part of the first dials; who is not answered tries all.
 */
static void one_address_is_dialled_at_first_and_then_three(void **state) {
    (void)state;
    int chosen[3] = {0};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct net *net = net_new(4, seed);
        net->nodes[3].bootstrap_count = 3;
        for (int i = 0; i < 3; i++)
            net->nodes[3].bootstrap[i] = i;
        net_start(net, 3);
        net_run(net, 50);
        assert_int_equal(net->to[0] + net->to[1] + net->to[2], 1);
        for (int i = 0; i < 3; i++)
            chosen[i] += (int)net->to[i];
        net_run(net, 250);
        assert_in_range(net->to[0] + net->to[1] + net->to[2], 4, 7);
        for (int i = 0; i < 3; i++)
            assert_true(net->to[i] > 0);
        net_free(net);
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(chosen[i], 4, 18);
}

/* P3: the name of a service often stands for all of its brokers, ourselves included. */
static void a_broker_among_its_own_bootstrap_addresses_finds_the_others(void **state) {
    (void)state;
    struct net *net = net_new(3, 5);
    for (int i = 0; i < 3; i++) {
        net->nodes[i].announce_nothing = true; /* nor does it know its own address */
        net->nodes[i].bootstrap_count = 3;
        for (int j = 0; j < 3; j++)
            net->nodes[i].bootstrap[j] = j;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 2000));
    net_free(net);
}

/* P3: of its list one address is its own, and at the others nobody is: it goes on trying, seldom, until somebody comes
 * to whom its own address was given. */
static void who_knows_only_itself_and_the_dead_is_found_by_who_knows_it(void **state) {
    (void)state;
    struct net *net = net_new(4, 21);
    net->nodes[1].bootstrap_count = 3;
    for (int i = 0; i < 3; i++)
        net->nodes[1].bootstrap[i] = i + 1; /* 2 and 3 do not run */
    net_start(net, 1);
    net_run(net, 600000);
    for (int i = 2; i < 4; i++)
        assert_in_range(net->to[i], 200, 1200); /* each gap of 0.2 s to 2 s */
    assert_int_equal(net->to[1], 0);
    net->nodes[2].bootstrap_count = 1;
    net->nodes[2].bootstrap[0] = 1;
    net_start(net, 2);
    net_run(net, 1000);
    assert_int_equal(net->nodes[1].sees[2], MEMBER_ALIVE);
    assert_int_equal(net->nodes[2].sees[1], MEMBER_ALIVE);
    net_free(net);
}

/* P3: the bootstrap list leads nowhere any more, and the peers of the last run do. */
static void remembered_peers_stand_in_for_a_bootstrap_list_that_is_gone(void **state) {
    (void)state;
    struct net *net = net_new_running(4, 7);
    struct gossip_address good[64];
    net_run(net, 2000);
    size_t count = gossip_good_peers(net->nodes[3].gossip, good, 64);
    assert_int_equal(count, 3);
    net_kill(net, 3);
    net_run(net, 20000);
    net_kill(net, 0); /* the only address of its list */
    net->nodes[3].epoch = 2;
    net->nodes[3].address.ip[3] = 200; /* the others dial it in vain */
    net_start(net, 3);
    net_run(net, 20000);
    assert_int_not_equal(net->nodes[3].sees[1], MEMBER_ALIVE);
    gossip_set_remembered(net->nodes[3].gossip, net->now_ms, good, count);
    net_drain(net, 3);
    assert_true(net_until(net, net_all_alive, 1000));
    net_free(net);
}

static void no_more_peers_are_remembered_than_there_is_room_for_and_the_same_each_time(void **state) {
    (void)state;
    struct net *net = net_new_running(20, 8);
    struct gossip_address first[7], second[7];
    net_run(net, 3000);
    assert_int_equal(gossip_good_peers(net->nodes[0].gossip, first, 7), 7);
    net_run(net, 3000);
    assert_int_equal(gossip_good_peers(net->nodes[0].gossip, second, 7), 7);
    assert_memory_equal(first, second, sizeof first);
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&first[i], &first[j], sizeof first[i]);
    net_free(net);
}

/* P1: an address that never answers is dialled for ever, and seldom. */
static void a_dead_address_is_dialled_for_ever_at_a_bounded_rate(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 9);
    gossip_set_bootstrap(net->nodes[2].gossip, net->now_ms, &nobody, 1);
    net_drain(net, 2);
    net_run(net, 10000);
    for (int day = 0; day < 3; day++) {
        uint64_t dials = 0, until = net->now_ms + 3600000;
        for (struct gossip *gossip = net->nodes[2].gossip; net->now_ms < until;) {
            /* Only this one runs: it soon sees nobody, and asks on all the same. */
            uint64_t deadline = gossip_deadline_ms(gossip);
            net->now_ms = deadline > net->now_ms ? deadline : net->now_ms + 1;
            gossip_tick(gossip, net->now_ms);
            dials += sent_to_nobody(net, 2);
        }
        assert_in_range(dials, 1000, 5400); /* each 2 s at most, jittered down to a tenth */
    }
    net_free(net);
}

/* P1: nor is one forgotten by who has found others by then: what will be there is perhaps another part of the network.
 */
static void an_address_where_nobody_is_yet_is_dialled_by_who_sees_others_too(void **state) {
    (void)state;
    struct net *net = net_new(4, 15);
    net->nodes[2].bootstrap_count = 2;
    net->nodes[2].bootstrap[0] = 0;
    net->nodes[2].bootstrap[1] = 3;
    net->nodes[3].bootstrap_count = 0;
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 2000));
    net_run(net, 60000);
    uint64_t before = net->to[3];
    net_run(net, 300000);
    assert_in_range(net->to[3] - before, 80, 450); /* each 2 s at most, as above */
    net_start(net, 3);
    assert_true(net_until(net, net_all_alive, 10000));
    net_free(net);
}

/* P1: serf's rule. The dead one's address gets about as much whether 5 or 35 miss it. */
static void those_who_miss_a_member_share_the_dialling(void **state) {
    (void)state;
    double rate[2];
    for (int run = 0; run < 2; run++) {
        struct net *net = net_new_running(run == 0 ? 6 : 36, 11);
        int last = net->count - 1;
        net_run(net, 2000);
        net_kill(net, last);
        net_run(net, 20000);
        for (int i = 0; i < last; i++)
            assert_int_equal(net->nodes[i].sees[last], MEMBER_DOWN);
        uint64_t before = net->to[last];
        net_run(net, 60000);
        rate[run] = (double)(net->to[last] - before) / 60;
        net_free(net);
    }
    print_message("datagrams a second to a dead member: %.2f of 5, %.2f of 35\n", rate[0], rate[1]);
    assert_true(rate[0] > 0.5 && rate[1] < 2 * rate[0] && rate[1] < 20);
}

/* P12: what is gone for a week takes no place any more, and is found again all the same. */
static void a_member_gone_for_a_week_is_forgotten_and_its_address_is_not(void **state) {
    (void)state;
    struct net *net = net_new(2, 13);
    struct gossip_limits slow = {.probe_interval_ms = 20000,
                                 .probe_timeout_ms = 5000,
                                 .anti_entropy_ms = 60000,
                                 .rejoin_ms = 60000,
                                 .suspicion_min_ms = 20000};
    struct member_id id = net_id(net, 1);
    struct member_info info;
    for (int i = 0; i < 2; i++) {
        net->nodes[i].limits = slow;
        net->nodes[i].bootstrap_count = i;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 120000));
    net_run(net, 120000);
    net_kill(net, 1);
    net_run(net, 6ull * 24 * 3600 * 1000);
    assert_true(gossip_member_find(net->nodes[0].gossip, net->now_ms, &id, &info));
    net_run(net, 2ull * 24 * 3600 * 1000);
    assert_false(gossip_member_find(net->nodes[0].gossip, net->now_ms, &id, &info));
    net->nodes[1].epoch = 2;
    net->nodes[1].bootstrap_count = 0; /* so it is for the other to find it */
    net->nodes[0].sees[1] = MEMBER_DOWN;
    net_start(net, 1);
    assert_true(net_until(net, net_all_alive, 600000));
    net_free(net);
}

/* P2: no majority is needed, and nobody starts anew. */
static void three_equal_parts_merge_and_nobody_restarts(void **state) {
    (void)state;
    struct net *net = net_new_running(9, 17);
    net_run(net, 2000);
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            net->cut[i][j] = i / 3 != j / 3;
    net_run(net, 300000);
    for (int i = 0; i < 9; i++) {
        net_row(net, i, i % 3 == 0 ? "a/b" : "c/#", true);
        for (int j = 0; j < 9; j++)
            if (i / 3 != j / 3) assert_int_equal(net->nodes[i].sees[j], MEMBER_DOWN);
    }
    memset(net->cut, 0, sizeof net->cut);
    assert_true(net_until(net, net_agreed, 10000));
    for (int i = 0; i < 9; i++)
        assert_int_equal(gossip_epoch(net->nodes[i].gossip), 1);
    net_free(net);
}

/* ---- multicast ---- */

static struct net *seeking(int count, uint64_t seed) {
    struct net *net = net_new(count, seed);
    for (int i = 0; i < count; i++) {
        net->nodes[i].seeks = true;
        net->nodes[i].announce_nothing = true;
        net->nodes[i].bootstrap_count = 0;
    }
    return net;
}

/* P3: no address is configured at all. */
static void brokers_of_one_network_find_each_other_by_multicast(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct net *net = seeking(5, seed);
        for (int i = 0; i < 5; i++)
            net_start(net, i);
        assert_true(net_until(net, net_all_alive, 4000));
        net_free(net);
    }
}

static void who_comes_later_is_found_by_multicast(void **state) {
    (void)state;
    struct net *net = seeking(4, 3);
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    assert_true(net_until(net, all_but_the_last_are_alive, 4000));
    net_run(net, 120000);
    net_start(net, 3);
    assert_true(net_until(net, net_all_alive, 4000));
    net_free(net);
}

/* P2: each has found somebody, so nobody is in a hurry; still they merge. */
static void islands_of_one_network_merge_by_multicast(void **state) {
    (void)state;
    struct net *net = seeking(8, 4);
    for (int i = 0; i < 8; i++) {
        net->nodes[i].lan = i % 2;
        net_start(net, i);
    }
    net_run(net, 30000);
    assert_int_equal(net->nodes[0].sees[2], MEMBER_ALIVE);
    assert_int_not_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    for (int i = 0; i < 8; i++)
        net->nodes[i].lan = 0;
    assert_true(net_until(net, net_all_alive, 60000));
    net_free(net);
}

/* P25 */
static void forty_that_start_at_once_send_few_seeks_and_answers(void **state) {
    (void)state;
    struct net *net = seeking(40, 6);
    for (int i = 0; i < 40; i++)
        net_start(net, i);
    uint64_t begun = net->now_ms;
    assert_true(net_until(net, net_all_alive, 10000));
    print_message("40 by multicast alone: %d ms, %d seeks heard\n", (int)(net->now_ms - begun), (int)net->multicast);
    assert_true(net->multicast <= 39 * 20); /* who has heard enough keeps its own to itself */
    net_run(net, 60000);
    uint64_t before = net->multicast;
    net_run(net, 600000);
    /* Once all see one another, one of them asks each 15 s or more, for all. */
    assert_in_range(net->multicast - before, 39 * 5, 39 * 60);
    net_free(net);
}

/* P25: about three of those who see one another, however many they are. */
static int dials_of_a_seeker(uint64_t seed) {
    struct net *net = seeking(40, seed);
    for (int i = 0; i < 39; i++) {
        net->cut[i][39] = true; /* so that the one who comes learns of nobody, and asks nothing but this */
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    net_run(net, 20000);
    net_start(net, 39);
    int dial = 0;
    for (uint64_t before = net->multicast; net->multicast < before + 39;)
        net_run(net, 1);
    net_run(net, net->delay_max_ms + 1);
    for (int i = 0; i < 39; i++)
        dial += net->nodes[i].gossip->seek.dial_ms != NEVER;
    net_free(net);
    return dial;
}

static void of_many_that_hear_a_seeker_few_dial_it(void **state) {
    (void)state;
    int first = dials_of_a_seeker(8), second = dials_of_a_seeker(9);
    assert_in_range(first, 0, 9);
    assert_in_range(second, 0, 9);
    assert_in_range(first + second, 1, 14); /* nobody at all is one case in 500 */
}

static void a_seek_of_who_has_no_key_is_not_answered(void **state) {
    (void)state;
    struct net *net = seeking(2, 9);
    memset(net->nodes[1].key.key, 1, sizeof net->nodes[1].key.key);
    net->nodes[0].limits.rejoin_ms = 600000;
    net_start(net, 0);
    net_run(net, 10000);
    net_start(net, 1);
    net_run(net, 20000);
    assert_int_equal(net->to[1], 0);
    net_free(net);
}

static void without_groups_a_seek_is_not_heard(void **state) {
    (void)state;
    struct net *net = seeking(2, 10);
    net_start(net, 0);
    net_start(net, 1);
    const struct gossip_address none = {0};
    gossip_set_groups(net->nodes[1].gossip, net->now_ms, NULL, 0, &none);
    net_run(net, 30000);
    assert_int_not_equal(net->nodes[0].sees[1], MEMBER_ALIVE);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_of_sixty_four_addresses_is_tried),
        cmocka_unit_test(one_address_is_dialled_at_first_and_then_three),
        cmocka_unit_test(a_broker_among_its_own_bootstrap_addresses_finds_the_others),
        cmocka_unit_test(who_knows_only_itself_and_the_dead_is_found_by_who_knows_it),
        cmocka_unit_test(remembered_peers_stand_in_for_a_bootstrap_list_that_is_gone),
        cmocka_unit_test(no_more_peers_are_remembered_than_there_is_room_for_and_the_same_each_time),
        cmocka_unit_test(a_dead_address_is_dialled_for_ever_at_a_bounded_rate),
        cmocka_unit_test(an_address_where_nobody_is_yet_is_dialled_by_who_sees_others_too),
        cmocka_unit_test(those_who_miss_a_member_share_the_dialling),
        cmocka_unit_test(a_member_gone_for_a_week_is_forgotten_and_its_address_is_not),
        cmocka_unit_test(three_equal_parts_merge_and_nobody_restarts),
        cmocka_unit_test(brokers_of_one_network_find_each_other_by_multicast),
        cmocka_unit_test(who_comes_later_is_found_by_multicast),
        cmocka_unit_test(islands_of_one_network_merge_by_multicast),
        cmocka_unit_test(forty_that_start_at_once_send_few_seeks_and_answers),
        cmocka_unit_test(of_many_that_hear_a_seeker_few_dial_it),
        cmocka_unit_test(a_seek_of_who_has_no_key_is_not_answered),
        cmocka_unit_test(without_groups_a_seek_is_not_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
