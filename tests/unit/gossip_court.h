/* Honest brokers, each with a row and with one that it has taken back, and a traitor among them. */
#ifndef GOSSIP_COURT_H
#define GOSSIP_COURT_H

#include "gossip_traitor.h"

#define HONEST 5

struct court {
    struct net *net;
    struct traitor *traitor;
};

static inline bool honest_alive(struct net *net) {
    for (int i = 0; i < HONEST; i++)
        for (int j = 0; j < HONEST; j++)
            if (i != j && net->nodes[i].sees[j] != MEMBER_ALIVE) return false;
    return true;
}

static inline bool rows_are_whole(struct net *net) {
    for (int i = 0; i < HONEST; i++)
        for (int j = 0; j < HONEST; j++) {
            char kept[32], gone[32];
            snprintf(kept, sizeof kept, "kept/%d", j);
            snprintf(gone, sizeof gone, "gone/%d", j);
            if (!net_has_row(net, i, j, kept) || net_has_row(net, i, j, gone)) return false;
        }
    return true;
}

/* The traitor has seen all of it pass. */
static inline struct court court_new(uint64_t seed) {
    struct court court = {.net = traitor_net(HONEST, seed)};
    court.traitor = traitor_new(court.net);
    for (int i = 0; i < HONEST; i++) {
        char filter[32];
        snprintf(filter, sizeof filter, "gone/%d", i);
        net_row(court.net, i, filter, true);
        snprintf(filter, sizeof filter, "kept/%d", i);
        net_row(court.net, i, filter, true);
    }
    net_run(court.net, 1000);
    for (int i = 0; i < HONEST; i++) {
        char filter[32];
        snprintf(filter, sizeof filter, "gone/%d", i);
        net_row(court.net, i, filter, false);
    }
    net_run(court.net, 2000);
    assert_true(rows_are_whole(court.net));
    assert_true(court.traitor->kept_count > 2 * HONEST);
    return court;
}

static inline enum member_trouble trouble_at(struct net *net, int at, int about) {
    struct member_info info;
    struct member_id id = net_id(net, about);
    return gossip_member_find(net->nodes[at].gossip, net->now_ms, &id, &info) ? info.trouble : MEMBER_TROUBLE_NONE;
}

static inline uint64_t down_events(const struct net *net) {
    uint64_t downs = 0;
    for (int i = 0; i < HONEST; i++)
        downs += net->nodes[i].down_events;
    return downs;
}

/* One that was killed comes back, and its death is not held against anybody. */
static inline void court_revive(struct court *court, int which) {
    struct net *net = court->net;
    char kept[32];
    snprintf(kept, sizeof kept, "kept/%d", which);
    net->nodes[which].epoch = 2;
    net_start(net, which);
    for (int i = 0; i < HONEST; i++)
        net->nodes[i].down_events = 0;
    net_row(net, which, kept, true);
    net_run(net, 5000);
}

/* The honest ones hold one another alive, with the rows they had, and go on working. */
static inline void court_free(struct court *court) {
    struct net *net = court->net;
    net_run(net, 1000);
    assert_true(rows_are_whole(net));
    assert_true(net_until(net, honest_alive, 5000));
    assert_int_equal(down_events(net), 0);
    net_row(net, 0, "still/works", true);
    net_run(net, 500);
    for (int i = 1; i < HONEST; i++)
        assert_true(net_has_row(net, i, 0, "still/works"));
    traitor_free(court->traitor);
    net_free(net);
}

/* For how long one honest broker has suspected another. */
struct suspense {
    uint64_t since[HONEST][HONEST], longest_ms;
};

static inline void suspense_look(struct suspense *suspense, const struct net *net) {
    for (int i = 0; i < HONEST; i++)
        for (int j = 0; j < HONEST; j++) {
            uint64_t *since = &suspense->since[i][j];
            if (net->nodes[i].sees[j] != MEMBER_SUSPECT) *since = net->now_ms;
            if (i != j && net->now_ms - *since > suspense->longest_ms) suspense->longest_ms = net->now_ms - *since;
        }
}

static inline uint64_t court_sum(const struct net *net, size_t offset) {
    uint64_t all = 0;
    for (int i = 0; i < HONEST; i++) {
        struct gossip_counters counters;
        if (!net->nodes[i].gossip) continue;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        all += *(const uint64_t *)((const char *)&counters + offset);
    }
    return all;
}
#define SUM(net, counter) court_sum(net, offsetof(struct gossip_counters, counter))

#endif
