/* Everything that runs on libwebsockets: one context on the daemon's loop, with peer links (links.h) and the admin port
 * (admin.h). This is the door for the rest of the daemon.
 *
 * web_link_ready and web_dial serve the node's ports: they are called while the node pumps, only mark
 * what is to be done, and never call back into node or broker.
 */
#ifndef DAEMON_WEB_H
#define DAEMON_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/broker.h"
#include "daemon/server.h"
#include "gossip/gossip.h"

/* Opens all listeners of kinds peers and admin that server->config names (items[].ip must be numeric by now). Uses
 * server->loop, config, identity and log at once, server->node from the first turn of the loop; all are borrowed until
 * web_free(). Peer links need identity->key. NULL on failure, and then error is one line that names the address and the
 * remedy. */
struct web *web_new(struct server *server, char error[SERVER_ERROR_MAX]);

/* No new connection is accepted and none dialled from now on. Open ones stay, and the admin port goes on answering. */
void web_stop_listening(struct web *web);

/* Begins to close all of it: links that are open are reported to the node as closed, and after some turns
 * nothing of web is left on the loop. */
void web_stop(struct web *web);

/* After the loop has ended, following web_stop(). NULL is fine. */
void web_free(struct web *web);

/* This link has output or has ended. False if the handle is not one of ours. */
bool web_link_ready(struct web *web, broker_handle link);

/* Starts to dial. What comes of it reaches the node later, from the loop: broker_link_ready() or broker_link_closed().
 */
void web_dial(struct web *web, broker_handle link, const struct gossip_address *to, const char *peer_name);

/* Each turn: what was asked over the admin port and is answered by now goes out. NULL is fine. */
void web_turn(struct web *web);

/* The port that the index-th listener of a kind got (of use when the configuration says 0); 0 past the end. */
enum web_kind { WEB_PEERS, WEB_ADMIN };
#define WEB_KINDS 2u
uint16_t web_port(const struct web *web, enum web_kind kind, size_t index);

struct web_counters {
    uint64_t accepted;          /* connections */
    uint64_t refused_full;      /* of these, closed at once since too many were open */
    uint64_t open[WEB_KINDS];   /* now, dials included */
    uint64_t handshakes_failed; /* connections and dials that ended before their handshake did */
};
void web_read_counters(const struct web *web, struct web_counters *out);

#endif
