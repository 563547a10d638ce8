/* How long turns of the loop last, on a real loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include <time.h>

#include "daemon/turns.h"
#include "patient_clock.h"

static void each_turn_is_in_the_first_bucket_that_holds_it(void **state) {
    static const uint64_t turns_us[] = {0, 5000, 5001, 20000, 2000000, 2000001, 5000000000};
    struct turns_counters counters = {0};
    (void)state;
    for (size_t i = 0; i < sizeof turns_us / sizeof *turns_us; i++)
        turns_count(&counters, turns_us[i]);
    const uint64_t expected[TURNS_BUCKETS] = {2, 2, 0, 0, 1, 2};
    assert_memory_equal(counters.buckets, expected, sizeof expected);
    assert_int_equal(counters.count, 7);
    assert_int_equal(counters.us_max, 5000000000);
    assert_int_equal(counters.us, 5004030002);
}

static void wait_ms(unsigned ms) {
    const struct timespec time = {.tv_nsec = (long)ms * 1000000};
    nanosleep(&time, NULL);
}

static void on_work(uv_timer_t *timer) {
    (void)timer;
    wait_ms(30);
}

static void on_prepare(uv_prepare_t *prepare) {
    turns_end(prepare->data);
}

static void on_end(uv_timer_t *timer) {
    struct turns *turns = timer->data;
    turns_close(turns);
    uv_stop(timer->loop);
}

/* A timer's work is in its turn, the sleep before it is in none, and what was before the loop ran is no turn. */
static void a_turn_lasts_from_waking_to_the_next_sleep(void **state) {
    uv_loop_t loop;
    struct turns turns = {0};
    uv_timer_t work, end;
    uv_prepare_t prepare;
    (void)state;
    uv_loop_init(&loop);
    turns_start(&turns, &loop);
    wait_ms(400);
    uv_update_time(&loop);
    uv_timer_init(&loop, &work);
    uv_timer_init(&loop, &end);
    uv_prepare_init(&loop, &prepare);
    end.data = prepare.data = &turns;
    uv_prepare_start(&prepare, on_prepare);
    uv_timer_start(&work, on_work, 300, 0);
    uv_timer_start(&end, on_end, 340, 0);
    uint64_t held_up_us = held_up_ns() / 1000;
    uv_run(&loop, UV_RUN_DEFAULT);
    held_up_us = held_up_ns() / 1000 - held_up_us; /* a busy machine makes turns longer */
    assert_in_range(turns.counters.us_max, 29000, 290000 + held_up_us);
    uv_close((uv_handle_t *)&work, NULL);
    uv_close((uv_handle_t *)&end, NULL);
    uv_close((uv_handle_t *)&prepare, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_turn_is_in_the_first_bucket_that_holds_it),
        cmocka_unit_test(a_turn_lasts_from_waking_to_the_next_sleep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
