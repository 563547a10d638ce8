/* Inside broker/: a SUBACK that waits for other brokers and for the store, and then the retained messages that follow
 * it. */
#ifndef BROKER_HELD_H
#define BROKER_HELD_H

#include "broker/retained.h"
#include "broker/subs.h"

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

struct broker;
struct client;
struct unconfirmed;

struct held_filter {
    const char *text; /* inside the same allocation */
    uint32_t size;
    uint32_t inner; /* where the filter begins in a shared one that is well-formed; else 0 */
    struct subscription subscription;
    uint8_t code;
    bool send_retained;
};

enum held_state { HELD_NEW, HELD_BY_BARRIER, HELD_BY_STORE, HELD_BETWEEN };

struct held {
    struct subscriber subscriber; /* first: in broker.held_tree, once it is marked */
    UT_hash_handle hh;            /* of broker.held, by barrier */
    uint64_t barrier;             /* 0 if none */
    uint64_t record;              /* of its last subscription, which the SUBACK waits for too; 0 if none */
    struct client *client;
    struct held *prev, *next;               /* of broker.held_by_store, then of client.shows */
    struct held *client_prev, *client_next; /* of client.waiting */
    struct held *mark_prev, *mark_next;     /* of broker.held_unmarked */
    enum held_state state;
    bool marked;
    bool timed_out;                  /* the barrier */
    struct unconfirmed *unconfirmed; /* by whom; NULL if it was not, or is not known */
    bool walking;                    /* within the filter that comes after those shown */
    uint16_t packet_id;
    uint32_t bytes; /* of this allocation, counted in the client until held_free() */
    uint32_t filter_count;
    uint32_t shown; /* filters whose retained messages are all sent */
    uint8_t *codes; /* inside the same allocation, filled when it is sent */
    struct retained_walk walk;
    struct held_filter filters[];
};

/* Waits for its barrier, or goes on if that is 0; then for its record; then the SUBACK is sent, and after it what is
 * retained. Takes it over. */
void held_begin(struct broker *broker, struct held *held);
void held_free(struct held *held);
/* What they may take of memory, for one client: as much as one packet could bring. */
uint32_t held_bytes_max(const struct broker *broker);
/* Goes on with those whose barrier is over; false if there was none. */
bool held_release(struct broker *broker);
/* The same for those whose records are durable, or all when the store fails. */
void held_durable(struct broker *broker);
void held_forget_client(struct broker *broker, struct client *client);
void held_free_all(struct broker *broker);

/* ---- held_covers.c ---- */

/* Marks the clients with a SUBACK that waits for a filter that matches the topic. */
void held_mark(struct broker *broker, const char *topic, size_t size);
/* The latest held_mark() marked the client. */
bool held_covers(const struct broker *broker, const struct client *client);
/* It waits, so it may cover something; and no more. */
void held_cover(struct broker *broker, struct held *held);
void held_uncover(struct broker *broker, struct held *held);

#endif
