/* The pool of what several gossips hold alike. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#include "gossip/shared.h"

struct number {
    struct shared shared;
    uint64_t value;
};

static void make(struct number *number, uint64_t hash, uint64_t value) {
    shared_init(&number->shared, SHARED_HEAD, hash);
    number->value = value;
}

static bool is_value(const struct shared *shared, const void *wanted) {
    return ((const struct number *)shared)->value == *(const uint64_t *)wanted;
}

static struct shared *find(struct gossip_shared *pool, uint64_t hash, uint64_t value) {
    return shared_find(pool, SHARED_HEAD, hash, is_value, &value);
}

static void what_is_offered_is_found_by_what_it_says(void **unused) {
    (void)unused;
    struct gossip_shared *pool = gossip_shared_new();
    struct number numbers[500];
    for (uint64_t i = 0; i < 500; i++) {
        make(&numbers[i], i % 7, i); /* many in one chain */
        assert_null(find(pool, i % 7, i));
        shared_offer(pool, &numbers[i].shared);
    }
    for (uint64_t i = 0; i < 500; i++) {
        assert_ptr_equal(find(pool, i % 7, i), &numbers[i]);
        assert_false(shared_is_alone(&numbers[i].shared));
        assert_false(shared_unref(&numbers[i].shared));
    }
    uint64_t value = 3;
    assert_null(shared_find(pool, SHARED_IDENTITY, 3, is_value, &value));
    for (size_t i = 0; i < 500; i++)
        assert_true(shared_unref(&numbers[i].shared));
    assert_null(find(pool, 3, 3));
    gossip_shared_free(pool);
}

static void what_was_withdrawn_is_not_found_and_lives(void **unused) {
    (void)unused;
    struct gossip_shared *pool = gossip_shared_new();
    struct number number;
    make(&number, 1, 2);
    shared_offer(pool, &number.shared);
    shared_withdraw(&number.shared);
    assert_null(find(pool, 1, 2));
    assert_true(shared_is_alone(&number.shared));
    shared_offer(pool, &number.shared);
    assert_ptr_equal(find(pool, 1, 2), &number);
    assert_false(shared_unref(&number.shared));
    assert_true(shared_unref(&number.shared));
    gossip_shared_free(pool);
}

static void without_a_pool_nothing_is_found(void **unused) {
    (void)unused;
    struct number number;
    make(&number, 1, 2);
    shared_offer(NULL, &number.shared);
    assert_null(find(NULL, 1, 2));
    shared_withdraw(&number.shared);
    assert_true(shared_unref(&number.shared));
    gossip_shared_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_offered_is_found_by_what_it_says),
        cmocka_unit_test(what_was_withdrawn_is_not_found_and_lives),
        cmocka_unit_test(without_a_pool_nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
