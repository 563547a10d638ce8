/* Addresses to listen on: names made numbers at the start, and what to tell when one cannot be had. */
#ifndef DAEMON_LISTENING_H
#define DAEMON_LISTENING_H

#include <sys/socket.h>

#include "daemon/config.h"

/* Fills ip of every listener whose host is a name, with its first address. This waits for DNS: at the start only. A
 * host that is unknown is an error among the faults. */
void listening_resolve(struct config *config, struct config_faults *faults);

/* From the numeric text in address->ip; the port is put in. Returns the size of the socket address. */
socklen_t listening_sockaddr(const struct config_address *address, struct sockaddr_storage *out);

/* True if a socket on this "::" must leave IPv4 to another listener of the list on the same port. */
bool listening_v6only(const struct config_listeners *listeners, const struct config_address *address);

/* A socket that listens there without blocking, or minus an errno value. What it accepts has TCP_NODELAY and keep-alive
 * probes on. v6only: "::" is not for IPv4 too. */
int listening_open(const struct config_address *address, bool v6only);
/* Whether that address could be opened now, for SOCK_STREAM or SOCK_DGRAM: 0, or an errno value. Nobody can connect to
 * it meanwhile. */
int listening_probe(const struct config_address *address, bool v6only, int type);
/* The same on a unix socket, which gets that mode. A file that a process left behind is replaced; one that somebody
 * listens on is EADDRINUSE, and what is no socket is EEXIST. */
int listening_open_unix(const struct config_address *address, unsigned mode);

/* One line that names the address and the remedy, with file and line if there is a file. error is an errno value; what
 * is "listen.mqtt". */
void listening_explain(const struct config *config, const char *what, const struct config_address *address, int error,
                       char *out, size_t size);

#endif
