#include "daemon/links.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "daemon/web_inside.h"

#define MESSAGES_PER_TURN 64u /* small frames of one link, then others have their turn */

static int on_established(struct web_connection *connection) {
    struct server *server = connection->web->server;
    struct broker *broker = node_broker(server->node);
    uint64_t now_ms = server_now_ms(server);
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    connection->established = true;
    if (!web_tls_peer_thumbprint(lws_get_ssl(connection->wsi), thumbprint)) {
        log_line(server->log, LOG_LEVEL_WARNING, "link_refused", "address", connection->address, "reason",
                 "its certificate is not on a P-256 key", NULL);
        return -1;
    }
    if (connection->dialled) {
        if (connection->handle == 0) return -1;
    } else {
        broker_handle link = broker_link_open(broker, now_ms, false, NULL);
        if (link == 0) return -1;
        if (!web_connection_bind(connection, link)) {
            broker_link_closed(broker, now_ms, link);
            server_pump(server);
            return -1;
        }
    }
    broker_link_ready(broker, now_ms, connection->handle, thumbprint);
    server_pump(server);
    return 0;
}

static int on_received(struct web_connection *connection, const void *bytes, size_t size) {
    struct server *server = connection->web->server;
    if (connection->handle == 0) return -1;
    if (!lws_frame_is_binary(connection->wsi)) {
        links_gone(connection); /* now: the far end may take its time to acknowledge the close */
        lws_close_reason(connection->wsi, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, NULL, 0);
        return -1;
    }
    bool final = lws_is_final_fragment(connection->wsi) != 0;
    broker_link_input(node_broker(server->node), server_now_ms(server), connection->handle, bytes, size, final);
    server_pump(server);
    return 0;
}

/* Writes the next piece of the frame; true if the frame is gone with it. *result is negative when the connection is
 * broken. */
static bool write_piece(struct web_connection *connection, const struct broker_span *frame, int *result) {
    uint8_t *piece = connection->web->scratch + LWS_PRE;
    size_t left = frame->size - connection->frame_sent;
    size_t size = left < WEB_PIECE ? left : WEB_PIECE;
    memcpy(piece, frame->bytes + connection->frame_sent, size);
    int mode = connection->frame_sent == 0 ? LWS_WRITE_BINARY : LWS_WRITE_CONTINUATION;
    if (size < left) mode |= LWS_WRITE_NO_FIN;
    if (lws_write(connection->wsi, piece, size, (enum lws_write_protocol)mode) < (int)size) *result = -1;
    connection->frame_sent = size < left ? connection->frame_sent + size : 0;
    return size == left;
}

static int on_writable(struct web_connection *connection) {
    struct server *server = connection->web->server;
    struct broker *broker = node_broker(server->node);
    uint64_t now_ms = server_now_ms(server);
    size_t bytes = 0;
    int result = 0;
    for (unsigned messages = 0; messages < MESSAGES_PER_TURN && bytes < WEB_PIECE * WEB_PIECES_PER_TURN; messages++) {
        struct broker_span frame;
        if (lws_send_pipe_choked(connection->wsi)) break;
        if (!broker_link_output(broker, now_ms, connection->handle, &frame)) {
            if (broker_link_ended(broker, connection->handle)) {
                lws_close_reason(connection->wsi, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
                return -1;
            }
            server_pump(server);
            return 0;
        }
        size_t before = connection->frame_sent;
        if (write_piece(connection, &frame, &result)) {
            bytes += frame.size - before;
            broker_link_written(broker, now_ms, connection->handle);
        } else {
            bytes += WEB_PIECE;
        }
        if (result < 0) return -1;
    }
    lws_callback_on_writable(connection->wsi);
    server_pump(server);
    return 0;
}

void links_gone(struct web_connection *connection) {
    broker_handle link = connection->handle;
    if (link == 0) return;
    struct server *server = connection->web->server;
    web_connection_unbind(connection);
    broker_link_closed(node_broker(server->node), server_now_ms(server), link);
    server_pump(server);
}

static void on_dial_failed(struct web_connection *connection, const char *text, size_t size) {
    log_text(connection->web->server->log, LOG_LEVEL_DEBUG, "dial_failed", "%s: %.*s", connection->address,
             (int)(text == NULL ? 0 : size), text == NULL ? "" : text);
    links_gone(connection);
}

int links_on(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size) {
    (void)user;
    struct web_connection *connection = web_connection_of(wsi);
    switch (reason) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION: return connection != NULL && connection->kind == WEB_PEERS ? 0 : -1;
    case LWS_CALLBACK_ESTABLISHED:
    case LWS_CALLBACK_CLIENT_ESTABLISHED: return on_established(connection);
    case LWS_CALLBACK_RECEIVE:
    case LWS_CALLBACK_CLIENT_RECEIVE: return on_received(connection, in, size);
    case LWS_CALLBACK_SERVER_WRITEABLE:
    case LWS_CALLBACK_CLIENT_WRITEABLE: return connection->handle == 0 ? -1 : on_writable(connection);
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR: on_dial_failed(connection, in, size); return 0;
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_CLIENT_CLOSED: links_gone(connection); return 0;
    default: return 0;
    }
}

/* ---- dials ---- */

static void on_dial_time(uv_timer_t *timer) {
    struct web *web = timer->data;
    struct web_connection *connection = web->dials;
    web->dials = NULL;
    web->dials_end = &web->dials;
    while (connection != NULL) {
        struct web_connection *next = connection->next_dial;
        links_dial(connection);
        connection = next;
    }
}

void web_dial(struct web *web, broker_handle link, const struct gossip_address *to, const char *peer_name) {
    (void)peer_name;
    /* A dial that cannot even begin is left to the broker's own deadline for it. */
    if (web == NULL || web->secure == NULL || !web->listening || web->stopping) return;
    struct web_connection *connection = web_connection_new(web, WEB_PEERS, true);
    if (connection == NULL) return;
    connection->to = *to;
    if (!web_connection_bind(connection, link)) {
        web_connection_free(connection);
        return;
    }
    *web->dials_end = connection;
    web->dials_end = &connection->next_dial;
    uv_timer_start(&web->dial_timer, on_dial_time, 0, 0);
}

/* libwebsockets has not seen it. */
static void drop(struct web_connection *connection) {
    links_gone(connection);
    web_connection_free(connection);
}

void links_drop_dials(struct web *web) {
    struct web_connection *connection = web->dials;
    web->dials = NULL;
    web->dials_end = &web->dials;
    while (connection != NULL) {
        struct web_connection *next = connection->next_dial;
        drop(connection);
        connection = next;
    }
}

void links_dial(struct web_connection *connection) {
    struct web *web = connection->web;
    char ip[INET6_ADDRSTRLEN] = "";
    bool given_up = connection->handle == 0 || broker_link_ended(node_broker(web->server->node), connection->handle);
    if (given_up ||
        inet_ntop(connection->to.family == 6 ? AF_INET6 : AF_INET, connection->to.ip, ip, sizeof ip) == NULL) {
        drop(connection);
        return;
    }
    snprintf(connection->address, sizeof connection->address, connection->to.family == 6 ? "[%s]:%u" : "%s:%u", ip,
             connection->to.port);
    struct lws_client_connect_info info = {
        .context = web->context,
        .vhost = web->secure,
        .address = ip,
        .port = connection->to.port,
        .path = LINKS_PATH,
        .host = LINKS_PROTOCOL, /* a name that tells nothing; the key is what counts */
        .protocol = LINKS_PROTOCOL,
        .ssl_connection = LCCSCF_USE_SSL | LCCSCF_ALLOW_SELFSIGNED | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK |
                          LCCSCF_ALLOW_EXPIRED | LCCSCF_HTTP_NO_FOLLOW_REDIRECT,
        .alpn = "http/1.1",
        .ietf_version_or_minus_one = -1,
        .opaque_user_data = connection,
        .pwsi = &connection->wsi,
    };
    web->starting = connection;
    struct lws *wsi = lws_client_connect_via_info(&info);
    if (web->starting == NULL) return; /* and freed */
    web->starting = NULL;
    if (wsi != NULL) return;
    web_connection_abandon(connection);
    links_gone(connection);
}
