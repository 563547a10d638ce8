/* Everything that runs on libwebsockets: one context on the daemon's loop, with MQTT over WebSocket (websocket.h), peer links (links.h)
 * and the admin port (admin.h). This is the door for the rest of the daemon.
 *
 * web_client_ready, web_link_ready and web_dial are the node's ports: they are called while the node pumps, only mark what is to be done,
 * and never call back into node or broker.
 */
#ifndef DAEMON_WEB_H
#define DAEMON_WEB_H

#include <stdbool.h>
#include <stddef.h>

#include "broker/broker.h"
#include "gossip/gossip.h"

struct server;
struct web;

#define WEB_REASON_SIZE 256u

/* Opens all listeners of kinds ws, peers and admin of server->config. The server is borrowed until web_free()'s on_freed. NULL on failure, and then reason is one line
 * that names the address and the remedy. Needs server->loop, config, log; the node only once the loop runs. */
struct web *web_new(struct server *server, char reason[WEB_REASON_SIZE]);

/* No new connection is accepted from now on. Open ones stay. */
void web_stop_listening(struct web *web);

/* Closes what is open and frees web in the next turns of the loop; on_freed (may be NULL) is called when nothing of it is left on the loop. Clients and
 * links that were open are reported to the node as closed before. NULL is fine: on_freed is called at once. */
void web_free(struct web *web, void (*on_freed)(void *context), void *context);

/* This client or link has output or has ended. False if the handle is not one of ours. */
bool web_client_ready(struct web *web, broker_handle client);
bool web_link_ready(struct web *web, broker_handle link);

/* Starts to dial. What comes of it reaches the node later, from the loop: broker_link_ready() or broker_link_closed(). */
void web_dial(struct web *web, broker_handle link, const struct gossip_address *to, const char *peer_name);

/* The port that the index-th listener of a kind got, for configurations that say port 0. 0 past the end. */
enum web_kind { WEB_WEBSOCKET, WEB_PEERS, WEB_ADMIN };
unsigned web_port(const struct web *web, enum web_kind kind, size_t index);

struct web_counters {
    uint64_t accepted;          /* connections */
    uint64_t refused_full;      /* closed at once: too many open */
    uint64_t open;              /* now */
    uint64_t handshakes_failed; /* TLS or WebSocket, and dials that came to nothing */
};
void web_read_counters(const struct web *web, struct web_counters *out);

#endif
