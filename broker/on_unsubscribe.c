#include "broker/client.h"

#include "broker/acks.h"
#include "broker/engine.h"

#include <stdlib.h>

void on_unsubscribe(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                    struct mqtt_view body) {
    struct mqtt_subscribe unsubscribe;
    struct mqtt_view filter;
    enum mqtt_reason reason = mqtt_decode_subscribe(client->version, frame, body, &unsubscribe);
    uint8_t *packet, *codes, options;
    size_t size, count = 0;
    uint64_t before = broker->journal.last;

    if (reason != MQTT_SUCCESS) {
        client_fault(broker, now_ms, client, reason);
        return;
    }
    size = mqtt_suback_size(client->version, MQTT_UNSUBACK, unsubscribe.filter_count, NULL);
    packet = size <= client->packet_size_max ? malloc(size + unsubscribe.filter_count) : NULL;
    if (packet == NULL) {
        client_end(broker, now_ms, client, MQTT_QUOTA_EXCEEDED, WILL_DUE);
        return;
    }
    codes = packet + size;
    while (mqtt_next_filter(MQTT_UNSUBSCRIBE, &unsubscribe, &filter, &options)) {
        enum subs_result result =
            session_unsubscribe(broker, now_ms, client->session, (const char *)filter.bytes, filter.size);
        codes[count++] = result == SUBS_OK ? MQTT_SUCCESS : MQTT_NO_SUBSCRIPTION_EXISTED;
    }
    mqtt_encode_suback(packet, client->version, MQTT_UNSUBACK, unsubscribe.packet_id, codes, count, NULL);
    acks_send(broker, client, ACK_FREE, packet, size, journal_since(&broker->journal, before));
    free(packet);
}
