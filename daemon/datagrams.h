/* Gossip's datagrams over UDP, on the addresses of listen.peers. */
#ifndef DAEMON_DATAGRAMS_H
#define DAEMON_DATAGRAMS_H

#include <stdint.h>

#include "daemon/server.h"

struct datagrams;

/* Binds one socket per listener of kind peers. NULL on failure, and then error is one line with the remedy; what was
 * opened closes in the next turns of the loop. */
struct datagrams *datagrams_new(struct server *server, char error[SERVER_ERROR_MAX]);

/* Sends from a socket of the address's family, at once or not at all: a datagram that does not fit into the kernel's
 * buffer is lost like any other. */
void datagrams_send(struct datagrams *datagrams, const struct gossip_address *to, const uint8_t *bytes, size_t size);

/* ---- for multicast.h ---- */

/* Is there a socket by which that family can be sent? */
bool datagrams_has_family(const struct datagrams *datagrams, bool v6);
/* Is there one that sends from this address of an interface: bound to it, or to any and the address is not of
 * loopback? */
bool datagrams_may_send_from(const struct datagrams *datagrams, const struct gossip_address *address, bool is_loopback);
/* Sends to a group by the interface with this index, which has that address. */
void datagrams_send_by(struct datagrams *datagrams, unsigned interface, const struct gossip_address *address,
                       const struct gossip_address *group, const uint8_t *bytes, size_t size);

/* Closes everything; it is freed in the next turns of the loop. NULL is fine. */
void datagrams_close(struct datagrams *datagrams);

/* The loop's address as gossip's. An IPv4 address mapped into IPv6 becomes family 4, so that a peer has one
 * address whatever socket it came through. False for other families. */
bool datagrams_address_from(const struct sockaddr *from, struct gossip_address *to);

#endif
