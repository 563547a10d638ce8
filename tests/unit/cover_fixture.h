/* A cover with what the outside knows of it: the exact set of wanted filters, and the rows that the changes told make.
 */
#ifndef TESTS_UNIT_COVER_FIXTURE_H
#define TESTS_UNIT_COVER_FIXTURE_H

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "broker/topic.h"
#include "gossip/cover_inside.h"
#include "gossip/signed.h"
#include "row_list.h"

struct seen {
    struct cover cover;
    struct row_list wanted; /* exactly */
    struct row_list rows;   /* shown, by the changes told */
    size_t changes;
    bool families;
    bool checks; /* nothing wanted is uncovered at any change */
    bool (*fails)(void);
    uint64_t now_ms;
    uint64_t state; /* of roll() */
};

static inline uint32_t roll(struct seen *seen, uint32_t bound) {
    seen->state ^= seen->state << 13;
    seen->state ^= seen->state >> 7;
    seen->state ^= seen->state << 17;
    return (uint32_t)((seen->state >> 20) % bound);
}

static inline bool is_covered(const struct row_list *rows, const struct listed_row *row) {
    size_t index;
    if (row_list_find(rows, row->filter, row->size, &index)) return true;
    for (size_t i = 0; i < rows->count; i++)
        if (topic_filter_covers(rows->items[i]->filter, rows->items[i]->size, row->filter, row->size)) return true;
    return false;
}

/* Each wanted filter finds its row by the marks, or its end would not. */
static inline void assert_all_stand_somewhere(struct seen *seen) {
    for (size_t i = 0; i < seen->wanted.count; i++) {
        const struct listed_row *row = seen->wanted.items[i];
        struct path path;
        path_of_filter(row->filter, row->size, &path);
        assert_true(path_cut(&path));
        uint32_t at = shown_row(&seen->cover.shown, LEVELS_ROOT, &path, false, false);
        if (at == 0 || levels_node(&seen->cover.shown, at)->here == 0)
            fail_msg("%.*s stands nowhere", (int)row->size, row->filter);
    }
}

static inline void assert_no_miss(const struct seen *seen) {
    for (size_t i = 0; i < seen->wanted.count; i++)
        if (!is_covered(&seen->rows, seen->wanted.items[i]))
            fail_msg("%.*s is missed", (int)seen->wanted.items[i]->size, seen->wanted.items[i]->filter);
    assert_int_equal(seen->rows.count, seen->cover.row_count);
    assert_int_equal(seen->wanted.count, cover_wanted_count(&seen->cover));
}

static inline bool on_seen_change(void *context, enum gossip_row_kind kind, const char *filter, size_t size,
                                  bool shown) {
    struct seen *seen = context;
    if (seen->fails && seen->fails()) return false;
    assert_int_equal(kind, GOSSIP_NEWSUB);
    assert_true(size <= ENTRY_FILTER_MAX);
    assert_true(topic_filter_valid(filter, size));
    if (shown) {
        enum row_listed put = row_list_put(&seen->rows, filter, size);
        assert_int_not_equal(put, ROW_LISTED_BEFORE);
        if (put == ROW_NOT_LISTED) return false;
    } else {
        assert_true(row_list_delete(&seen->rows, filter, size));
    }
    seen->changes++;
    for (size_t i = 0; seen->checks && i < seen->wanted.count; i++)
        assert_true(is_covered(&seen->rows, seen->wanted.items[i]));
    return true;
}

static inline void seen_init(struct seen *seen, uint32_t rows_max) {
    memset(seen, 0, sizeof *seen);
    struct cover_options options = {
        .kind = GOSSIP_NEWSUB, .rows_max = rows_max, .seed = 7, .on_change = on_seen_change, .context = seen};
    cover_init(&seen->cover, &options);
    seen->state = 88172645463325252u;
    seen->now_ms = 1000;
}

static inline void seen_free(struct seen *seen) {
    cover_free(&seen->cover);
    row_list_free(&seen->rows);
    row_list_free(&seen->wanted);
}

static inline void put_sized(struct seen *seen, const char *filter, size_t size) {
    assert_true(cover_put(&seen->cover, seen->now_ms, filter, size));
    assert_int_not_equal(row_list_put(&seen->wanted, filter, size), ROW_NOT_LISTED);
}

static inline void put(struct seen *seen, const char *filter) {
    put_sized(seen, filter, strlen(filter));
}

/* The filter may be a row of seen->wanted. */
static inline void delete_sized(struct seen *seen, const char *filter, size_t size) {
    char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, filter, size);
    row_list_delete(&seen->wanted, copy, size);
    assert_true(cover_delete(&seen->cover, seen->now_ms, copy, size));
    free(copy);
}

static inline void delete (struct seen *seen, const char *filter) {
    delete_sized(seen, filter, strlen(filter));
}

static inline bool shows(const struct seen *seen, const char *filter) {
    size_t index;
    return row_list_find(&seen->rows, filter, strlen(filter), &index);
}

/* As long as the cover has something to do of its own. */
static inline void let_time_pass(struct seen *seen, uint64_t ms) {
    uint64_t end = seen->now_ms + ms;
    while (cover_deadline_ms(&seen->cover) <= end) {
        uint64_t due = cover_deadline_ms(&seen->cover);
        seen->now_ms = due > seen->now_ms ? due : seen->now_ms;
        cover_tick(&seen->cover, seen->now_ms);
        assert_true(cover_deadline_ms(&seen->cover) > seen->now_ms); /* or it would spin */
    }
    seen->now_ms = end;
}

/* Families of families, as devices with metrics are: what is merged once is merged again a level above. */
static inline size_t family_filter(struct seen *seen, char *out) {
    static const char *const ends[] = {"", "/#", "/+", "/x"};
    const char *end = ends[roll(seen, 10) < 6 ? 0 : roll(seen, 4)];
    uint32_t family = roll(seen, 3), device = roll(seen, 25), metric = roll(seen, 30);
    if (roll(seen, 40) == 0) return (size_t)sprintf(out, "f%u/+/m%u%s", family, metric, end);
    return (size_t)sprintf(out, "f%u/d%u/m%u%s", family, device, metric, end);
}

/* Levels that meet each other often, wildcards, empty ones, and now and then a long one or one with `$`. */
static inline size_t random_filter(struct seen *seen, char *out) {
    static const char *const words[] = {"a", "b", "site", "dev", "17", "18", "+", "", "temperature-of-the-hall", "x-y"};
    if (seen->families) return family_filter(seen, out);
    size_t size = 0;
    uint32_t levels = 1 + roll(seen, 6);
    bool is_long = roll(seen, 60) == 0;
    for (uint32_t i = 0; i < levels; i++) {
        const char *word = words[roll(seen, 10)];
        if (i > 0) out[size++] = '/';
        if (i == 0 && roll(seen, 50) == 0) out[size++] = '$';
        if (i == levels - 1 && roll(seen, 8) == 0 && (size == 0 || out[size - 1] != '$')) {
            word = "#";
        } else if (roll(seen, 3) == 0) {
            size += (size_t)sprintf(out + size, "n%u", roll(seen, 40));
            continue;
        } else if (is_long && roll(seen, 2) == 0) {
            size_t more = 100 + roll(seen, 260);
            memset(out + size, 'l', more);
            size += more;
            continue;
        }
        if (size > 0 && out[size - 1] == '$' && word[0] == '+') word = "b";
        memcpy(out + size, word, strlen(word));
        size += strlen(word);
    }
    if (size == 0) out[size++] = 'z';
    return size;
}

#endif
