#include "gossip/budget.h"

#include <string.h>

#define QUANTUM 600u  /* with the smallest weight, 2, one datagram of any size in each turn */
#define BURST_PART 4u /* of a second */

static const size_t weight[BUDGET_CLASSES] = {[BUDGET_PROBES] = 10, [BUDGET_OWN] = 3,     [BUDGET_RUMORS] = 2,
                                              [BUDGET_REPAIR] = 3,  [BUDGET_MEMBERS] = 2, [BUDGET_NEWCOMERS] = 5};

/* 0: what is said of one's own accord is not for one asker. */
static const uint32_t stale_ms[BUDGET_CLASSES] = {
    [BUDGET_PROBES] = 1000, [BUDGET_REPAIR] = 3000, [BUDGET_NEWCOMERS] = 1000};

static uint64_t burst(const struct budget *budget) {
    uint64_t bytes = budget->bytes_per_s / BURST_PART, least = 8u * GOSSIP_DATAGRAM_MAX;
    return 1000 * (bytes > least ? bytes : least);
}

void budget_init(struct budget *budget, uint32_t bytes_per_s, uint64_t now_ms) {
    memset(budget, 0, sizeof *budget);
    budget->bytes_per_s = bytes_per_s > BUDGET_BYTES_PER_S_MIN ? bytes_per_s : BUDGET_BYTES_PER_S_MIN;
    budget->credit = burst(budget);
    budget->filled_ms = now_ms;
}

static uint64_t credit_at(const struct budget *budget, uint64_t now_ms) {
    uint64_t passed_ms = now_ms > budget->filled_ms ? now_ms - budget->filled_ms : 0, most = burst(budget);
    if (passed_ms >= 1000) return most;
    uint64_t credit = budget->credit + passed_ms * budget->bytes_per_s;
    return credit < most ? credit : most;
}

void budget_add(struct budget *budget, enum budget_class class, struct queued_datagram *datagram) {
    datagram->next = NULL;
    if (budget->queues[class].last)
        budget->queues[class].last->next = datagram;
    else
        budget->queues[class].first = datagram;
    budget->queues[class].last = datagram;
    budget->queues[class].count++;
    budget->queues[class].bytes += datagram->size;
    budget->count++;
}

static struct queued_datagram *take_first(struct budget *budget, enum budget_class class) {
    struct queued_datagram *first = budget->queues[class].first;
    budget->queues[class].first = first->next;
    if (!first->next) budget->queues[class].last = NULL;
    budget->queues[class].count--;
    budget->queues[class].bytes -= first->size;
    budget->count--;
    return first;
}

/* Whose turn it is, of those that have something. Each gets its part once when the turn comes to it. */
static enum budget_class find_turn(struct budget *budget) {
    for (;;) {
        enum budget_class class = budget->turn;
        const struct queued_datagram *first = budget->queues[class].first;
        if (first && budget->queues[class].deficit >= first->size) return class;
        if (!first) budget->queues[class].deficit = 0;
        class = budget->turn = (enum budget_class)((class + 1) % BUDGET_CLASSES);
        if (budget->queues[class].first) budget->queues[class].deficit += weight[class] * QUANTUM;
    }
}

struct queued_datagram *budget_take(struct budget *budget, uint64_t now_ms) {
    if (budget->count == 0) return NULL;
    enum budget_class class = find_turn(budget);
    uint64_t cost = 1000 * (uint64_t)budget->queues[class].first->size;
    budget->credit = credit_at(budget, now_ms);
    budget->filled_ms = now_ms > budget->filled_ms ? now_ms : budget->filled_ms;
    if (budget->credit < cost) return NULL;
    budget->credit -= cost;
    budget->queues[class].deficit -= budget->queues[class].first->size;
    return take_first(budget, class);
}

static bool is_stale(const struct budget *budget, enum budget_class class, uint64_t now_ms) {
    const struct queued_datagram *first = budget->queues[class].first;
    return first && stale_ms[class] > 0 && now_ms > first->queued_ms + stale_ms[class];
}

struct queued_datagram *budget_take_stale(struct budget *budget, uint64_t now_ms) {
    for (size_t i = 0; i < BUDGET_CLASSES; i++)
        if (is_stale(budget, (enum budget_class)i, now_ms)) return take_first(budget, (enum budget_class)i);
    return NULL;
}

struct queued_datagram *budget_take_back(struct budget *budget) {
    enum budget_class most = BUDGET_PROBES;
    for (size_t i = 0; i < BUDGET_CLASSES; i++)
        if (budget->queues[i].count > budget->queues[most].count) most = (enum budget_class)i;
    return budget->queues[most].count > 0 ? take_first(budget, most) : NULL;
}

uint64_t budget_deadline_ms(const struct budget *budget, uint64_t now_ms) {
    if (budget->count == 0) return UINT64_MAX;
    uint64_t credit = credit_at(budget, now_ms), need = 1000u * GOSSIP_DATAGRAM_MAX;
    if (credit >= need) return UINT64_MAX;
    return now_ms + (need - credit + budget->bytes_per_s - 1) / budget->bytes_per_s;
}

size_t budget_waiting(const struct budget *budget, enum budget_class class) {
    return budget->queues[class].bytes;
}
