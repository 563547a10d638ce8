/* Whoever is before us in the ring of ids asks us each interval. When it does not, we ask it: so each member has two
 * neighbours that notice its death, and while nothing is wrong the second one costs nothing. A question proves nothing
 * (it may be an old one, said again); that none comes is only a reason to ask. */
#include "gossip/verbs.h"

static void expect(struct gossip *gossip, const struct member *before) {
    struct watch *watch = &gossip->watch;
    uint64_t late_ms = gossip->limits.probe_timeout_ms / 2;
    watch->due_ms = NEVER;
    if (before) watch->due_ms = gossip->now_ms + probe_interval_ms(gossip) + late_ms + probe_extra_ms(gossip, before);
}

/* Who is before us may be another now. */
static struct member *look(struct gossip *gossip) {
    struct member *before = members_predecessor(gossip);
    bool same = before && gossip->watch.due_ms != NEVER && id_equal(&before->id, &gossip->watch.id);
    if (same) return before;
    if (before) gossip->watch.id = before->id;
    expect(gossip, before);
    return before;
}

void watch_heard(struct gossip *gossip) {
    if (gossip->watch.due_ms != NEVER && gossip->authentic && id_equal(&gossip->sender->id, &gossip->watch.id))
        expect(gossip, gossip->sender);
}

void watch_turn(struct gossip *gossip) {
    look(gossip);
}

void watch_tick(struct gossip *gossip) {
    if (gossip->now_ms < gossip->watch.due_ms) return;
    struct member *before = look(gossip);
    if (!before || gossip->now_ms < gossip->watch.due_ms) return;
    if (before->probe.deadline_ms == NEVER) probe_member(gossip, before);
    expect(gossip, before);
}
