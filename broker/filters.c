#include "broker/filters.h"

#include "broker/hash.h"

#include <stdlib.h>
#include <string.h>

/* From this capacity on there is an index; capacities are powers of two. */
enum { INDEX_FROM = 16 };
#define NONE UINT32_MAX

/* The index: for each hash value modulo capacity the first position with it, and for each position the next. */
static uint32_t *heads_of(const struct filters *filters) {
    return (uint32_t *)(void *)(filters->items + filters->capacity);
}

static uint32_t *chain_of(const struct filters *filters) {
    return heads_of(filters) + filters->capacity;
}

static uint32_t *head_of(const struct filters *filters, uint32_t position) {
    return heads_of(filters) + (filters->items[position].hash & (filters->capacity - 1));
}

static void link_position(struct filters *filters, uint32_t position) {
    uint32_t *head;

    if (filters->capacity < INDEX_FROM) return;
    head = head_of(filters, position);
    chain_of(filters)[position] = *head;
    *head = position;
}

static void unlink_position(struct filters *filters, uint32_t position) {
    uint32_t *place;

    if (filters->capacity < INDEX_FROM) return;
    place = head_of(filters, position);
    while (*place != position)
        place = chain_of(filters) + *place;
    *place = chain_of(filters)[position];
}

static int resize(struct filters *filters, uint32_t capacity) {
    size_t index_size = capacity < INDEX_FROM ? 0 : 2 * capacity * sizeof(uint32_t);
    struct filter *items = realloc(filters->items, capacity * sizeof *items + index_size);

    if (items == NULL) return -1;
    filters->items = items;
    filters->capacity = capacity;
    for (uint32_t i = 0; capacity >= INDEX_FROM && i < capacity; i++)
        heads_of(filters)[i] = NONE;
    for (uint32_t i = 0; i < filters->count; i++)
        link_position(filters, i);
    return 0;
}

void filters_deinit(struct filters *filters) {
    for (uint32_t i = 0; i < filters->count; i++)
        free(filters->items[i].text);
    free(filters->items);
    *filters = (struct filters){0};
}

static int is_at(const struct filters *filters, uint32_t position, uint32_t hash, const char *text, size_t size) {
    const struct filter *filter = &filters->items[position];

    return filter->hash == hash && filter->size == size && memcmp(filter->text, text, size) == 0;
}

uint32_t filters_find(const struct filters *filters, uint64_t seed, const char *text, size_t size) {
    uint32_t hash = (uint32_t)hash_bytes(seed, text, size);
    uint32_t at = 0;

    if (filters->capacity < INDEX_FROM) {
        while (at < filters->count && !is_at(filters, at, hash, text, size))
            at++;
        return at;
    }
    at = heads_of(filters)[hash & (filters->capacity - 1)];
    while (at != NONE && !is_at(filters, at, hash, text, size))
        at = chain_of(filters)[at];
    return at != NONE ? at : filters->count;
}

int filters_add(struct filters *filters, uint64_t seed, const char *text, size_t size) {
    char *copy;

    if (filters->count == filters->capacity &&
        (filters->capacity > UINT32_MAX / 4 || resize(filters, filters->capacity ? filters->capacity * 2 : 2) != 0))
        return -1;
    copy = malloc(size);
    if (copy == NULL) return -1;
    memcpy(copy, text, size);
    filters->items[filters->count] =
        (struct filter){.text = copy, .size = (uint32_t)size, .hash = (uint32_t)hash_bytes(seed, text, size)};
    link_position(filters, filters->count++);
    return 0;
}

void filters_remove(struct filters *filters, uint32_t position) {
    uint32_t last = filters->count - 1;

    free(filters->items[position].text);
    unlink_position(filters, position);
    if (position != last) {
        unlink_position(filters, last);
        filters->items[position] = filters->items[last];
        link_position(filters, position);
    }
    filters->count--;
    if (filters->count == 0)
        filters_deinit(filters);
    else if (filters->count <= filters->capacity / 4)
        resize(filters, filters->capacity / 2); /* may fail: then it is merely larger than needed */
}
