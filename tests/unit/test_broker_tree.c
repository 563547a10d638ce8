#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "tree_model.h"

static uint32_t next(uint32_t *chance) {
    *chance ^= *chance << 13;
    *chance ^= *chance >> 17;
    *chance ^= *chance << 5;
    return *chance;
}

static struct tree_node *make(struct tree *tree, const char *topic) {
    struct tree_path path;

    tree_path_of(topic, strlen(topic), &path);
    return tree_make(tree, &path);
}

static struct tree_node *find(struct tree *tree, const char *topic) {
    struct tree_path path;

    tree_path_of(topic, strlen(topic), &path);
    return tree_find(tree, &path);
}

static void put(struct tree *tree, const char *topic) {
    struct tree_node *node = make(tree, topic);

    assert_non_null(node);
    node->item = tree;
}

static void take(struct tree *tree, const char *topic) {
    struct tree_node *node = find(tree, topic);

    assert_non_null(node);
    node->item = NULL;
    tree_prune(tree, node);
}

static void agrees_with_a_list(void **state) {
    static struct model model;

    (void)state;
    for (uint32_t seed = 1; seed <= 100; seed++) {
        uint32_t chance = seed * 2654435761u;
        model_begin(&model, seed % 2);
        for (int i = 0; i < 200; i++) {
            uint8_t step[MODEL_STEP_SIZE];
            model_random_step(&chance, step);
            model_step(&model, step);
        }
        assert_int_equal(model.unmerged, 0);
        model_end(&model);
    }
}

static void levels_that_nothing_parts_are_one_node(void **state) {
    struct tree tree;

    (void)state;
    assert_int_equal(tree_init(&tree, 7), 0);
    put(&tree, "a/b/c/d/e");
    assert_int_equal(tree.node_count, 1);
    put(&tree, "a/b/c");
    assert_int_equal(tree.node_count, 2);
    put(&tree, "a/x");
    assert_int_equal(tree.node_count, 4);
    assert_null(find(&tree, "a/b"));
    assert_null(find(&tree, "a/b/c/d"));
    assert_null(find(&tree, "a/b/c/d/e/f"));
    assert_non_null(find(&tree, "a")); /* where ways part, without an item */
    assert_null(find(&tree, "a")->item);
    take(&tree, "a/x");
    assert_int_equal(tree.node_count, 2);
    take(&tree, "a/b/c");
    assert_int_equal(tree.node_count, 1);
    assert_int_equal(find(&tree, "a/b/c/d/e")->levels, 5);
    take(&tree, "a/b/c/d/e");
    assert_int_equal(tree.bytes, 0);
    tree_deinit(&tree);
}

/* The levels that are split off stay in front of the others, so that putting them together again takes nothing; those
 * of a node that never had them take room, but not more than they give back. */
static void putting_together_never_costs_memory(void **state) {
    char deep[400] = "", part[400];
    struct tree tree;
    uint64_t bytes;

    (void)state;
    assert_int_equal(tree_init(&tree, 7), 0);
    for (size_t size = 1; size < 300; size++) { /* of the last level */
        char other[400] = "a/b/";
        memset(other + 4, 'x', size);
        put(&tree, "a/b/c"), put(&tree, other);
        bytes = tree.bytes;
        take(&tree, "a/b/c"); /* the other gets a/b */
        assert_int_equal(tree.node_count, 1);
        assert_true(tree.bytes < bytes);
        take(&tree, other);
        assert_int_equal(tree.bytes, 0);
    }
    for (int i = 0; i < 100; i++)
        strcat(deep, i ? "/l" : "l");
    put(&tree, deep);
    bytes = tree.bytes;
    for (size_t size = strlen(deep) - 2; size > 1; size -= 2) {
        snprintf(part, sizeof part, "%.*s/other", (int)size, deep);
        put(&tree, part);
        take(&tree, part);
        assert_int_equal(tree.node_count, 1);
        assert_int_equal(tree.bytes, bytes);
    }
    take(&tree, deep);
    assert_int_equal(tree.bytes, 0);
    tree_deinit(&tree);
}

/* 128 levels, each a or +, all of which match one name. */
static void deep_filter(char *filter, uint32_t *chance) {
    for (unsigned i = 0; i < TOPIC_LEVELS_MAX; i++) {
        filter[2 * i] = next(chance) >> 9 & 1 ? 'a' : '+';
        filter[2 * i + 1] = i + 1 < TOPIC_LEVELS_MAX ? '/' : '\0';
    }
}

/* What a match may look at is two nodes for each filter, whatever their depth, and also when others have parted them at
 * every level and gone again. */
static void deep_filters_are_two_nodes_each_at_most(void **state) {
    enum { FILTERS = 1000 };
    uint32_t chance = 5;
    char filter[2 * TOPIC_LEVELS_MAX], other[2 * TOPIC_LEVELS_MAX];
    struct tree tree;

    (void)state;
    assert_int_equal(tree_init(&tree, 7), 0);
    for (unsigned i = 0; i < FILTERS; i++) {
        deep_filter(filter, &chance);
        put(&tree, filter);
        /* A twin that shares all but the last level. */
        filter[2 * TOPIC_LEVELS_MAX - 2] ^= 'a' ^ '+';
        put(&tree, filter);
        for (unsigned level = i % 10 == 0 ? 1 : TOPIC_LEVELS_MAX; level < TOPIC_LEVELS_MAX; level++) {
            unsigned at = i % 20 == 0 ? level : TOPIC_LEVELS_MAX - level; /* from the top or from the bottom */
            snprintf(other, sizeof other, "%.*sb", (int)(2 * at), filter);
            put(&tree, other);
        }
        for (unsigned level = i % 10 == 0 ? 1 : TOPIC_LEVELS_MAX; level < TOPIC_LEVELS_MAX; level++) {
            unsigned at = i % 30 == 0 ? level : TOPIC_LEVELS_MAX - level;
            snprintf(other, sizeof other, "%.*sb", (int)(2 * at), filter);
            take(&tree, other);
        }
        assert_true(tree.node_count <= 4 * ((size_t)i + 1));
    }
    assert_true(tree.bytes <= 2 * FILTERS * (2 * sizeof(struct tree_node) + 2 * sizeof filter));
    tree_deinit(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_a_list),
        cmocka_unit_test(levels_that_nothing_parts_are_one_node),
        cmocka_unit_test(putting_together_never_costs_memory),
        cmocka_unit_test(deep_filters_are_two_nodes_each_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
