/* When it is said that a certificate runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/expiry.h"

#define DAY ((int64_t)86400)
#define FROM ((int64_t)1700000000)

static char text[EXPIRY_TEXT_MAX];

static bool due(struct expiry *expiry, int64_t days, int64_t at_s) {
    return expiry_due(expiry, FROM, FROM + days * DAY, FROM + at_s, text);
}

static void once_a_day_in_the_last_14_days(void **state) {
    (void)state;
    struct expiry expiry = {0};
    unsigned told = 0;
    for (int64_t hour = 0; hour < 90 * 24; hour++)
        told += due(&expiry, 90, hour * 3600);
    assert_int_equal(told, 14);
    expiry = (struct expiry){0};
    assert_false(due(&expiry, 90, 75 * DAY));
    assert_true(due(&expiry, 90, 80 * DAY));
    assert_non_null(strstr(text, "expires in 10 days"));
    assert_true(due(&expiry, 90, 89 * DAY));
    assert_non_null(strstr(text, "expires in 24 hours"));
}

/* One that is renewed each hour lives for a day: nobody wants to hear of it. */
static void short_life_has_a_short_warning(void **state) {
    (void)state;
    struct expiry expiry = {0};
    assert_false(due(&expiry, 1, 17 * 3600));
    assert_true(due(&expiry, 1, 19 * 3600));
    assert_non_null(strstr(text, "expires in 5 hours"));
}

static void that_it_has_expired_is_said_at_once(void **state) {
    (void)state;
    struct expiry expiry = {0};
    assert_true(due(&expiry, 90, 90 * DAY - 60));
    assert_false(due(&expiry, 90, 90 * DAY - 1));
    assert_true(due(&expiry, 90, 90 * DAY + 1));
    assert_non_null(strstr(text, "has expired"));
    assert_false(due(&expiry, 90, 90 * DAY + 3600));
    assert_true(due(&expiry, 90, 91 * DAY + 2));
}

static void renewed_one_is_quiet_and_warns_anew(void **state) {
    (void)state;
    struct expiry expiry = {0};
    assert_true(due(&expiry, 90, 91 * DAY));
    assert_false(due(&expiry, 180, 91 * DAY));
    assert_true(due(&expiry, 90, 91 * DAY + 1)); /* the old one again, by mistake */
}

static void without_one_there_is_nothing_to_say(void **state) {
    (void)state;
    struct expiry expiry = {0};
    assert_false(expiry_due(&expiry, 0, 0, FROM, text));
}

static void clock_that_is_set_back_stops_nothing(void **state) {
    (void)state;
    struct expiry expiry = {0};
    assert_true(due(&expiry, 90, 89 * DAY));
    assert_true(due(&expiry, 90, 80 * DAY));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_a_day_in_the_last_14_days),      cmocka_unit_test(short_life_has_a_short_warning),
        cmocka_unit_test(that_it_has_expired_is_said_at_once), cmocka_unit_test(renewed_one_is_quiet_and_warns_anew),
        cmocka_unit_test(without_one_there_is_nothing_to_say), cmocka_unit_test(clock_that_is_set_back_stops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
