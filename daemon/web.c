#include "daemon/web.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/descriptors.h"
#include "daemon/links.h"
#include "daemon/web_inside.h"

#define PEERS_MAX_DEFAULT 1024u
#define STRANGERS_MAX 256u     /* connections that are no links yet: all their handshakes may come in one turn */
#define STRANGERS_PER_FILES 8u /* and of so many descriptors one */
#define STRANGERS_MIN 8u
#define ADMIN_OPEN_MAX 32u
#define HEADERS_MAX 4096u /* bytes of a request's headers */
#define DESCRIPTORS_MAX 131072u
#define UNDO_TURNS 16 /* of the loop; libwebsockets needs three to close an idle context */

/* The protocols of a vhost are known by name; the first is for all that is no WebSocket yet. rx sizes are what a
 * callback gets at most. */
static const struct lws_protocols plain_protocols[] = {
    {"http", web_on_http, 0, 0, 0, NULL, 0},
    {NULL, NULL, 0, 0, 0, NULL, 0},
};
static const struct lws_protocols secure_protocols[] = {
    {"http", web_on_http, 0, 0, 0, NULL, 0},
    {LINKS_PROTOCOL, links_on, 0, WEB_PIECE, 0, NULL, 0},
    {NULL, NULL, 0, 0, 0, NULL, 0},
};

/* libwebsockets logs without a context, for the whole process: the latest web is the one that hears it. Its errors are
 * mostly what strangers sent; those that end in something for us to do are reported where the call failed. */
static const struct web *log_listener;

static void on_library_log(int level, const char *line) {
    (void)level;
    if (log_listener == NULL) return;
    log_text(log_listener->server->log, LOG_LEVEL_DEBUG, "libwebsockets", "%.*s", (int)strcspn(line, "\n"), line);
}

static void listen_to_library(struct web *web) {
    log_listener = web;
    lws_set_log_level(log_wants(web->server->log, LOG_LEVEL_DEBUG) ? LLL_ERR | LLL_WARN | LLL_NOTICE : 0,
                      on_library_log);
}

/* ---- requests that are no WebSocket yet ---- */

static int refuse(struct lws *wsi, unsigned status) {
    if (lws_return_http_status(wsi, status, NULL) != 0) return -1;
    return lws_http_transaction_completed(wsi) != 0 ? -1 : 0;
}

/* 0: go on with the upgrade; 1: a response was sent instead; -1: hang up. */
static int on_upgrade(struct web_connection *connection, const char *to) {
    char path[16] = "";
    if (strcasecmp(to, "websocket") != 0) return -1;
    lws_hdr_copy(connection->wsi, path, sizeof path, WSI_TOKEN_GET_URI);
    if (connection->kind == WEB_PEERS && strcmp(path, LINKS_PATH) == 0) return 0;
    return lws_return_http_status(connection->wsi, HTTP_STATUS_NOT_FOUND, NULL) != 0 ? -1 : 1;
}

static int on_request(struct web_connection *connection, const char *path, size_t size) {
    if (connection->kind != WEB_ADMIN) return refuse(connection->wsi, HTTP_STATUS_NOT_FOUND);
    connection->established = true;
    return admin_on_request(connection, path, size);
}

static void on_destroyed(struct web_connection *connection) {
    struct web *web = connection->web;
    connection->wsi = NULL;
    if (web->starting == connection) web->starting = NULL;
    if (connection->kind == WEB_PEERS) links_gone(connection);
    web_connection_free(connection);
}

int web_on_http(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size) {
    if (reason == LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS) {
        struct web *web = lws_context_user(lws_get_context(wsi));
        return web_tls_set_up(user, web->server->identity->key, web->server->config->name) ? 0 : 1;
    }
    struct web_connection *connection = web_connection_of(wsi);
    if (connection == NULL) return 0;
    switch (reason) {
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE: return on_upgrade(connection, in);
    case LWS_CALLBACK_HTTP: return on_request(connection, in, size);
    case LWS_CALLBACK_HTTP_BODY: return admin_on_upload(connection, in, size);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION: return admin_on_uploaded(connection);
    case LWS_CALLBACK_HTTP_WRITEABLE: return admin_on_writable(connection);
    case LWS_CALLBACK_WSI_DESTROY: on_destroyed(connection); return 0;
    /* A WebSocket without a subprotocol of ours, and what follows a CONNECT. */
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
    case LWS_CALLBACK_ESTABLISHED:
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
    case LWS_CALLBACK_RAW_ADOPT:
    case LWS_CALLBACK_RAW_RX: return -1;
    default: return 0;
    }
}

/* ---- start and end ---- */

/* libwebsockets makes tables for as many descriptors as the process may have, in memory that it touches. */
static struct lws_context *create_context(struct web *web) {
    void *loops[] = {web->server->loop};
    struct lws_context_creation_info info = {
        .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                   LWS_SERVER_OPTION_UV_NO_SIGSEGV_SIGFPE_SPIN | LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME |
                   (web->server->identity->key != NULL ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0),
        .foreign_loops = loops,
        .user = web,
        .port = CONTEXT_PORT_NO_LISTEN,
        .timeout_secs = WEB_HANDSHAKE_S,
        .max_http_header_data = HEADERS_MAX,
        .pt_serv_buf_size = WEB_PIECE,
        .server_string = "hobnob",
    };
    struct rlimit limit, lowered;
    bool lower = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > DESCRIPTORS_MAX;
    if (lower) {
        lowered = limit;
        lowered.rlim_cur = DESCRIPTORS_MAX;
        lower = setrlimit(RLIMIT_NOFILE, &lowered) == 0;
    }
    struct lws_context *context = lws_create_context(&info);
    if (lower) setrlimit(RLIMIT_NOFILE, &limit);
    return context;
}

/* The two vhosts differ in "port" so that no Host header or server name leads from one to the other. */
static bool create_vhosts(struct web *web) {
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .vhost_name = "plain",
        .protocols = plain_protocols,
        .timeout_secs_ah_idle = WEB_HANDSHAKE_S,
        .keepalive_timeout = WEB_HANDSHAKE_S,
        .ka_time = 60,
        .ka_interval = 10,
        .ka_probes = 6,
    };
    /* libwebsockets would send links through the proxy named here, which is meant for the web. */
    unsetenv("http_proxy");
    web->plain = lws_create_vhost(web->context, &info);
    if (web->plain == NULL || web->server->identity->key == NULL) return web->plain != NULL;

    web->link_client_tls = SSL_CTX_new(TLS_client_method());
    if (web->link_client_tls == NULL ||
        !web_tls_set_up(web->link_client_tls, web->server->identity->key, web->server->config->name))
        return false;
    info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
    info.vhost_name = "secure";
    info.protocols = secure_protocols;
    info.options = LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX | LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info.alpn = "http/1.1";
    info.connect_timeout_secs = WEB_HANDSHAKE_S;
    info.provided_client_ssl_ctx = web->link_client_tls;
    web->secure = lws_create_vhost(web->context, &info);
    return web->secure != NULL && lws_init_vhost_client_ssl(&info, web->secure) == 0;
}

static bool open_listeners(struct web *web, char error[SERVER_ERROR_MAX]) {
    const struct config *config = web->server->config;
    if (config->listen.peers.count > 0 && web->server->identity->key == NULL) {
        snprintf(error, SERVER_ERROR_MAX, "listen.peers needs the broker's key; name it under identity.key");
        return false;
    }
    return web_listen(web, WEB_PEERS, &config->listen.peers, "peers", error) &&
           web_listen(web, WEB_ADMIN, &config->listen.admin, "admin", error);
}

/* Ends a web that could not be made: its handles on the loop must be gone before its memory is. */
static void undo(struct web *web) {
    bool on_loop = web->context != NULL;
    web_stop(web);
    for (int turns = 0; on_loop && turns < UNDO_TURNS; turns++)
        uv_run(web->server->loop, UV_RUN_NOWAIT);
    web_free(web);
}

static void set_limits(struct web *web) {
    const struct broker_limits *limits = &web->server->config->broker_limits;
    web->files_max = descriptors_max();
    uint64_t strangers = web->files_max / STRANGERS_PER_FILES;
    if (strangers > STRANGERS_MAX) strangers = STRANGERS_MAX;
    if (strangers < STRANGERS_MIN) strangers = STRANGERS_MIN;
    web->strangers_max[WEB_PEERS] = strangers;
    web->open_max[WEB_PEERS] =
        (uint64_t)(limits->peers_max != 0 ? limits->peers_max : PEERS_MAX_DEFAULT) + STRANGERS_MAX;
    web->strangers_max[WEB_ADMIN] = web->open_max[WEB_ADMIN] = ADMIN_OPEN_MAX;
}

static void open_timers(struct web *web) {
    uv_timer_init(web->server->loop, &web->accept_timer);
    uv_timer_init(web->server->loop, &web->dial_timer);
    web->accept_timer.data = web->dial_timer.data = web;
    web->timers_open = true;
}

static bool start(struct web *web, char error[SERVER_ERROR_MAX]) {
    if (!open_listeners(web, error)) return false;
    listen_to_library(web);
    web->context = create_context(web);
    if (web->context == NULL) {
        snprintf(error, SERVER_ERROR_MAX, "libwebsockets does not start; install the package libwebsockets-evlib-uv");
        return false;
    }
    if (!create_vhosts(web)) {
        snprintf(error, SERVER_ERROR_MAX,
                 "TLS for peer links cannot be set up; check identity.key (hobnob key new makes one)");
        return false;
    }
    open_timers(web);
    return web_listen_start(web, error);
}

struct web *web_new(struct server *server, char error[SERVER_ERROR_MAX]) {
    struct web *web = calloc(1, sizeof *web);
    if (web == NULL) {
        snprintf(error, SERVER_ERROR_MAX, "out of memory; free some and start again");
        return NULL;
    }
    web->server = server;
    web->listening = true;
    web->dials_end = &web->dials;
    set_limits(web);
    if (start(web, error)) return web;
    undo(web);
    return NULL;
}

void web_turn(struct web *web) {
    if (web != NULL) admin_why_turn(web);
}

void web_stop_listening(struct web *web) {
    if (web == NULL) return;
    web->listening = false;
    web_listen_stop(web, false);
}

void web_stop(struct web *web) {
    if (web == NULL || web->stopping) return;
    web->stopping = true;
    web->listening = false;
    web_listen_stop(web, true);
    links_drop_dials(web);
    if (web->timers_open) {
        uv_close((uv_handle_t *)&web->accept_timer, NULL);
        uv_close((uv_handle_t *)&web->dial_timer, NULL);
    }
    if (web->context != NULL) lws_context_destroy(web->context);
}

void web_free(struct web *web) {
    if (web == NULL) return;
    /* The first call began to close, the second frees. */
    if (web->context != NULL) lws_context_destroy(web->context);
    while (web->connections != NULL)
        web_connection_free(web->connections);
    SSL_CTX_free(web->link_client_tls);
    if (log_listener == web) log_listener = NULL;
    free(web);
}

void web_read_counters(const struct web *web, struct web_counters *out) {
    *out = web->counters;
}
