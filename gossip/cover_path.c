#include "gossip/cover_inside.h"

#include <string.h>

bool level_is(struct level level, struct level other) {
    return level.size == other.size && (level.size == 0 || memcmp(level.text, other.text, level.size) == 0);
}

void path_of_filter(const char *filter, size_t size, struct path *path) {
    const char *end = filter + size;
    path->count = 0;
    for (const char *at = filter;; at++) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *stop = slash ? slash : end;
        path->levels[path->count++] = (struct level){at, (uint32_t)(stop - at)};
        if (!slash || path->count == PATH_LEVELS_MAX) return;
        at = slash;
    }
}

/* An empty level counts as one byte, since it may become `+`. */
size_t path_size(const struct path *path, uint32_t levels) {
    size_t size = levels > 0 ? levels - 1 : 0;
    for (uint32_t i = 0; i < levels; i++)
        size += path->levels[i].size > 0 ? path->levels[i].size : 1;
    return size;
}

/* Where a filter is cut depends on nothing but itself, so it is found again whatever is merged meanwhile. */
bool path_cut(struct path *path) {
    if (path_size(path, path->count) <= ENTRY_FILTER_MAX) return true;
    uint32_t keep = path->count;
    while (keep > 0 && path_size(path, keep) + 2 > ENTRY_FILTER_MAX)
        keep--;
    if (keep == 0 && path->levels[0].size > 0 && path->levels[0].text[0] == '$') return false;
    path->levels[keep] = level_rest;
    path->count = keep + 1;
    return true;
}

void path_of_node(const struct levels *levels, uint32_t from, uint32_t at, struct path *path) {
    uint32_t count = 0;
    for (uint32_t up = at; up != from; up = levels_node(levels, up)->parent)
        count++;
    path->count = count;
    for (uint32_t up = at; up != from; up = levels_node(levels, up)->parent)
        path->levels[--count] = levels_level(levels_node(levels, up));
}

uint32_t path_find(const struct levels *levels, const struct path *path) {
    uint32_t at = LEVELS_ROOT;
    for (uint32_t i = 0; i < path->count && at != 0; i++)
        at = levels_find(levels, at, path->levels[i]);
    return at;
}

size_t path_write(const struct path *path, char out[ENTRY_FILTER_MAX]) {
    size_t size = 0;
    for (uint32_t i = 0; i < path->count; i++) {
        struct level level = path->levels[i];
        if (i > 0) out[size++] = '/';
        if (level.size > 0) memcpy(out + size, level.text, level.size);
        size += level.size;
    }
    return size;
}

static bool begins_with_dollar(struct level level) {
    return level.size > 0 && level.text[0] == '$';
}

bool node_is_pinned(const struct levels *levels, uint32_t at) {
    const struct level_node *node = levels_node(levels, at);
    return node->parent == LEVELS_ROOT && begins_with_dollar(levels_level(node));
}

static uint32_t step(struct levels *levels, uint32_t at, struct level level, bool make) {
    return make ? levels_make(levels, at, level) : levels_find(levels, at, level);
}

uint32_t shown_row(struct levels *shown, uint32_t from, const struct path *path, bool planned, bool make) {
    uint32_t at = from;
    for (uint32_t i = 0;; i++) {
        const struct level_node *node = shown->node_count > 0 ? levels_node(shown, at) : NULL;
        uint8_t merged = !node ? 0 : planned ? node->plan : node->mark & MERGED;
        if (at == LEVELS_ROOT && begins_with_dollar(path->levels[0])) merged = 0;
        if (merged == MERGED_REST) return step(shown, at, level_rest, make);
        if (i == path->count) return at;
        struct level level = path->levels[i];
        if (merged == MERGED_PLUS && !level_is(level, level_rest)) level = level_plus;
        at = step(shown, at, level, make);
        if (at == 0) return 0;
    }
}
