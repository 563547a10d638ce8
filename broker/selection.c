#include "broker/selection.h"

#include <stdlib.h>

void selection_add(struct selection *selection, const char *filter, size_t size) {
    if (selection->count == selection->capacity) {
        size_t capacity = selection->capacity ? selection->capacity * 2 : 8;
        struct selection_filter *filters = realloc(selection->filters, capacity * sizeof *filters);
        if (!filters) {
            selection->failed = true;
            return;
        }
        selection->filters = filters;
        selection->capacity = capacity;
    }
    selection->filters[selection->count++] = (struct selection_filter){filter, size};
}

void selection_deinit(struct selection *selection) {
    free(selection->filters);
    *selection = (struct selection){0};
}

static bool by_filter(const struct selection *selection, struct retained *retained, uint64_t now_ms, uint64_t *budget,
                      retained_on_message *on_message, void *context) {
    for (size_t i = 0; i < selection->count; i++) {
        const struct selection_filter *filter = &selection->filters[i];
        if (!retained_match_some(retained, now_ms, filter->text, filter->size, budget, on_message, context))
            return false;
    }
    return true;
}

bool selection_glance(const struct selection *selection, struct retained *retained, uint64_t now_ms, uint64_t budget,
                      retained_on_message *on_message, void *context) {
    return !selection->failed && by_filter(selection, retained, now_ms, &budget, on_message, context);
}

/* ---- topic by topic ---- */

struct sieve {
    struct tree filters;
    uint64_t now_ms;
    retained_on_message *on_message;
    void *context;
    bool matches, ended;
};

static void on_filter(void *context, const struct tree_node *node) {
    (void)node;
    ((struct sieve *)context)->matches = true;
}

static bool on_topic(void *context, struct message *message) {
    struct sieve *sieve = context;
    if (message->payload_size > 0 && message->expires_at_ms <= sieve->now_ms) return true;
    sieve->matches = false;
    tree_match(&sieve->filters, message->topic, message->topic_size, on_filter, sieve);
    sieve->ended = sieve->matches && !sieve->on_message(sieve->context, message);
    return !sieve->ended;
}

static bool plant(struct tree *tree, const struct selection *selection) {
    for (size_t i = 0; i < selection->count; i++) {
        struct tree_path path;
        tree_path_of(selection->filters[i].text, selection->filters[i].size, &path);
        struct tree_node *node = tree_make(tree, &path);
        if (!node) return false;
        node->item = &selection->filters[i];
    }
    return true;
}

static bool by_topic(const struct selection *selection, struct retained *retained, uint64_t now_ms,
                     retained_on_message *on_message, void *context) {
    struct sieve sieve = {.now_ms = now_ms, .on_message = on_message, .context = context};
    if (tree_init(&sieve.filters, retained_seed(retained)) != 0) return false;
    bool planted = plant(&sieve.filters, selection);
    if (planted) retained_each(retained, on_topic, &sieve);
    tree_deinit(&sieve.filters);
    return planted && !sieve.ended;
}

bool selection_walk(const struct selection *selection, struct retained *retained, uint64_t now_ms,
                    retained_on_message *on_message, void *context) {
    uint64_t budget = retained_topics(retained) + 16 * selection->count;
    if (selection->failed) return false;
    if (by_filter(selection, retained, now_ms, &budget, on_message, context)) return true;
    return budget == 0 && by_topic(selection, retained, now_ms, on_message, context);
}
