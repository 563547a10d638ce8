/* The counters in Prometheus' text format 0.0.4. Pure: numbers in, text out. */
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "broker/broker.h"
#include "broker/peering.h"
#include "daemon/clients.h"
#include "daemon/memory.h"
#include "daemon/store.h"
#include "daemon/text.h"
#include "daemon/trouble.h"
#include "daemon/turns.h"
#include "daemon/web.h"
#include "gossip/gossip.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics {
    const char *version, *name; /* of this broker */
    uint64_t uptime_ms;
    int64_t certificate_ends_s; /* seconds since 1970; 0 without tls.cert */
    int64_t token_ends_s;       /* the same; 0 for a broker alone */
    bool ready;
    uint64_t log_suppressed;
    struct memory_state memory;
    struct turns_counters turns;
    struct broker_counters broker;
    struct peering_counters peering;
    struct web_counters web;
    struct clients_counters clients;
    const struct store_state *store;      /* NULL in memory: its metrics are left out */
    const struct gossip_counters *gossip; /* NULL for a broker alone: its metrics are left out */
    const struct link_info *links;        /* one per peer; the label is the name, or the id while it has none */
    size_t link_count;
    const struct troubled *troubled; /* members with a trouble */
    size_t troubled_count;
};

/* Appends all of it. Check out->failed. */
void metrics_write(const struct metrics *metrics, struct text *out);

#endif
