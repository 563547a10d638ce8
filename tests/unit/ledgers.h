/* What both ends of a link count has to agree (broker/peering.h, struct link_info). */
#ifndef TESTS_UNIT_LEDGERS_H
#define TESTS_UNIT_LEDGERS_H

#include "peers.h"

/* The counters of a broker begin with its run. */
static inline bool ledger_is_whole(const struct world *world, int site) {
    return world->sites[site].broker && world->sites[site].epoch == 1;
}

static inline void ledger_adds_up(struct world *world, int from, int to) {
    const struct link_info sent = world_link(world, from, to), got = world_link(world, to, from);
    uint64_t numbers = sent.publications_sent + sent.sent_as_nil,
             came = got.publications_received + got.received_as_nil + got.refused;
    assert_in_range(got.reordered, 0, got.lost);
    assert_in_range(came + got.lost, 0, numbers);
    assert_in_range(came + got.repeated + got.reordered, 0, numbers + sent.sent_again);
    if (sent.outbox_messages == 0 && sent.dropped_at[LINK_AT_QUEUE_AGE] == 0)
        assert_int_equal(came + got.lost, numbers);
}

static inline void ledgers_add_up(struct world *world) {
    for (int from = 0; from < world->site_count; from++)
        for (int to = 0; to < world->site_count; to++)
            if (from != to && ledger_is_whole(world, from) && ledger_is_whole(world, to))
                ledger_adds_up(world, from, to);
}

#endif
