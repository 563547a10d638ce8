/* Inside broker/: the way of a publication as far as one broker sees it: what both ends see is in why_path.c, where it
 * is published in why_from.c, where it is subscribed to in why_to.c. */
#ifndef BROKER_WHY_PATH_H
#define BROKER_WHY_PATH_H

#include "broker/link.h"
#include "broker/why_steps.h"

/* The way from here to the peer, or from the peer to here. */
struct why_path {
    const struct federation *federation;
    const struct peer *peer; /* NULL if nobody of that id is known, or both ends are here */
    const char *topic;
    size_t size;
    struct why_steps *steps;
};

/* Adds what is known here; at most WHY_TOLD_MAX steps, none if this is neither broker. The topic is valid. */
void why_tell(const struct federation *federation, const struct inquiry *inquiry, struct why_steps *steps);

void why_tell_from(const struct why_path *path);
void why_tell_to(const struct why_path *path);
/* Both ends are this broker. */
void why_tell_here(const struct why_path *path);

/* That there is a link with the peer; or that there is none, since when, and why. */
void why_tell_link(const struct why_path *path);
/* Does the policy here let the topic go that way? What it says if not. */
bool why_tell_policy(const struct why_path *path, enum policy_kind way);
/* Why there was no link last; empty if there was nothing. */
const char *why_unlinked(const struct peer *peer);

static inline bool why_is_linked(const struct peer *peer) {
    return peer->link && peer->link->state == LINK_UP;
}

#endif
