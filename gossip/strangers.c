/* RFC 9000 section 8.1 by another name: an address that has not proved that it hears us gets at most three times what
 * it sent. What is kept of an address is its cookie: a hash that nobody else can make, so nobody chooses its place. */
#include "gossip/verbs.h"

#include <string.h>

#define AMPLIFICATION 3u
#define REPLAY_KEEP_MS 60000u /* who starts anew at such an address proves nothing there for so long */
#define DIAL_MS 1000u         /* once in that time, */
#define DIALS 32u             /* of which so many may come at once */
#define GREET_MS 5000u        /* so seldom is one answered in full */
#define WAYS 4u               /* places among which the oldest gives way */

static struct stranger *stranger_of(struct gossip *gossip, const uint8_t cookie[8]) {
    struct stranger *set = &gossip->strangers[cookie[0] % (STRANGERS_MAX / WAYS) * WAYS], *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].used && memcmp(set[i].cookie, cookie, sizeof set[i].cookie) == 0) return &set[i];
        if (!set[i].used || (oldest->used && set[i].last_ms < oldest->last_ms)) oldest = &set[i];
    }
    *oldest = (struct stranger){.used = true, .last_ms = gossip->now_ms};
    memcpy(oldest->cookie, cookie, sizeof oldest->cookie);
    return oldest;
}

void strangers_credit(struct gossip *gossip, const uint8_t cookie[8], size_t size) {
    struct stranger *stranger = stranger_of(gossip, cookie);
    stranger->received += size;
    stranger->last_ms = gossip->now_ms;
}

bool strangers_spend(struct gossip *gossip, const uint8_t cookie[8], size_t size) {
    struct stranger *stranger = stranger_of(gossip, cookie);
    if (stranger->sent + size > AMPLIFICATION * stranger->received) return false;
    stranger->sent += size;
    return true;
}

bool strangers_dial(struct gossip *gossip, const uint8_t cookie[8], bool spend) {
    struct stranger *stranger = stranger_of(gossip, cookie);
    uint64_t paid_ms = stranger->dials_ms > gossip->now_ms ? stranger->dials_ms : gossip->now_ms;
    if (paid_ms > gossip->now_ms + (DIALS - 1) * DIAL_MS) return false;
    if (spend) {
        stranger->dials_ms = paid_ms + DIAL_MS;
        stranger->last_ms = gossip->now_ms;
    }
    return true;
}

bool strangers_greet(struct gossip *gossip, const uint8_t cookie[8]) {
    struct stranger *stranger = stranger_of(gossip, cookie);
    if (gossip->now_ms < stranger->greet_ms) return false;
    stranger->greet_ms = gossip->now_ms + GREET_MS;
    stranger->last_ms = gossip->now_ms;
    return true;
}

bool strangers_take(struct gossip *gossip, const uint8_t cookie[8], const struct replay_place *place) {
    struct stranger *stranger = stranger_of(gossip, cookie);
    uint32_t number = place->counter + 1, *slot = stranger->newest;
    if (stranger->prefix == 0 || gossip->now_ms >= stranger->proven_ms + REPLAY_KEEP_MS) {
        stranger->prefix = place->prefix;
        memset(stranger->newest, 0, sizeof stranger->newest);
    }
    for (size_t i = 0; i < STRANGER_PACKETS; i++) {
        if (stranger->newest[i] == number) return false;
        if (stranger->newest[i] < *slot) slot = &stranger->newest[i];
    }
    if (place->prefix != stranger->prefix || number < *slot) return false;
    *slot = number;
    stranger->last_ms = stranger->proven_ms = gossip->now_ms;
    return true;
}
