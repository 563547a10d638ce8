/* Which siblings to merge: those by which the least unwanted comes in for each row that is saved.
 *
 * What came in through a merged node and was declined is known (cover_traffic.c) and counts most. Otherwise it is
 * guessed from what is wanted: the traffic below a node is thought to be spread evenly over its children that we know
 * and UNSEEN that we do not. So a large family is nearly whole and cheap to merge, a deep one cheaper than one near the
 * root, and two strangers of the root are dear: they stay exact. */
#include "gossip/cover_inside.h"

#include <stdlib.h>
#include <string.h>

#define UNSEEN 4
#define PLUS_ABOVE_MAX 12u /* so many levels above a row a `+` is looked for */

static void list(const struct levels *shown, struct choices *choices, uint32_t at, uint32_t parent) {
    uint32_t index = choices->node_count++;
    choices->nodes[index] = (struct weighed){.at = at, .parent = parent};
    for (uint32_t child = levels_node(shown, at)->child; child != 0; child = levels_node(shown, child)->next) {
        const struct level_node *node = levels_node(shown, child);
        if (node->below == 0 || node_is_pinned(shown, child)) continue;
        if (!level_is(levels_level(node), level_rest)) {
            uint8_t merged = node->mark & MERGED, *widest = &choices->nodes[index].kid_merged;
            choices->nodes[index].kids++;
            if (merged > *widest) *widest = merged;
        }
        list(shown, choices, child, index);
    }
    choices->nodes[index].last = choices->node_count - 1;
}

static struct level level_of(const struct cover *cover, const struct weighed *weighed) {
    return levels_level(levels_node(&cover->shown, weighed->at));
}

static void weigh_down(const struct cover *cover, struct choices *choices) {
    choices->nodes[0].mass = 1;
    for (uint32_t i = 1; i < choices->node_count; i++) {
        struct weighed *weighed = &choices->nodes[i];
        const struct weighed *above = &choices->nodes[weighed->parent];
        struct level level = level_of(cover, weighed);
        bool all = level_is(level, level_plus) || level_is(level, level_rest);
        weighed->mass = all ? above->mass : above->mass / (above->kids + UNSEEN);
        weighed->path = traffic_hash(above->path, level);
    }
}

static double lesser(double a, double b) {
    return a < b ? a : b;
}

static void weigh_up(const struct cover *cover, struct choices *choices) {
    for (uint32_t i = choices->node_count; i-- > 0;) {
        struct weighed *weighed = &choices->nodes[i], *above = &choices->nodes[weighed->parent];
        if (levels_node(&cover->shown, weighed->at)->here > 0) {
            weighed->rows++;
            weighed->wanted += weighed->kids == 0 ? weighed->mass : weighed->mass / (weighed->kids + UNSEEN);
        }
        weighed->wanted = lesser(weighed->wanted, weighed->mass);
        if (i == 0) return;
        above->rows += weighed->rows;
        above->wanted += weighed->wanted;
        if (level_is(level_of(cover, weighed), level_rest)) continue;
        above->kid_rows += weighed->rows;
        above->kids_wanted += weighed->wanted;
        double full = weighed->wanted / weighed->mass;
        if (full > above->fullest) above->fullest = full;
        if (weighed->rows > above->fullest_rows) above->fullest_rows = weighed->rows;
    }
}

/* ---- which rows are the same behind the level of the child ---- */

struct suffix {
    uint64_t hash;
    uint32_t index;
};

static int by_index_and_hash(const void *a, const void *b) {
    const struct suffix *left = a, *right = b;
    if (left->index != right->index) return left->index < right->index ? -1 : 1;
    return left->hash < right->hash ? -1 : left->hash > right->hash;
}

static bool may_become_plus(const struct cover *cover, const struct weighed *weighed) {
    return weighed->kids >= 2 && !(levels_node(&cover->shown, weighed->at)->mark & MERGED);
}

/* What is behind the level of a kid, when it is merged as widely as the widest of them. */
static uint64_t suffix_of(const struct weighed *above, uint64_t hash, uint64_t below, bool ends) {
    if (above->kid_merged == MERGED_REST) return 0;
    return above->kid_merged == MERGED_PLUS && !ends ? traffic_hash(below, level_plus) : hash;
}

static uint32_t list_suffixes(const struct cover *cover, const struct choices *choices, struct suffix *suffixes) {
    uint32_t count = 0;
    for (uint32_t row = 1; row < choices->node_count; row++) {
        if (levels_node(&cover->shown, choices->nodes[row].at)->here == 0) continue;
        uint64_t hash = 1, below = 1;
        uint32_t at = row;
        for (uint32_t up = 0; up < PLUS_ABOVE_MAX && at != 0; up++) {
            const struct weighed *weighed = &choices->nodes[at];
            struct level level = level_of(cover, weighed);
            const struct weighed *above = &choices->nodes[weighed->parent];
            if (!level_is(level, level_rest) && may_become_plus(cover, above))
                suffixes[count++] = (struct suffix){suffix_of(above, hash, below, at == row), weighed->parent};
            below = hash;
            hash = traffic_hash(hash, level);
            at = weighed->parent;
        }
    }
    return count;
}

static bool count_suffixes(const struct cover *cover, struct choices *choices) {
    struct suffix *suffixes = malloc((size_t)cover->needed_count * PLUS_ABOVE_MAX * sizeof *suffixes);
    if (!suffixes) return false;
    uint32_t count = list_suffixes(cover, choices, suffixes);
    qsort(suffixes, count, sizeof *suffixes, by_index_and_hash);
    for (uint32_t i = 0; i < count; i++)
        choices->nodes[suffixes[i].index].suffixes += i == 0 || by_index_and_hash(&suffixes[i - 1], &suffixes[i]) != 0;
    free(suffixes);
    return true;
}

/* ---- choices ---- */

static void add(const struct cover *cover, struct choices *choices, uint32_t index, uint8_t merge, double cost,
                uint32_t saved) {
    const struct weighed *weighed = &choices->nodes[index];
    /* With nothing between them the deeper goes first. */
    double all = (cost > 0 ? cost : 0) + weighed->mass / 1024 + traffic_share(cover, weighed->path);
    choices->items[choices->count++] = (struct choice){weighed->at, index, merge, all / saved};
}

static void add_choices(const struct cover *cover, struct choices *choices) {
    for (uint32_t i = 0; i < choices->node_count; i++) {
        const struct weighed *weighed = &choices->nodes[i];
        uint8_t merged = levels_node(&cover->shown, weighed->at)->mark & MERGED;
        if (merged != MERGED_REST && weighed->rows >= 2)
            add(cover, choices, i, MERGED_REST, weighed->mass - weighed->wanted, weighed->rows - 1);
        if (!may_become_plus(cover, weighed) || weighed->kid_rows <= weighed->suffixes) continue;
        /* All together let in at least what the fullest does. */
        double more = (double)weighed->suffixes / weighed->fullest_rows;
        double full = lesser(1, weighed->fullest * (more > 1 ? more : 1));
        add(cover, choices, i, MERGED_PLUS, weighed->mass * full - weighed->kids_wanted,
            weighed->kid_rows - weighed->suffixes);
    }
}

/* qsort is not stable; equal inputs must give equal covers. */
static int cheaper_first(const void *a, const void *b) {
    const struct choice *left = a, *right = b;
    if (left->score < right->score) return -1;
    if (left->score > right->score) return 1;
    if (left->index != right->index) return left->index < right->index ? -1 : 1;
    return left->merge < right->merge ? -1 : left->merge > right->merge;
}

static bool weigh(const struct cover *cover, struct choices *choices) {
    memset(choices, 0, sizeof *choices);
    choices->nodes = malloc(cover->shown.node_count * sizeof *choices->nodes);
    choices->items = malloc((size_t)cover->shown.node_count * 2 * sizeof *choices->items);
    if (!choices->nodes || !choices->items) {
        choices_free(choices);
        return false;
    }
    list(&cover->shown, choices, LEVELS_ROOT, 0);
    weigh_down(cover, choices);
    weigh_up(cover, choices);
    return true;
}

bool choices_make(const struct cover *cover, struct choices *choices) {
    if (!weigh(cover, choices)) return false;
    if (!count_suffixes(cover, choices)) {
        choices_free(choices);
        return false;
    }
    add_choices(cover, choices);
    qsort(choices->items, choices->count, sizeof *choices->items, cheaper_first);
    return true;
}

bool choices_of_merged(const struct cover *cover, struct choices *choices) {
    if (!weigh(cover, choices)) return false;
    for (uint32_t i = 0; i < choices->node_count; i++) {
        const struct weighed *weighed = &choices->nodes[i];
        uint8_t merged = levels_node(&cover->shown, weighed->at)->mark & MERGED;
        if (!merged) continue;
        double cost = weighed->mass + traffic_share(cover, weighed->path);
        choices->items[choices->count++] = (struct choice){weighed->at, i, merged, -cost};
        i = weighed->last;
    }
    qsort(choices->items, choices->count, sizeof *choices->items, cheaper_first);
    return true;
}

void choices_free(struct choices *choices) {
    free(choices->nodes);
    free(choices->items);
}
