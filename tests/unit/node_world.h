/* Nodes joined by ports in memory, with real keys and tokens, on a clock that is set: include it in one file of a
 * program. */
#ifndef TESTS_UNIT_NODE_WORLD_H
#define TESTS_UNIT_NODE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/node.h"

#define NODES_MAX 3u
#define CLIENTS_MAX 8u
#define PIPES_MAX 64u
#define DATAGRAMS_MAX 4096u
#define WALL_S 1800000000

struct world;

/* One site. Its address is its index as port. */
struct site {
    struct world *world;
    size_t index;
    bool is_up;
    char name[16];
    struct auth_key *key;
    char *token;
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    struct node *node;
    char log[65536];
    size_t log_size;
    uint64_t saved_epoch;
};

struct client {
    struct site *site;
    broker_handle handle;
    uint8_t bytes[65536]; /* all that was written to it */
    size_t size;
};

/* A link: the dialler's handle and the acceptor's, 0 until it is accepted or once it is closed. */
struct pipe_end {
    struct site *site;
    broker_handle handle;
};
struct pipe {
    bool is_open;
    struct pipe_end ends[2];
};

struct world {
    uint64_t now_ms;
    struct auth_key *issuer, *stranger;
    struct auth_ring ring;
    struct site sites[NODES_MAX];
    size_t client_count, pipe_count;
    struct client clients[CLIENTS_MAX];
    struct pipe pipes[PIPES_MAX];
    size_t datagram_first, datagram_count; /* a ring */
    uint64_t datagrams_sent;
    struct {
        struct gossip_address to, from;
        uint64_t arrives_ms;
        size_t size;
        uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    } datagrams[DATAGRAMS_MAX];
};
static struct world *world;

/* ---- ports: they only write down ---- */

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t size) {
    struct site *site = context;
    struct world *w = site->world;
    assert_true(size <= GOSSIP_DATAGRAM_MAX);
    w->datagrams_sent++;
    if (w->datagram_count == DATAGRAMS_MAX) return;
    const size_t slot = (w->datagram_first + w->datagram_count++) % DATAGRAMS_MAX;
    w->datagrams[slot].to = *to;
    w->datagrams[slot].from =
        (struct gossip_address){.family = 4, .ip = {127, 0, 0, 1}, .port = (uint16_t)(site->index + 1)};
    w->datagrams[slot].arrives_ms = w->now_ms + 1;
    w->datagrams[slot].size = size;
    memcpy(w->datagrams[slot].bytes, bytes, size);
}

static void on_ready(void *context, broker_handle handle) { /* the world looks at all of them anyway */
    (void)context;
    assert_true(handle != 0);
}

static void on_dial(void *context, broker_handle link, const struct gossip_address *to, const char *peer_name) {
    struct site *site = context;
    struct world *w = site->world;
    assert_true(w->pipe_count < PIPES_MAX && to->port >= 1 && to->port <= NODES_MAX);
    if (strcmp(peer_name, "whoever answers") != 0) assert_string_equal(peer_name, w->sites[to->port - 1].name);
    w->pipes[w->pipe_count++] = (struct pipe){.is_open = true, .ends = {{site, link}, {&w->sites[to->port - 1], 0}}};
}

static void on_log(void *context, enum node_log_level level, const char *event, const char *text) {
    static const char *const levels[] = {"debug", "info", "warning", "error"};
    struct site *site = context;
    const size_t room = sizeof(site->log) - site->log_size;
    const int size = snprintf(site->log + site->log_size, room, "%s %s %s\n", levels[level], event, text);
    if (size > 0 && (size_t)size < room) site->log_size += (size_t)size;
}

static void on_save_epoch(void *context, uint64_t epoch) {
    ((struct site *)context)->saved_epoch = epoch;
}

/* ---- making ---- */

static struct auth_key *new_key(uint8_t seed) {
    uint8_t entropy[AUTH_ENTROPY_SIZE];
    struct auth_key *key = NULL;
    memset(entropy, seed, sizeof(entropy));
    assert_int_equal(auth_key_new(entropy, &key), AUTH_OK);
    return key;
}

static char *new_token(const char *name, const struct auth_key *issuer, const struct auth_key *bound_to,
                       int64_t expires_at_s) {
    char *token = NULL, subject[16], issuer_name[] = "test", audience[] = AUTH_AUDIENCE_BROKER;
    struct auth_claims claims = {.issuer = issuer_name,
                                 .subject = subject,
                                 .audience = audience,
                                 .issued_at_s = WALL_S - 100,
                                 .expires_at_s = expires_at_s,
                                 .key_bound = true};
    snprintf(subject, sizeof(subject), "%s", name);
    auth_key_thumbprint(bound_to, claims.key_thumbprint);
    const uint8_t entropy[16] = {1};
    assert_int_equal(auth_token_mint(&claims, issuer, entropy, &token), AUTH_OK);
    return token;
}

static int make_world(void **state) {
    (void)state;
    const uint8_t gossip_key[32] = {9};
    char line[48];
    world = calloc(1, sizeof(*world));
    world->now_ms = 1000;
    world->issuer = new_key(100);
    world->stranger = new_key(101);
    auth_ring_line(gossip_key, line);
    assert_int_equal(auth_ring_parse(line, strlen(line), &world->ring), AUTH_OK);
    for (size_t i = 0; i < NODES_MAX; i++) {
        struct site *site = &world->sites[i];
        site->world = world;
        site->index = i;
        snprintf(site->name, sizeof(site->name), "edge-%zu", i + 1);
        site->key = new_key((uint8_t)(i + 1));
        auth_key_thumbprint(site->key, site->thumbprint);
        site->token = new_token(site->name, world->issuer, site->key, WALL_S + 100000);
    }
    return 0;
}

static int free_world(void **state) {
    (void)state;
    for (size_t i = 0; i < NODES_MAX; i++) {
        node_free(world->sites[i].node);
        auth_key_free(world->sites[i].key);
        free(world->sites[i].token);
    }
    auth_key_free(world->issuer);
    auth_key_free(world->stranger);
    free(world);
    return 0;
}

static int64_t wall_ms(void) {
    return (int64_t)WALL_S * 1000 + (int64_t)world->now_ms;
}

static struct node_options options_of(struct site *site, uint64_t epoch) {
    return (struct node_options){
        .name = site->name,
        .epoch = epoch,
        .seed = site->index + 1,
        .ports = {.context = site,
                  .send_datagram = on_send,
                  .client_ready = on_ready,
                  .link_ready = on_ready,
                  .dial = on_dial,
                  .log = on_log,
                  .save_epoch = on_save_epoch},
    };
}

static void start_alone(size_t index) {
    struct site *site = &world->sites[index];
    const struct node_options options = options_of(site, 1);
    site->node = node_new(&options, world->now_ms, wall_ms());
    assert_non_null(site->node);
    site->is_up = true;
}

/* Everybody's bootstrap list is the first site. */
static void start(size_t index, uint64_t epoch) {
    struct site *site = &world->sites[index];
    struct node_options options = options_of(site, epoch);
    options.federation = "test";
    options.key = site->key;
    options.issuers = (const struct auth_key *const *)&world->issuer;
    options.issuer_count = 1;
    options.token = site->token;
    options.token_size = strlen(site->token);
    options.ring = &world->ring;
    options.advertise = (struct gossip_address){.family = 4, .ip = {127, 0, 0, 1}, .port = (uint16_t)(index + 1)};
    site->node = node_new(&options, world->now_ms, wall_ms());
    assert_non_null(site->node);
    site->is_up = true;
    const struct gossip_address first = {.family = 4, .ip = {127, 0, 0, 1}, .port = 1};
    gossip_set_bootstrap(node_gossip(site->node), world->now_ms, &first, 1);
    node_pump(site->node, world->now_ms);
}

/* ---- the world's turn ---- */

static bool move_datagram(void) {
    const size_t slot = world->datagram_first;
    if (world->datagram_count == 0 || world->datagrams[slot].arrives_ms > world->now_ms) return false;
    world->datagram_first = (world->datagram_first + 1) % DATAGRAMS_MAX;
    world->datagram_count--;
    const uint16_t port = world->datagrams[slot].to.port;
    struct site *site = port >= 1 && port <= NODES_MAX ? &world->sites[port - 1] : NULL;
    if (site == NULL || !site->is_up) return true;
    node_datagram(site->node, world->now_ms, &world->datagrams[slot].from, world->datagrams[slot].bytes,
                  world->datagrams[slot].size);
    node_pump(site->node, world->now_ms);
    return true;
}

static void end_closed(struct pipe_end *end) {
    if (end->handle == 0 || !end->site->is_up) return;
    broker_link_closed(node_broker(end->site->node), world->now_ms, end->handle);
    end->handle = 0;
    node_pump(end->site->node, world->now_ms);
}

static bool pipe_close(struct pipe *pipe) {
    pipe->is_open = false;
    end_closed(&pipe->ends[0]);
    end_closed(&pipe->ends[1]);
    return true;
}

/* Both sides learn the other's key from the handshake, as TLS tells them. */
static bool pipe_accept(struct pipe *pipe) {
    struct pipe_end *from = &pipe->ends[0], *to = &pipe->ends[1];
    if (!to->site->is_up) return pipe_close(pipe);
    to->handle = broker_link_open(node_broker(to->site->node), world->now_ms, false, NULL);
    if (to->handle == 0) return pipe_close(pipe);
    broker_link_ready(node_broker(to->site->node), world->now_ms, to->handle, from->site->thumbprint);
    broker_link_ready(node_broker(from->site->node), world->now_ms, from->handle, to->site->thumbprint);
    node_pump(to->site->node, world->now_ms);
    node_pump(from->site->node, world->now_ms);
    return true;
}

static bool pipe_move(struct pipe *pipe, size_t direction) {
    struct pipe_end *from = &pipe->ends[direction], *to = &pipe->ends[1 - direction];
    struct broker *sender = node_broker(from->site->node);
    struct broker_span frame;
    if (!broker_link_output(sender, world->now_ms, from->handle, &frame))
        return broker_link_ended(sender, from->handle) ? pipe_close(pipe) : false;
    const size_t half = frame.size / 2; /* pieces arrive split */
    broker_link_input(node_broker(to->site->node), world->now_ms, to->handle, frame.bytes, half, false);
    broker_link_input(node_broker(to->site->node), world->now_ms, to->handle, frame.bytes + half, frame.size - half,
                      true);
    broker_link_written(sender, world->now_ms, from->handle);
    node_pump(from->site->node, world->now_ms);
    node_pump(to->site->node, world->now_ms);
    return true;
}

static bool move_pipe(struct pipe *pipe) {
    if (!pipe->is_open) return false;
    if (!pipe->ends[0].site->is_up || !pipe->ends[1].site->is_up) return pipe_close(pipe);
    if (pipe->ends[1].handle == 0) return pipe_accept(pipe);
    const bool there = pipe_move(pipe, 0);
    return (pipe->is_open && pipe_move(pipe, 1)) || there;
}

static bool move_client(struct client *client) {
    struct broker_span spans[8];
    if (!client->site->is_up) return false;
    struct broker *broker = node_broker(client->site->node);
    const size_t count = broker_client_output(broker, client->handle, spans, 8);
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        assert_true(client->size + spans[i].size <= sizeof(client->bytes));
        memcpy(client->bytes + client->size, spans[i].bytes, spans[i].size);
        client->size += spans[i].size;
        size += spans[i].size;
    }
    if (size == 0) return false;
    broker_client_written(broker, world->now_ms, client->handle, size);
    node_pump(client->site->node, world->now_ms);
    return true;
}

static bool move_anything(void) {
    bool any = move_datagram();
    for (size_t i = 0; i < world->pipe_count; i++)
        any = move_pipe(&world->pipes[i]) || any;
    for (size_t i = 0; i < world->client_count; i++)
        any = move_client(&world->clients[i]) || any;
    return any;
}

/* Lets the world run for so long. A datagram is a millisecond under way, everything else arrives at once. */
static void run_ms(uint64_t duration_ms) {
    const uint64_t end_ms = world->now_ms + duration_ms;
    for (;;) {
        while (move_anything())
            continue;
        uint64_t next_ms = world->datagram_count > 0 ? world->datagrams[world->datagram_first].arrives_ms : end_ms;
        for (size_t i = 0; i < NODES_MAX; i++) {
            if (!world->sites[i].is_up) continue;
            const uint64_t due_ms = node_deadline_ms(world->sites[i].node);
            if (due_ms < next_ms) next_ms = due_ms;
        }
        if (world->now_ms >= end_ms) return;
        if (next_ms > end_ms) next_ms = end_ms;
        world->now_ms = next_ms > world->now_ms ? next_ms : world->now_ms + 1;
        for (size_t i = 0; i < NODES_MAX; i++) {
            if (!world->sites[i].is_up) continue;
            node_set_wall(world->sites[i].node, world->now_ms, wall_ms());
            node_tick(world->sites[i].node, world->now_ms);
        }
    }
}

/* ---- clients: MQTT 3.1.1 by hand ---- */

static void client_send(struct client *client, const uint8_t *bytes, size_t size) {
    broker_client_input(node_broker(client->site->node), world->now_ms, client->handle, bytes, size);
    node_pump(client->site->node, world->now_ms);
    while (move_anything())
        continue;
}

static struct client *connect_client(size_t index, char letter) {
    assert_true(world->client_count < CLIENTS_MAX);
    struct client *client = &world->clients[world->client_count++];
    client->site = &world->sites[index];
    client->handle = broker_client_open(node_broker(client->site->node), world->now_ms,
                                        &(struct broker_origin){.from_loopback = true, .address = "test"});
    assert_true(client->handle != 0);
    const uint8_t connect[] = {0x10, 13, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, 1, (uint8_t)letter};
    client_send(client, connect, sizeof(connect));
    assert_memory_equal(client->bytes, "\x20\x02\x00\x00", 4);
    return client;
}

static void subscribe(struct client *client, const char *filter) {
    uint8_t packet[128] = {0x82, (uint8_t)(5 + strlen(filter)), 0, 1, 0, (uint8_t)strlen(filter)};
    memcpy(packet + 6, filter, strlen(filter));
    client_send(client, packet, 7 + strlen(filter)); /* QoS 0 */
}

static void publish(struct client *client, const char *topic, const char *payload) {
    const size_t topic_size = strlen(topic), payload_size = strlen(payload);
    uint8_t packet[128] = {0x30, (uint8_t)(2 + topic_size + payload_size), 0, (uint8_t)topic_size};
    memcpy(packet + 4, topic, topic_size);
    memcpy(packet + 4 + topic_size, payload, payload_size);
    client_send(client, packet, 4 + topic_size + payload_size);
}

/* How often these bytes are in what the client got. */
static unsigned count_in(const struct client *client, const char *text) {
    unsigned count = 0;
    const uint8_t *from = client->bytes;
    size_t left = client->size;
    for (const uint8_t *found; (found = memmem(from, left, text, strlen(text))) != NULL; count++) {
        left -= (size_t)(found - from) + strlen(text);
        from = found + strlen(text);
    }
    return count;
}

static bool sees(size_t here, size_t there, enum member_state state) {
    struct member_id id;
    struct member_info info;
    memcpy(id.bytes, world->sites[there].thumbprint, sizeof(id.bytes));
    return gossip_member_find(node_gossip(world->sites[here].node), world->now_ms, &id, &info) && info.state == state;
}

static bool has_link_up(size_t index) {
    struct link_info info;
    for (size_t i = 0; broker_link_at(node_broker(world->sites[index].node), i, &info); i++)
        if (info.state == LINK_UP) return true;
    return false;
}

#endif
