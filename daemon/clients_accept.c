/* Listeners, and what comes in by them. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/clients_inside.h"
#include "daemon/descriptors.h"
#include "daemon/listening.h"

#define ACCEPTS_PER_TURN 64 /* of one listener; then the others have their turn */
#define ACCEPT_PAUSE_MS 100 /* after descriptors ran out: the loop would spin */

/* ---- accepting ---- */

/* Numeric text; IPv4 that came through an IPv6 socket is shown, and compared, as the IPv4 that it is. */
static void far_address(const struct sockaddr_storage *from, char ip[46], char *shown, size_t size) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    if (from->ss_family == AF_INET) {
        uv_ip4_name(v4, ip, 46);
        snprintf(shown, size, "%s:%u", ip, ntohs(v4->sin_port));
    } else if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        uv_inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, ip, 46);
        snprintf(shown, size, "%s:%u", ip, ntohs(v6->sin6_port));
    } else if (from->ss_family == AF_INET6) {
        uv_ip6_name(v6, ip, 46);
        snprintf(shown, size, "[%s]:%u", ip, ntohs(v6->sin6_port));
    } else {
        ip[0] = '\0';
        snprintf(shown, size, "unix");
    }
}

static void refuse(struct clients *clients, int file, const char *address, const char *why) {
    clients->counters.refused++;
    if (file >= 0) close(file);
    log_line(clients->server->log, LOG_LEVEL_WARNING, "client_refused", "address", address, "text", why, NULL);
}

/* Who opens connections and is silent keeps nobody out: the oldest that has not finished its handshakes goes. */
static void make_room(struct clients *clients) {
    if (clients->arriving == NULL || clients->arriving_count < clients->limits->connecting_max) return;
    clients->counters.arrivals_displaced++;
    connection_log(clients->arriving->connection, "client_refused",
                   "limits.connecting_max is reached, and its handshake is the oldest under way");
    connection_close(clients->arriving->connection);
}

/* The oldest of those at their end; or else of those that have not said who they are, of the kind that there is more
 * of. */
static struct connection *most_dispensable(const struct clients *clients) {
    broker_handle silent = 0;
    if (clients->ended != NULL) return clients->ended->connection;
    const size_t silent_count = broker_clients_connecting(node_broker(clients->server->node), &silent);
    if (silent_count > clients->arriving_count) return clients->by_place[broker_client_place(silent)];
    return clients->arriving != NULL ? clients->arriving->connection : NULL;
}

/* With few descriptors they run out long before limits.connecting_max is reached. The new connection takes over the
 * number of another, as numbers tell how many there are. False, and it is closed, if none can go. The lines have an
 * event of their own, which nobody's mistakes can use up. */
static bool find_descriptor(struct clients *clients, int *file, const char *address) {
    struct connection *connection = most_dispensable(clients);
    int lower = -1;
    log_line(clients->server->log, LOG_LEVEL_WARNING, "descriptors", "address", address, "text",
             connection != NULL
                 ? "out of file descriptors, and so another connection, which was at its end or had sent "
                   "no CONNECT, was closed: " DESCRIPTORS_REMEDY
                 : "refused, out of file descriptors: " DESCRIPTORS_REMEDY,
             NULL);
    if (connection != NULL) {
        clients->counters.displaced++;
        connection_close(connection);
        lower = fcntl(*file, F_DUPFD_CLOEXEC, 0);
    } else {
        clients->counters.refused++;
    }
    close(*file);
    *file = lower;
    return lower >= 0;
}

static void admit(struct listener *listener, int file, const struct sockaddr_storage *from) {
    struct clients *clients = listener->clients;
    struct server *server = clients->server;
    char ip[46], address[64];
    far_address(from, ip, address, sizeof(address));
    clients->counters.accepted[listener->kind]++;
    if ((uint64_t)file + DESCRIPTORS_LEFT_BY_CLIENTS >= clients->files_max && !find_descriptor(clients, &file, address))
        return;
    struct connection *connection = connection_new(clients, file);
    if (connection == NULL) {
        refuse(clients, -1, address, "memory is short: give the machine more");
        return;
    }
    const bool proxied = config_is_proxy(server->config, ip);
    if (proxied || listener->kind != CLIENTS_MQTT) {
        make_room(clients);
        arrive(connection, listener, proxied, address);
    } else {
        const struct broker_origin origin = {.from_loopback = listener->from_loopback, .address = address};
        connection_open(connection, &origin);
    }
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void set_polling(struct listener *listener, bool polling) {
    if (listener->is_polling == polling) return;
    listener->is_polling = polling;
    if (polling)
        uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
    else
        uv_poll_stop(&listener->poll);
}

static void on_pause_over(uv_timer_t *timer) {
    const struct clients *clients = timer->data;
    for (size_t i = 0; i < clients->listener_count; i++)
        set_polling(clients->listeners[i], true);
}

static void on_acceptable(uv_poll_t *poll, int status, int events) {
    struct listener *listener = (struct listener *)poll;
    struct clients *clients = listener->clients;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof(from);
        const int file = accept4(listener->file, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (file >= 0) {
            admit(listener, file, &from);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            clients->counters.refused++;
            log_line(clients->server->log, LOG_LEVEL_WARNING, "descriptors", "text",
                     errno == EMFILE   ? "refused, out of file descriptors: " DESCRIPTORS_REMEDY
                     : errno == ENFILE ? "refused, the machine is out of file descriptors: raise fs.file-max (sysctl)"
                                       : "refused, memory is short for a new connection: give the machine more",
                     NULL);
            set_polling(listener, false);
            uv_timer_start(&clients->accept_timer, on_pause_over, ACCEPT_PAUSE_MS, 0);
        }
        if (errno != ECONNABORTED && errno != EINTR) break;
    }
    server_pump(clients->server);
}

/* ---- listening ---- */

static uint16_t port_of(int file) {
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    getsockname(file, (struct sockaddr *)&address, &size);
    if (address.ss_family == AF_UNIX) return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

static void remember_file(struct listener *listener, const struct config_address *address) {
    struct stat status;
    if (!address->is_unix || stat(address->host, &status) != 0) return;
    listener->unix_path = address->host;
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
}

/* 0, or an errno value. */
static int listener_open(struct clients *clients, enum clients_kind kind, const struct config_listeners *all,
                         const struct config_address *address) {
    const struct config *config = clients->server->config;
    struct listener *listener = calloc(1, sizeof(*listener));
    if (listener == NULL) return ENOMEM;
    listener->file = address->is_unix ? listening_open_unix(address, config->listen.unix_mode)
                                      : listening_open(address, listening_v6only(all, address));
    const int error = listener->file < 0                                                          ? -listener->file
                      : uv_poll_init(clients->server->loop, &listener->poll, listener->file) != 0 ? EMFILE
                                                                                                  : 0;
    if (error != 0) {
        if (listener->file >= 0) close(listener->file);
        free(listener);
        return error;
    }
    listener->clients = clients;
    listener->kind = kind;
    listener->port = port_of(listener->file);
    listener->from_loopback = address->is_unix || config_ip_is_loopback(address->ip);
    remember_file(listener, address);
    clients->handles++;
    clients->listeners[clients->listener_count++] = listener;
    set_polling(listener, true);
    return 0;
}

bool listeners_open(struct clients *clients, char error[SERVER_ERROR_MAX]) {
    const struct server *server = clients->server;
    const struct config *config = server->config;
    const struct {
        enum clients_kind kind;
        const char *name;
        const struct config_listeners *listeners;
    } kinds[CLIENTS_KINDS] = {{CLIENTS_MQTT, "listen.mqtt", &config->listen.mqtt},
                              {CLIENTS_MQTTS, "listen.mqtts", &config->listen.mqtts},
                              {CLIENTS_WS, "listen.ws", &config->listen.ws},
                              {CLIENTS_WSS, "listen.wss", &config->listen.wss}};
    for (size_t i = 0; i < CLIENTS_KINDS; i++) {
        for (size_t at = 0; at < kinds[i].listeners->count; at++) {
            const struct config_address *address = &kinds[i].listeners->items[at];
            const int result = listener_open(clients, kinds[i].kind, kinds[i].listeners, address);
            char shown[CONFIG_ADDRESS_MAX];
            if (result != 0) {
                listening_explain(config, kinds[i].name, address, result, error, SERVER_ERROR_MAX);
                return false;
            }
            config_address_format(address, shown);
            log_line(server->log, LOG_LEVEL_INFO, "listening", "what", kinds[i].name + strlen("listen."), "address",
                     shown, NULL);
        }
    }
    return true;
}

static void on_listener_closed(uv_handle_t *handle) {
    struct listener *listener = (struct listener *)handle;
    struct clients *clients = listener->clients;
    free(listener);
    clients_release(clients);
}

/* Another process may have put its own socket in that place meanwhile. */
static void remove_file(const struct listener *listener) {
    struct stat status;
    if (listener->unix_path != NULL && stat(listener->unix_path, &status) == 0 && status.st_dev == listener->device &&
        status.st_ino == listener->inode)
        unlink(listener->unix_path);
}

void listeners_close(struct clients *clients) {
    for (size_t i = 0; i < clients->listener_count; i++) {
        struct listener *listener = clients->listeners[i];
        remove_file(listener);
        uv_close((uv_handle_t *)&listener->poll, on_listener_closed);
        close(listener->file);
    }
    clients->listener_count = 0;
}
