#include "gossip/cover_inside.h"

#include <assert.h>
#include <string.h>

#define HOLD_MIN_MS 5000u /* from a merge to the next split, */
#define HOLD_MAX_MS 300000u
#define HOLD_AGAIN 12u /* doubled when a merge follows a split within so many times as long */
#define ANY_SCORE 1e300

void cover_init(struct cover *cover, const struct cover_options *options) {
    memset(cover, 0, sizeof *cover);
    cover->options = *options;
    cover->hold_ms = HOLD_MIN_MS;
    levels_init(&cover->wanted, options->seed);
    levels_init(&cover->shown, options->seed);
}

void cover_free(struct cover *cover) {
    levels_free(&cover->wanted);
    levels_free(&cover->shown);
}

size_t cover_wanted_count(const struct cover *cover) {
    return cover->wanted.node_count > 0 ? levels_node(&cover->wanted, LEVELS_ROOT)->below : 0;
}

size_t cover_memory(const struct cover *cover) {
    return cover->wanted.bytes + cover->shown.bytes;
}

/* ---- nodes of what is shown ---- */

void shown_count(struct cover *cover, uint32_t at, int64_t more) {
    const struct level_node *node = levels_node(&cover->shown, at);
    bool told = node->mark & TOLD;
    cover->needed_count -= node->here > 0;
    cover->stale_count -= told && node->here == 0;
    assert((int64_t)node->here + more >= 0);
    levels_count(&cover->shown, at, more);
    cover->needed_count += node->here > 0;
    cover->stale_count += told && node->here == 0;
}

void shown_mark(struct cover *cover, uint32_t at, uint8_t merged) {
    struct level_node *node = levels_node(&cover->shown, at);
    cover->merged_count -= (node->mark & MERGED) != 0;
    node->mark = (uint8_t)((node->mark & ~MERGED) | merged);
    cover->merged_count += merged != 0;
}

static bool change_row(struct cover *cover, uint32_t at, bool shown) {
    const struct cover_options *options = &cover->options;
    struct level_node *node = levels_node(&cover->shown, at);
    struct path path;
    char filter[ENTRY_FILTER_MAX];
    path_of_node(&cover->shown, LEVELS_ROOT, at, &path);
    size_t size = path_write(&path, filter);
    if (!options->on_change(options->context, options->kind, filter, size, shown)) return false;
    node->mark ^= TOLD;
    if (shown) {
        cover->row_count++;
        cover->stale_count += node->here == 0;
    } else {
        cover->row_count--;
        cover->stale_count -= node->here == 0;
    }
    return true;
}

bool shown_tell(struct cover *cover, uint32_t at) {
    return (levels_node(&cover->shown, at)->mark & TOLD) || change_row(cover, at, true);
}

static bool is_empty(const struct level_node *node) {
    return node->child == 0 && node->here == 0 && !(node->mark & TOLD);
}

static uint32_t remove_shown(struct cover *cover, uint32_t at) {
    if (cover->shown.node_count == 2) shown_mark(cover, LEVELS_ROOT, 0); /* it goes too */
    return levels_remove(&cover->shown, at);
}

/* The node and its parents, as far as nothing is there. */
static void prune_shown(struct cover *cover, uint32_t at) {
    while (at != 0) {
        const struct level_node *node = levels_node(&cover->shown, at);
        if (node->child == 0) shown_mark(cover, at, 0);
        if (at == LEVELS_ROOT || !is_empty(node)) return;
        at = remove_shown(cover, at);
    }
}

static void prune_wanted(struct cover *cover, uint32_t at) {
    while (at > LEVELS_ROOT && is_empty(levels_node(&cover->wanted, at)))
        at = levels_remove(&cover->wanted, at);
}

static bool tidy_below(struct cover *cover, uint32_t at) {
    bool all = true;
    for (uint32_t next, child = levels_node(&cover->shown, at)->child; child != 0; child = next) {
        next = levels_node(&cover->shown, child)->next;
        all = tidy_below(cover, child) && all;
        const struct level_node *node = levels_node(&cover->shown, child);
        if ((node->mark & TOLD) && node->here == 0) all = change_row(cover, child, false) && all;
        if (node->child == 0) shown_mark(cover, child, 0);
        if (is_empty(node)) remove_shown(cover, child);
        if (cover->shown.node_count == 0) break; /* that was the last */
    }
    return all;
}

bool shown_tidy(struct cover *cover, uint32_t at) {
    if (cover->shown.node_count == 0) return true;
    bool all = tidy_below(cover, at);
    if (cover->shown.node_count == 0) return all;
    const struct level_node *node = levels_node(&cover->shown, at);
    if ((node->mark & TOLD) && node->here == 0) all = change_row(cover, at, false) && all;
    prune_shown(cover, at);
    return all;
}

/* ---- changes ---- */

static bool forget_row(struct cover *cover, const struct path *path) {
    uint32_t row = shown_row(&cover->shown, LEVELS_ROOT, path, false, false);
    assert(row != 0);
    shown_count(cover, row, -1);
    const struct level_node *node = levels_node(&cover->shown, row);
    bool done = node->here > 0 || !(node->mark & TOLD) || change_row(cover, row, false);
    prune_shown(cover, row);
    return done;
}

/* Merges a little more than is needed, so that not each filter that comes has to. */
static uint32_t rows_after_merge(const struct cover *cover) {
    return cover->options.rows_max - cover->options.rows_max / 16;
}

static bool make_room(struct cover *cover, uint64_t now_ms) {
    if (cover->needed_count <= cover->options.rows_max) return true;
    bool again = cover->last_split_ms != 0 && now_ms - cover->last_split_ms < HOLD_AGAIN * cover->hold_ms;
    uint64_t longer = cover->hold_ms * 2 < HOLD_MAX_MS ? cover->hold_ms * 2 : HOLD_MAX_MS;
    if (again)
        cover->hold_ms = longer;
    else if (cover->last_split_ms != 0)
        cover->hold_ms = HOLD_MIN_MS;
    cover->last_split_ms = 0;
    cover->split_ms = now_ms + cover->hold_ms;
    cover->relieved = true;
    return cover_merge(cover, rows_after_merge(cover), ANY_SCORE) && cover->needed_count <= cover->options.rows_max;
}

static bool show(struct cover *cover, uint64_t now_ms, const struct path *path) {
    uint32_t row = shown_row(&cover->shown, LEVELS_ROOT, path, false, true);
    if (row == 0) {
        shown_tidy(cover, LEVELS_ROOT); /* what was made of the way there */
        return false;
    }
    shown_count(cover, row, 1);
    bool done = make_room(cover, now_ms);
    if (done) done = shown_tell(cover, shown_row(&cover->shown, LEVELS_ROOT, path, false, false));
    if (!done) forget_row(cover, path);
    return done;
}

/* One row must be left for all that can be merged. */
static bool has_no_room_for(const struct cover *cover, const struct path *path) {
    if (path->levels[0].size == 0 || path->levels[0].text[0] != '$') return false;
    uint32_t pinned = 0;
    uint32_t child = cover->shown.node_count > 0 ? levels_node(&cover->shown, LEVELS_ROOT)->child : 0;
    for (; child != 0; child = levels_node(&cover->shown, child)->next)
        if (node_is_pinned(&cover->shown, child)) pinned += levels_node(&cover->shown, child)->below;
    return pinned + 1 >= cover->options.rows_max;
}

bool cover_put(struct cover *cover, uint64_t now_ms, const char *filter, size_t size) {
    struct path path;
    path_of_filter(filter, size, &path);
    uint32_t at = LEVELS_ROOT, above = 0;
    for (uint32_t i = 0; i < path.count && at != 0; i++) {
        above = at;
        at = levels_make(&cover->wanted, at, path.levels[i]);
    }
    if (at == 0) {
        if (cover->wanted.node_count > 0) prune_wanted(cover, above);
        return false;
    }
    if (levels_node(&cover->wanted, at)->here > 0) return true;
    if (has_no_room_for(cover, &path) || !path_cut(&path) || !show(cover, now_ms, &path)) {
        prune_wanted(cover, at);
        return false;
    }
    levels_count(&cover->wanted, at, 1);
    return true;
}

bool cover_delete(struct cover *cover, uint64_t now_ms, const char *filter, size_t size) {
    struct path path;
    path_of_filter(filter, size, &path);
    uint32_t at = cover->wanted.node_count > 0 ? path_find(&cover->wanted, &path) : 0;
    if (at == 0 || levels_node(&cover->wanted, at)->here == 0) return true;
    levels_count(&cover->wanted, at, -1);
    prune_wanted(cover, at);
    path_cut(&path);
    cover->relieved = true;
    if (cover->split_ms < now_ms) cover->split_ms = now_ms;
    return forget_row(cover, &path);
}
