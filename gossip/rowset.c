#include "gossip/rowset.h"

#include "broker/topic.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ROW_HEAD 3u /* bytes before the filter in the encoding */

struct rowset_node {
    uint32_t refs;
    uint8_t height;
    uint8_t kind;
    uint16_t size;
    size_t encoded; /* bytes, with all below it */
    struct rowset_node *left, *right;
    char filter[]; /* size bytes */
};

/* ---- nodes ---- */

static struct rowset_node *node_new(unsigned kind, const char *filter, size_t size) {
    struct rowset_node *node = malloc(sizeof *node + size);
    if (!node) return NULL;
    *node = (struct rowset_node){
        .refs = 1, .height = 1, .kind = (uint8_t)kind, .size = (uint16_t)size, .encoded = ROW_HEAD + size};
    memcpy(node->filter, filter, size);
    return node;
}

static void node_unref(struct rowset_node *node) {
    while (node && --node->refs == 0) {
        struct rowset_node *right = node->right;
        node_unref(node->left);
        free(node);
        node = right;
    }
}

/* The node at this place, which nobody else may hold, so that it can be changed. NULL: no memory. */
static struct rowset_node *own(struct rowset_node **place) {
    struct rowset_node *node = *place;
    if (node->refs == 1) return node;
    struct rowset_node *copy = malloc(sizeof *copy + node->size);
    if (!copy) return NULL;
    memcpy(copy, node, sizeof *copy + node->size);
    copy->refs = 1;
    if (copy->left) copy->left->refs++;
    if (copy->right) copy->right->refs++;
    node->refs--;
    *place = copy;
    return copy;
}

static int compare(const struct rowset_node *node, unsigned kind, const char *filter, size_t size) {
    if (node->kind != kind) return node->kind < kind ? -1 : 1;
    size_t common = node->size < size ? node->size : size;
    int order = memcmp(node->filter, filter, common);
    if (order != 0) return order;
    return node->size < size ? -1 : node->size > size;
}

static int height(const struct rowset_node *node) {
    return node ? node->height : 0;
}

static size_t encoded(const struct rowset_node *node) {
    return node ? node->encoded : 0;
}

static void sum_up(struct rowset_node *node) {
    int left = height(node->left), right = height(node->right);
    node->height = (uint8_t)((left > right ? left : right) + 1);
    node->encoded = encoded(node->left) + ROW_HEAD + node->size + encoded(node->right);
}

/* ---- balance: every node on the way is owned ---- */

static bool rotate_right(struct rowset_node **place) {
    struct rowset_node *node = *place, *left = own(&node->left);
    if (!left) return false;
    node->left = left->right;
    left->right = node;
    *place = left;
    sum_up(node);
    sum_up(left);
    return true;
}

static bool rotate_left(struct rowset_node **place) {
    struct rowset_node *node = *place, *right = own(&node->right);
    if (!right) return false;
    node->right = right->left;
    right->left = node;
    *place = right;
    sum_up(node);
    sum_up(right);
    return true;
}

static bool balance(struct rowset_node **place) {
    struct rowset_node *node = *place;
    int lean = height(node->left) - height(node->right);
    if (lean > 1) {
        if (height(node->left->left) < height(node->left->right) && (!own(&node->left) || !rotate_left(&node->left)))
            return false;
        return rotate_right(place);
    }
    if (lean < -1) {
        if (height(node->right->right) < height(node->right->left) &&
            (!own(&node->right) || !rotate_right(&node->right)))
            return false;
        return rotate_left(place);
    }
    sum_up(node);
    return true;
}

static bool insert(struct rowset_node **place, struct rowset_node *row) {
    if (!*place) {
        *place = row;
        return true;
    }
    struct rowset_node *node = own(place);
    bool before = node && compare(node, row->kind, row->filter, row->size) > 0;
    if (!node || !insert(before ? &node->left : &node->right, row)) return false;
    return balance(place);
}

/* *first is the caller's, with nothing below it, even when memory ran short behind it. */
static bool take_first(struct rowset_node **place, struct rowset_node **first) {
    struct rowset_node *node = own(place);
    if (!node) return false;
    if (!node->left) {
        *place = node->right;
        node->right = NULL;
        *first = node;
        return true;
    }
    return take_first(&node->left, first) && balance(place);
}

static bool drop_here(struct rowset_node **place) {
    struct rowset_node *node = *place, *next = NULL;
    if (!node->left || !node->right) {
        *place = node->left ? node->left : node->right;
        free(node);
        return true;
    }
    if (!take_first(&node->right, &next)) {
        node_unref(next);
        return false;
    }
    next->left = node->left;
    next->right = node->right;
    *place = next;
    free(node);
    return balance(place);
}

static bool drop(struct rowset_node **place, unsigned kind, const char *filter, size_t size) {
    struct rowset_node *node = own(place);
    if (!node) return false;
    int order = compare(node, kind, filter, size);
    if (order == 0) return drop_here(place);
    return drop(order > 0 ? &node->left : &node->right, kind, filter, size) && balance(place);
}

/* ---- the set ---- */

void rowset_free(struct rowset *set) {
    node_unref(set->root);
    memset(set, 0, sizeof *set);
}

struct rowset rowset_share(const struct rowset *set) {
    if (set->root) set->root->refs++;
    return *set;
}

bool rowset_has(const struct rowset *set, enum gossip_row_kind kind, const char *filter, size_t size) {
    const struct rowset_node *node = set->root;
    while (node) {
        int order = compare(node, kind, filter, size);
        if (order == 0) return true;
        node = order > 0 ? node->left : node->right;
    }
    return false;
}

enum rowset_result rowset_put(struct rowset *set, enum gossip_row_kind kind, const char *filter, size_t size) {
    if (rowset_has(set, kind, filter, size)) return ROWSET_SAME;
    struct rowset_node *row = node_new(kind, filter, size);
    if (!row) return ROWSET_NO_MEMORY;
    if (!insert(&set->root, row)) {
        if (!rowset_has(set, kind, filter, size)) free(row);
        return ROWSET_NO_MEMORY;
    }
    set->count++;
    set->bytes += size;
    return ROWSET_CHANGED;
}

enum rowset_result rowset_delete(struct rowset *set, enum gossip_row_kind kind, const char *filter, size_t size) {
    if (!rowset_has(set, kind, filter, size)) return ROWSET_SAME;
    if (!drop(&set->root, kind, filter, size)) return ROWSET_NO_MEMORY;
    set->count--;
    set->bytes -= size;
    return ROWSET_CHANGED;
}

static void push_left(struct rowset_walk *walk, const struct rowset_node *node) {
    for (; node; node = node->left) {
        assert(walk->depth < ROWSET_HEIGHT_MAX);
        walk->next[walk->depth++] = node;
    }
}

void rowset_begin(const struct rowset *set, struct rowset_walk *walk) {
    walk->depth = 0;
    push_left(walk, set->root);
}

bool rowset_next(struct rowset_walk *walk, struct rowset_row *row) {
    if (walk->depth == 0) return false;
    const struct rowset_node *node = walk->next[--walk->depth];
    *row = (struct rowset_row){(enum gossip_row_kind)node->kind, node->filter, node->size};
    push_left(walk, node->right);
    return true;
}

/* ---- the encoding ---- */

size_t rowset_encoded_size(const struct rowset *set) {
    return encoded(set->root);
}

/* Of the bytes that begin at `begin`, those within from and to; out is where from goes. */
static void encode_part(const uint8_t *bytes, size_t size, size_t begin, size_t from, size_t to, uint8_t *out) {
    size_t low = begin > from ? begin : from, high = begin + size < to ? begin + size : to;
    if (low < high) memcpy(out + (low - from), bytes + (low - begin), high - low);
}

static void encode(const struct rowset_node *node, size_t begin, size_t from, size_t to, uint8_t *out) {
    if (!node || begin >= to || begin + node->encoded <= from) return;
    size_t own_begin = begin + encoded(node->left);
    const uint8_t head[ROW_HEAD] = {node->kind, (uint8_t)(node->size >> 8), (uint8_t)(node->size & 0xff)};
    encode(node->left, begin, from, to, out);
    encode_part(head, sizeof head, own_begin, from, to, out);
    encode_part((const uint8_t *)node->filter, node->size, own_begin + ROW_HEAD, from, to, out);
    encode(node->right, own_begin + ROW_HEAD + node->size, from, to, out);
}

void rowset_encode(const struct rowset *set, size_t from, size_t size, uint8_t *out) {
    encode(set->root, 0, from, from + size, out);
}

struct reader {
    const uint8_t *bytes;
    size_t size, at;
};

static bool read_row(struct reader *in, struct rowset_row *row) {
    if (in->size - in->at < ROW_HEAD) return false;
    const uint8_t *head = in->bytes + in->at;
    row->kind = (enum gossip_row_kind)head[0];
    row->size = (size_t)head[1] << 8 | head[2];
    row->filter = (const char *)head + ROW_HEAD;
    if (row->size > in->size - in->at - ROW_HEAD) return false;
    in->at += ROW_HEAD + row->size;
    return (row->kind == GOSSIP_NEWPUB || row->kind == GOSSIP_NEWSUB) && topic_filter_valid(row->filter, row->size);
}

static bool is_before(const struct rowset_row *a, const struct rowset_row *b) {
    if (a->kind != b->kind) return a->kind < b->kind;
    int order = memcmp(a->filter, b->filter, a->size < b->size ? a->size : b->size);
    return order < 0 || (order == 0 && a->size < b->size);
}

/* Strictly ascending, or one state would have two encodings. */
static bool count_rows(const uint8_t *bytes, size_t size, size_t rows_max, struct rowset *set) {
    struct reader in = {bytes, size, 0};
    struct rowset_row before = {0}, row;
    for (; in.at < in.size; before = row) {
        if (set->count >= rows_max || !read_row(&in, &row) || (set->count > 0 && !is_before(&before, &row)))
            return false;
        set->count++;
        set->bytes += row.size;
    }
    return true;
}

/* The next count rows, as a tree as low as can be. */
static bool build(struct reader *in, size_t count, struct rowset_node **place) {
    if (count == 0) return true;
    struct rowset_row row;
    struct rowset_node *left = NULL;
    bool ok = build(in, (count - 1) / 2, &left) && read_row(in, &row);
    struct rowset_node *node = ok ? node_new(row.kind, row.filter, row.size) : NULL;
    if (!node) {
        node_unref(left);
        return false;
    }
    *place = node;
    node->left = left;
    ok = build(in, count - 1 - (count - 1) / 2, &node->right);
    sum_up(node);
    return ok;
}

enum rowset_decoded rowset_decode(const uint8_t *bytes, size_t size, size_t rows_max, struct rowset *set) {
    struct rowset decoded = {0};
    struct reader in = {bytes, size, 0};
    if (!count_rows(bytes, size, rows_max, &decoded)) return ROWSET_MALFORMED;
    if (!build(&in, decoded.count, &decoded.root)) {
        rowset_free(&decoded);
        return ROWSET_DECODE_NO_MEMORY;
    }
    *set = decoded;
    return ROWSET_DECODED;
}
