/* Our own slowness, which must not be taken for another's death (Lifeguard section III: slow processing of messages is
 * what makes SWIM accuse the healthy). While we did not listen, answers waited in the socket. */
#include "gossip/verbs.h"

#define LAG_COUNTS_MS 20u /* less is the usual jitter of a loop */

static void lagged(struct gossip *gossip, uint64_t lag_ms) {
    if (lag_ms < LAG_COUNTS_MS) return;
    if (lag_ms >= gossip->limits.probe_timeout_ms) probe_look_well(gossip, false);
    /* The answers are read after this, before it has passed once more. */
    probe_delay(gossip, lag_ms + LAG_COUNTS_MS);
}

/* What went unanswered says nothing about others; what they think of us is to be heard as soon as can be. */
static void paused(struct gossip *gossip) {
    evidence_restart_suspicions(gossip);
    probe_forget(gossip);
    if (gossip->carrier.datagram_ms != NEVER) gossip->carrier.datagram_ms = gossip->now_ms;
    rejoin_hurry(gossip);
    probe_all(gossip);
}

static void note(struct gossip *gossip, uint64_t lag_ms) {
    if (lag_ms > 2 * (uint64_t)gossip->limits.probe_interval_ms)
        paused(gossip);
    else
        lagged(gossip, lag_ms);
}

void lag_note_tick(struct gossip *gossip, uint64_t deadline_ms) {
    if (gossip->now_ms > deadline_ms) note(gossip, gossip->now_ms - deadline_ms);
}

void gossip_note_lag(struct gossip *gossip, uint64_t now_ms, uint64_t lag_ms) {
    if (now_ms > gossip->now_ms) gossip->now_ms = now_ms;
    note(gossip, lag_ms);
}
