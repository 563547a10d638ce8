#include "broker/tree.h"

#include "broker/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A label above OWN_MAX bytes has a block of its own, so that putting two together gives back more than it takes. */
enum { FIRST_BUCKETS = 64, OWN_MAX = 64 };

static_assert(TOPIC_SIZE_MAX <= UINT16_MAX && TOPIC_LEVELS_MAX <= UINT8_MAX, "a label may be a whole topic");

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

/* What the label is at the end of. */
static const char *label_block(const struct tree_node *node) {
    return node->label + node->label_size - node->room;
}

static bool has_own_label(const struct tree_node *node) {
    return label_block(node) == node->own;
}

static size_t bytes_for(size_t label_size) {
    return sizeof(struct tree_node) + label_size;
}

static size_t node_bytes(const struct tree_node *node) {
    return bytes_for(node->own_room) + (has_own_label(node) ? 0 : node->room);
}

static void node_free(struct tree_node *node) {
    if (!has_own_label(node)) free((char *)label_block(node));
    free(node);
}

void tree_deinit(struct tree *tree) {
    for (size_t i = 0; i <= tree->bucket_mask; i++) {
        struct tree_node *node = tree->buckets[i];
        while (node != NULL) {
            struct tree_node *next = node->bucket_next;
            node_free(node);
            node = next;
        }
    }
    free(tree->buckets);
    free(tree->root);
}

void tree_path_of(const char *topic, size_t size, struct tree_path *path) {
    const char *at = topic, *end = topic + size;

    path->count = 0;
    while (at != NULL && path->count < TOPIC_LEVELS_MAX) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t level_size = (size_t)((slash ? slash : end) - at);
        path->levels[path->count].text = at;
        path->levels[path->count].size = (uint32_t)level_size;
        path->levels[path->count].hash = 0;
        path->count++;
        at = slash ? slash + 1 : NULL;
    }
}

/* ---- labels ---- */

/* The text of some levels of a path. */
static size_t span_size(const struct tree_path *path, size_t from, size_t to) {
    return (size_t)(path->levels[to - 1].text + path->levels[to - 1].size - path->levels[from].text);
}

/* Where the level that begins at that place of the label ends. */
static size_t level_end(const struct tree_node *node, size_t begin) {
    const char *slash = memchr(node->label + begin, '/', node->label_size - begin);
    return slash != NULL ? (size_t)(slash - node->label) : node->label_size;
}

static bool begins_with(const struct tree_node *node, const char *level, size_t size) {
    return (node->label_size == size || (node->label_size > size && node->label[size] == '/')) &&
           memcmp(node->label, level, size) == 0;
}

/* In a valid filter these two are nothing but levels. */
static bool is_wild(const struct tree_node *node) {
    size_t size = node->label_size;
    return size > 0 && (node->label[size - 1] == '#' || memchr(node->label, '+', size) != NULL);
}

bool tree_label_is(const struct tree_node *node, const struct tree_path *path, size_t level) {
    return node->levels <= path->count - level && span_size(path, level, level + node->levels) == node->label_size &&
           memcmp(node->label, path->levels[level].text, node->label_size) == 0;
}

/* How many levels of the label are those of the path, and their size. */
static size_t shared_levels(const struct tree_node *node, const struct tree_path *path, size_t level,
                            size_t *shared_size) {
    size_t shared = 0;

    for (size_t begin = 0; shared < node->levels && level + shared < path->count; shared++) {
        size_t end = level_end(node, begin), size = path->levels[level + shared].size;
        if (end - begin != size || memcmp(node->label + begin, path->levels[level + shared].text, size) != 0) break;
        *shared_size = end;
        begin = end + 1;
    }
    return shared;
}

/* ---- the table of children, and their lists ---- */

static uint64_t level_hash(const struct tree *tree, struct tree_path *path, size_t level) {
    if (path->levels[level].hash == 0)
        path->levels[level].hash = hash_bytes(tree->seed, path->levels[level].text, path->levels[level].size);
    return path->levels[level].hash;
}

/* Which parent it is cannot be chosen from outside, so mixing its address in needs no strength. */
static uint32_t child_hash(const struct tree_node *parent, uint64_t level_hash) {
    uint64_t address = (uint64_t)(uintptr_t)parent * 0x9E3779B97F4A7C15u;
    return (uint32_t)(level_hash ^ address ^ (address >> 32));
}

struct tree_node *tree_child(const struct tree *tree, const struct tree_node *parent, struct tree_path *path,
                             size_t level) {
    uint32_t hash = child_hash(parent, level_hash(tree, path, level));
    struct tree_node *node = tree->buckets[hash & tree->bucket_mask];

    for (; node != NULL; node = node->bucket_next)
        if (node->hash == hash && node->parent == parent &&
            begins_with(node, path->levels[level].text, path->levels[level].size))
            return node;
    return NULL;
}

/* What points to the node in its bucket. */
static struct tree_node **bucket_place(const struct tree *tree, const struct tree_node *node) {
    struct tree_node **place = &tree->buckets[node->hash & tree->bucket_mask];

    while (*place != node)
        place = &(*place)->bucket_next;
    return place;
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

static void link_child(struct tree *tree, struct tree_node *parent, struct tree_node *node, uint64_t hash) {
    bool is_rest = begins_with(node, "#", 1), is_plus = begins_with(node, "+", 1);
    struct tree_node *before = is_rest ? NULL : tree_rest(parent), **bucket;

    if (!is_rest && !is_plus && parent->has_plus) before = tree_plus(parent);
    parent->has_rest |= is_rest;
    parent->has_plus |= is_plus;
    node->parent = parent;
    node->previous = before;
    node->next = before != NULL ? before->next : parent->first_child;
    if (node->next != NULL) node->next->previous = node;
    *(before != NULL ? &before->next : &parent->first_child) = node;
    node->hash = child_hash(parent, hash);
    bucket = &tree->buckets[node->hash & tree->bucket_mask];
    node->bucket_next = *bucket;
    *bucket = node;
}

static void unlink_child(struct tree *tree, struct tree_node *node) {
    struct tree_node *parent = node->parent;

    *bucket_place(tree, node) = node->bucket_next;
    if (node == tree_rest(parent))
        parent->has_rest = false;
    else if (node == tree_plus(parent))
        parent->has_plus = false;
    *(node->previous != NULL ? &node->previous->next : &parent->first_child) = node->next;
    if (node->next != NULL) node->next->previous = node->previous;
}

/* The other node, which is in no list, stands where the node did: it has the same first level. */
static void replace_child(struct tree *tree, struct tree_node *node, struct tree_node *other) {
    *bucket_place(tree, node) = other;
    other->bucket_next = node->bucket_next;
    other->hash = node->hash;
    other->parent = node->parent;
    other->previous = node->previous;
    other->next = node->next;
    *(other->previous != NULL ? &other->previous->next : &other->parent->first_child) = other;
    if (other->next != NULL) other->next->previous = other;
}

/* ---- nodes come, are split, are put together and go ---- */

/* In no list yet; NULL when memory is short. */
static struct tree_node *node_new(struct tree *tree, const char *label, size_t size, size_t levels) {
    size_t own_room = size <= OWN_MAX ? size : 0;
    struct tree_node *node = malloc(bytes_for(own_room));
    char *block = node == NULL || size <= OWN_MAX ? NULL : malloc(size), *room;

    if (node == NULL || (size > OWN_MAX && block == NULL)) {
        free(node);
        return NULL;
    }
    room = block != NULL ? block : node->own;
    *node = (struct tree_node){.label = room,
                               .label_size = (uint16_t)size,
                               .room = (uint16_t)size,
                               .own_room = (uint16_t)own_room,
                               .levels = (uint8_t)levels};
    memcpy(room, label, size);
    node->is_wild = is_wild(node);
    grow_if_crowded(tree);
    tree->node_count++;
    tree->bytes += node_bytes(node);
    return node;
}

static void node_drop(struct tree *tree, struct tree_node *node) {
    tree->node_count--;
    tree->bytes -= node_bytes(node);
    node_free(node);
}

/* A leaf for the rest of the path. */
static struct tree_node *add_leaf(struct tree *tree, struct tree_node *parent, struct tree_path *path, size_t level) {
    struct tree_node *node =
        node_new(tree, path->levels[level].text, span_size(path, level, path->count), path->count - level);

    if (node != NULL) link_child(tree, parent, node, level_hash(tree, path, level));
    return node;
}

/* Gives the first levels of the node, of that size, to a new node above it; NULL when memory is short. The node keeps
 * the room, so that putting the two together again takes no memory. */
static struct tree_node *split(struct tree *tree, struct tree_node *node, size_t levels, size_t size) {
    struct tree_node *upper = node_new(tree, node->label, size, levels);

    if (upper == NULL) return NULL;
    replace_child(tree, node, upper);
    node->label += size + 1;
    node->label_size -= (uint16_t)(size + 1);
    node->levels -= (uint8_t)levels;
    node->is_wild = is_wild(node);
    link_child(tree, upper, node, hash_bytes(tree->seed, node->label, level_end(node, 0)));
    return upper;
}

/* Makes room in front of the node's label for that of the node above it; false when memory is short. */
static bool make_room(struct tree *tree, struct tree_node *node) {
    const struct tree_node *upper = node->parent;
    size_t size = upper->label_size + 1u + node->label_size;
    char *block;

    if (size <= node->room) return true;
    block = malloc(size);
    if (block == NULL) return false;
    memcpy(block, upper->label, upper->label_size);
    block[upper->label_size] = '/';
    memcpy(block + upper->label_size + 1, node->label, node->label_size);
    tree->bytes -= node_bytes(node);
    if (!has_own_label(node)) free((char *)label_block(node));
    node->label = block + upper->label_size + 1;
    node->room = (uint16_t)size;
    tree->bytes += node_bytes(node);
    return true;
}

/* The only child of the node takes its levels and its place. Without memory for that the tree is only slower. */
static void merge(struct tree *tree, struct tree_node *node) {
    struct tree_node *child = node->first_child;

    if (!make_room(tree, child)) return;
    *bucket_place(tree, child) = child->bucket_next;
    replace_child(tree, node, child);
    child->label -= node->label_size + 1;
    child->label_size += (uint16_t)(node->label_size + 1);
    child->levels += node->levels;
    child->is_wild |= node->is_wild;
    node_drop(tree, node);
}

/* ---- the doors ---- */

struct tree_node *tree_find(const struct tree *tree, struct tree_path *path) {
    struct tree_node *node = tree->root;

    for (size_t level = 0; level < path->count && node != NULL; level += node->levels) {
        node = tree_child(tree, node, path, level);
        if (node == NULL || !tree_label_is(node, path, level)) return NULL;
    }
    return node;
}

struct tree_node *tree_make(struct tree *tree, struct tree_path *path) {
    struct tree_node *node = tree->root;

    for (size_t level = 0; level < path->count;) {
        struct tree_node *child = tree_child(tree, node, path, level);
        size_t size = 0, shared;
        if (child == NULL) {
            child = add_leaf(tree, node, path, level);
            if (child == NULL) tree_prune(tree, node);
            return child;
        }
        shared = shared_levels(child, path, level, &size);
        node = shared < child->levels ? split(tree, child, shared, size) : child;
        if (node == NULL) return NULL;
        level += shared;
    }
    return node;
}

uint64_t tree_missing_bytes(const struct tree *tree, struct tree_path *path) {
    const struct tree_node *node = tree->root;
    size_t level = 0;
    uint64_t bytes = 0;

    while (level < path->count && bytes == 0) {
        size_t size = 0, shared;
        node = tree_child(tree, node, path, level);
        if (node == NULL) break;
        shared = shared_levels(node, path, level, &size);
        if (shared < node->levels) bytes = bytes_for(size);
        level += shared;
    }
    return level < path->count ? bytes + bytes_for(span_size(path, level, path->count)) : bytes;
}

void tree_prune(struct tree *tree, struct tree_node *node) {
    while (node != tree->root && node->item == NULL && node->pins == 0) {
        struct tree_node *parent = node->parent;
        if (node->first_child != NULL) {
            if (node->first_child->next == NULL) merge(tree, node);
            return;
        }
        unlink_child(tree, node);
        node_drop(tree, node);
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
