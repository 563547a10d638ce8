/* A tree of topic levels, the ground of the subscription tree and of the retained store.
 *
 * All children of all nodes sit in one hash table, keyed by parent and level: a leaf costs one small allocation, and a
 * lookup one probe. A node stays while it has an item, a child or a
 * pin.
 */
#ifndef BROKER_TREE_H
#define BROKER_TREE_H

#include "broker/topic.h"

#include <stddef.h>
#include <stdint.h>

struct tree_node {
    void *item; /* the user's; NULL if none */
    struct tree_node *parent;
    struct tree_node *first_child, *previous, *next; /* the children of one parent are a list */
    struct tree_node *plus, *rest;                   /* the children named + and #, NULL if none */
    struct tree_node *bucket_next;
    uint64_t hash;
    uint32_t level_size;
    uint32_t pins; /* walks that stand here */
    char level[];  /* no final zero */
};

struct tree {
    uint64_t seed;
    struct tree_node *root; /* its level is not part of any path */
    struct tree_node **buckets;
    size_t bucket_mask;
    size_t node_count;
    uint64_t bytes; /* of all nodes, without the root */
};

/* The levels of a topic with their hashes, so that a walk with several branches computes them once. */
struct tree_path {
    size_t count;
    struct {
        const char *text; /* borrowed */
        uint32_t size;
        uint64_t hash;
    } levels[TOPIC_LEVELS_MAX];
};

/* 0, or -1 when memory is short (nothing to deinit then). */
int tree_init(struct tree *tree, uint64_t seed);
/* Frees all nodes; the items are the user's. */
void tree_deinit(struct tree *tree);

/* The topic must be valid. */
void tree_path_of(const struct tree *tree, const char *topic, size_t size, struct tree_path *path);

/* The child of that level of the path; NULL if there is none. */
struct tree_node *tree_child(const struct tree *tree, const struct tree_node *parent, const struct tree_path *path,
                             size_t level);
/* The node at the end of the path; NULL if there is none. */
struct tree_node *tree_find(const struct tree *tree, const struct tree_path *path);
/* The same, made if need be. NULL when memory is short; then the tree is as before. A new node that gets no item must
 * be given to tree_prune(). */
struct tree_node *tree_make(struct tree *tree, const struct tree_path *path);
/* What tree_make() would add to tree.bytes. */
uint64_t tree_missing_bytes(const struct tree *tree, const struct tree_path *path);
/* Drops the node and its parents as far as they have neither item nor child nor pin. */
void tree_prune(struct tree *tree, struct tree_node *node);
/* A pinned node stays where it is until it is unpinned, which prunes. */
void tree_pin(struct tree_node *node);
void tree_unpin(struct tree *tree, struct tree_node *node);
/* The node after this one in a walk over the whole tree, parents first; NULL at the end. Start with the root. */
struct tree_node *tree_next(const struct tree_node *node);

#endif
