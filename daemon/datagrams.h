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

struct datagrams_counters {
    uint64_t sent, received;
    uint64_t not_sent; /* no socket of that family, no route, kernel's buffer full */
};
void datagrams_read_counters(const struct datagrams *datagrams, struct datagrams_counters *out);

/* Closes everything; it is freed in the next turns of the loop. NULL is fine. */
void datagrams_close(struct datagrams *datagrams);

/* Between the loop's addresses and gossip's. An IPv4 address mapped into IPv6 becomes family 4, so that a peer has one
 * address whatever socket it came through. False for other families. */
bool datagrams_address_from(const struct sockaddr *from, struct gossip_address *to);
/* mapped: an IPv4 address is to be sent to through a socket of family 6. */
void datagrams_address_to(const struct gossip_address *from, bool mapped, struct sockaddr_storage *to);

#endif
