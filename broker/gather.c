#include "broker/gather.h"

#include <stdlib.h>

/* A subscriber met during the walk. */
struct gathered {
    struct subscriber *subscriber;
    uint32_t first_found; /* its identifiers: position + 1 in found, 0 if none */
    uint8_t qos, own_qos; /* own: of its subscriptions without no-local */
    bool retain, own_retain;
    bool no_local, own; /* it has subscriptions with no-local; without */
};

struct found_identifier {
    uint32_t identifier;
    uint32_t next; /* position + 1, 0 at the end */
    bool no_local;
};

void gather_deinit(struct gather *gather) {
    free(gather->met);
    free(gather->found);
}

/* Room for one more; -1 when memory is short. */
static int reserve(void **items, size_t item_size, uint32_t count, uint32_t *capacity) {
    uint32_t larger = *capacity ? *capacity * 2 : 16;
    void *grown;

    if (count < *capacity) return 0;
    grown = *capacity < UINT32_MAX / 2 ? realloc(*items, larger * item_size) : NULL;
    if (grown == NULL) return -1;
    *items = grown;
    *capacity = larger;
    return 0;
}

/* The place of this subscriber; NULL when memory is short. */
static struct gathered *meet(struct gather *gather, struct subscriber *subscriber) {
    void *met = gather->met;

    if (subscriber->seen == gather->number) return &gather->met[subscriber->position];
    if (reserve(&met, sizeof *gather->met, gather->met_count, &gather->met_capacity) != 0) return NULL;
    gather->met = met;
    subscriber->seen = gather->number;
    subscriber->position = gather->met_count++;
    gather->met[subscriber->position] = (struct gathered){.subscriber = subscriber};
    return &gather->met[subscriber->position];
}

static int add_identifier(struct gather *gather, struct gathered *gathered, const struct subscription *subscription) {
    void *found = gather->found;

    if (reserve(&found, sizeof *gather->found, gather->found_count, &gather->found_capacity) != 0) return -1;
    gather->found = found;
    gather->found[gather->found_count] = (struct found_identifier){
        .identifier = subscription->identifier, .next = gathered->first_found, .no_local = subscription->no_local};
    gathered->first_found = ++gather->found_count;
    return 0;
}

static void on_hit(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct gather *gather = context;
    struct gathered *gathered;

    if (gather->failed) return;
    if (subscriber->kind == SUBSCRIBER_PEER && !federation_sends(subscriber, gather->topic, gather->topic_size)) return;
    gathered = meet(gather, subscriber);
    if (gathered == NULL || (subscription->identifier != 0 && add_identifier(gather, gathered, subscription) != 0)) {
        gather->failed = true;
        return;
    }
    if (subscription->qos > gathered->qos) gathered->qos = subscription->qos;
    gathered->retain |= subscription->retain_as_published;
    gathered->no_local |= subscription->no_local;
    if (subscription->no_local) return;
    if (subscription->qos > gathered->own_qos) gathered->own_qos = subscription->qos;
    gathered->own_retain |= subscription->retain_as_published;
    gathered->own = true;
}

int gather_topic(struct gather *gather, const struct subs *subs, const char *topic, size_t size) {
    gather->number++;
    gather->met_count = gather->found_count = 0;
    gather->failed = false;
    gather->topic = topic;
    gather->topic_size = size;
    subs_match(subs, topic, size, on_hit, gather);
    return gather->failed ? -1 : 0;
}

/* What a session receives of its own publications differs if it said no-local somewhere. */
static bool is_split(const struct gathered *gathered) {
    return gathered->no_local && gathered->own;
}

size_t gather_size(const struct gather *gather) {
    size_t receivers = 0;

    for (uint32_t i = 0; i < gather->met_count; i++)
        receivers += is_split(&gather->met[i]) ? 2 : 1;
    /* Split ones may list identifiers twice. */
    return receivers * sizeof(struct receiver) + 2 * gather->found_count * sizeof(uint32_t);
}

/* Adds the identifiers of the receiver to those of the route. The packet's own limits let no client have more. */
static void write_identifiers(const struct gather *gather, const struct gathered *gathered, struct route *route,
                              uint32_t *count, struct receiver *receiver) {
    receiver->identifier_at = *count;
    for (uint32_t at = gathered->first_found; at != 0 && receiver->identifier_count < UINT16_MAX;
         at = gather->found[at - 1].next) {
        if (receiver->scope == RECEIVES_OWN && gather->found[at - 1].no_local) continue;
        route->identifiers[(*count)++] = gather->found[at - 1].identifier;
        receiver->identifier_count++;
    }
}

void gather_write(const struct gather *gather, struct route *route) {
    uint32_t count = 0, identifiers = 0;
    size_t identifier_room = 2 * gather->found_count * sizeof(uint32_t);

    route->qos = 0;
    route->has_groups = false;
    route->identifiers = NULL;
    route->receiver_count = 0;
    if (gather->met_count == 0) return; /* then there may be no room at all, and no address to add to */
    route->identifiers = (uint32_t *)(void *)((char *)route->receivers + gather_size(gather) - identifier_room);
    for (uint32_t i = 0; i < gather->met_count; i++) {
        const struct gathered *met = &gather->met[i];
        struct receiver *receiver = &route->receivers[count++];
        *receiver = (struct receiver){.subscriber = met->subscriber,
                                      .qos = met->subscriber->kind == SUBSCRIBER_SHARE ? 2 : met->qos,
                                      .scope = met->no_local ? RECEIVES_OTHERS : RECEIVES_ALL,
                                      .retain_as_published = met->retain};
        write_identifiers(gather, met, route, &identifiers, receiver);
        if (receiver->qos > route->qos) route->qos = receiver->qos;
        if (met->subscriber->kind == SUBSCRIBER_PEER) route->qos = 2;
        route->has_groups |= met->subscriber->kind == SUBSCRIBER_SHARE;
        if (!is_split(met)) continue;
        receiver = &route->receivers[count++];
        *receiver = (struct receiver){.subscriber = met->subscriber,
                                      .qos = met->own_qos,
                                      .scope = RECEIVES_OWN,
                                      .retain_as_published = met->own_retain};
        write_identifiers(gather, met, route, &identifiers, receiver);
    }
    route->receiver_count = count;
}
