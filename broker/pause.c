/* Clients that are not read until the store, or other brokers, have caught up. */
#include "broker/acks.h"
#include "broker/engine.h"

#include <stdlib.h>

/* What waits comes to an end by itself, whatever the client does meanwhile: so nobody is paused for what it must be
 * heard for. */
static bool waits_for_much(const struct broker *broker, const struct client *client) {
    return acks_count(client) > broker->limits.inflight_max ||
           client->waiting_count >= broker->limits.subscriptions_per_client ||
           (client->waiting_count > 0 && client->held_bytes > held_bytes_max(broker));
}

/* A store that fails may do so for long: what needs it is refused then, and nobody has to wait. */
static bool is_far_behind(const struct broker *broker) {
    return !broker->journal.failing && journal_is_half_full(&broker->journal);
}

/* Without memory to remember it, it is not paused. */
static void pause(struct broker *broker, struct client *client) {
    uint32_t capacity = broker->paused_capacity ? broker->paused_capacity * 2 : 8;
    broker_handle *grown;

    if (broker->paused_count == broker->paused_capacity) {
        grown = realloc(broker->paused, capacity * sizeof *grown);
        if (grown == NULL) return;
        broker->paused = grown;
        broker->paused_capacity = capacity;
    }
    broker->paused[broker->paused_count++] = client->handle;
    client->paused = true;
}

void pause_check(struct broker *broker, struct client *client, uint64_t before) {
    bool made_records = journal_since(&broker->journal, before) != 0;

    if (client->paused || client->state != CLIENT_CONNECTED) return;
    if (waits_for_much(broker, client) || (made_records && is_far_behind(broker))) pause(broker, client);
}

void pause_release(struct broker *broker) {
    uint32_t kept = 0;

    if (is_far_behind(broker)) return;
    for (uint32_t i = 0; i < broker->paused_count; i++) {
        struct client *client = client_find(broker, broker->paused[i]);
        if (client == NULL || client->state == CLIENT_ENDED) continue;
        if (waits_for_much(broker, client)) {
            broker->paused[kept++] = broker->paused[i];
            continue;
        }
        client->paused = false;
        client->heard_ms = broker->now_ms; /* it could not be heard */
        client_mark_ready(broker, client);
    }
    broker->paused_count = kept;
}
