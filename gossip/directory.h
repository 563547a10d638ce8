/* Members by id: found in O(1), and walked in the order of ids.
 *
 * Ids are bits of a SHA-256, so a sorted array with gaps is a hash table too: an id has its place in proportion to its
 * first 32 bits, and moves up only for smaller ones (linear probing that keeps the order). Ids that are no hash (an
 * unverified stranger states what it likes) make it slower by as many steps as there are strangers at most.
 */
#ifndef GOSSIP_DIRECTORY_H
#define GOSSIP_DIRECTORY_H

#include "gossip/gossip.h"

struct member;

struct directory {
    struct directory_slot {
        uint32_t prefix;
        uint32_t number; /* 1 + number of the member; 0 empty */
    } * slots;
    size_t size; /* places that ids are spread over */
    size_t room; /* and those behind, for whom is moved up */
    size_t count;
};

static inline uint32_t id_prefix(const struct member_id *id) {
    return (uint32_t)id->bytes[0] << 24 | (uint32_t)id->bytes[1] << 16 | (uint32_t)id->bytes[2] << 8 | id->bytes[3];
}

/* Where the search for an id that begins so starts. */
static inline size_t directory_home(const struct directory *directory, uint32_t prefix) {
    return (size_t)(((uint64_t)prefix * directory->size) >> 32);
}

/* How the directory reads a member's id. */
typedef const struct member_id *directory_id_of(const void *context, uint32_t number);
struct directory_ids {
    directory_id_of *id_of;
    const void *context;
};

#define DIRECTORY_NOBODY UINT32_MAX
/* The number of the member with this id, or DIRECTORY_NOBODY. */
uint32_t directory_find(const struct directory *directory, struct directory_ids ids, const struct member_id *id);
/* The id must not be there. False when memory is short. */
bool directory_add(struct directory *directory, struct directory_ids ids, const struct member_id *id, uint32_t number);
void directory_remove(struct directory *directory, struct directory_ids ids, const struct member_id *id);
/* Of those with a larger id the one with the smallest; DIRECTORY_NOBODY at the end. */
uint32_t directory_after(const struct directory *directory, struct directory_ids ids, const struct member_id *id);
/* A walk, until somebody is added or removed. A place is between two members; this one is before the first that has a
 * larger id. The steps pass over one member and return its number, or DIRECTORY_NOBODY at the end. Before all others is
 * place 0, behind them room. */
size_t directory_place_after(const struct directory *directory, struct directory_ids ids, const struct member_id *id);
uint32_t directory_next(const struct directory *directory, size_t *place);
uint32_t directory_previous(const struct directory *directory, size_t *place);
void directory_free(struct directory *directory);

#endif
