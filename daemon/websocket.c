#include "daemon/websocket.h"

#include <string.h>

#include "daemon/web_inside.h"

#define SPANS_MAX 64u

static int on_established(struct web_connection *connection) {
    struct web *web = connection->web;
    struct broker *broker = node_broker(web->server->node);
    uint64_t now_ms = server_now_ms(web->server);
    connection->established = true;
    const struct broker_origin origin = {.from_loopback = connection->from_loopback, .address = connection->address};
    broker_handle client = broker_client_open(broker, now_ms, &origin);
    if (client == 0) return -1;
    if (!web_connection_bind(connection, client)) {
        broker_client_closed(broker, now_ms, client);
        server_pump(web->server);
        return -1;
    }
    server_pump(web->server);
    return 0;
}

static int on_received(struct web_connection *connection, const void *bytes, size_t size) {
    struct server *server = connection->web->server;
    if (connection->handle == 0) return -1;
    /* MQTT-6.0.0-1: anything but binary data ends the connection. */
    if (!lws_frame_is_binary(connection->wsi)) {
        websocket_gone(connection); /* now: the far end may take its time to acknowledge the close */
        lws_close_reason(connection->wsi, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, NULL, 0);
        return -1;
    }
    if (size == 0) return 0;
    broker_client_input(node_broker(server->node), server_now_ms(server), connection->handle, bytes, size);
    server_pump(server);
    return 0;
}

/* Copies up to WEB_PIECE bytes of the output behind the room that libwebsockets needs for its header. */
static size_t gather(struct web *web, broker_handle client) {
    struct broker_span spans[SPANS_MAX];
    size_t count = broker_client_output(node_broker(web->server->node), client, spans, SPANS_MAX);
    size_t size = 0;
    for (size_t i = 0; i < count && size < WEB_PIECE; i++) {
        size_t part = spans[i].size < WEB_PIECE - size ? spans[i].size : WEB_PIECE - size;
        memcpy(web->scratch + LWS_PRE + size, spans[i].bytes, part);
        size += part;
    }
    return size;
}

static int on_writable(struct web_connection *connection) {
    struct web *web = connection->web;
    struct broker *broker = node_broker(web->server->node);
    for (unsigned pieces = 0; pieces < WEB_PIECES_PER_TURN && !lws_send_pipe_choked(connection->wsi); pieces++) {
        size_t size = gather(web, connection->handle);
        if (size == 0) {
            if (broker_client_ended(broker, connection->handle)) {
                lws_close_reason(connection->wsi, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
                return -1;
            }
            server_pump(web->server);
            return 0;
        }
        if (lws_write(connection->wsi, web->scratch + LWS_PRE, size, LWS_WRITE_BINARY) < (int)size) return -1;
        broker_client_written(broker, server_now_ms(web->server), connection->handle, size);
    }
    lws_callback_on_writable(connection->wsi);
    server_pump(web->server);
    return 0;
}

void websocket_gone(struct web_connection *connection) {
    broker_handle client = connection->handle;
    if (client == 0) return;
    struct server *server = connection->web->server;
    web_connection_unbind(connection);
    broker_client_closed(node_broker(server->node), server_now_ms(server), client);
    server_pump(server);
}

int websocket_on(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t size) {
    (void)user;
    struct web_connection *connection = web_connection_of(wsi);
    switch (reason) {
    case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
        return connection != NULL && connection->kind == WEB_WEBSOCKET ? 0 : -1;
    case LWS_CALLBACK_ESTABLISHED: return on_established(connection);
    case LWS_CALLBACK_RECEIVE: return on_received(connection, in, size);
    case LWS_CALLBACK_SERVER_WRITEABLE: return connection->handle == 0 ? -1 : on_writable(connection);
    case LWS_CALLBACK_CLOSED: websocket_gone(connection); return 0;
    default: return 0;
    }
}
