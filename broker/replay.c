#include "broker/replay.h"

#include "broker/ledger.h"
#include "broker/link.h"
#include "broker/queues.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A publication that waits for joins of a peer: for one that is for no group, and for one of each group that it may be
 * in. Of both lists the oldest come first: those that nobody there was sent yet, and those that somebody was. */
struct hold {
    struct hold *prev, *next;
    struct message *message;
    struct aims *given; /* groups of which some member has got it */
    bool used;          /* one of them there: in the second list */
    bool others;        /* who joined for no group has not got it */
    uint64_t until_ms;
};

enum invite_state { INVITE_PENDING, INVITE_SENT, INVITE_DECLINED };
struct invite {
    struct named named;
    enum invite_state state;
    uint64_t until_ms;
};

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

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
    DL_DELETE(peer->holds[hold->used], hold);
    peer->hold_bytes -= message_cost(hold->message);
    message_unref(hold->message);
    free(hold->given);
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

/* Without memory who joins late for a group gets it once more. */
static void note_given(const struct federation *federation, struct hold *held) {
    const char *group;
    if (!federation->gave || federation->gave_in != federation->publication) return;
    for (size_t at = 0, size; (group = aims_at(federation->gave, at, &size)) != NULL; at += size + 1)
        aims_add(&held->given, group, size);
}

static void hold(struct federation *federation, struct peer *peer, struct message *message, uint64_t until_ms,
                 bool others) {
    size_t cost = message_cost(message);
    while (peer->holds[1] && peer->hold_bytes + cost > federation->limits.replay_bytes_max)
        drop_hold(peer, peer->holds[1]);
    bool fits = peer->hold_bytes + cost <= federation->limits.replay_bytes_max;
    struct hold *held = fits ? malloc(sizeof *held) : NULL;
    struct message *counted = held ? message_ref(message) : NULL;
    if (!counted) {
        free(held);
        count_dropped(federation, peer, fits ? LINK_AT_MEMORY : LINK_AT_REPLAY_BYTES);
        return;
    }
    *held = (struct hold){.message = counted, .until_ms = until_ms, .others = others};
    note_given(federation, held);
    DL_APPEND(peer->holds[0], held);
    peer->hold_bytes += cost;
}

bool replay_hold(struct federation *federation, struct peer *peer, struct message *message, bool others) {
    struct invite *invite = (struct invite *)(void *)names_find(&peer->invites, message->topic, message->topic_size);
    if (invite && invite->state == INVITE_DECLINED) return false;
    if (!invite) invite = make_invite(peer, message->topic, message->topic_size);
    if (!invite) {
        bool full = peer->invites.count >= PEER_INVITES_MAX;
        count_dropped(federation, peer, full ? LINK_AT_REPLAY_INVITES : LINK_AT_MEMORY);
        return true;
    }
    invite->until_ms = federation->now_ms + federation->limits.replay_window_ms;
    hold(federation, peer, message, invite->until_ms, others);
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

static enum outbox_result put(struct federation *federation, struct peer *peer, struct hold *held, struct aims *aims) {
    enum outbox_result result = queues_put(federation, peer, held->message);
    if (result == OUTBOX_NO_MEMORY) return result;
    if (!held->used) {
        DL_DELETE(peer->holds[0], held);
        held->used = true;
        DL_APPEND(peer->holds[1], held);
    }
    if (result == OUTBOX_OK && aims)
        outbox_aim(&peer->outbox, aims);
    else
        free(aims);
    if (result == OUTBOX_OK)
        federation->counters.replayed++;
    else
        federation->counters.replay_expired++;
    return OUTBOX_OK;
}

/* All peers that this one is held for learn that the group has it. */
static void note_replayed(const struct federation *federation, const struct message *message, const char *group,
                          size_t size) {
    struct hold *held;
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        for (int used = 0; peer && used < 2; used++) {
            DL_FOREACH(peer->holds[used], held) {
                if (held->message == message) aims_add(&held->given, group, size);
            }
        }
    }
}

static enum outbox_result replay_to_group(struct federation *federation, struct peer *peer, struct hold *held,
                                          const char *group, size_t size) {
    struct aims *aims = NULL;
    if (aims_have(held->given, group, size)) return OUTBOX_OK;
    if (aims_add(&aims, group, size)) return OUTBOX_NO_MEMORY;
    enum outbox_result result = put(federation, peer, held, aims);
    if (result == OUTBOX_NO_MEMORY)
        free(aims);
    else
        note_replayed(federation, held->message, group, size);
    return result;
}

static enum outbox_result replay(struct federation *federation, struct peer *peer, bool used, const char *filter,
                                 size_t size, size_t inner) {
    struct hold *held, *next;
    DL_FOREACH_SAFE(peer->holds[used], held, next) {
        const struct message *message = held->message;
        if (!topic_matches(filter + inner, size - inner, message->topic, message->topic_size)) continue;
        if (inner == 0 && !held->others) continue;
        enum outbox_result result =
            inner > 0 ? replay_to_group(federation, peer, held, filter, size) : put(federation, peer, held, NULL);
        if (result == OUTBOX_NO_MEMORY) return result;
        if (inner > 0) continue;
        held->others = false;
        if (peer->group_row_count == 0) drop_hold(peer, held);
    }
    return OUTBOX_OK;
}

enum outbox_result replay_joined(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    size_t inner = topic_share_split(filter, size);
    enum outbox_result result = replay(federation, peer, true, filter, size, inner); /* they are older */
    if (result == OUTBOX_OK) result = replay(federation, peer, false, filter, size, inner);
    if (result != OUTBOX_OK) return result;
    struct named *next;
    for (struct named *named = peer->invites.first; named; named = next) {
        next = named->next;
        if (topic_matches(filter + inner, size - inner, named->text, named->size))
            forget_invite(peer, (struct invite *)(void *)named);
    }
    return OUTBOX_OK;
}

void replay_end_unexported(struct peer *peer) {
    struct hold *held, *next_held;
    for (int used = 0; used < 2; used++) {
        DL_FOREACH_SAFE(peer->holds[used], held, next_held) {
            if (policy_lets(&peer->rules, POLICY_EXPORT, held->message->topic, held->message->topic_size)) continue;
            if (!held->used) ledger_given_up(peer, GIVEN_UP_POLICY, 1);
            drop_hold(peer, held);
        }
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
    for (int used = 0; used < 2; used++) {
        DL_FOREACH(peer->holds[used], held) {
            if (held->message == message && held->others) return true;
        }
    }
    return false;
}

bool replay_is_declined(const struct peer *peer, const char *topic, size_t size) {
    const struct invite *invite = (const struct invite *)(const void *)names_find(&peer->invites, topic, size);
    return invite && invite->state == INVITE_DECLINED;
}

static void drop_topic(struct peer *peer, const char *topic, size_t size) {
    struct hold *held, *next;
    for (int used = 0; used < 2; used++) {
        DL_FOREACH_SAFE(peer->holds[used], held, next) {
            if (held->message->topic_size == size && memcmp(held->message->topic, topic, size) == 0)
                drop_hold(peer, held);
        }
    }
}

void replay_declined(struct federation *federation, struct peer *peer, const char *topic, size_t size,
                     uint64_t ttl_ms) {
    struct invite *invite = (struct invite *)(void *)names_find(&peer->invites, topic, size);
    drop_topic(peer, topic, size);
    if (!invite || invite->state != INVITE_SENT || ttl_ms == 0) return;
    invite->state = INVITE_DECLINED;
    invite->until_ms = federation->now_ms + (ttl_ms < PEER_DECLINE_MAX_MS ? ttl_ms : PEER_DECLINE_MAX_MS);
    come_by(federation, peer, invite->until_ms);
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
    for (int used = 0; used < 2; used++) {
        while (peer->holds[used] && peer->holds[used]->until_ms <= federation->now_ms) {
            drop_hold(peer, peer->holds[used]);
            if (!used) count_dropped(federation, peer, LINK_AT_REPLAY_WINDOW);
        }
        if (peer->holds[used]) peer->replay_ms = least(peer->replay_ms, peer->holds[used]->until_ms);
    }
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
    for (; peer->holds[0]; ledger_given_up(peer, GIVEN_UP_AWAY, 1))
        drop_hold(peer, peer->holds[0]);
    while (peer->holds[1])
        drop_hold(peer, peer->holds[1]);
    while (peer->invites.first)
        forget_invite(peer, (struct invite *)(void *)peer->invites.first);
    names_deinit(&peer->invites);
    peer->replay_ms = UINT64_MAX;
}
