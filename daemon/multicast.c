#include "daemon/multicast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/datagrams.h"

#define LOOK_EVERY_MS 5000u /* for interfaces that came or went */
#define INTERFACES_MAX 32u
#define READ_SIZE 2048u

/* An interface by which one family can be sent. */
struct way {
    bool v6;
    unsigned interface; /* index */
    struct gossip_address address;
    bool is_joined;
};

/* The socket of one family's group. */
struct ear {
    uv_udp_t udp; /* first: handles are cast to ears */
    struct multicast *multicast;
    bool opened;
};

struct multicast {
    struct server *server;
    struct ear ears[2]; /* IPv4, IPv6 */
    uv_timer_t timer;
    size_t handles; /* open on the loop; at 0 everything is freed */
    bool closing;
    size_t way_count;
    struct way ways[INTERFACES_MAX];
    char read_buffer[READ_SIZE];
};

static struct gossip_address group_of(bool v6) {
    struct gossip_address group = {.family = v6 ? 6 : 4, .port = MULTICAST_PORT};
    inet_pton(v6 ? AF_INET6 : AF_INET, v6 ? MULTICAST_GROUP_V6 : MULTICAST_GROUP_V4, group.ip);
    return group;
}

static bool is_link_local(const struct gossip_address *address) {
    return address->family == 6 && address->ip[0] == 0xfe && (address->ip[1] & 0xc0) == 0x80;
}

/* ---- interfaces ---- */

static const struct way *find(const struct way *ways, size_t count, bool v6, unsigned interface) {
    for (size_t i = 0; i < count; i++)
        if (ways[i].v6 == v6 && ways[i].interface == interface) return &ways[i];
    return NULL;
}

/* One of each family and interface that our peers' sockets can use. */
static size_t list_ways(const struct multicast *multicast, struct way ways[INTERFACES_MAX]) {
    uv_interface_address_t *all;
    int count;
    size_t found = 0;
    if (uv_interface_addresses(&all, &count) != 0) return 0;
    for (int i = 0; i < count && found < INTERFACES_MAX; i++) {
        struct gossip_address address;
        if (!datagrams_address_from((const struct sockaddr *)&all[i].address, &address) || is_link_local(&address) ||
            !datagrams_may_send_from(multicast->server->datagrams, &address, all[i].is_internal != 0))
            continue;
        const unsigned interface = if_nametoindex(all[i].name);
        const bool v6 = address.family == 6;
        if (interface == 0 || find(ways, found, v6, interface) != NULL) continue;
        ways[found++] = (struct way){.v6 = v6, .interface = interface, .address = address};
    }
    uv_free_interface_addresses(all, count);
    return found;
}

static int set_membership(struct ear *ear, bool v6, unsigned interface, bool join) {
    uv_os_fd_t file;
    const struct gossip_address group = group_of(v6);
    if (uv_fileno((uv_handle_t *)&ear->udp, &file) != 0) return EBADF;
    if (v6) {
        struct ipv6_mreq request = {.ipv6mr_interface = interface};
        memcpy(&request.ipv6mr_multiaddr, group.ip, 16);
        return setsockopt(file, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request, sizeof(request)) == 0
                   ? 0
                   : errno;
    }
    struct ip_mreqn request = {.imr_ifindex = (int)interface};
    memcpy(&request.imr_multiaddr, group.ip, 4);
    return setsockopt(file, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request, sizeof(request)) == 0
               ? 0
               : errno;
}

/* is_news: the interface has just come, and its fate is worth a line. */
static bool join(struct multicast *multicast, struct way *way, bool is_news) {
    struct ear *ear = &multicast->ears[way->v6];
    char name[IF_NAMESIZE] = "?";
    if (!ear->opened) return false;
    const int error = set_membership(ear, way->v6, way->interface, true);
    way->is_joined = error == 0 || error == EADDRINUSE;
    if_indextoname(way->interface, name);
    if (is_news || way->is_joined)
        log_text(multicast->server->log, way->is_joined ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "multicast",
                 "%s on %s%s%s", way->v6 ? "IPv6" : "IPv4", name,
                 way->is_joined ? "" : ": not joined: ", way->is_joined ? "" : strerror(error));
    return way->is_joined;
}

static void tell_gossip(struct multicast *multicast) {
    struct server *server = multicast->server;
    struct gossip_address groups[2], own = {0};
    size_t count = 0;
    for (size_t i = 0; i < multicast->way_count && own.family == 0; i++) {
        own = multicast->ways[i].address;
        own.port = server->config->listen.peers.items[0].port;
    }
    for (int v6 = 0; v6 < 2; v6++)
        if (multicast->ears[v6].opened) groups[count++] = group_of(v6);
    gossip_set_groups(node_gossip(server->node), server_now_ms(server), groups, count, &own);
    server_pump(server);
}

static void look(struct multicast *multicast) {
    struct way now[INTERFACES_MAX];
    bool more = false;
    const size_t count = list_ways(multicast, now);
    for (size_t i = 0; i < multicast->way_count; i++) {
        const struct way *old = &multicast->ways[i];
        /* Its address is gone; the interface may be there still, and come back. */
        if (old->is_joined && find(now, count, old->v6, old->interface) == NULL)
            set_membership(&multicast->ears[old->v6], old->v6, old->interface, false);
    }
    for (size_t i = 0; i < count; i++) {
        const struct way *old = find(multicast->ways, multicast->way_count, now[i].v6, now[i].interface);
        if (old != NULL) now[i].is_joined = old->is_joined;
        if (!now[i].is_joined) more = join(multicast, &now[i], old == NULL) || more;
    }
    memcpy(multicast->ways, now, count * sizeof(*now));
    multicast->way_count = count;
    if (more) tell_gossip(multicast);
}

static void on_timer(uv_timer_t *timer) {
    look(timer->data);
}

/* ---- in and out ---- */

bool multicast_send(struct multicast *multicast, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    if (multicast == NULL || to->port != MULTICAST_PORT) return false;
    const struct gossip_address group = group_of(to->family == 6);
    if (to->family != group.family || memcmp(to->ip, group.ip, sizeof(group.ip)) != 0) return false;
    for (size_t i = 0; i < multicast->way_count; i++) {
        const struct way *way = &multicast->ways[i];
        if (way->v6 == (to->family == 6))
            datagrams_send_by(multicast->server->datagrams, way->interface, &way->address, to, bytes, size);
    }
    return true;
}

static void on_room(uv_handle_t *handle, size_t suggested_size, uv_buf_t *buffer) {
    (void)suggested_size;
    *buffer = uv_buf_init(((struct ear *)handle)->multicast->read_buffer, READ_SIZE);
}

static void on_datagram(uv_udp_t *udp, ssize_t size, const uv_buf_t *buffer, const struct sockaddr *from,
                        unsigned flags) {
    struct server *server = ((struct ear *)udp)->multicast->server;
    struct gossip_address address;
    (void)flags;
    if (size <= 0 || from == NULL || !datagrams_address_from(from, &address) || is_link_local(&address)) return;
    server_tell_wall(server);
    node_datagram(server->node, server_now_ms(server), &address, (const uint8_t *)buffer->base, (size_t)size);
    server_pump(server);
}

/* ---- opening and closing ---- */

static void release(struct multicast *multicast) {
    if (--multicast->handles == 0) free(multicast);
}

static void on_ear_closed(uv_handle_t *handle) {
    release(((struct ear *)handle)->multicast);
}

static void on_timer_closed(uv_handle_t *handle) {
    release(handle->data);
}

/* Bound to the group, so that nothing else comes in by it; shared with other brokers on this host. */
static void open_ear(struct multicast *multicast, bool v6) {
    struct ear *ear = &multicast->ears[v6];
    struct sockaddr_storage where;
    ear->multicast = multicast;
    uv_udp_init(multicast->server->loop, &ear->udp);
    multicast->handles++;
    if (v6)
        uv_ip6_addr(MULTICAST_GROUP_V6, MULTICAST_PORT, (struct sockaddr_in6 *)&where);
    else
        uv_ip4_addr(MULTICAST_GROUP_V4, MULTICAST_PORT, (struct sockaddr_in *)&where);
    int result = uv_udp_bind(&ear->udp, (struct sockaddr *)&where, UV_UDP_REUSEADDR | (v6 ? UV_UDP_IPV6ONLY : 0));
    if (result == 0) result = uv_udp_recv_start(&ear->udp, on_room, on_datagram);
    ear->opened = result == 0;
    if (result != 0)
        log_line(multicast->server->log, LOG_LEVEL_WARNING, "multicast", "group",
                 v6 ? MULTICAST_GROUP_V6 : MULTICAST_GROUP_V4, "error", uv_strerror(result), "text",
                 "no broker is found by this group; all else goes on", NULL);
}

struct multicast *multicast_new(struct server *server) {
    struct multicast *multicast = calloc(1, sizeof(*multicast));
    if (multicast == NULL) return NULL;
    multicast->server = server;
    uv_timer_init(server->loop, &multicast->timer);
    multicast->timer.data = multicast;
    multicast->handles = 1;
    for (int v6 = 0; v6 < 2; v6++)
        if (datagrams_has_family(server->datagrams, v6 != 0)) open_ear(multicast, v6 != 0);
    look(multicast);
    if (multicast->way_count == 0)
        log_text(server->log, LOG_LEVEL_WARNING, "multicast",
                 "no interface is there by which brokers could be found; those that come are used");
    uv_timer_start(&multicast->timer, on_timer, LOOK_EVERY_MS, LOOK_EVERY_MS);
    return multicast;
}

void multicast_close(struct multicast *multicast) {
    if (multicast == NULL || multicast->closing) return;
    multicast->closing = true;
    for (int v6 = 0; v6 < 2; v6++)
        if (multicast->ears[v6].multicast != NULL) uv_close((uv_handle_t *)&multicast->ears[v6].udp, on_ear_closed);
    uv_close((uv_handle_t *)&multicast->timer, on_timer_closed);
}
