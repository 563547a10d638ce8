/* Inside broker/: what a publication of a client must pass before it is routed, and how the client is told when it does
 * not.
 */
#ifndef BROKER_ADMISSION_H
#define BROKER_ADMISSION_H

#include "broker/client.h"

enum admission {
    ADMISSION_GRANTED = 0,
    /* Not routed. MQTT 5.0 at QoS 1 and 2: the acknowledgement bears the reason. Otherwise it looks as if it had been
     * taken: 3.1.1 has no other word, and a client that is closed for it would come back with it for ever. */
    ADMISSION_DROPPED,
    /* Not routed. MQTT 5.0 at QoS 1 and 2: as above. Otherwise the connection is closed, so that it is not lost in
     * silence. */
    ADMISSION_REFUSED,
    /* The connection is closed. */
    ADMISSION_CLOSED,
};

struct verdict {
    enum admission admission;
    uint8_t reason;  /* MQTT 5.0, 0 when granted */
    const char *why; /* Reason String; NULL: mqtt_reason_text() */
};

/* One more publication has come: false if that is more than limits.publish_rate_max allows. A bucket of one second's
 * worth, kept as the time at which it will be full (ITU-T I.371, GCRA); it outlives
 * the connection (rates.h). */
bool admission_rate(struct broker *broker, uint64_t now_ms, struct client *client);
/* The publication is decoded, its alias resolved, and it is no repetition. Counts what is not granted. topic_known: one
 * to that topic was granted before. */
struct verdict admission_check(struct broker *broker, const struct client *client, const struct mqtt_publish *publish,
                               bool topic_known);
/* Whether topic and size are within the limits, for names and filters alike: 0, or the reason code, counted and noted.
 */
enum mqtt_reason admission_topic(struct broker *broker, const struct client *client, const char *topic, size_t size,
                                 enum mqtt_reason reason);
/* Whether the session may hold this filter, which is valid: 0, 0x8F or 0x97; counted and noted. inner: where the filter
 * of a shared subscription begins, else 0. */
enum mqtt_reason admission_subscription(struct broker *broker, const struct session *session, const char *filter,
                                        size_t size, size_t inner);
/* True if clients may not publish there: $SYS, apart from what bridges of Mosquitto tell of themselves, and $share. */
bool admission_topic_denied(const char *topic, size_t size);
/* Tells the client, or closes the connection. */
void admission_answer(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_publish *publish,
                      const struct verdict *verdict);

#endif
