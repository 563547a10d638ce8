/* P25: many brokers that start at once, or come to many. `STORM=1000 test_gossip_storm` measures so many; with
 * STORM_RUNNING=1000 they come to so many that run, STORM_KINDS=1 tells of each second, and what was said, and
 * with STORM_SEED_BYTES=150000 those whom all dial may send no more in a second. It takes minutes, and a release build.
 */
#include "gossip_storm.h"

#include "gossip/verbs.h"

static uint32_t number_of(const char *name, uint32_t otherwise) {
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

static struct storm *running(uint32_t count, uint32_t more, uint32_t seeds, uint64_t seed) {
    struct storm *storm = storm_new(count + more, seeds, seed);
    storm->seed_bytes_per_s = number_of("STORM_SEED_BYTES", 0);
    storm_expect(storm, count);
    for (uint32_t i = 0; i < count; i++)
        storm_start(storm, i);
    assert_true(count == 0 || storm_until_full(storm, 60000));
    return storm;
}

static uint64_t pairs_known(const struct storm *storm) {
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < storm->count; i++)
        pairs += storm->nodes[i].sees;
    return pairs;
}

static bool tell_each_second(struct storm *storm, uint64_t ms) {
    for (uint64_t second = 1; storm->full < storm->expected && second <= ms / 1000; second++) {
        uint32_t alone = 0;
        storm_until_full(storm, 1000);
        for (uint32_t i = 0; i < storm->count; i++)
            alone += storm->nodes[i].sees == 0;
        printf("  after %2d s: %5.1f %% of the pairs, %u see nobody, %u all\n", (int)second,
               100.0 * (double)pairs_known(storm) / storm->count / (storm->count - 1), alone, storm->full);
        fflush(stdout);
    }
    return storm->full == storm->expected;
}

/* Those from first on start now; all see all within ms. */
static void join(struct storm *storm, uint32_t first, uint64_t ms) {
    uint64_t begun_us = storm->now_us;
    storm_reset_counts(storm);
    storm_expect(storm, storm->count);
    for (uint32_t i = first; i < storm->count; i++)
        storm_start(storm, i);
    bool full = number_of("STORM_KINDS", 0) > 0 ? tell_each_second(storm, ms) : storm_until_full(storm, ms);
    printf("%u come to %u: all see all after %.1f s\n", storm->count - first, first,
           (double)(storm->now_us - begun_us) / 1e6);
    if (storm->seeds > 0) storm_print(storm, "seeds", 0, storm->seeds);
    if (storm->seeds > 0 && storm->opens) storm_print_kinds(storm, 0, storm->seeds);
    if (first > storm->seeds) storm_print(storm, "others", storm->seeds, first);
    storm_print(storm, "joiners", first > storm->seeds ? first : storm->seeds, storm->count);
    if (storm->opens) storm_print_kinds(storm, first > storm->seeds ? first : storm->seeds, storm->count);
    if (!full) fail_msg("%u of %u see all", storm->full, storm->count);
}

static void measure(void **state) {
    (void)state;
    uint32_t many = number_of("STORM", 0), before = number_of("STORM_RUNNING", 0);
    if (many == 0) return;
    struct storm *storm = running(before, many, 3, number_of("STORM_SEED", 1));
    storm->opens = number_of("STORM_KINDS", 0) > 0;
    storm->loss_percent = number_of("STORM_LOSS", 0);
    if (before > 0) storm_run(storm, 20000);
    join(storm, before, 600000);
    storm_reset_counts(storm);
    storm_run(storm, 60000);
    printf(" in the minute behind it:\n");
    storm_print(storm, "all", 0, storm->count);
    storm_free(storm);
}

/* What a broker needs: a key, a token and a head (about 1.1 kB) of each other. More than twice that would be a storm.
 */
static void a_hundred_that_start_at_once_cost_little_more_than_what_each_must_know(void **state) {
    (void)state;
    struct storm *storm = running(0, 90, 3, 2);
    join(storm, 0, 10000);
    for (uint32_t i = 0; i < storm->count; i++) {
        assert_true(storm->nodes[i].bytes_in < 90 * 1100 * (i < 3 ? 5 : 4));
        assert_true(storm->nodes[i].identity.questions < 90 + 20);
    }
    storm_free(storm);
}

/* P25: what a joiner must have once: of each other a key, a token, a head and the word that it lives. It pings few, and
 * nobody is asked for his table twice. */
static void one_that_comes_to_many_receives_little_more_than_their_table(void **state) {
    (void)state;
    struct storm *storm = running(80, 1, 3, 8);
    storm_run(storm, 10000);
    storm->opens = true;
    join(storm, 80, 3000);
    const struct storm_node *joiner = &storm->nodes[80];
    uint64_t table = joiner->said.bytes[MESSAGE_TOKEN] / joiner->said.count[MESSAGE_TOKEN] * 80 +
                     joiner->said.bytes[MESSAGE_HEAD] / joiner->said.count[MESSAGE_HEAD] * 80 +
                     joiner->said.bytes[MESSAGE_VOUCH] / joiner->said.count[MESSAGE_VOUCH] * 80;
    printf("  a table of %d B\n", (int)table);
    assert_in_range(joiner->bytes_in, table, table * 3 / 2);
    assert_in_range(joiner->said.count[MESSAGE_TOKEN], 80, 84);
    assert_in_range(joiner->said.count[MESSAGE_HEAD], 80, 120);
    assert_in_range(joiner->said.count[MESSAGE_BUCKETS], 1, 4);
    assert_in_range(joiner->said.count[MESSAGE_PONG], 1, 30);
    assert_in_range(joiner->packets_out, 1, 100); /* and it does not answer every packet of the roll */
    for (uint32_t i = 0; i < 3; i++)
        assert_in_range(storm->nodes[i].packets_in, 1, 40);
    storm_free(storm);
}

/* P25, P13: whom the roll did not bring is found by comparing, and a comparison that nobody would heed yet is not lost.
 */
static void the_last_pair_is_not_far_behind_the_others(void **state) {
    (void)state;
    uint64_t nearly_ms = 0, all_ms = 0;
    for (uint64_t seed = 20; seed < 24; seed++) {
        struct storm *storm = storm_new(60, 3, seed);
        uint64_t begun_ms = storm->now_us / 1000, pairs = 60u * 59;
        storm_expect(storm, 60);
        for (uint32_t i = 0; i < 60; i++)
            storm_start(storm, i);
        while (pairs_known(storm) < pairs * 99 / 100 && storm->now_us / 1000 < begun_ms + 20000)
            storm_run(storm, 20);
        nearly_ms += storm->now_us / 1000 - begun_ms;
        if (!storm_until_full(storm, 20000)) fail_msg("seed %d: %u of 60 see all", (int)seed, storm->full);
        all_ms += storm->now_us / 1000 - begun_ms;
        storm_free(storm);
    }
    print_message("99 %% of the pairs after %d ms, all after %d ms\n", (int)nearly_ms / 4, (int)all_ms / 4);
    assert_in_range(all_ms, nearly_ms, nearly_ms * 2);
}

static double packets_to(const struct storm *storm, uint32_t first, uint32_t end) {
    double packets = 0;
    for (uint32_t i = first; i < end; i++)
        packets += (double)storm->nodes[i].packets_in;
    return packets / (end - first);
}

/* P25: nor the brokers that everybody's list names, which let all in and leave the rest to others. */
static void those_who_come_to_many_burden_nobody_for_long(void **state) {
    (void)state;
    struct storm *storm = running(60, 30, 3, 3);
    storm_run(storm, 10000);
    join(storm, 60, 10000);
    assert_true(packets_to(storm, 0, 3) < 2 * packets_to(storm, 3, 60));
    for (uint32_t i = 0; i < storm->count; i++)
        assert_true(storm->nodes[i].bytes_in < 90 * 1100 * 4);
    storm_free(storm);
}

/* P25, P16: brokers that are asked for more than they may send let in one after another, and answer their peers' pings
 * meanwhile: else all would suspect them, ask them all the more, and never end. */
static void those_who_let_many_in_are_not_held_dead(void **state) {
    (void)state;
    for (uint64_t seed = 9; seed < 11; seed++) {
        struct storm *storm = storm_new(100, 3, seed);
        storm->seed_bytes_per_s = 60000;
        storm_expect(storm, 40);
        for (uint32_t i = 0; i < 40; i++)
            storm_start(storm, i);
        assert_true(storm_until_full(storm, 60000));
        storm_run(storm, 10000);
        storm->opens = true;
        join(storm, 40, 20000);
        for (uint32_t i = 0; i < 3; i++) {
            assert_in_range(storm->nodes[i].said.count[MESSAGE_ACCUSE], 0, 20);
            assert_in_range(storm->nodes[i].packets_in, 60, 60 * 50);
        }
        storm_free(storm);
    }
}

/* How many of the others come to suspect 5 when `accuser` does, who is wrong. */
static uint64_t believers(struct storm *storm, uint32_t accuser) {
    struct gossip *gossip = storm->nodes[accuser].gossip;
    uint64_t before = 0, behind = 0;
    for (uint32_t i = 0; i < storm->count; i++)
        before += storm->nodes[i].gossip->counters.suspicions;
    accusation_suspect(gossip, members_find(gossip, &storm->nodes[5].gossip->self->id), NULL);
    storm_drain(storm, accuser);
    storm_run(storm, 5000);
    for (uint32_t i = 0; i < storm->count; i++)
        behind += storm->nodes[i].gossip->counters.suspicions;
    return behind - before - 1;
}

/* P25: it may have come with a thousand others, and wait for its turn with the one that it takes for dead. */
static void what_a_newcomer_says_of_the_dead_is_asked_and_not_believed(void **state) {
    (void)state;
    struct storm *storm = running(40, 1, 3, 11);
    storm_run(storm, 31000);
    join(storm, 40, 5000);
    storm_run(storm, 2000);
    storm_reset_counts(storm);
    assert_int_equal(believers(storm, 40), 0);
    assert_in_range(storm->nodes[5].packets_in, 1, 150);
    assert_true(believers(storm, 7) > 5);
    storm_run(storm, 30000);
    assert_true(believers(storm, 40) > 5); /* it is none any more */
    storm_free(storm);
}

static void a_join_is_not_hindered_by_loss(void **state) {
    (void)state;
    struct storm *storm = running(50, 25, 3, 4);
    storm->loss_percent = 20;
    join(storm, 50, 30000);
    storm_free(storm);
}

/* Not one of the addresses of its list lives; the peers of its last run do. */
static void one_that_comes_to_many_is_let_in_by_any_of_them(void **state) {
    (void)state;
    struct storm *storm = running(70, 1, 3, 5);
    storm_run(storm, 5000);
    for (uint32_t i = 0; i < 3; i++) {
        gossip_free(storm->nodes[i].gossip);
        storm->nodes[i].gossip = NULL;
    }
    storm_run(storm, 20000);
    storm_start(storm, 70);
    storm_run(storm, 5000);
    assert_int_equal(storm->nodes[70].sees, 0);
    gossip_set_remembered(storm->nodes[70].gossip, storm->now_us / 1000, &storm->nodes[40].address, 1);
    storm_drain(storm, 70);
    storm_run(storm, 5000);
    assert_int_equal(storm->nodes[70].sees, 67);
    storm_free(storm);
}

/* P25, by multicast: no seed is there to be overrun, and nobody becomes one. */
static void a_hundred_that_find_each_other_by_multicast_single_nobody_out(void **state) {
    (void)state;
    struct storm *storm = storm_new(90, 0, 6);
    storm->multicast = true;
    join(storm, 0, 15000);
    for (uint32_t i = 0; i < storm->count; i++)
        assert_true(storm->nodes[i].bytes_in < 90 * 1100 * 5);
    storm_free(storm);
}

/* In a large federation a member's word makes alive whom nobody pings; if not so, that is found out as always. How
 * many are believed depends on who the newcomer hears of before it sees many: those it pings itself. */
static void the_dead_whom_somebody_vouched_for_are_found_out(void **state) {
    (void)state;
    int believed = 0;
    for (uint64_t seed = 7; seed < 20 && believed == 0; seed++) {
        struct storm *storm = running(60, 1, 3, seed);
        storm_run(storm, 5000);
        for (uint32_t i = 10; i < 14; i++) { /* dead, and nobody has noticed */
            gossip_free(storm->nodes[i].gossip);
            storm->nodes[i].gossip = NULL;
        }
        storm_start(storm, 60);
        storm_run(storm, 400);
        for (uint32_t i = 10; i < 14; i++)
            believed += storm->nodes[60].seen[i];
        if (believed > 0) storm_run(storm, 20000);
        for (uint32_t i = 10; i < 14; i++)
            assert_int_equal(storm->nodes[60].seen[i], 0);
        assert_int_equal(storm->nodes[60].sees, 56);
        storm_free(storm);
    }
    assert_true(believed > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_that_start_at_once_cost_little_more_than_what_each_must_know),
        cmocka_unit_test(one_that_comes_to_many_receives_little_more_than_their_table),
        cmocka_unit_test(the_last_pair_is_not_far_behind_the_others),
        cmocka_unit_test(those_who_come_to_many_burden_nobody_for_long),
        cmocka_unit_test(those_who_let_many_in_are_not_held_dead),
        cmocka_unit_test(what_a_newcomer_says_of_the_dead_is_asked_and_not_believed),
        cmocka_unit_test(a_join_is_not_hindered_by_loss),
        cmocka_unit_test(one_that_comes_to_many_is_let_in_by_any_of_them),
        cmocka_unit_test(a_hundred_that_find_each_other_by_multicast_single_nobody_out),
        cmocka_unit_test(the_dead_whom_somebody_vouched_for_are_found_out),
        cmocka_unit_test(measure),
    };
    if (number_of("STORM", 0) > 0) cmocka_set_test_filter("measure");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
