/* Discovery on the local network (federation.multicast): gossip's SEEKs go out to a multicast group by every interface,
 * from the socket of listen.peers, and come in on a socket of the group's own.
 *
 * Avahi was looked at and is no fit: its daemon has to run beside us and is spoken to over D-Bus, avahi-core wants port
 * 5353 and a loop of its own, and both tell everybody on the network who is there; a SEEK tells only who has the gossip
 * key.
 */
#ifndef DAEMON_MULTICAST_H
#define DAEMON_MULTICAST_H

#include "daemon/server.h"

/* Of local scope (RFC 2365, RFC 4291 section 2.7), and sent with a TTL of 1. The IPv6 group is not of link scope, so
 * that its packets come from an address that can be answered without knowing the interface. */
#define MULTICAST_GROUP_V4 "239.255.71.17"
#define MULTICAST_GROUP_V6 "ff15::4871:17"
#define MULTICAST_PORT 7117u

struct multicast;

/* NULL when memory is short. What the system does not allow is a warning, and the rest goes on. */
struct multicast *multicast_new(struct server *server);
/* True if the address is one of the groups; then it was sent by every interface. NULL is fine. */
bool multicast_send(struct multicast *multicast, const struct gossip_address *to, const uint8_t *bytes, size_t size);
/* Stops; it is freed in the next turns of the loop. NULL is fine. */
void multicast_close(struct multicast *multicast);

#endif
