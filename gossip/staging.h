/* A checkpoint on its way: chunks in order, with a small window for those that came early. Each was checked against the
 * root before it is given. Memory grows with what arrived, never with what was promised. */
#ifndef GOSSIP_STAGING_H
#define GOSSIP_STAGING_H

#include "gossip/checkpoint.h"

#define STAGING_WINDOW 8u

struct staging {
    bool used;
    struct head head; /* verified; says T, size, root and chain */
    uint8_t head_bytes[HEAD_SIZE_MAX];
    size_t head_size;
    uint8_t *bytes;
    size_t size, room;
    uint8_t *early[STAGING_WINDOW]; /* chunks next + 1 + i */
    uint64_t retry_ms;              /* when to ask again, if nothing comes */
    bool asked_by_link;             /* the last time */
    uint64_t asked_up_to;           /* chunks below were asked for, */
    struct member_id asked_of;      /* of this member last */
};

void staging_free(struct staging *staging);
uint64_t staging_chunks(const struct staging *staging); /* in all */
uint64_t staging_next(const struct staging *staging);   /* the first not in bytes */
bool staging_complete(const struct staging *staging);
/* Is it of use now? So that what comes again is not even checked. */
bool staging_wants(const struct staging *staging, uint64_t index);
enum staging_result { STAGING_TAKEN, STAGING_USELESS, STAGING_NO_MEMORY };
enum staging_result staging_add(struct staging *staging, uint64_t index, const uint8_t *bytes, size_t size);

#endif
