/* What the weather from one broker to another does to a packet. No clock and no socket: time is given in microseconds,
 * chance is seeded, so that a test knows what to expect. Each direction of a pair has a sky of its own. */
#ifndef WEATHER_SKY_H
#define WEATHER_SKY_H

#include "tests/sim/dice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SKY_COPIES_MAX 2u

/* All zero is a perfect cable. */
struct sky_weather {
    uint32_t delay_us, jitter_us; /* one way; jitter is added evenly from 0 to this and lets nobody overtake */
    uint32_t loss_ppm;
    uint32_t burst;         /* mean length of a row of losses, in packets; up to 1: each loss by itself */
    uint32_t duplicate_ppm; /* a second copy 1 ms after the first */
    uint32_t reorder_ppm;   /* comes 20 ms late, and others overtake it */
    uint32_t corrupt_ppm;   /* one bit is turned over */
    uint32_t rate_bytes_s;  /* 0: no bound */
    uint32_t queue_us;      /* how long the rate may hold a packet back before it is dropped; 0: 200 ms */
    uint32_t mtu;           /* 0: no bound; larger packets are answered with ICMP "fragmentation needed" */
    bool hole;              /* larger packets than mtu vanish without an answer */
    bool cut, no_udp, no_tcp;
};

struct sky_counts {
    uint64_t sent, bytes, udp, udp_bytes; /* what came from the sender */
    uint64_t passed, lost, cut, blocked, queue_dropped, too_big, duplicated, reordered, corrupted;
};

struct sky {
    struct sky_weather weather;
    struct dice dice;
    bool in_burst;
    uint64_t busy_until_us, last_due_us;
    struct sky_counts counts;
};

/* What becomes of a packet. */
struct sky_fate {
    uint32_t copies; /* 0: it never arrives */
    uint64_t due_us[SKY_COPIES_MAX];
    bool too_big; /* the sender is to be told */
    bool corrupt; /* turn this bit over: */
    uint64_t bit; /* modulo the bits that the caller allows */
};

/* The same seed and name give the same weather. */
void sky_init(struct sky *sky, uint64_t seed, const char *name);
/* protocol is that of the IP header: 6 TCP, 17 UDP. */
struct sky_fate sky_pass(struct sky *sky, uint64_t now_us, uint8_t protocol, size_t size);
/* Sets what a word says, "loss=20" or "cut=on"; false with the reason if it says nothing we know. Shares are in
 * percent, times in milliseconds, the rate in kilobytes (1,000) a second. */
bool sky_set(struct sky_weather *weather, const char *word, const char **error);

#endif
