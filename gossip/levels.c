#include "gossip/levels.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 64u    /* nodes */
#define SEGMENT 256u /* buckets */

void levels_init(struct levels *levels, uint64_t seed) {
    memset(levels, 0, sizeof *levels);
    levels->seed = seed;
}

static void free_text(struct levels *levels, struct level_node *node) {
    if (node->size <= LEVELS_INSIDE) return;
    free(node->text.outside);
    levels->bytes -= node->size;
}

static void release(struct levels *levels) {
    for (uint32_t i = 0; i < levels->chunk_count; i++)
        free(levels->chunks[i]);
    for (uint32_t i = 0; i < levels->segment_count; i++)
        free(levels->segments[i]);
    free(levels->chunks);
    free(levels->segments);
    levels_init(levels, levels->seed);
}

void levels_free(struct levels *levels) {
    /* What is free has the size 0. */
    for (uint32_t i = 0; i < levels->chunk_count; i++)
        for (uint32_t j = 0; j < CHUNK; j++)
            free_text(levels, &levels->chunks[i][j]);
    release(levels);
}

struct level_node *levels_node(const struct levels *levels, uint32_t at) {
    return &levels->chunks[at / CHUNK][at % CHUNK];
}

struct level levels_level(const struct level_node *node) {
    return (struct level){node->size <= LEVELS_INSIDE ? node->text.inside : node->text.outside, node->size};
}

/* ---- the hash table ---- */

/* Steele, Lea, Flood 2014 (splitmix64). */
static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t hash(const struct levels *levels, uint32_t parent, struct level level) {
    uint64_t h = mix(levels->seed ^ ((uint64_t)parent << 32 | level.size)), word;
    size_t i = 0;
    for (; i + 8 <= level.size; i += 8) {
        memcpy(&word, level.text + i, 8);
        h = mix(h ^ word) + levels->seed;
    }
    word = 0;
    if (i < level.size) memcpy(&word, level.text + i, level.size - i);
    return mix(h ^ word);
}

static uint32_t *bucket(const struct levels *levels, uint32_t index) {
    return &levels->segments[index / SEGMENT][index % SEGMENT];
}

/* The buckets are a power of two, and those of the next power that were split off already. */
static uint32_t *bucket_of(const struct levels *levels, uint64_t hashed) {
    uint32_t power = 1;
    while (power <= levels->bucket_count / 2)
        power *= 2;
    uint32_t index = (uint32_t)hashed & (2 * power - 1);
    return bucket(levels, index < levels->bucket_count ? index : index & (power - 1));
}

/* The array with room for twice as many; NULL when memory is short, and nothing changed. */
static void *more_room(struct levels *levels, void *items, uint32_t *room, size_t item_size) {
    uint32_t larger = *room ? *room * 2 : 8;
    void *grown = realloc(items, larger * item_size);
    if (!grown) return NULL;
    levels->bytes += (larger - *room) * item_size;
    *room = larger;
    return grown;
}

static bool add_segment(struct levels *levels) {
    if (levels->segment_count == levels->segment_room) {
        uint32_t **segments = more_room(levels, levels->segments, &levels->segment_room, sizeof *segments);
        if (!segments) return false;
        levels->segments = segments;
    }
    uint32_t *segment = calloc(SEGMENT, sizeof *segment);
    if (!segment) return false;
    levels->segments[levels->segment_count++] = segment;
    levels->bytes += SEGMENT * sizeof *segment;
    return true;
}

/* One bucket more: half of what is in one goes there. Without memory the chains become longer instead. */
static void split_bucket(struct levels *levels) {
    uint32_t fresh = levels->bucket_count;
    if (fresh / SEGMENT == levels->segment_count && !add_segment(levels)) return;
    uint32_t power = 1;
    while (power <= fresh / 2)
        power *= 2;
    uint32_t *from = bucket(levels, fresh - power), *to = bucket(levels, fresh);
    uint32_t at = *from, next;
    *from = 0;
    levels->bucket_count++;
    for (; at != 0; at = next) {
        struct level_node *node = levels_node(levels, at);
        next = node->chain;
        bool moves = hash(levels, node->parent, levels_level(node)) & power;
        node->chain = moves ? *to : *from;
        *(moves ? to : from) = at;
    }
}

uint32_t levels_find(const struct levels *levels, uint32_t parent, struct level level) {
    if (levels->bucket_count == 0) return 0;
    uint32_t at = *bucket_of(levels, hash(levels, parent, level));
    while (at != 0) {
        const struct level_node *node = levels_node(levels, at);
        if (node->parent == parent && node->size == level.size &&
            (level.size == 0 || memcmp(levels_level(node).text, level.text, level.size) == 0))
            return at;
        at = node->chain;
    }
    return 0;
}

/* ---- nodes ---- */

static bool add_chunk(struct levels *levels) {
    if (levels->chunk_count == levels->chunk_room) {
        struct level_node **chunks = more_room(levels, levels->chunks, &levels->chunk_room, sizeof *chunks);
        if (!chunks) return false;
        levels->chunks = chunks;
    }
    struct level_node *chunk = levels->chunk_count < UINT32_MAX / CHUNK ? calloc(CHUNK, sizeof *chunk) : NULL;
    if (!chunk) return false;
    levels->chunks[levels->chunk_count] = chunk;
    levels->bytes += CHUNK * sizeof *chunk;
    for (uint32_t i = CHUNK; i-- > 0;) {
        uint32_t at = levels->chunk_count * CHUNK + i;
        if (at == 0) continue; /* none */
        chunk[i].chain = levels->free_node;
        levels->free_node = at;
    }
    levels->chunk_count++;
    return true;
}

static uint32_t take_node(struct levels *levels) {
    if (levels->free_node == 0 && !add_chunk(levels)) return 0;
    uint32_t at = levels->free_node;
    struct level_node *node = levels_node(levels, at);
    levels->free_node = node->chain;
    levels->node_count++;
    memset(node, 0, sizeof *node);
    return at;
}

static void give_node(struct levels *levels, uint32_t at) {
    struct level_node *node = levels_node(levels, at);
    free_text(levels, node);
    memset(node, 0, sizeof *node);
    node->chain = levels->free_node;
    levels->free_node = at;
    levels->node_count--;
}

static bool start(struct levels *levels) {
    if (levels->bucket_count == 0) {
        if (!add_segment(levels)) return false;
        levels->bucket_count = 1;
    }
    return levels->node_count > 0 || take_node(levels) == LEVELS_ROOT;
}

static bool set_text(struct levels *levels, struct level_node *node, struct level level) {
    char *to = node->text.inside;
    if (level.size > LEVELS_INSIDE) {
        to = node->text.outside = malloc(level.size);
        if (!to) return false;
        levels->bytes += level.size;
    }
    if (level.size > 0) memcpy(to, level.text, level.size);
    node->size = (uint16_t)level.size;
    return true;
}

static uint32_t make(struct levels *levels, uint32_t parent, struct level level) {
    uint32_t at = start(levels) ? take_node(levels) : 0;
    if (at == 0) return 0;
    struct level_node *node = levels_node(levels, at), *above = levels_node(levels, parent);
    if (!set_text(levels, node, level)) {
        give_node(levels, at);
        return 0;
    }
    node->parent = parent;
    node->next = above->child;
    if (node->next) levels_node(levels, node->next)->previous = at;
    above->child = at;
    uint32_t *head = bucket_of(levels, hash(levels, parent, level));
    node->chain = *head;
    *head = at;
    if (levels->node_count > levels->bucket_count) split_bucket(levels);
    return at;
}

uint32_t levels_make(struct levels *levels, uint32_t parent, struct level level) {
    uint32_t at = levels_find(levels, parent, level);
    if (at == 0) at = make(levels, parent, level);
    if (at == 0 && levels->node_count <= 1) release(levels); /* nothing came of the beginning */
    return at;
}

static void unlink_node(struct levels *levels, uint32_t at) {
    struct level_node *node = levels_node(levels, at);
    uint32_t *link = bucket_of(levels, hash(levels, node->parent, levels_level(node)));
    while (*link != at)
        link = &levels_node(levels, *link)->chain;
    *link = node->chain;
    if (node->next) levels_node(levels, node->next)->previous = node->previous;
    if (node->previous)
        levels_node(levels, node->previous)->next = node->next;
    else
        levels_node(levels, node->parent)->child = node->next;
}

uint32_t levels_remove(struct levels *levels, uint32_t at) {
    const struct level_node *node = levels_node(levels, at);
    assert(at > LEVELS_ROOT && node->child == 0 && node->here == 0 && node->below == 0);
    uint32_t parent = node->parent;
    unlink_node(levels, at);
    give_node(levels, at);
    if (levels->node_count > 1) return parent;
    release(levels); /* what many had needed goes back */
    return 0;
}

void levels_count(struct levels *levels, uint32_t at, int64_t more) {
    struct level_node *node = levels_node(levels, at);
    node->here = (uint32_t)((int64_t)node->here + more);
    for (;; at = node->parent) {
        node = levels_node(levels, at);
        node->below = (uint32_t)((int64_t)node->below + more);
        if (at == LEVELS_ROOT) return;
    }
}
