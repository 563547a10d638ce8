/* What the parts of the daemon share: the loop, the node on it, and each other.
 *
 * Rules:
 *  1. After calling into node_broker() or node_gossip() (input, ready, closed, written), call server_pump(). It is cheap.
 *     node_ports call out of it: never call server_pump() from within one (web_client_ready, web_link_ready, web_dial);
 *     remember the handle there, or ask lws for a writable callback, and act later.
 *  2. Whoever opened a handle in the broker owns it: clients.c those of TCP, web those of WebSockets and links. Each keeps
 *     its own hash from handle to connection; server asks web first.
 *  3. The loop turns: input is read, then, just before the loop would sleep, a uv_prepare callback flushes what became ready
 *     (one write per client and turn) and sets the timer to node_deadline_ms().
 *  4. A part has X_new(server, ...), which listens; X_stop(), which begins to close all its handles; X_free() after the loop ended.
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <uv.h>

#include "daemon/config.h"
#include "daemon/identity.h"
#include "daemon/log.h"
#include "daemon/node.h"

struct clients;
struct datagrams;
struct resolver;
struct store;
struct web;

#define SERVER_ERROR_MAX 400u /* bytes of a one-line error that names the remedy */

struct server {
    uv_loop_t *loop;
    const struct config *config;
    const struct identity *identity;
    struct log *log;
    struct node *node;
    struct store *store;
    struct clients *clients;     /* MQTT over TCP */
    struct datagrams *datagrams; /* gossip; NULL for a broker alone */
    struct resolver *resolver;   /* bootstrap names; NULL for a broker alone */
    struct web *web;             /* WebSocket, links, admin */
    uint64_t started_ms;         /* server_now_ms() at start */
    uint64_t epoch;
    bool ready;   /* all listeners and the store serve (/readyz) */
    bool leaving; /* SIGTERM came: no new clients, dials, or links */

    uv_prepare_t prepare;
    uv_timer_t timer; /* node_deadline_ms() */
    uv_signal_t sigterm, sigint, sighup;
    uv_timer_t leave_timer;
    bool ended;
};

/* The loop's time: monotonic milliseconds, the same throughout one turn of the loop. */
uint64_t server_now_ms(const struct server *server);
/* The system's clock, milliseconds since 1970: for token expiry and stamps only. */
int64_t server_wall_ms(void);
/* Hands over what the cores have made: node_pump(). */
void server_pump(struct server *server);

/* Runs until a signal ends it. Returns the exit status; error holds a line for people if that is not 0. Everything is freed. */
int server_run(const struct config *config, const struct identity *identity, struct log *log, char error[SERVER_ERROR_MAX]);

/* May this client connect? For broker_questions (context: struct server). */
uint8_t server_may_connect(void *context, bool from_loopback, const char *client_id, size_t client_id_size, const char *user_name,
                           size_t user_name_size, const void *password, size_t password_size);

#endif
