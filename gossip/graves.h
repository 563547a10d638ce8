/* What is left of a member whose rows are gone from here: how far it had come. Nobody who was away and still holds its
 * older state can bring that back: only a higher (epoch, incarnation) passes, and its rows are shown only when they are
 * as new again as those that were shown before.
 */
#ifndef GOSSIP_GRAVES_H
#define GOSSIP_GRAVES_H

#include "gossip/gossip.h"

#define GRAVES_MAX 65536u
#define GRAVES_KEEP_MS (7u * 24 * 3600 * 1000) /* so long at least, unless more than GRAVES_MAX died meanwhile */

struct grave {
    struct member_id id;
    uint64_t epoch; /* above 0 */
    uint64_t incarnation, sequence;
    uint64_t made_ms;
};

/* A hash table with open addressing; ids are hashes already. */
struct graves {
    struct grave *slots;
    size_t count, slot_count; /* a power of two, never more than three quarters full; or 0 */
};

void graves_free(struct graves *graves);
/* NULL if there is none. Borrowed until the next change. */
const struct grave *graves_find(const struct graves *graves, const struct member_id *id);
/* Keeps the higher of each, if there is one already. False when memory is short: then it is forgotten. */
bool graves_put(struct graves *graves, const struct grave *grave);
void graves_remove(struct graves *graves, const struct member_id *id);

#endif
