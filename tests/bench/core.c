/* What a delivery costs the core alone: bytes in, bytes out, no sockets, no loop.
 *
 *   bench_core CASE [--messages N] [--batch N] [--payload BYTES] [--topics N] [--subscriptions N] [--wildcards N]
 *                   [--retained N] [--version 4|5] [--lasting 1] [--subscribers N] [--mixed 1] [--aliases N]
 *                   [--identifiers 1] [--retain 1]
 *
 * CASE is one of
 *   one          1 publisher to 1 subscriber          pairs        10 of these
 *   fan-out      1 to 100                             fan-in       100 to 1
 *   pairs-1      10 pairs at QoS 1                    pairs-2      10 pairs at QoS 2
 * --messages   how many are published in all (100,000)
 * --batch      how many a publisher sends between two rounds of writing (by case)
 * --topics     how many topics each publisher takes in turn (1)
 * --subscriptions, --wildcards, --retained    what else is there and does not match
 * --lasting    sessions outlive their connections, in a store that takes no time
 * --subscribers    of fan-out and fan-in, at most 1,000
 * --mixed      every second client speaks the other version
 * --aliases    topic alias maximum of 5.0 clients
 * --identifiers    5.0 subscribers have subscription identifiers
 * --retain     what is published is retained
 *
 * It prints nanoseconds per delivery, its own work included. Instructions per delivery, the core's alone, come from
 *
 *   valgrind --tool=callgrind --collect-atstart=no --toggle-collect='core_*' \
 *            --callgrind-out-file=out bench_core one
 *
 * where the number collected is to be divided by the deliveries printed.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/broker.h"

enum { CLIENTS_MAX = 1200, OTHERS = 10, SPANS = 64 };

struct plan {
    const char *name;
    unsigned publishers, subscribers, qos, batch;
    bool paired; /* each publisher has a subscriber of its own; else all publish to, and listen at, one tree */
};

static const struct plan plans[] = {
    {"one", 1, 1, 0, 200, true},      {"pairs", 10, 10, 0, 40, true},   {"fan-out", 1, 100, 0, 10, false},
    {"fan-in", 100, 1, 0, 10, false}, {"pairs-1", 10, 10, 1, 20, true}, {"pairs-2", 10, 10, 2, 20, true},
};

struct client {
    broker_handle handle;
    bool publishes;
    unsigned number; /* among its kind */
    unsigned version;
    uint16_t packet_id;
    uint32_t published;
    uint8_t *in; /* what it is about to send */
    size_t in_size, in_capacity, batch_size;
    size_t skip; /* bytes to come of a packet that was answered */
};

struct bench {
    const struct plan *plan;
    struct broker *broker;
    struct client *clients;
    unsigned client_count;
    struct client **by_handle; /* handles of a fresh broker are 1, 2, 3 ... */
    uint64_t now_ms;
    unsigned batch, payload_size, topics, version, subscriptions, wildcards, retained, lasting;
    unsigned subscribers, mixed, aliases, identifiers, retain;
    uint64_t messages, deliveries, journal_bytes;
};

/* ---- the doors, each a function of its own so that callgrind can count what is below ---- */

#define DOOR __attribute__((noinline)) static

DOOR void core_input(struct bench *bench, struct client *client, const uint8_t *bytes, size_t size) {
    broker_client_input(bench->broker, bench->now_ms, client->handle, bytes, size);
}

DOOR bool core_next(struct bench *bench, broker_handle *handle) {
    return broker_next_client(bench->broker, handle);
}

DOOR size_t core_output(struct bench *bench, broker_handle handle, struct broker_span *spans) {
    return broker_client_output(bench->broker, handle, spans, SPANS);
}

DOOR void core_written(struct bench *bench, broker_handle handle, size_t size) {
    broker_client_written(bench->broker, bench->now_ms, handle, size);
}

DOOR bool core_take(struct bench *bench, struct broker_journal *journal) {
    return broker_take_journal(bench->broker, journal);
}

DOOR void core_durable(struct bench *bench, uint64_t number) {
    broker_durable(bench->broker, bench->now_ms, number);
}

/* ---- packets ---- */

static uint8_t *room(struct client *client, size_t size) {
    if (client->in_size + size > client->in_capacity) {
        client->in_capacity = (client->in_size + size) * 2;
        client->in = realloc(client->in, client->in_capacity);
        if (client->in == NULL) abort();
    }
    client->in_size += size;
    return client->in + client->in_size - size;
}

static void put_u8(struct client *client, unsigned value) {
    *room(client, 1) = (uint8_t)value;
}

static void put_u16(struct client *client, unsigned value) {
    put_u8(client, value >> 8);
    put_u8(client, value & 0xFF);
}

static void put_text(struct client *client, const char *text) {
    size_t size = strlen(text);
    put_u16(client, (unsigned)size);
    memcpy(room(client, size), text, size);
}

static void put_head(struct client *client, unsigned first, size_t remaining) {
    put_u8(client, first);
    for (; remaining > 0x7F; remaining >>= 7)
        put_u8(client, (unsigned)(remaining & 0x7F) | 0x80);
    put_u8(client, (unsigned)remaining);
}

static uint16_t next_id(struct client *client) {
    client->packet_id = client->packet_id == UINT16_MAX ? 1 : (uint16_t)(client->packet_id + 1);
    return client->packet_id;
}

static void put_connect(const struct bench *bench, struct client *client, const char *id) {
    const unsigned properties = client->version < 5 ? 0 : bench->aliases > 0 ? 4 : 1;
    put_head(client, 0x10, 10 + properties + 2 + strlen(id));
    put_text(client, "MQTT");
    put_u8(client, client->version);
    put_u8(client, bench->lasting ? 0 : 2); /* clean start; in 3.1.1 it says that the session does not last */
    put_u16(client, 0);
    if (properties > 0) put_u8(client, properties - 1);
    if (properties > 1) put_u8(client, 0x22); /* topic alias maximum */
    if (properties > 1) put_u16(client, bench->aliases);
    put_text(client, id);
}

static void put_subscribe(const struct bench *bench, struct client *client, const char *filter, unsigned qos) {
    const unsigned properties = client->version < 5 ? 0 : bench->identifiers ? 3 : 1;
    put_head(client, 0x82, 2 + properties + 2 + strlen(filter) + 1);
    put_u16(client, next_id(client));
    if (properties > 0) put_u8(client, properties - 1);
    if (properties > 1) put_u8(client, 0x0b); /* subscription identifier */
    if (properties > 1) put_u8(client, 1 + client->number % 100);
    put_text(client, filter);
    put_u8(client, qos);
}

static void put_publish(const struct bench *bench, struct client *client, const char *topic, unsigned qos,
                        bool retain) {
    put_head(client, 0x30 | qos << 1 | retain,
             2 + strlen(topic) + (qos > 0 ? 2 : 0) + (client->version >= 5 ? 1u : 0u) + bench->payload_size);
    put_text(client, topic);
    if (qos > 0) put_u16(client, next_id(client));
    if (client->version >= 5) put_u8(client, 0);
    memset(room(client, bench->payload_size), 'p', bench->payload_size);
}

static void put_ack(struct client *client, unsigned first, unsigned packet_id) {
    put_head(client, first, 2);
    put_u16(client, packet_id);
}

static void give(struct bench *bench, struct client *client) {
    core_input(bench, client, client->in, client->in_size);
    client->in_size = 0;
}

/* ---- what comes back ---- */

/* Answers a packet whose first bytes are there: all that is needed of a PUBLISH here is its packet id. */
static void answer(struct client *client, const uint8_t *packet, size_t header_size) {
    size_t at = header_size;

    switch (packet[0] >> 4) {
    case 3:
        if ((packet[0] & 6) == 0) return;
        at += 2 + ((size_t)packet[at] << 8 | packet[at + 1]);
        put_ack(client, (packet[0] & 6) == 2 ? 0x40 : 0x50, (unsigned)(packet[at] << 8 | packet[at + 1]));
        return;
    case 5: put_ack(client, 0x62, (unsigned)(packet[2] << 8 | packet[3])); return;
    case 6: put_ack(client, 0x70, (unsigned)(packet[2] << 8 | packet[3])); return;
    default: return;
    }
}

/* Packets do not lie across two chunks, as each is written in one piece; those that do are large and QoS 0 here. */
static void take(struct client *client, const uint8_t *bytes, size_t size) {
    while (client->skip < size) {
        const uint8_t *packet = bytes + client->skip;
        size_t remaining = 0, header = 1;
        unsigned shift = 0;
        do {
            remaining |= (size_t)(packet[header] & 0x7F) << shift;
            shift += 7;
        } while (packet[header++] & 0x80);
        answer(client, packet, header);
        client->skip += header + remaining;
    }
    client->skip -= size;
}

static void drain(struct bench *bench) {
    struct broker_span spans[SPANS];
    broker_handle handle;

    while (core_next(bench, &handle)) {
        struct client *client = bench->by_handle[handle];
        size_t count;
        assert(!broker_client_ended(bench->broker, handle));
        while ((count = core_output(bench, handle, spans)) > 0) {
            size_t size = 0;
            for (size_t i = 0; i < count; i++) {
                take(client, spans[i].bytes, spans[i].size);
                size += spans[i].size;
            }
            core_written(bench, handle, size);
        }
    }
}

static void store(struct bench *bench) {
    struct broker_journal journal;

    while (core_take(bench, &journal)) {
        bench->journal_bytes += journal.size;
        free(journal.bytes);
        core_durable(bench, journal.last);
    }
}

/* Until nobody has anything to say. */
static void settle(struct bench *bench) {
    bool any = true;

    while (any) {
        store(bench);
        drain(bench);
        any = false;
        for (unsigned i = 0; i < bench->client_count; i++) {
            if (bench->clients[i].in_size == 0) continue;
            give(bench, &bench->clients[i]);
            any = true;
        }
    }
}

/* ---- the run ---- */

static struct client *add_client(struct bench *bench, const char *kind, unsigned number) {
    struct client *client = &bench->clients[bench->client_count++];
    char id[32];

    assert(bench->client_count <= CLIENTS_MAX);
    client->number = number;
    client->publishes = kind[0] == 'p';
    client->version = bench->mixed && number % 2 == 1 ? 9 - bench->version : bench->version;
    client->handle = broker_client_open(bench->broker, bench->now_ms,
                                        &(struct broker_origin){.from_loopback = true, .address = "127.0.0.1"});
    assert(client->handle > 0 && client->handle <= CLIENTS_MAX);
    bench->by_handle[client->handle] = client;
    snprintf(id, sizeof id, "%s-%u", kind, number);
    put_connect(bench, client, id);
    give(bench, client);
    return client;
}

/* What is there besides, held by several clients, as each has its limit. */
static void populate(struct bench *bench) {
    struct client *others[OTHERS];
    char text[64];

    for (unsigned i = 0; i < OTHERS; i++)
        others[i] = add_client(bench, "other", i);
    for (unsigned i = 0; i < bench->subscriptions; i++) {
        snprintf(text, sizeof text, "site/%u/sensor/%u/value", i % 100, i);
        put_subscribe(bench, others[i % OTHERS], text, 0);
        if (i % 1000 == 999) settle(bench);
    }
    for (unsigned i = 0; i < bench->wildcards; i++) {
        snprintf(text, sizeof text, i % 2 ? "+/%u/sensor/+/%u" : "site/+/%u/%u/#", i % 100, i);
        put_subscribe(bench, others[i % OTHERS], text, 0);
        if (i % 1000 == 999) settle(bench);
    }
    for (unsigned i = 0; i < bench->retained; i++) {
        snprintf(text, sizeof text, "site/%u/state/%u/value", i % 100, i);
        put_publish(bench, others[0], text, 0, true);
        if (i % 1000 == 999) settle(bench);
    }
    settle(bench);
}

static void begin(struct bench *bench) {
    struct broker_options options = {
        .name = "bench",
        .epoch = 1,
        .seed = 7,
        .durable = bench->lasting,
        .limits = {.subscriptions_per_client = UINT16_MAX, .topic_alias_out_max = bench->aliases}};
    char filter[96];

    bench->now_ms = 1000;
    bench->broker = broker_new(&options, bench->now_ms);
    bench->clients = calloc(CLIENTS_MAX, sizeof *bench->clients);
    bench->by_handle = calloc(CLIENTS_MAX + 1, sizeof(struct client *));
    if (bench->broker == NULL || bench->clients == NULL || bench->by_handle == NULL) abort();
    populate(bench);
    for (unsigned i = 0; i < bench->subscribers; i++) {
        struct client *client = add_client(bench, "subscriber", i);
        if (bench->plan->paired)
            snprintf(filter, sizeof filter, bench->topics > 1 ? "site/%u/bench/#" : "site/%u/bench/0", i);
        else
            snprintf(filter, sizeof filter, "site/+/bench/#");
        put_subscribe(bench, client, filter, bench->plan->qos);
    }
    for (unsigned i = 0; i < bench->plan->publishers; i++)
        add_client(bench, "publisher", i);
    settle(bench);
}

/* The same bytes again where nothing in them would be different, so that making them is not measured. */
static void publish(struct bench *bench, struct client *client) {
    char topic[64];

    bench->messages -= bench->batch;
    if (bench->plan->qos == 0 && client->published > 0 && bench->batch % bench->topics == 0) {
        client->in_size = client->batch_size;
        return;
    }
    for (unsigned i = 0; i < bench->batch; i++) {
        snprintf(topic, sizeof topic, "site/%u/bench/%u", client->number, client->published++ % bench->topics);
        put_publish(bench, client, topic, bench->plan->qos, bench->retain);
    }
    client->batch_size = client->in_size;
}

static void run(struct bench *bench) {
    while (bench->messages >= bench->batch) {
        for (unsigned i = 0; i < bench->client_count && bench->messages >= bench->batch; i++) {
            struct client *client = &bench->clients[i];
            if (!client->publishes) continue;
            publish(bench, client);
            give(bench, client);
        }
        settle(bench);
        bench->now_ms++;
    }
}

static double seconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static unsigned *option(struct bench *bench, const char *name) {
    if (strcmp(name, "--batch") == 0) return &bench->batch;
    if (strcmp(name, "--payload") == 0) return &bench->payload_size;
    if (strcmp(name, "--topics") == 0) return &bench->topics;
    if (strcmp(name, "--subscriptions") == 0) return &bench->subscriptions;
    if (strcmp(name, "--wildcards") == 0) return &bench->wildcards;
    if (strcmp(name, "--retained") == 0) return &bench->retained;
    if (strcmp(name, "--version") == 0) return &bench->version;
    if (strcmp(name, "--lasting") == 0) return &bench->lasting;
    if (strcmp(name, "--subscribers") == 0) return &bench->subscribers;
    if (strcmp(name, "--mixed") == 0) return &bench->mixed;
    if (strcmp(name, "--aliases") == 0) return &bench->aliases;
    if (strcmp(name, "--identifiers") == 0) return &bench->identifiers;
    if (strcmp(name, "--retain") == 0) return &bench->retain;
    return NULL;
}

static bool read_arguments(struct bench *bench, int count, char **texts) {
    for (size_t i = 0; count > 1 && i < sizeof plans / sizeof *plans; i++)
        if (strcmp(texts[1], plans[i].name) == 0) bench->plan = &plans[i];
    if (bench->plan == NULL || count % 2 != 0) return false;
    bench->batch = bench->plan->batch;
    bench->subscribers = bench->plan->subscribers;
    for (int i = 2; i < count; i += 2) {
        unsigned *place = option(bench, texts[i]);
        unsigned value = (unsigned)strtoul(texts[i + 1], NULL, 10);
        if (strcmp(texts[i], "--messages") == 0)
            bench->messages = value;
        else if (place != NULL)
            *place = value;
        else
            return false;
    }
    return bench->batch > 0 && bench->topics > 0 && bench->subscribers <= 1000 &&
           (!bench->plan->paired || bench->subscribers == bench->plan->subscribers);
}

int main(int count, char **texts) {
    struct bench bench = {.messages = 100000, .payload_size = 64, .topics = 1, .version = 4};
    struct broker_counters before, after;
    double begun;

    if (!read_arguments(&bench, count, texts)) {
        fprintf(stderr,
                "usage: bench_core one|pairs|fan-out|fan-in|pairs-1|pairs-2 [--OPTION N ...], see its source\n");
        return 2;
    }
    begin(&bench);
    broker_read_counters(bench.broker, &before);
    begun = seconds();
    run(&bench);
    begun = seconds() - begun;
    broker_read_counters(bench.broker, &after);
    bench.deliveries = after.publications_sent - before.publications_sent;
    printf("%-8s %llu publications, %llu deliveries, %.0f ns each, %llu dropped\n", bench.plan->name,
           (unsigned long long)(after.publications_received - before.publications_received),
           (unsigned long long)bench.deliveries, begun * 1e9 / (double)bench.deliveries,
           (unsigned long long)(after.dropped_qos0 + after.dropped_queue_full));
    broker_free(bench.broker);
    for (unsigned i = 0; i < bench.client_count; i++)
        free(bench.clients[i].in);
    free(bench.clients);
    free(bench.by_handle);
    return 0;
}
