/* What is counted while a federation runs. */
#ifndef SIMULATE_MEASURE_H
#define SIMULATE_MEASURE_H

#include "gossip/gossip.h"
#include "tools/simulate/cost.h"
#include "tools/simulate/tally.h"

struct world;
struct broker;
struct measure;

/* Times in microseconds. */
struct result {
    struct tally know;                    /* from a change of a row until a broker had it, each broker and change */
    struct tally know_last;               /* the last broker of each change */
    uint64_t changes, changes_incomplete; /* of those, some broker that was there all the time did not get it */
    struct tally detect;                  /* from a crash until a broker called it down */
    struct tally detect_last;             /* the last broker of each crash */
    uint64_t crashes;
    uint64_t false_deaths;        /* a healthy broker was called down by a healthy one that reached it, */
    uint64_t false_death_brokers; /* counting each broker once a minute */
    uint64_t slow_deaths;         /* the same for brokers that were slow or paused */
    uint64_t suspicions, refutations;
    double broker_hours;                         /* of healthy brokers */
    uint64_t formed_us;                          /* from the start until all agreed; UINT64_MAX: never */
    double idle_bytes_per_s, steady_bytes_per_s; /* sent by one broker */
    double idle_datagrams_per_s;
    struct tally join, join_bytes; /* a broker that starts later: until it agrees, and what it received meanwhile */
    struct tally heal;             /* from the end of a cut until all agree */
    struct tally rings;            /* from when a key ring is given to a broker until all that run use it */
    uint64_t settled_us;           /* from the end of the faults until all agreed with the truth */
    uint64_t simulated_us, events, datagrams, bytes;
    uint64_t faults;
    double bytes_per_member; /* of memory; 0: not measured */
    struct cost cost;
    uint64_t trace_hash;
};

struct measure *measure_new(const struct world *world);
void measure_free(struct measure *measure);
struct result *measure_result(struct measure *measure);

void measure_start(struct world *world, struct broker *broker);
void measure_stop(struct world *world, struct broker *broker); /* without last words */
void measure_change(struct world *world, struct broker *owner, uint64_t row_hash, bool active);
void measure_event(struct world *world, struct broker *viewer, const struct gossip_event *event);
void measure_healed(struct world *world);  /* a cut has ended */
void measure_trouble(struct world *world); /* a fault begins */
void measure_ring_given(struct world *world, uint32_t ring);
void measure_load_begins(struct world *world);
void measure_poll(struct world *world, bool agrees);
void measure_end(struct world *world); /* the run is over, and so are all brokers */

#endif
