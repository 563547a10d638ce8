/* Who asks and answers for another bears the blame for nothing but what it does itself, and is of use all the same; and
 * nobody is made to say more than he was asked for. */
#include "gossip_court.h"

#include "gossip_forger.h"

#define ASKERS 12

static uint64_t pings_for_others(struct net *net, int node) {
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[node].gossip, &counters);
    return counters.indirect_probes_sent;
}

/* The traitor has all but edge-2 ping edge-2, 400 times a second each. */
static void have_it_pinged(struct court *court, unsigned round) {
    struct message requests[12];
    for (unsigned i = 0; i < 12; i++)
        requests[i] = (struct message){
            .kind = MESSAGE_PING_REQ, .number = 1000 + round * 12 + i, .version.id = net_id(court->net, 1)};
    for (int to = 0; to < HONEST; to++)
        if (to != 1) traitor_say(court->traitor, to, requests, 12);
    net_run(court->net, 30);
}

static void who_pings_for_another_is_not_blamed_for_it(void **state) {
    (void)state;
    struct court court = court_new(901);
    struct net *net = court.net;
    uint64_t before = SUM(net, suspicions);
    for (unsigned round = 0; round < 2000; round++)
        have_it_pinged(&court, round);
    for (int i = 0; i < HONEST; i++) {
        assert_int_equal(trouble_at(net, 1, i), MEMBER_TROUBLE_NONE);
        if (i != 1) assert_int_equal(trouble_at(net, i, HONEST), MEMBER_TROUBLE_RULES); /* who has it done is */
    }
    assert_int_equal(SUM(net, suspicions), before);
    court_free(&court);
}

/* Two that cannot reach each other live by their helpers, of whom another asks without end for one of them. */
static void who_asks_without_end_takes_no_help_from_others(void **state) {
    (void)state;
    struct court court = court_new(905);
    struct net *net = court.net;
    net->cut[0][1] = net->cut[1][0] = true;
    net->loss_percent = 20;
    for (unsigned round = 0; round < 4000; round++)
        have_it_pinged(&court, round);
    assert_int_equal(down_events(net), 0);
    net->cut[0][1] = net->cut[1][0] = false;
    net->loss_percent = 0;
    court_free(&court);
}

/* Each asks no more of anybody than an honest one may; together it would be 130 a second by each helper. */
static void however_many_ask_one_is_not_flooded_by_a_helper(void **state) {
    (void)state;
    struct net *net = net_new_running(ASKERS, 906);
    uint64_t before[ASKERS], most = 0;
    for (int i = 0; i < ASKERS; i++)
        before[i] = pings_for_others(net, i);
    for (unsigned round = 0; round < 500; round++) {
        for (int i = 0; i < ASKERS; i++) {
            struct member_id id = net_id(net, 1);
            if (i != 1) helpers_ask(net->nodes[i].gossip, members_find(net->nodes[i].gossip, &id));
            net_drain(net, i);
        }
        net_run(net, 20);
    }
    for (int i = 0; i < ASKERS; i++) {
        uint64_t sent = pings_for_others(net, i) - before[i];
        if (i != 1) assert_in_range(sent, 600, 11 * 75);
        most = sent > most ? sent : most;
        assert_int_equal(trouble_at(net, 1, i), MEMBER_TROUBLE_NONE);
        if (i != 0) assert_int_equal(trouble_at(net, 0, i), MEMBER_TROUBLE_NONE);
    }
    assert_true(most > 0);
    assert_true(net_all_alive(net));
    net_free(net);
}

/* A helper of a version that has no measure for it: what it asks itself is answered, and it is not blamed. */
static void who_brings_too_many_pings_has_its_own_answered(void **state) {
    (void)state;
    struct court court = court_new(907);
    struct net *net = court.net;
    uint8_t asks[MESSAGE_FOR_SIZE] = {1};
    uint64_t before = court.traitor->count[MESSAGE_PONG];
    for (unsigned second = 0; second < 30; second++) {
        for (unsigned i = 0; i < 50; i++) {
            struct message pings[10];
            for (unsigned k = 0; k < 10; k++) {
                pings[k] = (struct message){.kind = MESSAGE_PING, .number = 2 * (1000 + 500 * second + 10 * i + k)};
                pings[k].bytes = asks;
                pings[k].size = i < 40 ? sizeof asks : 0;
            }
            traitor_say(court.traitor, 1, pings, 10);
        }
        net_run(net, 1000);
    }
    assert_in_range(court.traitor->count[MESSAGE_PONG] - before, 30 * 100, 30 * 300 + 200);
    assert_int_equal(trouble_at(net, 1, HONEST), MEMBER_TROUBLE_NONE);
    court_free(&court);
}

static void no_number_of_helpers_that_speak_looks_like_none(void **state) {
    (void)state;
    struct net *net = net_new_running(4, 908);
    struct gossip *gossip = net->nodes[0].gossip;
    struct member_id id = net_id(net, 1);
    struct member *member = members_find(gossip, &id);
    probe_member(gossip, member);
    helpers_ask(gossip, member);
    struct message nack = {.kind = MESSAGE_INDIRECT,
                           .number = gossip->asked[(gossip->asked_next - 1) % ASKED_MAX].number};
    gossip->authentic = true;
    for (int i = 0; i < 256; i++)
        helpers_on_indirect(gossip, &nack);
    gossip->authentic = false;
    assert_int_not_equal(member->probe.nacks, 0);
    net_free(net);
}

/* ---- how much is said ---- */

/* Three, of which each has much to tell to who begins a life. */
static struct net *talkative_net(uint64_t seed) {
    struct net *net = net_new(3, seed);
    for (int i = 0; i < 3; i++) {
        net->nodes[i].token_size = 800;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    net_run(net, 5000);
    return net;
}

/* From where edge-2 is. */
static void ask_in_life(struct forger *forger, uint64_t epoch) {
    memset(forger->header.echo, 0, sizeof forger->header.echo);
    forger->header.epoch = epoch;
    forger_say(forger, &(struct message){.kind = MESSAGE_WHO, .version.id = net_id(forger->net, 0)});
}

static struct forger forger_in_place_of_another(struct net *net) {
    struct forger forger = {.net = net, .at = 0, .address = net->nodes[1].address};
    forger.header = (struct packet_header){.id = net_id(net, 1), .epoch = 1, .incarnation = 1};
    return forger;
}

/* The first packet of a life is answered in full; an epoch is a number that anybody may write. */
static void lives_without_end_are_not_answered_in_full(void **state) {
    (void)state;
    struct net *net = talkative_net(931);
    struct gossip *gossip = net->nodes[0].gossip;
    struct forger forger = forger_in_place_of_another(net);
    struct gossip_counters before, after;
    gossip_read_counters(gossip, &before);
    for (unsigned i = 0; i < 2000; i++) {
        ask_in_life(&forger, 2 + i);
        net->now_ms += 5;
        gossip_tick(gossip, net->now_ms);
        forger_collect(&forger);
    }
    gossip_read_counters(gossip, &after);
    uint64_t said = after.bytes_received - before.bytes_received;
    print_message("%llu bytes for %llu\n", (unsigned long long)forger.bytes, (unsigned long long)said);
    assert_true(forger.bytes < 4 * said); /* three, and what edge-1 has to say to it anyhow */
    net_free(net);
}

static void a_false_life_does_not_take_the_greeting_of_a_true_one(void **state) {
    (void)state;
    struct net *net = talkative_net(932);
    struct forger forger = forger_in_place_of_another(net);
    const struct gossip *gossip = net->nodes[0].gossip;
    ask_in_life(&forger, 1000000);
    assert_true(gossip->greeted);
    ask_in_life(&forger, 2);
    assert_false(gossip->greeted); /* too soon */
    net_run(net, 5000);
    ask_in_life(&forger, 2);
    assert_true(gossip->greeted);
    net_run(net, 5000);
    ask_in_life(&forger, 2);
    assert_false(gossip->greeted); /* each once */
    net_free(net);
}

/* The net fails when a deadline does not move. */
static void tables_are_compared_once_a_millisecond_at_most(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 941);
    for (int i = 0; i < 3; i++)
        net->nodes[i].gossip->limits.anti_entropy_ms = 1;
    net_run(net, 3000);
    assert_true(net_all_alive(net));
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_pings_for_another_is_not_blamed_for_it),
        cmocka_unit_test(who_asks_without_end_takes_no_help_from_others),
        cmocka_unit_test(however_many_ask_one_is_not_flooded_by_a_helper),
        cmocka_unit_test(who_brings_too_many_pings_has_its_own_answered),
        cmocka_unit_test(no_number_of_helpers_that_speak_looks_like_none),
        cmocka_unit_test(lives_without_end_are_not_answered_in_full),
        cmocka_unit_test(a_false_life_does_not_take_the_greeting_of_a_true_one),
        cmocka_unit_test(tables_are_compared_once_a_millisecond_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
