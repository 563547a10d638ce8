/* What silence says, and what a broker may spend on hearing it. */
#include "gossip/doubt.h"
#include "gossip/effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint16_t share(unsigned percent) {
    return (uint16_t)(65536u * percent / 100);
}

/* So that a quick network is judged by two pings and three helpers. */
static void two_pings_and_three_helpers_are_enough_where_nothing_is_lost(void **state) {
    (void)state;
    assert_int_equal(2 * doubt_of_ping(0) + 3 * doubt_of_helper(0), DOUBT_SUSPECT);
    assert_int_equal(doubt_of_ping(0), DOUBT_HELPERS);
}

/* Never more doubt than the chance that all of them were lost: 2^-(doubt/16). */
static void silence_says_no_more_than_the_loss_allows(void **state) {
    (void)state;
    for (uint32_t loss = 4096; loss < 65536; loss += 64) {
        double chance = 1; /* of doubt one at that loss: 2^-(1/16) each, so this many of them */
        for (unsigned i = 0; i < doubt_of_ping((uint16_t)loss); i++)
            chance *= 0.957603280698574;
        if (loss < 53248) assert_true(chance * 65536 >= loss - 1.0);
        chance = 1;
        for (unsigned i = 0; i < doubt_of_helper((uint16_t)loss); i++)
            chance *= 0.957603280698574;
        double passes = (65536.0 - loss) / 65536, lost = 1 - passes * passes;
        if (lost > 0.125 && lost < 0.8125) assert_true(chance >= lost - 0.001);
    }
    assert_true(doubt_of_ping(65535) > 0); /* or nobody would ever be suspected */
    assert_true(doubt_of_helper(65535) > 0);
}

static void more_loss_means_more_questions(void **state) {
    (void)state;
    static const struct {
        unsigned percent, pings;
    } cases[] = {{0, 5}, {10, 6}, {36, 13}, {64, 34}, {84, 68}}; /* of both ways; 36 % is a fifth each way */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned pings = 0;
        for (unsigned doubt = 0; doubt < DOUBT_SUSPECT; pings++)
            doubt += doubt_of_ping(share(cases[i].percent));
        assert_int_equal(pings, cases[i].pings);
    }
}

static void the_mean_loss_follows_the_weather_and_ends(void **state) {
    (void)state;
    uint16_t loss = 0;
    for (int i = 0; i < 4000; i++)
        loss = doubt_note_loss(loss, i % 5 < 2, 5);
    assert_in_range(loss, share(32), share(48));
    for (int i = 0; i < 1000; i++)
        loss = doubt_note_loss(loss, true, 3);
    assert_in_range(loss, share(99), 65535);
    for (int i = 0; i < 200; i++)
        loss = doubt_note_loss(loss, false, 3);
    assert_int_equal(loss, 0);
}

static void what_may_be_spent_has_a_measure_that_comes_back(void **state) {
    (void)state;
    struct effort effort = {0};
    unsigned at_once = 0, later = 0;
    while (effort_take(&effort, 1000, 500, 1))
        at_once++;
    assert_int_equal(at_once, EFFORT_PER_INTERVAL * EFFORT_INTERVALS);
    for (uint64_t now = 1001; now <= 61000; now++)
        while (effort_take(&effort, now, 500, 1))
            later++;
    assert_int_equal(later, 60 * 2 * EFFORT_PER_INTERVAL);
    assert_false(effort_take(&effort, 61000, 500, 1)); /* a refused one costs nothing */
    assert_true(effort_take(&effort, 61000 + 63, 500, 1));
    assert_true(effort_take(&effort, 1000000, 500, EFFORT_PER_INTERVAL * EFFORT_INTERVALS)); /* saved, and no more */
    assert_false(effort_take(&effort, 1000000, 500, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_pings_and_three_helpers_are_enough_where_nothing_is_lost),
        cmocka_unit_test(silence_says_no_more_than_the_loss_allows),
        cmocka_unit_test(more_loss_means_more_questions),
        cmocka_unit_test(the_mean_loss_follows_the_weather_and_ends),
        cmocka_unit_test(what_may_be_spent_has_a_measure_that_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
