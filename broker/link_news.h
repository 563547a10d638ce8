/* What $SYS tells of links: that one came up or ended, and which counts of the ledger have risen. Told at the next tick
 * after it happened, counts of one peer at most once in LINK_NEWS_MS. Topics and payloads: LIMITS.md. */
#ifndef BROKER_LINK_NEWS_H
#define BROKER_LINK_NEWS_H

#include "broker/peering.h"

struct federation;
struct peer;

enum { LINK_NEWS_MS = 5000, LINK_NEWS_COUNTS = 2 + LINK_AT_COUNT, LINK_NEWS_WHY = 160 };

/* Of one peer. All zero at first. */
struct link_news {
    bool up;                 /* as told */
    bool state_changed;      /* since then */
    char why[LINK_NEWS_WHY]; /* it ended last; empty if that was told */
    bool counts_rose;
    uint64_t counts_ms; /* they are not told before this */
    uint64_t counts[LINK_NEWS_COUNTS];
};

void link_news_up(struct federation *federation, struct peer *peer);
void link_news_ended(struct federation *federation, struct peer *peer, const char *why);
void link_news_count(struct federation *federation, struct peer *peer);
void link_news_tick(struct federation *federation);

#endif
