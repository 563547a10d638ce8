/* From the socket to the broker: PROXY header, TLS, the request for a WebSocket, in this order and each only where the
 * listener and the far end's address call for it. Who fails is told why, where its protocol has words for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clients_inside.h"

#define TLS_HANDSHAKE_RECORD 22u /* RFC 8446 section 5.1 */
#define TLS_RECORD_HEAD 5u

static void fail(struct connection *connection, uint64_t *counter, const char *why) {
    ++*counter;
    connection_log(connection, "client_refused", why);
    connection_end(connection);
    stream_flush(connection);
}

/* ---- at the end of the way ---- */

static void open_at_broker(struct connection *connection) {
    struct layers *layers = connection->layers;
    if (layers->with_websocket) {
        layers->websocket = calloc(1, sizeof(*layers->websocket));
        if (layers->websocket == NULL) {
            connection_log(connection, "client_refused", "memory is short: give the machine more");
            connection_close(connection);
            return;
        }
    }
    const struct broker_origin origin = {
        .from_loopback = layers->from_loopback,
        .address = layers->address,
        .certificate_name = layers->name,
        .waited_ms = (uint32_t)(server_now_ms(connection->clients->server) - layers->arrived_ms)};
    layers->stage = STAGE_MQTT;
    if (!connection_open(connection, &origin)) return;
    text_deinit(&layers->greeting);
    if (layers->tls == NULL && layers->websocket == NULL) connection_drop_layers(connection);
}

/* The next stage that this connection has. */
static void advance(struct connection *connection) {
    struct layers *layers = connection->layers;
    if (layers->stage == STAGE_PROXY && layers->with_tls)
        layers->stage = STAGE_HELLO;
    else if (layers->stage != STAGE_REQUEST && layers->with_websocket)
        layers->stage = STAGE_REQUEST;
    else
        open_at_broker(connection);
}

/* ---- stages ---- */

static bool set_name(struct layers *layers, const char *name) {
    free(layers->name);
    layers->name = strdup(name);
    return layers->name != NULL;
}

/* A client at the proxy's own host is not at ours, so both must be loopback; of whom the proxy knows no address, nobody
 * knows that. */
static bool believe_proxy(struct layers *layers, const struct proxy_header *header) {
    if (header->has_address) {
        snprintf(layers->address, sizeof(layers->address), strchr(header->ip, ':') != NULL ? "[%s]:%u" : "%s:%u",
                 header->ip, header->port);
        layers->from_loopback = layers->from_loopback && config_ip_is_loopback(header->ip);
    } else if (!header->is_local) {
        layers->from_loopback = false;
    }
    return header->name[0] == '\0' || set_name(layers, header->name);
}

/* Appends what may belong to the greeting; returns how many bytes that were, 0 if memory is short. */
static size_t greet(struct layers *layers, const uint8_t *bytes, size_t size, size_t max) {
    const size_t room = max - layers->greeting.size;
    text_append(&layers->greeting, (const char *)bytes, size < room ? size : room);
    return layers->greeting.failed ? 0 : size < room ? size : room;
}

static size_t take_proxy(struct connection *connection, const uint8_t *bytes, size_t size) {
    struct clients *clients = connection->clients;
    struct layers *layers = connection->layers;
    struct proxy_header header;
    const char *wrong = "memory is short: give the machine more";
    const size_t before = layers->greeting.size, added = greet(layers, bytes, size, PROXY_HEADER_MAX);
    const enum proxy_result result =
        added == 0 ? PROXY_BAD
                   : proxy_decode((const uint8_t *)layers->greeting.bytes, layers->greeting.size, &header, &wrong);
    if (result == PROXY_MORE) return added;
    if (result == PROXY_DONE && believe_proxy(layers, &header)) {
        text_deinit(&layers->greeting);
        advance(connection);
        return header.size - before;
    }
    char why[256];
    snprintf(why, sizeof(why),
             "it comes from one of listen.proxies, and its PROXY header is malformed: %s; let the proxy send it "
             "(send-proxy), or take its address out of listen.proxies",
             wrong);
    fail(connection, &clients->counters.proxy_failed, why);
    return size;
}

/* True if OpenSSL would find a whole record in it, or something that is none. */
static bool hello_is_whole(const struct text *greeting) {
    const uint8_t *bytes = (const uint8_t *)greeting->bytes;
    if (greeting->size > 0 && bytes[0] != TLS_HANDSHAKE_RECORD) return true;
    return greeting->size >= TLS_RECORD_HEAD && greeting->size >= TLS_RECORD_HEAD + ((size_t)bytes[3] << 8 | bytes[4]);
}

/* Who sends half a greeting and waits takes up as much memory as that, and not OpenSSL's buffers. */
static size_t take_hello(struct connection *connection, const uint8_t *bytes, size_t size) {
    struct clients *clients = connection->clients;
    struct layers *layers = connection->layers;
    const size_t added = greet(layers, bytes, size, TLS_RECORD_HEAD + TLS_RECORD_MAX);
    if (added > 0 && !hello_is_whole(&layers->greeting) && layers->greeting.size < TLS_RECORD_HEAD + TLS_RECORD_MAX)
        return added;
    if (added > 0) layers->tls = tls_stream_new(clients->server->certificates, &clients->sending);
    if (layers->tls == NULL) {
        fail(connection, &clients->counters.tls_failed, "memory is short for TLS: give the machine more");
        return size;
    }
    struct text hello = layers->greeting;
    layers->greeting = (struct text){0};
    layers->stage = STAGE_TLS;
    frames_take_tls(connection, (const uint8_t *)hello.bytes, hello.size);
    text_deinit(&hello);
    return connection->list == LIST_DEAD || connection->list == LIST_ENDED ? size : added;
}

static size_t take_request(struct connection *connection, const uint8_t *bytes, size_t size) {
    struct clients *clients = connection->clients;
    struct layers *layers = connection->layers;
    struct websocket_answer answer;
    const size_t before = layers->greeting.size, added = greet(layers, bytes, size, WEBSOCKET_REQUEST_MAX);
    if (added == 0) {
        fail(connection, &clients->counters.websocket_failed, "memory is short: give the machine more");
        return size;
    }
    const enum websocket_request_result result =
        websocket_request(layers->greeting.bytes, layers->greeting.size, &answer);
    if (result == WEBSOCKET_MORE) return added;
    const bool put = frames_put(connection, answer.bytes, answer.size);
    if (result == WEBSOCKET_ACCEPTED && put && (frames_send(connection) || connection->list != LIST_DEAD)) {
        if (answer.from_page) layers->from_loopback = false;
        advance(connection);
        return answer.request_size - before;
    }
    if (connection->list != LIST_DEAD)
        fail(connection, &clients->counters.websocket_failed,
             answer.wrong != NULL ? answer.wrong : "memory is short: give the machine more");
    return size;
}

size_t arrive_take(struct connection *connection, const uint8_t *bytes, size_t size) {
    switch (connection->layers->stage) {
    case STAGE_PROXY: return take_proxy(connection, bytes, size);
    case STAGE_HELLO: return take_hello(connection, bytes, size);
    default: return take_request(connection, bytes, size);
    }
}

void arrive_secured(struct connection *connection) {
    struct clients *clients = connection->clients;
    struct layers *layers = connection->layers;
    char name[TLS_NAME_MAX + 1];
    switch (tls_stream_name(layers->tls, name)) {
    case TLS_NAME_GOOD:
        if (set_name(layers, name)) {
            advance(connection);
            return;
        }
        fail(connection, &clients->counters.tls_failed, "memory is short: give the machine more");
        return;
    case TLS_NAME_NO_CERTIFICATE: advance(connection); return;
    case TLS_NAME_BAD:
        fail(connection, &clients->counters.tls_failed,
             "its certificate has no common name (CN) that can be a user name: give it one, of printable characters");
        return;
    }
}

void arrive_tls_failed(struct connection *connection) {
    char why[300];
    snprintf(why, sizeof(why), "TLS: %s", tls_stream_wrong(connection->layers->tls));
    if (connection->list == LIST_ARRIVING) {
        fail(connection, &connection->clients->counters.tls_failed, why);
    } else {
        connection_log(connection, "client_lost", why);
        connection_end(connection);
        stream_flush(connection);
    }
}

void arrive(struct connection *connection, const struct listener *listener, bool proxied, const char *address) {
    struct clients *clients = connection->clients;
    struct layers *layers = connection_layers(connection);
    if (layers == NULL) {
        connection_log(connection, "client_refused", "memory is short: give the machine more");
        connection_close(connection);
        return;
    }
    layers->with_tls = listener->kind == CLIENTS_MQTTS || listener->kind == CLIENTS_WSS;
    layers->with_websocket = listener->kind == CLIENTS_WS || listener->kind == CLIENTS_WSS;
    layers->from_loopback = listener->from_loopback;
    layers->arrived_ms = server_now_ms(clients->server);
    snprintf(layers->address, sizeof(layers->address), "%s", address);
    layers->stage = STAGE_PROXY;
    connection_move(connection, LIST_ARRIVING);
    if (!proxied) advance(connection);
    connection_watch(connection);
}
