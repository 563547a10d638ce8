#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/subs.h"
#include "broker/topic.h"

static int begin(void **state) {
    *state = subs_new(7);
    return *state == NULL;
}

static int end(void **state) {
    subs_free(*state);
    return 0;
}

static enum subs_result add(struct subs *subs, const char *filter, struct subscriber *subscriber, uint8_t qos) {
    return subs_add(subs, filter, strlen(filter), subscriber, &(struct subscription){.qos = qos});
}

static enum subs_result drop(struct subs *subs, const char *filter, struct subscriber *subscriber) {
    return subs_remove(subs, filter, strlen(filter), subscriber);
}

struct tally {
    const struct subscriber *subscriber; /* NULL: all */
    unsigned count, qos_sum;
};

static void on_hit(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct tally *tally = context;

    if (tally->subscriber != NULL && tally->subscriber != subscriber) return;
    tally->count++;
    tally->qos_sum += subscription->qos;
}

static struct tally match(const struct subs *subs, const char *name, const struct subscriber *subscriber) {
    struct tally tally = {.subscriber = subscriber};

    subs_match(subs, name, strlen(name), on_hit, &tally);
    return tally;
}

static void overlapping_filters_name_a_subscriber_once_each(void **state) {
    struct subs *subs = *state;
    struct subscriber a = {0}, b = {0};

    assert_int_equal(add(subs, "x/y", &a, 0), SUBS_OK);
    assert_int_equal(add(subs, "x/+", &a, 1), SUBS_OK);
    assert_int_equal(add(subs, "#", &a, 2), SUBS_OK);
    assert_int_equal(add(subs, "x/y/#", &b, 1), SUBS_OK);
    assert_int_equal(match(subs, "x/y", &a).count, 3);
    assert_int_equal(match(subs, "x/y", &a).qos_sum, 3);
    assert_int_equal(match(subs, "x/y", &b).count, 1);
    assert_int_equal(match(subs, "x", NULL).count, 1);
    assert_int_equal(match(subs, "x/y/z", NULL).count, 2);
    assert_int_equal(match(subs, "$x/y", NULL).count, 0);
}

static void adding_again_replaces(void **state) {
    struct subs *subs = *state;
    struct subscriber a = {0};

    assert_int_equal(add(subs, "x", &a, 0), SUBS_OK);
    assert_int_equal(add(subs, "x", &a, 2), SUBS_REPLACED);
    assert_int_equal(match(subs, "x", &a).count, 1);
    assert_int_equal(match(subs, "x", &a).qos_sum, 2);
    assert_int_equal(subs_count(subs), 1);
}

static void removing_what_is_not_there_is_said(void **state) {
    struct subs *subs = *state;
    struct subscriber a = {0}, b = {0};

    assert_int_equal(drop(subs, "x", &a), SUBS_NOT_FOUND);
    add(subs, "x/y", &a, 0);
    assert_int_equal(drop(subs, "x", &a), SUBS_NOT_FOUND);
    assert_int_equal(drop(subs, "x/y", &b), SUBS_NOT_FOUND);
    assert_int_equal(drop(subs, "x/y", &a), SUBS_OK);
    assert_int_equal(drop(subs, "x/y", &a), SUBS_NOT_FOUND);
    assert_int_equal(subs_count(subs), 0);
}

static void generation_changes_with_every_change(void **state) {
    struct subs *subs = *state;
    struct subscriber a = {0};
    uint64_t before = subs_generation(subs);

    add(subs, "x", &a, 0);
    assert_true(subs_generation(subs) != before);
    before = subs_generation(subs);
    add(subs, "x", &a, 1);
    assert_true(subs_generation(subs) != before);
    before = subs_generation(subs);
    match(subs, "x", NULL);
    drop(subs, "y", &a);
    assert_true(subs_generation(subs) == before);
    drop(subs, "x", &a);
    assert_true(subs_generation(subs) != before);
}

static void many_subscribers_of_one_filter_come_and_go(void **state) {
    enum { MANY = 1000 };
    struct subs *subs = *state;
    struct subscriber *all = calloc(MANY, sizeof *all);

    for (int i = 0; i < MANY; i++)
        assert_int_equal(add(subs, "t", &all[i], 0), SUBS_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(add(subs, "t", &all[i], 1), SUBS_REPLACED);
    assert_int_equal(match(subs, "t", NULL).count, MANY);
    for (int i = 0; i < MANY; i += 2)
        assert_int_equal(drop(subs, "t", &all[i]), SUBS_OK);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(match(subs, "t", &all[i]).count, i % 2);
    for (int i = MANY - 1; i > 0; i -= 2)
        assert_int_equal(drop(subs, "t", &all[i]), SUBS_OK);
    assert_int_equal(match(subs, "t", NULL).count, 0);
    free(all);
}

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t bound) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % bound;
}

static void random_text(char *out, const char *const *pieces, uint32_t piece_count, bool filter) {
    uint32_t levels = 1 + random_below(4);

    out[0] = '\0';
    for (uint32_t i = 0; i < levels; i++) {
        strcat(out, pieces[random_below(piece_count)]);
        if (i + 1 < levels) strcat(out, "/");
    }
    if (filter && random_below(3) == 0) strcat(out, out[0] ? "/#" : "#");
    if (out[0] == '\0') strcpy(out, "a");
}

/* The tree against a plain list and topic_matches(), through random changes. */
static void tree_agrees_with_a_list(void **state) {
    enum { SLOTS = 300, SUBSCRIBERS = 5 };
    static const char *const filter_pieces[] = {"", "a", "b", "$c", "+"};
    static const char *const name_pieces[] = {"", "a", "b", "$c", "d"};
    struct subs *subs = *state;
    struct subscriber subscribers[SUBSCRIBERS] = {0};
    struct {
        char filter[32];
        struct subscriber *subscriber;
    } list[SLOTS];
    size_t count = 0;

    for (int round = 0; round < 20000; round++) {
        char text[32];
        struct subscriber *subscriber = &subscribers[random_below(SUBSCRIBERS)];
        size_t at = 0, expected = 0;
        random_text(text, filter_pieces, 5, true);
        while (at < count && (strcmp(list[at].filter, text) != 0 || list[at].subscriber != subscriber))
            at++;
        if (random_below(2) == 0 && count < SLOTS) {
            assert_int_equal(add(subs, text, subscriber, 0), at < count ? SUBS_REPLACED : SUBS_OK);
            if (at == count) {
                strcpy(list[count].filter, text);
                list[count++].subscriber = subscriber;
            }
        } else {
            assert_int_equal(drop(subs, text, subscriber), at < count ? SUBS_OK : SUBS_NOT_FOUND);
            if (at < count) list[at] = list[--count];
        }
        random_text(text, name_pieces, 5, false);
        for (size_t i = 0; i < count; i++)
            expected += topic_matches(list[i].filter, strlen(list[i].filter), text, strlen(text));
        assert_int_equal(match(subs, text, NULL).count, expected);
        assert_int_equal(subs_count(subs), count);
    }
}

static void deepest_filter_is_found(void **state) {
    struct subs *subs = *state;
    struct subscriber a = {0};
    char filter[2 * TOPIC_LEVELS_MAX], name[2 * TOPIC_LEVELS_MAX];

    for (size_t i = 0; i < TOPIC_LEVELS_MAX; i++) {
        filter[2 * i] = '+';
        name[2 * i] = 'a';
        filter[2 * i + 1] = name[2 * i + 1] = i + 1 < TOPIC_LEVELS_MAX ? '/' : '\0';
    }
    assert_int_equal(add(subs, filter, &a, 0), SUBS_OK);
    assert_int_equal(match(subs, name, &a).count, 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(overlapping_filters_name_a_subscriber_once_each),
        TEST(adding_again_replaces),
        TEST(removing_what_is_not_there_is_said),
        TEST(generation_changes_with_every_change),
        TEST(many_subscribers_of_one_filter_come_and_go),
        TEST(tree_agrees_with_a_list),
        TEST(deepest_filter_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
