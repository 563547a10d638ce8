/* A set of rows that is copied for nothing, against one that is simply an array of flags. */
#include "gossip/rowset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAMES 300u

static uint64_t state = 0x2545f4914f6cdd1du;
static uint32_t roll(uint32_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % bound);
}

struct model {
    bool has[2][NAMES];
};

static size_t name_of(uint32_t number, char name[16]) {
    return (size_t)snprintf(name, 16, "%.*s%u", (int)(number % 3), "ab", number * 7919 % 1000);
}

static void assert_is(const struct rowset *set, const struct model *model) {
    struct rowset_walk walk;
    struct rowset_row row, before = {0};
    size_t seen = 0, expected = 0;
    for (rowset_begin(set, &walk); rowset_next(&walk, &row); before = row, seen++) {
        if (seen == 0 || before.kind != row.kind) continue;
        int order = memcmp(before.filter, row.filter, before.size < row.size ? before.size : row.size);
        assert_true(order < 0 || (order == 0 && before.size < row.size));
    }
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (uint32_t i = 0; i < NAMES; i++) {
            char name[16];
            size_t size = name_of(i, name);
            assert_int_equal(rowset_has(set, (enum gossip_row_kind)(kind + 1), name, size), model->has[kind][i]);
            expected += model->has[kind][i];
        }
    }
    assert_int_equal(seen, expected);
    assert_int_equal(set->count, expected);
}

static void change(struct rowset *set, struct model *model, uint32_t more_puts) {
    uint32_t kind = roll(2), number = roll(NAMES);
    bool put = roll(10) < more_puts;
    char name[16];
    size_t size = name_of(number, name);
    enum rowset_result result = put ? rowset_put(set, (enum gossip_row_kind)(kind + 1), name, size)
                                    : rowset_delete(set, (enum gossip_row_kind)(kind + 1), name, size);
    assert_int_equal(result, put != model->has[kind][number] ? ROWSET_CHANGED : ROWSET_SAME);
    model->has[kind][number] = put;
}

static void copies_do_not_feel_what_happens_to_one_another(void **unused) {
    (void)unused;
    for (int round = 0; round < 20; round++) {
        struct rowset sets[4] = {{0}};
        struct model models[4] = {{{{false}}}};
        for (int step = 0; step < 3000; step++) {
            uint32_t which = roll(4), from = roll(4);
            if (roll(100) == 0 && which != from) {
                rowset_free(&sets[which]);
                sets[which] = rowset_share(&sets[from]);
                models[which] = models[from];
            }
            change(&sets[which], &models[which], step / 500 % 2 ? 3 : 7);
            if (step % 100 == 0)
                for (int i = 0; i < 4; i++)
                    assert_is(&sets[i], &models[i]);
        }
        for (int i = 0; i < 4; i++)
            rowset_free(&sets[i]);
    }
}

static struct rowset made_of(uint32_t count) {
    struct rowset set = {0};
    for (uint32_t i = 0; i < count; i++) {
        char filter[32];
        int size = snprintf(filter, sizeof filter, "site/%u/room/%u", i * 7919 % count, i);
        assert_int_equal(rowset_put(&set, i % 2 ? GOSSIP_NEWPUB : GOSSIP_NEWSUB, filter, (size_t)size), ROWSET_CHANGED);
    }
    return set;
}

static void any_part_of_the_encoding_is_that_part(void **unused) {
    (void)unused;
    struct rowset set = made_of(60);
    size_t size = rowset_encoded_size(&set);
    uint8_t *whole = malloc(size), *part = malloc(size);
    assert_int_equal(size, set.bytes + 3 * set.count);
    rowset_encode(&set, 0, size, whole);
    for (size_t from = 0; from < size; from += 5) {
        for (size_t length = 0; length <= size - from; length += 1 + length / 3) {
            memset(part, 0xee, size);
            rowset_encode(&set, from, length, part);
            assert_memory_equal(part, whole + from, length);
            assert_true(length == size || part[length] == 0xee);
        }
    }
    free(whole);
    free(part);
    rowset_free(&set);
}

static void one_state_has_one_encoding_however_it_came_about(void **unused) {
    (void)unused;
    for (uint32_t count = 0; count < 200; count += 13) {
        struct rowset set = made_of(count), read = {0};
        size_t size = rowset_encoded_size(&set);
        uint8_t *bytes = malloc(size + 1), *again = malloc(size + 1);
        rowset_encode(&set, 0, size, bytes);
        assert_int_equal(rowset_decode(bytes, size, count, &read), ROWSET_DECODED);
        assert_int_equal(read.count, count);
        assert_int_equal(read.bytes, set.bytes);
        assert_int_equal(rowset_encoded_size(&read), size);
        rowset_encode(&read, 0, size, again);
        assert_memory_equal(again, bytes, size);
        assert_int_equal(rowset_put(&read, GOSSIP_NEWSUB, "one/more", 8), ROWSET_CHANGED);
        assert_int_equal(rowset_delete(&read, GOSSIP_NEWSUB, "one/more", 8), ROWSET_CHANGED);
        assert_int_equal(rowset_encoded_size(&read), size);
        if (count > 0) assert_int_equal(rowset_decode(bytes, size, count - 1, &read), ROWSET_MALFORMED);
        free(bytes);
        free(again);
        rowset_free(&set);
        rowset_free(&read);
    }
}

static void what_is_no_encoding_is_refused(void **unused) {
    (void)unused;
    static const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\2", 1},
        {"\2\0", 2},
        {"\2\0\2ab", 4}, /* shorter than it says, whatever is behind it */
        {"\3\0\1a", 4},  /* no such kind */
        {"\0\0\1a", 4},
        {"\2\0\0", 3},          /* no filter */
        {"\2\0\3a#b", 6},       /* no filter either */
        {"\2\0\1b\2\0\1a", 8},  /* out of order */
        {"\2\0\1a\2\0\1a", 8},  /* twice */
        {"\2\0\1a\1\0\1a", 8},  /* kinds out of order */
        {"\2\0\2ab\2\0\1a", 9}, /* the shorter one comes first */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rowset set = {0};
        assert_int_equal(rowset_decode((const uint8_t *)bad[i].bytes, bad[i].size, 10, &set), ROWSET_MALFORMED);
        assert_null(set.root);
    }
}

/* A walk holds a place for each level: so a tree that leans would be seen here, and be slow. */
static void a_tree_made_in_order_is_low(void **unused) {
    (void)unused;
    struct rowset set = {0};
    struct rowset_walk walk;
    for (uint32_t i = 0; i < 40000; i++) {
        char filter[16];
        int size = snprintf(filter, sizeof filter, "%08u", i);
        assert_int_equal(rowset_put(&set, GOSSIP_NEWSUB, filter, (size_t)size), ROWSET_CHANGED);
    }
    rowset_begin(&set, &walk);
    assert_in_range(walk.depth, 1, 22); /* 1.44 log2(40,000) */
    for (uint32_t i = 0; i < 39000; i++) {
        char filter[16];
        int size = snprintf(filter, sizeof filter, "%08u", i);
        assert_int_equal(rowset_delete(&set, GOSSIP_NEWSUB, filter, (size_t)size), ROWSET_CHANGED);
    }
    rowset_begin(&set, &walk);
    assert_in_range(walk.depth, 1, 14);
    rowset_free(&set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_do_not_feel_what_happens_to_one_another),
        cmocka_unit_test(any_part_of_the_encoding_is_that_part),
        cmocka_unit_test(one_state_has_one_encoding_however_it_came_about),
        cmocka_unit_test(what_is_no_encoding_is_refused),
        cmocka_unit_test(a_tree_made_in_order_is_low),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
