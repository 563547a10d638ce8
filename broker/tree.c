#include "broker/tree.h"

#include "broker/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64 };

int tree_init(struct tree *tree, uint64_t seed) {
    *tree = (struct tree){.seed = seed, .bucket_mask = FIRST_BUCKETS - 1};
    tree->root = calloc(1, sizeof *tree->root);
    tree->buckets = calloc(FIRST_BUCKETS, sizeof(struct tree_node *));
    if (tree->root == NULL || tree->buckets == NULL) {
        free(tree->root);
        free(tree->buckets);
        return -1;
    }
    return 0;
}

void tree_deinit(struct tree *tree) {
    for (size_t i = 0; i <= tree->bucket_mask; i++) {
        struct tree_node *node = tree->buckets[i];
        while (node != NULL) {
            struct tree_node *next = node->bucket_next;
            free(node);
            node = next;
        }
    }
    free(tree->buckets);
    free(tree->root);
}

void tree_path_of(const struct tree *tree, const char *topic, size_t size, struct tree_path *path) {
    const char *at = topic, *end = topic + size;

    path->count = 0;
    while (at != NULL && path->count < TOPIC_LEVELS_MAX) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t level_size = (size_t)((slash ? slash : end) - at);
        path->levels[path->count].text = at;
        path->levels[path->count].size = (uint32_t)level_size;
        path->levels[path->count].hash = hash_bytes(tree->seed, at, level_size);
        path->count++;
        at = slash ? slash + 1 : NULL;
    }
}

/* Which parent it is cannot be chosen from outside, so mixing its address in needs no strength. */
static uint64_t child_hash(const struct tree_node *parent, uint64_t level_hash) {
    uint64_t address = (uint64_t)(uintptr_t)parent * 0x9E3779B97F4A7C15u;
    return level_hash ^ address ^ (address >> 32);
}

struct tree_node *tree_child(const struct tree *tree, const struct tree_node *parent, const struct tree_path *path,
                             size_t level) {
    uint64_t hash = child_hash(parent, path->levels[level].hash);
    struct tree_node *node = tree->buckets[hash & tree->bucket_mask];

    for (; node != NULL; node = node->bucket_next)
        if (node->hash == hash && node->parent == parent && node->level_size == path->levels[level].size &&
            memcmp(node->level, path->levels[level].text, node->level_size) == 0)
            return node;
    return NULL;
}

struct tree_node *tree_find(const struct tree *tree, const struct tree_path *path) {
    struct tree_node *node = tree->root;

    for (size_t i = 0; i < path->count && node != NULL; i++)
        node = tree_child(tree, node, path, i);
    return node;
}

/* A table that cannot grow only gets slower. */
static void grow_if_crowded(struct tree *tree) {
    size_t mask = tree->bucket_mask * 2 + 1;
    struct tree_node **buckets;

    if (tree->node_count <= tree->bucket_mask) return;
    buckets = calloc(mask + 1, sizeof(struct tree_node *));
    if (buckets == NULL) return;
    for (size_t i = 0; i <= tree->bucket_mask; i++) {
        struct tree_node *node = tree->buckets[i];
        while (node != NULL) {
            struct tree_node *next = node->bucket_next;
            node->bucket_next = buckets[node->hash & mask];
            buckets[node->hash & mask] = node;
            node = next;
        }
    }
    free(tree->buckets);
    tree->buckets = buckets;
    tree->bucket_mask = mask;
}

/* Where the parent keeps its children named + and #; NULL for any other child. */
static struct tree_node **wildcard_place(const struct tree_node *node) {
    if (node->level_size == 1 && node->level[0] == '+') return &node->parent->plus;
    if (node->level_size == 1 && node->level[0] == '#') return &node->parent->rest;
    return NULL;
}

static size_t node_bytes(size_t level_size) {
    return sizeof(struct tree_node) + level_size;
}

static struct tree_node *add_child(struct tree *tree, struct tree_node *parent, const struct tree_path *path,
                                   size_t level) {
    uint32_t size = path->levels[level].size;
    struct tree_node *node = malloc(node_bytes(size));
    struct tree_node **bucket;

    if (node == NULL) return NULL;
    *node =
        (struct tree_node){.parent = parent, .level_size = size, .hash = child_hash(parent, path->levels[level].hash)};
    memcpy(node->level, path->levels[level].text, size);
    grow_if_crowded(tree);
    bucket = &tree->buckets[node->hash & tree->bucket_mask];
    node->bucket_next = *bucket;
    *bucket = node;
    node->next = parent->first_child;
    if (node->next != NULL) node->next->previous = node;
    parent->first_child = node;
    if (wildcard_place(node) != NULL) *wildcard_place(node) = node;
    tree->node_count++;
    tree->bytes += node_bytes(size);
    return node;
}

static void drop_leaf(struct tree *tree, struct tree_node *node) {
    struct tree_node **place = &tree->buckets[node->hash & tree->bucket_mask];

    while (*place != node)
        place = &(*place)->bucket_next;
    *place = node->bucket_next;
    if (node->previous != NULL)
        node->previous->next = node->next;
    else
        node->parent->first_child = node->next;
    if (node->next != NULL) node->next->previous = node->previous;
    if (wildcard_place(node) != NULL) *wildcard_place(node) = NULL;
    tree->node_count--;
    tree->bytes -= node_bytes(node->level_size);
    free(node);
}

struct tree_node *tree_make(struct tree *tree, const struct tree_path *path) {
    struct tree_node *node = tree->root;

    for (size_t i = 0; i < path->count; i++) {
        struct tree_node *child = tree_child(tree, node, path, i);
        if (child == NULL) child = add_child(tree, node, path, i);
        if (child == NULL) {
            tree_prune(tree, node);
            return NULL;
        }
        node = child;
    }
    return node;
}

uint64_t tree_missing_bytes(const struct tree *tree, const struct tree_path *path) {
    const struct tree_node *node = tree->root;
    uint64_t bytes = 0;

    for (size_t i = 0; i < path->count; i++) {
        if (node != NULL) node = tree_child(tree, node, path, i);
        if (node == NULL) bytes += node_bytes(path->levels[i].size);
    }
    return bytes;
}

void tree_prune(struct tree *tree, struct tree_node *node) {
    while (node != tree->root && node->item == NULL && node->first_child == NULL && node->pins == 0) {
        struct tree_node *parent = node->parent;
        drop_leaf(tree, node);
        node = parent;
    }
}

void tree_pin(struct tree_node *node) {
    node->pins++;
}

void tree_unpin(struct tree *tree, struct tree_node *node) {
    assert(node->pins > 0);
    node->pins--;
    tree_prune(tree, node);
}

struct tree_node *tree_next(const struct tree_node *node) {
    if (node->first_child != NULL) return node->first_child;
    while (node != NULL && node->next == NULL)
        node = node->parent;
    return node != NULL ? node->next : NULL;
}
