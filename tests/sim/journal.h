/* What the clients of a world did and got: the evidence that checks.h judges. Times are virtual microseconds. */
#ifndef SIM_JOURNAL_H
#define SIM_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_NEVER UINT64_MAX

/* The payload of a publication is its number, a space, and dots up to its size. */
struct journal_publication {
    size_t client, broker_host;
    char *topic;
    uint8_t qos;
    bool retain;
    size_t size;       /* of the payload */
    uint64_t sent_us;  /* first written to the connection */
    uint64_t acked_us; /* PUBACK or PUBCOMP */
    bool forgotten;    /* the broker had lost the session, so the client gave it up */
};

struct journal_subscription {
    size_t client, broker_host;
    char *filter;
    uint8_t qos;
    uint64_t asked_us, granted_us, ended_us;
};

struct journal_receipt {
    size_t client;
    uint64_t publication;
    uint64_t at_us;
    uint64_t session; /* of the client, counted from 1: a new one is one that the broker did not know */
    uint8_t qos;
    bool retain, dup;
};

struct journal {
    struct journal_publication *publications; /* the number is the index */
    size_t publication_count, publication_room;
    struct journal_subscription *subscriptions;
    size_t subscription_count, subscription_room;
    struct journal_receipt *receipts;
    size_t receipt_count, receipt_room;
    uint64_t damaged; /* messages whose payload is not what was sent */
};

void journal_init(struct journal *journal);
void journal_deinit(struct journal *journal);

/* Both copy the text and return the index. */
size_t journal_add_publication(struct journal *journal, const struct journal_publication *publication);
size_t journal_add_subscription(struct journal *journal, const struct journal_subscription *subscription);

/* The payload of a publication, allocated; freed by the caller. */
uint8_t *journal_payload_new(const struct journal *journal, size_t publication);
/* A message that arrived: found by its payload, compared with what was sent. Returns false (and counts) if it is
 * damaged. */
bool journal_receive(struct journal *journal, const char *topic, size_t topic_size, const uint8_t *payload, size_t size,
                     const struct journal_receipt *receipt, uint64_t *publication);

/* How often this client got it; retained copies (sent because of a subscription) are counted only if asked for. */
size_t journal_copies(const struct journal *journal, size_t client, uint64_t publication, bool retained);

#endif
