/* What one member may make us do in a second, so that who asks without end costs himself. What is more is passed over:
 * an honest one asks again. */
#ifndef GOSSIP_ALLOWANCE_H
#define GOSSIP_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

enum allowance {
    ALLOW_CHECKS,  /* signatures to be checked: 1,000; of all strangers together 500 */
    ALLOW_HEARSAY, /* members that we have never heard of: 500 */
    ALLOW_LISTS,   /* of versions to be compared with ours: 500 */
    ALLOW_PINGS,   /* answered: 250; of all strangers together 1,000 */
    ALLOW_BROUGHT, /* pings for others that it brings, answered: 200; of all strangers together 1,000 */
    ALLOW_HELP,    /* pings that we make for it: 30 */
    ALLOW_REFUSED, /* tokens brought that are refused: 20, then none is judged. Strangers: identity.c */
    ALLOW_ANSWERS, /* bytes of datagrams in answer to its own: 256 KiB. Over links the link holds it back */
    ALLOW_BYTES    /* bytes of its own datagrams: twice what an honest one sends to all. Beyond that it is told of */
};
#define ALLOWANCES 9u

struct allowances {
    uint64_t until_ms;
    uint32_t left[ALLOWANCES];
};

/* False if nothing is left; else takes so much of it, or what is left. */
static inline bool allowances_take(struct allowances *allowances, enum allowance which, uint32_t amount,
                                   const uint32_t per_s[ALLOWANCES], uint64_t now_ms) {
    if (now_ms >= allowances->until_ms) {
        allowances->until_ms = now_ms + 1000;
        for (unsigned i = 0; i < ALLOWANCES; i++)
            allowances->left[i] = per_s[i];
    }
    if (allowances->left[which] == 0) return false;
    allowances->left[which] -= amount < allowances->left[which] ? amount : allowances->left[which];
    return true;
}

#endif
