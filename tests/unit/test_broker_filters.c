#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/filters.h"

enum { SEED = 7, MANY = 1000 };

static size_t name_of(char out[16], unsigned n) {
    return (size_t)snprintf(out, 16, "f/%u", n);
}

static void expect_exactly(const struct filters *filters, const bool held[MANY]) {
    uint32_t count = 0;

    for (unsigned n = 0; n < MANY; n++) {
        char text[16];
        size_t size = name_of(text, n);
        uint32_t position = filters_find(filters, SEED, text, size);
        count += held[n];
        assert_int_equal(position < filters->count, held[n]);
        if (!held[n]) continue;
        assert_int_equal(filters->items[position].size, size);
        assert_memory_equal(filters->items[position].text, text, size);
    }
    assert_int_equal(filters->count, count);
}

static void what_was_added_and_not_removed_is_found(void **state) {
    struct filters filters = {0};
    bool held[MANY] = {false};
    (void)state;

    srand(1);
    for (unsigned phase = 0; phase < 40; phase++) {
        unsigned limit = phase % 4 == 3 ? 1 : phase % 2 ? MANY : 30; /* through all sizes of the table, both ways */
        for (unsigned step = 0; step < 600; step++) {
            unsigned n = (unsigned)rand() % MANY;
            char text[16];
            size_t size = name_of(text, n);
            uint32_t position = filters_find(&filters, SEED, text, size);
            if (held[n])
                filters_remove(&filters, position);
            else if (filters.count < limit)
                assert_int_equal(filters_add(&filters, SEED, text, size), 0);
            else
                continue;
            held[n] = !held[n];
        }
        expect_exactly(&filters, held);
    }
    filters_deinit(&filters);
    assert_int_equal(filters.count, 0);
}

static void the_last_one_out_leaves_nothing_allocated(void **state) {
    struct filters filters = {0};
    (void)state;

    assert_int_equal(filters_find(&filters, SEED, "a", 1), 0);
    assert_int_equal(filters_add(&filters, SEED, "a", 1), 0);
    assert_int_equal(filters_find(&filters, SEED, "b", 1), 1);
    filters_remove(&filters, 0);
    assert_null(filters.items);
    assert_int_equal(filters.capacity, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_and_not_removed_is_found),
        cmocka_unit_test(the_last_one_out_leaves_nothing_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
