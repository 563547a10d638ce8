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

/* Closes everything; it is freed in the next turns of the loop. NULL is fine. */
void datagrams_close(struct datagrams *datagrams);

/* The loop's address as gossip's. An IPv4 address mapped into IPv6 becomes family 4, so that a peer has one
 * address whatever socket it came through. False for other families. */
bool datagrams_address_from(const struct sockaddr *from, struct gossip_address *to);

#endif
