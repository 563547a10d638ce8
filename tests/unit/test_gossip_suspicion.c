#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gossip/suspicion.h"

static struct member_id id(uint8_t n) {
    return (struct member_id){{n}};
}

static void it_shrinks_with_independent_accusers_only(void **unused) {
    (void)unused;
    struct suspicion suspicion;
    struct member_id a = id(1), b = id(2), c = id(3), d = id(4), e = id(5);
    suspicion_start(&suspicion, 100, &a);
    assert_int_equal(suspicion_deadline_ms(&suspicion, 1200, 10), 100 + 3600);
    assert_false(suspicion_confirm(&suspicion, &a));
    assert_int_equal(suspicion_timeout_ms(&suspicion, 1200, 10), 3600);
    assert_true(suspicion_confirm(&suspicion, &b));
    assert_int_equal(suspicion_timeout_ms(&suspicion, 1200, 10), 2400);
    assert_true(suspicion_confirm(&suspicion, &c));
    uint64_t third = suspicion_timeout_ms(&suspicion, 1200, 10);
    assert_true(third < 2400 && third > 1200);
    assert_true(suspicion_confirm(&suspicion, &d));
    assert_int_equal(suspicion_timeout_ms(&suspicion, 1200, 10), 1200);
    assert_false(suspicion_confirm(&suspicion, &e));
}

static void when_nobody_else_could_confirm_it_is_short_at_once(void **unused) {
    (void)unused;
    struct suspicion suspicion;
    struct member_id a = id(1), b = id(2);
    suspicion_start(&suspicion, 0, &a);
    assert_int_equal(suspicion_timeout_ms(&suspicion, 1200, 2), 1200);
    assert_int_equal(suspicion_timeout_ms(&suspicion, 1200, 3), 3600);
    suspicion_confirm(&suspicion, &b);
    assert_int_equal(suspicion_timeout_ms(&suspicion, 1200, 3), 1200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_shrinks_with_independent_accusers_only),
        cmocka_unit_test(when_nobody_else_could_confirm_it_is_short_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
