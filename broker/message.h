/* A publication. Counted, it is on the heap, immutable once made and shared by every queue that holds it. Borrowed
 * (references is 0), it is in its maker's memory with its views in somebody else's bytes, for the call under way: who
 * holds it gets its one counted copy, made when the first asks. So what nobody holds is never copied as a whole.
 */
#ifndef BROKER_MESSAGE_H
#define BROKER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hybrid logical clock stamp (Kulkarni et al. 2014): orders concurrent writes of a retained message the same
 * way everywhere; equal time and count are decided by the origin. */
struct stamp {
    uint64_t wall_ms;
    uint32_t count;
    uint8_t origin[16]; /* id of the broker that accepted the publication */
};
/* <0, 0, >0 like memcmp. */
int stamp_compare(const struct stamp *a, const struct stamp *b);

struct message {
    uint32_t references;
    uint8_t qos; /* as published */
    bool retain; /* as published */
    uint32_t topic_size, payload_size, properties_size;
    struct message *copy; /* of a borrowed one: its counted copy, NULL until somebody holds it */
    const char *topic;    /* no final zero; of a counted one, like all views, inside its allocation */
    /* Of a counted one the payload begins where the properties end. */
    const uint8_t *payload;
    const uint8_t *properties; /* MQTT 5.0 PUBLISH properties as encoded by the publisher, without length prefix, topic
                                  alias, subscription identifier and message expiry interval */
    uint64_t expires_at_ms;    /* monotonic; UINT64_MAX if it never does (MQTT 5.0 section 3.3.2.3.3) */
    uint64_t publisher;        /* number of the local session that published, 0 if it came from a peer (no local) */
    struct stamp stamp;        /* set for retained messages, zero otherwise */
    uint64_t number;           /* in the journal, while durable queues hold it; else 0 */
    uint32_t durable_count;    /* queue entries of durable sessions, and outbox entries in the journal, that hold it */
    uint32_t holder_count;     /* queue entries of all sessions that hold it */
};

/* Counted: the template's views are copied; references becomes 1. NULL when memory is short. */
struct message *message_new(const struct message *template);
/* The message with one more reference; of a borrowed one its copy, NULL when memory is short. */
struct message *message_ref(struct message *message);
void message_unref(struct message *message); /* NULL is fine */
/* Makes the copy of a borrowed message now, so that later references cannot fail; false when memory is short. */
bool message_keep(struct message *message);
/* The borrowed message ends, and whoever holds its copy goes on. Until then it must not change once it was held. */
void message_return(struct message *message);
/* Bytes it costs in a queue: the size of its allocation. */
size_t message_cost(const struct message *message);
/* In place of a message expiry interval, which may be any number of 32 bits. */
#define MESSAGE_NO_EXPIRY UINT64_MAX
/* Seconds of the message expiry interval that are left at now_ms, rounded up; 0 if it is over. */
uint64_t message_expiry_left_s(const struct message *message, uint64_t now_ms);
/* When a message of this interval that begins at now_ms expires: its expires_at_ms. */
uint64_t message_expires_at_ms(uint64_t now_ms, uint64_t expiry_s);

#endif
