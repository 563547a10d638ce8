/* Many filters as one tree of their levels: `site/dev/17` is three nodes. Finding, adding and taking away a level costs
 * the same however many there are.
 *
 * Nodes are named by numbers that stay good while they live; 0 is none, LEVELS_ROOT the root, whose children are the
 * first levels. A node is 48 bytes and 4 of the hash table, and a level longer than LEVELS_INSIDE bytes its own. No
 * call moves or rehashes more than a few nodes (linear hashing: Litwin 1980), so none is long. The hash is seeded:
 * strangers choose the levels.
 */
#ifndef GOSSIP_LEVELS_H
#define GOSSIP_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEVELS_ROOT 1u
#define LEVELS_INSIDE 16u /* bytes of a level that need no allocation of their own */

struct level_node {
    uint32_t parent;
    uint32_t chain;          /* same bucket, or the next free node */
    uint32_t next, previous; /* siblings, the newest first */
    uint32_t child;          /* the newest */
    uint32_t here;           /* filters that end here */
    uint32_t below;          /* filters that end here or below */
    uint16_t size;           /* bytes of the level */
    uint8_t mark, plan;      /* the owner's */
    union {
        char inside[LEVELS_INSIDE];
        char *outside;
    } text;
};

struct levels {
    uint64_t seed;
    struct level_node **chunks;
    uint32_t chunk_count, chunk_room;
    uint32_t free_node;  /* the first of the free ones; 0 none */
    uint32_t node_count; /* in use, the root too */
    uint32_t **segments; /* of buckets */
    uint32_t segment_count, segment_room;
    uint32_t bucket_count;
    size_t bytes; /* allocated */
};

/* A part of a path; borrowed. */
struct level {
    const char *text;
    uint32_t size;
};

void levels_init(struct levels *levels, uint64_t seed);
void levels_free(struct levels *levels);

/* The root is there once anything was. A pointer is good as long as its node. */
struct level_node *levels_node(const struct levels *levels, uint32_t at);
struct level levels_level(const struct level_node *node);
/* 0 if there is none. */
uint32_t levels_find(const struct levels *levels, uint32_t parent, struct level level);
/* Finds or makes it; 0 when memory is short. parent may be LEVELS_ROOT before the root is there. */
uint32_t levels_make(struct levels *levels, uint32_t parent, struct level level);
/* Frees a node without children where no filter ends; returns its parent, or 0 when nothing but the root was left,
 * which is freed too. */
uint32_t levels_remove(struct levels *levels, uint32_t at);
/* More (or fewer) filters end here. */
void levels_count(struct levels *levels, uint32_t at, int64_t more);

#endif
