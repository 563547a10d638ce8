#include "broker/replay.h"

#include "broker/ledger.h"
#include "broker/link.h"
#include "broker/queues.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A publication that waits for the join of a peer. The window is the same for all, so the list is in order of time too.
 */
struct hold {
    struct hold *prev, *next;
    struct message *message;
    uint64_t until_ms;
};

enum invite_state { INVITE_PENDING, INVITE_SENT, INVITE_DECLINED };
struct invite {
    struct named named;
    enum invite_state state;
    uint64_t until_ms;
};

static void come_by(struct federation *federation, struct peer *peer, uint64_t at_ms) {
    if (at_ms >= peer->replay_ms) return;
    peer->replay_ms = at_ms;
    peer_set_timer(federation, peer);
}

static void forget_invite(struct peer *peer, struct invite *invite) {
    names_remove(&peer->invites, &invite->named);
    free(invite);
}

static void drop_hold(struct peer *peer, struct hold *hold) {
    DL_DELETE(peer->holds, hold);
    peer->hold_bytes -= message_cost(hold->message);
    message_unref(hold->message);
    free(hold);
}

static void count_dropped(struct federation *federation, struct peer *peer, enum link_at limit) {
    ledger_dropped(federation, peer, limit, 1);
    federation->counters.replay_expired++;
}

static struct invite *make_invite(struct peer *peer, const char *topic, size_t size) {
    if (peer->invites.count >= PEER_INVITES_MAX) return NULL;
    struct invite *invite = named_new(sizeof *invite, topic, size);
    if (invite && names_add(&peer->invites, &invite->named)) {
        free(invite);
        return NULL;
    }
    return invite;
}

static void hold(struct federation *federation, struct peer *peer, struct message *message, uint64_t until_ms) {
    size_t cost = message_cost(message);
    bool fits = peer->hold_bytes + cost <= federation->limits.replay_bytes_max;
    struct hold *held = fits ? malloc(sizeof *held) : NULL;
    struct message *counted = held ? message_ref(message) : NULL;
    if (!counted) {
        free(held);
        count_dropped(federation, peer, fits ? LINK_AT_MEMORY : LINK_AT_REPLAY_BYTES);
        return;
    }
    held->message = counted;
    held->until_ms = until_ms;
    DL_APPEND(peer->holds, held);
    peer->hold_bytes += cost;
}

bool replay_hold(struct federation *federation, struct peer *peer, struct message *message) {
    struct invite *invite = (struct invite *)(void *)names_find(&peer->invites, message->topic, message->topic_size);
    if (invite && invite->state == INVITE_DECLINED) return false;
    if (!invite) invite = make_invite(peer, message->topic, message->topic_size);
    if (!invite) {
        bool full = peer->invites.count >= PEER_INVITES_MAX;
        count_dropped(federation, peer, full ? LINK_AT_REPLAY_INVITES : LINK_AT_MEMORY);
        return true;
    }
    invite->until_ms = federation->now_ms + federation->limits.replay_window_ms;
    hold(federation, peer, message, invite->until_ms);
    come_by(federation, peer, invite->until_ms);
    if (invite->state == INVITE_SENT) return true;
    if (!peer->link) {
        peer_want_link(federation, peer);
        return true;
    }
    invite->state = INVITE_SENT;
    peer->totals.invites_sent++;
    sender_name(federation, peer->link, FRAME_INVITE, 0, message->topic, message->topic_size);
    return true;
}

enum outbox_result replay_joined(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    struct hold *held, *next_held;
    DL_FOREACH_SAFE(peer->holds, held, next_held) {
        struct message *message = held->message;
        if (!topic_matches(filter, size, message->topic, message->topic_size)) continue;
        enum outbox_result result = queues_put(federation, peer, message);
        if (result == OUTBOX_NO_MEMORY) return result;
        if (result == OUTBOX_OK)
            federation->counters.replayed++;
        else
            federation->counters.replay_expired++;
        drop_hold(peer, held);
    }
    struct named *next;
    for (struct named *named = peer->invites.first; named; named = next) {
        next = named->next;
        if (topic_matches(filter, size, named->text, named->size)) forget_invite(peer, (struct invite *)(void *)named);
    }
    return OUTBOX_OK;
}

void replay_end_unexported(struct peer *peer) {
    struct hold *held, *next_held;
    DL_FOREACH_SAFE(peer->holds, held, next_held) {
        if (policy_lets(&peer->rules, POLICY_EXPORT, held->message->topic, held->message->topic_size)) continue;
        drop_hold(peer, held);
        ledger_given_up(peer, GIVEN_UP_POLICY, 1);
    }
    struct named *next;
    for (struct named *named = peer->invites.first; named; named = next) {
        next = named->next;
        if (!policy_lets(&peer->rules, POLICY_EXPORT, named->text, named->size))
            forget_invite(peer, (struct invite *)(void *)named);
    }
}

bool replay_holds(const struct peer *peer, const struct message *message) {
    const struct hold *held;
    DL_FOREACH(peer->holds, held) {
        if (held->message == message) return true;
    }
    return false;
}

bool replay_is_declined(const struct peer *peer, const char *topic, size_t size) {
    const struct invite *invite = (const struct invite *)(const void *)names_find(&peer->invites, topic, size);
    return invite && invite->state == INVITE_DECLINED;
}

void replay_declined(struct federation *federation, struct peer *peer, const char *topic, size_t size,
                     uint64_t ttl_ms) {
    struct invite *invite = (struct invite *)(void *)names_find(&peer->invites, topic, size);
    if (!invite || invite->state != INVITE_SENT) return;
    invite->state = INVITE_DECLINED;
    invite->until_ms = federation->now_ms + (ttl_ms < PEER_DECLINE_MAX_MS ? ttl_ms : PEER_DECLINE_MAX_MS);
    come_by(federation, peer, invite->until_ms);
    struct hold *held, *next;
    DL_FOREACH_SAFE(peer->holds, held, next) {
        if (held->message->topic_size == size && memcmp(held->message->topic, topic, size) == 0) drop_hold(peer, held);
    }
}

void replay_reconsider(struct federation *federation, struct peer *peer) {
    struct named *next;
    for (struct named *named = peer->invites.first; named; named = next) {
        next = named->next;
        if (((struct invite *)(void *)named)->state == INVITE_DECLINED)
            forget_invite(peer, (struct invite *)(void *)named);
    }
    federation->generation++;
}

void replay_sync(struct federation *federation, struct peer *peer) {
    struct link *link = peer->link;
    struct frame_out *out = NULL;
    for (struct named *named = peer->invites.first; named && peer->link == link; named = named->next) {
        struct invite *invite = (struct invite *)(void *)named;
        if (invite->state == INVITE_DECLINED) continue;
        if (out && out->size >= federation->limits.link_frame_bytes) {
            sender_end(federation, link, 0);
            out = NULL;
        }
        if (!out) out = sender_begin(link, FRAME_INVITE, 0);
        frame_add_name(out, named->text, named->size);
        invite->state = INVITE_SENT;
        peer->totals.invites_sent++;
    }
    if (out && peer->link == link) sender_end(federation, link, 0);
}

void replay_expire(struct federation *federation, struct peer *peer) {
    if (peer->replay_ms > federation->now_ms) return;
    peer->replay_ms = UINT64_MAX;
    while (peer->holds && peer->holds->until_ms <= federation->now_ms) {
        drop_hold(peer, peer->holds);
        count_dropped(federation, peer, LINK_AT_REPLAY_WINDOW);
    }
    if (peer->holds) peer->replay_ms = peer->holds->until_ms;
    struct named *next;
    for (struct named *named = peer->invites.first; named; named = next) {
        next = named->next;
        struct invite *invite = (struct invite *)(void *)named;
        if (invite->until_ms <= federation->now_ms) {
            forget_invite(peer, invite);
            federation->generation++;
        } else if (invite->until_ms < peer->replay_ms) {
            peer->replay_ms = invite->until_ms;
        }
    }
}

void replay_clear(struct federation *federation, struct peer *peer) {
    (void)federation;
    for (; peer->holds; ledger_given_up(peer, GIVEN_UP_AWAY, 1))
        drop_hold(peer, peer->holds);
    while (peer->invites.first)
        forget_invite(peer, (struct invite *)(void *)peer->invites.first);
    names_deinit(&peer->invites);
    peer->replay_ms = UINT64_MAX;
}
