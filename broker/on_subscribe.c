#include "broker/client.h"

#include "broker/admission.h"
#include "broker/engine.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

enum { NO_LOCAL = 4, RETAIN_AS_PUBLISHED = 8 };

static struct subscription subscription_of(const struct client *client, uint8_t options, uint32_t identifier) {
    if (client->is_bridge) options |= NO_LOCAL | RETAIN_AS_PUBLISHED;
    return (struct subscription){.qos = options & 3,
                                 .no_local = options & NO_LOCAL,
                                 .retain_as_published = options & RETAIN_AS_PUBLISHED,
                                 .retain_handling = (options >> 4) & 3,
                                 .identifier = identifier};
}

/* Faults of the packet as a whole, before anything of it is done. Its size is that of the filters with their final
 * place. */
static enum mqtt_reason check(struct mqtt_subscribe walk, size_t *text_size) {
    struct mqtt_view filter;
    uint8_t options;

    *text_size = 0;
    while (mqtt_next_filter(MQTT_SUBSCRIBE, &walk, &filter, &options)) {
        const char *text = (const char *)filter.bytes;
        bool shared = topic_is_shared(text, filter.size);
        if (!mqtt_check_filter(filter)) return MQTT_MALFORMED;
        if (shared && (options & 4)) return MQTT_PROTOCOL_ERROR; /* MQTT-3.8.3-4 */
        *text_size += filter.size;
    }
    return MQTT_SUCCESS;
}

/* Room for the answer: one allocation with the filters, their texts and the codes. NULL when memory is short. */
static struct held *held_new(struct client *client, struct mqtt_subscribe *subscribe, size_t text_size) {
    size_t filters_size = subscribe->filter_count * sizeof(struct held_filter);
    size_t bytes = sizeof(struct held) + filters_size + subscribe->filter_count + text_size;
    struct held *held = calloc(1, bytes);
    struct mqtt_view filter;
    uint8_t options;
    char *text;

    if (held == NULL) return NULL;
    held->client = client;
    held->bytes = (uint32_t)bytes;
    client->held_count++;
    client->held_bytes += held->bytes;
    held->packet_id = subscribe->packet_id;
    held->codes = (uint8_t *)&held->filters[subscribe->filter_count];
    text = (char *)held->codes + subscribe->filter_count;
    while (mqtt_next_filter(MQTT_SUBSCRIBE, subscribe, &filter, &options)) {
        memcpy(text, filter.bytes, filter.size);
        held->filters[held->filter_count++] =
            (struct held_filter){.text = text,
                                 .size = filter.size,
                                 .inner = (uint32_t)topic_share_split(text, filter.size),
                                 .subscription = subscription_of(client, options, subscribe->identifier)};
        text += filter.size;
    }
    return held;
}

/* Subscribes to one filter and decides now what its SUBACK will say and whether retained messages follow it. */
static void subscribe_one(struct broker *broker, uint64_t now_ms, struct session *session, struct held_filter *filter,
                          bool v5) {
    enum subs_result result;
    enum mqtt_reason reason;
    bool shared = topic_is_shared(filter->text, filter->size);

    if (shared ? filter->inner == 0 : !topic_filter_valid(filter->text, filter->size)) {
        filter->code = v5 ? MQTT_TOPIC_FILTER_INVALID : MQTT_UNSPECIFIED_ERROR;
        return;
    }
    reason = admission_subscription(broker, session, filter->text, filter->size, filter->inner);
    if (reason != MQTT_SUCCESS) {
        filter->code = v5 ? (uint8_t)reason : MQTT_UNSPECIFIED_ERROR;
        return;
    }
    result = session_subscribe(broker, now_ms, session, filter->text, filter->size, &filter->subscription);
    if (result == SUBS_NO_MEMORY) {
        filter->code = v5 ? MQTT_QUOTA_EXCEEDED : MQTT_UNSPECIFIED_ERROR;
        return;
    }
    filter->code = filter->subscription.qos;
    filter->send_retained = !shared && (filter->subscription.retain_handling == 0 ||
                                        (filter->subscription.retain_handling == 1 && result == SUBS_OK));
}

/* The barrier of what was granted; 0 if there is nothing to wait for. */
static uint64_t barrier_of(struct broker *broker, uint64_t now_ms, const struct held *held) {
    const char **texts = malloc(held->filter_count * sizeof(const char *));
    size_t *sizes = malloc(held->filter_count * sizeof *sizes);
    size_t count = 0;
    uint64_t barrier = 0;

    for (uint32_t i = 0; texts != NULL && sizes != NULL && i < held->filter_count; i++) {
        if (held->filters[i].code >= 0x80) continue;
        texts[count] = held->filters[i].text;
        sizes[count++] = held->filters[i].size;
    }
    if (count > 0) barrier = federation_barrier(broker->federation, now_ms, texts, sizes, count);
    free(texts);
    free(sizes);
    return barrier;
}

/* Those that wait for others are bounded by pause_check(); but who does not read the retained messages that it asks for
 * has no end of them. False if the client was ended. */
static bool check_held(struct broker *broker, uint64_t now_ms, struct client *client) {
    uint32_t shows = client->held_count - client->waiting_count;

    if (client->held_bytes > held_bytes_max(broker))
        client_limit(broker, now_ms, client,
                     broker->memory_short ? BROKER_AT_MEMORY_BYTES_MAX : BROKER_AT_PACKET_SIZE_MAX, MQTT_QUOTA_EXCEEDED,
                     "more filters at once than there is room for");
    else if (shows >= broker->limits.subscriptions_per_client)
        client_limit(broker, now_ms, client, BROKER_AT_SUBSCRIPTIONS, MQTT_QUOTA_EXCEEDED,
                     "more retained messages are asked for than are read");
    return client->state != CLIENT_ENDED;
}

void on_subscribe(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                  struct mqtt_view body) {
    struct mqtt_subscribe subscribe;
    struct held *held;
    size_t text_size = 0;
    uint64_t before = broker->journal.last;
    enum mqtt_reason reason = mqtt_decode_subscribe(client->version, frame, body, &subscribe);

    if (reason == MQTT_SUCCESS) reason = check(subscribe, &text_size);
    if (reason != MQTT_SUCCESS) {
        client_fault(broker, now_ms, client, reason);
        return;
    }
    if (!check_held(broker, now_ms, client)) return;
    held = held_new(client, &subscribe, text_size);
    if (held == NULL) {
        client_end(broker, now_ms, client, MQTT_QUOTA_EXCEEDED, WILL_DUE);
        return;
    }
    for (uint32_t i = 0; i < held->filter_count; i++)
        subscribe_one(broker, now_ms, client->session, &held->filters[i], client->version >= MQTT_50);
    held->record = journal_since(&broker->journal, before);
    held->barrier = barrier_of(broker, now_ms, held);
    held_begin(broker, held);
}
