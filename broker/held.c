#include "broker/held.h"

#include "broker/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

/* The User Properties of a SUBACK that was not confirmed. */
struct unconfirmed_properties {
    struct mqtt_user_property properties[UNCONFIRMED_NAMED_MAX + 1];
    char more[12];
};

/* One for each broker that has a name there, and one that says how many more there are; returns how many. */
static size_t tell_unconfirmed(struct unconfirmed_properties *told, const struct unconfirmed *unconfirmed) {
    size_t count = 0;

    if (unconfirmed == NULL) return 0;
    for (; count < unconfirmed_named(unconfirmed); count++)
        told->properties[count] =
            (struct mqtt_user_property){.name = "unconfirmed", .value = unconfirmed->names[count]};
    if (unconfirmed->count > count) {
        snprintf(told->more, sizeof told->more, "%u", (unsigned)(unconfirmed->count - count));
        told->properties[count++] = (struct mqtt_user_property){.name = "unconfirmed-more", .value = told->more};
    }
    return count;
}

/* Leaves out what the client must not be told, and what does not fit; returns the size. */
static size_t fit(const struct client *client, struct mqtt_suback *suback) {
    if (client->no_problem_information || mqtt_suback_size(suback) > client->packet_size_max)
        suback->user_property_count = 0; /* MQTT-3.1.2-29, MQTT-3.9.2-2 */
    if (client->no_problem_information || mqtt_suback_size(suback) > client->packet_size_max)
        suback->reason_string = NULL; /* MQTT-3.1.2-29, MQTT-3.9.2-1 */
    return mqtt_suback_size(suback);
}

static void send_suback(struct broker *broker, struct held *held) {
    struct client *client = held->client;
    struct unconfirmed_properties told;
    struct mqtt_suback suback = {
        .version = client->version,
        .type = MQTT_SUBACK,
        .packet_id = held->packet_id,
        .codes = held->codes,
        .code_count = held->filter_count,
        .reason_string = held->timed_out ? "not every other broker has answered yet" : NULL,
        .user_properties = told.properties,
        .user_property_count = tell_unconfirmed(&told, held->unconfirmed),
    };
    size_t size = fit(client, &suback);
    uint8_t *packet = size <= client->packet_size_max ? malloc(size) : NULL;

    if (packet == NULL) {
        client_doom(broker, client, MQTT_QUOTA_EXCEEDED);
        return;
    }
    for (uint32_t i = 0; i < held->filter_count; i++)
        held->codes[i] = held->filters[i].code;
    mqtt_encode_suback(packet, &suback);
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
    free(held->unconfirmed);
    held->unconfirmed = NULL;
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
    free(held->unconfirmed);
    free(held);
}

bool held_release(struct broker *broker) {
    uint64_t barrier;
    bool timed_out, any = false;
    struct unconfirmed *unconfirmed;

    while (federation_next_released(broker->federation, &barrier, &timed_out, &unconfirmed)) {
        struct held *held;
        HASH_FIND(hh, broker->held, &barrier, sizeof barrier, held);
        any = true;
        if (held == NULL) { /* its client is gone */
            free(unconfirmed);
            continue;
        }
        leave_state(broker, held);
        held->timed_out = timed_out;
        held->unconfirmed = unconfirmed;
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
