#include "gossip/cover_inside.h"

#include <stdlib.h>

/* A row that moves into another. */
struct move {
    uint32_t from, to, count;
};
struct moves {
    struct move *items;
    uint32_t count, room;
};

/* The rows at and below the node. */
static bool gather(const struct levels *shown, uint32_t at, struct moves *moves) {
    const struct level_node *node = levels_node(shown, at);
    if (node->here > 0) {
        if (moves->count == moves->room) return false;
        moves->items[moves->count++] = (struct move){.from = at, .count = node->here};
    }
    for (uint32_t child = node->child; child != 0; child = levels_node(shown, child)->next)
        if (levels_node(shown, child)->below > 0 && !node_is_pinned(shown, child) && !gather(shown, child, moves))
            return false;
    return true;
}

static void move_all(struct cover *cover, const struct moves *moves) {
    for (uint32_t i = 0; i < moves->count; i++)
        shown_count(cover, moves->items[i].from, -(int64_t)moves->items[i].count);
    for (uint32_t i = 0; i < moves->count; i++)
        shown_count(cover, moves->items[i].to, moves->items[i].count);
}

/* ---- all below into one ---- */

static bool merge_rest(struct cover *cover, uint32_t at, struct moves *moves) {
    uint32_t to = levels_make(&cover->shown, at, level_rest);
    if (to == 0 || !shown_tell(cover, to)) return false;
    if (!gather(&cover->shown, at, moves)) return false;
    for (uint32_t i = 0; i < moves->count; i++)
        moves->items[i].to = to;
    move_all(cover, moves);
    shown_mark(cover, at, MERGED_REST);
    return true;
}

/* ---- all children into one ---- */

static void plan_as_marked(struct levels *shown, uint32_t at) {
    struct level_node *node = levels_node(shown, at);
    node->plan = node->mark & MERGED;
    for (uint32_t child = node->child; child != 0; child = levels_node(shown, child)->next)
        plan_as_marked(shown, child);
}

/* What is to be merged below one of the children is merged below all of them. */
static bool plan_at_least(struct levels *shown, uint32_t from, uint32_t to) {
    struct level_node *target = levels_node(shown, to);
    uint8_t plan = levels_node(shown, from)->plan;
    if (plan > target->plan) target->plan = plan;
    for (uint32_t child = levels_node(shown, from)->child; child != 0; child = levels_node(shown, child)->next) {
        struct level level = levels_level(levels_node(shown, child));
        if (level_is(level, level_rest)) continue;
        uint32_t same = levels_make(shown, to, level);
        if (same == 0 || !plan_at_least(shown, child, same)) return false;
    }
    return true;
}

/* From the top down, since what one level hands to its `+` may make that merge its own children. */
static bool plan_below(struct levels *shown, uint32_t at) {
    uint8_t plan = levels_node(shown, at)->plan;
    if (plan == MERGED_REST) return true;
    uint32_t plus = plan == MERGED_PLUS ? levels_make(shown, at, level_plus) : 0;
    if (plan == MERGED_PLUS && plus == 0) return false;
    for (uint32_t child = levels_node(shown, at)->child; child != 0; child = levels_node(shown, child)->next) {
        if (child == plus || level_is(levels_level(levels_node(shown, child)), level_rest) ||
            node_is_pinned(shown, child))
            continue;
        if (plus != 0 ? !plan_at_least(shown, child, plus) : !plan_below(shown, child)) return false;
    }
    return plus == 0 || plan_below(shown, plus);
}

static bool plan_plus(struct levels *shown, uint32_t at) {
    plan_as_marked(shown, at);
    levels_node(shown, at)->plan = MERGED_PLUS;
    return plan_below(shown, at);
}

static void mark_as_planned(struct cover *cover, uint32_t at) {
    shown_mark(cover, at, levels_node(&cover->shown, at)->plan);
    for (uint32_t child = levels_node(&cover->shown, at)->child; child != 0;
         child = levels_node(&cover->shown, child)->next)
        mark_as_planned(cover, child);
}

static bool merge_plus(struct cover *cover, uint32_t at, struct moves *moves) {
    struct levels *shown = &cover->shown;
    if (!plan_plus(shown, at) || !gather(shown, at, moves)) return false;
    for (uint32_t i = 0; i < moves->count; i++) {
        struct move *move = &moves->items[i];
        struct path path;
        path_of_node(shown, at, move->from, &path);
        move->to = move->from == at ? at : shown_row(shown, at, &path, true, true);
        if (move->to == 0 || (move->to != move->from && !shown_tell(cover, move->to))) return false;
    }
    mark_as_planned(cover, at);
    move_all(cover, moves);
    return true;
}

static bool merge_at(struct cover *cover, uint32_t at, uint8_t merge) {
    struct moves moves = {.room = cover->needed_count};
    moves.items = malloc(moves.room * sizeof *moves.items);
    if (!moves.items) return false;
    bool done = merge == MERGED_REST ? merge_rest(cover, at, &moves) : merge_plus(cover, at, &moves);
    free(moves.items);
    /* A merge that failed half way has shown rows that stand for nothing. */
    shown_tidy(cover, at);
    if (done) cover->merges++;
    return done;
}

/* Counts of what lies above and below have changed: not in this round. */
static void touch(struct choices *choices, uint32_t index) {
    for (uint32_t i = index; i <= choices->nodes[index].last; i++)
        choices->nodes[i].touched = true;
    for (uint32_t up = index; up != 0; up = choices->nodes[up].parent)
        choices->nodes[choices->nodes[up].parent].touched = true;
}

bool cover_merge(struct cover *cover, uint32_t rows, double score_max) {
    for (uint32_t before = UINT32_MAX; cover->needed_count > rows && cover->needed_count < before;) {
        before = cover->needed_count;
        struct choices choices;
        if (!choices_make(cover, &choices)) return false;
        bool done = true;
        for (uint32_t i = 0; done && i < choices.count && cover->needed_count > rows; i++) {
            const struct choice *choice = &choices.items[i];
            if (choice->score > score_max) break;
            if (choices.nodes[choice->index].touched) continue;
            done = merge_at(cover, choice->at, choice->merge);
            touch(&choices, choice->index);
        }
        choices_free(&choices);
        if (!done) return false;
    }
    return true;
}
