#include "daemon/clients.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define HASH_NONFATAL_OOM 1 /* an element that did not fit has hh.tbl NULL */
#include <uthash.h>
#include <utlist.h>

#include "daemon/listening.h"

#define READ_SIZE                                                                                                      \
    (64u * 1024u)        /* bytes taken from a socket at once; one buffer for all, since the broker only borrows it */
#define SPANS_MAX 64u    /* pieces of one write */
#define ROUNDS_MAX 4u    /* writes for one client in one turn; then the kernel's readiness paces it */
#define SLICE 512u       /* bytes given to the broker at once */
#define TURN_NS 2000000u /* of the broker's time for what one client sent, in one turn of the loop */
#define RESUMED_NS 4000000u /* of it for all those together that have more to say */
#define ENDED_MS 2000u      /* for a far end to take its last bytes and hang up; then the socket is closed under it */
#define BACKLOG 1024
#define FILES_KEPT 64u /* descriptors that clients may not use up: links, logs, files and the admin port need some */

struct client {
    uv_tcp_t tcp; /* first: handles are cast to clients */
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct clients *clients;
    broker_handle handle;    /* 0 once the broker knows no more of it */
    size_t writing;          /* bytes of the write under way; 0 if there is none */
    uint64_t close_at_ms;    /* once ended */
    bool is_ready;           /* in clients->ready */
    bool is_ended;           /* in clients->ended: its input is thrown away, its last output on the way */
    uint64_t turn, spent_ns; /* the turn it was last heard in, and what it cost then */
    uint8_t *rest;           /* input that has to wait for the next turn */
    size_t rest_size, rest_at;
    bool is_paused; /* in clients->paused: nothing is read from it */
    struct client *paused_next, *paused_prev;
    bool is_shut;               /* all is written, the far end's hang-up awaited */
    struct client *next, *prev; /* of ready or ended; an ended client is flushed by its own events */
    UT_hash_handle hh;          /* by handle */
};

struct listener {
    uv_tcp_t tcp;
    struct clients *clients;
    bool from_loopback; /* nobody else can reach it */
};

struct clients {
    struct server *server;
    size_t handles; /* open on the loop, all kinds; at 0 everything is freed */
    bool closing;
    size_t listener_count;
    struct listener *listeners[CONFIG_LISTENERS_MAX];
    struct client *by_handle;
    struct client *ready;
    struct client *ended; /* the earliest close_at_ms first */
    size_t count;
    uint64_t files_max;
    struct client *paused; /* who used up its share of the turn: the longest waiting first */
    uint64_t turn;
    uv_timer_t timer; /* for the first of ended */
    uv_idle_t idle;   /* while there are paused */
    char read_buffer[READ_SIZE];
};

/* ---- closing ---- */

static void release(struct clients *clients) {
    if (--clients->handles == 0) free(clients);
}

static void on_client_closed(uv_handle_t *handle) {
    struct client *client = (struct client *)handle;
    struct clients *clients = client->clients;
    clients->count--;
    free(client->rest);
    free(client);
    release(clients);
}

static void on_listener_closed(uv_handle_t *handle) {
    struct listener *listener = (struct listener *)handle;
    struct clients *clients = listener->clients;
    free(listener);
    release(clients);
}

static void on_helper_closed(uv_handle_t *handle) {
    release(handle->data);
}

/* The socket goes at once; a write under way is given up. */
static void client_close(struct client *client) {
    struct clients *clients = client->clients;
    if (uv_is_closing((uv_handle_t *)&client->tcp)) return;
    if (client->is_ready) DL_DELETE(clients->ready, client);
    if (client->is_ended) DL_DELETE(clients->ended, client);
    if (client->is_paused) DL_DELETE2(clients->paused, client, paused_prev, paused_next);
    client->is_ready = client->is_ended = client->is_paused = false;
    if (client->handle != 0) {
        HASH_DEL(clients->by_handle, client);
        broker_client_closed(node_broker(clients->server->node), server_now_ms(clients->server), client->handle);
        client->handle = 0;
    }
    uv_close((uv_handle_t *)&client->tcp, on_client_closed);
}

static void on_timer(uv_timer_t *timer) {
    struct clients *clients = timer->data;
    const uint64_t now_ms = server_now_ms(clients->server);
    while (clients->ended != NULL && clients->ended->close_at_ms <= now_ms)
        client_close(clients->ended);
    if (clients->ended != NULL) uv_timer_start(&clients->timer, on_timer, clients->ended->close_at_ms - now_ms, 0);
    server_pump(clients->server);
}

/* The broker is done with the client: what is left to write, and the far end's hang-up, have ENDED_MS. */
static void client_end(struct client *client) {
    struct clients *clients = client->clients;
    if (client->is_ended) return;
    if (client->is_ready) DL_DELETE(clients->ready, client);
    client->is_ready = false;
    client->is_ended = true;
    client->close_at_ms = server_now_ms(clients->server) + ENDED_MS;
    DL_APPEND(clients->ended, client);
    if (!uv_is_active((uv_handle_t *)&clients->timer)) uv_timer_start(&clients->timer, on_timer, ENDED_MS, 0);
}

/* A close with unread input would be a reset, and could overtake the DISCONNECT that says why: so hang up, and let the
 * far end close. */
static void client_shut(struct client *client) {
    if (client->is_shut) return;
    client->is_shut = true;
    if (uv_shutdown(&client->shutdown, (uv_stream_t *)&client->tcp, NULL) != 0) client_close(client);
}

/* ---- writing ---- */

static void client_flush(struct client *client);

static void on_written(uv_write_t *write, int status) {
    struct client *client = write->data;
    struct server *server = client->clients->server;
    const size_t size = client->writing;
    client->writing = 0;
    if (client->handle == 0) return; /* closed meanwhile */
    if (status < 0) {
        client_close(client);
    } else {
        broker_client_written(node_broker(server->node), server_now_ms(server), client->handle, size);
        client_flush(client);
    }
    server_pump(server);
}

/* The pieces stay where they are until broker_client_written(), so libuv may have them without a copy. */
static void write_later(struct client *client, const uv_buf_t *buffers, unsigned count, size_t size) {
    client->write.data = client;
    client->writing = size;
    if (uv_write(&client->write, (uv_stream_t *)&client->tcp, buffers, count, on_written) == 0) return;
    client->writing = 0;
    client_close(client);
}

static size_t client_output(struct client *client, uv_buf_t buffers[SPANS_MAX], size_t *size) {
    struct broker_span spans[SPANS_MAX];
    const size_t count =
        broker_client_output(node_broker(client->clients->server->node), client->handle, spans, SPANS_MAX);
    *size = 0;
    for (size_t i = 0; i < count; i++) {
        union {
            const uint8_t *in;
            char *out; /* libuv only reads it */
        } bytes = {.in = spans[i].bytes};
        buffers[i] = uv_buf_init(bytes.out, (unsigned)spans[i].size);
        *size += spans[i].size;
    }
    return count;
}

/* Writes until nothing is left or the socket is full; the rest goes out when it has room. */
static void client_flush(struct client *client) {
    struct server *server = client->clients->server;
    struct broker *broker = node_broker(server->node);
    uv_buf_t buffers[SPANS_MAX];
    size_t size = 0, count = 0;
    if (client->writing > 0) { /* a far end that never reads must not keep this write, and itself, for ever */
        if (broker_client_ended(broker, client->handle)) client_end(client);
        return;
    }
    for (unsigned round = 0; (count = client_output(client, buffers, &size)) > 0; round++) {
        const int written =
            round < ROUNDS_MAX ? uv_try_write((uv_stream_t *)&client->tcp, buffers, (unsigned)count) : UV_EAGAIN;
        if (written == UV_EAGAIN) {
            write_later(client, buffers, (unsigned)count, size);
            break;
        }
        if (written < 0) {
            client_close(client);
            return;
        }
        broker_client_written(broker, server_now_ms(server), client->handle, (size_t)written);
    }
    if (client->handle == 0 || !broker_client_ended(broker, client->handle)) return;
    client_end(client);
    if (count == 0) client_shut(client);
}

bool clients_ready(struct clients *clients, broker_handle handle) {
    struct client *client = NULL;
    HASH_FIND(hh, clients->by_handle, &handle, sizeof(handle), client);
    if (client == NULL) return false;
    if (client->is_ready || client->is_ended) return true;
    client->is_ready = true;
    DL_APPEND(clients->ready, client);
    return true;
}

void clients_flush(struct clients *clients) {
    clients->turn++;
    while (clients->ready != NULL) {
        struct client *client = clients->ready;
        DL_DELETE(clients->ready, client);
        client->is_ready = false;
        client_flush(client);
        if (clients->ready == NULL) server_pump(clients->server); /* what was written made room for more */
    }
}

/* ---- reading ---- */

static void on_room(uv_handle_t *handle, size_t suggested_size, uv_buf_t *buffer) {
    (void)suggested_size;
    struct client *client = (struct client *)handle;
    *buffer = uv_buf_init(client->clients->read_buffer, READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer);

/* Gives the broker as much as this client's share of the turn allows; returns how much. A few bytes can cost it a long
 * search, so it is time that is shared out. */
static size_t client_give(struct client *client, const uint8_t *bytes, size_t size) {
    struct server *server = client->clients->server;
    uint64_t before_ns = uv_hrtime();
    size_t given = 0;
    if (client->turn != client->clients->turn) client->spent_ns = 0;
    client->turn = client->clients->turn;
    while (given < size && client->spent_ns < TURN_NS) {
        const size_t part = size - given < SLICE ? size - given : SLICE;
        broker_client_input(node_broker(server->node), server_now_ms(server), client->handle, bytes + given, part);
        given += part;
        const uint64_t now_ns = uv_hrtime();
        client->spent_ns += now_ns - before_ns;
        before_ns = now_ns;
    }
    return given;
}

static void on_idle(uv_idle_t *idle);

/* Its rest is kept for the next turns; without memory for that it is heard at once. */
static void client_pause(struct client *client, const uint8_t *rest, size_t size) {
    struct clients *clients = client->clients;
    struct server *server = clients->server;
    client->rest = size > 0 ? malloc(size) : NULL;
    if (client->rest == NULL && size > 0) {
        broker_client_input(node_broker(server->node), server_now_ms(server), client->handle, rest, size);
        return;
    }
    if (size > 0) memcpy(client->rest, rest, size);
    client->rest_size = size;
    client->rest_at = 0;
    client->is_paused = true;
    uv_read_stop((uv_stream_t *)&client->tcp);
    if (clients->paused == NULL) uv_idle_start(&clients->idle, on_idle);
    DL_APPEND2(clients->paused, client, paused_prev, paused_next);
}

/* True once all its rest is given and it is read from again. */
static bool client_resume(struct client *client) {
    if (!client->is_ended && client->rest != NULL)
        client->rest_at += client_give(client, client->rest + client->rest_at, client->rest_size - client->rest_at);
    if (!client->is_ended && client->rest_at < client->rest_size) return false;
    free(client->rest);
    client->rest = NULL;
    client->rest_size = client->rest_at = 0;
    client->is_paused = false;
    DL_DELETE2(client->clients->paused, client, paused_prev, paused_next);
    if (uv_read_start((uv_stream_t *)&client->tcp, on_room, on_read) != 0) client_close(client);
    return true;
}

static void on_idle(uv_idle_t *idle) {
    struct clients *clients = idle->data;
    const uint64_t until_ns = uv_hrtime() + RESUMED_NS;
    const struct client *last = clients->paused != NULL ? clients->paused->paused_prev : NULL;
    for (bool more = clients->paused != NULL; more;) {
        struct client *client = clients->paused;
        more = client != last && uv_hrtime() < until_ns;
        if (client_resume(client)) continue;
        DL_DELETE2(clients->paused, client, paused_prev, paused_next);
        DL_APPEND2(clients->paused, client, paused_prev, paused_next);
    }
    if (clients->paused == NULL) uv_idle_stop(&clients->idle);
    server_pump(clients->server);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer) {
    struct client *client = (struct client *)stream;
    struct server *server = client->clients->server;
    if (size == 0 || (size > 0 && client->is_ended)) return;
    if (size < 0) {
        client_close(client);
    } else {
        const uint8_t *bytes = (const uint8_t *)buffer->base;
        const size_t given = client_give(client, bytes, (size_t)size);
        if (client->spent_ns >= TURN_NS) client_pause(client, bytes + given, (size_t)size - given);
    }
    server_pump(server);
}

/* ---- accepting ---- */

/* "192.0.2.7:41234" or "[2001:db8::7]:41234". */
static void far_address(const uv_tcp_t *tcp, char *out, size_t size) {
    struct sockaddr_storage address;
    int address_size = sizeof(address);
    char ip[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    if (uv_tcp_getpeername(tcp, (struct sockaddr *)&address, &address_size) == 0) {
        const bool v6 = address.ss_family == AF_INET6;
        uv_ip_name((struct sockaddr *)&address, ip, sizeof(ip));
        port = ntohs(v6 ? ((struct sockaddr_in6 *)&address)->sin6_port : ((struct sockaddr_in *)&address)->sin_port);
    }
    snprintf(out, size, strchr(ip, ':') != NULL ? "[%s]:%u" : "%s:%u", ip, port);
}

static bool leaves_files(const struct client *client) {
    uv_os_fd_t file = -1;
    return uv_fileno((const uv_handle_t *)&client->tcp, &file) == 0 &&
           (uint64_t)file + FILES_KEPT < client->clients->files_max;
}

static void refuse(struct client *client, const char *reason) {
    log_text(client->clients->server->log, LOG_LEVEL_WARNING, "client_refused", "%s", reason);
    client_close(client);
}

static void client_open(struct client *client, bool from_loopback) {
    struct clients *clients = client->clients;
    struct server *server = clients->server;
    char address[64];
    far_address(&client->tcp, address, sizeof(address));
    if (server->leaving) {
        client_close(client);
        return;
    }
    if (!leaves_files(client)) {
        refuse(client, "out of file descriptors: raise the limit of open files (LimitNOFILE= in a systemd unit, ulimit "
                       "-n in a shell)");
        return;
    }
    const struct broker_origin origin = {.from_loopback = from_loopback, .address = address};
    const broker_handle handle = broker_client_open(node_broker(server->node), server_now_ms(server), &origin);
    if (handle == 0) {
        refuse(client, "limits.clients_max is reached, or memory is short");
        return;
    }
    client->handle = handle;
    HASH_ADD(hh, clients->by_handle, handle, sizeof(client->handle), client);
    if (client->hh.tbl == NULL) {
        client->handle = 0;
        broker_client_closed(node_broker(server->node), server_now_ms(server), handle);
        refuse(client, "memory is short");
        return;
    }
    uv_tcp_nodelay(&client->tcp, 1);
    if (uv_read_start((uv_stream_t *)&client->tcp, on_room, on_read) != 0) client_close(client);
}

static void on_connection(uv_stream_t *stream, int status) {
    struct listener *listener = (struct listener *)stream;
    struct clients *clients = listener->clients;
    struct client *client = status == 0 ? calloc(1, sizeof(*client)) : NULL;
    if (client == NULL) { /* libuv has closed what it could not give us, or asks again once there is memory */
        log_text(clients->server->log, LOG_LEVEL_WARNING, "client_refused", "%s",
                 status != 0 ? uv_strerror(status) : "memory is short");
        return;
    }
    client->clients = clients;
    uv_tcp_init(clients->server->loop, &client->tcp);
    clients->handles++;
    clients->count++;
    const int result = uv_accept(stream, (uv_stream_t *)&client->tcp);
    if (result == 0)
        client_open(client, listener->from_loopback);
    else
        client_close(client);
    server_pump(clients->server);
}

/* ---- listening ---- */

static int listener_open(struct listener *listener, const struct config_listeners *all,
                         const struct config_address *address) {
    struct sockaddr_storage where;
    listening_sockaddr(address, &where);
    listener->from_loopback = config_ip_is_loopback(address->ip);
    int result =
        uv_tcp_bind(&listener->tcp, (struct sockaddr *)&where, listening_v6only(all, address) ? UV_TCP_IPV6ONLY : 0);
    if (result == 0) result = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, on_connection);
    return -result; /* libuv's errors are negated errno values on Unix */
}

static bool add_listener(struct clients *clients, const struct config_address *address, char error[SERVER_ERROR_MAX]) {
    const struct server *server = clients->server;
    struct listener *listener = calloc(1, sizeof(*listener));
    int result = ENOMEM;
    if (listener != NULL) {
        listener->clients = clients;
        uv_tcp_init(server->loop, &listener->tcp);
        clients->handles++;
        clients->listeners[clients->listener_count++] = listener;
        result = listener_open(listener, &server->config->listen.mqtt, address);
    }
    if (result != 0) {
        listening_explain(server->config, "listen.mqtt", address, result, error, SERVER_ERROR_MAX);
        return false;
    }
    char shown[CONFIG_ADDRESS_MAX];
    config_address_format(address, shown);
    log_line(server->log, LOG_LEVEL_INFO, "listening", "what", "mqtt", "address", shown, NULL);
    return true;
}

static uint64_t files_limit(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

struct clients *clients_new(struct server *server, char error[SERVER_ERROR_MAX]) {
    struct clients *clients = calloc(1, sizeof(*clients));
    if (clients == NULL) {
        snprintf(error, SERVER_ERROR_MAX, "memory is short: give the machine more");
        return NULL;
    }
    clients->server = server;
    clients->files_max = files_limit();
    uv_timer_init(server->loop, &clients->timer);
    clients->timer.data = clients;
    uv_idle_init(server->loop, &clients->idle);
    clients->idle.data = clients;
    clients->handles = 2;
    for (size_t i = 0; i < server->config->listen.mqtt.count; i++) {
        if (add_listener(clients, &server->config->listen.mqtt.items[i], error)) continue;
        clients_close(clients);
        return NULL;
    }
    return clients;
}

void clients_stop_listening(struct clients *clients) {
    for (size_t i = 0; i < clients->listener_count; i++)
        uv_close((uv_handle_t *)&clients->listeners[i]->tcp, on_listener_closed);
    clients->listener_count = 0;
}

size_t clients_count(const struct clients *clients) {
    return clients->count;
}

void clients_close(struct clients *clients) {
    if (clients == NULL || clients->closing) return;
    clients->closing = true;
    clients_stop_listening(clients);
    struct client *client, *next;
    HASH_ITER(hh, clients->by_handle, client, next) client_close(client);
    uv_close((uv_handle_t *)&clients->timer, on_helper_closed);
    uv_close((uv_handle_t *)&clients->idle, on_helper_closed);
}
