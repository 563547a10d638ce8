/* The third way through a tree, from a filter to the filters that some name could match as well. */
#include "broker/tree.h"

#include <string.h>

struct meeting {
    const struct tree *tree;
    struct tree_path *filter;
    tree_on_meeting *on_meeting;
    void *context;
};

static bool level_is(const struct tree_path *path, size_t level, char wildcard) {
    return path->levels[level].size == 1 && path->levels[level].text[0] == wildcard;
}

static bool is_rest(const struct tree_path *filter, size_t level) {
    return level + 1 == filter->count && level_is(filter, level, '#');
}

static bool meets(const struct meeting *meeting, const struct tree_node *node) {
    return node->item == NULL || meeting->on_meeting(meeting->context, node);
}

/* The node and all below it. */
static bool meets_all(const struct meeting *meeting, const struct tree_node *top) {
    const struct tree_node *node = top;

    while (node != NULL) {
        if (!meets(meeting, node)) return false;
        if (node->first_child != NULL) {
            node = node->first_child;
            continue;
        }
        while (node != top && node->next == NULL)
            node = node->parent;
        node = node != top ? node->next : NULL;
    }
    return true;
}

/* Wildcards do not match a first level that starts with $ (MQTT-4.7.2-1). */
static bool is_hidden(const struct meeting *meeting, const struct tree_node *child, size_t level) {
    const struct tree_path *filter = meeting->filter;
    bool dollar = filter->levels[0].size > 0 && filter->levels[0].text[0] == '$';

    if (level > 0) return false;
    if (child->label_size > 0 && child->label[0] == '$') return level_is(filter, 0, '+') || level_is(filter, 0, '#');
    return dollar && child->label_size > 0 && (child->label[0] == '+' || child->label[0] == '#');
}

static bool meets_below(const struct meeting *meeting, const struct tree_node *node, size_t level);

/* The same for a child, whose levels come first. */
static bool meets_child(const struct meeting *meeting, const struct tree_node *child, size_t level) {
    const struct tree_path *filter = meeting->filter;
    const char *at = child->label, *end = at + child->label_size;

    if (is_hidden(meeting, child, level)) return true;
    for (size_t after = level + child->levels; level < after; level++) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        size_t size = (size_t)((slash != NULL ? slash : end) - at);
        bool plus = size == 1 && *at == '+';
        if (size == 1 && *at == '#') return meets(meeting, child);
        if (level == filter->count) return true;
        if (is_rest(filter, level)) return meets_all(meeting, child);
        if (!plus && !level_is(filter, level, '+') &&
            (filter->levels[level].size != size || memcmp(filter->levels[level].text, at, size) != 0))
            return true;
        at = slash != NULL ? slash + 1 : end;
    }
    return meets_below(meeting, child, level);
}

/* What is left of the filter, from that level on, with the node and those below it. As deep as the filter has levels
 * at most. False once it is to end. */
static bool meets_below(const struct meeting *meeting, const struct tree_node *node, size_t level) {
    struct tree_path *filter = meeting->filter;
    const struct tree_node *child;

    if (level == filter->count || is_rest(filter, level))
        if (!meets(meeting, node)) return false;
    if (level == filter->count) return !node->has_rest || meets_child(meeting, tree_rest(node), level);
    if (is_rest(filter, level) || level_is(filter, level, '+')) {
        for (child = node->first_child; child != NULL; child = child->next)
            if (!meets_child(meeting, child, level)) return false;
        return true;
    }
    if (node->has_rest && !meets_child(meeting, tree_rest(node), level)) return false;
    if (node->has_plus && !meets_child(meeting, tree_plus(node), level)) return false;
    child = tree_child(meeting->tree, node, filter, level);
    return child == NULL || meets_child(meeting, child, level);
}

bool tree_meet(const struct tree *tree, const char *filter, size_t size, tree_on_meeting *on_meeting, void *context) {
    struct tree_path path;
    const struct meeting meeting = {.tree = tree, .filter = &path, .on_meeting = on_meeting, .context = context};

    tree_path_of(filter, size, &path);
    return meets_below(&meeting, tree->root, 0);
}
