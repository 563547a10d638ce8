/* Digests: two that hold different items find out which ones, by sums of parts of them, and by nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/digest.h"
#include "broker/selection.h"
#include "broker/topic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void add(struct digest *digest, unsigned topic, uint64_t wall_ms, uint32_t count) {
    char text[16];
    struct stamp stamp = {.wall_ms = wall_ms, .count = count};
    int size = snprintf(text, sizeof text, "t/%u", topic);
    assert_true(digest_add(digest, text, (size_t)size, &stamp, true));
}

static uint64_t hash_of(const struct digest *digest, unsigned topic) {
    char text[16];
    int size = snprintf(text, sizeof text, "t/%u", topic);
    return digest_topic(digest, text, (size_t)size);
}

static void sums_are_of_what_is_held_in_any_order(void **state) {
    (void)state;
    struct digest one, other;
    uint64_t sums[2][DIGEST_FAN];
    digest_init(&one, 5);
    digest_init(&other, 5);
    for (unsigned i = 0; i < 1000; i++) {
        add(&one, i, i, 1);
        add(&other, 999 - i, 999 - i, 1);
        add(&other, i, i, 1); /* met twice */
    }
    digest_settle(&one);
    digest_settle(&other);
    assert_int_equal(one.count, 1000);
    assert_int_equal(other.count, 1000);
    digest_sums(&one, DIGEST_ROOT, sums[0]);
    digest_sums(&other, DIGEST_ROOT, sums[1]);
    assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
    digest_deinit(&one);
    digest_deinit(&other);
}

static void another_stamp_topic_or_key_is_another_sum(void **state) {
    (void)state;
    static const struct {
        uint64_t key;
        unsigned topic;
        uint64_t wall_ms;
        uint32_t count;
    } cases[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 2}, {1, 1, 0, 1}, {1, 1, 1, 0}};
    enum { CASES = sizeof cases / sizeof cases[0] };
    uint64_t whole[CASES];
    for (size_t i = 0; i < CASES; i++) {
        struct digest digest;
        uint64_t sums[DIGEST_FAN];
        digest_init(&digest, cases[i].key);
        add(&digest, cases[i].topic, cases[i].wall_ms, cases[i].count);
        digest_settle(&digest);
        digest_sums(&digest, DIGEST_ROOT, sums);
        whole[i] = 0;
        for (unsigned child = 0; child < DIGEST_FAN; child++)
            whole[i] += sums[child];
        for (size_t before = 0; before < i; before++)
            assert_true(whole[i] != whole[before]);
        digest_deinit(&digest);
    }
}

/* What crosses a link is the same on every machine: SipHash-1-3 and high bytes first. */
static void hashes_and_bytes_are_those_of_the_protocol_page(void **state) {
    (void)state;
    static const uint8_t item[DIGEST_ITEM_SIZE] = {0xb8, 0xc0, 0x8c, 0xc5, 0x33, 0xb9, 0xc0, 0x60, 0,    0,
                                                   1,    2,    3,    4,    5,    6,    0,    0,    0x10, 0};
    struct digest digest;
    uint64_t sums[DIGEST_FAN], sum = 0;
    digest_init(&digest, 42);
    struct stamp stamp = {.wall_ms = 0x010203040506, .count = 4096};
    assert_true(digest_add(&digest, "site/7/temperature", 18, &stamp, true));
    digest_settle(&digest);
    uint8_t bytes[DIGEST_ITEM_SIZE];
    digest_put_item(bytes, &digest.items[0]);
    assert_memory_equal(bytes, item, sizeof bytes);
    struct digest_item back = digest_get_item(bytes);
    assert_true(back.topic == digest.items[0].topic && digest_item_is(&back, &stamp));
    digest_sums(&digest, DIGEST_ROOT, sums);
    for (unsigned child = 0; child < DIGEST_FAN; child++)
        sum += sums[child];
    assert_true(sum == 0xc4445828a71dbf56u);
    assert_true(sums[0xb8 >> 2] == sum);
    digest_deinit(&digest);
}

static void nodes_part_all_hashes_between_them(void **state) {
    (void)state;
    struct digest digest;
    digest_init(&digest, 9);
    for (unsigned i = 0; i < 5000; i++)
        add(&digest, i, i, 0);
    digest_settle(&digest);
    for (unsigned round = 0; round < 200; round++) {
        uint64_t node = DIGEST_ROOT;
        while (!digest_node_is_last(node)) {
            size_t first, at, count = digest_range(&digest, node, &first), sum = 0;
            for (unsigned child = 0; child < DIGEST_FAN; child++) {
                size_t of_child = digest_range(&digest, digest_child(node, child), &at);
                assert_true(of_child == 0 || at == first + sum);
                sum += of_child;
            }
            assert_int_equal(sum, count);
            unsigned child = (unsigned)(next_random() % 3 == 0 ? DIGEST_FAN - 1 : next_random() % DIGEST_FAN);
            node = digest_child(node, child);
            assert_true(digest_node_valid(node));
        }
    }
    assert_false(digest_node_valid(0));
    assert_false(digest_node_valid(2));
    assert_true(digest_node_valid((uint64_t)1 << 60));
    assert_false(digest_node_valid((uint64_t)1 << 61));
    assert_false(digest_node_valid(UINT64_MAX));
    digest_deinit(&digest);
}

/* As compare.c does it. Marks what differs in ours, and counts what it took. */
static void find_differences(struct digest *ours, const struct digest *theirs, uint64_t node, size_t *sums_told) {
    size_t first, count = digest_range(ours, node, &first);
    uint64_t of_ours[DIGEST_FAN], of_theirs[DIGEST_FAN];
    if (count <= DIGEST_LIST_MAX || digest_node_is_last(node)) {
        for (size_t i = first; i < first + count; i++) {
            const struct digest_item *item = &ours->items[i], *held = digest_find(theirs, item->topic);
            ours->items[i].state = !held || !digest_item_has(held, item->wall_ms, item->count);
        }
        return;
    }
    ++*sums_told;
    digest_sums(ours, node, of_ours);
    digest_sums(theirs, node, of_theirs);
    for (unsigned i = 0; i < DIGEST_FAN; i++)
        if (of_ours[i] != of_theirs[i]) find_differences(ours, theirs, digest_child(node, i), sums_told);
}

static void exactly_what_differs_is_found(void **state) {
    (void)state;
    static const unsigned sizes[] = {0, 1, 31, 32, 33, 64, 500, 2049, 20000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (unsigned changes = 0; changes < 2000; changes = changes * 3 + 1) {
            unsigned size = sizes[s];
            struct digest ours, theirs;
            uint8_t *lacks = calloc(size + 1, 1);
            size_t sums_told = 0;
            assert_non_null(lacks);
            digest_init(&ours, next_random());
            digest_init(&theirs, ours.key);
            for (unsigned change = 0; change < changes && size > 0; change++)
                lacks[next_random() % size] = (uint8_t)(1 + next_random() % 3);
            for (unsigned i = 0; i < size; i++) {
                uint64_t wall_ms = next_random() % 1000 + 1;
                add(&ours, i, wall_ms, 5);
                if (lacks[i] == 1) add(&theirs, i, wall_ms - 1, 9); /* older */
                if (lacks[i] == 2)
                    add(&theirs, i, wall_ms, 7), lacks[i] = 0; /* newer */
                else if (lacks[i] == 0)
                    add(&theirs, i, wall_ms, 5);
                if (next_random() % 100 == 0) add(&theirs, size + i, wall_ms, 0); /* unknown to us */
            }
            digest_settle(&ours);
            digest_settle(&theirs);
            find_differences(&ours, &theirs, DIGEST_ROOT, &sums_told);
            for (unsigned i = 0; i < size; i++)
                assert_int_equal(digest_find(&ours, hash_of(&ours, i))->state, lacks[i] != 0);
            if (changes <= 13) assert_true(sums_told <= 1 + 2 * (changes + size / 100 + 1));
            digest_deinit(&ours);
            digest_deinit(&theirs);
            free(lacks);
        }
    }
}

/* ---- what filters select ---- */

enum { NOW_MS = 1000 };

static bool store(struct retained *retained, const char *topic, bool expires) {
    struct message message = {.topic = topic,
                              .topic_size = (uint32_t)strlen(topic),
                              .payload = (const uint8_t *)"x",
                              .payload_size = 1,
                              .retain = true,
                              .expires_at_ms = expires ? NOW_MS : UINT64_MAX,
                              .stamp = {.wall_ms = 1}};
    bool stored = retained_set(retained, 0, &message) == RETAINED_STORED;
    message_return(&message);
    return stored;
}

struct seen {
    char topics[4096][16];
    size_t count, left;
};

static bool on_seen(void *context, struct message *message) {
    struct seen *seen = context;
    char topic[16] = {0};
    memcpy(topic, message->topic, message->topic_size);
    if (seen->left-- == 0) return false;
    for (size_t i = 0; i < seen->count; i++)
        if (strcmp(seen->topics[i], topic) == 0) return true;
    memcpy(seen->topics[seen->count++], topic, sizeof topic);
    return true;
}

static void random_levels(char text[16], const char *const levels[], size_t level_count) {
    size_t count = (uint8_t)(1 + next_random() % 3);
    text[0] = 0;
    for (size_t i = 0; i < count; i++) {
        const char *level = levels[next_random() % level_count];
        if (i > 0) strcat(text, "/");
        strcat(text, level);
        if (strcmp(level, "#") == 0) return;
    }
}

/* Few filters are walked one by one, many that overlap by topic: what they find is the same. */
static void a_selection_is_what_any_filter_matches(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "$x", "e", "f", "g"}, *const parts[] = {"a", "b", "+",
                                                                                                    "#", "c", "$x"};
    static char filters[64][16];
    struct seen *seen = malloc(sizeof *seen);
    assert_non_null(seen);
    for (unsigned round = 0; round < 300; round++) {
        struct retained *retained = retained_new(1 << 20, 10000, round);
        struct selection selection = {0};
        char topics[300][16];
        bool expired[300];
        size_t topic_count = next_random() % 300, filter_count = next_random() % 64, expected = 0;
        for (size_t i = 0; i < topic_count; i++) {
            random_levels(topics[i], names, 8);
            expired[i] = next_random() % 5 == 0;
            if (!store(retained, topics[i], expired[i])) i--, topic_count--;
        }
        for (size_t i = 0; i < filter_count; i++) {
            random_levels(filters[i], parts, 6);
            selection_add(&selection, filters[i], strlen(filters[i]));
        }
        seen->count = 0, seen->left = SIZE_MAX;
        assert_true(selection_walk(&selection, retained, NOW_MS, on_seen, seen));
        for (size_t t = 0; t < topic_count; t++) {
            bool matches = false;
            for (size_t f = 0; f < filter_count; f++)
                matches |= topic_matches(filters[f], strlen(filters[f]), topics[t], strlen(topics[t]));
            expected += matches && !expired[t];
        }
        assert_int_equal(seen->count, expected);
        if (expected > 3) {
            seen->count = 0, seen->left = 3;
            assert_false(selection_walk(&selection, retained, NOW_MS, on_seen, seen));
            assert_int_equal(seen->count <= 3, 1);
            seen->count = 0, seen->left = SIZE_MAX;
            assert_false(selection_glance(&selection, retained, NOW_MS, 3, on_seen, seen));
            assert_true(seen->count <= 3);
            assert_true(selection_glance(&selection, retained, NOW_MS, UINT64_MAX, on_seen, seen));
        }
        selection_deinit(&selection);
        retained_free(retained);
    }
    free(seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_of_what_is_held_in_any_order),
        cmocka_unit_test(another_stamp_topic_or_key_is_another_sum),
        cmocka_unit_test(hashes_and_bytes_are_those_of_the_protocol_page),
        cmocka_unit_test(nodes_part_all_hashes_between_them),
        cmocka_unit_test(exactly_what_differs_is_found),
        cmocka_unit_test(a_selection_is_what_any_filter_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
