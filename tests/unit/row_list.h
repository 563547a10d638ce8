/* A sorted list of filters, to be walked by index: what a test knows exactly. */
#ifndef TESTS_UNIT_ROW_LIST_H
#define TESTS_UNIT_ROW_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct listed_row {
    size_t size;
    char filter[];
};
struct row_list {
    struct listed_row **items;
    size_t count, room;
};

static inline void row_list_free(struct row_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    memset(list, 0, sizeof *list);
}

static inline int row_list_compare(const struct listed_row *row, const char *filter, size_t size) {
    int order = memcmp(row->filter, filter, row->size < size ? row->size : size);
    return order != 0 ? order : row->size < size ? -1 : row->size > size;
}

/* Where it is, or would be. */
static inline bool row_list_find(const struct row_list *list, const char *filter, size_t size, size_t *index) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = row_list_compare(list->items[middle], filter, size);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        if (order == 0) {
            *index = middle;
            return true;
        }
    }
    *index = low;
    return false;
}

enum row_listed { ROW_LISTED, ROW_LISTED_BEFORE, ROW_NOT_LISTED };

static inline enum row_listed row_list_put(struct row_list *list, const char *filter, size_t size) {
    size_t index;
    if (row_list_find(list, filter, size, &index)) return ROW_LISTED_BEFORE;
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 8;
        struct listed_row **items = realloc(list->items, room * sizeof *items);
        if (!items) return ROW_NOT_LISTED;
        list->items = items;
        list->room = room;
    }
    struct listed_row *row = malloc(sizeof *row + size);
    if (!row) return ROW_NOT_LISTED;
    row->size = size;
    memcpy(row->filter, filter, size);
    memmove(list->items + index + 1, list->items + index, (list->count - index) * sizeof *list->items);
    list->items[index] = row;
    list->count++;
    return ROW_LISTED;
}

static inline bool row_list_delete(struct row_list *list, const char *filter, size_t size) {
    size_t index;
    if (!row_list_find(list, filter, size, &index)) return false;
    free(list->items[index]);
    list->count--;
    memmove(list->items + index, list->items + index + 1, (list->count - index) * sizeof *list->items);
    return true;
}

#endif
