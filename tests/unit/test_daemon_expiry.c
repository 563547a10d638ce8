/* When it is said that a certificate, or our token, runs out. */
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
    return expiry_due(expiry, EXPIRY_CERTIFICATE, FROM, FROM + days * DAY, FROM + at_s, text);
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
    assert_false(expiry_due(&expiry, EXPIRY_CERTIFICATE, 0, 0, FROM, text));
}

static void clock_that_is_set_back_stops_nothing(void **state) {
    (void)state;
    struct expiry expiry = {0};
    assert_true(due(&expiry, 90, 89 * DAY));
    assert_true(due(&expiry, 90, 80 * DAY));
}

static void token_is_near_its_end_from_its_last_tenth_on(void **state) {
    (void)state;
    static const int64_t lives_s[] = {20, 3600, 30 * DAY, 365 * DAY};
    for (size_t i = 0; i < sizeof lives_s / sizeof *lives_s; i++) {
        int64_t to = FROM + lives_s[i], near = to - lives_s[i] / 10;
        assert_int_equal(expiry_state(EXPIRY_TOKEN, FROM, to, FROM), EXPIRY_FAR);
        assert_int_equal(expiry_state(EXPIRY_TOKEN, FROM, to, near - 1), EXPIRY_FAR);
        assert_int_equal(expiry_state(EXPIRY_TOKEN, FROM, to, near), EXPIRY_NEAR);
        assert_int_equal(expiry_state(EXPIRY_TOKEN, FROM, to, to), EXPIRY_NEAR);
        assert_int_equal(expiry_state(EXPIRY_TOKEN, FROM, to, to + 1), EXPIRY_OVER);
    }
    assert_int_equal(expiry_state(EXPIRY_TOKEN, 0, 0, FROM), EXPIRY_FAR);
}

static void of_a_token_is_said_who_refuses_it_and_what_to_do(void **state) {
    (void)state;
    struct expiry expiry = {0};
    assert_true(expiry_due(&expiry, EXPIRY_TOKEN, FROM, FROM + 365 * DAY, FROM + 329 * DAY, text));
    assert_string_equal(text,
                        "ours, of identity.token, expires in 36 days, and then other brokers will refuse it: mint "
                        "one with hobnob token mint, put it there and restart hobnobd");
    assert_false(expiry_due(&expiry, EXPIRY_TOKEN, FROM, FROM + 365 * DAY, FROM + 329 * DAY + 3600, text));
    assert_true(expiry_due(&expiry, EXPIRY_TOKEN, FROM, FROM + 365 * DAY, FROM + 366 * DAY, text));
    assert_string_equal(text, "ours, of identity.token, has expired, and other brokers refuse it: mint one with hobnob "
                              "token mint, put it there and restart hobnobd");
    expiry = (struct expiry){0};
    assert_true(expiry_due(&expiry, EXPIRY_TOKEN, FROM, FROM + 1200, FROM + 1090, text));
    assert_non_null(strstr(text, "expires in 110 seconds"));
    expiry = (struct expiry){0};
    assert_true(expiry_due(&expiry, EXPIRY_TOKEN, FROM, FROM + 1200, FROM + 1080, text));
    assert_non_null(strstr(text, "expires in 2 minutes"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once_a_day_in_the_last_14_days),
        cmocka_unit_test(short_life_has_a_short_warning),
        cmocka_unit_test(that_it_has_expired_is_said_at_once),
        cmocka_unit_test(renewed_one_is_quiet_and_warns_anew),
        cmocka_unit_test(without_one_there_is_nothing_to_say),
        cmocka_unit_test(clock_that_is_set_back_stops_nothing),
        cmocka_unit_test(token_is_near_its_end_from_its_last_tenth_on),
        cmocka_unit_test(of_a_token_is_said_who_refuses_it_and_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
