/* What a peer that joins is to get of what is retained here: what it lacks, found by comparing with what it holds (G6).
 * stock.h is the other end; the frames are in PROTOCOL.md.
 *
 * The peer says with its joins what it holds. From then on it is a subscriber, so what changes is sent as it is
 * published; what was retained before is compared in a number of frames, and what it lacks goes out as the snapshot,
 * behind which the joins are confirmed. A peer that says nothing gets all of it at once (group.c).
 */
#ifndef BROKER_COMPARE_H
#define BROKER_COMPARE_H

#include "broker/link.h"

enum {
    COMPARISONS_MAX = 1024,         /* of a link at one time; with more, joins are answered by all there is */
    COMPARISON_FRAMES = 16,         /* on their way to a peer in one of them, */
    COMPARE_FRAMES_MAX = 64,        /* and in all together, */
    COMPARE_FRAME_BYTES = 64 * 1024 /* of about this size at most */
};

/* The peer says what it holds of what its next frame of joins asks for. */
void compare_holds(struct federation *federation, struct link *link, const struct frame_digests *said);
/* This is that frame: begins a comparison, of all that matches it now. Returns its mark; 0 if there is none, and the
 * peer needs nothing or is to get all of it. */
uint32_t compare_new(struct federation *federation, struct link *link, const struct frame *joins);
/* The peer has entered the tree for those of them that may be joined, with this mark (group_join). */
void compare_begin(struct federation *federation, struct link *link, uint32_t mark);
/* A join with this mark has ended, or has another one. NULL is fine: then all have ended. */
void compare_left(struct federation *federation, struct link *link, uint32_t mark);
/* The peer answers. */
void compare_answered(struct federation *federation, struct link *link, const struct frame_digests *answer);
/* Some have ended: those that waited for it may ask on. */
void compare_go_on(struct federation *federation, struct link *link);
/* This message goes out in some snapshot, and so in no other. NULL is fine. */
void compare_sent(struct link *link, const struct message *message);
/* The link has ended. True if something was not compared to its end. */
bool compare_end(struct federation *federation, struct link *link);

#endif
