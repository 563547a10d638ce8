/* Loss of any height: what it may cost, and how late a death is noticed. */
#include "gossip_net.h"

#define BROKERS 8
#define WATCHED_S 120u

static uint64_t bytes_sent(struct net *net) {
    uint64_t bytes = 0;
    struct gossip_counters counters;
    for (int i = 0; i < net->count; i++) {
        gossip_read_counters(net->nodes[i].gossip, &counters);
        bytes += counters.bytes_sent;
    }
    return bytes;
}

static uint64_t deaths_told(const struct net *net) {
    uint64_t deaths = 0;
    for (int i = 0; i < net->count; i++)
        deaths += net->nodes[i].down_events;
    return deaths;
}

static bool last_is_down(struct net *net) {
    for (int i = 0; i < net->count - 1; i++)
        if (net->nodes[i].sees[net->count - 1] != MEMBER_DOWN) return false;
    return true;
}

/* P17: no weather makes a storm of suspicions. */
static void no_loss_makes_a_storm_or_kills_and_the_dead_are_noticed(void **state) {
    (void)state;
    static const struct {
        uint32_t loss_percent;
        uint64_t bytes_per_s_max, noticed_max_ms;
    } weathers[] = {{0, 900, 3000},    {10, 1100, 3500},  {20, 1100, 5000}, {30, 1200, 7000},
                    {40, 1400, 10000}, {50, 4096, 16000}, {60, 4096, 30000}};
    for (size_t w = 0; w < sizeof weathers / sizeof *weathers; w++) {
        struct net *net = net_new_running(BROKERS, 40 + w);
        net->loss_percent = weathers[w].loss_percent;
        net->delay_max_ms = 5;
        net_run(net, 30000); /* it is measured */
        uint64_t before = bytes_sent(net), deaths = deaths_told(net);
        net_run(net, WATCHED_S * 1000);
        uint64_t each = (bytes_sent(net) - before) / WATCHED_S / BROKERS;
        deaths = deaths_told(net) - deaths;
        net_kill(net, BROKERS - 1);
        uint64_t died_ms = net->now_ms;
        bool noticed = net_until(net, last_is_down, weathers[w].noticed_max_ms);
        print_message("%u %% loss: %llu B/s of each, %llu false deaths, one noticed after %llu ms\n",
                      weathers[w].loss_percent, (unsigned long long)each, (unsigned long long)deaths,
                      (unsigned long long)(net->now_ms - died_ms));
        assert_in_range(each, 1, weathers[w].bytes_per_s_max);
        assert_int_equal(deaths, 0);
        assert_true(noticed);
        net_free(net);
    }
}

/* One broker with a bad radio among good ones: it is asked more often, and neither it nor the others make a noise. */
static void one_bad_radio_does_not_disturb_the_others(void **state) {
    (void)state;
    struct net *net = net_new_running(BROKERS, 50);
    uint64_t before = bytes_sent(net);
    for (uint32_t ms = 0; ms < WATCHED_S * 1000; ms += 100) {
        /* Of each tenth of a second it hears, and is heard, in six; which ones is drawn. */
        bool deaf = net_random(net) % 10 < 4;
        for (int i = 1; i < BROKERS; i++)
            net->cut[0][i] = net->cut[i][0] = deaf;
        net_run(net, 100);
    }
    uint64_t each = (bytes_sent(net) - before) / WATCHED_S / BROKERS;
    print_message("with one bad radio: %llu B/s of each, %llu false deaths\n", (unsigned long long)each,
                  (unsigned long long)deaths_told(net));
    assert_in_range(each, 1, 2048);
    assert_int_equal(deaths_told(net), 0);
    net_free(net);
}

/* P19: the radio is silent, or nearly, for all at once and for longer than a suspicion lasts. */
static void nobody_dies_because_all_are_silent_for_seconds(void **state) {
    (void)state;
    struct net *net = net_new_running(12, 60);
    uint64_t longest_ms = 0;
    net->delay_max_ms = 20;
    for (unsigned burst = 0; burst < 60; burst++) {
        net->loss_percent = 20;
        net_run(net, 12000);
        uint64_t lasts_ms = 2000 + net_random(net) % 3000;
        if (lasts_ms > longest_ms) longest_ms = lasts_ms;
        net->loss_percent = 92;
        net_run(net, lasts_ms);
    }
    net->loss_percent = 20;
    net_run(net, 12000);
    print_message("60 times up to %llu ms of silence: %llu deaths told\n", (unsigned long long)longest_ms,
                  (unsigned long long)deaths_told(net));
    assert_int_equal(deaths_told(net), 0);
    /* Nor does it make the dead live. */
    net_kill(net, 11);
    assert_true(net_until(net, last_is_down, 6000));
    net_free(net);
}

static bool first_knows_all(struct net *net) {
    for (int i = 0; i < net->count; i++)
        if (net->nodes[0].sees[i] != MEMBER_ALIVE && i != 0) return false;
    return true;
}

/* P25: what is lost is asked for again after some round trips, and not after ever longer waits for one that is busy. */
static void a_joiner_of_many_knows_them_soon_where_much_is_lost(void **state) {
    (void)state;
    uint64_t all_ms = 0, longest_ms = 0;
    for (uint64_t seed = 70; seed < 80; seed++) {
        struct net *net = net_new_running(40, seed);
        net_kill(net, 0);
        net_run(net, 10000);
        net->loss_percent = 50;
        net_run(net, 10000); /* it is measured */
        net_start(net, 0);
        uint64_t started_ms = net->now_ms;
        assert_true(net_until(net, first_knows_all, 60000));
        uint64_t took_ms = net->now_ms - started_ms;
        all_ms += took_ms;
        if (took_ms > longest_ms) longest_ms = took_ms;
        net_free(net);
    }
    print_message("a joiner of 40 at 50 %% loss: %llu ms, at most %llu\n", (unsigned long long)all_ms / 10,
                  (unsigned long long)longest_ms);
    assert_true(all_ms / 10 <= 10500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_loss_makes_a_storm_or_kills_and_the_dead_are_noticed),
        cmocka_unit_test(one_bad_radio_does_not_disturb_the_others),
        cmocka_unit_test(a_joiner_of_many_knows_them_soon_where_much_is_lost),
        cmocka_unit_test(nobody_dies_because_all_are_silent_for_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
