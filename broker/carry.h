/* What gossip sends over links, and what it wants to know of them. The broker passes packets on as they are. */
#ifndef BROKER_CARRY_H
#define BROKER_CARRY_H

#include "broker/link.h"

enum {
    CARRY_QUEUE_MAX = 256 * 1024, /* bytes that wait for one link; the newest take the place of the oldest */
    CARRY_ARRIVED_MAX = 1 << 20,  /* bytes that wait to be fetched, of all links */
    CARRY_FRAME_BYTES = 16 * 1024 /* a frame is closed once it holds this much */
};

/* Packets in the order in which they came. */
struct carried {
    struct carried *next;
    struct peer_id peer;
    size_t size;
    uint8_t bytes[];
};

/* A link is up or no more: the caller is to be told. */
void carry_changed(struct federation *federation);
/* A dial to an address was answered, by the holder of this key. */
void carry_found(struct federation *federation, const struct link *link, const struct peer_id *peer);
void carry_on_frame(struct federation *federation, struct link *link, struct frame *frame);
/* The next frame of packets into link->out; false if none waits. */
bool carry_next(struct federation *federation, struct link *link);
void carry_drop(struct link *link);
/* A link that is used for gossip alone came up: if there are too many, that which was used longest ago ends. */
void carry_make_room(struct federation *federation);
void carry_deinit(struct federation *federation);

#endif
