/* Inside of web, for web*.c, links.c and admin.c only.
 *
 * Every connection, accepted or dialled, is a struct web_connection; libwebsockets carries it as the wsi's opaque user
 * data. Its kind is that of the listener it came through and decides alone what it may do: paths, names and Host
 * headers come from strangers.
 */
#ifndef DAEMON_WEB_INSIDE_H
#define DAEMON_WEB_INSIDE_H

#include <jansson.h>
#include <libwebsockets.h>
#include <uthash.h>

#include "daemon/text.h"
#include "daemon/web.h"

#define WEB_PIECE 65536u        /* bytes handed to lws_write at once: it would take any size and keep the rest itself */
#define WEB_PIECES_PER_TURN 16u /* of one connection, then others have their turn */
#define WEB_HANDSHAKE_S 10      /* for TLS and HTTP headers together, and for a dial */
#define WEB_CLOSE_S 5           /* for the last bytes of a connection that is being closed */
#define WEB_LISTENERS_MAX (CONFIG_LISTENERS_MAX * WEB_KINDS)

struct web_connection {
    struct web *web;
    enum web_kind kind;
    struct lws *wsi;      /* NULL before libwebsockets knows it and after it is gone */
    broker_handle handle; /* the link; 0 if there is none (any more) */
    bool dialled;
    bool established;         /* the WebSocket is up, or the first request was read */
    bool ending;              /* the time for its last bytes is running */
    bool counted;             /* in web->open */
    char address[64];         /* of the far end, "ip:port" */
    struct gossip_address to; /* dialled only, until the dial is started */
    size_t frame_sent;        /* link: bytes of the frame being sent that are gone */
    struct text body;         /* admin: the response */
    size_t body_sent;
    bool body_open;     /* admin: headers are out, the body is not */
    struct text upload; /* admin: what is posted */
    bool uploading;
    uint64_t question;                      /* admin: its answer is waited for (admin_why.c); 0 if none is */
    json_t *asked;                          /* what it is about */
    bool head_only;                         /* of that answer */
    struct web_connection *previous, *next; /* web->connections */
    struct web_connection *next_dial;
    UT_hash_handle by_handle;
};

struct web_listener {
    struct web *web;
    enum web_kind kind;
    const char *what; /* "peers", "admin" */
    int fd;
    uint16_t port;
    bool open, watched, polling;
    uv_poll_t poll;
};

struct web {
    struct server *server;
    struct lws_context *context;
    struct lws_vhost *plain, *secure; /* secure: NULL without peer links */
    bool listening, stopping, timers_open;
    size_t listener_count;
    struct web_listener listeners[WEB_LISTENERS_MAX];
    uv_timer_t accept_timer; /* polls again after descriptors ran out */
    uv_timer_t dial_timer;   /* starts the dials of web_dial in the next turn */
    struct web_connection *connections;
    struct web_connection *links; /* hash by handle */
    struct web_connection *dials, **dials_end;
    struct web_connection
        *starting; /* being given to libwebsockets just now; NULL again if it is destroyed meanwhile */
    uint64_t open_max[WEB_KINDS], strangers_max[WEB_KINDS], files_max;
    struct web_counters counters;
    struct ssl_ctx_st *link_client_tls;
    uint8_t scratch[LWS_PRE + WEB_PIECE];
};

/* False, and counted, when too many of this kind are open, too many of those have not said who they are or what they
 * want, or the descriptor is one of the last: then the oldest of these strangers goes. */
bool web_has_room(struct web *web, enum web_kind kind, int fd);
/* NULL when memory is short. It is freed when its wsi is destroyed, or by web_connection_free. */
struct web_connection *web_connection_new(struct web *web, enum web_kind kind, bool dialled);
void web_connection_free(struct web_connection *connection);
/* libwebsockets gave no wsi for it. Whether one is still being closed cannot be known: it counts no more, and is freed
 * then or in the end. */
void web_connection_abandon(struct web_connection *connection);
/* The connection of a wsi; NULL for those that libwebsockets makes for itself. */
struct web_connection *web_connection_of(struct lws *wsi);
/* Puts the handle into the hash of links; false when memory is short. */
bool web_connection_bind(struct web_connection *connection, broker_handle handle);
/* Takes it out again and forgets it. */
void web_connection_unbind(struct web_connection *connection);
/* From within a port: asks for the writable callback, and limits the time left if the broker is done with it. */
void web_connection_ready(struct web_connection *connection, bool ended);
/* From within a port: closes it soon, whatever state it is in. */
void web_connection_kill(struct web_connection *connection);

/* Sets this pair up: TLS 1.3 only, our certificate, any certificate of the far end is taken but one must be shown
 * (tls.c). */
bool web_tls_set_up(struct ssl_ctx_st *tls, const struct auth_key *key, const char *name);
/* The thumbprint of the far end's key once the handshake is done; false if it is no P-256 key. */
bool web_tls_peer_thumbprint(struct ssl_st *ssl, uint8_t thumbprint[AUTH_THUMBPRINT_SIZE]);

/* web_listen.c: sockets are opened first, since nothing of them is on the loop then and a failure costs nothing. */
bool web_listen(struct web *web, enum web_kind kind, const struct config_listeners *addresses, const char *what,
                char error[SERVER_ERROR_MAX]);
bool web_listen_start(struct web *web, char error[SERVER_ERROR_MAX]);
void web_listen_stop(struct web *web, bool admin_too); /* closes the listeners */

/* The lws_callback_function of each protocol. web.c's is the first of every vhost and gets what belongs to none. */
int web_on_http(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size);
int links_on(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size);

/* Reports a handle that is still there as closed, when its wsi is gone. */
void links_gone(struct web_connection *connection);
/* Starts a dial that web_dial queued. */
void links_dial(struct web_connection *connection);
/* Ends all that are queued and not started. */
void links_drop_dials(struct web *web);

/* A whole request was read: begins the response. Nonzero: close. */
int admin_on_request(struct web_connection *connection, const char *path, size_t path_size);
/* The next piece of the response. Nonzero: close. */
int admin_on_writable(struct web_connection *connection);
/* Headers now, connection->body in pieces whenever the socket takes more; allow (may be NULL) names the methods of a
 * 405. Nonzero: close. */
int admin_answer(struct web_connection *connection, unsigned status, const char *type, const char *allow,
                 bool head_only);
/* The same with {"error": ...}. */
int admin_fail(struct web_connection *connection, unsigned status, const char *error, bool head_only);

/* admin_why.c: GET /api/v1/why. begin asks, turn sees what was answered, and writable sends that; the connection may
 * end before. Nonzero: close. */
int admin_why_begin(struct web_connection *connection, bool head_only);
void admin_why_turn(struct web *web);
int admin_why_on_writable(struct web_connection *connection);
void admin_why_end(struct web_connection *connection);

/* admin_ring.c: POST /api/v1/ring, its body in pieces, and its end. Nonzero: close. */
#define ADMIN_UPLOAD_MAX 4096u
int admin_ring_begin(struct web_connection *connection);
int admin_on_upload(struct web_connection *connection, const char *bytes, size_t size);
int admin_on_uploaded(struct web_connection *connection);

#endif
