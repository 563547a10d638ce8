#include "tests/sim/checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What it counts of the peer of that name. */
static struct link_info info_of(const struct world_node *node, const char *peer) {
    struct link_info info;
    for (size_t i = 0; broker_link_at(node_broker(node->node), i, &info); i++)
        if (strcmp(info.name, peer) == 0) return info;
    return (struct link_info){.state = LINK_CLOSING};
}

static bool pair_agrees(const struct world_node *from, const struct world_node *to, char why[CHECKS_WHY]) {
    const struct link_info sent = info_of(from, to->name), got = info_of(to, from->name);
    uint64_t numbers = sent.publications_sent + sent.sent_as_nil,
             came = got.publications_received + got.received_as_nil + got.refused;
    bool began_together = from->run == 1 && to->run == 1;
    bool all_there = sent.outbox_messages == 0 && sent.dropped_at[LINK_AT_QUEUE_AGE] == 0;
    if (got.lost + got.reordered == 0 &&
        (!began_together || (came <= numbers && came + got.repeated <= numbers + sent.sent_again)) &&
        (!began_together || !all_there || came == numbers))
        return true;
    snprintf(why, CHECKS_WHY,
             "%s sent %s %" PRIu64 " publications, %" PRIu64 " nil and %" PRIu64 " again, of which it counts %" PRIu64
             " taken, %" PRIu64 " nil, %" PRIu64 " refused, %" PRIu64 " repeated, %" PRIu64 " lost, %" PRIu64
             " reordered",
             from->name, to->name, sent.publications_sent, sent.sent_as_nil, sent.sent_again, got.publications_received,
             got.received_as_nil, got.refused, got.repeated, got.lost, got.reordered);
    return false;
}

bool checks_ledgers(const struct world *world, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < world->node_count; i++) {
        for (size_t k = 0; k < world->node_count; k++) {
            const struct world_node *from = world->nodes[i], *to = world->nodes[k];
            if (i == k || !from->node || !to->node || from->hostility || to->hostility) continue;
            if (!pair_agrees(from, to, why)) return false;
        }
    }
    return true;
}
