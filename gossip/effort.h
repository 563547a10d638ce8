/* What a broker may spend on finding out who is alive, in datagrams of its own accord, so that no weather can make a
 * storm of it: beyond the regular probes it asks again, asks helpers, asks suspects and accuses within this measure,
 * and what it cannot ask now it asks later. What is not used is kept for the moment when somebody dies. */
#ifndef GOSSIP_EFFORT_H
#define GOSSIP_EFFORT_H

#include <stdbool.h>
#include <stdint.h>

#define EFFORT_PER_INTERVAL 8u /* datagrams in a probe interval; 2 are the regular probes */
#define EFFORT_INTERVALS 32u   /* so many intervals' worth can be saved */

struct effort {
    uint64_t full_at; /* in parts of a millisecond, so many as datagrams in an interval; earlier than now: full */
};

/* False: not now. Each datagram takes its part of an interval, which comes back by itself. */
static inline bool effort_take(struct effort *effort, uint64_t now_ms, uint32_t interval_ms, uint32_t datagrams) {
    uint64_t now = now_ms * EFFORT_PER_INTERVAL, most = (uint64_t)EFFORT_INTERVALS * interval_ms * EFFORT_PER_INTERVAL;
    uint64_t full_at = (effort->full_at > now ? effort->full_at : now) + (uint64_t)datagrams * interval_ms;
    if (full_at > now + most) return false;
    effort->full_at = full_at;
    return true;
}

#endif
