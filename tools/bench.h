/* hobnob bench: what is asked for and what was found. */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench_histogram.h"
#include "bench_process.h"

struct bench_plan {
    const char *host, *port;
    const char *subscriber_host, *subscriber_port; /* of the subscribers' broker; NULL: the same */
    const char *user, *password;                   /* NULL: none */
    uint8_t version, qos;
    uint32_t topics, publishers, subscribers; /* the latter two of each topic */
    const char *prefix;                       /* of the topics and client ids */
    size_t payload_size;
    double rate;       /* publications a second of all publishers together; 0: as many as will go */
    double seconds;    /* measured */
    double warmup_s;   /* before that */
    uint64_t messages; /* publications in all; 0: until the time is over */
    uint32_t window;   /* publications not yet at their subscribers, of all publishers of a topic together */
    uint32_t inflight; /* QoS 1 and 2: publications not yet acknowledged, of each publisher */
    bool durable;      /* subscribers' sessions outlive their connection */
    pid_t broker_pid;  /* 0: unknown */
};

struct bench_result {
    double seconds;
    uint64_t published, delivered; /* while it was measured */
    /* Of the whole run, warm-up and what came after the end included. */
    uint64_t expected, arrived, lost;
    uint64_t disordered;            /* came again or late: behind a later one of the same publisher */
    uint64_t refused;               /* publications acknowledged with an error (5.0) */
    struct bench_histogram latency; /* from before the write to after the read, in 100 ns, while it was measured */
    bool has_broker;
    struct bench_process broker; /* cpu_s: while it was measured */
    double own_cpu_s;
};

/* Runs the plan. False after a complaint: a connection was refused or lost. */
bool bench_run(const struct bench_plan *plan, struct bench_result *result);

void bench_print(const struct bench_plan *plan, const struct bench_result *result);
/* False when memory is short. */
bool bench_print_json(const struct bench_plan *plan, const struct bench_result *result);

#endif
