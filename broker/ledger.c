#include "broker/ledger.h"

#include "broker/link_news.h"

void ledger_sent(struct peer *peer, const struct outbox_entry *entry) {
    if (peer->outbox.next < peer->outbox.highest)
        peer->totals.sent_again++;
    else if (entry->message)
        peer->totals.publications_sent++;
    else
        peer->totals.sent_as_nil++;
}

void ledger_dropped(struct federation *federation, struct peer *peer, enum link_at limit, uint64_t count) {
    if (count == 0) return;
    peer->totals.dropped_at[limit] += count;
    link_news_count(federation, peer);
}

void ledger_given_up(struct peer *peer, enum given_up why, uint64_t count) {
    peer->totals.given_up[why] += count;
}

void ledger_reached(struct federation *federation, struct peer *peer, uint64_t sequence) {
    uint64_t expected = peer->taken.expected;
    if (sequence == expected) return;
    peer->totals.lost += sequence - expected;
    gaps_add(&peer->gaps, peer->taken.stream, expected, sequence);
    link_news_count(federation, peer);
}

void ledger_late(struct federation *federation, struct peer *peer, uint64_t sequence) {
    if (!gaps_take(&peer->gaps, peer->taken.stream, sequence)) {
        peer->totals.repeated++;
        return;
    }
    peer->totals.reordered++;
    link_news_count(federation, peer);
}
