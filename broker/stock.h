/* What this broker holds of a peer's retained messages, told to the peer with the joins there, so that it sends what is
 * missing here and nothing else (G6). compare.h is the other end.
 *
 * With a join goes what is found at a glance. Who joins many topics is asked for the rest, and only then looks at all
 * of its store.
 */
#ifndef BROKER_STOCK_H
#define BROKER_STOCK_H

#include "broker/link.h"

enum {
    STOCK_MAX = 1024,           /* joins of a link that are not answered, and may be compared */
    STOCK_GLANCE = 1024,        /* topics looked at before it is asked */
    STOCK_NODES_MAX = 128,      /* asked for in one frame */
    DIGEST_ITEMS_MAX = 4 << 20, /* of all comparisons of a broker, both ends: about 128 MiB */
};

/* The frame of joins in the link's scratch is complete, and about to be sent under this number: before it goes what is
 * held, if there is anything. */
void stock_tell(struct federation *federation, struct link *link, uint32_t number);
/* One of the joins of that frame is answered, or wanted no more. */
void stock_answered(struct federation *federation, struct link *link, uint32_t number);
/* The peer has not compared it to its end yet, as it will: if it confirms a join of that frame, it is one that was
 * said, and left, before. */
bool stock_is_compared(const struct link *link, uint32_t number);
/* The peer compares, or has done so. */
void stock_compare(struct federation *federation, struct link *link, const struct frame_digests *asked);
/* The link has ended. */
void stock_end(struct federation *federation, struct link *link);

#endif
