#include "broker/held.h"

#include "broker/engine.h"

#include <stdlib.h>
#include <utlist.h>

static void send_suback(struct broker *broker, struct held *held) {
    struct client *client = held->client;
    const char *reason = held->timed_out ? "not every other broker has answered yet" : NULL;
    size_t size = mqtt_suback_size(client->version, MQTT_SUBACK, held->filter_count, reason);
    uint8_t *packet;

    if (reason != NULL && (client->no_problem_information || size > client->packet_size_max)) {
        reason = NULL; /* MQTT-3.1.2-29, MQTT-3.9.2-1 */
        size = mqtt_suback_size(client->version, MQTT_SUBACK, held->filter_count, reason);
    }
    packet = size <= client->packet_size_max ? malloc(size) : NULL;
    if (packet == NULL) {
        client_doom(broker, client, MQTT_QUOTA_EXCEEDED);
        return;
    }
    for (uint32_t i = 0; i < held->filter_count; i++)
        held->codes[i] = held->filters[i].code;
    mqtt_encode_suback(packet, client->version, MQTT_SUBACK, held->packet_id, held->codes, held->filter_count, reason);
    client_send(broker, client, packet, size);
    free(packet);
}

/* All its waits together last until end_wait(). */
static void wait_in(struct broker *broker, struct held *held, enum held_state state) {
    if (held->state == HELD_NEW) {
        DL_APPEND2(held->client->waiting, held, client_prev, client_next);
        held->client->waiting_count++;
        held_cover(broker, held);
    }
    held->state = state;
}

static void leave_state(struct broker *broker, struct held *held) {
    if (held->state == HELD_BY_BARRIER) HASH_DEL(broker->held, held);
    if (held->state == HELD_BY_STORE) DL_DELETE(broker->held_by_store, held);
    if (held->state != HELD_NEW) held->state = HELD_BETWEEN;
}

static void end_wait(struct broker *broker, struct held *held) {
    if (held->state == HELD_NEW) return;
    leave_state(broker, held);
    DL_DELETE2(held->client->waiting, held, client_prev, client_next);
    held->client->waiting_count--;
    held_uncover(broker, held);
}

static bool waits_for_store(const struct broker *broker, const struct held *held) {
    return !journal_has(&broker->journal, held->record) && !broker->journal.failing;
}

static void finish(struct broker *broker, struct held *held) {
    end_wait(broker, held);
    send_suback(broker, held);
    show_add(broker, held);
}

static void barrier_over(struct broker *broker, struct held *held) {
    if (!waits_for_store(broker, held)) {
        finish(broker, held);
        return;
    }
    wait_in(broker, held, HELD_BY_STORE);
    DL_APPEND(broker->held_by_store, held);
}

uint32_t held_bytes_max(const struct broker *broker) {
    return broker->memory_short ? broker->limits.packet_size_max / 256 : broker->limits.packet_size_max;
}

void held_begin(struct broker *broker, struct held *held) {
    if (held->barrier != 0) HASH_ADD(hh, broker->held, barrier, sizeof held->barrier, held);
    if (held->barrier != 0 && held->hh.tbl != NULL)
        wait_in(broker, held, HELD_BY_BARRIER);
    else
        barrier_over(broker, held); /* also without memory to find it again */
}

void held_durable(struct broker *broker) {
    while (broker->held_by_store != NULL && !waits_for_store(broker, broker->held_by_store))
        finish(broker, broker->held_by_store);
}

void held_free(struct held *held) {
    held->client->held_count--;
    held->client->held_bytes -= held->bytes;
    free(held);
}

bool held_release(struct broker *broker) {
    uint64_t barrier;
    bool timed_out, any = false;

    while (federation_next_released(broker->federation, &barrier, &timed_out)) {
        struct held *held;
        HASH_FIND(hh, broker->held, &barrier, sizeof barrier, held);
        any = true;
        if (held == NULL) continue; /* its client is gone */
        leave_state(broker, held);
        held->timed_out = timed_out;
        barrier_over(broker, held);
    }
    return any;
}

static void forget(struct broker *broker, struct held *held) {
    end_wait(broker, held);
    held_free(held);
}

void held_forget_client(struct broker *broker, struct client *client) {
    while (client->waiting != NULL)
        forget(broker, client->waiting);
}

void held_free_all(struct broker *broker) {
    struct held *held, *next;

    HASH_ITER(hh, broker->held, held, next) {
        forget(broker, held);
    }
    while (broker->held_by_store != NULL)
        forget(broker, broker->held_by_store);
    subs_free(broker->held_tree);
}
