/* A tree of topic levels, the ground of the subscription tree and of the retained store.
 *
 * A node stands for one level or for several in a row between which nothing branches or ends (path compression, as in
 * the radix tree of Leis, Kemper, Neumann 2013): what a client asks for makes two nodes at most, however many levels
 * it has. Where something new branches within a node's levels that node is split, and put together again when the
 * branch goes.
 *
 * All children of all nodes sit in one hash table, keyed by parent and first level: a leaf costs one small allocation,
 * and a lookup one probe. A node stays while it has an item, two children or a pin; one that stays is not moved, but
 * its parent and how many levels it stands for may change with every change of the tree.
 */
#ifndef BROKER_TREE_H
#define BROKER_TREE_H

#include "broker/topic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tree_node {
    void *item; /* the user's; NULL if none */
    struct tree_node *parent;
    struct tree_node *first_child, *previous, *next; /* the children of one parent are a list: #, +, others */
    struct tree_node *bucket_next;
    const char *label; /* its levels, no final zero: at the end of own, or of a block of this node's */
    uint32_t hash;     /* of parent and first level */
    uint32_t pins;     /* walks that stand here */
    uint16_t label_size;
    uint16_t room;     /* bytes of what the label is at the end of; in front of it is what was split off */
    uint16_t own_room; /* bytes of own, which the label may have left for a block */
    uint8_t levels;    /* of the label; 0 in the root */
    bool has_plus : 1, has_rest : 1; /* children whose first level is + or # */
    bool is_wild : 1;                /* + or # is among its levels */
    char own[];
};

struct tree {
    uint64_t seed;
    struct tree_node *root;
    struct tree_node **buckets;
    size_t bucket_mask;
    size_t node_count;
    uint64_t bytes; /* of all nodes, without the root */
};

/* The levels of a topic, with the hashes of those that were looked for, so that a walk with several branches computes
 * them once. */
struct tree_path {
    size_t count;
    struct {
        const char *text; /* borrowed */
        uint32_t size;
        uint64_t hash; /* 0: not yet */
    } levels[TOPIC_LEVELS_MAX];
};

/* 0, or -1 when memory is short (nothing to deinit then). */
int tree_init(struct tree *tree, uint64_t seed);
/* Frees all nodes; the items are the user's. */
void tree_deinit(struct tree *tree);

/* The topic must be valid. */
void tree_path_of(const char *topic, size_t size, struct tree_path *path);

/* The node at the end of the path; NULL if there is none. */
struct tree_node *tree_find(const struct tree *tree, struct tree_path *path);
/* The same, made if need be. NULL when memory is short; then the tree is as before. A new node that gets no item must
 * be given to tree_prune(). */
struct tree_node *tree_make(struct tree *tree, struct tree_path *path);
/* What tree_make() would add to tree.bytes. */
uint64_t tree_missing_bytes(const struct tree *tree, struct tree_path *path);
/* Drops the node, and those above it, as far as nothing keeps them. tree.bytes does not grow. */
void tree_prune(struct tree *tree, struct tree_node *node);
/* A pinned node stays where it is until it is unpinned, which prunes. */
void tree_pin(struct tree_node *node);
void tree_unpin(struct tree *tree, struct tree_node *node);
/* The node after this one in a walk over the whole tree, parents first; NULL at the end. Start with the root. */
struct tree_node *tree_next(const struct tree_node *node);

/* Calls on_node once for every node with an item whose path, as a filter, matches the name. on_node must not change the
 * tree. Allocates nothing; looks at no node twice and compares no label twice. */
typedef void tree_on_node(void *context, const struct tree_node *node);
void tree_match(const struct tree *tree, const char *name, size_t size, tree_on_node *on_node, void *context);

/* Calls on_meeting once for every node with an item whose path, as a filter, some name matches that the filter matches
 * too, until it returns false; then it is false. on_meeting must not change the tree. Looks at no node twice. */
typedef bool tree_on_meeting(void *context, const struct tree_node *node);
bool tree_meet(const struct tree *tree, const char *filter, size_t size, tree_on_meeting *on_meeting, void *context);

/* The other way round, a walk over the names that a filter matches, from node to node. */
enum tree_fit {
    TREE_APART,  /* neither this node nor one below it is matched */
    TREE_ABOVE,  /* ones below it may be */
    TREE_MATCHED /* this one is, and ones below it may be */
};
/* Where a walk stands. It begins at the root, above. The tree may change while it stands there if the node is pinned;
 * how the node fits does not change then, but would be seen no more once its levels are split. */
struct tree_stand {
    struct tree_node *node; /* NULL: all was seen */
    uint32_t depth;         /* levels down to the end of this node's */
    enum tree_fit fit;
};
void tree_step(const struct tree *tree, struct tree_path *filter, struct tree_stand *stand);

/* For the walks: the children whose first level is # and +, NULL if there is none. */
static inline struct tree_node *tree_rest(const struct tree_node *parent) {
    return parent->has_rest ? parent->first_child : NULL;
}
static inline struct tree_node *tree_plus(const struct tree_node *parent) {
    if (!parent->has_plus) return NULL;
    return parent->has_rest ? parent->first_child->next : parent->first_child;
}
/* The child whose first level is that of the path, NULL if there is none. */
struct tree_node *tree_child(const struct tree *tree, const struct tree_node *parent, struct tree_path *path,
                             size_t level);
/* Whether all levels of the node are those of the path from there on. */
bool tree_label_is(const struct tree_node *node, const struct tree_path *path, size_t level);

#endif
