/* What the policy says of each peer (peer.rules), and what follows when it says something else. What may no longer
 * cross is taken back where it waits, at once. What may come from now on is joined; for what may leave the link begins
 * anew, so that the peer says all its joins, those too that it was refused. */
#ifndef BROKER_BORDER_H
#define BROKER_BORDER_H

#include "broker/peers.h"

/* It is known by this name from now on. */
void border_name(struct federation *federation, struct peer *peer, const char *name);
/* Another policy, or none. False if it says the same as the one before, which may be freed now. */
bool border_set(struct federation *federation, const struct policy *policy);

#endif
