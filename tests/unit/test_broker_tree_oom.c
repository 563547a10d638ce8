#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "oom.h"
#include "tree_model.h"

/* Each third allocation fails: what was refused left no trace, and what could not be put together is found all the
 * same. */
static void agrees_with_a_list_in_a_shortage(void **state) {
    static struct model model;
    size_t unmerged = 0;

    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        uint32_t chance = seed * 2654435761u;
        model_begin(&model, seed % 2);
        shortage.every = 3;
        for (int i = 0; i < 200; i++) {
            uint8_t step[MODEL_STEP_SIZE];
            model_random_step(&chance, step);
            model_step(&model, step);
        }
        shortage.every = 0;
        unmerged += model.unmerged;
        model_end(&model);
    }
    assert_true(unmerged > 0); /* it did happen */
}

static void put(struct model *model, size_t place, const char *topic) {
    struct model_text text = {.size = strlen(topic)};

    memcpy(text.bytes, topic, text.size);
    assert_true(model_set(model, place, &text));
}

/* A branch that finds memory for its parting but not for itself is gone wholly. */
static void refused_branch_leaves_the_tree_as_it_was(void **state) {
    static struct model model;
    struct model_text text = {.size = 7};

    (void)state;
    memcpy(text.bytes, "a/b/x/y", 7);
    model_begin(&model, true);
    put(&model, 0, "a/b/c/d/e");
    for (long n = 0; n < 2; n++) {
        shortage_after(n);
        assert_false(model_set(&model, 1, &text));
        shortage_over();
        assert_int_equal(model.tree.node_count, 1);
        model_check(&model);
    }
    assert_true(model_set(&model, 1, &text));
    model_check(&model);
    assert_int_equal(model.unmerged, 0);
    model_end(&model);
}

/* What could not be put together for lack of memory is when the next branch goes. */
static void what_stays_apart_is_put_together_later(void **state) {
    static struct model model;

    (void)state;
    model_begin(&model, true);
    put(&model, 0, "a/b/c"), put(&model, 1, "a/b/d");
    shortage_after(0);
    model_drop(&model, &model.entries[0]);
    shortage_over();
    assert_int_equal(model.tree.node_count, 2);
    put(&model, 0, "a/b/e");
    model_drop(&model, &model.entries[0]);
    assert_int_equal(model.tree.node_count, 1);
    model_check(&model);
    model_end(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_list_in_a_shortage),
        cmocka_unit_test(refused_branch_leaves_the_tree_as_it_was),
        cmocka_unit_test(what_stays_apart_is_put_together_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
