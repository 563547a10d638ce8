/* Crashes at any moment lose nothing that was acknowledged, and repeat nothing of QoS 2. */
#include "crash_model.h"

static struct history history;

static void run(uint64_t seed, unsigned steps, bool may_fail, uint64_t journal_bytes_max, bool may_share) {
    memset(&history, 0, sizeof history);
    history.may_fail = may_fail;
    history.journal_bytes_max = journal_bytes_max;
    history.may_retain = true;
    history.may_share = may_share;
    history.traced = getenv("HOBNOB_TRACE") != NULL;
    history_begin(&history, seed);
    while (steps-- > 0)
        history_step(&history);
    settle(&history);
    check_owed(&history);
    check_retained(&history);
    check_subscriptions(&history);
    compare_state(&history);
    history_end(&history);
}

static uint64_t seeds(uint64_t usual) {
    const char *given = getenv("HOBNOB_SEEDS");

    return given != NULL ? strtoull(given, NULL, 10) : usual;
}

/* HOBNOB_SEED runs one, told step by step with HOBNOB_TRACE, and HOBNOB_SEEDS that many. */
static void run_all(bool may_fail, uint64_t journal_bytes_max, bool may_share) {
    const char *one = getenv("HOBNOB_SEED");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one != NULL ? 1 : seeds(400);

    for (uint64_t seed = first; seed < first + count; seed++)
        run(seed, 300, may_fail, journal_bytes_max, may_share);
}

static void what_is_acknowledged_outlives_crashes(void **state) {
    (void)state;
    run_all(false, 0, false);
}

static void and_a_store_that_fails_at_times(void **state) {
    (void)state;
    run_all(true, 0, false);
}

/* So small that it is full at times, and dropped. */
static void and_a_journal_that_is_lost_at_times(void **state) {
    (void)state;
    run_all(true, 800, false);
}

static void and_members_of_groups_that_come_and_go(void **state) {
    (void)state;
    run_all(false, 0, true);
}

static void and_nothing_is_written_for_what_does_not(void **state) {
    (void)state;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        memset(&history, 0, sizeof history);
        history.none_lasts = history.may_share = true;
        history_begin(&history, seed);
        for (unsigned steps = 0; steps < 300; steps++)
            history_step(&history);
        settle(&history);
        must(&history, history.store.applied == 0, "a record");
        history_end(&history);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_acknowledged_outlives_crashes),
        cmocka_unit_test(and_a_store_that_fails_at_times),
        cmocka_unit_test(and_a_journal_that_is_lost_at_times),
        cmocka_unit_test(and_members_of_groups_that_come_and_go),
        cmocka_unit_test(and_nothing_is_written_for_what_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
