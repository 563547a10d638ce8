/* The bootstrap list and our own name: names made addresses by the system's resolver, again every RESOLVER_AGAIN_MS,
 * for ever; every RESOLVER_RETRY_MS those that are unknown, and all while nobody else is alive. A lookup that hangs
 * keeps back only its own name, and those that wait for a thread of the loop's pool. */
#ifndef DAEMON_RESOLVER_H
#define DAEMON_RESOLVER_H

#include "daemon/server.h"

#define RESOLVER_AGAIN_MS 60000u
#define RESOLVER_RETRY_MS 5000u

struct resolver;

/* Gives gossip the numeric addresses at once and those of names, our own among them, as answers come. NULL when memory
 * is short. */
struct resolver *resolver_new(struct server *server);

/* Asks for what is due; each RESOLVER_RETRY_MS by itself. */
void resolver_look(struct resolver *resolver);

/* Stops; it is freed in the next turns of the loop, when the last answer is here. NULL is fine. */
void resolver_close(struct resolver *resolver);

/* The address others are to use for us, if it is configured as one: federation.advertise, else the first peers
 * listener; family 0: nothing is known (0.0.0.0), or it is a name, which the resolver looks up, tells gossip, and
 * follows. */
struct gossip_address resolver_advertise(const struct config *config);

#endif
