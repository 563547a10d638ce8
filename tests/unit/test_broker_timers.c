#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/timers.h"

enum { COUNT = 200 };

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % bound;
}

static void equal_times_fire_in_the_order_they_were_set(void **state) {
    struct timers timers = {0};
    struct timer all[10] = {0};
    (void)state;

    for (int i = 0; i < 10; i++)
        timer_set(&timers, &all[i], 5);
    timer_set(&timers, &all[3], 5);
    assert_null(timers_take(&timers, 4));
    for (int i = 0; i < 10; i++)
        if (i != 3) assert_ptr_equal(timers_take(&timers, 5), &all[i]);
    assert_ptr_equal(timers_take(&timers, 5), &all[3]);
    assert_null(timers_take(&timers, 5));
}

static void never_is_not_set(void **state) {
    struct timers timers = {0};
    struct timer timer = {0};
    (void)state;

    timer_set(&timers, &timer, 7);
    assert_true(timer_is_set(&timer));
    timer_set(&timers, &timer, UINT64_MAX);
    assert_false(timer_is_set(&timer));
    assert_true(timers_due_ms(&timers) == UINT64_MAX);
    timer_clear(&timers, &timer);
}

/* Setting, moving and clearing at random against a plain array. */
static void heap_agrees_with_an_array(void **state) {
    struct timers timers = {0};
    struct timer all[COUNT] = {0};
    uint64_t due[COUNT], now = 0;
    (void)state;

    for (int i = 0; i < COUNT; i++)
        due[i] = UINT64_MAX;
    for (int round = 0; round < 20000; round++) {
        uint32_t which = random_below(COUNT);
        uint64_t first = UINT64_MAX;
        struct timer *timer;
        if (random_below(4) == 0) {
            timer_clear(&timers, &all[which]);
            due[which] = UINT64_MAX;
        } else {
            due[which] = now + random_below(50);
            timer_set(&timers, &all[which], due[which]);
        }
        for (int i = 0; i < COUNT; i++)
            first = due[i] < first ? due[i] : first;
        assert_true(timers_due_ms(&timers) == first);
        if (random_below(8) != 0) continue;
        now += random_below(20);
        while ((timer = timers_take(&timers, now)) != NULL) {
            assert_true(timer->due_ms == due[timer - all] && timer->due_ms <= now);
            for (int i = 0; i < COUNT; i++)
                assert_true(due[i] >= timer->due_ms);
            due[timer - all] = UINT64_MAX;
        }
        for (int i = 0; i < COUNT; i++)
            assert_true(due[i] > now && timer_is_set(&all[i]) == (due[i] != UINT64_MAX));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_times_fire_in_the_order_they_were_set),
        cmocka_unit_test(never_is_not_set),
        cmocka_unit_test(heap_agrees_with_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
