#include "broker/acks.h"

#include "broker/engine.h"

#include <stdlib.h>
#include <string.h>

struct head {
    uint64_t record;
    uint32_t size; /* of the packet that follows */
    uint32_t kind;
};

static bool is_met(const struct broker *broker, enum ack_kind kind, uint64_t record) {
    return journal_has(&broker->journal, record) || (kind == ACK_FREE && broker->journal.failing);
}

/* Made if there is none. NULL when memory is short; the client is doomed then. */
static struct acks *acks_of(struct broker *broker, struct client *client) {
    struct acks *acks = client->acks;

    if (acks != NULL) return acks;
    acks = calloc(1, sizeof *acks);
    if (acks == NULL) {
        client_doom(broker, client, MQTT_QUOTA_EXCEEDED);
        return NULL;
    }
    acks->client = client;
    client->acks = acks;
    return acks;
}

void acks_drop(struct broker *broker, struct client *client) {
    struct acks *acks = client->acks;

    if (acks == NULL) return;
    timer_clear(&broker->waiting, &acks->wait);
    free(acks->bytes);
    free(acks);
    client->acks = NULL;
}

static void wait_for(struct broker *broker, struct acks *acks, uint64_t record) {
    if (timer_is_set(&acks->wait) && acks->wait.due_ms <= record) return;
    timer_set(&broker->waiting, &acks->wait, record);
}

static int append(struct acks *acks, const struct head *head, const void *packet) {
    size_t needed = acks->size + sizeof *head + head->size, capacity = acks->capacity;
    uint8_t *grown;

    if (needed > capacity) {
        capacity = needed > capacity * 2 ? needed : capacity * 2;
        grown = realloc(acks->bytes, capacity);
        if (grown == NULL) return -1;
        acks->bytes = grown;
        acks->capacity = capacity;
    }
    memcpy(acks->bytes + acks->size, head, sizeof *head);
    memcpy(acks->bytes + acks->size + sizeof *head, packet, head->size);
    acks->size = needed;
    acks->held[head->kind]++;
    return 0;
}

static void hold(struct broker *broker, struct client *client, enum ack_kind kind, const void *packet, size_t size,
                 uint64_t record) {
    struct head head = {.record = record, .size = (uint32_t)size, .kind = kind};
    struct acks *acks = acks_of(broker, client);

    if (acks == NULL) return;
    if (append(acks, &head, packet) != 0) {
        client_doom(broker, client, MQTT_QUOTA_EXCEEDED);
        return;
    }
    if (!journal_has(&broker->journal, record)) wait_for(broker, acks, record);
}

void acks_send(struct broker *broker, struct client *client, enum ack_kind kind, const void *packet, size_t size,
               uint64_t record) {
    bool behind = client->muted || (kind != ACK_FREE && acks_held(client, kind) > 0);

    if (!behind && is_met(broker, kind, record))
        client_send(broker, client, packet, size);
    else
        hold(broker, client, kind, packet, size, record);
}

/* If memory is too short for the CONNACK, nothing else may be said either. */
static void send_connack(struct broker *broker, struct client *client, const void *packet, size_t size) {
    client->muted = false;
    client_send(broker, client, packet, size);
    client->muted = client->doom != 0;
}

void acks_send_connack(struct broker *broker, struct client *client, const void *packet, size_t size, uint64_t record) {
    if (is_met(broker, ACK_FREE, record)) {
        send_connack(broker, client, packet, size);
        return;
    }
    hold(broker, client, ACK_FREE, packet, size, record);
    client->muted = true;
}

void acks_await(struct broker *broker, struct client *client, uint64_t record) {
    struct acks *acks = acks_of(broker, client);

    if (acks != NULL) wait_for(broker, acks, record);
}

uint32_t acks_held(const struct client *client, enum ack_kind kind) {
    return client->acks != NULL ? client->acks->held[kind] : 0;
}

uint32_t acks_count(const struct client *client) {
    uint32_t count = 0;

    for (int kind = 0; kind < ACK_KINDS; kind++)
        count += acks_held(client, (enum ack_kind)kind);
    return count;
}

/* Sends what may go and moves the rest together. Nothing overtakes its own kind, nor the CONNACK, which is the first.
 * Returns the lowest record that still has to come, UINT64_MAX if there is none. */
static uint64_t flush(struct broker *broker, struct acks *acks) {
    struct client *client = acks->client;
    bool blocked[ACK_KINDS] = {false};
    uint64_t lowest = UINT64_MAX;
    size_t kept = 0, size;

    for (size_t at = 0; at < acks->size; at += size) {
        struct head head;
        memcpy(&head, acks->bytes + at, sizeof head);
        size = sizeof head + head.size;
        if (client->doom == 0 && !blocked[head.kind] && is_met(broker, (enum ack_kind)head.kind, head.record) &&
            !(client->muted && at > 0)) {
            const uint8_t *packet = acks->bytes + at + sizeof head;
            acks->held[head.kind]--;
            if (client->muted)
                send_connack(broker, client, packet, head.size);
            else
                client_send(broker, client, packet, head.size);
            continue;
        }
        blocked[head.kind] = head.kind != ACK_FREE;
        if (head.record < lowest && !journal_has(&broker->journal, head.record)) lowest = head.record;
        memmove(acks->bytes + kept, acks->bytes + at, size);
        kept += size;
    }
    acks->size = kept;
    return lowest;
}

static void go_on(struct broker *broker, uint64_t now_ms, struct acks *acks) {
    struct client *client = acks->client;
    uint64_t lowest = flush(broker, acks);

    if (lowest != UINT64_MAX) wait_for(broker, acks, lowest);
    if (client->session != NULL) session_pump(broker, now_ms, client->session);
    show_wake(broker, client);
    if (acks->size == 0 && !timer_is_set(&acks->wait)) acks_drop(broker, client);
}

void acks_durable(struct broker *broker, uint64_t now_ms) {
    struct timer *timer;

    while ((timer = timers_take(&broker->waiting, broker->journal.durable)) != NULL)
        go_on(broker, now_ms, (struct acks *)timer);
}

void acks_stop_waiting(struct broker *broker, uint64_t now_ms) {
    struct timers all = broker->waiting;
    struct timer *timer;

    broker->waiting = (struct timers){0};
    while ((timer = timers_take(&all, UINT64_MAX)) != NULL)
        go_on(broker, now_ms, (struct acks *)timer);
}
