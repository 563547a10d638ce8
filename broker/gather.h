/* Inside broker/: who a topic's publications reach, from the subscription tree. */
#ifndef BROKER_GATHER_H
#define BROKER_GATHER_H

#include "broker/routes.h"

/* Working memory, kept from one topic to the next; zero at first. */
struct gather {
    uint64_t number; /* marks the subscribers met in this walk (subscriber.seen) */
    struct gathered *met;
    struct found_identifier *found;
    uint32_t met_count, met_capacity;
    uint32_t found_count, found_capacity;
    const char *topic; /* of this walk */
    size_t topic_size;
    bool failed;
};
void gather_deinit(struct gather *gather);

/* Walks the tree. Returns -1 when memory is short. */
int gather_topic(struct gather *gather, const struct subs *subs, const char *topic, size_t size);
/* Bytes that receivers and identifiers take. */
size_t gather_size(const struct gather *gather);
/* Writes them into the route's block, which must have room. */
void gather_write(const struct gather *gather, struct route *route);

#endif
