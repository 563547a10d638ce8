/* Whatever fails for want of memory, at whatever point: what is shown covers all that is wanted, a change that failed
 * has changed nothing, and with memory again the rows are within the budget again. */
#include "cover_fixture.h"

#include "oom.h"

/* A change of rows that is not told for want of memory, beside what malloc refuses. */
static bool draft_fails(void) {
    return shortage.armed && shortage_now(0);
}

static void try_put(struct seen *seen) {
    char filter[4096];
    size_t size = random_filter(seen, filter);
    shortage_after((long)roll(seen, 12));
    bool done = cover_put(&seen->cover, seen->now_ms, filter, size);
    bool failed = shortage.failed;
    shortage_over();
    assert_true(done || failed || filter[0] == '$');
    if (done) assert_int_not_equal(row_list_put(&seen->wanted, filter, size), ROW_NOT_LISTED);
}

static void try_delete(struct seen *seen) {
    const struct listed_row *row = seen->wanted.items[roll(seen, (uint32_t)seen->wanted.count)];
    char filter[4096];
    size_t size = row->size;
    memcpy(filter, row->filter, size);
    row_list_delete(&seen->wanted, filter, size);
    shortage_after((long)roll(seen, 4));
    bool done = cover_delete(&seen->cover, seen->now_ms, filter, size);
    assert_true(done || shortage.failed);
    shortage_over();
}

static void try_tick(struct seen *seen) {
    uint64_t due = cover_deadline_ms(&seen->cover);
    if (due == UINT64_MAX) return;
    if (due > seen->now_ms) seen->now_ms = due;
    shortage_after((long)roll(seen, 60));
    cover_tick(&seen->cover, seen->now_ms);
    shortage_over();
}

static void one_life(uint32_t rows_max, uint64_t seed) {
    struct seen seen;
    seen_init(&seen, rows_max);
    seen.state += seed * 977;
    seen.families = seed % 2;
    seen.fails = draft_fails;
    for (int i = 0; i < 800; i++) {
        if (roll(&seen, 100) < (i < 400 ? 70u : 40u))
            try_put(&seen);
        else if (seen.wanted.count > 0)
            try_delete(&seen);
        if (roll(&seen, 3) == 0) try_tick(&seen);
        if (i % 4 == 0) assert_no_miss(&seen);
        if (i % 50 == 49) {
            let_time_pass(&seen, 1000);
            assert_int_equal(seen.cover.stale_count, 0);
            assert_true(seen.cover.row_count <= rows_max);
            assert_no_miss(&seen);
        }
    }
    while (seen.wanted.count > 0)
        try_delete(&seen);
    let_time_pass(&seen, 1000);
    assert_int_equal(seen.rows.count, 0);
    assert_int_equal(cover_memory(&seen.cover), 0);
    seen_free(&seen);
}

static void memory_that_is_short_costs_no_miss(void **unused) {
    (void)unused;
    for (uint32_t rows_max = 2; rows_max <= 40; rows_max = rows_max * 2 + 1)
        for (uint64_t seed = 0; seed < 20; seed++)
            one_life(rows_max, seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_that_is_short_costs_no_miss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
