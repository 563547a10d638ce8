#include "daemon/clients_inside.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "daemon/descriptors.h"

#define ENDED_MS 2000u   /* for a far end to take its last bytes and hang up; then the socket is closed under it */
#define TURN_NS 4000000u /* of input; then what came of it goes out, and the next turn goes on with the rest */
#define SLICE_BITS_START 12u

/* ---- states ---- */

static struct layers **list_head(struct clients *clients, enum connection_list list) {
    switch (list) {
    case LIST_ARRIVING: return &clients->arriving;
    case LIST_WAITING: return &clients->waiting;
    case LIST_ENDED: return &clients->ended;
    default: return NULL;
    }
}

static void set_timer(struct clients *clients);
static void on_idle(uv_idle_t *idle);

void connection_move(struct connection *connection, enum connection_list list) {
    struct clients *clients = connection->clients;
    struct layers *layers = connection->layers;
    struct layers **from = list_head(clients, (enum connection_list)connection->list), **to = list_head(clients, list);
    if (from != NULL) DL_DELETE(*from, layers);
    if (connection->list == LIST_ARRIVING) clients->arriving_count--;
    if (list == LIST_ARRIVING) clients->arriving_count++;
    connection->list = list & 7u;
    if (to != NULL) DL_APPEND(*to, layers);
    if (list != LIST_ARRIVING && list != LIST_ENDED) return;
    layers->due_ms =
        server_now_ms(clients->server) + (list == LIST_ENDED ? ENDED_MS : clients->limits->connect_timeout_ms);
    if (*to == layers) set_timer(clients);
}

struct layers *connection_layers(struct connection *connection) {
    if (connection->layers != NULL) return connection->layers;
    connection->layers = calloc(1, sizeof(*connection->layers));
    if (connection->layers != NULL) connection->layers->connection = connection;
    return connection->layers;
}

void connection_drop_layers(struct connection *connection) {
    struct layers *layers = connection->layers;
    if (layers == NULL) return;
    tls_stream_free(layers->tls);
    free(layers->websocket);
    free(layers->name);
    text_deinit(&layers->greeting);
    text_deinit(&layers->unsent);
    text_deinit(&layers->rest);
    free(layers);
    connection->layers = NULL;
}

void connection_log(const struct connection *connection, const char *event, const char *why) {
    log_line(connection->clients->server->log, LOG_LEVEL_WARNING, event, "address",
             connection->layers != NULL ? connection->layers->address : "", "text", why, NULL);
}

void connection_watch(struct connection *connection) {
    const bool reads = (connection->list == LIST_ARRIVING && !connection->is_queued) ||
                       connection->list == LIST_ENDED || (connection->list == LIST_OPEN && !connection->is_paused);
    const uint8_t wanted = (uint8_t)((reads ? WATCH_IN : 0) | (connection->is_blocked ? WATCH_OUT : 0) |
                                     (connection->is_queued ? WATCH_END : 0));
    if (connection->list == LIST_DEAD || wanted == connection->watched) return;
    struct epoll_event event = {.events = ((wanted & WATCH_IN) != 0 ? EPOLLIN : 0u) |
                                          ((wanted & WATCH_OUT) != 0 ? EPOLLOUT : 0u) |
                                          ((wanted & WATCH_END) != 0 ? EPOLLRDHUP : 0u),
                                .data.ptr = connection};
    const int operation = connection->watched == WATCH_NONE ? EPOLL_CTL_ADD
                          : wanted == WATCH_NONE            ? EPOLL_CTL_DEL
                                                            : EPOLL_CTL_MOD;
    if (epoll_ctl(connection->clients->epoll, operation, connection->file, &event) == 0) {
        connection->watched = wanted & 7u;
    } else {
        connection_log(connection, "client_lost", strerror(errno));
        connection_close(connection);
    }
}

/* ---- from beginning to end ---- */

struct connection *connection_new(struct clients *clients, int file) {
    struct connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL) {
        close(file);
        return NULL;
    }
    connection->clients = clients;
    connection->file = file;
    connection->slice_bits = SLICE_BITS_START;
    clients->count++;
    return connection;
}

static bool place(struct connection *connection) {
    struct clients *clients = connection->clients;
    const size_t at = broker_client_place(connection->handle);
    if (at >= clients->place_count) {
        size_t count = clients->place_count != 0 ? clients->place_count : 16;
        while (count <= at)
            count *= 2;
        struct connection **places = realloc(clients->by_place, count * sizeof(struct connection *));
        if (places == NULL) return false;
        memset(places + clients->place_count, 0, (count - clients->place_count) * sizeof(struct connection *));
        clients->by_place = places;
        clients->place_count = count;
    }
    clients->by_place[at] = connection;
    return true;
}

bool connection_open(struct connection *connection, const struct broker_origin *origin) {
    struct clients *clients = connection->clients;
    struct server *server = clients->server;
    connection->handle = broker_client_open(node_broker(server->node), server_now_ms(server), origin);
    if (connection->handle != 0 && place(connection)) {
        connection_move(connection, LIST_OPEN);
        connection_watch(connection);
        return connection->list != LIST_DEAD;
    }
    clients->counters.refused++;
    log_line(server->log, LOG_LEVEL_WARNING, "client_refused", "address", origin->address, "text",
             "memory is short, or limits.clients_max or limits.connecting_max is reached and nobody silent can be sent "
             "away: give the machine more, or write larger limits",
             NULL);
    connection_close(connection);
    return false;
}

/* The broker is told, if it does not know yet. */
static void leave_broker(struct connection *connection) {
    struct clients *clients = connection->clients;
    struct server *server = clients->server;
    if (connection->handle == 0) return;
    const size_t at = broker_client_place(connection->handle);
    if (at < clients->place_count && clients->by_place[at] == connection) clients->by_place[at] = NULL;
    broker_client_closed(node_broker(server->node), server_now_ms(server), connection->handle);
    connection->handle = 0;
}

void connection_close(struct connection *connection) {
    struct clients *clients = connection->clients;
    if (connection->list == LIST_DEAD) return;
    leave_broker(connection);
    share_leave_queue(connection);
    frames_discard(clients);
    connection_move(connection, LIST_DEAD);
    close(connection->file); /* and epoll forgets it */
    connection->file = -1;
    clients->count--;
    LL_PREPEND2(clients->dead, connection, dead_next);
    uv_idle_start(&clients->idle, on_idle);
}

void connection_end(struct connection *connection) {
    const struct server *server = connection->clients->server;
    if (connection->list == LIST_ENDED || connection->list == LIST_DEAD) return;
    if (connection->handle != 0 && !broker_client_ended(node_broker(server->node), connection->handle))
        leave_broker(connection);
    if (connection_layers(connection) == NULL) { /* no memory to wait with for its last bytes */
        connection_close(connection);
        return;
    }
    text_deinit(&connection->layers->rest);
    connection_move(connection, LIST_ENDED);
}

/* ---- deadlines ---- */

static void on_timer(uv_timer_t *timer);

static void set_timer(struct clients *clients) {
    const struct layers *const first[] = {clients->ended, clients->arriving};
    const uint64_t now_ms = server_now_ms(clients->server);
    uint64_t due_ms = UINT64_MAX;
    for (size_t i = 0; i < 2; i++)
        if (first[i] != NULL && first[i]->due_ms < due_ms) due_ms = first[i]->due_ms;
    if (due_ms == UINT64_MAX)
        uv_timer_stop(&clients->timer);
    else
        uv_timer_start(&clients->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void on_timer(uv_timer_t *timer) {
    struct clients *clients = timer->data;
    const uint64_t now_ms = server_now_ms(clients->server);
    while (clients->ended != NULL && clients->ended->due_ms <= now_ms)
        connection_close(clients->ended->connection);
    while (clients->arriving != NULL && clients->arriving->due_ms <= now_ms) {
        clients->counters.arrivals_timed_out++;
        connection_log(
            clients->arriving->connection, "client_refused",
            "its handshake took longer than limits.connect_timeout_ms: it is slow, or no client of this listener");
        connection_close(clients->arriving->connection);
    }
    set_timer(clients);
    server_pump(clients->server);
}

/* ---- the turn of the loop ---- */

/* No event that was fetched names them any more. */
static void free_dead(struct clients *clients) {
    struct connection *connection, *next;
    LL_FOREACH_SAFE2(clients->dead, connection, next, dead_next) {
        if (connection->is_ready) continue; /* freed once it has been taken from there */
        LL_DELETE2(clients->dead, connection, dead_next);
        connection_drop_layers(connection);
        free(connection);
    }
}

static void on_event(struct connection *connection, uint32_t events) {
    if (connection->list == LIST_DEAD) return;
    if (connection->is_queued && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        connection_close(connection); /* nobody waits for this handshake any more */
        return;
    }
    if ((events & EPOLLOUT) != 0 || ((events & (EPOLLHUP | EPOLLERR)) != 0 && connection->watched == WATCH_OUT))
        stream_flush(connection);
    if (connection->list != LIST_DEAD && (connection->watched & WATCH_IN) != 0 && (events & ~(uint32_t)EPOLLOUT) != 0)
        share_read(connection);
}

/* Handshakes have a share of their own: else a slow one would end each turn before those behind it are heard. */
static uint64_t clock_without_handshakes_ns(const struct clients *clients) {
    return clients->clock_ns - clients->handshakes_ns;
}

static void read_events(struct clients *clients) {
    const uint64_t until_ns = clock_without_handshakes_ns(clients) + TURN_NS;
    while (clients->event_at < clients->event_count && clock_without_handshakes_ns(clients) < until_ns) {
        const struct epoll_event *event = &clients->events[clients->event_at++];
        const uint64_t before_ns = clients->clock_ns;
        on_event(event->data.ptr, event->events);
        assert(clients->sending.size == 0); /* it would go to another client */
        if (clients->clock_ns == before_ns) clients->clock_ns = uv_hrtime();
    }
}

/* Those that wait go first, then those the kernel has named before, before it is asked for more: so everyone's turn
 * comes. */
static void run_turn(struct clients *clients) {
    clients->clock_ns = uv_hrtime();
    share_resume(clients);
    if (clients->event_at == clients->event_count) {
        free_dead(clients);
        clients->event_at = 0;
        clients->event_count = epoll_wait(clients->epoll, clients->events, CLIENTS_EVENTS_MAX, 0);
        if (clients->event_count < 0) clients->event_count = 0;
    }
    read_events(clients);
    if (clients->waiting == NULL && clients->queued == NULL && clients->dead == NULL &&
        clients->event_at == clients->event_count)
        uv_idle_stop(&clients->idle);
    else
        uv_idle_start(&clients->idle, on_idle);
    server_pump(clients->server);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    run_turn(poll->data);
}

static void on_idle(uv_idle_t *idle) {
    run_turn(idle->data);
}

/* ---- the door ---- */

bool clients_ready(struct clients *clients, broker_handle handle) {
    const size_t at = broker_client_place(handle);
    struct connection *connection = at < clients->place_count ? clients->by_place[at] : NULL;
    if (connection == NULL || connection->handle != handle) return false;
    if (connection->is_ready || connection->list == LIST_ENDED) return true;
    connection->is_ready = true;
    connection->ready_next = NULL;
    *clients->ready_end = connection;
    clients->ready_end = &connection->ready_next;
    return true;
}

/* A write under way goes on by itself, but a far end that never reads must not keep it, and itself, for ever. */
static void flush_ready(struct connection *connection) {
    const struct broker *broker = node_broker(connection->clients->server->node);
    if (connection->list == LIST_DEAD) return;
    if (connection->is_paused && connection->list == LIST_OPEN) share_check_pause(connection);
    if (!connection->is_blocked)
        stream_flush(connection);
    else if (connection->handle != 0 && broker_client_ended(broker, connection->handle))
        connection_end(connection);
    if (connection->list == LIST_WAITING) uv_idle_start(&connection->clients->idle, on_idle);
    connection_watch(connection);
}

void clients_flush(struct clients *clients) {
    clients->turn++;
    while (clients->ready != NULL) {
        struct connection *connection = clients->ready;
        clients->ready = connection->ready_next;
        if (clients->ready == NULL) clients->ready_end = &clients->ready;
        connection->is_ready = false;
        flush_ready(connection);
        assert(clients->sending.size == 0);
        if (clients->ready == NULL) server_pump(clients->server); /* what was written made room for more */
    }
}

static void start_handles(struct clients *clients) {
    uv_loop_t *loop = clients->server->loop;
    uv_timer_init(loop, &clients->timer);
    uv_timer_init(loop, &clients->accept_timer);
    uv_idle_init(loop, &clients->idle);
    clients->timer.data = clients->accept_timer.data = clients->idle.data = clients;
    clients->handles = 3;
    clients->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (clients->epoll < 0 || uv_poll_init(loop, &clients->poll, clients->epoll) != 0) return;
    clients->poll.data = clients;
    clients->handles++;
    uv_poll_start(&clients->poll, UV_READABLE, on_poll);
}

struct clients *clients_new(struct server *server, char error[SERVER_ERROR_MAX]) {
    struct clients *clients = calloc(1, sizeof(*clients));
    if (clients == NULL) {
        snprintf(error, SERVER_ERROR_MAX, "memory is short: give the machine more");
        return NULL;
    }
    clients->server = server;
    clients->limits = broker_limits_of(node_broker(server->node));
    clients->files_max = descriptors_max();
    clients->ready_end = &clients->ready;
    start_handles(clients);
    if (clients->handles == 4 && listeners_open(clients, error)) return clients;
    if (clients->handles < 4)
        snprintf(error, SERVER_ERROR_MAX, "sockets cannot be watched: raise the limit of open files (ulimit -n)");
    clients_close(clients);
    return NULL;
}

void clients_stop_listening(struct clients *clients) {
    listeners_close(clients);
}

size_t clients_count(const struct clients *clients) {
    return clients->count;
}

uint16_t clients_port(const struct clients *clients, enum clients_kind kind, size_t index) {
    for (size_t i = 0; i < clients->listener_count; i++)
        if (clients->listeners[i]->kind == kind && index-- == 0) return clients->listeners[i]->port;
    return 0;
}

void clients_read_counters(const struct clients *clients, struct clients_counters *out) {
    *out = clients->counters;
    out->open = clients->count;
    out->arriving = clients->arriving_count;
}

void clients_release(struct clients *clients) {
    if (--clients->handles > 0) return;
    if (clients->epoll >= 0) close(clients->epoll);
    text_deinit(&clients->sending);
    free(clients->by_place);
    free(clients);
}

static void on_handle_closed(uv_handle_t *handle) {
    clients_release(handle->data);
}

void clients_close(struct clients *clients) {
    if (clients == NULL || clients->closing) return;
    clients->closing = true;
    listeners_close(clients);
    while (clients->arriving != NULL)
        connection_close(clients->arriving->connection);
    while (clients->ended != NULL)
        connection_close(clients->ended->connection);
    for (size_t i = 0; i < clients->place_count; i++)
        if (clients->by_place[i] != NULL) connection_close(clients->by_place[i]);
    for (struct connection *connection = clients->ready; connection != NULL; connection = connection->ready_next)
        connection->is_ready = false;
    clients->ready = NULL;
    clients->ready_end = &clients->ready;
    clients->event_at = clients->event_count = 0;
    free_dead(clients);
    const bool watches = clients->handles > 3; /* listeners have handles of their own */
    uv_close((uv_handle_t *)&clients->timer, on_handle_closed);
    uv_close((uv_handle_t *)&clients->accept_timer, on_handle_closed);
    uv_close((uv_handle_t *)&clients->idle, on_handle_closed);
    if (watches) uv_close((uv_handle_t *)&clients->poll, on_handle_closed);
}
