/* The two ways through a tree: from a name to the filters that match it, and from a filter to the names it matches. */
#include "broker/tree.h"

#include <string.h>

/* ---- filters that match a name ---- */

struct match {
    const struct tree *tree;
    struct tree_path *name;
    tree_on_node *on_node;
    void *context;
    bool is_dollar; /* wildcards do not match the first level of this name (MQTT-4.7.2-1) */
};

/* Most levels are short, and compared here before a call would have begun. */
static bool is_same(const char *a, const char *b, size_t size) {
    if (size > 16) return memcmp(a, b, size) == 0;
    while (size > 0 && a[size - 1] == b[size - 1])
        size--;
    return size == 0;
}

/* The level of the name after those that match the node's, level by level; 0 if they do not. */
static size_t after_wild_label(const struct tree_node *node, const struct tree_path *name, size_t level) {
    const char *at = node->label, *end = at + node->label_size;

    for (;; level++, at++) {
        size_t size;
        if (at < end && *at == '#') return name->count; /* also when nothing is left: # matches its parent level */
        if (level == name->count) return 0;
        size = name->levels[level].size;
        if (at < end && *at == '+')
            size = 1;
        else if ((size_t)(end - at) < size || !is_same(at, name->levels[level].text, size))
            return 0;
        at += size;
        if (at == end) return level + 1;
        if (*at != '/') return 0;
    }
}

static size_t after_label(const struct tree_node *node, const struct tree_path *name, size_t level) {
    if (node->is_wild) return after_wild_label(node, name, level);
    return tree_label_is(node, name, level) ? level + node->levels : 0;
}

/* The child that may match this level by its name. An only one is seen without the hash table. */
static const struct tree_node *named_child(const struct match *match, const struct tree_node *node, size_t level) {
    const struct tree_node *first = node->first_child;

    if (node->has_rest) first = first->next;
    if (node->has_plus) first = first->next;
    if (first == NULL || first->next == NULL) return first;
    return tree_child(match->tree, node, match->name, level);
}

/* Calls itself once for a +, so as deep as the name has levels at most. */
static void match_below(const struct match *match, const struct tree_node *node, size_t level) {
    while (node != NULL) {
        bool wildcards = level > 0 || !match->is_dollar;
        if (wildcards && node->has_rest) match->on_node(match->context, tree_rest(node));
        if (level == match->name->count) {
            if (node->item != NULL) match->on_node(match->context, node);
            return;
        }
        if (wildcards && node->has_plus) {
            const struct tree_node *plus = tree_plus(node);
            size_t after = after_label(plus, match->name, level);
            if (after > 0) match_below(match, plus, after);
        }
        node = named_child(match, node, level);
        if (node == NULL) return;
        level = after_label(node, match->name, level);
        if (level == 0) return;
    }
}

void tree_match(const struct tree *tree, const char *name, size_t size, tree_on_node *on_node, void *context) {
    struct tree_path path;
    struct match match = {
        .tree = tree, .name = &path, .on_node = on_node, .context = context, .is_dollar = size > 0 && name[0] == '$'};

    tree_path_of(name, size, &path);
    match_below(&match, tree->root, 0);
}

/* ---- names that a filter matches ---- */

static bool level_is(const struct tree_path *path, size_t level, char wildcard) {
    return path->levels[level].size == 1 && path->levels[level].text[0] == wildcard;
}

/* True from the level of # on. */
static bool in_rest(const struct tree_path *path, size_t level) {
    return level + 1 >= path->count && level_is(path, path->count - 1, '#');
}

/* Whether every child of a node that deep is to be looked at. */
static bool takes_any(const struct tree_path *path, size_t depth) {
    return in_rest(path, depth) || (depth < path->count && level_is(path, depth, '+'));
}

/* Wildcards do not match a first level that starts with $ (MQTT-4.7.2-1). */
static bool is_hidden(const struct tree_path *path, const struct tree_node *node, size_t begin) {
    return begin == 0 && node->label_size > 0 && node->label[0] == '$' && takes_any(path, 0);
}

/* Whether the filter from that level on matches the levels of the node, or begins with what does. */
static bool label_fits(const struct tree_path *filter, const struct tree_node *node, size_t level) {
    const char *at = node->label, *end = at + node->label_size;

    for (size_t after = level + node->levels; level < after && !in_rest(filter, level); level++) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t size = (size_t)((slash != NULL ? slash : end) - at);
        if (level >= filter->count) return false;
        if (!level_is(filter, level, '+') &&
            (filter->levels[level].size != size || memcmp(filter->levels[level].text, at, size) != 0))
            return false;
        at = slash != NULL ? slash + 1 : end;
    }
    return true;
}

static void stand_on(const struct tree_path *filter, struct tree_node *node, struct tree_stand *stand) {
    size_t begin = stand->depth;

    stand->node = node;
    stand->depth += node->levels;
    if (is_hidden(filter, node, begin) || !label_fits(filter, node, begin))
        stand->fit = TREE_APART;
    else
        stand->fit = stand->depth == filter->count || in_rest(filter, stand->depth) ? TREE_MATCHED : TREE_ABOVE;
}

void tree_step(const struct tree *tree, struct tree_path *filter, struct tree_stand *stand) {
    struct tree_node *node = stand->node, *child = NULL;

    if (stand->fit != TREE_APART) {
        if (takes_any(filter, stand->depth))
            child = node->first_child;
        else if (stand->depth < filter->count)
            child = tree_child(tree, node, filter, stand->depth);
    }
    for (; child == NULL && node->parent != NULL; node = node->parent) {
        stand->depth -= node->levels;
        if (takes_any(filter, stand->depth)) child = node->next;
    }
    if (child != NULL)
        stand_on(filter, child, stand);
    else
        stand->node = NULL;
}
