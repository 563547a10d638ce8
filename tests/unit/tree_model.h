/* A tree of topics (broker/tree.h) beside a list of the same topics, for random and fuzzed programs: each step is a few
 * bytes, most of which say how a topic branches off one that is there. The tree holds filters and is asked for names,
 * or holds names and is walked by filters while it changes. */
#ifndef TESTS_UNIT_TREE_MODEL_H
#define TESTS_UNIT_TREE_MODEL_H

#include "broker/tree.h"

#include <assert.h>
#include <string.h>

enum { MODEL_ENTRIES_MAX = 32, MODEL_TEXT_MAX = 3000, MODEL_STEP_SIZE = 5 };

struct model_text {
    char bytes[MODEL_TEXT_MAX];
    size_t size;
};

struct model_entry {
    struct model_text text;
    bool is_set;
    bool is_seen;    /* by the match or walk underway */
    bool was_before; /* has been there since the walk began */
};

struct model {
    struct tree tree;
    bool holds_names;
    struct model_entry entries[MODEL_ENTRIES_MAX];
    struct model_text asked; /* the filter of the walk underway */
    struct tree_stand at;    /* no node: none */
    size_t count, unmerged;
};

static inline void model_begin(struct model *model, bool holds_names) {
    *model = (struct model){.holds_names = holds_names};
    assert(tree_init(&model->tree, 7) == 0);
}

/* ---- texts ---- */

static inline void model_append(struct model_text *text, const char *level, size_t size, bool is_first) {
    if (text->size + size + 1 > MODEL_TEXT_MAX) return;
    if (!is_first) text->bytes[text->size++] = '/';
    memcpy(text->bytes + text->size, level, size);
    text->size += size;
}

static inline void model_append_code(struct model_text *text, unsigned code, bool is_first) {
    static const char *const levels[] = {
        "a",  "b", "+", "",
        "$s", "c", "d", "longer than what a node keeps within itself, so that it gets a block of its own"};
    model_append(text, levels[code % 8], strlen(levels[code % 8]), is_first);
}

/* Some levels of an entry, then others. */
static inline void model_make_text(const struct model *model, const uint8_t *step, struct model_text *text) {
    const struct model_entry *base = &model->entries[step[1] % MODEL_ENTRIES_MAX];
    unsigned keep = base->is_set ? step[2] % 128 : 0, levels = 0;

    text->size = 0;
    for (size_t at = 0; keep > 0 && at < base->text.size; at++) {
        if (base->text.bytes[at] == '/' && ++levels == keep) break;
        text->bytes[text->size++] = base->text.bytes[at];
    }
    for (unsigned i = 0; i < step[3] % 64u; i++)
        model_append_code(text, step[3] / 64u, text->size == 0 && i == 0);
    if (step[4] < 248) model_append_code(text, step[4], text->size == 0);
    if (step[4] >= 192) model_append(text, "#", 1, text->size == 0);
}

static inline bool model_is_filter(const struct model_text *text) {
    return topic_filter_valid(text->bytes, text->size) && topic_levels(text->bytes, text->size) <= TOPIC_LEVELS_MAX;
}

static inline bool model_is_name(const struct model_text *text) {
    return topic_name_valid(text->bytes, text->size) && topic_levels(text->bytes, text->size) <= TOPIC_LEVELS_MAX;
}

/* ---- the structure ---- */

static inline size_t model_node_bytes(const struct tree_node *node) {
    bool is_own = node->label + node->label_size == node->own + node->own_room;
    return sizeof *node + node->own_room + (is_own ? 0 : node->room);
}

static inline bool model_has_level(const struct tree_node *node, char sign, bool first) {
    for (size_t at = 0; at < node->label_size; at++) {
        if (node->label[at] == sign && (at == 0 || node->label[at - 1] == '/') &&
            (at + 1 == node->label_size || node->label[at + 1] == '/'))
            return true;
        if (first) return false;
    }
    return false;
}

/* What the path compression promises: nothing without an item but where two ways part, or where a walk stands. */
static inline bool model_must_stay(const struct tree_node *node) {
    return node->item != NULL || node->pins > 0 || (node->first_child != NULL && node->first_child->next != NULL);
}

static inline void model_check_node(const struct tree_node *node) {
    bool plus = false, rest = false;

    assert(topic_levels(node->label, node->label_size) == node->levels);
    assert(node->is_wild == (model_has_level(node, '+', false) || model_has_level(node, '#', false)));
    for (const struct tree_node *child = node->first_child; child != NULL; child = child->next) {
        assert(child->parent == node && (child->next == NULL || child->next->previous == child));
        assert(child != node->first_child || child->previous == NULL);
        plus |= model_has_level(child, '+', true);
        rest |= model_has_level(child, '#', true);
    }
    assert(node->has_plus == plus && node->has_rest == rest);
    assert(!rest || model_has_level(node->first_child, '#', true));
    assert(!plus || model_has_level(rest ? node->first_child->next : node->first_child, '+', true));
}

static inline void model_check(struct model *model) {
    size_t nodes = 0, items = 0, parting = 0;
    uint64_t bytes = 0;

    for (const struct tree_node *node = tree_next(model->tree.root); node != NULL; node = tree_next(node)) {
        model_check_node(node);
        nodes++;
        bytes += model_node_bytes(node);
        if (node->item != NULL) items++;
        if (node->item == NULL && node->pins == 0 && node->first_child != NULL && node->first_child->next != NULL)
            parting++;
        if (!model_must_stay(node)) model->unmerged++;
    }
    assert(nodes == model->tree.node_count && bytes == model->tree.bytes && items == model->count);
    assert(parting <= items);
    for (size_t i = 0; i < MODEL_ENTRIES_MAX; i++) {
        struct model_entry *entry = &model->entries[i];
        struct tree_path path;
        if (!entry->is_set) continue;
        tree_path_of(entry->text.bytes, entry->text.size, &path);
        const struct tree_node *node = tree_find(&model->tree, &path);
        assert(node != NULL && node->item == entry);
    }
}

/* ---- steps ---- */

static inline struct model_entry *model_find(struct model *model, const struct model_text *text) {
    for (size_t i = 0; i < MODEL_ENTRIES_MAX; i++) {
        struct model_entry *entry = &model->entries[i];
        if (entry->is_set && entry->text.size == text->size && memcmp(entry->text.bytes, text->bytes, text->size) == 0)
            return entry;
    }
    return NULL;
}

/* False when memory was short. */
static inline bool model_set(struct model *model, size_t place, const struct model_text *text) {
    struct model_entry *entry = &model->entries[place % MODEL_ENTRIES_MAX];
    uint64_t before = model->tree.bytes, missing;
    struct tree_path path;
    struct tree_node *node;

    if (entry->is_set || model_find(model, text) != NULL) return true;
    tree_path_of(text->bytes, text->size, &path);
    missing = tree_missing_bytes(&model->tree, &path);
    node = tree_make(&model->tree, &path);
    if (node == NULL) {
        assert(model->tree.bytes <= before);
        return false;
    }
    assert(node->item == NULL && model->tree.bytes == before + missing);
    node->item = entry;
    *entry = (struct model_entry){.text = *text, .is_set = true};
    model->count++;
    return true;
}

static inline void model_drop(struct model *model, struct model_entry *entry) {
    uint64_t before = model->tree.bytes;
    struct tree_path path;
    struct tree_node *node;

    tree_path_of(entry->text.bytes, entry->text.size, &path);
    node = tree_find(&model->tree, &path);
    assert(node != NULL && node->item == entry);
    node->item = NULL;
    entry->is_set = false;
    model->count--;
    tree_prune(&model->tree, node);
    assert(model->tree.bytes <= before);
}

static inline bool model_matches(const struct model_text *filter, const struct model_text *name) {
    return topic_matches(filter->bytes, filter->size, name->bytes, name->size);
}

static inline void model_on_node(void *context, const struct tree_node *node) {
    struct model_entry *entry = node->item;
    (void)context;
    assert(entry != NULL && entry->is_set && !entry->is_seen);
    entry->is_seen = true;
}

static inline void model_match(struct model *model, const struct model_text *name) {
    tree_match(&model->tree, name->bytes, name->size, model_on_node, model);
    for (size_t i = 0; i < MODEL_ENTRIES_MAX; i++) {
        struct model_entry *entry = &model->entries[i];
        if (!entry->is_set) continue;
        assert(entry->is_seen == model_matches(&entry->text, name));
        entry->is_seen = false;
    }
}

static inline bool model_on_meeting(void *context, const struct tree_node *node) {
    model_on_node(context, node);
    return true;
}

static inline void model_meet(struct model *model, const struct model_text *filter) {
    tree_meet(&model->tree, filter->bytes, filter->size, model_on_meeting, model);
    for (size_t i = 0; i < MODEL_ENTRIES_MAX; i++) {
        struct model_entry *entry = &model->entries[i];
        if (!entry->is_set) continue;
        assert(entry->is_seen ==
               topic_filters_intersect(entry->text.bytes, entry->text.size, filter->bytes, filter->size));
        entry->is_seen = false;
    }
}

static inline void model_walk_begin(struct model *model, const struct model_text *filter) {
    model->asked = *filter;
    model->at = (struct tree_stand){.node = model->tree.root, .fit = TREE_ABOVE};
    tree_pin(model->at.node);
    for (size_t i = 0; i < MODEL_ENTRIES_MAX; i++) {
        model->entries[i].is_seen = false;
        model->entries[i].was_before = model->entries[i].is_set;
    }
}

/* Looks at so many nodes more; at the end everything that was there all the time must have been seen, once. */
static inline void model_walk_on(struct model *model, unsigned nodes) {
    struct tree_path path;

    tree_path_of(model->asked.bytes, model->asked.size, &path);
    for (unsigned i = 0; i < nodes && model->at.node != NULL; i++) {
        struct tree_node *node = model->at.node;
        struct model_entry *entry = node->item;
        if (entry != NULL) {
            assert((model->at.fit == TREE_MATCHED) == model_matches(&model->asked, &entry->text));
            assert(!entry->is_seen);
            entry->is_seen = true;
        }
        tree_step(&model->tree, &path, &model->at);
        if (model->at.node != NULL) tree_pin(model->at.node);
        tree_unpin(&model->tree, node);
    }
    for (size_t i = 0; i < MODEL_ENTRIES_MAX && model->at.node == NULL; i++) {
        struct model_entry *entry = &model->entries[i];
        if (entry->is_set && entry->was_before && model_matches(&model->asked, &entry->text)) assert(entry->is_seen);
    }
}

/* A step from random numbers: half of them with few levels, so that texts meet. */
static inline void model_random_step(uint32_t *chance, uint8_t *step) {
    for (int at = 0; at < MODEL_STEP_SIZE; at++) {
        *chance ^= *chance << 13;
        *chance ^= *chance >> 17;
        *chance ^= *chance << 5;
        step[at] = (uint8_t)(*chance >> 11);
    }
    if (*chance >> 24 & 1) step[2] %= 4, step[3] &= 0xC1;
}

static inline void model_step(struct model *model, const uint8_t *step) {
    struct model_text text;

    model_make_text(model, step, &text);
    switch (step[0] % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (model->holds_names ? model_is_name(&text) : model_is_filter(&text)) model_set(model, step[0] / 8u, &text);
        break;
    case 4:
    case 5:
        if (model->entries[step[1] % MODEL_ENTRIES_MAX].is_set)
            model_drop(model, &model->entries[step[1] % MODEL_ENTRIES_MAX]);
        break;
    default:
        if (!model->holds_names && step[1] % 2 == 0 && model_is_name(&text))
            model_match(model, &text);
        else if (!model->holds_names && model_is_filter(&text))
            model_meet(model, &text);
        else if (model->holds_names && model->at.node != NULL)
            model_walk_on(model, step[1] % 16u);
        else if (model->holds_names && model_is_filter(&text))
            model_walk_begin(model, &text);
        break;
    }
    model_check(model);
}

/* Everything goes, and nothing is left. */
static inline void model_end(struct model *model) {
    if (model->at.node != NULL) tree_unpin(&model->tree, model->at.node);
    for (size_t i = 0; i < MODEL_ENTRIES_MAX; i++)
        if (model->entries[i].is_set) model_drop(model, &model->entries[i]);
    assert(model->tree.node_count == 0 && model->tree.bytes == 0 && model->tree.root->first_child == NULL);
    tree_deinit(&model->tree);
}

#endif
