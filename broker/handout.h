/* Publications that are for members of shared subscriptions at peers (G7): the broker a publication comes from says
 * which broker's members get it, and says so again as long as that one has not got it, if it goes. */
#ifndef BROKER_HANDOUT_H
#define BROKER_HANDOUT_H

#include "broker/peers.h"

/* What federation_offer() gathered for the peer, the caller's to free; NULL if nothing. *kept is set if it is kept. */
struct aims *handout_take(struct federation *federation, struct peer *peer, bool *kept);
/* The link is lost: what was not sent goes to members that are connected elsewhere, if there are any. */
void handout_unlinked(struct federation *federation, struct peer *peer);
/* The peer is gone: the same for what was sent at QoS 1. Of what was sent at QoS 2 it knows more when it is back. */
void handout_gone(struct federation *federation, struct peer *peer);
/* Nobody there is in this group any more: all that to whoever else is. */
void handout_ended(struct federation *federation, struct peer *peer, const char *group, size_t size);
/* Is this entry of the outbox, that has aims, still for somebody there? */
bool handout_is_for(const struct federation *federation, const struct peer *peer, const struct outbox_entry *entry);

#endif
