#include "daemon/datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/listening.h"

/* The longest datagram there is; only those up to GOSSIP_DATAGRAM_MAX are looked at. */
#define READ_SIZE (64u * 1024u)
#define KERNEL_BUFFER_SIZE                                                                                             \
    (1024 * 1024) /* bytes: a burst of a few hundred datagrams must not be lost while we are busy */

struct endpoint {
    uv_udp_t udp; /* first: handles are cast to endpoints */
    struct datagrams *datagrams;
    bool v6, dual; /* dual: a socket of family 6 that takes IPv4 too */
    bool any;      /* bound to every address */
    struct gossip_address bound;
};

struct datagrams {
    struct server *server;
    size_t handles; /* open on the loop; at 0 everything is freed */
    bool closing;
    size_t endpoint_count;
    struct endpoint *endpoints[CONFIG_LISTENERS_MAX];
    char read_buffer[READ_SIZE];
};

/* ---- addresses ---- */

bool datagrams_address_from(const struct sockaddr *from, struct gossip_address *to) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    *to = (struct gossip_address){0};
    if (from->sa_family == AF_INET) {
        to->family = 4;
        to->port = ntohs(v4->sin_port);
        memcpy(to->ip, &v4->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        to->family = mapped ? 4 : 6;
        to->port = ntohs(v6->sin6_port);
        memcpy(to->ip, (const uint8_t *)&v6->sin6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
    }
    return to->family != 0;
}

/* mapped: an IPv4 address is to be sent to through a socket of family 6. */
static void address_to(const struct gossip_address *from, bool mapped, struct sockaddr_storage *to) {
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
    memset(to, 0, sizeof(*to));
    if (from->family == 4 && !mapped) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(from->port);
        memcpy(&v4->sin_addr, from->ip, 4);
        return;
    }
    uint8_t *ip = (uint8_t *)&v6->sin6_addr;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(from->port);
    if (from->family == 4) {
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, from->ip, 4);
    } else {
        memcpy(ip, from->ip, 16);
    }
}

/* ---- in and out ---- */

static struct endpoint *endpoint_for(struct datagrams *datagrams, const struct gossip_address *to) {
    struct endpoint *dual = NULL;
    for (size_t i = 0; i < datagrams->endpoint_count; i++) {
        struct endpoint *endpoint = datagrams->endpoints[i];
        if (endpoint->v6 == (to->family == 6)) return endpoint;
        if (endpoint->dual) dual = endpoint;
    }
    return dual;
}

static void send_from(struct endpoint *endpoint, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    struct sockaddr_storage address;
    union {
        const uint8_t *in;
        char *out; /* libuv only reads it */
    } text = {.in = bytes};
    const uv_buf_t buffer = uv_buf_init(text.out, (unsigned)size);
    address_to(to, endpoint->v6, &address);
    const int result = uv_udp_try_send(&endpoint->udp, &buffer, 1, (struct sockaddr *)&address);
    if (result < 0)
        log_text(endpoint->datagrams->server->log, LOG_LEVEL_DEBUG, "not_sent", "a datagram: %s", uv_strerror(result));
}

void datagrams_send(struct datagrams *datagrams, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    struct endpoint *endpoint = endpoint_for(datagrams, to);
    if (endpoint != NULL)
        send_from(endpoint, to, bytes, size);
    else
        log_text(datagrams->server->log, LOG_LEVEL_DEBUG, "not_sent", "a datagram: %s", uv_strerror(UV_EAFNOSUPPORT));
}

/* ---- groups ---- */

static bool can_send(const struct endpoint *endpoint, bool v6) {
    return endpoint->v6 == v6 || (endpoint->dual && !v6);
}

bool datagrams_has_family(const struct datagrams *datagrams, bool v6) {
    for (size_t i = 0; i < datagrams->endpoint_count; i++)
        if (can_send(datagrams->endpoints[i], v6)) return true;
    return false;
}

static bool same_ip(const struct gossip_address *a, const struct gossip_address *b) {
    return a->family == b->family && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

static bool may_send_from(const struct endpoint *endpoint, const struct gossip_address *address, bool is_loopback) {
    return can_send(endpoint, address->family == 6) &&
           (endpoint->any ? !is_loopback : same_ip(&endpoint->bound, address));
}

bool datagrams_may_send_from(const struct datagrams *datagrams, const struct gossip_address *address,
                             bool is_loopback) {
    for (size_t i = 0; i < datagrams->endpoint_count; i++)
        if (may_send_from(datagrams->endpoints[i], address, is_loopback)) return true;
    return false;
}

/* A socket of family 6 that takes IPv4 too has the options of both. */
static void choose_interface(struct endpoint *endpoint, bool v6, unsigned interface) {
    const int one = 1, index = (int)interface;
    const struct ip_mreqn request = {.imr_ifindex = index};
    uv_os_fd_t file;
    if (uv_fileno((uv_handle_t *)&endpoint->udp, &file) != 0) return;
    if (v6) {
        setsockopt(file, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index));
        setsockopt(file, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &one, sizeof(one));
    } else {
        setsockopt(file, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof(request));
        setsockopt(file, IPPROTO_IP, IP_MULTICAST_TTL, &one, sizeof(one));
    }
}

void datagrams_send_by(struct datagrams *datagrams, unsigned interface, const struct gossip_address *address,
                       const struct gossip_address *group, const uint8_t *bytes, size_t size) {
    for (size_t i = 0; i < datagrams->endpoint_count; i++) {
        struct endpoint *endpoint = datagrams->endpoints[i];
        if (!may_send_from(endpoint, address, false)) continue;
        choose_interface(endpoint, group->family == 6, interface);
        send_from(endpoint, group, bytes, size);
        return;
    }
}

static void on_room(uv_handle_t *handle, size_t suggested_size, uv_buf_t *buffer) {
    (void)suggested_size;
    *buffer = uv_buf_init(((struct endpoint *)handle)->datagrams->read_buffer, READ_SIZE);
}

static void on_datagram(uv_udp_t *udp, ssize_t size, const uv_buf_t *buffer, const struct sockaddr *from,
                        unsigned flags) {
    struct datagrams *datagrams = ((struct endpoint *)udp)->datagrams;
    struct server *server = datagrams->server;
    struct gossip_address address;
    (void)flags;
    if (size <= 0 || from == NULL || !datagrams_address_from(from, &address))
        return; /* an ICMP error of an earlier send, or nothing more to read */
    server_tell_wall(server);
    node_datagram(server->node, server_now_ms(server), &address, (const uint8_t *)buffer->base, (size_t)size);
    server_pump(server);
}

/* ---- opening and closing ---- */

static void release(struct datagrams *datagrams) {
    if (--datagrams->handles == 0) free(datagrams);
}

static void on_closed(uv_handle_t *handle) {
    struct endpoint *endpoint = (struct endpoint *)handle;
    struct datagrams *datagrams = endpoint->datagrams;
    free(endpoint);
    release(datagrams);
}

static int endpoint_open(struct endpoint *endpoint, const struct config_listeners *all,
                         const struct config_address *address) {
    struct sockaddr_storage where;
    int buffer_size = KERNEL_BUFFER_SIZE;
    listening_sockaddr(address, &where);
    const bool v6only = listening_v6only(all, address);
    endpoint->v6 = where.ss_family == AF_INET6;
    endpoint->dual = strcmp(address->ip, "::") == 0 && !v6only;
    endpoint->any = strcmp(address->ip, "::") == 0 || strcmp(address->ip, "0.0.0.0") == 0;
    datagrams_address_from((struct sockaddr *)&where, &endpoint->bound);
    int result = uv_udp_bind(&endpoint->udp, (struct sockaddr *)&where, v6only ? UV_UDP_IPV6ONLY : 0);
    if (result == 0) result = uv_udp_recv_start(&endpoint->udp, on_room, on_datagram);
    if (result == 0)
        uv_recv_buffer_size((uv_handle_t *)&endpoint->udp, &buffer_size); /* as much as the system allows */
    return -result;
}

static bool add_endpoint(struct datagrams *datagrams, const struct config_address *address,
                         char error[SERVER_ERROR_MAX]) {
    const struct server *server = datagrams->server;
    struct endpoint *endpoint = calloc(1, sizeof(*endpoint));
    int result = ENOMEM;
    if (endpoint != NULL) {
        endpoint->datagrams = datagrams;
        uv_udp_init(server->loop, &endpoint->udp);
        datagrams->handles++;
        datagrams->endpoints[datagrams->endpoint_count++] = endpoint;
        result = endpoint_open(endpoint, &server->config->listen.peers, address);
    }
    if (result != 0) {
        listening_explain(server->config, "listen.peers (UDP)", address, result, error, SERVER_ERROR_MAX);
        return false;
    }
    char shown[CONFIG_ADDRESS_MAX];
    config_address_format(address, shown);
    log_line(server->log, LOG_LEVEL_INFO, "listening", "what", "gossip", "address", shown, NULL);
    return true;
}

struct datagrams *datagrams_new(struct server *server, char error[SERVER_ERROR_MAX]) {
    struct datagrams *datagrams = calloc(1, sizeof(*datagrams));
    if (datagrams == NULL) {
        snprintf(error, SERVER_ERROR_MAX, "memory is short: give the machine more");
        return NULL;
    }
    datagrams->server = server;
    datagrams->handles = 1; /* our own, until datagrams_close() */
    for (size_t i = 0; i < server->config->listen.peers.count; i++) {
        if (add_endpoint(datagrams, &server->config->listen.peers.items[i], error)) continue;
        datagrams_close(datagrams);
        return NULL;
    }
    return datagrams;
}

void datagrams_close(struct datagrams *datagrams) {
    if (datagrams == NULL || datagrams->closing) return;
    datagrams->closing = true;
    for (size_t i = 0; i < datagrams->endpoint_count; i++)
        uv_close((uv_handle_t *)&datagrams->endpoints[i]->udp, on_closed);
    datagrams->endpoint_count = 0;
    release(datagrams);
}
