/* Crashes at any moment lose nothing that was acknowledged, and repeat nothing of QoS 2. */
#include "crash_model.h"

static struct history history;

/* What a history has beside clients that come and go, and crashes. */
struct kind {
    bool may_fail, may_share, may_will, may_limit;
    uint64_t journal_bytes_max;
};

static void run(uint64_t seed, unsigned steps, const struct kind *kind) {
    memset(&history, 0, sizeof history);
    history.may_fail = kind->may_fail;
    history.journal_bytes_max = kind->journal_bytes_max;
    history.may_retain = true;
    history.may_share = kind->may_share;
    history.may_will = kind->may_will;
    history.may_limit = history.loses = kind->may_limit;
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
static void run_all(struct kind kind) {
    const char *one = getenv("HOBNOB_SEED");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one != NULL ? 1 : seeds(kind.may_will ? 200 : 400);

    for (uint64_t seed = first; seed < first + count; seed++)
        run(seed, 300, &kind);
}

static void what_is_acknowledged_outlives_crashes(void **state) {
    (void)state;
    run_all((struct kind){0});
}

static void and_a_store_that_fails_at_times(void **state) {
    (void)state;
    run_all((struct kind){.may_fail = true});
}

/* So small that it is full at times, and dropped. */
static void and_a_journal_that_is_lost_at_times(void **state) {
    (void)state;
    run_all((struct kind){.may_fail = true, .journal_bytes_max = 800});
}

static void and_members_of_groups_that_come_and_go(void **state) {
    (void)state;
    run_all((struct kind){.may_share = true});
}

static void and_wills_come_when_they_are_due_and_else_never(void **state) {
    (void)state;
    run_all((struct kind){.may_will = true});
}

static void and_so_they_do_with_a_store_that_fails_and_groups(void **state) {
    (void)state;
    run_all((struct kind){.may_will = true, .may_fail = true, .may_share = true, .journal_bytes_max = 3000});
}

/* Others after each crash. */
static void and_limits_that_are_reached(void **state) {
    (void)state;
    run_all((struct kind){.may_will = true, .may_fail = true, .may_share = true, .may_limit = true});
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
        cmocka_unit_test(and_wills_come_when_they_are_due_and_else_never),
        cmocka_unit_test(and_so_they_do_with_a_store_that_fails_and_groups),
        cmocka_unit_test(and_limits_that_are_reached),
        cmocka_unit_test(and_nothing_is_written_for_what_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
