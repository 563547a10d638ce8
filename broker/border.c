#include "broker/border.h"

#include "broker/advert.h"
#include "broker/barrier.h"
#include "broker/group.h"
#include "broker/interest.h"
#include "broker/ledger.h"
#include "broker/link.h"
#include "broker/replay.h"

#include <stdio.h>

static bool is_exported(void *context, const struct outbox_entry *entry) {
    const struct peer *peer = context;
    return policy_lets(&peer->rules, POLICY_EXPORT, entry->message->topic, entry->message->topic_size);
}

static void exports_changed(struct federation *federation, struct peer *peer) {
    group_end_unexported(federation, peer);
    replay_end_unexported(peer);
    ledger_given_up(peer, GIVEN_UP_POLICY, outbox_prune(&peer->outbox, is_exported, peer));
    peer->snapshot_lost |= peer->joins.count > 0; /* more of what is retained may be for it */
    federation->generation++;
    subs_touch(federation->subs);
}

static void imports_changed(struct federation *federation, struct peer *peer) {
    peer_sift_rows(federation, peer);
    interest_review(federation, peer);
    interest_seek(federation, peer);
    peer->rejoins |= peer->want_count > 0;
    barrier_check_all(federation);
}

static void follow(struct federation *federation, struct peer *peer, const struct policy_rules *rules) {
    bool exports = !policy_rules_equal(&peer->rules, rules, POLICY_EXPORT),
         imports = !policy_rules_equal(&peer->rules, rules, POLICY_IMPORT);
    peer->rules = *rules;
    if (exports) exports_changed(federation, peer);
    if (imports) imports_changed(federation, peer);
    if (exports && peer->link)
        link_end(federation, peer->link, BYE_CLOSING, "other topics may leave from now on");
    else if (imports && peer->link)
        interest_sync(federation, peer);
}

void border_name(struct federation *federation, struct peer *peer, const char *name) {
    snprintf(peer->name, sizeof peer->name, "%s", name);
    struct policy_rules rules = policy_rules_of(federation->policy, peer->name);
    follow(federation, peer, &rules);
}

bool border_set(struct federation *federation, const struct policy *policy) {
    bool changed = !policy_equal(federation->policy, policy);
    federation->policy = policy;
    if (changed) {
        interests_tell(federation);
        adverts_tell(federation);
    }
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (!peer) continue;
        struct policy_rules rules = policy_rules_of(policy, peer->name[0] ? peer->name : NULL);
        follow(federation, peer, &rules);
    }
    federation->generation += changed;
    return changed;
}
