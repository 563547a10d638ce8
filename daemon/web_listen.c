/* Listening sockets of web. They are ours and not libwebsockets' own: an address that cannot be had is a plain error
 * here, connections are bounded before anything is spent on them, and each knows which listener it came through. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/descriptors.h"
#include "daemon/listening.h"
#include "daemon/web_inside.h"

#define ACCEPTS_PER_TURN 64
#define ACCEPT_PAUSE_MS 100 /* after descriptors ran out: a level-triggered poll would spin */

/* ip has room for 46 bytes. */
static uint16_t from_sockaddr(const struct sockaddr_storage *address, char *ip) {
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        uv_ip4_name(in, ip, 46);
        return ntohs(in->sin_port);
    }
    const struct sockaddr_in6 *in6 = (const void *)address;
    uv_ip6_name(in6, ip, 46);
    return ntohs(in6->sin6_port);
}

static void adopt(struct web_listener *listener, int fd, const struct sockaddr_storage *from) {
    struct web *web = listener->web;
    web->counters.accepted++;
    struct web_connection *connection =
        web_has_room(web, listener->kind, fd) ? web_connection_new(web, listener->kind, false) : NULL;
    if (connection == NULL) {
        close(fd);
        return;
    }
    char ip[46] = "";
    uint16_t port = from_sockaddr(from, ip);
    snprintf(connection->address, sizeof connection->address, from->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", ip,
             port);
    lws_adopt_desc_t adoption = {.vh = listener->kind == WEB_PEERS ? web->secure : web->plain,
                                 .type = LWS_ADOPT_SOCKET | LWS_ADOPT_HTTP | LWS_ADOPT_ALLOW_SSL,
                                 .fd.sockfd = fd,
                                 .opaque = connection};
    /* libwebsockets closes the descriptor when it fails. */
    web->starting = connection;
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&adoption);
    if (web->starting == NULL) return; /* and freed */
    web->starting = NULL;
    if (wsi == NULL) {
        web_connection_abandon(connection);
        return;
    }
    connection->wsi = wsi;
    lws_set_timeout(wsi, PENDING_TIMEOUT_ESTABLISH_WITH_SERVER, WEB_HANDSHAKE_S);
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void set_polling(struct web_listener *listener, bool polling) {
    if (!listener->open || listener->polling == polling) return;
    listener->polling = polling;
    if (polling)
        uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
    else
        uv_poll_stop(&listener->poll);
}

static void on_pause_over(uv_timer_t *timer) {
    struct web *web = timer->data;
    for (size_t i = 0; i < web->listener_count; i++)
        set_polling(&web->listeners[i], true);
}

static void on_acceptable(uv_poll_t *poll, int status, int events) {
    struct web_listener *listener = poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN && listener->open; i++) {
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        int fd = accept4(listener->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            adopt(listener, fd, &from);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            log_text(listener->web->server->log, LOG_LEVEL_WARNING, "descriptors",
                     "no connection to listen.%s can be accepted: %s: " DESCRIPTORS_REMEDY, listener->what,
                     strerror(errno));
            set_polling(listener, false);
            uv_timer_start(&listener->web->accept_timer, on_pause_over, ACCEPT_PAUSE_MS, 0);
        }
        if (errno != ECONNABORTED && errno != EINTR) return;
    }
}

static bool listen_on(struct web *web, enum web_kind kind, const struct config_address *address, const char *what,
                      char error[SERVER_ERROR_MAX]) {
    char key[32];
    /* The configuration is checked for this; should a name resolve to something else after that, it is still not
     * served. */
    if (kind == WEB_ADMIN && !config_ip_is_loopback(address->ip)) {
        snprintf(error, SERVER_ERROR_MAX,
                 "%s:%u (listen.admin) is not a loopback address, and the admin port has no token to ask for; write "
                 "127.0.0.1:%u",
                 address->host, address->port, address->port);
        return false;
    }
    int fd = listening_open(address, true);
    if (fd < 0) {
        snprintf(key, sizeof key, "listen.%s", what);
        listening_explain(web->server->config, key, address, -fd, error, SERVER_ERROR_MAX);
        return false;
    }
    struct web_listener *listener = &web->listeners[web->listener_count++];
    *listener = (struct web_listener){.web = web, .kind = kind, .what = what, .fd = fd, .open = true};
    return true;
}

bool web_listen(struct web *web, enum web_kind kind, const struct config_listeners *addresses, const char *what,
                char error[SERVER_ERROR_MAX]) {
    for (size_t i = 0; i < addresses->count; i++)
        if (!listen_on(web, kind, &addresses->items[i], what, error)) return false;
    return true;
}

bool web_listen_start(struct web *web, char error[SERVER_ERROR_MAX]) {
    for (size_t i = 0; i < web->listener_count; i++) {
        struct web_listener *listener = &web->listeners[i];
        struct sockaddr_storage sockaddr = {0};
        socklen_t size = sizeof sockaddr;
        char ip[46] = "", text[64];
        getsockname(listener->fd, (struct sockaddr *)&sockaddr, &size);
        listener->port = from_sockaddr(&sockaddr, ip);
        int status = uv_poll_init(web->server->loop, &listener->poll, listener->fd);
        if (status != 0) {
            snprintf(error, SERVER_ERROR_MAX,
                     "cannot watch the socket of listen.%s: %s; raise the limit of open files (ulimit -n)",
                     listener->what, uv_strerror(status));
            return false;
        }
        listener->poll.data = listener;
        listener->watched = true;
        set_polling(listener, true);
        snprintf(text, sizeof text, sockaddr.ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", ip, listener->port);
        log_line(web->server->log, LOG_LEVEL_INFO, "listening", "what", listener->what, "address", text, NULL);
    }
    return true;
}

void web_listen_stop(struct web *web, bool admin_too) {
    for (size_t i = 0; i < web->listener_count; i++) {
        struct web_listener *listener = &web->listeners[i];
        if (!listener->open || (listener->kind == WEB_ADMIN && !admin_too)) continue;
        set_polling(listener, false);
        listener->open = false;
        if (listener->watched) uv_close((uv_handle_t *)&listener->poll, NULL);
        close(listener->fd);
    }
}

uint16_t web_port(const struct web *web, enum web_kind kind, size_t index) {
    for (size_t i = 0; i < web->listener_count; i++)
        if (web->listeners[i].kind == kind && index-- == 0) return web->listeners[i].port;
    return 0;
}
