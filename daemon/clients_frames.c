/* What goes through TLS, WebSocket or both. Input is decrypted and unmasked in place or in one buffer for all; output
 * is gathered, framed and encrypted for one write, so that records and frames are well filled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/clients_inside.h"

#define SPANS_MAX 64u
#define UNSENT_MAX (1024u * 1024u) /* bytes; the far end makes us answer (pings, key updates) and reads nothing */
#define PING_NS 2000u              /* of a client's share of the turn, for a ping: the clock is not read for each */
#define PONG_MAX (64u * 1024u)     /* above so many unsent bytes it gets no pong */

/* ---- sending ---- */

bool frames_put(struct connection *connection, const void *bytes, size_t size) {
    struct clients *clients = connection->clients;
    if (connection->layers->tls != NULL) return tls_stream_write(connection->layers->tls, bytes, size);
    text_append(&clients->sending, bytes, size);
    return !clients->sending.failed;
}

void frames_discard(struct clients *clients) {
    if (clients->sending.failed) text_deinit(&clients->sending); /* else its memory is for the next */
    clients->sending.size = 0;
}

/* What is left of the bytes after one write; -1 if the socket broke. */
static ssize_t write_out(struct connection *connection, const char *bytes, size_t size) {
    const ssize_t sent = send(connection->file, bytes, size, MSG_NOSIGNAL);
    if (sent >= 0) return (ssize_t)size - sent;
    return errno == EAGAIN || errno == EINTR ? (ssize_t)size : -1;
}

/* First what was left before; true once it is gone. */
static bool send_unsent(struct connection *connection) {
    struct layers *layers = connection->layers;
    const size_t size = layers->unsent.size - layers->unsent_at;
    if (size == 0) return true;
    const ssize_t left = write_out(connection, layers->unsent.bytes + layers->unsent_at, size);
    if (left < 0) {
        connection_close(connection);
        return false;
    }
    layers->unsent_at = layers->unsent.size - (size_t)left;
    if (left > 0) {
        connection->is_blocked = true;
        return false;
    }
    text_deinit(&layers->unsent);
    layers->unsent_at = 0;
    return true;
}

static void keep_unsent(struct connection *connection, size_t left) {
    struct layers *layers = connection->layers;
    const struct text *sending = &connection->clients->sending;
    text_append(&layers->unsent, sending->bytes + sending->size - left, left);
    connection->is_blocked = true;
    if (!layers->unsent.failed && layers->unsent.size - layers->unsent_at <= UNSENT_MAX) return;
    connection_log(connection, "client_lost",
                   layers->unsent.failed ? "memory is short for its output: give the machine more"
                                         : "it asks for answers and reads none");
    connection_close(connection);
}

bool frames_send(struct connection *connection) {
    struct text *sending = &connection->clients->sending;
    ssize_t left = 0;
    const bool good = !sending->failed;
    if (good && sending->size > 0) {
        left = (ssize_t)sending->size;
        if (send_unsent(connection)) left = write_out(connection, sending->bytes, sending->size);
        if (connection->list != LIST_DEAD && left > 0) keep_unsent(connection, (size_t)left);
    } else if (good) {
        send_unsent(connection);
    }
    frames_discard(connection->clients);
    if ((!good || left < 0) && connection->list != LIST_DEAD) connection_close(connection);
    return connection->list != LIST_DEAD && !connection->is_blocked;
}

/* Copies up to size bytes of the output. */
static size_t gather(struct connection *connection, uint8_t *out, size_t size) {
    struct broker_span spans[SPANS_MAX];
    if (connection->handle == 0) return 0;
    const size_t count =
        broker_client_output(node_broker(connection->clients->server->node), connection->handle, spans, SPANS_MAX);
    size_t used = 0;
    for (size_t i = 0; i < count && used < size; i++) {
        const size_t part = spans[i].size < size - used ? spans[i].size : size - used;
        memcpy(out + used, spans[i].bytes, part);
        used += part;
    }
    return used;
}

/* One record, or one frame of that size: head and payload go together. False when there is no output, or no memory. */
static bool put_output(struct connection *connection) {
    struct clients *clients = connection->clients;
    struct server *server = clients->server;
    uint8_t *payload = clients->plain + WEBSOCKET_SENT_HEAD_MAX, head[WEBSOCKET_SENT_HEAD_MAX];
    size_t head_size = 0;
    const size_t size = gather(connection, payload, TLS_RECORD_MAX - WEBSOCKET_SENT_HEAD_MAX);
    if (size == 0) return false;
    if (connection->layers->with_websocket) {
        head_size = websocket_head(head, WEBSOCKET_BINARY, size);
        memcpy(payload - head_size, head, head_size);
    }
    if (!frames_put(connection, payload - head_size, head_size + size)) {
        connection_close(connection);
        return false;
    }
    broker_client_written(node_broker(server->node), server_now_ms(server), connection->handle, size);
    return true;
}

/* The last words of each layer, once the broker has none any more. */
static void say_goodbye(struct connection *connection) {
    struct layers *layers = connection->layers;
    uint8_t close[WEBSOCKET_SENT_HEAD_MAX + 2];
    if (layers->said_goodbye) return;
    layers->said_goodbye = true;
    if (layers->websocket != NULL) {
        const unsigned code = layers->close_code != 0 ? layers->close_code : WEBSOCKET_CLOSE_NORMAL;
        const size_t head_size = websocket_head(close, WEBSOCKET_GOODBYE, 2);
        close[head_size] = (uint8_t)(code >> 8);
        close[head_size + 1] = (uint8_t)(code & 0xff);
        frames_put(connection, close, head_size + 2);
    }
    if (layers->tls != NULL) tls_stream_end(layers->tls);
}

bool frames_flush(struct connection *connection) {
    struct clients *clients = connection->clients;
    for (unsigned round = 0; round < CLIENTS_ROUNDS_MAX; round++) {
        if (!frames_send(connection)) return false;
        while (clients->sending.size < CLIENTS_SEND_SIZE && put_output(connection))
            continue;
        if (connection->list == LIST_DEAD) return false;
        if (clients->sending.size > 0) continue;
        const bool ended =
            connection->list != LIST_ARRIVING &&
            (connection->handle == 0 || broker_client_ended(node_broker(clients->server->node), connection->handle));
        if (ended) say_goodbye(connection);
        return frames_send(connection);
    }
    frames_send(connection);
    connection->is_blocked = true; /* until the next turn */
    return false;
}

/* ---- receiving ---- */

/* The WebSocket is at its end, by either side's word. The will is due now: the far end may take its time to answer. */
static void end_websocket(struct connection *connection, uint16_t close_code) {
    connection->layers->close_code = close_code;
    connection_end(connection);
    stream_flush(connection);
}

static void on_wrong_frame(struct connection *connection, uint16_t close_code) {
    connection->clients->counters.websocket_failed++;
    connection_log(connection, "client_refused",
                   close_code == WEBSOCKET_CLOSE_NOT_BINARY
                       ? "it sent a WebSocket message of text, where MQTT is binary"
                       : "it broke the rules of WebSocket frames (RFC 6455)");
    end_websocket(connection, close_code);
}

static void pong(struct connection *connection, const uint8_t *bytes, size_t size) {
    const struct layers *layers = connection->layers;
    uint8_t frame[WEBSOCKET_SENT_HEAD_MAX + WEBSOCKET_CONTROL_MAX];
    if (layers->unsent.size - layers->unsent_at + connection->clients->sending.size > PONG_MAX) return;
    const size_t head_size = websocket_head(frame, WEBSOCKET_PONG, size);
    memcpy(frame + head_size, bytes, size);
    frames_put(connection, frame, head_size + size);
}

/* Most clients put each packet into a frame of its own. So the payloads are moved together, over the heads that were
 * before them, and given at once. */
static size_t take_frames(struct connection *connection, uint8_t *bytes, size_t size) {
    size_t at = 0, gathered = 0, part;
    share_begin(connection);
    while (at < size && (part = share_part(connection)) > 0) {
        struct websocket_piece piece;
        const enum websocket_event event =
            websocket_read(connection->layers->websocket, bytes + at, size - at, part - gathered, &piece);
        at += piece.used;
        if (event == WEBSOCKET_BYTES) memmove(bytes + gathered, piece.bytes, piece.size);
        if (event == WEBSOCKET_BYTES) gathered += piece.size;
        if (gathered == part || at == size || (event != WEBSOCKET_BYTES && event != WEBSOCKET_NOTHING)) {
            if (gathered > 0) share_give(connection, bytes, gathered);
            gathered = 0;
        }
        if (event == WEBSOCKET_PING) {
            pong(connection, piece.bytes, piece.size);
            connection->spent_ns += PING_NS;
        }
        if (event == WEBSOCKET_CLOSE) end_websocket(connection, piece.close_code);
        if (event == WEBSOCKET_WRONG) on_wrong_frame(connection, piece.close_code);
        if (event == WEBSOCKET_CLOSE || event == WEBSOCKET_WRONG) return size;
    }
    return at;
}

size_t frames_take(struct connection *connection, uint8_t *bytes, size_t size) {
    if (connection->layers->websocket == NULL) return share_give_all(connection, bytes, size);
    const size_t taken = take_frames(connection, bytes, size);
    if (connection->list != LIST_DEAD && connection->clients->sending.size > 0) frames_send(connection);
    return taken;
}

/* Plain text of any stage. */
static void take_plain(struct connection *connection, uint8_t *bytes, size_t size) {
    size_t at = 0;
    while (at < size && connection->list == LIST_ARRIVING && connection->layers->stage == STAGE_REQUEST)
        at += arrive_take(connection, bytes + at, size - at);
    if (at == size || (connection->list != LIST_OPEN && connection->list != LIST_WAITING)) return;
    if (connection->layers->rest.size == 0) at += frames_take(connection, bytes + at, size - at);
    if (at < size && (connection->list == LIST_OPEN || connection->list == LIST_WAITING))
        share_keep(connection, bytes + at, size - at);
}

void frames_take_tls(struct connection *connection, const uint8_t *bytes, size_t size) {
    struct clients *clients = connection->clients;
    struct tls_stream *tls = connection->layers->tls;
    enum tls_result result = TLS_BYTES;
    size_t got = 0;
    tls_stream_give(tls, bytes, size);
    while (result == TLS_BYTES && connection->list != LIST_DEAD && connection->list != LIST_ENDED) {
        result = tls_stream_read(tls, clients->plain, sizeof(clients->plain), &got);
        if (connection->layers->stage == STAGE_TLS && result != TLS_FAILED && tls_stream_is_up(tls))
            arrive_secured(connection);
        if (result == TLS_BYTES && connection->list != LIST_DEAD && connection->list != LIST_ENDED)
            take_plain(connection, clients->plain, got);
    }
    if (connection->list == LIST_DEAD) return;
    if (connection->list == LIST_ENDED || result == TLS_MORE) {
        frames_send(connection);
    } else if (result == TLS_FAILED) {
        arrive_tls_failed(connection);
    } else { /* TLS_ENDED */
        connection_end(connection);
        stream_flush(connection);
    }
}

void frames_take_raw(struct connection *connection, uint8_t *bytes, size_t size) {
    size_t at = 0;
    while (at < size && connection->list == LIST_ARRIVING &&
           (connection->layers->stage == STAGE_PROXY || connection->layers->stage == STAGE_HELLO))
        at += arrive_take(connection, bytes + at, size - at);
    if (at == size || connection->list == LIST_DEAD || connection->list == LIST_ENDED) return;
    if (connection->layers == NULL) {
        const size_t given = share_give_all(connection, bytes + at, size - at);
        if (given < size - at) share_keep(connection, bytes + at + given, size - at - given);
    } else if (connection->layers->tls != NULL) {
        frames_take_tls(connection, bytes + at, size - at);
    } else {
        take_plain(connection, bytes + at, size - at);
    }
}
