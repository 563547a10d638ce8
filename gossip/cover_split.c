/* Splitting what was merged, when there is room: the topmost merged nodes, the costliest first. One that covers another
 * merged node hands it on: `dev/+/t/#` becomes `dev/17/t/#` and so on. */
#include "gossip/cover_inside.h"

#include <assert.h>

#define SPLITS_A_TICK 16u
#define AGAIN_MS 20u     /* when there is more to split */
#define LOOK_MS 5000u    /* when nothing fits */
#define SWEEP_MS 100u    /* when memory was short */
#define STEPS_MORE 4u    /* a split may look at so many nodes for each row there is room for */
#define SHARE_LEAST 0.25 /* of all that is unwanted */

/* One walk over what is wanted below a node, done three times: to count, to make and tell the rows, to move to them. */
struct split {
    struct cover *cover;
    enum { SPLIT_LOOKS, SPLIT_MAKES, SPLIT_MOVES } pass;
    uint32_t at, wanted;     /* the node, of `shown` and of `wanted` */
    bool rest;               /* it is MERGED_REST */
    uint32_t rows, rows_max; /* looks: what it takes, at most */
    uint64_t steps;
};

static struct level_node *wanted_node(const struct split *split, uint32_t at) {
    return levels_node(&split->cover->wanted, at);
}

static uint32_t shown_child(const struct split *split, uint32_t above, struct level level) {
    if (split->pass == SPLIT_LOOKS || above == 0) return 0;
    return split->pass == SPLIT_MAKES ? levels_make(&split->cover->shown, above, level)
                                      : levels_find(&split->cover->shown, above, level);
}

/* `filters` wanted ones are to be shown as the row `to`. */
static bool put_row(struct split *split, uint32_t to, uint32_t filters) {
    if (split->pass == SPLIT_LOOKS) return ++split->rows <= split->rows_max;
    if (split->pass == SPLIT_MAKES) return to != 0 && shown_tell(split->cover, to);
    assert(to != 0);
    shown_count(split->cover, to, filters);
    return true;
}

static size_t wanted_size(const struct split *split, uint32_t wanted) {
    struct path path;
    path_of_node(&split->cover->wanted, LEVELS_ROOT, wanted, &path);
    return path_size(&path, path.count);
}

/* A `/#` still fits behind it in a row, and so no filter is cut above it. */
static bool has_room(const struct split *split, uint32_t wanted) {
    return wanted_size(split, wanted) + 2 <= ENTRY_FILTER_MAX;
}

/* What lies below a node that has no room was cut at its parent; only what ends there may just fit. */
static bool put_long(struct split *split, uint32_t wanted, uint32_t above) {
    const struct level_node *node = wanted_node(split, wanted);
    uint32_t exact = wanted_size(split, wanted) <= ENTRY_FILTER_MAX ? node->here : 0, cut = node->below - exact;
    if (cut > 0 && split->rest && node->parent == split->wanted) return false; /* it would be shown all the same */
    return (exact == 0 || put_row(split, shown_child(split, above, levels_level(node)), exact)) &&
           (cut == 0 || put_row(split, shown_child(split, above, level_rest), cut));
}

/* The only filter at or below the node, as the row it gets under `shown`. */
static bool put_single(struct split *split, uint32_t wanted, uint32_t shown) {
    uint32_t end = wanted;
    while (wanted_node(split, end)->here == 0)
        end = wanted_node(split, end)->child;
    struct path whole, above;
    path_of_node(&split->cover->wanted, LEVELS_ROOT, end, &whole);
    path_of_node(&split->cover->wanted, LEVELS_ROOT, wanted, &above);
    path_cut(&whole);
    for (uint32_t i = above.count; i < whole.count; i++)
        shown = shown_child(split, shown, whole.levels[i]);
    return put_row(split, shown, 1);
}

static bool step(struct split *split) {
    return ++split->steps <= STEPS_MORE * ((uint64_t)split->rows_max + 16);
}

/* All at and below the node, in one row that is as narrow as it can be. */
static bool put_all(struct split *split, uint32_t wanted, uint32_t shown) {
    const struct level_node *node = wanted_node(split, wanted);
    if (node->below == 1) return put_single(split, wanted, shown);
    while (node->here == 0 && wanted_node(split, node->child)->next == 0 && has_room(split, node->child)) {
        wanted = node->child;
        node = wanted_node(split, wanted);
        shown = shown_child(split, shown, levels_level(node));
    }
    if (split->pass == SPLIT_MAKES && shown != 0) shown_mark(split->cover, shown, MERGED_REST);
    return put_row(split, shown_child(split, shown, level_rest), node->below);
}

/* A child, merged as the node `like` of `shown` is; wholly if that is 0. */
static bool put_like(struct split *split, uint32_t wanted, uint32_t like, uint32_t above, struct level level) {
    if (!step(split)) return false;
    if (!has_room(split, wanted)) return put_long(split, wanted, above);
    struct levels *rows = &split->cover->shown;
    uint32_t shown = shown_child(split, above, level);
    uint8_t merged = like == 0 ? MERGED_REST : levels_node(rows, like)->mark & MERGED;
    /* A `+` that was wanted as such is its own model, and stays as it is. */
    if (merged == MERGED_REST && like != 0 && shown == like)
        return put_row(split, shown_child(split, shown, level_rest), wanted_node(split, wanted)->below);
    if (merged == MERGED_REST) return put_all(split, wanted, shown);
    if (split->pass == SPLIT_MAKES && shown != 0) shown_mark(split->cover, shown, merged);
    if (wanted_node(split, wanted)->here > 0 && !put_row(split, shown, 1)) return false;
    for (uint32_t child = wanted_node(split, wanted)->child; child != 0; child = wanted_node(split, child)->next) {
        struct level own = levels_level(wanted_node(split, child));
        if (merged == MERGED_PLUS && !level_is(own, level_rest)) own = level_plus;
        if (!put_like(split, child, levels_find(rows, like, own), shown, own)) return false;
    }
    return true;
}

static bool put_children(struct split *split, uint32_t like) {
    struct levels *wanted = &split->cover->wanted;
    const struct level_node *node = levels_node(wanted, split->wanted);
    if (node->here > 0 && !put_row(split, split->at, 1)) return false;
    for (uint32_t child = node->child; child != 0; child = levels_node(wanted, child)->next) {
        struct level level = levels_level(levels_node(wanted, child));
        if (node_is_pinned(wanted, child)) continue;
        if (!put_like(split, child, level_is(level, level_rest) ? 0 : like, split->at, level)) return false;
    }
    return true;
}

/* ---- one split ---- */

static uint32_t rows_below(const struct levels *shown, uint32_t at) {
    const struct level_node *node = levels_node(shown, at);
    uint32_t rows = node->here > 0;
    for (uint32_t child = node->child; child != 0; child = levels_node(shown, child)->next)
        if (!node_is_pinned(shown, child)) rows += rows_below(shown, child);
    return rows;
}

/* No filter is shown there any more. */
static void empty(struct cover *cover, uint32_t at) {
    const struct level_node *node = levels_node(&cover->shown, at);
    if (node->here > 0) shown_count(cover, at, -(int64_t)node->here);
    for (uint32_t child = node->child; child != 0; child = levels_node(&cover->shown, child)->next)
        if (!node_is_pinned(&cover->shown, child)) empty(cover, child);
}

/* Marks that mean nothing, of rows that could not be taken away. */
static void unmark(struct cover *cover, uint32_t at, uint32_t but) {
    for (uint32_t child = levels_node(&cover->shown, at)->child; child != 0;
         child = levels_node(&cover->shown, child)->next) {
        if (child == but || node_is_pinned(&cover->shown, child)) continue;
        shown_mark(cover, child, 0);
        unmark(cover, child, 0);
    }
}

static bool look(const struct cover *cover, uint32_t at, uint32_t rows_max, struct split *split, uint32_t *like) {
    struct path path;
    path_of_node(&cover->shown, LEVELS_ROOT, at, &path);
    split->at = at;
    split->wanted = path_find(&cover->wanted, &path);
    split->rest = levels_node(&cover->shown, at)->mark & MERGED_REST;
    if (split->wanted == 0 || levels_node(&cover->wanted, split->wanted)->below == 0) return false;
    /* All of it is wanted: the row would be there all the same. */
    if (split->rest && levels_find(&cover->wanted, split->wanted, level_rest) != 0) return false;
    *like = split->rest ? 0 : levels_find(&cover->shown, at, level_plus);
    if (!split->rest && *like == 0) return false;
    uint32_t others = cover->needed_count - rows_below(&cover->shown, at);
    split->rows_max = rows_max > others ? rows_max - others : 0;
    return put_children(split, *like);
}

enum split_result { SPLIT_DONE, SPLIT_UNFIT, SPLIT_NO_MEMORY };

static enum split_result split_at(struct cover *cover, uint32_t at, uint32_t rows_max) {
    struct split split = {.cover = cover};
    uint32_t like = 0;
    if (!look(cover, at, rows_max, &split, &like)) return SPLIT_UNFIT;
    unmark(cover, at, like);
    split.pass = SPLIT_MAKES;
    split.steps = 0;
    bool done = put_children(&split, like);
    if (done) {
        empty(cover, at);
        split.pass = SPLIT_MOVES;
        split.steps = 0;
        put_children(&split, like);
        shown_mark(cover, at, 0);
        cover->splits++;
    }
    shown_tidy(cover, at);
    return done ? SPLIT_DONE : SPLIT_NO_MEMORY;
}

/* ---- when ---- */

/* An eighth stays free, so that what comes next merges nothing again. */
static uint32_t rows_after_split(const struct cover *cover) {
    return cover->options.rows_max - cover->options.rows_max / 8;
}

/* True if there may be more to do. */
static bool split_some(struct cover *cover) {
    struct choices merged;
    if (!choices_of_merged(cover, &merged)) return true;
    uint32_t splits = 0;
    enum split_result result = SPLIT_UNFIT;
    for (uint32_t i = 0; i < merged.count && splits < SPLITS_A_TICK && result != SPLIT_NO_MEMORY; i++) {
        result = split_at(cover, merged.items[i].at, rows_after_split(cover));
        splits += result == SPLIT_DONE;
    }
    choices_free(&merged);
    return splits > 0 || result == SPLIT_NO_MEMORY;
}

/* Something that draws much that nobody wants may be worth more than its rows: others are merged for it, if they are
 * thought to cost less for each row. */
static bool make_room_for_the_costliest(struct cover *cover) {
    struct choices merged;
    if (!cover->traffic.over || !choices_of_merged(cover, &merged)) return false;
    const struct weighed *costliest = merged.count > 0 ? &merged.nodes[merged.items[0].index] : NULL;
    double share = costliest ? traffic_share(cover, costliest->path) : 0;
    struct split split = {.cover = cover};
    uint32_t like, before = cover->needed_count, rows_max = cover->options.rows_max;
    bool worth = share >= SHARE_LEAST && look(cover, costliest->at, rows_max + before, &split, &like) &&
                 split.rows <= rows_max / 4 * 3;
    uint32_t left = rows_after_split(cover);
    if (worth) cover_merge(cover, left > split.rows ? left - split.rows : 1, share / 2 / split.rows);
    choices_free(&merged);
    return cover->needed_count < before;
}

uint64_t cover_deadline_ms(const struct cover *cover) {
    if (cover->stale_count > 0) return cover->sweep_ms;
    return cover->merged_count > 0 && cover->relieved ? cover->split_ms : UINT64_MAX;
}

void cover_tick(struct cover *cover, uint64_t now_ms) {
    if (cover->stale_count > 0 && now_ms >= cover->sweep_ms) {
        shown_tidy(cover, LEVELS_ROOT);
        cover->sweep_ms = now_ms + SWEEP_MS;
    }
    if (cover->merged_count == 0 || !cover->relieved || now_ms < cover->split_ms) return;
    uint64_t before = cover->splits;
    bool more = split_some(cover);
    if (!more) {
        cover->relieved = false;
        more = make_room_for_the_costliest(cover) && split_some(cover);
    }
    if (cover->splits != before) cover->last_split_ms = now_ms;
    cover->split_ms = now_ms + (more ? AGAIN_MS : LOOK_MS);
}
