#include "broker/broker.h"

#include "broker/durable.h"
#include "broker/engine.h"
#include "broker/partial.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void on_retained_change(void *context, uint64_t now_ms, const struct message *message, bool is_set) {
    struct broker *broker = context;

    if (is_set)
        durable_retained(broker, now_ms, message);
    else
        durable_retained_end(broker, message);
}

struct broker *broker_new(const struct broker_options *options, uint64_t now_ms) {
    struct broker *broker = calloc(1, sizeof *broker);
    struct broker_options complete = *options;
    struct federation_options federation = {.options = &complete, .broker = broker};

    if (broker == NULL) return NULL;
    limits_complete(&complete.limits);
    broker->limits = complete.limits;
    broker->questions = options->questions;
    memcpy(broker->id, options->id, sizeof broker->id);
    broker->seed = options->seed;
    broker->now_ms = now_ms;
    broker->debug_notes = options->debug_notes;
    broker->journal.is_on = options->durable;
    broker->journal.bytes_max = broker->limits.journal_bytes_max;
    broker->limit_notes_due_ms = UINT64_MAX;
    show_refill(broker);
    names_init(&broker->shares, options->seed);
    broker->subs = subs_new(options->seed);
    broker->retained =
        retained_new(broker->limits.retained_bytes_max, broker->limits.retained_messages_max, options->seed);
    if (broker->retained != NULL && options->durable) retained_watch(broker->retained, on_retained_change, broker);
    if (sys_init(&broker->sys, &complete, now_ms) != 0) {
        broker_free(broker);
        return NULL;
    }
    federation.subs = broker->subs;
    federation.retained = broker->retained;
    if (broker->subs != NULL && broker->retained != NULL) broker->federation = federation_new(&federation, now_ms);
    if (broker->federation != NULL) broker->routes = routes_new(broker->subs, options->seed);
    if (broker->limits.publish_rate_max > 0) broker->rates = rates_new();
    if (broker->routes == NULL || (broker->limits.publish_rate_max > 0 && broker->rates == NULL)) {
        broker_free(broker);
        return NULL;
    }
    return broker;
}

const struct broker_limits *broker_limits_of(const struct broker *broker) {
    return &broker->limits;
}

void broker_free(struct broker *broker) {
    struct session *session, *next;

    if (broker == NULL) return;
    restore_drop(broker);
    held_free_all(broker);
    for (uint32_t i = 0; i < broker->slot_count; i++)
        if (broker->slots[i].client != NULL) client_free(broker, broker->slots[i].client);
    HASH_ITER(hh, broker->sessions, session, next) {
        HASH_DEL(broker->sessions, session);
        session_free(broker, session);
    }
    routes_free(broker->routes);
    rates_free(broker->rates);
    federation_free(broker->federation);
    assert(broker->shares.count == 0);
    names_deinit(&broker->shares);
    retained_free(broker->retained);
    sys_deinit(&broker->sys);
    subs_free(broker->subs);
    chunk_pool_deinit(&broker->chunks);
    notes_free(broker);
    journal_discard(&broker->journal);
    free(broker->paused);
    free(broker->slots);
    free(broker);
}

struct federation *broker_federation(const struct broker *broker) {
    return broker->federation;
}

static bool release(struct broker *broker) {
    if (!held_release(broker)) return false;
    pause_release(broker);
    return true;
}

void broker_settle(struct broker *broker) {
    do {
        while (broker->doomed != NULL) {
            struct client *client = broker->doomed;
            broker->doomed = client->doomed_next;
            client_end(broker, broker->now_ms, client, client->doom, WILL_DUE);
        }
    } while (release(broker) || show_some(broker, broker->now_ms) || broker->doomed != NULL);
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t broker_deadline_ms(const struct broker *broker) {
    uint64_t due_ms = earlier(timers_due_ms(&broker->client_timers), broker->limit_notes_due_ms);

    if (broker->doomed != NULL || broker->showing != NULL) return broker->now_ms;
    if (!broker->stopping) /* what comes due of a session is for the next start */
        due_ms = earlier(due_ms, earlier(timers_due_ms(&broker->session_timers), broker->sys.next_ms));
    due_ms = earlier(due_ms, retained_deadline_ms(broker->retained));
    return earlier(due_ms, federation_deadline_ms(broker->federation));
}

void broker_tick(struct broker *broker, uint64_t now_ms) {
    struct timer *timer;

    broker->now_ms = now_ms;
    show_refill(broker);
    while ((timer = timers_take(&broker->client_timers, now_ms)) != NULL)
        client_timeout(broker, now_ms, (struct client *)timer);
    while (!broker->stopping && (timer = timers_take(&broker->session_timers, now_ms)) != NULL)
        session_timeout(broker, now_ms, (struct session *)((char *)timer - offsetof(struct session, timer)));
    retained_tick(broker->retained, now_ms);
    federation_tick(broker->federation, now_ms);
    limit_notes_tick(broker, now_ms);
    sys_tick(broker, now_ms);
    broker_settle(broker);
}

broker_handle broker_client_open(struct broker *broker, uint64_t now_ms, const struct broker_origin *origin) {
    struct client *client;

    broker->now_ms = now_ms;
    client = broker->stopping ? NULL : client_new(broker, now_ms, origin);
    return client != NULL ? client->handle : 0;
}

void broker_client_input(struct broker *broker, uint64_t now_ms, broker_handle handle, const uint8_t *bytes,
                         size_t size) {
    struct client *client = client_find(broker, handle);
    uint64_t before = broker->journal.last;

    broker->now_ms = now_ms;
    if (client == NULL || client->state == CLIENT_ENDED) return;
    broker->counters.bytes_received += size;
    client_input(broker, now_ms, client, bytes, size);
    pause_check(broker, client, before);
    show_wake(broker, client); /* it may have acknowledged */
    broker_settle(broker);
}

void broker_client_closed(struct broker *broker, uint64_t now_ms, broker_handle handle) {
    struct client *client = client_find(broker, handle);

    broker->now_ms = now_ms;
    if (client == NULL) return;
    if (client->state != CLIENT_ENDED) client->why = "its connection has ended";
    client_end(broker, now_ms, client, MQTT_SUCCESS, WILL_DUE);
    client_free(broker, client);
    broker_settle(broker);
}

bool broker_next_client(struct broker *broker, broker_handle *handle) {
    struct client *client;

    broker_settle(broker);
    client = broker->ready;
    if (client == NULL) return false;
    DL_DELETE(broker->ready, client);
    client->ready = false;
    *handle = client->handle;
    if (client->state == CLIENT_ENDED && client->output.bytes == 0) client_free(broker, client);
    return true;
}

size_t broker_client_output(struct broker *broker, broker_handle handle, struct broker_span *spans, size_t span_max) {
    const struct client *client = client_find(broker, handle);

    return client != NULL ? output_spans(&client->output, spans, span_max) : 0;
}

void broker_client_written(struct broker *broker, uint64_t now_ms, broker_handle handle, size_t size) {
    struct client *client = client_find(broker, handle);

    broker->now_ms = now_ms;
    if (client == NULL) return;
    assert(size <= client->output.bytes);
    broker->counters.bytes_sent += size;
    output_written(&client->output, &broker->chunks, size);
    if (client->state == CLIENT_ENDED) {
        if (client->output.bytes == 0) client_mark_ready(broker, client); /* to be named for its end */
        return;
    }
    if (client->session != NULL) session_pump(broker, now_ms, client->session);
    show_wake(broker, client);
    broker_settle(broker);
}

size_t broker_clients_connecting(const struct broker *broker, broker_handle *longest) {
    *longest = broker->connecting != NULL ? broker->connecting->handle : 0;
    return broker->connecting_count;
}

bool broker_client_ended(const struct broker *broker, broker_handle handle) {
    const struct client *client = client_find(broker, handle);

    return client == NULL || client->state == CLIENT_ENDED;
}

void broker_set_memory_short(struct broker *broker, uint64_t now_ms, bool is_short) {
    broker->now_ms = now_ms;
    broker->memory_short = is_short;
    partials_reduce(broker);
    broker_settle(broker);
}

void broker_set_memory_used(struct broker *broker, uint64_t bytes) {
    broker->memory_used = bytes;
    if (broker->memory_short) federation_relieve(broker->federation);
}

void broker_stop(struct broker *broker, uint64_t now_ms) {
    broker->now_ms = now_ms;
    broker->stopping = true;
    for (uint32_t i = 0; i < broker->slot_count; i++)
        if (broker->slots[i].client != NULL)
            client_end(broker, now_ms, broker->slots[i].client, MQTT_SERVER_SHUTTING_DOWN, WILL_DEFERRED);
    broker_settle(broker);
    federation_stop(broker->federation);
}

void broker_read_counters(const struct broker *broker, struct broker_counters *out) {
    *out = broker->counters;
    out->retained_messages = retained_count(broker->retained);
}
