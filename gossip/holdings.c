/* Whose registries are kept, and how much of them in all. An owner that is away keeps its rows here for its return, a
 * day or as long as there is room; what stays then is a grave. */
#include "gossip/verbs.h"

#include <stdio.h>

#define LOOK_AGAIN_MS 1000u
#define TELL_AGAIN_MS 60000u

static size_t bytes_of(const struct member *member) {
    return member->self ? 0 : registry_bytes(member->registry);
}

void holdings_begin(struct gossip *gossip, const struct member *member) {
    gossip->holdings.bytes -= bytes_of(member);
}

void holdings_free(struct gossip *gossip, struct member *member) {
    transfers_drop(&gossip->transfers, &member->id);
    holdings_begin(gossip, member);
    registry_unref(member->registry);
    member->registry = NULL;
}

void holdings_bury(struct gossip *gossip, struct member *member) {
    const struct grave grave = {.id = member->id,
                                .epoch = member->epoch,
                                .incarnation = member->incarnation,
                                .sequence = registry_sequence(member->registry),
                                .made_ms = gossip->now_ms};
    if (member->epoch > 0 && graves_put(&gossip->graves, &grave)) member->has_grave = true;
    holdings_free(gossip, member);
    members_changed(gossip, member);
}

/* ---- room ---- */

static struct member *longest_hidden(struct gossip *gossip) {
    struct member *longest = NULL;
    for (size_t i = members_visible_count(gossip) - 1; i < gossip->members.count; i++) {
        struct member *member = members_at(gossip, i);
        if (!member || member->self || !member->registry) continue;
        if (!longest || member->down_since_ms < longest->down_since_ms) longest = member;
    }
    return longest;
}

bool holdings_have_room(struct gossip *gossip) {
    struct holdings *holdings = &gossip->holdings;
    uint64_t max = gossip->limits.registry_bytes_max;
    if (holdings->bytes + transfers_bytes(&gossip->transfers) <= max) return true;
    if (gossip->now_ms < holdings->look_again_ms) return false;
    while (holdings->bytes + transfers_bytes(&gossip->transfers) > max) {
        struct member *hidden = longest_hidden(gossip);
        if (!hidden) {
            holdings->look_again_ms = gossip->now_ms + LOOK_AGAIN_MS;
            break;
        }
        holdings_bury(gossip, hidden);
    }
    if (gossip->now_ms < holdings->look_again_ms && gossip->now_ms >= holdings->tell_again_ms) {
        holdings->tell_again_ms = gossip->now_ms + TELL_AGAIN_MS;
        event_plain(gossip, GOSSIP_WARNING, NULL, 0, 0,
                    "the registry is full: changes of other brokers are not taken; raise limits.registry_bytes_max");
    }
    return gossip->now_ms >= holdings->look_again_ms;
}

bool holdings_are_fair(struct gossip *gossip, const struct member *member) {
    struct holdings *holdings = &gossip->holdings;
    uint64_t max = gossip->limits.registry_bytes_max;
    if (holdings->bytes + transfers_bytes(&gossip->transfers) <= max - max / 4) return true;
    if (bytes_of(member) <= max / (2 * (uint64_t)members_visible_count(gossip))) return true;
    /* Those that are away give way first. */
    if (gossip->now_ms >= holdings->unfair_until_ms && longest_hidden(gossip)) return true;
    holdings->unfair_until_ms = gossip->now_ms + LOOK_AGAIN_MS;
    if (gossip->now_ms >= holdings->tell_again_ms) {
        holdings->tell_again_ms = gossip->now_ms + TELL_AGAIN_MS;
        char text[200];
        snprintf(text, sizeof text,
                 "the registry is nearly full: changes of %.63s are not taken, as it has more than its part; raise "
                 "limits.registry_bytes_max",
                 member->name);
        event_plain(gossip, GOSSIP_WARNING, member, member->epoch, 0, text);
    }
    return false;
}

/* ---- graves ---- */

bool holdings_let_pass(struct gossip *gossip, const struct member *member, const struct head *head) {
    const struct grave *grave = member->has_grave ? graves_find(&gossip->graves, &member->id) : NULL;
    if (!grave || head->epoch > grave->epoch) return true;
    if (head->epoch == grave->epoch && head->incarnation > grave->incarnation && head->sequence >= grave->sequence)
        return true;
    if (!gossip->header) return false;
    /* Who brings it has been away, or it lives and does not know what we think of it: it refutes that. */
    struct message accusation = {.kind = MESSAGE_ACCUSE,
                                 .version = {.id = grave->id, .epoch = grave->epoch, .incarnation = grave->incarnation},
                                 .other = gossip->self->id};
    reply_add(gossip, &accusation);
    return false;
}

bool holdings_show(const struct member *member) {
    return member_is_visible(member) && !member->has_grave;
}

static void settle(struct gossip *gossip, struct member *member) {
    if (!member->has_grave) return;
    const struct grave *grave = graves_find(&gossip->graves, &member->id);
    bool still = grave && (member->epoch < grave->epoch ||
                           (member->epoch == grave->epoch && registry_sequence(member->registry) < grave->sequence));
    if (still) return;
    graves_remove(&gossip->graves, &member->id);
    member->has_grave = false;
    event_rows_all(gossip, member);
}

void holdings_end(struct gossip *gossip, struct member *member) {
    gossip->holdings.bytes += bytes_of(member);
    settle(gossip, member);
    members_changed(gossip, member);
}
