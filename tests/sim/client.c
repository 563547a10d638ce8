#include "tests/sim/client_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DIAL_TIMEOUT_US (5000u * HEAP_MS)
#define CONNECT_TIMEOUT_US (10000u * HEAP_MS)
#define RECONNECT_US (500u * HEAP_MS)
#define SESSION_EXPIRY_S (7u * 24 * 3600) /* longer than clocks jump here */

struct client_event {
    struct event event;
    struct sim_client *client;
    uint64_t generation;
};

static void push(struct sim_client *client, uint64_t delay_us, void (*fire)(struct event *)) {
    struct client_event *event = calloc(1, sizeof *event);
    assert(event != NULL);
    event->event.fire = fire;
    event->client = client;
    event->generation = client->generation;
    heap_push(client->heap, &event->event, delay_us);
}

/* The client of an event, NULL if the event is of an earlier connection. The event is freed. */
static struct sim_client *take(struct event *event) {
    struct client_event *of = (struct client_event *)event;
    struct sim_client *client = of->generation == of->client->generation ? of->client : NULL;
    free(of);
    return client;
}

static uint64_t now_us(const struct sim_client *client) {
    return heap_now_us(client->heap);
}

/* ---- packets out ---- */

void sim_client_send_packet(struct sim_client *client, struct packet *packet, enum packet_type type, uint8_t flags) {
    size_t size;
    const uint8_t *bytes = packet_finish(packet, type, flags, &size);
    network_send(client->network, client->end, bytes, size);
    packet_deinit(packet);
}

void sim_client_send_ack(struct sim_client *client, enum packet_type type, uint16_t packet_id) {
    struct packet packet;
    packet_init(&packet);
    packet_u16(&packet, packet_id);
    sim_client_send_packet(client, &packet, type, type == PACKET_PUBREL ? 2 : 0); /* MQTT-3.6.1-1 */
}

static void send_connect(struct sim_client *client) {
    struct packet packet;
    packet_init(&packet);
    packet_text(&packet, "MQTT");
    packet_u8(&packet, client->options.version);
    packet_u8(&packet, client->options.persistent ? 0 : 2);
    packet_u16(&packet, client->options.keep_alive_s);
    if (client->options.version == 5) {
        packet_u8(&packet, client->options.persistent ? 5 : 0);
        if (client->options.persistent) {
            packet_u8(&packet, 0x11); /* Session Expiry Interval */
            packet_u32(&packet, SESSION_EXPIRY_S);
        }
    }
    packet_text(&packet, client->id);
    sim_client_send_packet(client, &packet, PACKET_CONNECT, 0);
}

uint16_t sim_client_next_packet_id(struct sim_client *client) {
    if (++client->last_packet_id == 0) client->last_packet_id = 1;
    return client->last_packet_id;
}

void sim_client_send_publish(struct sim_client *client, const struct flight *flight, bool dup) {
    struct journal_publication *publication = &client->journal->publications[flight->publication];
    uint8_t *payload = journal_payload_new(client->journal, flight->publication);
    struct packet packet;
    packet_init(&packet);
    packet_text(&packet, publication->topic);
    if (publication->qos > 0) packet_u16(&packet, flight->packet_id);
    if (client->options.version == 5) packet_u8(&packet, 0);
    packet_bytes(&packet, payload, publication->size);
    free(payload);
    sim_client_send_packet(client, &packet, PACKET_PUBLISH,
                           (uint8_t)((dup ? 8 : 0) | publication->qos << 1 | (publication->retain ? 1 : 0)));
}

void sim_client_send_subscribe(struct sim_client *client, struct wish *wish) {
    const struct journal_subscription *entry = &client->journal->subscriptions[wish->entry];
    struct packet packet;
    packet_init(&packet);
    wish->packet_id = sim_client_next_packet_id(client);
    wish->state = WISH_ASKED;
    packet_u16(&packet, wish->packet_id);
    if (client->options.version == 5) packet_u8(&packet, 0);
    packet_text(&packet, entry->filter);
    packet_u8(&packet, entry->qos);
    sim_client_send_packet(client, &packet, PACKET_SUBSCRIBE, 2);
}

void sim_client_send_unsubscribe(struct sim_client *client, struct wish *wish) {
    struct packet packet;
    packet_init(&packet);
    wish->packet_id = sim_client_next_packet_id(client);
    wish->state = WISH_ENDING;
    client->journal->subscriptions[wish->entry].ended_us =
        now_us(client); /* an absent client could not say so earlier */
    packet_u16(&packet, wish->packet_id);
    if (client->options.version == 5) packet_u8(&packet, 0);
    packet_text(&packet, client->journal->subscriptions[wish->entry].filter);
    sim_client_send_packet(client, &packet, PACKET_UNSUBSCRIBE, 2);
}

void sim_client_send_queue(struct sim_client *client) {
    size_t sent = 0;
    for (; sent < client->queue_count && client->state == CLIENT_CONNECTED; sent++) {
        struct flight flight = {.publication = client->queue[sent]};
        struct journal_publication *publication = &client->journal->publications[flight.publication];
        if (publication->qos > 0) {
            if (client->flight_count == CLIENT_FLIGHT_MAX) break;
            flight.packet_id = sim_client_next_packet_id(client);
            client->flights[client->flight_count++] = flight;
        }
        publication->sent_us = now_us(client);
        publication->broker_host = client->broker_host;
        trace_line(client->trace, now_us(client), client->id, "publishes %zu on %s qos %u size %zu", flight.publication,
                   publication->topic, publication->qos, publication->size);
        sim_client_send_publish(client, &flight, false);
    }
    client->queue_count -= sent;
    if (sent != 0) memmove(client->queue, client->queue + sent, client->queue_count * sizeof *client->queue);
}

/* ---- connection ---- */

static void on_ping_time(struct event *event) {
    struct sim_client *client = take(event);
    if (client == NULL || (client->state != CLIENT_CONNECTED && client->state != CLIENT_CONNECTING)) return;
    push(client, (uint64_t)client->options.keep_alive_s * 500 * HEAP_MS, on_ping_time);
    if (client->state == CLIENT_CONNECTING) return; /* CONNACK is still to come */
    if (client->ping_unanswered) {
        network_close(client->network, client->end);
        sim_client_lost(client);
        return;
    }
    struct packet packet;
    packet_init(&packet);
    sim_client_send_packet(client, &packet, PACKET_PINGREQ, 0);
    client->ping_unanswered = true;
}

static void on_connect_timeout(struct event *event) {
    struct sim_client *client = take(event);
    if (client == NULL || client->state == CLIENT_CONNECTED) return;
    network_close(client->network, client->end);
    sim_client_lost(client);
}

static void on_connected(void *context, network_end end, size_t to_host) {
    struct sim_client *client = context;
    (void)to_host;
    if (end != client->end) return;
    client->state = CLIENT_CONNECTING;
    send_connect(client);
    if (client->options.keep_alive_s != 0)
        push(client, (uint64_t)client->options.keep_alive_s * 500 * HEAP_MS, on_ping_time);
}

static void dial(struct sim_client *client) {
    struct gossip_address to = network_address(client->network, client->broker_host, CLIENT_MQTT_PORT);
    client->generation++;
    client->state = CLIENT_DIALLING;
    client->input_size = 0;
    client->ping_unanswered = false;
    client->end = network_dial(client->network, client->host, &to, DIAL_TIMEOUT_US);
    push(client, CONNECT_TIMEOUT_US, on_connect_timeout);
}

static void on_reconnect_time(struct event *event) {
    struct sim_client *client = take(event);
    if (client != NULL && client->state == CLIENT_OFF && client->wants_connection) dial(client);
}

void sim_client_end_entry(struct sim_client *client, const struct wish *wish) {
    struct journal_subscription *entry = &client->journal->subscriptions[wish->entry];
    if (entry->ended_us == JOURNAL_NEVER) entry->ended_us = now_us(client);
}

void sim_client_lost(struct sim_client *client) {
    if (client->state == CLIENT_OFF) return;
    client->state = CLIENT_OFF;
    client->end = 0;
    client->generation++;
    trace_line(client->trace, now_us(client), client->id, "is not connected");
    for (size_t i = 0; i < client->wish_count && !client->options.persistent; i++) {
        if (client->wishes[i].state == WISH_GRANTED) sim_client_end_entry(client, &client->wishes[i]);
    }
    if (client->options.reconnects && client->wants_connection) push(client, RECONNECT_US, on_reconnect_time);
}

static void on_closed(void *context, network_end end) {
    struct sim_client *client = context;
    if (end == client->end) sim_client_lost(client);
}

static void on_bytes(void *context, network_end end, const uint8_t *bytes, size_t size, bool final) {
    struct sim_client *client = context;
    (void) final;
    if (end == client->end) sim_client_receive(client, bytes, size);
}

static void on_datagram(void *context, uint16_t port, const struct gossip_address *from, const uint8_t *bytes,
                        size_t size) {
    (void)context, (void)port, (void)from, (void)bytes, (void)size;
}

static bool on_accept(void *context, network_end end, uint16_t port, size_t from_host) {
    (void)context, (void)end, (void)port, (void)from_host;
    return false;
}

static void on_writable(void *context, network_end end) {
    (void)context, (void)end; /* sends regardless of the window: what a client publishes is little */
}

/* ---- the door ---- */

struct sim_client *sim_client_new(struct heap *heap, struct network *network, struct trace *trace,
                                  struct journal *journal, size_t number, const struct sim_client_options *options) {
    struct sim_client *client = calloc(1, sizeof *client);
    assert(client != NULL);
    client->heap = heap;
    client->network = network;
    client->trace = trace;
    client->journal = journal;
    client->number = number;
    client->options = *options;
    client->id = malloc(strlen(options->id) + 1);
    assert(client->id != NULL);
    strcpy(client->id, options->id);
    client->host = network_add_host(network, &(struct network_ports){.context = client,
                                                                     .on_datagram = on_datagram,
                                                                     .on_accept = on_accept,
                                                                     .on_connected = on_connected,
                                                                     .on_bytes = on_bytes,
                                                                     .on_writable = on_writable,
                                                                     .on_closed = on_closed});
    return client;
}

void sim_client_free(struct sim_client *client) {
    if (client == NULL) return;
    free(client->id);
    free(client->input);
    free(client->wishes);
    free(client->queue);
    free(client);
}

void sim_client_connect(struct sim_client *client, size_t broker_host) {
    if (client->state != CLIENT_OFF) sim_client_drop(client);
    if (broker_host != client->broker_host) { /* another broker does not know this session */
        for (size_t i = 0; i < client->wish_count; i++)
            if (client->wishes[i].state == WISH_GRANTED) sim_client_end_entry(client, &client->wishes[i]);
    }
    client->broker_host = broker_host;
    client->wants_connection = true;
    dial(client);
}

void sim_client_disconnect(struct sim_client *client) {
    if (client->state == CLIENT_CONNECTED) {
        struct packet packet;
        packet_init(&packet);
        sim_client_send_packet(client, &packet, PACKET_DISCONNECT, 0);
    }
    sim_client_drop(client);
}

void sim_client_drop(struct sim_client *client) {
    network_close(client->network, client->end);
    client->wants_connection = false;
    sim_client_lost(client);
}

size_t sim_client_subscribe(struct sim_client *client, const char *filter, uint8_t qos) {
    if (client->wish_count == client->wish_room) {
        client->wish_room = client->wish_room == 0 ? 8 : client->wish_room * 2;
        client->wishes = realloc(client->wishes, client->wish_room * sizeof *client->wishes);
        assert(client->wishes != NULL);
    }
    struct journal_subscription entry = {.client = client->number,
                                         .broker_host = client->broker_host,
                                         .filter = (char *)(uintptr_t)filter,
                                         .qos = qos,
                                         .asked_us = now_us(client),
                                         .granted_us = JOURNAL_NEVER,
                                         .ended_us = JOURNAL_NEVER};
    struct wish *wish = &client->wishes[client->wish_count++];
    *wish = (struct wish){.entry = journal_add_subscription(client->journal, &entry), .state = WISH_WAITING};
    trace_line(client->trace, now_us(client), client->id, "wants %s qos %u", filter, qos);
    if (client->state == CLIENT_CONNECTED) sim_client_send_subscribe(client, wish);
    return wish->entry;
}

void sim_client_renew_wish(struct sim_client *client, struct wish *wish) {
    sim_client_end_entry(client, wish);
    struct journal_subscription entry = client->journal->subscriptions[wish->entry];
    entry.broker_host = client->broker_host;
    entry.asked_us = now_us(client);
    entry.granted_us = entry.ended_us = JOURNAL_NEVER;
    wish->entry = journal_add_subscription(client->journal, &entry);
    sim_client_send_subscribe(client, wish);
}

void sim_client_remove_wish(struct sim_client *client, struct wish *wish) {
    sim_client_end_entry(client, wish);
    size_t at = (size_t)(wish - client->wishes);
    client->wish_count--;
    memmove(wish, wish + 1, (client->wish_count - at) * sizeof *wish);
}

void sim_client_unsubscribe(struct sim_client *client, const char *filter) {
    for (size_t i = 0; i < client->wish_count; i++) {
        struct wish *wish = &client->wishes[i];
        if (wish->state == WISH_ENDING || strcmp(client->journal->subscriptions[wish->entry].filter, filter) != 0)
            continue;
        trace_line(client->trace, now_us(client), client->id, "no longer wants %s", filter);
        sim_client_end_entry(client, wish); /* from now on a message may come or not */
        if (client->state == CLIENT_CONNECTED)
            sim_client_send_unsubscribe(client, wish);
        else
            wish->state = WISH_ENDING;
        return;
    }
}

size_t sim_client_publish(struct sim_client *client, const char *topic, uint8_t qos, bool retain, size_t size) {
    if (client->queue_count == client->queue_room) {
        client->queue_room = client->queue_room == 0 ? 16 : client->queue_room * 2;
        client->queue = realloc(client->queue, client->queue_room * sizeof *client->queue);
        assert(client->queue != NULL);
    }
    struct journal_publication publication = {.client = client->number,
                                              .broker_host = client->broker_host,
                                              .topic = (char *)(uintptr_t)topic,
                                              .qos = qos,
                                              .retain = retain,
                                              .size = size,
                                              .sent_us = JOURNAL_NEVER,
                                              .acked_us = JOURNAL_NEVER};
    size_t number = journal_add_publication(client->journal, &publication);
    client->queue[client->queue_count++] = number;
    sim_client_send_queue(client);
    return number;
}

enum sim_client_state sim_client_state(const struct sim_client *client) {
    return client->state;
}

size_t sim_client_number(const struct sim_client *client) {
    return client->number;
}

size_t sim_client_broker_host(const struct sim_client *client) {
    return client->broker_host;
}

const char *sim_client_id(const struct sim_client *client) {
    return client->id;
}

bool sim_client_is_persistent(const struct sim_client *client) {
    return client->options.persistent;
}

uint64_t sim_client_sessions(const struct sim_client *client) {
    return client->sessions;
}

bool sim_client_idle(const struct sim_client *client) {
    bool idle = client->state == CLIENT_CONNECTED && client->queue_count == 0 && client->flight_count == 0;
    for (size_t i = 0; i < client->wish_count; i++)
        idle = idle && client->wishes[i].state == WISH_GRANTED;
    return idle;
}

uint64_t sim_client_violations(const struct sim_client *client) {
    return client->violations;
}
