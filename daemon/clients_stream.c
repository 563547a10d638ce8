/* Reads and writes of a socket: one read of all it holds, one write of all there is. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "daemon/clients_inside.h"

#define SPANS_MAX 64u /* pieces of one write */

static void take(struct connection *connection, uint8_t *bytes, size_t size) {
    if (connection->layers != NULL) {
        frames_take_raw(connection, bytes, size);
    } else {
        const size_t given = share_give_all(connection, bytes, size);
        if (given < size) share_keep(connection, bytes + given, size - given);
    }
    share_check_pause(connection);
    connection_watch(connection);
}

void stream_read(struct connection *connection) {
    struct clients *clients = connection->clients;
    const ssize_t got = recv(connection->file, clients->input, sizeof(clients->input), 0);
    if (got > 0) {
        if (connection->list != LIST_ENDED) take(connection, clients->input, (size_t)got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        connection_close(connection);
    }
}

/* The pieces that the broker holds are written from where they lie. True if nothing is left. */
static bool flush_plain(struct connection *connection) {
    struct server *server = connection->clients->server;
    struct broker *broker = node_broker(server->node);
    struct broker_span spans[SPANS_MAX];
    struct iovec pieces[SPANS_MAX];
    for (unsigned round = 0; round < CLIENTS_ROUNDS_MAX; round++) {
        const size_t count = broker_client_output(broker, connection->handle, spans, SPANS_MAX);
        size_t size = 0;
        if (count == 0) return true;
        for (size_t i = 0; i < count; i++) {
            pieces[i] = (struct iovec){.iov_base = (void *)(uintptr_t)spans[i].bytes, .iov_len = spans[i].size};
            size += spans[i].size;
        }
        const ssize_t written = writev(connection->file, pieces, (int)count);
        if (written < 0 && errno != EAGAIN && errno != EINTR) {
            connection_close(connection);
            return false;
        }
        if (written > 0) broker_client_written(broker, server_now_ms(server), connection->handle, (size_t)written);
        if (written < 0 || (size_t)written < size) break;
    }
    connection->is_blocked = true;
    return false;
}

/* A close with unread input would be a reset, and could overtake the DISCONNECT that says why: so hang up, and let the
 * far end close. */
static void shut(struct connection *connection) {
    if (connection->is_shut) return;
    connection->is_shut = true;
    if (shutdown(connection->file, SHUT_WR) != 0) connection_close(connection);
}

void stream_flush(struct connection *connection) {
    struct broker *broker = node_broker(connection->clients->server->node);
    connection->is_blocked = false;
    const bool drained =
        connection->layers != NULL && (connection->layers->tls != NULL || connection->layers->with_websocket)
            ? frames_flush(connection)
            : connection->handle == 0 || flush_plain(connection);
    if (connection->list == LIST_DEAD) return;
    if (connection->list != LIST_ARRIVING &&
        (connection->handle == 0 || broker_client_ended(broker, connection->handle))) {
        connection_end(connection);
        if (drained) shut(connection);
    }
    if (connection->list != LIST_DEAD) connection_watch(connection);
}
