/* Between a node and the network: what the daemon's clients.c, links.c and datagrams.c do on real sockets. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

#define DIAL_TIMEOUT_US (10000u * HEAP_MS) /* as in daemon/links.c */
#define FLUSH_ROUNDS_MAX 1000000u /* more means that broker and shell hand over nothing to each other for ever */

/* ---- connections ---- */

static struct world_connection *by_end(struct world_node *node, network_end end) {
    for (size_t i = 0; i < node->connection_count; i++)
        if (node->connections[i].end == end) return &node->connections[i];
    return NULL;
}

static struct world_connection *by_handle(struct world_node *node, broker_handle handle, bool link) {
    for (size_t i = 0; i < node->connection_count; i++)
        if (node->connections[i].handle == handle && node->connections[i].link == link) return &node->connections[i];
    return NULL;
}

static void add(struct world_node *node, struct world_connection connection) {
    if (node->connection_count == node->connection_room) {
        node->connection_room = node->connection_room == 0 ? 16 : node->connection_room * 2;
        node->connections = realloc(node->connections, node->connection_room * sizeof *node->connections);
        assert(node->connections != NULL);
    }
    node->connections[node->connection_count++] = connection;
}

static void forget(struct world_node *node, struct world_connection *connection) {
    *connection = node->connections[--node->connection_count];
}

static void mark_ready(struct world_node *node, broker_handle handle, bool link) {
    for (size_t i = 0; i < node->ready_count; i++)
        if (node->ready[i] == handle && node->ready_is_link[i] == link) return;
    if (node->ready_count == node->ready_room) {
        node->ready_room = node->ready_room == 0 ? 16 : node->ready_room * 2;
        node->ready = realloc(node->ready, node->ready_room * sizeof *node->ready);
        node->ready_is_link = realloc(node->ready_is_link, node->ready_room * sizeof *node->ready_is_link);
        assert(node->ready != NULL && node->ready_is_link != NULL);
    }
    node->ready[node->ready_count] = handle;
    node->ready_is_link[node->ready_count++] = link;
}

/* ---- flushing ---- */

/* True once the connection's output is empty. */
static bool write_client(struct world_node *node, const struct world_connection *connection) {
    struct broker *broker = node_broker(node->node);
    struct broker_span spans[8];
    size_t count;
    while ((count = broker_client_output(broker, connection->handle, spans, 8)) != 0) {
        if (!network_writable(node->world->network, connection->end)) return false;
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            network_send(node->world->network, connection->end, spans[i].bytes, spans[i].size);
            size += spans[i].size;
        }
        broker_client_written(broker, world_node_now_ms(node), connection->handle, size);
    }
    return true;
}

static bool write_link(struct world_node *node, const struct world_connection *connection) {
    struct broker *broker = node_broker(node->node);
    struct broker_span frame;
    while (connection->connected && network_writable(node->world->network, connection->end)) {
        if (!broker_link_output(broker, world_node_now_ms(node), connection->handle, &frame)) return true;
        network_send(node->world->network, connection->end, frame.bytes, frame.size);
        broker_link_written(broker, world_node_now_ms(node), connection->handle);
    }
    return !connection->connected;
}

static void flush_one(struct world_node *node, broker_handle handle, bool link) {
    struct world_connection *connection = by_handle(node, handle, link);
    struct broker *broker = node_broker(node->node);
    if (connection == NULL) return;
    bool empty = link ? write_link(node, connection) : write_client(node, connection);
    if (!empty || !(link ? broker_link_ended(broker, handle) : broker_client_ended(broker, handle))) return;
    network_close(node->world->network, connection->end);
    forget(node, connection);
}

static void flush_all(struct world_node *node) {
    for (size_t rounds = 0; node->ready_count > 0; rounds++) {
        assert(rounds < FLUSH_ROUNDS_MAX);
        broker_handle handle = node->ready[0];
        bool link = node->ready_is_link[0];
        node->ready_count--;
        memmove(node->ready, node->ready + 1, node->ready_count * sizeof *node->ready);
        memmove(node->ready_is_link, node->ready_is_link + 1, node->ready_count * sizeof *node->ready_is_link);
        flush_one(node, handle, link);
        if (node->ready_count == 0) node_pump(node->node, world_node_now_ms(node));
    }
}

/* ---- the timer ---- */

struct timer {
    struct event event;
    struct world_node *node;
    uint64_t run, at_ms;
};

static void on_timer(struct event *event) {
    struct timer *timer = (struct timer *)event;
    struct world_node *node = timer->node;
    uint64_t paused_us = network_paused_us(node->world->network, node->host);
    if (paused_us != 0 && node->run == timer->run) {
        heap_push(node->world->heap, event, paused_us);
        return;
    }
    if (node->node != NULL && node->run == timer->run && node->armed_ms == timer->at_ms) {
        uint64_t now = world_node_now_ms(node);
        node->armed_ms = UINT64_MAX;
        node->ticks++;
        node_set_wall(node->node, now, world_node_wall_ms(node));
        node_tick(node->node, now);
        node->spins += node_deadline_ms(node->node) <= now;
        world_flush(node);
    }
    free(timer);
}

/* As a loop's timer does: whole milliseconds, at least the next one. */
static void arm(struct world_node *node) {
    uint64_t now = world_node_now_ms(node), deadline = node_deadline_ms(node->node);
    if (deadline == UINT64_MAX) return;
    if (deadline <= now) deadline = now + 1;
    if (node->armed_ms <= deadline) return;
    struct timer *timer = calloc(1, sizeof *timer);
    assert(timer != NULL);
    timer->event.fire = on_timer;
    timer->node = node;
    timer->run = node->run;
    timer->at_ms = node->armed_ms = deadline;
    uint64_t now_us = heap_now_us(node->world->heap), at_us = (deadline - node->clock_base_ms) * HEAP_MS;
    heap_push(node->world->heap, &timer->event, at_us > now_us ? at_us - now_us : 0);
}

void world_flush(struct world_node *node) {
    flush_all(node);
    world_disk_turn(node);
    if (node->leaving && node_left(node->node)) return; /* about to end */
    arm(node);
}

/* After every call into the cores. */
static void settle(struct world_node *node) {
    node_pump(node->node, world_node_now_ms(node));
    world_flush(node);
}

/* ---- the node's ports ---- */

static void send_datagram(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    struct world_node *node = context;
    trace_line(&node->world->trace, heap_now_us(node->world->heap), node->name, "datagram to %u.%u.%u:%u size %zu",
               to->ip[1], to->ip[2], to->ip[3], to->port, size);
    network_datagram(node->world->network, node->host, WORLD_PEERS_PORT, to, bytes, size);
}

static void client_ready(void *context, broker_handle client) {
    mark_ready(context, client, false);
}

static void link_ready(void *context, broker_handle link) {
    mark_ready(context, link, true);
}

static void dial(void *context, broker_handle link, const struct gossip_address *to, const char *peer_name) {
    struct world_node *node = context;
    trace_line(&node->world->trace, heap_now_us(node->world->heap), node->name, "dials %s", peer_name);
    add(node, (struct world_connection){.end = network_dial(node->world->network, node->host, to, DIAL_TIMEOUT_US),
                                        .handle = link,
                                        .link = true});
}

static void log_line(void *context, enum node_log_level level, const char *event, const char *text) {
    struct world_node *node = context;
    trace_line(&node->world->trace, heap_now_us(node->world->heap), node->name, "%u %s: %s", level, event, text);
    size_t at = 0;
    while (at < node->log_count && strcmp(node->logs[at].event, event) != 0)
        at++;
    if (at == node->log_count) {
        assert(node->log_count < WORLD_LOGS_MAX && strlen(event) < sizeof node->logs[at].event);
        strcpy(node->logs[node->log_count++].event, event);
    }
    node->logs[at].count++;
    snprintf(node->logs[at].last, sizeof node->logs[at].last, "%s", text);
}

static void save_epoch(void *context, uint64_t epoch) {
    struct world_node *node = context;
    node->saved_epoch = epoch;
}

struct node_ports world_node_ports(struct world_node *node) {
    return (struct node_ports){.context = node,
                               .send_datagram = send_datagram,
                               .client_ready = client_ready,
                               .link_ready = link_ready,
                               .dial = dial,
                               .log = log_line,
                               .save_epoch = save_epoch,
                               .store = world_disk_give};
}

/* ---- the network's ports ---- */

static void on_datagram(void *context, uint16_t port, const struct gossip_address *from, const uint8_t *bytes,
                        size_t size) {
    struct world_node *node = context;
    if (port != WORLD_PEERS_PORT) return;
    if (node->hostility != NULL) world_hostile_hear(node, from, bytes, size);
    node_datagram(node->node, world_node_now_ms(node), from, bytes, size);
    settle(node);
}

struct world_node *world_node_on(const struct world *world, size_t host) {
    for (size_t i = 0; i < world->node_count; i++)
        if (world->nodes[i]->host == host) return world->nodes[i];
    return NULL;
}

static void link_is_ready(struct world_node *node, broker_handle link, size_t far_host) {
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    auth_key_thumbprint(world_node_on(node->world, far_host)->key,
                        thumbprint); /* TLS has shown that the far end holds this key */
    broker_link_ready(node_broker(node->node), world_node_now_ms(node), link, thumbprint);
}

static bool on_accept(void *context, network_end end, uint16_t port, size_t from_host) {
    struct world_node *node = context;
    struct broker *broker = node_broker(node->node);
    bool link = port == WORLD_PEERS_PORT;
    if (node->leaving || (link ? world_node_on(node->world, from_host) == NULL : port != CLIENT_MQTT_PORT))
        return false;
    uint64_t now = world_node_now_ms(node);
    broker_handle handle =
        link ? broker_link_open(broker, now, false, NULL)
             : broker_client_open(broker, now, &(struct broker_origin){.from_loopback = false, .address = "simulated"});
    if (handle == 0) return false;
    add(node,
        (struct world_connection){.end = end, .handle = handle, .link = link, .accepted = true, .connected = true});
    if (link) link_is_ready(node, handle, from_host);
    settle(node);
    return true;
}

static void on_connected(void *context, network_end end, size_t to_host) {
    struct world_node *node = context;
    struct world_connection *connection = by_end(node, end);
    if (connection == NULL) return;
    connection->connected = true;
    if (world_node_on(node->world, to_host) == NULL) { /* not a broker: no certificate */
        broker_link_closed(node_broker(node->node), world_node_now_ms(node), connection->handle);
        network_close(node->world->network, end);
        forget(node, connection);
    } else {
        link_is_ready(node, connection->handle, to_host);
    }
    settle(node);
}

static void on_bytes(void *context, network_end end, const uint8_t *bytes, size_t size, bool final) {
    struct world_node *node = context;
    const struct world_connection *connection = by_end(node, end);
    if (connection == NULL) return;
    if (connection->link)
        broker_link_input(node_broker(node->node), world_node_now_ms(node), connection->handle, bytes, size, final);
    else
        broker_client_input(node_broker(node->node), world_node_now_ms(node), connection->handle, bytes, size);
    settle(node);
}

static void on_writable(void *context, network_end end) {
    struct world_node *node = context;
    const struct world_connection *connection = by_end(node, end);
    if (connection == NULL) return;
    mark_ready(node, connection->handle, connection->link);
    settle(node);
}

static void on_closed(void *context, network_end end) {
    struct world_node *node = context;
    struct world_connection *connection = by_end(node, end);
    if (connection == NULL) return;
    struct world_connection closed = *connection;
    forget(node, connection);
    if (closed.link)
        broker_link_closed(node_broker(node->node), world_node_now_ms(node), closed.handle);
    else
        broker_client_closed(node_broker(node->node), world_node_now_ms(node), closed.handle);
    settle(node);
}

struct network_ports world_network_ports(struct world_node *node) {
    return (struct network_ports){.context = node,
                                  .on_datagram = on_datagram,
                                  .on_accept = on_accept,
                                  .on_connected = on_connected,
                                  .on_bytes = on_bytes,
                                  .on_writable = on_writable,
                                  .on_closed = on_closed};
}
