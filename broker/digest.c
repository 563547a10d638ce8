#include "broker/digest.h"

#include "broker/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET_BITS_MAX = 20, INSERTED_MAX = 16 };

void digest_init(struct digest *digest, uint64_t key) {
    *digest = (struct digest){.key = key};
}

void digest_deinit(struct digest *digest) {
    free(digest->items);
    *digest = (struct digest){.key = digest->key};
}

uint64_t digest_topic(const struct digest *digest, const char *topic, size_t size) {
    return hash_bytes(digest->key, topic, size);
}

static uint64_t value_of(const struct digest_item *item) {
    uint8_t stamp[DIGEST_ITEM_SIZE];
    digest_put_item(stamp, item);
    return hash_bytes(item->topic, stamp + 8, sizeof stamp - 8);
}

bool digest_add(struct digest *digest, const char *topic, size_t size, const struct stamp *stamp, bool counts) {
    if (digest->count == digest->capacity) {
        size_t capacity = digest->capacity ? digest->capacity * 2 : DIGEST_LIST_MAX;
        struct digest_item *items = realloc(digest->items, capacity * sizeof *items);
        if (!items) return false;
        digest->items = items;
        digest->capacity = capacity;
    }
    struct digest_item *item = &digest->items[digest->count++];
    *item = (struct digest_item){
        .topic = digest_topic(digest, topic, size), .wall_ms = stamp->wall_ms, .count = stamp->count};
    item->sum = counts ? value_of(item) : 0;
    return true;
}

static int by_topic(const void *a, const void *b) {
    const struct digest_item *one = a, *other = b;
    return (one->topic > other->topic) - (one->topic < other->topic);
}

static void sort(struct digest_item *items, size_t count) {
    if (count > INSERTED_MAX) {
        qsort(items, count, sizeof *items, by_topic);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct digest_item item = items[i];
        size_t at = i;
        for (; at > 0 && items[at - 1].topic > item.topic; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

static uint32_t bucket_of(const struct digest_item *item, unsigned bits) {
    return (uint32_t)(item->topic >> (64 - bits));
}

/* Swaps each item into its bucket (American flag sort; McIlroy, Bostic, McIlroy 1993). next: where the next one of each
 * bucket goes, at last the end of it; ends: the same from the beginning. */
static void spread(struct digest *digest, uint32_t *next, uint32_t *ends, unsigned bits) {
    uint32_t buckets = 1u << bits, begin = 0;
    for (size_t i = 0; i < digest->count; i++)
        ends[bucket_of(&digest->items[i], bits)]++;
    for (uint32_t bucket = 0; bucket < buckets; begin = ends[bucket++]) {
        next[bucket] = begin;
        ends[bucket] += begin;
    }
    for (uint32_t bucket = 0; bucket < buckets; bucket++) {
        while (next[bucket] < ends[bucket]) {
            struct digest_item item = digest->items[next[bucket]];
            for (uint32_t home; (home = bucket_of(&item, bits)) != bucket;) {
                struct digest_item *place = &digest->items[next[home]++], other = *place;
                *place = item;
                item = other;
            }
            digest->items[next[bucket]++] = item;
        }
    }
}

/* Hashes are spread evenly, so buckets have few items each; but whoever knows the key may have chosen topics. */
static void order(struct digest *digest) {
    unsigned bits = 1;
    if (digest->count <= INSERTED_MAX) {
        sort(digest->items, digest->count);
        return;
    }
    while (bits < BUCKET_BITS_MAX && digest->count >> bits > INSERTED_MAX / 2)
        bits++;
    uint32_t buckets = 1u << bits, begin = 0, *next = calloc((size_t)2 * buckets, sizeof *next);
    if (!next) {
        qsort(digest->items, digest->count, sizeof *digest->items, by_topic);
        return;
    }
    spread(digest, next, next + buckets, bits);
    for (uint32_t bucket = 0; bucket < buckets; begin = next[bucket++])
        sort(digest->items + begin, next[bucket] - begin);
    free(next);
}

void digest_settle(struct digest *digest) {
    size_t kept = 0;
    order(digest);
    for (size_t i = 0; i < digest->count; i++) {
        if (kept > 0 && digest->items[kept - 1].topic == digest->items[i].topic) continue;
        digest->items[kept] = digest->items[i];
        if (kept > 0) digest->items[kept].sum += digest->items[kept - 1].sum;
        kept++;
    }
    digest->count = kept;
}

/* Of the items from first on the position of the first whose hash is not below this one. */
static size_t lower_bound(const struct digest *digest, size_t first, size_t end, uint64_t topic) {
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (digest->items[middle].topic < topic)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

struct digest_item *digest_find(const struct digest *digest, uint64_t topic) {
    size_t at = lower_bound(digest, 0, digest->count, topic);
    return at < digest->count && digest->items[at].topic == topic ? &digest->items[at] : NULL;
}

bool digest_item_has(const struct digest_item *item, uint64_t wall_ms, uint32_t count) {
    return item->wall_ms > wall_ms || (item->wall_ms == wall_ms && item->count >= count);
}

bool digest_item_is(const struct digest_item *item, const struct stamp *stamp) {
    return item->wall_ms == stamp->wall_ms && item->count == stamp->count;
}

/* ---- nodes ---- */

/* -1 if it is none. */
static int depth_of(uint64_t node) {
    for (int depth = 0; depth <= DIGEST_DEPTH_MAX; depth++)
        if (node >> (depth * DIGEST_BITS) == 1) return depth;
    return -1;
}

bool digest_node_valid(uint64_t node) {
    return depth_of(node) >= 0;
}

bool digest_node_is_last(uint64_t node) {
    return depth_of(node) == DIGEST_DEPTH_MAX;
}

uint64_t digest_child(uint64_t node, unsigned index) {
    return node << DIGEST_BITS | index;
}

/* The lowest hash of a node, and the highest. */
static void bounds_of(uint64_t node, uint64_t *low, uint64_t *high) {
    int depth = depth_of(node);
    assert(depth >= 0);
    if (depth == 0) {
        *low = 0;
        *high = UINT64_MAX;
        return;
    }
    int below = 64 - depth * DIGEST_BITS;
    *low = node << below; /* the first bit falls out */
    *high = *low | (((uint64_t)1 << below) - 1);
}

static size_t upper_bound(const struct digest *digest, size_t first, uint64_t high) {
    return high == UINT64_MAX ? digest->count : lower_bound(digest, first, digest->count, high + 1);
}

size_t digest_range(const struct digest *digest, uint64_t node, size_t *first) {
    uint64_t low, high;
    bounds_of(node, &low, &high);
    *first = lower_bound(digest, 0, digest->count, low);
    return upper_bound(digest, *first, high) - *first;
}

static uint64_t sum_below(const struct digest *digest, size_t end) {
    return end > 0 ? digest->items[end - 1].sum : 0;
}

void digest_sums(const struct digest *digest, uint64_t node, uint64_t sums[DIGEST_FAN]) {
    size_t first, end = digest_range(digest, node, &first);
    end += first;
    for (unsigned i = 0; i < DIGEST_FAN; i++) {
        uint64_t low, high;
        bounds_of(digest_child(node, i), &low, &high);
        size_t next = i + 1 < DIGEST_FAN ? lower_bound(digest, first, end, high + 1) : end;
        sums[i] = sum_below(digest, next) - sum_below(digest, first);
        first = next;
    }
}

/* ---- bytes ---- */

static uint8_t *put(uint8_t *at, uint64_t number, unsigned size) {
    for (unsigned i = size; i-- > 0; number >>= 8)
        at[i] = (uint8_t)number;
    return at + size;
}

static uint64_t get(const uint8_t *at, unsigned size) {
    uint64_t number = 0;
    for (unsigned i = 0; i < size; i++)
        number = number << 8 | at[i];
    return number;
}

uint8_t *digest_put(uint8_t *at, uint64_t number) {
    return put(at, number, 8);
}

uint64_t digest_get(const uint8_t *at) {
    return get(at, 8);
}

uint8_t *digest_put_item(uint8_t *at, const struct digest_item *item) {
    return put(put(put(at, item->topic, 8), item->wall_ms, 8), item->count, 4);
}

struct digest_item digest_get_item(const uint8_t *at) {
    return (struct digest_item){.topic = get(at, 8), .wall_ms = get(at + 8, 8), .count = (uint32_t)get(at + 16, 4)};
}
