/* Fairness. A few bytes can cost the broker a long search, or a change in the registry, so it is time that is shared
 * out, and a client that has used up its share of a turn is heard again in the next. How many bytes are given before
 * the clock is looked at follows from what they cost: the cheaper, the more. */
#include <stdlib.h>
#include <utlist.h>

#include "daemon/clients_inside.h"

#define TURN_NS 2000000u       /* of the broker's time for what one client sent, in one turn of the loop */
#define RESUMED_NS 4000000u    /* of it for all those together that have more to say */
#define HANDSHAKES_NS 2000000u /* of ours, in one turn, for all TLS handshakes together */
#define CHEAP_NS 60000u        /* a slice that took less may be twice as large */
#define DEAR_NS 250000u        /* one that took more is made smaller */
#define SLICE_BITS_MIN 9u
#define SLICE_BITS_MAX 14u

void share_begin(struct connection *connection) {
    if (connection->turn == connection->clients->turn) return;
    connection->turn = connection->clients->turn;
    connection->spent_ns = 0;
}

size_t share_part(const struct connection *connection) {
    return connection->spent_ns < TURN_NS ? (size_t)1 << connection->slice_bits : 0;
}

static void adapt(struct connection *connection, uint64_t took_ns, bool whole_slice) {
    unsigned bits = connection->slice_bits;
    if (took_ns > DEAR_NS)
        bits = bits > SLICE_BITS_MIN + 2 ? bits - 2 : SLICE_BITS_MIN;
    else if (whole_slice && took_ns < CHEAP_NS && bits < SLICE_BITS_MAX)
        bits++;
    connection->slice_bits = bits & 15u;
}

void share_give(struct connection *connection, const uint8_t *bytes, size_t size) {
    struct clients *clients = connection->clients;
    struct server *server = clients->server;
    broker_client_input(node_broker(server->node), server_now_ms(server), connection->handle, bytes, size);
    node_tell_rows(server->node, server_now_ms(server));
    const uint64_t now_ns = uv_hrtime();
    const uint64_t took_ns = now_ns - clients->clock_ns;
    clients->clock_ns = now_ns;
    connection->spent_ns =
        took_ns > UINT32_MAX - connection->spent_ns ? UINT32_MAX : connection->spent_ns + (uint32_t)took_ns;
    adapt(connection, took_ns, size >> connection->slice_bits != 0);
}

size_t share_give_all(struct connection *connection, const uint8_t *bytes, size_t size) {
    size_t given = 0, part;
    share_begin(connection);
    while (given < size && (part = share_part(connection)) > 0) {
        if (part > size - given) part = size - given;
        share_give(connection, bytes + given, part);
        given += part;
    }
    return given;
}

void share_check_pause(struct connection *connection) {
    const struct server *server = connection->clients->server;
    if (connection->list != LIST_OPEN && connection->list != LIST_WAITING) return;
    connection->is_paused = broker_client_paused(node_broker(server->node), connection->handle);
    if (connection->layers == NULL || connection->layers->rest.size == 0) return;
    connection_move(connection, connection->is_paused ? LIST_OPEN : LIST_WAITING);
}

void share_keep(struct connection *connection, const uint8_t *bytes, size_t size) {
    struct layers *layers = connection_layers(connection);
    if (layers != NULL) text_append(&layers->rest, (const char *)bytes, size);
    if (layers == NULL || layers->rest.failed) {
        connection_log(connection, "client_lost", "memory is short for its input: give the machine more");
        connection_close(connection);
    }
}

static void resume(struct connection *connection) {
    struct layers *layers = connection->layers;
    connection->clients->clock_ns = uv_hrtime();
    layers->rest_at +=
        frames_take(connection, (uint8_t *)layers->rest.bytes + layers->rest_at, layers->rest.size - layers->rest_at);
    if (connection->list != LIST_WAITING) return; /* it has ended */
    if (layers->rest_at == layers->rest.size) {
        text_deinit(&layers->rest);
        layers->rest_at = 0;
        connection_move(connection, LIST_OPEN);
        if (layers->tls == NULL && layers->websocket == NULL) connection_drop_layers(connection);
    }
    share_check_pause(connection); /* and if it waits, at the end of the list */
    connection_watch(connection);
}

/* ---- handshakes ---- */

static void read_handshake(struct connection *connection) {
    struct clients *clients = connection->clients;
    const uint64_t before_ns = clients->clock_ns = uv_hrtime();
    stream_read(connection);
    clients->clock_ns = uv_hrtime();
    clients->handshakes_ns += clients->clock_ns - before_ns;
}

/* One costs us as much as hundreds of publications, and who asks for it a few hundred bytes: they wait for each other,
 * and those who are connected for few of them. Who goes on with one has done something for it, unlike who sends the
 * same greeting again and again, and comes first. */
void share_read(struct connection *connection) {
    struct clients *clients = connection->clients;
    if (connection->list != LIST_ARRIVING || !connection->layers->with_tls) {
        stream_read(connection);
    } else if (clients->queued == NULL && clients->handshakes_ns < HANDSHAKES_NS) {
        read_handshake(connection);
    } else {
        connection->is_queued = true;
        if (connection->layers->tls != NULL)
            DL_PREPEND2(clients->queued, connection->layers, queued_prev, queued_next);
        else
            DL_APPEND2(clients->queued, connection->layers, queued_prev, queued_next);
        connection_watch(connection);
    }
}

void share_leave_queue(struct connection *connection) {
    if (!connection->is_queued) return;
    connection->is_queued = false;
    DL_DELETE2(connection->clients->queued, connection->layers, queued_prev, queued_next);
}

static void resume_handshakes(struct clients *clients) {
    clients->handshakes_ns = 0;
    while (clients->queued != NULL && clients->handshakes_ns < HANDSHAKES_NS) {
        struct connection *connection = clients->queued->connection;
        share_leave_queue(connection);
        read_handshake(connection);
        connection_watch(connection);
    }
}

/* ---- the turn ---- */

void share_resume(struct clients *clients) {
    resume_handshakes(clients);
    const uint64_t until_ns = clients->clock_ns + RESUMED_NS;
    const struct layers *last = clients->waiting != NULL ? clients->waiting->prev : NULL;
    for (bool more = last != NULL; more && clients->waiting != NULL;) {
        struct layers *layers = clients->waiting;
        more = layers != last && clients->clock_ns < until_ns;
        resume(layers->connection);
    }
}
