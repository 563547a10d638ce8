/* Some brokers in one process, wired back to back: links are queues in memory, registry rows are mirrored, time is set.
 * Included by the tests of the peer side; everything is static.
 */
#ifndef TESTS_UNIT_PEERS_H
#define TESTS_UNIT_PEERS_H

#include "broker/broker.h"
#include "broker/peering.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 4, CLIENTS_MAX = 16, WIRES_MAX = 64, ROWS_MAX = 2048, RECEIVED_MAX = 4096, TOPIC_MAX = 64 };

struct parcel {
    struct parcel *next;
    size_t size;
    uint8_t bytes[];
};

struct end {
    int site;
    broker_handle handle;
    struct parcel *first, *last; /* on the way to this end */
    bool open;
};

struct wire {
    bool used, ready;
    bool held;          /* nothing on this one moves */
    struct end ends[2]; /* 0 dialled */
};

struct received {
    char topic[TOPIC_MAX];
    char payload[TOPIC_MAX]; /* its beginning */
    size_t payload_size;
    int qos;
    bool retain;
};

struct client {
    int site;
    broker_handle handle;
    uint8_t *input;
    size_t input_size;
    struct received received[RECEIVED_MAX];
    int received_count;
    int subacks, pubacks, pubcomps;
    uint16_t packet_id;
};

struct world_row {
    int site;
    enum row_kind kind;
    char filter[TOPIC_MAX];
};

struct world {
    uint64_t now_ms;
    struct site {
        struct broker *broker;
        struct peer_id id;
        char name[16];
        uint64_t epoch, sequence;
        bool deaf;         /* it hears of no rows */
        bool mute;         /* nobody hears of its rows */
        const char *cover; /* all its newpub rows; NULL: as they are */
        bool refuses;
        bool durable;                                                           /* its records are taken by the test, */
        void (*restore)(struct broker *broker, uint64_t now_ms, void *context); /* and told at its start; or NULL */
        void *restore_context;
        struct broker_limits limits;
        const struct policy *policy;
        const char *federation;
    } sites[SITES_MAX];
    int site_count;
    bool apart[SITES_MAX][SITES_MAX]; /* no dial gets through */
    bool hold_frames;                 /* nothing on the wires moves */
    bool step_frames;                 /* one frame moves, and then none before time does */
    /* False: the frame is lost. NULL: none is. */
    bool (*passes)(struct world *world, int from, int to, const uint8_t *bytes, size_t size);
    size_t split; /* bytes of a piece of a frame; 0: whole frames */
    struct wire wires[WIRES_MAX];
    struct client *clients[CLIENTS_MAX];
    int client_count;
    struct world_row rows[ROWS_MAX];
    int row_count;
    uint64_t frames_moved;
    int dials;
    char last_warning[SITES_MAX][sizeof((struct broker_note *)0)->text];
    int warnings[SITES_MAX];
};

struct asking {
    struct world *world;
    int site;
};
static struct asking askings[SITES_MAX];

static inline void site_key(int site, uint8_t key[32]) {
    for (int i = 0; i < 32; i++)
        key[i] = (uint8_t)(site * 16 + i % 7 + 1);
}

/* The token of site n is the one byte n. */
static inline void world_who_is(void *context, const uint8_t key[32], const uint8_t *token, size_t token_size,
                                struct peer_answer *answer) {
    const struct asking *asking = context;
    uint8_t expected[32];
    memcpy(answer->id.bytes, key, 16);
    answer->valid_for_ms = 3600 * 1000;
    if (token_size != 1 || token[0] >= SITES_MAX) {
        snprintf(answer->reason, sizeof answer->reason, "the token is of no issuer known here");
        return;
    }
    site_key(token[0], expected);
    snprintf(answer->name, sizeof answer->name, "site-%d", token[0]);
    if (memcmp(expected, key, 32) != 0)
        snprintf(answer->reason, sizeof answer->reason, "the token is bound to another key");
    else if (asking->world->sites[asking->site].refuses)
        snprintf(answer->reason, sizeof answer->reason, "the token has expired");
    else
        answer->allowed = true;
}

static inline bool site_start(struct world *world, int index) {
    struct site *site = &world->sites[index];
    uint8_t key[32], token = (uint8_t)index;
    site_key(index, key);
    memcpy(site->id.bytes, key, 16);
    snprintf(site->name, sizeof site->name, "site-%d", index);
    site->epoch++;
    struct broker_options options = {
        .name = site->name,
        .federation = site->federation,
        .epoch = site->epoch,
        .seed = (uint64_t)index + 7,
        .limits = site->limits,
        .durable = site->durable,
    };
    memcpy(options.id, site->id.bytes, 16);
    options.policy = site->policy;
    site->broker = broker_new(&options, world->now_ms);
    if (!site->broker) return false;
    broker_set_wall_offset(site->broker, 1000000);
    if (site->restore) site->restore(site->broker, world->now_ms, site->restore_context);
    askings[index] = (struct asking){world, index};
    struct peer_questions questions = {&askings[index], world_who_is};
    return broker_set_identity(site->broker, &token, 1, &questions) == 0;
}

static inline void world_tell_alive(struct world *world, int at, int of) {
    struct site *site = &world->sites[of];
    broker_peer_alive(world->sites[at].broker, world->now_ms, &site->id, site->name, site->epoch);
    for (int i = 0; i < world->row_count; i++) {
        const struct world_row *row = &world->rows[i];
        if (row->site == of)
            broker_peer_row(world->sites[at].broker, world->now_ms, &site->id, row->kind, row->filter,
                            strlen(row->filter), true);
    }
    broker_peer_knows(world->sites[of].broker, world->now_ms, &world->sites[at].id, site->sequence);
}

static inline void world_meet(struct world *world) {
    for (int a = 0; a < world->site_count; a++)
        for (int b = 0; b < world->site_count; b++)
            if (a != b && world->sites[a].broker && world->sites[b].broker) world_tell_alive(world, a, b);
}

static inline bool world_init(struct world *world, int site_count) {
    memset(world, 0, sizeof *world);
    world->now_ms = 1000;
    world->site_count = site_count;
    return true;
}

static inline bool world_start(struct world *world) {
    for (int i = 0; i < world->site_count; i++)
        if (!site_start(world, i)) return false;
    world_meet(world);
    return true;
}

static inline void end_drop_parcels(struct end *end) {
    while (end->first) {
        struct parcel *next = end->first->next;
        free(end->first);
        end->first = next;
    }
    end->last = NULL;
}

static inline void world_free(struct world *world) {
    for (int i = 0; i < world->site_count; i++)
        broker_free(world->sites[i].broker);
    for (int i = 0; i < WIRES_MAX; i++) {
        end_drop_parcels(&world->wires[i].ends[0]);
        end_drop_parcels(&world->wires[i].ends[1]);
    }
    for (int i = 0; i < world->client_count; i++) {
        free(world->clients[i]->input);
        free(world->clients[i]);
    }
}

/* ---- wires ---- */

static inline struct end *end_of(struct world *world, int site, broker_handle handle, struct end **other) {
    for (int i = 0; i < WIRES_MAX; i++)
        for (int e = 0; e < 2; e++) {
            struct end *end = &world->wires[i].ends[e];
            if (world->wires[i].used && end->open && end->site == site && end->handle == handle) {
                *other = &world->wires[i].ends[1 - e];
                return end;
            }
        }
    return NULL;
}

static inline void wire_open(struct world *world, int from, int to, broker_handle handle) {
    struct wire *wire = world->wires;
    while (wire->used && (wire->ends[0].open || wire->ends[1].open || wire->ends[0].first || wire->ends[1].first))
        wire++;
    assert(wire < world->wires + WIRES_MAX);
    *wire = (struct wire){.used = true};
    wire->ends[0] = (struct end){.site = from, .handle = handle, .open = true};
    wire->ends[1] = (struct end){.site = to};
}

/* To the address of a site, without saying whose it is. */
static inline broker_handle world_seek(struct world *world, int from, int to) {
    broker_handle handle = broker_link_open(world->sites[from].broker, world->now_ms, true, NULL);
    if (handle) wire_open(world, from, to, handle);
    return handle;
}

static inline void world_dial(struct world *world, int from, const struct peer_id *to) {
    int site = 0;
    while (site < world->site_count && memcmp(&world->sites[site].id, to, sizeof *to) != 0)
        site++;
    struct broker *broker = world->sites[from].broker;
    world->dials++;
    broker_handle handle =
        site < world->site_count && world->sites[site].broker && !world->apart[from][site] && !world->apart[site][from]
            ? broker_link_open(broker, world->now_ms, true, to)
            : 0;
    if (!handle) {
        broker_dial_failed(broker, world->now_ms, to);
        return;
    }
    wire_open(world, from, site, handle);
}

static inline void wire_cut(struct world *world, struct wire *wire) {
    for (int e = 0; e < 2; e++) {
        struct end *end = &wire->ends[e];
        end_drop_parcels(end);
        if (end->open && world->sites[end->site].broker)
            broker_link_closed(world->sites[end->site].broker, world->now_ms, end->handle);
        end->open = false;
    }
    wire->used = false;
}

static inline void world_cut(struct world *world, int a, int b) {
    for (int i = 0; i < WIRES_MAX; i++) {
        struct wire *wire = &world->wires[i];
        if (wire->used && ((wire->ends[0].site == a && wire->ends[1].site == b) ||
                           (wire->ends[0].site == b && wire->ends[1].site == a)))
            wire_cut(world, wire);
    }
}

static inline bool wire_handshake(struct world *world, struct wire *wire) {
    if (!wire->used || wire->ready || !wire->ends[0].open) return false;
    struct site *from = &world->sites[wire->ends[0].site], *to = &world->sites[wire->ends[1].site];
    wire->ready = true;
    wire->ends[1].handle = to->broker ? broker_link_open(to->broker, world->now_ms, false, NULL) : 0;
    if (!wire->ends[1].handle) {
        wire_cut(world, wire);
        return true;
    }
    uint8_t key[32];
    wire->ends[1].open = true;
    site_key(wire->ends[0].site, key);
    broker_link_ready(to->broker, world->now_ms, wire->ends[1].handle, key);
    site_key(wire->ends[1].site, key);
    broker_link_ready(from->broker, world->now_ms, wire->ends[0].handle, key);
    return true;
}

/* Takes what the broker has to send on a link. */
static inline void world_collect(struct world *world, int site, broker_handle handle) {
    struct broker *broker = world->sites[site].broker;
    struct end *other, *end = end_of(world, site, handle, &other);
    struct broker_span span;
    if (!end) return;
    while (broker_link_output(broker, world->now_ms, handle, &span)) {
        struct parcel *parcel = malloc(sizeof *parcel + span.size);
        if (parcel) { /* without memory, as in the tests that take it away, the wire loses it */
            parcel->next = NULL;
            parcel->size = span.size;
            memcpy(parcel->bytes, span.bytes, span.size);
            if (other->last)
                other->last->next = parcel;
            else
                other->first = parcel;
            other->last = parcel;
        }
        broker_link_written(broker, world->now_ms, handle);
    }
    if (broker_link_ended(broker, handle)) {
        broker_link_closed(broker, world->now_ms, handle);
        end->open = false;
        end_drop_parcels(end);
    }
}

static inline bool end_deliver(struct world *world, struct end *end, const struct end *other, bool ready) {
    struct broker *broker = world->sites[end->site].broker;
    struct parcel *parcel = end->first;
    if (!parcel) {
        if (!ready || !end->open || other->open) return false;
        broker_link_closed(broker, world->now_ms, end->handle);
        end->open = false;
        return true;
    }
    end->first = parcel->next;
    if (!end->first) end->last = NULL;
    world->frames_moved++;
    if (world->passes && !world->passes(world, other->site, end->site, parcel->bytes, parcel->size)) {
        free(parcel);
        return true;
    }
    for (size_t at = 0; end->open;) {
        size_t size = world->split && parcel->size - at > world->split ? world->split : parcel->size - at;
        bool final = at + size == parcel->size;
        broker_link_input(broker, world->now_ms, end->handle, parcel->bytes + at, size, final);
        at += size;
        if (final) break;
    }
    free(parcel);
    return true;
}

/* ---- rows ---- */

static inline void world_row_change(struct world *world, int site, const struct broker_row_change *change) {
    const char *cover = change->kind == ROW_NEWPUB ? world->sites[site].cover : NULL;
    struct world_row row = {.site = site, .kind = change->kind};
    assert(change->filter_size < TOPIC_MAX);
    memcpy(row.filter, cover ? cover : change->filter, cover ? strlen(cover) : change->filter_size);
    bool active = change->active || cover;
    int at = 0;
    while (at < world->row_count && memcmp(&world->rows[at], &row, sizeof row) != 0)
        at++;
    if (active && at == world->row_count) {
        assert(at < ROWS_MAX);
        world->rows[world->row_count++] = row;
    }
    if (!active && at < world->row_count) world->rows[at] = world->rows[--world->row_count];
    uint64_t sequence = ++world->sites[site].sequence, ticket = change->ticket;
    broker_row_sequenced(world->sites[site].broker, world->now_ms, ticket, sequence);
    for (int other = 0; other < world->site_count; other++) {
        struct site *to = &world->sites[other];
        if (other == site || !to->broker || to->deaf || world->sites[site].mute) continue;
        broker_peer_row(to->broker, world->now_ms, &world->sites[site].id, row.kind, row.filter, strlen(row.filter),
                        active);
        broker_peer_knows(world->sites[site].broker, world->now_ms, &to->id, sequence);
    }
}

/* ---- clients ---- */

static inline void client_send(struct world *world, struct client *client, const void *bytes, size_t size) {
    broker_client_input(world->sites[client->site].broker, world->now_ms, client->handle, bytes, size);
}

static inline size_t put_length(uint8_t *at, size_t length) {
    size_t count = 0;
    do {
        at[count] = (uint8_t)(length & 127);
        length >>= 7;
        if (length) at[count] |= 128;
        count++;
    } while (length);
    return count;
}

static inline void client_packet(struct world *world, struct client *client, uint8_t type, const void *body,
                                 size_t size) {
    uint8_t header[5] = {type};
    size_t header_size = 1 + put_length(header + 1, size);
    client_send(world, client, header, header_size);
    if (size > 0) client_send(world, client, body, size);
}

static inline void on_packet(struct world *world, struct client *client, const uint8_t *packet, const uint8_t *body,
                             size_t size) {
    int type = packet[0] >> 4;
    if (type == 9) client->subacks++;
    if (type == 4) client->pubacks++;
    if (type == 7) client->pubcomps++;
    if (type == 5 || type == 6) client_packet(world, client, type == 5 ? 0x62 : 0x70, body, 2);
    if (type != 3 || client->received_count == RECEIVED_MAX) return;
    struct received *received = &client->received[client->received_count++];
    size_t topic_size = (size_t)(body[0] << 8 | body[1]), at = 2 + topic_size;
    memset(received, 0, sizeof *received);
    received->qos = packet[0] >> 1 & 3;
    received->retain = packet[0] & 1;
    memcpy(received->topic, body + 2, topic_size < TOPIC_MAX ? topic_size : TOPIC_MAX - 1);
    const uint8_t *packet_id = body + at;
    if (received->qos) at += 2;
    received->payload_size = size - at;
    memcpy(received->payload, body + at, received->payload_size < TOPIC_MAX ? received->payload_size : TOPIC_MAX - 1);
    if (received->qos) client_packet(world, client, received->qos == 1 ? 0x40 : 0x50, packet_id, 2);
}

static inline void client_parse(struct world *world, struct client *client) {
    for (;;) {
        size_t length = 0, at = 1, shift = 0;
        while (at < client->input_size && at < 5) {
            length |= (size_t)(client->input[at] & 127) << shift;
            shift += 7;
            if (!(client->input[at++] & 128)) goto whole;
        }
        return;
    whole:
        if (client->input_size < at + length) return;
        uint8_t *packet = client->input;
        client->input = malloc(client->input_size - at - length + 1);
        size_t left = client->input_size - at - length;
        if (client->input) memcpy(client->input, packet + at + length, left);
        client->input_size = client->input ? left : 0;
        on_packet(world, client, packet, packet + at, length);
        free(packet);
    }
}

static inline bool client_collect(struct world *world, int site, broker_handle handle) {
    struct client *client = NULL;
    for (int i = 0; i < world->client_count; i++)
        if (world->clients[i]->site == site && world->clients[i]->handle == handle) client = world->clients[i];
    struct broker *broker = world->sites[site].broker;
    struct broker_span span;
    while (client && broker_client_output(broker, handle, &span, 1) > 0) {
        uint8_t *grown = realloc(client->input, client->input_size + span.size);
        if (grown) {
            memcpy(grown + client->input_size, span.bytes, span.size);
            client->input = grown;
            client->input_size += span.size;
        }
        broker_client_written(broker, world->now_ms, handle, span.size);
    }
    if (client) client_parse(world, client);
    return client != NULL;
}

/* ---- the pump ---- */

static inline bool site_pump(struct world *world, int site) {
    struct broker *broker = world->sites[site].broker;
    struct broker_row_change change;
    struct broker_note note;
    struct peer_id peer;
    broker_handle handle;
    bool any = false;
    if (!broker) return false;
    for (; broker_next_row(broker, &change); any = true)
        world_row_change(world, site, &change);
    for (; broker_next_dial(broker, world->now_ms, &peer); any = true)
        world_dial(world, site, &peer);
    for (; broker_next_link(broker, &handle); any = true)
        world_collect(world, site, handle);
    for (; broker_next_client(broker, &handle); any = true)
        client_collect(world, site, handle);
    while (broker_next_note(broker, &note)) {
        if (note.level == BROKER_NOTE_WARNING) {
            memcpy(world->last_warning[site], note.text, sizeof note.text);
            world->warnings[site]++;
        }
        if (getenv("NOTES")) fprintf(stderr, "%llu site-%d: %s\n", (unsigned long long)world->now_ms, site, note.text);
    }
    return any;
}

/* Until nothing moves any more; time stands still. */
static inline void world_settle(struct world *world) {
    bool any = true, moved = false;
    for (int rounds = 0; any; rounds++) {
        assert(rounds < 100000);
        any = false;
        for (int site = 0; site < world->site_count; site++)
            any |= site_pump(world, site);
        for (int i = 0; i < WIRES_MAX && !world->hold_frames; i++) {
            struct wire *wire = &world->wires[i];
            if (wire->held) continue;
            any |= wire_handshake(world, wire);
            if (!wire->used) continue;
            for (int e = 0; e < 2 && !(world->step_frames && moved); e++) {
                bool delivered = end_deliver(world, &wire->ends[e], &wire->ends[1 - e], wire->ready);
                moved |= delivered;
                any |= delivered;
            }
        }
    }
}

static inline void world_run(struct world *world, uint64_t duration_ms) {
    uint64_t end_ms = world->now_ms + duration_ms;
    world_settle(world);
    for (;;) {
        uint64_t due = UINT64_MAX;
        for (int i = 0; i < world->site_count; i++)
            if (world->sites[i].broker && broker_deadline_ms(world->sites[i].broker) < due)
                due = broker_deadline_ms(world->sites[i].broker);
        if (due > end_ms) break;
        if (due > world->now_ms) world->now_ms = due;
        for (int i = 0; i < world->site_count; i++)
            if (world->sites[i].broker) broker_tick(world->sites[i].broker, world->now_ms);
        world_settle(world);
    }
    world->now_ms = end_ms;
}

/* ---- what clients do ---- */

static inline struct client *client_connect_by(struct world *world, int site, const uint8_t *body, size_t size) {
    struct client *client = calloc(1, sizeof *client);
    if (!client) return NULL;
    client->site = site;
    client->handle = broker_client_open(world->sites[site].broker, world->now_ms,
                                        &(struct broker_origin){.from_loopback = true, .address = "test"});
    assert(world->client_count < CLIENTS_MAX);
    world->clients[world->client_count++] = client;
    client_packet(world, client, 0x10, body, size);
    return client;
}

static inline struct client *client_connect_as(struct world *world, int site, char letter, bool clean) {
    uint8_t body[] = {0, 4, 'M', 'Q', 'T', 'T', 4, clean ? 2 : 0, 0, 0, 0, 2, 'c', (uint8_t)letter};
    return client_connect_by(world, site, body, sizeof body);
}

/* By MQTT 5.0, with these properties. */
static inline struct client *client_connect_5(struct world *world, int site, const void *properties, uint8_t size) {
    uint8_t body[64] = {0, 4, 'M', 'Q', 'T', 'T', 5, 2, 0, 0, size},
            id[] = {0, 1, (uint8_t)('A' + world->client_count)};
    assert(11u + size + sizeof id <= sizeof body);
    if (size > 0) memcpy(body + 11, properties, size);
    memcpy(body + 11 + size, id, sizeof id);
    return client_connect_by(world, site, body, 11 + size + sizeof id);
}

static inline struct client *client_connect(struct world *world, int site) {
    return client_connect_as(world, site, (char)('a' + world->client_count), true);
}

static inline void client_subscribe(struct world *world, struct client *client, const char *filter, int qos) {
    uint8_t body[TOPIC_MAX + 8] = {0};
    size_t size = strlen(filter);
    client->packet_id++;
    body[0] = (uint8_t)(client->packet_id >> 8), body[1] = (uint8_t)client->packet_id;
    body[3] = (uint8_t)size;
    memcpy(body + 4, filter, size);
    body[4 + size] = (uint8_t)qos;
    client_packet(world, client, 0x82, body, size + 5);
}

static inline void client_unsubscribe(struct world *world, struct client *client, const char *filter) {
    uint8_t body[TOPIC_MAX + 8] = {0};
    size_t size = strlen(filter);
    client->packet_id++;
    body[0] = (uint8_t)(client->packet_id >> 8), body[1] = (uint8_t)client->packet_id;
    body[3] = (uint8_t)size;
    memcpy(body + 4, filter, size);
    client_packet(world, client, 0xa2, body, size + 4);
}

static inline void client_publish_bytes(struct world *world, struct client *client, const char *topic,
                                        const void *payload, size_t payload_size, int qos, bool retain) {
    size_t size = strlen(topic), at = 0;
    uint8_t *body = malloc(size + payload_size + 4);
    if (!body) return;
    body[at++] = 0, body[at++] = (uint8_t)size;
    memcpy(body + at, topic, size);
    at += size;
    if (qos) {
        client->packet_id++;
        body[at++] = (uint8_t)(client->packet_id >> 8), body[at++] = (uint8_t)client->packet_id;
    }
    if (payload_size > 0) memcpy(body + at, payload, payload_size);
    client_packet(world, client, (uint8_t)(0x30 | qos << 1 | retain), body, at + payload_size);
    free(body);
}

static inline void client_publish(struct world *world, struct client *client, const char *topic, const char *payload,
                                  int qos, bool retain) {
    client_publish_bytes(world, client, topic, payload, strlen(payload), qos, retain);
}

/* How often it got this payload. */
static inline int client_got(const struct client *client, const char *payload) {
    int count = 0;
    for (int i = 0; i < client->received_count; i++)
        count += strcmp(client->received[i].payload, payload) == 0;
    return count;
}

/* ---- what links say ---- */

static inline struct link_info world_link(struct world *world, int at, int to) {
    struct link_info info;
    for (size_t i = 0; broker_link_at(world->sites[at].broker, i, &info); i++)
        if (memcmp(&info.peer, &world->sites[to].id, sizeof info.peer) == 0) return info;
    return (struct link_info){.state = LINK_CLOSING};
}

static inline struct peering_counters world_counters(struct world *world, int site) {
    struct peering_counters counters;
    broker_read_peering_counters(world->sites[site].broker, &counters);
    return counters;
}

#endif
