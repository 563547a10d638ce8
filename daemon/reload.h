/* SIGHUP: the certificates, and which topics may cross to other brokers, are read anew. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

struct server;

void reload(struct server *server);

#endif
