#include "broker/engine.h"

#include "broker/topic.h"

#include <stdlib.h>
#include <utlist.h>

static void send_suback(struct broker *broker, struct held *held, bool timed_out) {
    struct client *client = held->client;
    const char *reason = timed_out ? "not every other broker has answered yet" : NULL;
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
    mqtt_encode_suback(packet, client->version, MQTT_SUBACK, held->packet_id, held->codes, held->filter_count, reason);
    client_send(broker, client, packet, size);
    free(packet);
}

void held_send(struct broker *broker, struct held *held, bool timed_out) {
    held->timed_out = timed_out;
    if (!journal_has(&broker->journal, held->record) && !broker->journal.failing) {
        DL_APPEND(broker->held_by_store, held);
        return;
    }
    for (uint32_t i = 0; i < held->filter_count; i++)
        held->codes[i] = held->filters[i].code;
    send_suback(broker, held, timed_out);
    show_add(broker, held);
}

void held_durable(struct broker *broker) {
    while (broker->held_by_store != NULL) {
        struct held *held = broker->held_by_store;
        if (!journal_has(&broker->journal, held->record) && !broker->journal.failing) return;
        DL_DELETE(broker->held_by_store, held);
        held_send(broker, held, held->timed_out);
    }
}

void held_free(struct held *held) {
    held->client->held_count--;
    held->client->held_bytes -= held->bytes;
    free(held);
}

void held_add(struct broker *broker, struct held *held) {
    DL_APPEND(broker->held, held);
}

bool held_release(struct broker *broker) {
    uint64_t barrier;
    bool timed_out, any = false;

    while (federation_next_released(broker->federation, &barrier, &timed_out)) {
        struct held *held;
        /* Barriers end roughly in the order they began, so the search is short. */
        DL_SEARCH_SCALAR(broker->held, held, barrier, barrier);
        any = true;
        if (held == NULL) continue; /* its client is gone */
        DL_DELETE(broker->held, held);
        held_send(broker, held, timed_out);
    }
    return any;
}

static void forget_in(struct held **list, const struct client *client) {
    struct held *held, *next;

    DL_FOREACH_SAFE(*list, held, next) {
        if (held->client != client) continue;
        DL_DELETE(*list, held);
        held_free(held);
    }
}

void held_forget_client(struct broker *broker, struct client *client) {
    if (client->held_count == 0) return;
    forget_in(&broker->held, client);
    forget_in(&broker->held_by_store, client);
}

static bool covered_in(const struct held *list, const struct client *client, const char *topic, size_t size) {
    const struct held *held;

    DL_FOREACH(list, held) {
        if (held->client != client) continue;
        for (uint32_t i = 0; i < held->filter_count; i++)
            if (held->filters[i].code < 0x80 &&
                topic_matches(held->filters[i].text, held->filters[i].size, topic, size))
                return true;
    }
    return false;
}

bool held_covers(const struct broker *broker, const struct client *client, const char *topic, size_t size) {
    return client->held_count > 0 &&
           (covered_in(broker->held, client, topic, size) || covered_in(broker->held_by_store, client, topic, size));
}

static void free_list(struct held **list) {
    while (*list != NULL) {
        struct held *held = *list;
        DL_DELETE(*list, held);
        held_free(held);
    }
}

void held_free_all(struct broker *broker) {
    free_list(&broker->held);
    free_list(&broker->held_by_store);
}
