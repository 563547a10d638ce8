/* Which late number was passed over, and which one comes again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/gaps.h"

static void each_number_of_a_gap_is_late_once(void **state) {
    (void)state;
    static const uint64_t orders[][4] = {{4, 5, 6, 7}, {7, 6, 5, 4}, {5, 4, 7, 6}, {6, 7, 4, 5}};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct gaps gaps = {0};
        gaps_add(&gaps, 1, 4, 8);
        assert_false(gaps_take(&gaps, 1, 3));
        assert_false(gaps_take(&gaps, 1, 8));
        for (size_t k = 0; k < 4; k++)
            assert_true(gaps_take(&gaps, 1, orders[i][k]));
        for (uint64_t sequence = 3; sequence <= 8; sequence++)
            assert_false(gaps_take(&gaps, 1, sequence));
        assert_int_equal(gaps.count, 0);
    }
}

static void of_many_gaps_the_latest_are_known(void **state) {
    (void)state;
    struct gaps gaps = {0};
    for (uint64_t i = 0; i < GAPS_MAX + 3; i++)
        gaps_add(&gaps, 1, 10 * i, 10 * i + 1);
    for (uint64_t i = 0; i < GAPS_MAX + 3; i++)
        assert_int_equal(gaps_take(&gaps, 1, 10 * i), i >= 3);
}

static void splitting_a_gap_stays_within_the_bound(void **state) {
    (void)state;
    struct gaps gaps = {0};
    gaps_add(&gaps, 1, 0, UINT64_MAX);
    for (uint64_t i = 1; i < 1000; i += 2)
        gaps_take(&gaps, 1, i);
    assert_int_equal(gaps.count, GAPS_MAX);
    assert_true(gaps_take(&gaps, 1, UINT64_MAX - 1));
    assert_false(gaps_take(&gaps, 1, 0)); /* forgotten */
}

static void another_numbering_has_gaps_of_its_own(void **state) {
    (void)state;
    struct gaps gaps = {0};
    gaps_add(&gaps, 1, 4, 8);
    assert_false(gaps_take(&gaps, 2, 4));
    gaps_add(&gaps, 2, 1, 2);
    assert_false(gaps_take(&gaps, 2, 4));
    assert_true(gaps_take(&gaps, 2, 1));
    assert_false(gaps_take(&gaps, 1, 5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_of_a_gap_is_late_once),
        cmocka_unit_test(of_many_gaps_the_latest_are_known),
        cmocka_unit_test(splitting_a_gap_stays_within_the_bound),
        cmocka_unit_test(another_numbering_has_gaps_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
