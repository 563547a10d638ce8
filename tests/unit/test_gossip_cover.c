#include "cover_fixture.h"

#include <time.h>

static void grow_or_shrink(struct seen *seen, uint32_t grows_of_100) {
    char filter[4096];
    if (roll(seen, 100) < grows_of_100) {
        size_t size = random_filter(seen, filter);
        assert_true(topic_filter_valid(filter, size));
        if (cover_put(&seen->cover, seen->now_ms, filter, size))
            assert_int_not_equal(row_list_put(&seen->wanted, filter, size), ROW_NOT_LISTED);
        else
            assert_true(filter[0] == '$'); /* only those can have no room */
    } else if (seen->wanted.count > 0) {
        const struct listed_row *row = seen->wanted.items[roll(seen, (uint32_t)seen->wanted.count)];
        delete_sized(seen, row->filter, row->size);
    }
}

static void one_life(uint32_t rows_max, uint64_t seed, int changes) {
    struct seen seen;
    seen_init(&seen, rows_max);
    seen.state += seed * 977;
    seen.families = seed % 2;
    for (int i = 0; i < changes; i++) {
        seen.checks = i % 8 == 0;
        grow_or_shrink(&seen, i < changes / 2 ? 70 : 35);
        assert_true(seen.cover.row_count <= rows_max);
        if (i % 16 == 0) {
            assert_no_miss(&seen);
            assert_all_stand_somewhere(&seen);
        }
        if (roll(&seen, 4) == 0) let_time_pass(&seen, roll(&seen, 3000));
        assert_true(seen.cover.row_count <= rows_max);
    }
    assert_no_miss(&seen);
    while (seen.wanted.count > 0) {
        const struct listed_row *row = seen.wanted.items[roll(&seen, (uint32_t)seen.wanted.count)];
        delete_sized(&seen, row->filter, row->size);
        if (roll(&seen, 8) == 0) let_time_pass(&seen, 4000);
        if (seen.wanted.count % 8 == 0) assert_no_miss(&seen);
    }
    assert_int_equal(seen.rows.count, 0); /* nothing wanted, nothing shown, nothing kept */
    assert_int_equal(cover_memory(&seen.cover), 0);
    assert_int_equal(seen.cover.merged_count, 0);
    seen_free(&seen);
}

static void never_a_miss_and_never_over_the_budget(void **unused) {
    (void)unused;
    for (uint32_t rows_max = 1; rows_max <= 64; rows_max = rows_max * 2 + 3)
        for (uint64_t seed = 0; seed < 14; seed++)
            one_life(rows_max, seed, 1500);
}

/* Found at random: a level that becomes `+` merges its own children too, if one of them was. */
static void what_a_plus_takes_in_is_merged_as_its_widest_part(void **unused) {
    (void)unused;
    one_life(29, 205, 1500);
}

static void within_the_budget_everything_is_exact(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 4);
    put(&seen, "a/b");
    put(&seen, "a/#");
    put(&seen, "a/b");
    assert_true(shows(&seen, "a/b") && shows(&seen, "a/#"));
    assert_int_equal(seen.changes, 2);
    delete (&seen, "a/b");
    assert_false(shows(&seen, "a/b"));
    delete (&seen, "a/b");
    assert_int_equal(seen.changes, 3);
    seen_free(&seen);
}

static void put_devices(struct seen *seen, const char *format, int from, int to) {
    char filter[64];
    for (int i = from; i < to; i++) {
        snprintf(filter, sizeof filter, format, i);
        put(seen, filter);
    }
}

static void delete_devices(struct seen *seen, const char *format, int from, int to) {
    char filter[64];
    for (int i = from; i < to; i++) {
        snprintf(filter, sizeof filter, format, i);
        delete (seen, filter);
    }
}

static void over_the_budget_the_large_family_is_merged_and_strangers_stay_exact(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 10);
    put(&seen, "top");
    put(&seen, "other/one");
    put_devices(&seen, "site/dev/%d/t", 0, 9);
    assert_true(shows(&seen, "site/dev/+/t"));
    assert_true(shows(&seen, "top"));
    assert_true(shows(&seen, "other/one"));
    assert_int_equal(seen.rows.count, 3);
    assert_no_miss(&seen);
    seen_free(&seen);
}

static void a_family_whose_ends_differ_is_merged_with_all_below(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 10);
    put(&seen, "top");
    put(&seen, "other/one");
    put_devices(&seen, "site/dev/t%d", 0, 9);
    assert_true(shows(&seen, "top") && shows(&seen, "other/one"));
    assert_true(shows(&seen, "site/dev/+")); /* and not what is below them */
    put_devices(&seen, "site/dev/x/%d", 0, 9);
    assert_true(shows(&seen, "top") && shows(&seen, "other/one"));
    assert_no_miss(&seen);
    seen_free(&seen);
}

/* What is merged once is merged again a level above, and only as widely as it must be. */
static void families_of_families_are_merged_level_by_level(void **unused) {
    (void)unused;
    struct seen seen;
    char format[64];
    seen_init(&seen, 64);
    put(&seen, "other/one");
    for (int device = 0; device < 100; device++) {
        snprintf(format, sizeof format, "s/d%d/m%%d", device);
        put_devices(&seen, format, device * 10, device * 10 + 10);
    }
    assert_true(shows(&seen, "s/+/+") && shows(&seen, "other/one"));
    assert_int_equal(seen.rows.count, 2);
    assert_no_miss(&seen);
    for (int device = 0; device < 97; device++) {
        snprintf(format, sizeof format, "s/d%d/m%%d", device);
        delete_devices(&seen, format, device * 10, device * 10 + 10);
    }
    let_time_pass(&seen, 60000);
    assert_int_equal(seen.rows.count, 31);
    assert_no_miss(&seen);
    seen_free(&seen);
}

static void split_again_when_there_is_room_but_not_at_once(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 10);
    put(&seen, "top");
    put_devices(&seen, "site/dev/%d/t", 0, 12);
    assert_true(shows(&seen, "site/dev/+/t"));
    delete_devices(&seen, "site/dev/%d/t", 3, 12);
    let_time_pass(&seen, 4900);
    assert_true(shows(&seen, "site/dev/+/t"));
    let_time_pass(&seen, 200);
    assert_false(shows(&seen, "site/dev/+/t"));
    assert_true(shows(&seen, "site/dev/0/t") && shows(&seen, "site/dev/1/t") && shows(&seen, "site/dev/2/t"));
    assert_int_equal(seen.cover.merged_count, 0);
    assert_true(cover_deadline_ms(&seen.cover) == UINT64_MAX);
    seen_free(&seen);
}

/* A client that comes and goes at the edge of the budget: rows change seldom, and ever more seldom. */
static void rows_do_not_flap(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 64);
    put_devices(&seen, "site/dev/%d/t", 0, 50);
    let_time_pass(&seen, 1000);
    size_t before = seen.changes, merges = seen.cover.merges;
    for (int i = 0; i < 600; i++) { /* an hour */
        put_devices(&seen, "site/dev/%d/t", 50, 80);
        let_time_pass(&seen, 3000);
        delete_devices(&seen, "site/dev/%d/t", 50, 80);
        let_time_pass(&seen, 3000);
    }
    assert_true(seen.cover.merges - merges <= 40);
    assert_true(seen.changes - before <= 40 * 120);
    let_time_pass(&seen, 600000);
    assert_int_equal(seen.cover.merged_count, 0); /* and in the end it is exact again */
    assert_int_equal(seen.rows.count, 50);
    seen_free(&seen);
}

static void what_is_wanted_whole_costs_nothing_to_merge(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 16);
    put(&seen, "deep/down/below/x");
    put(&seen, "deep/down/below/y");
    put(&seen, "wide/#");
    put_devices(&seen, "wide/%d", 0, 13);
    assert_int_equal(seen.rows.count, 16);
    put(&seen, "one-more");
    assert_int_equal(seen.rows.count, 4);
    assert_true(shows(&seen, "wide/#") && shows(&seen, "deep/down/below/x") && shows(&seen, "one-more"));
    /* Nor is it split, as long as that is so. */
    delete (&seen, "one-more");
    let_time_pass(&seen, 60000);
    assert_true(shows(&seen, "wide/#"));
    assert_int_equal(seen.rows.count, 3);
    delete (&seen, "wide/#");
    let_time_pass(&seen, 60000);
    assert_int_equal(seen.cover.merged_count, 1); /* fifteen leave no eighth free */
    delete_devices(&seen, "wide/%d", 0, 3);
    let_time_pass(&seen, 60000);
    assert_int_equal(seen.rows.count, 12);
    assert_no_miss(&seen);
    seen_free(&seen);
}

static void what_begins_with_a_dollar_is_never_merged(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 12);
    put_devices(&seen, "$share/group/%d", 0, 6);
    put_devices(&seen, "x%d", 0, 20);
    assert_no_miss(&seen);
    for (int i = 0; i < 6; i++) {
        char filter[32];
        sprintf(filter, "$share/group/%d", i);
        assert_true(shows(&seen, filter));
    }
    put_devices(&seen, "$share/group/%d", 6, 11);
    assert_no_miss(&seen);
    assert_int_equal(seen.rows.count, 12);                          /* `+` or `#` beside eleven */
    assert_false(cover_put(&seen.cover, seen.now_ms, "$SYS/x", 6)); /* refused, and nothing is uncovered for it */
    assert_no_miss(&seen);
    seen_free(&seen);
}

/* Which of two families is merged is known by what came in through it. */
static void what_draws_unwanted_traffic_is_split_and_another_merged(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 64);
    put_devices(&seen, "calm/dev/%d", 0, 30);
    put_devices(&seen, "busy/dev/%d", 0, 40);
    assert_true(shows(&seen, "busy/dev/+") && !shows(&seen, "calm/dev/+"));
    for (int minute = 0; minute < 10; minute++) {
        char topic[64];
        for (int i = 0; i < 100; i++) {
            sprintf(topic, "busy/dev/%d", 1000 + i);
            cover_note_unwanted(&seen.cover, seen.now_ms, topic, strlen(topic));
        }
        cover_note_wanted(&seen.cover, seen.now_ms, 1000);
        let_time_pass(&seen, 60000);
    }
    assert_true(shows(&seen, "calm/dev/+") && !shows(&seen, "busy/dev/+"));
    assert_no_miss(&seen);
    seen_free(&seen);
}

static void over_one_percent_unwanted_is_told_once(void **unused) {
    (void)unused;
    struct seen seen;
    seen_init(&seen, 4);
    put_devices(&seen, "dev/%d", 0, 8);
    assert_true(shows(&seen, "dev/+"));
    for (int i = 0; i < 90; i++)
        cover_note_unwanted(&seen.cover, seen.now_ms, "dev/99", 6);
    cover_note_unwanted(&seen.cover, seen.now_ms, "elsewhere/99", 12); /* not through a merged row */
    assert_int_equal(seen.cover.unwanted, 90);
    cover_note_wanted(&seen.cover, seen.now_ms, 9000);
    assert_false(cover_take_alarm(&seen.cover, seen.now_ms + 60000)); /* 90 of 9,090 */
    for (int i = 0; i < 100; i++)
        cover_note_unwanted(&seen.cover, seen.now_ms + 60001, "dev/99", 6);
    cover_note_wanted(&seen.cover, seen.now_ms + 60001, 9000);
    assert_false(cover_take_alarm(&seen.cover, seen.now_ms + 60002));
    assert_true(cover_take_alarm(&seen.cover, seen.now_ms + 120001));
    assert_false(cover_take_alarm(&seen.cover, seen.now_ms + 120002));
    assert_true(seen.cover.traffic.over);
    cover_note_wanted(&seen.cover, seen.now_ms + 180002, 1);
    assert_false(seen.cover.traffic.over);
    seen_free(&seen);
}

static void a_filter_too_long_for_an_entry_is_covered(void **unused) {
    (void)unused;
    static char filter[60000];
    struct seen seen;
    seen_init(&seen, 10);
    memset(filter, 'x', sizeof filter);
    put_sized(&seen, filter, sizeof filter);
    assert_true(shows(&seen, "#"));
    filter[5] = '/';
    filter[800] = '/';
    put_sized(&seen, filter, sizeof filter);
    assert_true(shows(&seen, "xxxxx/#"));
    filter[20000] = 'y';
    put_sized(&seen, filter, sizeof filter);
    delete_sized(&seen, filter, sizeof filter);
    assert_true(shows(&seen, "xxxxx/#")); /* the other still needs it */
    filter[20000] = 'x';
    delete_sized(&seen, filter, sizeof filter);
    assert_false(shows(&seen, "xxxxx/#"));
    seen_free(&seen);
}

static double seconds(clock_t since) {
    return (double)(clock() - since) / CLOCKS_PER_SEC;
}

/* However many there are, none costs a walk through the others: not the one that comes, nor the one that goes. */
static void no_change_costs_a_walk_through_all_others(void **unused) {
    (void)unused;
    double took[2] = {0, 0};
    for (int round = 0; round < 2; round++) {
        int many = round == 0 ? 10000 : 100000;
        struct seen seen;
        char filter[64];
        seen_init(&seen, 512);
        for (int i = 0; i < many; i++) {
            size_t size = (size_t)sprintf(filter, "many/%05d", i);
            assert_true(cover_put(&seen.cover, seen.now_ms, filter, size));
        }
        clock_t start = clock();
        for (int i = 0; i < 20000; i++) {
            size_t size = (size_t)sprintf(filter, "many/%05d", i % many);
            assert_true(cover_delete(&seen.cover, seen.now_ms, filter, size));
            seen.now_ms += 10;
            cover_tick(&seen.cover, seen.now_ms);
            assert_true(cover_put(&seen.cover, seen.now_ms, filter, size));
        }
        took[round] = seconds(start);
        for (int i = many; i-- > 0;) {
            size_t size = (size_t)sprintf(filter, "many/%05d", i);
            assert_true(cover_delete(&seen.cover, seen.now_ms, filter, size));
        }
        assert_int_equal(seen.rows.count, 0);
        assert_int_equal(cover_memory(&seen.cover), 0);
        seen_free(&seen);
    }
    assert_true(took[1] < 4 * took[0] + 0.2);
}

static void a_topic_takes_few_bytes(void **unused) {
    (void)unused;
    enum { MANY = 50000 };
    struct seen seen;
    char filter[64];
    seen_init(&seen, 512);
    for (int i = 0; i < MANY; i++) {
        size_t size = (size_t)sprintf(filter, "site/hall-%d/dev-%d/temperature", i % 10, i / 10 % 1000);
        size += (size_t)sprintf(filter + size, "-%d", i / 10000);
        assert_true(cover_put(&seen.cover, seen.now_ms, filter, size));
    }
    assert_int_equal(cover_wanted_count(&seen.cover), MANY);
    assert_true(cover_memory(&seen.cover) / MANY <= 72);
    seen_free(&seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_a_miss_and_never_over_the_budget),
        cmocka_unit_test(what_a_plus_takes_in_is_merged_as_its_widest_part),
        cmocka_unit_test(within_the_budget_everything_is_exact),
        cmocka_unit_test(over_the_budget_the_large_family_is_merged_and_strangers_stay_exact),
        cmocka_unit_test(a_family_whose_ends_differ_is_merged_with_all_below),
        cmocka_unit_test(families_of_families_are_merged_level_by_level),
        cmocka_unit_test(split_again_when_there_is_room_but_not_at_once),
        cmocka_unit_test(rows_do_not_flap),
        cmocka_unit_test(what_is_wanted_whole_costs_nothing_to_merge),
        cmocka_unit_test(what_begins_with_a_dollar_is_never_merged),
        cmocka_unit_test(what_draws_unwanted_traffic_is_split_and_another_merged),
        cmocka_unit_test(over_one_percent_unwanted_is_told_once),
        cmocka_unit_test(a_filter_too_long_for_an_entry_is_covered),
        cmocka_unit_test(no_change_costs_a_walk_through_all_others),
        cmocka_unit_test(a_topic_takes_few_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
