#include "broker/client.h"

#include "broker/acks.h"
#include "broker/engine.h"
#include "broker/topic.h"

#include <stdlib.h>

/* Before anything of the packet is done. */
static enum mqtt_reason check(struct mqtt_subscribe walk) {
    struct mqtt_view filter;
    uint8_t options;

    while (mqtt_next_filter(MQTT_UNSUBSCRIBE, &walk, &filter, &options))
        if (!mqtt_check_filter(filter)) return MQTT_MALFORMED;
    return MQTT_SUCCESS;
}

static uint8_t unsubscribe_one(struct broker *broker, uint64_t now_ms, struct session *session,
                               struct mqtt_view filter) {
    const char *text = (const char *)filter.bytes;

    if (session_unsubscribe(broker, now_ms, session, text, filter.size) == SUBS_OK) return MQTT_SUCCESS;
    if (topic_is_shared(text, filter.size) ? topic_share_split(text, filter.size) == 0
                                           : !topic_filter_valid(text, filter.size))
        return MQTT_TOPIC_FILTER_INVALID; /* as in SUBACK */
    return MQTT_NO_SUBSCRIPTION_EXISTED;
}

void on_unsubscribe(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                    struct mqtt_view body) {
    struct mqtt_subscribe unsubscribe;
    struct mqtt_view filter;
    enum mqtt_reason reason = mqtt_decode_subscribe(client->version, frame, body, &unsubscribe);
    struct mqtt_suback unsuback = {.version = client->version, .type = MQTT_UNSUBACK};
    uint8_t *packet, *codes, options;
    size_t size, count = 0;
    uint64_t before = broker->journal.last;

    if (reason == MQTT_SUCCESS) reason = check(unsubscribe);
    if (reason != MQTT_SUCCESS) {
        client_fault(broker, now_ms, client, reason);
        return;
    }
    unsuback.packet_id = unsubscribe.packet_id;
    unsuback.code_count = unsubscribe.filter_count;
    size = mqtt_suback_size(&unsuback);
    packet = size <= client->packet_size_max ? malloc(size + unsubscribe.filter_count) : NULL;
    if (packet == NULL) {
        client_end(broker, now_ms, client, MQTT_QUOTA_EXCEEDED, WILL_DUE);
        return;
    }
    unsuback.codes = codes = packet + size;
    while (mqtt_next_filter(MQTT_UNSUBSCRIBE, &unsubscribe, &filter, &options))
        codes[count++] = unsubscribe_one(broker, now_ms, client->session, filter);
    mqtt_encode_suback(packet, &unsuback);
    acks_send(broker, client, ACK_FREE, packet, size, journal_since(&broker->journal, before));
    free(packet);
}
