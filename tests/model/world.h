/* One owner and three replicas of its log: the registry's own code, and around it only what a gossip adds (epochs, the
 * newest head, who serves what). Small enough that every order of events can be tried.
 *
 * A message is an object that the owner once signed, or a chunk of such a checkpoint: whatever was signed can come to
 * any replica at any later time, any number of times, in any order, or never. So nothing need be remembered of the
 * network, and losing, repeating and reordering are all in it.
 */
#ifndef TESTS_MODEL_WORLD_H
#define TESTS_MODEL_WORLD_H

#include "gossip/transfer.h"

#define MODEL_REPLICAS 3
#define MODEL_WRITES 5
#define MODEL_KEYS 3
#define MODEL_LIVES 3 /* the first, one after a crash, and the epoch raised above an earlier one */
#define MODEL_HEADS 12

/* What may happen, and how often. */
struct model_bounds {
    const char *script; /* writes: lower case puts the key, upper case deletes it */
    int replicas, checkpoints, crashes, owner_crashes;
    bool loses_disk; /* the owner's second life begins with the epoch of the first */
};

struct model_replica {
    struct registry *registry;
    struct transfers transfers;
    uint64_t epoch;
    int head; /* the newest it was given; -1 none */
};

struct model_head {
    struct head head;
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size;
    struct checkpoint *base; /* NULL: the empty beginning */
};

/* An entry that was signed, and by an independent count what its owner showed then. */
struct model_entry {
    struct log_entry *entry;
    uint64_t epoch;
    uint8_t chain[8];
    unsigned keys;
};

struct model {
    const struct model_bounds *bounds;
    struct model_replica replicas[MODEL_REPLICAS];
    struct registry *owner;
    bool owner_alive;
    uint64_t epoch, incarnation;
    unsigned keys; /* what the owner shows */
    int writes, checkpoints, crashes, owner_crashes;
    struct model_entry signed_entries[MODEL_WRITES * 2];
    int entry_count;
    struct model_head heads[MODEL_HEADS];
    int head_count;
};

void model_begin(struct model *model, const struct model_bounds *bounds);
void model_end(struct model *model);
void model_copy(const struct model *from, struct model *to);
/* Of all that the future depends on; replicas are alike, so their order does not count. */
uint64_t model_hash(const struct model *model);

/* Does the nth thing that can happen now. False: there are not so many. It may change nothing. */
bool model_do(struct model *model, int nth);
/* What it is, for people. */
void model_name(const struct model *model, int nth, char text[80]);

/* NULL, or what must never be. */
const char *model_fault(const struct model *before, const struct model *after);
/* Lets messages flow between those who are alive, as repair does, until nothing changes; what does not agree then. */
const char *model_converge(struct model *model);

#endif
