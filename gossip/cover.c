#include "gossip/cover.h"

#include "broker/topic.h"
#include "gossip/signed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void cover_init(struct cover *cover, enum gossip_row_kind kind, uint32_t rows_max) {
    memset(cover, 0, sizeof *cover);
    cover->kind = kind;
    cover->rows_max = rows_max;
}

void cover_free(struct cover *cover) {
    rows_free(&cover->wanted);
    rows_free(&cover->shown);
}

/* The size of the first `levels` levels, without the slash behind them; 0 when the filter has no more levels than that.
 */
static size_t prefix_size(const struct row *row, size_t levels) {
    if (levels == 0) return 0;
    for (size_t i = 0; i < row->size; i++)
        if (row->filter[i] == '/' && --levels == 0) return i;
    return 0;
}

static size_t level_count(const struct row *row) {
    size_t levels = 1;
    for (size_t i = 0; i < row->size; i++)
        levels += row->filter[i] == '/';
    return levels;
}

/* What a wanted filter is shown as when there is room: itself, or the nearest `prefix/#` that fits an entry. */
struct shown_form {
    char text[ENTRY_FILTER_MAX];
    size_t size;
};
static void exact_form(const char *filter, size_t size, struct shown_form *form) {
    if (size <= ENTRY_FILTER_MAX) {
        memcpy(form->text, filter, size);
        form->size = size;
        return;
    }
    size_t cut = ENTRY_FILTER_MAX - 2;
    while (cut > 0 && filter[cut] != '/')
        cut--;
    memcpy(form->text, filter, cut);
    memcpy(form->text + cut, cut ? "/#" : "#", cut ? 2 : 1);
    form->size = cut + (cut ? 2 : 1);
}

static bool is_covered(const struct rows *rows, const char *filter, size_t size) {
    for (size_t i = 0; i < rows->count; i++)
        if (topic_filter_covers(rows->items[i]->filter, rows->items[i]->size, filter, size)) return true;
    return false;
}

/* A run of rows below one prefix. */
struct family {
    size_t from, count, prefix;
};

static int larger_first(const void *a, const void *b) {
    const struct family *left = a, *right = b;
    if (left->count != right->count) return left->count < right->count ? 1 : -1;
    return left->from < right->from
               ? -1
               : left->from > right->from; /* qsort is not stable; equal inputs must give equal covers */
}

static size_t find_families(const struct rows *rows, size_t levels, struct family *families) {
    size_t count = 0;
    for (size_t i = 0; i < rows->count;) {
        const struct row *first = rows->items[i];
        size_t prefix = levels > 0 ? prefix_size(first, levels) : 0;
        if (levels > 0 && prefix == 0 &&
            (first->size == 0 || level_count(first) <= levels || first->filter[0] != '/')) {
            i++;
            continue;
        }
        size_t end = i + 1;
        while (levels == 0
                   ? end < rows->count
                   : end < rows->count && rows->items[end]->size > prefix && rows->items[end]->filter[prefix] == '/' &&
                         memcmp(rows->items[end]->filter, first->filter, prefix) == 0)
            end++;
        if (end - i > 1) families[count++] = (struct family){.from = i, .count = end - i, .prefix = prefix};
        i = end;
    }
    return count;
}

/* The rows with the chosen families (by their first row) replaced. */
static bool replace(const struct rows *rows, enum gossip_row_kind kind, const struct family *chosen,
                    size_t chosen_count, size_t levels, struct rows *out) {
    for (size_t i = 0; i < rows->count;) {
        const struct family *family = NULL;
        for (size_t j = 0; j < chosen_count && !family; j++)
            if (chosen[j].from == i) family = &chosen[j];
        char text[ENTRY_FILTER_MAX + 2];
        const char *filter = rows->items[i]->filter;
        size_t size = rows->items[i]->size;
        if (family) {
            memcpy(text, filter, family->prefix);
            memcpy(text + family->prefix, levels > 0 ? "/#" : "#", levels > 0 ? 2 : 1);
            size = family->prefix + (levels > 0 ? 2 : 1);
            filter = text;
        }
        if (rows_put(out, kind, filter, size) == ROWS_NO_MEMORY) {
            rows_free(out);
            return false;
        }
        i += family ? family->count : 1;
    }
    return true;
}

static bool coarsen_level(struct rows *rows, enum gossip_row_kind kind, size_t levels, size_t target) {
    struct family *families = malloc(rows->count * sizeof *families);
    if (!families) return false;
    size_t count = find_families(rows, levels, families), chosen = 0, left = rows->count;
    qsort(families, count, sizeof *families, larger_first);
    while (chosen < count && left > target)
        left -= families[chosen++].count - 1;
    struct rows next = {0};
    bool ok = replace(rows, kind, families, chosen, levels, &next);
    free(families);
    if (!ok) return false;
    rows_free(rows);
    *rows = next;
    return true;
}

static bool coarsen(struct rows *rows, enum gossip_row_kind kind, size_t target) {
    size_t deepest = 0;
    for (size_t i = 0; i < rows->count; i++) {
        size_t levels = level_count(rows->items[i]);
        deepest = levels > deepest ? levels : deepest;
    }
    for (size_t levels = deepest; rows->count > target && levels-- > 0;)
        if (!coarsen_level(rows, kind, levels, target)) return false;
    return true;
}

/* Shown becomes next: first what is new, then what is gone, so that nothing wanted is uncovered in between. */
static bool change_to(struct cover *cover, struct rows *next, cover_on_change *on_change, void *context) {
    size_t index;
    for (size_t i = 0; i < next->count; i++) {
        const struct row *row = next->items[i];
        if (rows_find(&cover->shown, cover->kind, row->filter, row->size, &index)) continue;
        if (rows_put(&cover->shown, cover->kind, row->filter, row->size) == ROWS_NO_MEMORY) return false;
        if (!on_change(context, cover->kind, row->filter, row->size, true)) {
            rows_delete(&cover->shown, cover->kind, row->filter, row->size);
            return false;
        }
    }
    for (size_t i = cover->shown.count; i-- > 0;) {
        const struct row *row = cover->shown.items[i];
        if (rows_find(next, cover->kind, row->filter, row->size, &index)) continue;
        if (!on_change(context, cover->kind, row->filter, row->size, false)) return false;
        rows_delete(&cover->shown, cover->kind, row->filter, row->size);
    }
    return true;
}

/* A rebuild walks through all that is wanted: so it is done each time a quarter of that is gone, and however many go,
 * each pays for a few. */
static size_t worth_a_look_at(const struct cover *cover) {
    size_t count = cover->wanted.count, fewer = (count > cover->rows_max ? count : cover->rows_max) / 4 + 1;
    return count > fewer ? count - fewer : 0;
}

static bool rebuild(struct cover *cover, cover_on_change *on_change, void *context) {
    struct rows next = {0};
    for (size_t i = 0; i < cover->wanted.count; i++) {
        struct shown_form form;
        exact_form(cover->wanted.items[i]->filter, cover->wanted.items[i]->size, &form);
        if (rows_put(&next, cover->kind, form.text, form.size) == ROWS_NO_MEMORY) {
            rows_free(&next);
            return false;
        }
    }
    cover->rebuild_at = worth_a_look_at(cover);
    bool coarse = next.count > cover->rows_max;
    bool ok = !coarse || coarsen(&next, cover->kind, cover->rows_max - cover->rows_max / 5);
    ok = ok && change_to(cover, &next, on_change, context);
    rows_free(&next);
    cover->coarse = coarse || !ok; /* half changed: something may be too wide, and is looked at again later */
    return ok;
}

bool cover_put(struct cover *cover, const char *filter, size_t size, cover_on_change *on_change, void *context) {
    enum rows_result put = rows_put(&cover->wanted, cover->kind, filter, size);
    if (put == ROWS_NO_MEMORY) return false;
    if (put == ROWS_SAME && is_covered(&cover->shown, filter, size)) /* a put that failed is in wanted, and not shown */
        return true;
    if (cover->coarse && worth_a_look_at(cover) > cover->rebuild_at) cover->rebuild_at = worth_a_look_at(cover);
    if (cover->coarse && is_covered(&cover->shown, filter, size)) return true;
    struct shown_form form;
    exact_form(filter, size, &form);
    if (cover->shown.count >= cover->rows_max) return rebuild(cover, on_change, context);
    put = rows_put(&cover->shown, cover->kind, form.text, form.size);
    if (put != ROWS_CHANGED) return put == ROWS_SAME;
    if (on_change(context, cover->kind, form.text, form.size, true)) return true;
    rows_delete(&cover->shown, cover->kind, form.text, form.size);
    return false;
}

/* A long filter's form may stand for several wanted ones. */
static bool form_is_needed(const struct cover *cover, const struct shown_form *form) {
    for (size_t i = 0; i < cover->wanted.count; i++) {
        struct shown_form other;
        exact_form(cover->wanted.items[i]->filter, cover->wanted.items[i]->size, &other);
        if (other.size == form->size && memcmp(other.text, form->text, form->size) == 0) return true;
    }
    return false;
}

bool cover_delete(struct cover *cover, const char *filter, size_t size, cover_on_change *on_change, void *context) {
    if (!rows_delete(&cover->wanted, cover->kind, filter, size)) return true;
    /* Back to exact under seven tenths of the budget, not at once, or a filter that comes and goes would rewrite the
     * table each time. */
    if (cover->coarse &&
        (cover->wanted.count <= (size_t)cover->rows_max * 7 / 10 || cover->wanted.count <= cover->rebuild_at))
        return rebuild(cover, on_change, context);
    if (cover->coarse) return true;
    struct shown_form form;
    exact_form(filter, size, &form);
    size_t index;
    bool shortened = size > ENTRY_FILTER_MAX;
    bool maybe_form = form.size >= 1 && form.text[form.size - 1] == '#';
    if (!rows_find(&cover->shown, cover->kind, form.text, form.size, &index) ||
        ((shortened || maybe_form) && form_is_needed(cover, &form)))
        return true;
    if (!on_change(context, cover->kind, form.text, form.size, false)) return false;
    return rows_delete(&cover->shown, cover->kind, form.text, form.size);
}
