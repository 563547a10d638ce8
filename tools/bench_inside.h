/* Inside hobnob bench: its clients. */
#ifndef TOOLS_BENCH_INSIDE_H
#define TOOLS_BENCH_INSIDE_H

#include "bench.h"
#include "bench_wire.h"

#define BENCH_READ_SIZE (256u << 10) /* bytes taken from a socket at once */
#define BENCH_OUTPUT_MAX (64u << 10) /* bytes given for a publisher's socket and not yet written, about */
#define BENCH_GREETING_MAX 1024u     /* bytes of CONNECT or SUBSCRIBE */
#define BENCH_SESSION_EXPIRY_S 3600u

enum bench_state { BENCH_DIALLING, BENCH_GREETING, BENCH_SUBSCRIBING, BENCH_READY, BENCH_CLOSED };

struct bench_topic {
    char name[128];
    struct bench_template template;
    struct bench_client *publishers; /* plan->publishers of them */
};

struct bench_bytes {
    uint8_t *bytes; /* malloc */
    size_t size, capacity;
};

struct bench_client {
    int fd;
    enum bench_state state;
    bool is_publisher;
    bool has_work;   /* is in the list of those to be flushed */
    bool is_blocked; /* the socket takes no more */
    struct bench_topic *topic;
    uint16_t number;           /* among the topic's publishers */
    struct bench_bytes output; /* not yet written */
    struct bench_bytes rest;   /* read: the beginning of a packet */
    /* Of a publisher. */
    uint64_t published, delivered; /* the latter at all subscribers together */
    uint64_t written_off;          /* deliveries no longer waited for */
    uint32_t inflight, inflight_max;
    uint16_t packet_id;
    /* Of a subscriber: the number that comes next, by publisher; and if any came of it. */
    uint16_t *expected;
    uint64_t arrived;
};

struct bench {
    const struct bench_plan *plan;
    struct bench_result *result;
    int epoll;
    struct bench_topic *topics;
    struct bench_client *clients; /* publishers first, topic by topic; then subscribers */
    uint32_t client_count, publisher_count, ready_count;
    struct bench_client **working; /* to be flushed at the end of the turn */
    uint32_t working_count;
    uint8_t *input;      /* what one read takes, and a rest before it */
    size_t rest_max;     /* room for the latter */
    uint32_t time_100ns; /* of this turn's latest read or write */
    bool is_measuring, is_failed;
};

/* Both complain and set is_failed when it ends badly. */
void bench_client_dial(struct bench *bench, struct bench_client *client);
void bench_client_event(struct bench *bench, struct bench_client *client, uint32_t events);
/* Writes what is there. */
void bench_client_flush(struct bench *bench, struct bench_client *client);
/* Appends count publications; they are written with the next flush. */
void bench_client_publish(struct bench *bench, struct bench_client *client, uint32_t count);
/* Says goodbye, ending the session, and closes. */
void bench_client_leave(struct bench *bench, struct bench_client *client);
void bench_client_deinit(struct bench_client *client);

uint64_t bench_now_ns(void);

#endif
