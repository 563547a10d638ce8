/* Failure detection and healing on a simulated network. */
#include "gossip_net.h"

static bool nobody_sees_the_last(struct net *net) {
    for (int i = 0; i < net->count - 1; i++)
        if (net->nodes[i].gossip && net->nodes[i].sees[net->count - 1] != MEMBER_DOWN) return false;
    return true;
}

static void a_death_is_noticed_by_all_within_3_s(void **state) {
    (void)state;
    static const int sizes[] = {2, 3, 5, 10, 20};
    uint64_t worst = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            struct net *net = net_new_running(sizes[s], seed);
            net_run(net, 2000 + seed * 137);
            net_kill(net, sizes[s] - 1);
            uint64_t start = net->now_ms;
            if (!net_until(net, nobody_sees_the_last, 3000))
                fail_msg("%d members, seed %d: not noticed in 3 s", sizes[s], (int)seed);
            worst = net->now_ms - start > worst ? net->now_ms - start : worst;
            struct gossip_counters counters;
            gossip_read_counters(net->nodes[0].gossip, &counters);
            assert_int_equal(counters.deaths, 1);
            assert_in_range(counters.suspicions, 1,
                            2); /* of one that was accused while its last answer was on its way */
            net_free(net);
        }
    }
    print_message("noticed after %llu ms at the latest\n", (unsigned long long)worst);
}

/* The number of the one behind it in the ring of ids. */
static int behind(const struct net *net, int index) {
    const struct member_id own = net_id(net, index);
    int best = -1, first = index;
    for (int i = 0; i < net->count; i++) {
        const struct member_id id = net_id(net, i), best_id = net_id(net, best < 0 ? i : best);
        const struct member_id first_id = net_id(net, first);
        if (memcmp(&id, &own, sizeof id) > 0 && memcmp(&id, &best_id, sizeof id) <= 0) best = i;
        if (memcmp(&id, &first_id, sizeof id) < 0) first = i;
    }
    return best < 0 ? first : best;
}

/* Among more than 32, where an accusation is a rumour: whoever watched the second died with it, and the rumour of it
 * comes while that of the first is under way. */
static void two_neighbours_that_die_together_among_40_are_noticed_like_one(void **state) {
    (void)state;
    struct net *net = net_new_running(40, 1);
    uint64_t worst = 0;
    for (int round = 0; round < 6; round++) {
        const int dead[] = {5 + round * 6, behind(net, 5 + round * 6)};
        net_run(net, 3000 + (uint64_t)round * 137);
        for (int i = 0; i < 2; i++)
            net_kill(net, dead[i]);
        uint64_t start = net->now_ms;
        net_run(net, 6000);
        for (int i = 0; i < net->count; i++)
            for (int d = 0; d < 2; d++) {
                if (!net->nodes[i].gossip) continue;
                assert_int_equal(net->nodes[i].sees[dead[d]], MEMBER_DOWN);
                uint64_t after_ms = net->nodes[i].sees_since_ms[dead[d]] - start;
                worst = after_ms > worst ? after_ms : worst;
            }
        for (int i = 0; i < 2; i++) {
            net->nodes[dead[i]].epoch++;
            net->nodes[dead[i]].bootstrap[0] = (dead[0] + 1) % 5;
            net_start(net, dead[i]);
        }
        assert_true(net_until(net, net_all_alive, 10000));
    }
    print_message("two of 40: noticed after %d ms at the latest\n", (int)worst);
    assert_in_range(worst, 1200, 2700);
    net_free(net);
}

static bool all_notice(struct net *net, int victim, uint64_t within_ms) {
    for (uint64_t until_ms = net->now_ms + within_ms; net->now_ms < until_ms; net_run(net, 10)) {
        int seeing = 0;
        for (int i = 0; i < net->count; i++)
            seeing += i != victim && net->nodes[i].sees[victim] != MEMBER_DOWN;
        if (seeing == 0) return true;
    }
    return false;
}

/* Within the minute in which an accuser has a credit: one that was right has it still. */
static void the_fifth_death_in_a_row_is_noticed_as_soon_as_the_first(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct net *net = net_new_running(10, seed);
        for (int death = 0; death < 5; death++) {
            net_run(net, 1000 + seed * 137);
            net_kill(net, death);
            if (!all_notice(net, death, 2300))
                fail_msg("seed %d: death %d is not noticed in 2.3 s", (int)seed, death + 1);
            net_start(net, death);
            assert_true(net_until(net, net_all_alive, 10000));
        }
        net_free(net);
    }
}

static void nobody_is_declared_dead_in_an_hour_at_10_percent_loss(void **state) {
    (void)state;
    struct net *net = net_new_running(10, 7);
    net->loss_percent = 10;
    net->delay_max_ms = 5;
    net_run(net, 3600 * 1000);
    uint64_t deaths = 0, suspicions = 0, asked_again = 0;
    for (int i = 0; i < 10; i++) {
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        deaths += net->nodes[i].down_events;
        suspicions += counters.suspicions;
        asked_again += counters.indirect_probes_sent;
    }
    print_message("%llu suspicions, %llu datagrams, %llu deaths\n", (unsigned long long)suspicions,
                  (unsigned long long)net->sent, (unsigned long long)deaths);
    assert_true(asked_again > 0); /* or the loss was not there */
    assert_int_equal(deaths, 0);
    assert_true(net_all_alive(net));
    net_free(net);
}

/* As two that have never spoken. */
static void forget_all_proofs(struct net *net) {
    for (int i = 0; i < net->count; i++)
        for (int of = 0; of < net->count; of++) {
            struct member_id id = net_id(net, of);
            struct member *member = members_find(net->nodes[i].gossip, &id);
            if (of != i) proof_forget(member);
            memset(member->echo, 0, sizeof member->echo);
            members_changed(net->nodes[i].gossip, member);
        }
}

static uint64_t probes_failed(const struct net *net) {
    uint64_t failed = 0;
    for (int i = 0; i < net->count; i++) {
        struct gossip_counters counters;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        failed += counters.probes_failed;
    }
    return failed;
}

/* Of a thousand nearly every question goes to one with whom no proof was exchanged yet, and before that no answer
 * counts: where much is lost, the two round trips must not look like silence. */
static void who_has_yet_to_prove_itself_is_not_suspected_for_loss(void **state) {
    (void)state;
    struct net *net = net_new_running(40, 12);
    net->loss_percent = 40;
    net_run(net, 60000);
    uint64_t before = probes_failed(net);
    for (int second = 0; second < 300; second++) {
        forget_all_proofs(net);
        net_run(net, 1000);
    }
    uint64_t failed = probes_failed(net) - before;
    print_message("%llu of 40 brokers' questions of 5 min came to nothing\n", (unsigned long long)failed);
    assert_in_range(failed, 0, 2); /* 22 if pings ask for no proof */
    assert_true(net_until(net, net_all_alive, 10000));
    net_free(net);
}

/* P17: a satellite, or a full uplink: answers take twice the limit. Without loss nobody is ever suspected; with it few
 * are and none dies; and when the network is quick again, so is the judgement. */
static void a_slow_network_is_not_taken_for_death(void **state) {
    (void)state;
    struct net *net = net_new_running(5, 17);
    net->delay_min_ms = 200;
    net->delay_max_ms = 220;
    net_run(net, 60000);
    uint64_t before = 0, after = 0, lossy = 0, deaths = 0;
    struct gossip_counters counters;
    for (int i = 0; i < 5; i++) {
        gossip_read_counters(net->nodes[i].gossip, &counters);
        before += counters.suspicions;
    }
    net_run(net, 600000);
    for (int i = 0; i < 5; i++) {
        gossip_read_counters(net->nodes[i].gossip, &counters);
        after += counters.suspicions;
    }
    net->loss_percent = 20;
    net_run(net, 600000);
    for (int i = 0; i < 5; i++) {
        gossip_read_counters(net->nodes[i].gossip, &counters);
        lossy += counters.suspicions;
        deaths += net->nodes[i].down_events;
    }
    print_message("answers after 0.4 s: %llu suspicions in 10 min, at 20 %% loss %llu, %llu deaths\n",
                  (unsigned long long)(after - before), (unsigned long long)(lossy - after),
                  (unsigned long long)deaths);
    assert_int_equal(after - before, 0);
    assert_true(lossy - after < 4500); /* hearsay included; with a fixed limit 8,000 */
    assert_int_equal(deaths, 0);
    net->loss_percent = 0;
    net->delay_min_ms = 0;
    net->delay_max_ms = 1;
    net_run(net, 60000);
    net_kill(net, 4);
    assert_true(net_until(net, nobody_sees_the_last, 3000));
    net_free(net);
}

static void a_suspect_that_lives_refutes_with_a_higher_incarnation(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 3);
    net_run(net, 1000);
    /* Node 2 is cut off for less than a suspicion lasts. */
    for (int i = 0; i < 2; i++)
        net->cut[i][2] = net->cut[2][i] = true;
    net_run(net, 1500);
    assert_true(net->nodes[0].sees[2] == MEMBER_SUSPECT || net->nodes[1].sees[2] == MEMBER_SUSPECT);
    memset(net->cut, 0, sizeof net->cut);
    assert_true(net_until(net, net_all_alive, 1000));
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[2].gossip, &counters);
    assert_true(counters.refutations >= 1);
    assert_int_equal(net->nodes[0].down_events + net->nodes[1].down_events, 0);
    net_free(net);
}

static void two_brokers_that_cannot_reach_each_other_live_by_their_helpers(void **state) {
    (void)state;
    struct net *net = net_new(3, 4);
    net->cut[1][2] = net->cut[2][1] = true; /* from the very start: tokens are relayed */
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    assert_true(net_until(net, net_all_alive, 5000));
    net_row(net, 1, "a/b", true);
    net_run(net, 30000);
    assert_true(net_all_alive(net));
    assert_int_equal(net->nodes[1].down_events + net->nodes[2].down_events + net->nodes[0].down_events, 0);
    assert_true(net_has_row(net, 2, 1, "a/b"));
    net_free(net);
}

/* The one that accuses never reaches the accused itself, and for a while nobody at all: its accusation is heard by no
 * one when it is made. */
static void an_accusation_that_nobody_heard_is_refuted_later(void **state) {
    (void)state;
    for (uint64_t seed = 30; seed < 40; seed++) {
        struct net *net = net_new_running(4, seed);
        net->cut[0][1] = net->cut[1][0] = true;
        net_run(net, 5000);
        for (int other = 0; other < 4; other++)
            net->cut[1][other] = net->cut[other][1] = other != 1;
        while (net->nodes[1].sees[0] != MEMBER_SUSPECT)
            net_run(net, 10);
        memset(net->cut, 0, sizeof net->cut);
        net->cut[0][1] = net->cut[1][0] = true;
        assert_true(net_until(net, net_all_alive, 10000));
        net_free(net);
    }
}

static void a_partition_of_any_length_heals_and_the_tables_agree(void **state) {
    (void)state;
    static const uint64_t lengths[] = {1000, 10000, 200000};
    for (size_t l = 0; l < 3; l++) {
        struct net *net = net_new_running(6, 20 + l);
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++)
                net->cut[i][j] = i / 2 != j / 2; /* three equal parts */
        net_run(net, lengths[l]);
        for (int i = 0; i < 6; i++) {
            char filter[32];
            snprintf(filter, sizeof filter, "part/%d", i);
            net_row(net, i, filter, true);
        }
        net_run(net, 500);
        memset(net->cut, 0, sizeof net->cut);
        uint64_t start = net->now_ms;
        assert_true(net_until(net, net_agreed, 20000));
        print_message("a partition of %llu ms healed in %llu ms\n", (unsigned long long)lengths[l],
                      (unsigned long long)(net->now_ms - start));
        assert_true(net_has_row(net, 0, 5, "part/5"));
        net_free(net);
    }
}

static void bootstrap_peers_that_were_all_down_are_found_again(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 9);
    net_kill(net, 0);
    net_run(net, 60000);
    assert_int_equal(net->nodes[2].sees[0], MEMBER_DOWN);
    net->nodes[0].epoch = 2;
    net->nodes[0].bootstrap_count = 0; /* it knows nobody itself */
    net_start(net, 0);
    assert_true(net_until(net, net_all_alive, 10000));
    net_free(net);
}

static void a_down_member_that_knows_nobody_is_called_for_ever(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 10);
    net_kill(net, 2); /* nobody's bootstrap address */
    net_run(net, 200000);
    assert_int_equal(net->nodes[1].sees[2], MEMBER_DOWN);
    net->nodes[2].epoch = 2;
    net->nodes[2].bootstrap_count = 0;
    net_start(net, 2);
    assert_true(net_until(net, net_all_alive, 10000));
    net_free(net);
}

static void a_broker_killed_and_back_with_one_bootstrap_peer_is_in_within_2_s(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed < 10; seed++) {
        struct net *net = net_new_running(3, seed);
        net_row(net, 0, "x/0", true);
        net_row(net, 1, "x/1", true);
        net_row(net, 2, "old", true);
        net_run(net, 3000);
        net_kill(net, 1);
        net_run(net, seed * 300); /* before and after it was declared down */
        net->nodes[1].epoch = 2;
        net->nodes[1].bootstrap[0] = 2;
        net_start(net, 1);
        net_row(net, 1, "x/new", true);
        assert_true(net_until(net, net_agreed, 2000));
        net_run(net, 200);
        assert_false(net_has_row(net, 0, 1, "x/1"));
        assert_true(net_has_row(net, 0, 1, "x/new"));
        assert_true(net_has_row(net, 1, 0, "x/0"));
        net_free(net);
    }
}

/* P17 */
static void a_sleeping_process_does_not_condemn_the_others(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 12);
    net_run(net, 2000);
    /* Node 0 stops for a minute with its loop: nothing in, nothing out. */
    struct gossip *asleep = net->nodes[0].gossip;
    net->nodes[0].gossip = NULL;
    net_run(net, 60000);
    net->nodes[0].gossip = asleep;
    uint64_t before = net->nodes[0].down_events;
    assert_true(net_until(net, net_all_alive, 5000));
    assert_int_equal(net->nodes[0].down_events, before);
    net_free(net);
}

/* The third of three is cut off. The first suspects it, and then stands still until its gossip is put back. */
static struct gossip *falls_asleep_suspecting(struct net *net) {
    for (int i = 0; i < 2; i++)
        net->cut[i][2] = net->cut[2][i] = true;
    uint64_t start = net->now_ms;
    while (net->nodes[0].sees[2] != MEMBER_SUSPECT && net->now_ms < start + 3000)
        net_step(net, start + 3000);
    assert_int_equal(net->nodes[0].sees[2], MEMBER_SUSPECT);
    struct gossip *asleep = net->nodes[0].gossip;
    net->nodes[0].gossip = NULL;
    return asleep;
}

/* P17, P24 */
static void a_suspicion_that_was_slept_through_begins_anew(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 14);
    net_run(net, 2000);
    struct gossip *asleep = falls_asleep_suspecting(net);
    memset(net->cut, 0, sizeof net->cut);
    net_run(net, 10000);
    net->nodes[0].gossip = asleep;
    assert_true(net_until(net, net_all_alive, 5000));
    assert_int_equal(net->nodes[0].down_events, 0);
    net_free(net);
}

/* What was left of it when we fell asleep is no time in which the suspect, or others, could have spoken to us. */
static void who_wakes_waits_a_whole_suspicion_before_it_holds_anybody_dead(void **state) {
    (void)state;
    for (uint64_t seed = 14; seed < 18; seed++) {
        struct net *net = net_new_running(3, seed);
        net_run(net, 2000);
        struct gossip *asleep = falls_asleep_suspecting(net);
        net_run(net, 5000);
        net->nodes[0].gossip = asleep;
        uint64_t woken_ms = net->now_ms;
        net_run(net, 5000);
        assert_int_equal(net->nodes[0].sees[2], MEMBER_DOWN);
        assert_in_range(net->nodes[0].sees_since_ms[2] - woken_ms, 1200, 3600);
        net_free(net);
    }
}

static void when_many_are_suspect_at_once_nobody_is_evicted(void **state) {
    (void)state;
    struct net *net = net_new_running(8, 13);
    net_run(net, 2000);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            net->cut[i][j] = (i < 4) != (j < 4);
    net_run(net, 20000);
    uint64_t downs = 0;
    for (int i = 0; i < 8; i++)
        downs += net->nodes[i].down_events;
    assert_int_equal(downs, 0);
    assert_int_equal(net->nodes[0].sees[7], MEMBER_SUSPECT);
    memset(net->cut, 0, sizeof net->cut);
    assert_true(net_until(net, net_agreed, 5000));
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_is_noticed_by_all_within_3_s),
        cmocka_unit_test(two_neighbours_that_die_together_among_40_are_noticed_like_one),
        cmocka_unit_test(the_fifth_death_in_a_row_is_noticed_as_soon_as_the_first),
        cmocka_unit_test(nobody_is_declared_dead_in_an_hour_at_10_percent_loss),
        cmocka_unit_test(who_has_yet_to_prove_itself_is_not_suspected_for_loss),
        cmocka_unit_test(a_slow_network_is_not_taken_for_death),
        cmocka_unit_test(a_suspect_that_lives_refutes_with_a_higher_incarnation),
        cmocka_unit_test(an_accusation_that_nobody_heard_is_refuted_later),
        cmocka_unit_test(two_brokers_that_cannot_reach_each_other_live_by_their_helpers),
        cmocka_unit_test(a_partition_of_any_length_heals_and_the_tables_agree),
        cmocka_unit_test(bootstrap_peers_that_were_all_down_are_found_again),
        cmocka_unit_test(a_down_member_that_knows_nobody_is_called_for_ever),
        cmocka_unit_test(a_broker_killed_and_back_with_one_bootstrap_peer_is_in_within_2_s),
        cmocka_unit_test(a_sleeping_process_does_not_condemn_the_others),
        cmocka_unit_test(a_suspicion_that_was_slept_through_begins_anew),
        cmocka_unit_test(who_wakes_waits_a_whole_suspicion_before_it_holds_anybody_dead),
        cmocka_unit_test(when_many_are_suspect_at_once_nobody_is_evicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
