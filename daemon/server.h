/* What the parts of the daemon share: the loop, the node on it, and each other.
 *
 * Rules:
 *  1. After calling into node_broker() or node_gossip() (input, ready, closed, written), call server_pump(). It is
 * cheap. node_ports call out of it: never call server_pump() from within one (clients_ready, web_link_ready,
 * web_dial); remember the handle there, or ask lws for a writable callback, and act later.
 *  2. Whoever opened a handle in the broker owns it: clients those of MQTT, web those of links.
 *  3. The loop turns: input is read, then, just before the loop would sleep, a uv_prepare callback flushes what became
 * ready (one write per client and turn) and sets the timer to node_deadline_ms().
 *  4. A part has X_new(server, ...), which listens, and X_close(), which begins to close all its handles; it is freed
 * with the last of them. web has web_stop() and, after the loop ended, web_free().
 */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include <uv.h>

#include "daemon/config.h"
#include "daemon/expiry.h"
#include "daemon/identity.h"
#include "daemon/log.h"
#include "daemon/node.h"
#include "daemon/tls_certificates.h"
#include "daemon/turns.h"

struct clients;
struct datagrams;
struct memory;
struct multicast;
struct peer_cache;
struct resolver;
struct rings;
struct storing;
struct web;

#define SIGNALS 5u            /* that are listened to */
#define SERVER_ERROR_MAX 800u /* bytes of a one-line error that names the remedy */

struct server {
    uv_loop_t *loop;
    const struct config *config;
    const struct identity *identity;
    struct tls_certificates *certificates; /* what clients see over TLS; read anew on SIGHUP */
    struct log *log;
    struct policy *policy; /* of the last SIGHUP, which the node borrows; NULL: that of config */
    struct node *node;
    struct storing *storing;     /* what outlives a run; NULL in memory */
    struct clients *clients;     /* MQTT */
    struct datagrams *datagrams; /* gossip; NULL for a broker alone */
    struct resolver *resolver;   /* bootstrap names; NULL for a broker alone */
    struct peer_cache *peers;    /* good peers, for the next start; NULL for a broker alone */
    struct multicast *multicast; /* NULL without federation.multicast */
    struct rings *rings;         /* gossip keys; NULL for a broker alone */
    struct web *web;             /* links, admin */
    struct memory *memory;
    struct turns turns;
    uint64_t started_ms; /* server_now_ms() at start */
    uint64_t epoch;
    bool ready;   /* all listeners and the store serve (/readyz) */
    bool leaving; /* SIGTERM came: no new clients, dials, or links */

    /* server.c's own */
    bool ended; /* everything is being closed: the node's ports lead nowhere any more */
    uv_prepare_t prepare;
    uv_timer_t timer;       /* node_deadline_ms() */
    uint64_t timer_due_ms;  /* what it is set to; UINT64_MAX if it is not */
    uint64_t hold_until_ms; /* no ticks before that */
    uv_timer_t leave_timer; /* after SIGTERM */
    uint64_t leave_since_ms;
    uv_signal_t signals[SIGNALS];
    bool alone_told;      /* that nobody has answered since the start, or that it need not be said */
    int64_t wall_told_ms; /* the last reading that the node was given */
    int64_t looked_ms;    /* when the dates of the certificate were looked at, by that clock */
    struct expiry expiry, token_expiry;
};

/* The loop's time: monotonic milliseconds, the same throughout one turn of the loop. */
uint64_t server_now_ms(const struct server *server);
/* The system's clock, milliseconds since 1970: for token expiry and stamps only. */
int64_t server_wall_ms(void);
/* Gives the node the wall clock's reading if the last one is old: each turn before the loop sleeps, and again by who
 * brings what a token's time decides on, as the sleep may have been long. */
void server_tell_wall(struct server *server);
/* True if clients are served and the store keeps what it should; else text, one line, says why not. */
#define SERVER_REASON_MAX 500u
bool server_serves(const struct server *server, char text[SERVER_REASON_MAX]);
/* Hands over what the cores have made: node_pump(). */
void server_pump(struct server *server);

/* Begins to tell clients and the federation; the end comes by itself, in LEAVE_MAX_MS. */
void server_leave(struct server *server, const char *signal_name);
/* At once. */
void server_end(struct server *server);

/* Runs until a signal ends it: true then. False if it could not start, and then error is one line that names the
 * remedy. Everything is freed. */
bool server_run(const struct config *config, const struct identity *identity, struct tls_certificates *certificates,
                struct log *log, char error[SERVER_ERROR_MAX]);

#endif
