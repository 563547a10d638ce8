/* Inside broker/: what the broker tells of itself under $SYS/broker, with Mosquitto's topics, units and formats
 * (mosquitto(8), BROKER STATUS), so that dashboards made for it can be read.
 *
 * Retained, at QoS 0, every limits.sys_interval_s those that have changed. They lie in a store of their own: no limit
 * counts them, no journal has them, no other broker sees them, and the packets that carry them are not among those that
 * they count. What link_news.h tells under $SYS/federation lies there too.
 */
#ifndef BROKER_SYS_H
#define BROKER_SYS_H

#include "broker/retained.h"

struct broker;
struct broker_options;

enum { SYS_LOADS = 9, SYS_WINDOWS = 3, SYS_VALUES = 27 };

/* A moving average of what happens in a minute, over 1, 5 and 15 minutes (as of a Unix load). */
struct sys_load {
    uint64_t total; /* of what is counted, at the last round */
    double average[SYS_WINDOWS];
};

struct sys {
    struct retained *retained; /* what is under $SYS, also what bridges tell */
    char version[80];
    uint64_t started_ms, round_ms;
    uint64_t next_ms; /* UINT64_MAX: never */
    struct sys_load loads[SYS_LOADS];
    /* What was published last, UINT64_MAX if nothing was: values, and averages in hundredths. */
    uint64_t values_told[SYS_VALUES];
    uint64_t loads_told[SYS_LOADS][SYS_WINDOWS];
    uint64_t memory_max; /* the most that memory_used has been */
};

/* -1 when memory is short; sys_deinit() is fine then too. */
int sys_init(struct sys *sys, const struct broker_options *options, uint64_t now_ms);
void sys_deinit(struct sys *sys);
/* Publishes what has changed, if it is time. */
void sys_tick(struct broker *broker, uint64_t now_ms);
/* The store that holds the messages of this topic, or of those that match this filter: no wildcard matches $SYS
 * (MQTT-4.7.2-1), so they are all in one of the two. */
struct retained *sys_retained_for(const struct broker *broker, const char *topic, size_t size);

#endif
