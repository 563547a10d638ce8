#include "gossip/rows.h"

#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

void rows_free(struct rows *rows) {
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i]);
    free(rows->items);
    memset(rows, 0, sizeof *rows);
}

static int compare(const struct row *row, unsigned kind, const char *filter, size_t size) {
    if (row->kind != kind) return row->kind < kind ? -1 : 1;
    size_t common = row->size < size ? row->size : size;
    int order = memcmp(row->filter, filter, common);
    if (order != 0) return order;
    return row->size < size ? -1 : row->size > size;
}

bool rows_find(const struct rows *rows, enum gossip_row_kind kind, const char *filter, size_t size, size_t *index) {
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(rows->items[middle], kind, filter, size);
        if (order == 0) {
            *index = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *index = low;
    return false;
}

bool rows_reserve(struct rows *rows, size_t more) {
    if (rows->count + more <= rows->room) return true;
    size_t room = rows->room ? rows->room * 2 : 8;
    while (room < rows->count + more)
        room *= 2;
    struct row **items = realloc(rows->items, room * sizeof *items);
    if (!items) return false;
    rows->items = items;
    rows->room = room;
    return true;
}

struct row *row_new(enum gossip_row_kind kind, const char *filter, size_t size) {
    struct row *row = malloc(sizeof *row + size);
    if (!row) return NULL;
    row->kind = (uint8_t)kind;
    row->size = (uint16_t)size;
    memcpy(row->filter, filter, size);
    return row;
}

static void insert(struct rows *rows, size_t index, struct row *row) {
    memmove(rows->items + index + 1, rows->items + index, (rows->count - index) * sizeof *rows->items);
    rows->items[index] = row;
    rows->count++;
    rows->bytes += row->size;
}

bool rows_put_made(struct rows *rows, struct row *row) {
    size_t index;
    if (rows_find(rows, (enum gossip_row_kind)row->kind, row->filter, row->size, &index)) {
        free(row);
        return false;
    }
    insert(rows, index, row);
    return true;
}

enum rows_result rows_put(struct rows *rows, enum gossip_row_kind kind, const char *filter, size_t size) {
    size_t index;
    if (rows_find(rows, kind, filter, size, &index)) return ROWS_SAME;
    struct row *row = rows_reserve(rows, 1) ? row_new(kind, filter, size) : NULL;
    if (!row) return ROWS_NO_MEMORY;
    insert(rows, index, row);
    return ROWS_CHANGED;
}

bool rows_delete(struct rows *rows, enum gossip_row_kind kind, const char *filter, size_t size) {
    size_t index;
    if (!rows_find(rows, kind, filter, size, &index)) return false;
    rows->bytes -= size;
    free(rows->items[index]);
    rows->count--;
    memmove(rows->items + index, rows->items + index + 1, (rows->count - index) * sizeof *rows->items);
    return true;
}

bool rows_copy(const struct rows *from, struct rows *to) {
    for (size_t i = 0; i < from->count; i++) {
        const struct row *row = from->items[i];
        if (rows_put(to, (enum gossip_row_kind)row->kind, row->filter, row->size) == ROWS_NO_MEMORY) {
            rows_free(to);
            return false;
        }
    }
    return true;
}

size_t rows_encoded_size(const struct rows *rows) {
    return rows->bytes + 3 * rows->count;
}

void rows_encode(const struct rows *rows, uint8_t *out) {
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = rows->items[i];
        *out++ = row->kind;
        *out++ = (uint8_t)(row->size >> 8);
        *out++ = (uint8_t)(row->size & 0xff);
        memcpy(out, row->filter, row->size);
        out += row->size;
    }
}

enum rows_decoded rows_decode(const uint8_t *bytes, size_t size, size_t rows_max, struct rows *rows) {
    size_t at = 0;
    while (at < size) {
        if (size - at < 3) goto malformed;
        unsigned kind = bytes[at];
        size_t length = (size_t)bytes[at + 1] << 8 | bytes[at + 2];
        const char *filter = (const char *)bytes + at + 3;
        if ((kind != GOSSIP_NEWPUB && kind != GOSSIP_NEWSUB) || length > size - at - 3 ||
            !topic_filter_valid(filter, length))
            goto malformed;
        /* Strictly ascending, or one state would have two encodings. */
        if (rows->count > 0 && compare(rows->items[rows->count - 1], kind, filter, length) >= 0) goto malformed;
        if (rows->count >= rows_max) goto malformed;
        if (rows_put(rows, (enum gossip_row_kind)kind, filter, length) == ROWS_NO_MEMORY) {
            rows_free(rows);
            return ROWS_DECODE_NO_MEMORY;
        }
        at += 3 + length;
    }
    return ROWS_DECODED;
malformed:
    rows_free(rows);
    return ROWS_MALFORMED;
}
