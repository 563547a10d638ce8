#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/retained.h"
#include "broker/topic.h"

static int begin(void **state) {
    *state = retained_new(1 << 20, 1000, 7);
    return *state == NULL;
}

static int end(void **state) {
    retained_free(*state);
    return 0;
}

static enum retained_result set_until(struct retained *retained, const char *topic, const char *payload, uint64_t wall,
                                      uint64_t expires_at_ms) {
    struct message template = {.retain = true,
                               .topic = topic,
                               .topic_size = (uint32_t)strlen(topic),
                               .payload = (const uint8_t *)payload,
                               .payload_size = (uint32_t)strlen(payload),
                               .expires_at_ms = expires_at_ms,
                               .stamp = {.wall_ms = wall}};
    struct message *message = message_new(&template);
    enum retained_result result;

    assert_non_null(message);
    result = retained_set(retained, 0, message);
    message_unref(message);
    return result;
}

static enum retained_result set(struct retained *retained, const char *topic, const char *payload, uint64_t wall) {
    return set_until(retained, topic, payload, wall, UINT64_MAX);
}

struct seen {
    char text[512];
    size_t count, stop_after;
};

static bool on_message(void *context, struct message *message) {
    struct seen *seen = context;
    size_t at = strlen(seen->text);

    snprintf(seen->text + at, sizeof seen->text - at, "%.*s=%.*s;", (int)message->topic_size, message->topic,
             (int)message->payload_size, (const char *)message->payload);
    return ++seen->count != seen->stop_after;
}

static struct seen look_at(struct retained *retained, uint64_t now_ms, const char *filter, bool with_tombstones) {
    struct seen seen = {.text = ""};

    retained_match(retained, now_ms, filter, strlen(filter), with_tombstones, on_message, &seen);
    return seen;
}

static void newer_stamp_wins_in_any_order(void **state) {
    struct retained *retained = *state;

    assert_int_equal(set(retained, "a", "1", 10), RETAINED_STORED);
    assert_int_equal(set(retained, "a", "0", 9), RETAINED_OLDER);
    assert_int_equal(set(retained, "a", "same", 10), RETAINED_OLDER);
    assert_string_equal(look_at(retained, 0, "a", false).text, "a=1;");
    assert_int_equal(set(retained, "a", "2", 11), RETAINED_STORED);
    assert_string_equal(look_at(retained, 0, "a", false).text, "a=2;");
    assert_int_equal(retained_count(retained), 1);
}

static void stamps_order_by_wall_then_count_then_origin(void **state) {
    struct stamp low = {.wall_ms = 1, .count = 9, .origin = {9}};
    struct stamp middle = {.wall_ms = 2, .count = 1, .origin = {9}};
    struct stamp high = {.wall_ms = 2, .count = 2, .origin = {1}};
    struct stamp highest = {.wall_ms = 2, .count = 2, .origin = {2}};
    (void)state;

    assert_true(stamp_compare(&low, &middle) < 0);
    assert_true(stamp_compare(&high, &middle) > 0);
    assert_true(stamp_compare(&high, &highest) < 0);
    assert_int_equal(stamp_compare(&high, &high), 0);
}

static void delete_leaves_a_tombstone_that_keeps_the_old_away(void **state) {
    struct retained *retained = *state;

    set(retained, "a", "1", 10);
    assert_int_equal(set(retained, "a", "", 11), RETAINED_STORED);
    assert_false(retained_has(retained, "a", 1));
    assert_int_equal(retained_count(retained), 0);
    assert_string_equal(look_at(retained, 0, "#", false).text, "");
    assert_string_equal(look_at(retained, 0, "#", true).text, "a=;");
    assert_int_equal(set(retained, "a", "1", 10), RETAINED_OLDER);
    assert_int_equal(set(retained, "a", "2", 12), RETAINED_STORED);
    assert_true(retained_has(retained, "a", 1));
}

static void tombstone_outlives_the_expiry_interval_of_its_delete(void **state) {
    struct retained *retained = *state;

    set(retained, "a", "1", 10);
    assert_int_equal(set_until(retained, "a", "", 11, 5000), RETAINED_STORED);
    retained_tick(retained, 6000);
    assert_string_equal(look_at(retained, 6000, "a", true).text, "a=;");
    assert_string_equal(look_at(retained, 6000, "a", false).text, "");
    assert_int_equal(set(retained, "a", "1", 10), RETAINED_OLDER);
}

static void tombstone_is_dropped_in_the_end(void **state) {
    struct retained *retained = *state;
    uint64_t due;

    set(retained, "a", "", 11);
    due = retained_deadline_ms(retained);
    assert_true(due < UINT64_MAX);
    retained_tick(retained, due - 1);
    assert_string_equal(look_at(retained, due, "a", true).text, "a=;");
    retained_tick(retained, due);
    assert_string_equal(look_at(retained, due, "a", true).text, "");
    assert_true(retained_deadline_ms(retained) == UINT64_MAX);
    assert_int_equal(retained_bytes(retained), 0);
}

static void expired_is_not_shown_and_then_dropped(void **state) {
    struct retained *retained = *state;

    set_until(retained, "a", "1", 10, 5000);
    assert_string_equal(look_at(retained, 4999, "a", false).text, "a=1;");
    assert_string_equal(look_at(retained, 5000, "a", true).text, "");
    assert_int_equal(retained_deadline_ms(retained), 5000);
    retained_tick(retained, 5000);
    assert_int_equal(retained_count(retained), 0);
    assert_int_equal(retained_bytes(retained), 0);
}

static void walk_ends_when_asked(void **state) {
    struct retained *retained = *state;
    struct seen seen = {.stop_after = 2};

    set(retained, "a", "1", 1);
    set(retained, "a/b", "1", 1);
    set(retained, "c", "1", 1);
    retained_match(retained, 0, "#", 1, false, on_message, &seen);
    assert_int_equal(seen.count, 2);
}

/* All filters of some levels against all topics, by topic_matches(). */
static void walk_agrees_with_topic_matches(void **state) {
    static const char *const topics[] = {"a",    "a/b", "a/b/c", "/",    "/a",  "//",     "a/",
                                         "a//b", "$s",  "$s/a",  "a/$s", "b/b", "b/c/d/e"};
    static const char *const pieces[] = {"", "a", "b", "$s", "+", "#"};
    struct retained *retained = *state;
    char filter[32];

    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
        assert_int_equal(set(retained, topics[i], "x", 1), RETAINED_STORED);
    for (int code = 0; code < 6 * 6 * 6; code++) {
        for (int levels = 1; levels <= 3; levels++) {
            size_t expected = 0;
            snprintf(filter, sizeof filter, "%s%s%s%s%s", pieces[code % 6], levels > 1 ? "/" : "",
                     levels > 1 ? pieces[code / 6 % 6] : "", levels > 2 ? "/" : "",
                     levels > 2 ? pieces[code / 36] : "");
            if (!topic_filter_valid(filter, strlen(filter))) continue;
            for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
                expected += topic_matches(filter, strlen(filter), topics[i], strlen(topics[i]));
            if (look_at(retained, 0, filter, false).count != expected)
                fail_msg("'%s' shows '%s'", filter, look_at(retained, 0, filter, false).text);
        }
    }
}

static void full_store_refuses_the_new_and_lets_go_of_tombstones(void **state) {
    struct retained *retained = retained_new(1 << 20, 3, 7);
    (void)state;

    assert_int_equal(set(retained, "a", "1", 1), RETAINED_STORED);
    assert_int_equal(set(retained, "b", "", 1), RETAINED_STORED);
    assert_int_equal(set(retained, "c", "", 1), RETAINED_STORED);
    assert_int_equal(set(retained, "d", "1", 1), RETAINED_STORED); /* in place of the oldest tombstone */
    assert_int_equal(look_at(retained, 0, "b", true).count, 0);
    assert_int_equal(look_at(retained, 0, "c", true).count, 1);
    assert_int_equal(set(retained, "e", "1", 1), RETAINED_STORED);
    assert_int_equal(set(retained, "f", "1", 1), RETAINED_FULL);
    assert_int_equal(set(retained, "a", "2", 2), RETAINED_STORED);
    assert_int_equal(set(retained, "a", "", 3), RETAINED_STORED);
    assert_int_equal(set(retained, "f", "1", 1), RETAINED_STORED);
    /* Two left, then none: the store's last resort for a delete, and an entry that is its own oldest tombstone. */
    assert_int_equal(set(retained, "d", "", 4), RETAINED_STORED);
    assert_int_equal(set(retained, "d", "", 5), RETAINED_STORED);
    assert_int_equal(set(retained, "d", "1", 6), RETAINED_STORED);
    retained_free(retained);
}

static void bytes_are_bounded_too(void **state) {
    struct retained *retained = retained_new(1000, 1000, 7);
    char payload[600];
    uint64_t empty;
    (void)state;

    memset(payload, 'x', sizeof payload - 1);
    payload[sizeof payload - 1] = '\0';
    empty = retained_bytes(retained);
    assert_int_equal(set(retained, "a", payload, 1), RETAINED_STORED);
    assert_int_equal(set(retained, "b", payload, 1), RETAINED_FULL);
    assert_int_equal(set(retained, "a", payload, 2), RETAINED_STORED);
    assert_true(retained_bytes(retained) <= 1000);
    /* What is too large in place of another leaves that as it is. */
    assert_int_equal(set(retained, "a", "small", 3), RETAINED_STORED);
    assert_int_equal(set(retained, "a/b", payload, 1), RETAINED_FULL);
    assert_int_equal(set(retained, "b", "1234567890", 1), RETAINED_STORED);
    assert_int_equal(set(retained, "b", payload, 2), RETAINED_FULL);
    assert_int_equal(look_at(retained, 0, "b", false).count, 1);
    assert_non_null(strstr(look_at(retained, 0, "b", false).text, "1234567890"));
    assert_int_equal(empty, 0);
    retained_free(retained);
}

static void fill(char *topic, unsigned n, const char *level) {
    snprintf(topic, 256, "%03u", n);
    for (unsigned i = 1; i < 120; i++)
        strcat(topic, level);
}

/* And is bounded as that is, also where the topics part at many levels. */
static void deep_topic_costs_what_a_flat_one_of_its_size_does(void **state) {
    enum { BYTES = 1 << 19, DEEP = 2000 };
    struct retained *retained = retained_new(BYTES, 10000, 7);
    char topic[256];
    uint64_t flat;
    unsigned stored = 0;

    (void)state;
    fill(topic, 0, "xa");
    set(retained, topic, "x", 1);
    flat = retained_bytes(retained);
    fill(topic, 1, "/a");
    set(retained, topic, "x", 1);
    assert_int_equal(retained_bytes(retained), 2 * flat);
    for (unsigned n = 0; n < DEEP; n++) {
        fill(topic, n % 20, "/a");
        topic[2 * (n / 20) + 4] = 'b';
        stored += set(retained, topic, "x", 1) == RETAINED_STORED;
    }
    assert_in_range(stored, BYTES / (2 * flat), BYTES / flat + 100);
    assert_true(retained_bytes(retained) <= BYTES);
    fill(topic, 0, "xa");
    set(retained, topic, "", 2);
    fill(topic, 1, "/a");
    set(retained, topic, "", 2);
    for (unsigned n = 0; n < DEEP; n++) {
        fill(topic, n % 20, "/a");
        topic[2 * (n / 20) + 4] = 'b';
        set(retained, topic, "", 2);
    }
    for (int i = 0; i < 10; i++)
        retained_tick(retained, 8ull * 24 * 3600 * 1000);
    assert_int_equal(retained_bytes(retained), 0);
    retained_free(retained);
}

/* Notes how often each of the topics, which are numbers, was shown; refuses now and then. */
struct tally {
    unsigned shown[200];
    uint32_t chance;
};

static uint32_t next(uint32_t *chance) {
    *chance ^= *chance << 13;
    *chance ^= *chance >> 17;
    *chance ^= *chance << 5;
    return *chance;
}

static bool tally(void *context, struct message *message) {
    struct tally *tally = context;
    char number[8] = "";

    if (next(&tally->chance) % 4 == 0) return false;
    memcpy(number, message->topic + message->topic_size - 3, 3);
    tally->shown[strtoul(number, NULL, 10)]++;
    return true;
}

static void walk_in_pieces_shows_what_stays_once_and_nothing_later(void **state) {
    static const char *const filters[] = {"#", "+/+/#", "+/x/+", "a/#", "+/#"};

    for (uint32_t seed = 1; seed < 300; seed++) {
        const char *filter = filters[seed % 5];
        struct retained *retained = retained_new(1 << 20, 1000, seed);
        struct tally all = {.chance = seed};
        struct retained_walk walk;
        bool touched[200] = {false}, done = false;
        char topic[16];
        uint64_t wall = 0;
        /* In one of three places each, by number; the upper hundred comes later. */
#define TOPIC(n) (snprintf(topic, sizeof topic, "%c/%c/%03u", "ab$"[(n) % 3], "xy"[(n) % 2], (unsigned)(n)), topic)
        for (unsigned n = 0; n < 100; n++)
            set(retained, TOPIC(n), "1", ++wall);
        retained_walk_begin(retained, &walk);
        while (!done) {
            unsigned n = next(&all.chance) % 200;
            uint32_t budget = next(&all.chance) % 4;
            if (n >= 100 || next(&all.chance) % 4 == 0) {
                touched[n] = true;
                /* The second is a tombstone and its end, so that nodes under the walk go. */
                set(retained, TOPIC(n), next(&all.chance) % 2 ? "2" : "", ++wall);
                if (next(&all.chance) % 2) retained_tick(retained, 8ull * 24 * 3600 * 1000);
            }
            done = retained_walk_on(retained, &walk, 0, filter, strlen(filter), &budget, tally, &all);
            if (seed % 7 == 0 && next(&all.chance) % 50 == 0) break;
        }
        retained_walk_end(retained, &walk);
        for (unsigned n = 0; n < 200; n++) {
            bool matches = topic_matches(filter, strlen(filter), TOPIC(n), strlen(topic));
            assert_true(all.shown[n] <= (matches && n < 100));
            if (done && !touched[n]) assert_int_equal(all.shown[n], matches && n < 100);
        }
        for (unsigned n = 0; n < 200; n++)
            set(retained, TOPIC(n), "", ++wall);
        retained_tick(retained, 16ull * 24 * 3600 * 1000);
        assert_int_equal(retained_bytes(retained), 0); /* no node stays pinned */
        retained_free(retained);
    }
    (void)state;
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(newer_stamp_wins_in_any_order),
        TEST(stamps_order_by_wall_then_count_then_origin),
        TEST(delete_leaves_a_tombstone_that_keeps_the_old_away),
        TEST(tombstone_outlives_the_expiry_interval_of_its_delete),
        TEST(tombstone_is_dropped_in_the_end),
        TEST(expired_is_not_shown_and_then_dropped),
        TEST(walk_ends_when_asked),
        TEST(walk_agrees_with_topic_matches),
        TEST(full_store_refuses_the_new_and_lets_go_of_tombstones),
        TEST(bytes_are_bounded_too),
        TEST(deep_topic_costs_what_a_flat_one_of_its_size_does),
        TEST(walk_in_pieces_shows_what_stays_once_and_nothing_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
