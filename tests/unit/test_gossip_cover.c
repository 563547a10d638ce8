#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "broker/topic.h"
#include "gossip/cover.h"
#include "gossip/signed.h"

static uint64_t state = 88172645463325252u;
static uint32_t roll(uint32_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % bound);
}

/* What the outside sees, kept from the changes alone. */
struct seen {
    struct rows rows;
    const struct cover *cover;
    size_t changes;
};

static bool is_covered(const struct rows *rows, const struct row *row) {
    for (size_t i = 0; i < rows->count; i++)
        if (topic_filter_covers(rows->items[i]->filter, rows->items[i]->size, row->filter, row->size)) return true;
    return false;
}

static bool on_change(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool shown) {
    struct seen *seen = context;
    seen->changes++;
    assert_true(size <= ENTRY_FILTER_MAX);
    assert_true(topic_filter_valid(filter, size));
    if (shown)
        assert_int_equal(rows_put(&seen->rows, kind, filter, size), ROWS_CHANGED);
    else
        assert_true(rows_delete(&seen->rows, kind, filter, size));
    return true;
}

static void assert_no_miss(const struct cover *cover, const struct seen *seen) {
    for (size_t i = 0; i < cover->wanted.count; i++)
        if (!is_covered(&seen->rows, cover->wanted.items[i]))
            fail_msg("%.*s is missed", (int)cover->wanted.items[i]->size, cover->wanted.items[i]->filter);
    assert_int_equal(seen->rows.count, cover->shown.count);
}

static size_t random_filter(char *out) {
    static const char *const words[] = {"a", "b", "site", "dev", "17", "18", "+", "", "temperature", "x-y", "x.y"};
    size_t size = 0;
    uint32_t levels = 1 + roll(6);
    for (uint32_t i = 0; i < levels; i++) {
        const char *word = words[roll(11)];
        if (i > 0) out[size++] = '/';
        if (i == levels - 1 && roll(8) == 0)
            word = "#";
        else if (roll(3) == 0) {
            size += (size_t)sprintf(out + size, "n%u", roll(40));
            continue;
        }
        memcpy(out + size, word, strlen(word));
        size += strlen(word);
    }
    if (size == 0) out[size++] = 'z';
    return size;
}

static void never_a_miss_and_never_over_the_budget(void **unused) {
    (void)unused;
    for (uint32_t rows_max = 1; rows_max <= 64; rows_max = rows_max * 2 + 3) {
        struct cover cover;
        struct seen seen = {.cover = &cover};
        cover_init(&cover, GOSSIP_NEWSUB, rows_max);
        for (int i = 0; i < 3000; i++) {
            char filter[128];
            size_t size = random_filter(filter);
            bool grow = roll(100) < (i < 1500 ? 70u : 35u);
            if (grow) {
                assert_true(cover_put(&cover, filter, size, on_change, &seen));
            } else if (cover.wanted.count > 0) {
                const struct row *row = cover.wanted.items[roll((uint32_t)cover.wanted.count)];
                memcpy(filter, row->filter, row->size);
                assert_true(cover_delete(&cover, filter, row->size, on_change, &seen));
            }
            assert_true(cover.shown.count <= rows_max);
            if (i % 16 == 0) assert_no_miss(&cover, &seen);
        }
        while (cover.wanted.count > 0) {
            char filter[128];
            const struct row *row = cover.wanted.items[0];
            size_t size = row->size;
            memcpy(filter, row->filter, size);
            assert_true(cover_delete(&cover, filter, size, on_change, &seen));
            assert_no_miss(&cover, &seen);
        }
        assert_int_equal(seen.rows.count, 0); /* nothing wanted, nothing shown */
        cover_free(&cover);
        rows_free(&seen.rows);
    }
}

static bool shows(const struct cover *cover, const char *filter) {
    size_t index;
    return rows_find(&cover->shown, cover->kind, filter, strlen(filter), &index);
}

static void put(struct cover *cover, struct seen *seen, const char *filter) {
    assert_true(cover_put(cover, filter, strlen(filter), on_change, seen));
}

static void within_the_budget_everything_is_exact(void **unused) {
    (void)unused;
    struct cover cover;
    struct seen seen = {.cover = &cover};
    cover_init(&cover, GOSSIP_NEWPUB, 4);
    put(&cover, &seen, "a/b");
    put(&cover, &seen, "a/#");
    put(&cover, &seen, "a/b");
    assert_true(shows(&cover, "a/b") && shows(&cover, "a/#"));
    assert_int_equal(seen.changes, 2);
    assert_true(cover_delete(&cover, "a/b", 3, on_change, &seen));
    assert_false(shows(&cover, "a/b"));
    assert_true(cover_delete(&cover, "a/b", 3, on_change, &seen));
    assert_int_equal(seen.changes, 3);
    cover_free(&cover);
    rows_free(&seen.rows);
}

static void over_the_budget_the_deepest_large_family_is_merged_and_split_again(void **unused) {
    (void)unused;
    struct cover cover;
    struct seen seen = {.cover = &cover};
    cover_init(&cover, GOSSIP_NEWSUB, 10);
    put(&cover, &seen, "top");
    put(&cover, &seen, "other/one");
    for (int i = 0; i < 9; i++) {
        char filter[32];
        sprintf(filter, "site/dev/%d/t", i % 3 == 0 ? i : 100 + i);
        put(&cover, &seen, filter);
    }
    assert_true(shows(&cover, "site/dev/#"));
    assert_true(shows(&cover, "top"));
    assert_true(shows(&cover, "other/one"));
    assert_no_miss(&cover, &seen);
    for (int i = 0; i < 9; i++) {
        char filter[32];
        size_t size = (size_t)sprintf(filter, "site/dev/%d/t", i % 3 == 0 ? i : 100 + i);
        if (i < 6) assert_true(cover_delete(&cover, filter, size, on_change, &seen));
    }
    assert_false(shows(&cover, "site/dev/#"));
    assert_true(shows(&cover, "site/dev/6/t"));
    cover_free(&cover);
    rows_free(&seen.rows);
}

/* Many that go at once, as when clients do, must not each cost a walk through those that stay. */
static void many_that_go_cost_about_what_they_cost_when_they_came(void **unused) {
    enum { MANY = 40000 };
    (void)unused;
    struct cover cover;
    struct seen seen = {.cover = &cover};
    char filter[32];
    cover_init(&cover, GOSSIP_NEWSUB, 512);
    clock_t start = clock();
    for (int i = 0; i < MANY; i++) {
        sprintf(filter, "many/%05d", i);
        put(&cover, &seen, filter);
    }
    clock_t came = clock() - start;
    start = clock();
    for (int i = MANY; i-- > 0;) {
        size_t size = (size_t)sprintf(filter, "many/%05d", i);
        assert_true(cover_delete(&cover, filter, size, on_change, &seen));
        if (i == 300) assert_false(cover.coarse);
    }
    clock_t gone = clock() - start;
    assert_true(gone < 4 * came + CLOCKS_PER_SEC / 5);
    assert_int_equal(seen.rows.count, 0);
    cover_free(&cover);
    rows_free(&seen.rows);
}

static void a_filter_too_long_for_an_entry_is_covered(void **unused) {
    (void)unused;
    static char filter[60000];
    struct cover cover;
    struct seen seen = {.cover = &cover};
    cover_init(&cover, GOSSIP_NEWSUB, 10);
    memset(filter, 'x', sizeof filter);
    assert_true(cover_put(&cover, filter, sizeof filter, on_change, &seen));
    assert_true(shows(&cover, "#"));
    filter[5] = '/';
    filter[800] = '/';
    assert_true(cover_put(&cover, filter, sizeof filter, on_change, &seen));
    assert_true(shows(&cover, "xxxxx/#"));
    filter[20000] = 'y';
    assert_true(cover_put(&cover, filter, sizeof filter, on_change, &seen));
    assert_true(cover_delete(&cover, filter, sizeof filter, on_change, &seen));
    assert_true(shows(&cover, "xxxxx/#")); /* the other still needs it */
    filter[20000] = 'x';
    assert_true(cover_delete(&cover, filter, sizeof filter, on_change, &seen));
    assert_false(shows(&cover, "xxxxx/#"));
    cover_free(&cover);
    rows_free(&seen.rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_a_miss_and_never_over_the_budget),
        cmocka_unit_test(within_the_budget_everything_is_exact),
        cmocka_unit_test(over_the_budget_the_deepest_large_family_is_merged_and_split_again),
        cmocka_unit_test(many_that_go_cost_about_what_they_cost_when_they_came),
        cmocka_unit_test(a_filter_too_long_for_an_entry_is_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
