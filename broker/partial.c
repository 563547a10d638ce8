#include "broker/partial.h"

#include "broker/connect.h"
#include "broker/engine.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void list(struct broker *broker, struct partial *partial) {
    if (partial->is_large || partial->capacity <= PARTIAL_SMALL) return;
    partial->is_large = true;
    DL_APPEND(broker->partials, partial);
    broker->partial_bytes += partial->capacity;
}

static void unlist(struct broker *broker, struct partial *partial) {
    if (partial->client != NULL && partial->is_large) DL_DELETE(broker->partials, partial);
    partial->client = NULL;
}

void partial_free(struct broker *broker, struct partial *partial) {
    if (partial == NULL) return;
    unlist(broker, partial);
    if (partial->is_large) broker->partial_bytes -= partial->capacity;
    free(partial->bytes);
    free(partial);
}

struct partial *partial_take(struct broker *broker, struct client *client) {
    struct partial *partial = client->partial;

    client->partial = NULL;
    unlist(broker, partial);
    return partial;
}

void partial_drop(struct broker *broker, struct client *client) {
    partial_free(broker, client->partial);
    client->partial = NULL;
}

static uint64_t allowed(const struct broker *broker) {
    return broker->memory_short ? broker->limits.partial_bytes_max / 4 : broker->limits.partial_bytes_max;
}

/* Of a doomed client nothing is read any more, so what is gone here is missed nowhere. */
static void give_up(struct broker *broker, struct partial *partial) {
    struct client *client = partial->client;

    if (client->partial == partial)
        client->partial = NULL;
    else
        client->exchange->connect = NULL;
    partial_free(broker, partial);
}

void partials_reduce(struct broker *broker) {
    while (broker->partial_bytes > allowed(broker) && broker->partials != NULL) {
        struct client *client = broker->partials->client;
        limit_reached(broker, BROKER_AT_PARTIAL_BYTES_MAX,
                      "client '%.*s' at %s closed, its packet was on its way for too long", CLIENT_WHO(client));
        give_up(broker, broker->partials);
        client->why = "the broker's room for packets that have not arrived whole is used up";
        client_doom(broker, client, MQTT_QUOTA_EXCEEDED);
    }
}

/* Room for size more bytes. Doubling, but not beyond the packet's end. */
static int reserve(struct broker *broker, struct partial *partial, size_t size, uint32_t packet_size) {
    uint64_t needed = (uint64_t)partial->size + size, capacity = (uint64_t)partial->capacity * 2;
    uint8_t *grown;

    if (needed <= partial->capacity) return 0;
    if (capacity > packet_size) capacity = packet_size;
    if (capacity < needed) capacity = needed;
    grown = realloc(partial->bytes, capacity);
    if (grown == NULL) return -1;
    partial->bytes = grown;
    if (partial->is_large) broker->partial_bytes += capacity - partial->capacity;
    partial->capacity = (uint32_t)capacity;
    list(broker, partial);
    return 0;
}

struct partial *partial_keep(struct broker *broker, struct client *client, const uint8_t *bytes, size_t size) {
    struct partial *partial = calloc(1, sizeof *partial);

    if (partial == NULL) return NULL;
    partial->client = client;
    if (reserve(broker, partial, size, UINT32_MAX) != 0) {
        partial_free(broker, partial);
        return NULL;
    }
    memcpy(partial->bytes, bytes, size);
    partial->size = (uint32_t)size;
    return partial;
}

int partial_append(struct broker *broker, struct client *client, const uint8_t *bytes, size_t size,
                   uint32_t packet_size) {
    struct partial *partial = client->partial;

    if (partial == NULL) {
        partial = client->partial = calloc(1, sizeof *partial);
        if (partial == NULL) return -1;
        partial->client = client;
    }
    if (reserve(broker, partial, size, packet_size) != 0) return -1;
    memcpy(partial->bytes + partial->size, bytes, size);
    partial->size += (uint32_t)size;
    partials_reduce(broker);
    return 0;
}
