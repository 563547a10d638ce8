/* Going through another's log of an owner from its checkpoint on, since they hold as much as we and something else: the
 * first entry that differs says whose counts (two_states.c), and all that is behind it is fetched on the way. A few
 * logs at a time, each of another broker; whose log brought nothing that differs, or did not come, waits a while before
 * it is believed again that it holds something else: saying so costs nothing. */
#include "gossip/verbs.h"

#define RETRY_MS 300u
#define TRIES 4u
#define LASTS_MS 10000u
#define VAIN_MS 10000u

static void settle(struct gossip *gossip) {
    gossip->sweep_ms = NEVER;
    for (size_t i = 0; i < SWEEPS; i++) {
        const struct sweep *sweep = &gossip->sweeps.of[i];
        if (sweep->tries > 0 && sweep->retry_ms < gossip->sweep_ms) gossip->sweep_ms = sweep->retry_ms;
    }
}

static void ask(struct gossip *gossip, struct sweep *sweep, const struct member *member, struct member *from) {
    struct message want = {.kind = MESSAGE_WANT, .version = repair_version_of(member)};
    want.version.sequence = sweep->at;
    sweep->retry_ms = gossip->now_ms + RETRY_MS;
    if (gossip->header && gossip->sender == from)
        reply_add(gossip, &want);
    else
        send_one(gossip, from, &want);
}

static struct sweep *sweep_by(struct gossip *gossip, const struct member_id *from) {
    for (size_t i = 0; i < SWEEPS; i++) {
        struct sweep *sweep = &gossip->sweeps.of[i];
        if (sweep->tries > 0 && id_equal(&sweep->from, from)) return sweep;
    }
    return NULL;
}

static struct sweep *unused(struct gossip *gossip) {
    for (size_t i = 0; i < SWEEPS; i++)
        if (gossip->sweeps.of[i].tries == 0) return &gossip->sweeps.of[i];
    return NULL;
}

/* ---- who said so in vain ---- */

static bool was_in_vain(const struct gossip *gossip, const struct member_id *from) {
    for (size_t i = 0; i < VAIN_MAX; i++) {
        const struct vain *vain = &gossip->sweeps.vain[i];
        if (vain->until_ms > gossip->now_ms && id_equal(&vain->from, from)) return true;
    }
    return false;
}

static void finish(struct gossip *gossip, struct sweep *sweep) {
    struct sweeps *sweeps = &gossip->sweeps;
    sweep->tries = 0;
    if (!sweep->found)
        sweeps->vain[sweeps->vain_next++ % VAIN_MAX] = (struct vain){sweep->from, gossip->now_ms + VAIN_MS};
}

/* ---- one log ---- */

bool sweep_may_begin(struct gossip *gossip) {
    const struct member *sender = gossip->sender;
    return gossip->header && sender && !sender->self && !sweep_by(gossip, &sender->id) && unused(gossip) &&
           !was_in_vain(gossip, &sender->id);
}

static void begin(struct gossip *gossip, struct sweep *sweep, const struct member *member, uint64_t after, uint64_t end,
                  bool found) {
    *sweep = (struct sweep){.id = member->id,
                            .from = gossip->sender->id,
                            .at = after,
                            .asked = after,
                            .end = end,
                            .end_ms = gossip->now_ms + LASTS_MS,
                            .tries = TRIES,
                            .found = found};
    ask(gossip, sweep, member, gossip->sender);
    settle(gossip);
}

void sweep_begin(struct gossip *gossip, const struct member *member, uint64_t after, uint64_t end) {
    if (after < end) begin(gossip, unused(gossip), member, after, end, false);
}

void sweep_go_on(struct gossip *gossip, const struct member *member, uint64_t after, uint64_t end) {
    if (!gossip->header || !gossip->sender || gossip->sender->self || after >= end) return;
    struct sweep *sweep = sweep_by(gossip, &gossip->sender->id);
    if (!sweep) sweep = unused(gossip);
    if (sweep) begin(gossip, sweep, member, after, end, true);
}

static struct sweep *sweep_of(struct gossip *gossip, const struct member *member) {
    struct sweep *sweep = gossip->sender ? sweep_by(gossip, &gossip->sender->id) : NULL;
    return sweep && id_equal(&sweep->id, &member->id) ? sweep : NULL;
}

void sweep_differs(struct gossip *gossip, const struct member *member) {
    struct sweep *sweep = sweep_of(gossip, member);
    if (sweep) sweep->found = true;
}

void sweep_follow(struct gossip *gossip, const struct member *member, uint64_t sequence) {
    struct sweep *sweep = sweep_of(gossip, member);
    if (!sweep || sequence != sweep->at + 1) return;
    sweep->at = sequence;
    sweep->tries = TRIES;
    if (sequence >= sweep->end) {
        finish(gossip, sweep);
    } else if (sequence >= sweep->asked + REPAIR_ENTRIES_PER_WANT) {
        sweep->asked = sequence;
        ask(gossip, sweep, member, gossip->sender);
    }
    settle(gossip);
}

static void try_again(struct gossip *gossip, struct sweep *sweep) {
    struct member *member = members_find(gossip, &sweep->id), *from = members_find(gossip, &sweep->from);
    bool goes_on = member && from && member_is_visible(from) && gossip->now_ms < sweep->end_ms && sweep->tries > 1;
    if (!goes_on) {
        finish(gossip, sweep);
        return;
    }
    sweep->tries--;
    sweep->asked = sweep->at;
    ask(gossip, sweep, member, from);
}

void sweep_tick(struct gossip *gossip) {
    if (gossip->now_ms < gossip->sweep_ms) return;
    for (size_t i = 0; i < SWEEPS; i++) {
        struct sweep *sweep = &gossip->sweeps.of[i];
        if (sweep->tries > 0 && gossip->now_ms >= sweep->retry_ms) try_again(gossip, sweep);
    }
    settle(gossip);
}
