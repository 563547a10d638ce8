/* Going through another's log of an owner from its checkpoint on, since they hold as much as we and something else: the
 * first entry that differs says whose counts (two_states.c), and all that is behind it is fetched on the way. One log
 * at a time. */
#include "gossip/verbs.h"

#define RETRY_MS 300u
#define TRIES 4u

static void ask(struct gossip *gossip, const struct member *member, struct member *from) {
    struct sweep *sweep = &gossip->sweep;
    struct message want = {.kind = MESSAGE_WANT, .version = repair_version_of(member)};
    want.version.sequence = sweep->at;
    sweep->retry_ms = gossip->now_ms + RETRY_MS;
    if (gossip->header && gossip->sender == from)
        reply_add(gossip, &want);
    else
        send_one(gossip, from, &want);
}

void sweep_begin(struct gossip *gossip, const struct member *member, uint64_t after, uint64_t end) {
    if (!gossip->header || !gossip->sender || gossip->sender->self || after >= end) return;
    gossip->sweep = (struct sweep){
        .id = member->id, .from = gossip->sender->id, .at = after, .asked = after, .end = end, .tries = TRIES};
    ask(gossip, member, gossip->sender);
}

void sweep_follow(struct gossip *gossip, const struct member *member, uint64_t sequence) {
    struct sweep *sweep = &gossip->sweep;
    if (sweep->tries == 0 || !gossip->sender || !id_equal(&sweep->id, &member->id) ||
        !id_equal(&sweep->from, &gossip->sender->id) || sequence != sweep->at + 1)
        return;
    sweep->at = sequence;
    sweep->tries = sequence < sweep->end ? TRIES : 0;
    if (sweep->tries == 0 || sequence < sweep->asked + REPAIR_ENTRIES_PER_WANT) return;
    sweep->asked = sequence;
    ask(gossip, member, gossip->sender);
}

void sweep_tick(struct gossip *gossip) {
    struct sweep *sweep = &gossip->sweep;
    if (gossip->now_ms < sweep_deadline_ms(gossip)) return;
    struct member *member = members_find(gossip, &sweep->id), *from = members_find(gossip, &sweep->from);
    sweep->tries = member && from && member_is_visible(from) ? sweep->tries - 1 : 0;
    sweep->asked = sweep->at;
    if (sweep->tries > 0) ask(gossip, member, from);
}

uint64_t sweep_deadline_ms(const struct gossip *gossip) {
    return gossip->sweep.tries > 0 ? gossip->sweep.retry_ms : NEVER;
}
