#include "broker/sys.h"

#include "broker/engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Bridges may put something there too: enough for any number of them that make sense. */
enum { RETAINED_BYTES_MAX = 16 << 20, RETAINED_MESSAGES_MAX = 10000 };

static const char prefix[] = "$SYS/broker/";

/* ---- what is told ---- */

/* All of it at one moment. UINT64_MAX is not told. */
struct values {
    struct broker_counters counters;
    uint64_t disconnected, stored, stored_bytes, dropped, heap, heap_max;
};

#define OWN(field) offsetof(struct values, field)
#define COUNTER(field) offsetof(struct values, counters.field)

static const struct {
    const char *topic;
    size_t offset;
} values_rows[] = {
    {"clients/total", COUNTER(sessions)},
    {"clients/connected", COUNTER(clients_connected)},
    {"clients/active", COUNTER(clients_connected)},
    {"clients/disconnected", OWN(disconnected)},
    {"clients/inactive", OWN(disconnected)},
    {"clients/maximum", COUNTER(clients_maximum)},
    {"clients/expired", COUNTER(sessions_expired)},
    {"messages/received", COUNTER(packets_received)},
    {"messages/sent", COUNTER(packets_sent)},
    {"messages/stored", OWN(stored)},
    {"messages/inflight", COUNTER(inflight_messages)},
    {"store/messages/count", OWN(stored)},
    {"store/messages/bytes", OWN(stored_bytes)},
    {"subscriptions/count", COUNTER(subscriptions)},
    {"shared_subscriptions/count", COUNTER(shared_subscriptions)},
    {"retained messages/count", COUNTER(retained_messages)},
    {"bytes/received", COUNTER(bytes_received)},
    {"bytes/sent", COUNTER(bytes_sent)},
    {"publish/messages/received", COUNTER(publications_received)},
    {"publish/messages/sent", COUNTER(publications_sent)},
    {"publish/messages/dropped", OWN(dropped)},
    {"publish/bytes/received", COUNTER(publication_bytes_received)},
    {"publish/bytes/sent", COUNTER(publication_bytes_sent)},
    {"heap/current", OWN(heap)}, /* as Mosquitto does, and then as its manual says */
    {"heap/maximum", OWN(heap_max)},
    {"heap/current size", OWN(heap)},
    {"heap/maximum size", OWN(heap_max)},
};
static_assert(sizeof values_rows / sizeof values_rows[0] == SYS_VALUES, "one place for each value");

static const struct {
    const char *topic;
    size_t offset;
} loads_rows[] = {
    {"load/messages/received", COUNTER(packets_received)},
    {"load/messages/sent", COUNTER(packets_sent)},
    {"load/publish/received", COUNTER(publications_received)},
    {"load/publish/sent", COUNTER(publications_sent)},
    {"load/publish/dropped", OWN(dropped)},
    {"load/bytes/received", COUNTER(bytes_received)},
    {"load/bytes/sent", COUNTER(bytes_sent)},
    {"load/sockets", COUNTER(connections_opened)},
    {"load/connections", COUNTER(connects_accepted)},
};
static_assert(sizeof loads_rows / sizeof loads_rows[0] == SYS_LOADS, "one place for each load");

static uint64_t value_at(const struct values *values, size_t offset) {
    uint64_t value;

    memcpy(&value, (const char *)values + offset, sizeof value);
    return value;
}

static void gather(struct broker *broker, struct values *values) {
    const struct broker_counters *counters = &values->counters;

    broker_read_counters(broker, &values->counters);
    values->disconnected = counters->sessions - counters->clients_connected;
    values->stored = counters->retained_messages + counters->queued_messages + counters->inflight_messages;
    values->stored_bytes = retained_bytes(broker->retained) + counters->queued_bytes;
    values->dropped = counters->dropped_qos0 + counters->dropped_queue_full;
    if (broker->memory_used > broker->sys.memory_max) broker->sys.memory_max = broker->memory_used;
    values->heap = broker->memory_used != 0 ? broker->memory_used : UINT64_MAX;
    values->heap_max = broker->memory_used != 0 ? broker->sys.memory_max : UINT64_MAX;
}

/* ---- telling ---- */

static void publish_whole(struct broker *broker, uint64_t now_ms, const char *topic, const char *text) {
    struct broker_counters before = broker->counters;
    struct message message = {.retain = true,
                              .topic = topic,
                              .topic_size = (uint32_t)strlen(topic),
                              .payload = (const uint8_t *)text,
                              .payload_size = (uint32_t)strlen(text),
                              .expires_at_ms = UINT64_MAX};

    route_local(broker, now_ms, &message, false); /* when memory is short it is told the next time */
    message_return(&message);
    /* An idle broker must not tell of what telling costs. */
    broker->counters.packets_sent = before.packets_sent;
    broker->counters.publications_sent = before.publications_sent;
    broker->counters.publication_bytes_sent = before.publication_bytes_sent;
    broker->counters.dropped_qos0 = before.dropped_qos0;
}

static void publish(struct broker *broker, uint64_t now_ms, const char *topic, const char *text) {
    char whole[128];

    snprintf(whole, sizeof whole, "%s%s", prefix, topic);
    publish_whole(broker, now_ms, whole, text);
}

void broker_tell_sys(struct broker *broker, uint64_t now_ms, const char *topic, const char *text) {
    if (!broker->stopping) publish_whole(broker, now_ms, topic, text);
}

static void tell_values(struct broker *broker, uint64_t now_ms, const struct values *values) {
    char text[32];

    for (size_t i = 0; i < SYS_VALUES; i++) {
        uint64_t value = value_at(values, values_rows[i].offset);
        if (value == broker->sys.values_told[i] || value == UINT64_MAX) continue;
        broker->sys.values_told[i] = value;
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        publish(broker, now_ms, values_rows[i].topic, text);
    }
}

/* x^n. */
static double power(double x, uint64_t n) {
    double result = 1;

    for (; n > 0; n /= 2, x *= x)
        if (n & 1) result *= x;
    return result;
}

static void tell_loads(struct broker *broker, uint64_t now_ms, const struct values *values, uint64_t passed_ms) {
    /* e^(-1/60), e^(-1/300), e^(-1/900): what is left of an average after a second. */
    static const double left[SYS_WINDOWS] = {0.98347145382161749, 0.99667221605452337, 0.99888950594427923};
    static const char *const windows[SYS_WINDOWS] = {"1min", "5min", "15min"};
    double minutes = (double)passed_ms / 60000;
    char topic[64], text[48];

    for (size_t i = 0; i < SYS_LOADS; i++) {
        struct sys_load *load = &broker->sys.loads[i];
        uint64_t total = value_at(values, loads_rows[i].offset);
        double rate = (double)(total - load->total) / minutes;
        load->total = total;
        for (size_t j = 0; j < SYS_WINDOWS; j++) {
            uint64_t hundredths;
            load->average[j] = rate + power(left[j], (passed_ms + 500) / 1000) * (load->average[j] - rate);
            hundredths = (uint64_t)(load->average[j] * 100 + 0.5);
            if (hundredths == broker->sys.loads_told[i][j]) continue;
            broker->sys.loads_told[i][j] = hundredths;
            snprintf(topic, sizeof topic, "%s/%s", loads_rows[i].topic, windows[j]);
            snprintf(text, sizeof text, "%llu.%02u", (unsigned long long)(hundredths / 100),
                     (unsigned)(hundredths % 100));
            publish(broker, now_ms, topic, text);
        }
    }
}

static void tell_uptime(struct broker *broker, uint64_t now_ms) {
    char text[48];

    snprintf(text, sizeof text, "%llu seconds", (unsigned long long)((now_ms - broker->sys.started_ms) / 1000));
    publish(broker, now_ms, "uptime", text);
}

void sys_tick(struct broker *broker, uint64_t now_ms) {
    struct sys *sys = &broker->sys;
    struct values values;
    bool is_first = sys->round_ms == UINT64_MAX;

    if (sys->next_ms > now_ms || broker->stopping) return;
    sys->next_ms = now_ms + broker->limits.sys_interval_s * 1000ull;
    gather(broker, &values);
    if (is_first) publish(broker, now_ms, "version", sys->version);
    tell_uptime(broker, now_ms);
    tell_values(broker, now_ms, &values);
    if (is_first || now_ms > sys->round_ms)
        tell_loads(broker, now_ms, &values, is_first ? 1000 : now_ms - sys->round_ms);
    sys->round_ms = now_ms;
}

/* ---- its life ---- */

int sys_init(struct sys *sys, const struct broker_options *options, uint64_t now_ms) {
    sys->started_ms = now_ms;
    sys->round_ms = UINT64_MAX;
    sys->next_ms = options->limits.sys_interval_s != UINT32_MAX ? now_ms : UINT64_MAX;
    memset(sys->values_told, 0xFF, sizeof sys->values_told);
    memset(sys->loads_told, 0xFF, sizeof sys->loads_told);
    snprintf(sys->version, sizeof sys->version, "hobnob version %s",
             options->version != NULL ? options->version : "unknown");
    sys->retained = retained_new(RETAINED_BYTES_MAX, RETAINED_MESSAGES_MAX, options->seed);
    return sys->retained != NULL ? 0 : -1;
}

void sys_deinit(struct sys *sys) {
    retained_free(sys->retained);
}

struct retained *sys_retained_for(const struct broker *broker, const char *topic, size_t size) {
    bool is_sys = size >= 4 && topic[0] == '$' && memcmp(topic, "$SYS", 4) == 0 && (size == 4 || topic[4] == '/');

    return is_sys ? broker->sys.retained : broker->retained;
}
