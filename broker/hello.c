#include "broker/link.h"

#include "broker/border.h"
#include "broker/carry.h"
#include "broker/group.h"
#include "broker/interest.h"
#include "broker/replay.h"
#include "broker/why_inside.h"

#include <stdio.h>
#include <string.h>

/* Two links of one pair: that one stays whose dialler has the smaller id; of two by the same dialler the later one, as
 * the dialler knows that the earlier is dead. */
static bool outlives(const struct federation *federation, const struct link *link, const struct link *other) {
    if (link->dialled == other->dialled) return link->handle > other->handle;
    bool we_are_smaller = memcmp(&federation->id, &link->peer->id, sizeof federation->id) < 0;
    return link->dialled == we_are_smaller;
}

/* The peer dialled while we were dialling it, and our link is the one that stays once both are up. Refusing the peer's
 * now, rather than ending it later, means that nothing is sent on one link and again on the other. A dial of ours that
 * hangs has no such claim: the peer may be the only one of us that can reach the other. */
static bool ours_is_on_its_way(const struct federation *federation, const struct link *link, const struct peer *peer) {
    const struct link *ours = peer->attempt;
    if (link->dialled || !ours || !outlives(federation, ours, link)) return false;
    return ours->state == LINK_HANDSHAKE || ours->deadline_ms > federation->now_ms + LINK_DIAL_MS - LINK_YIELD_MS;
}

/* Compares numbers with the peer's: what it has, and where its own begin. False if it has seen more than we know of:
 * then ours begin anew. */
static bool agree_on_numbers(struct federation *federation, struct peer *peer, const struct hello *hello) {
    /* By the stream alone: it goes on when a running broker raises its epoch. */
    uint64_t base = peer->outbox.base;
    bool agreed = hello->seen_stream != peer->stream || outbox_acknowledge(&peer->outbox, hello->expected);
    if (!agreed)
        kept_begin_stream(federation, peer);
    else if (peer->outbox.base > base)
        peer->acked_ms = federation->now_ms;
    outbox_rewind(&peer->outbox);
    taken_begin(&peer->taken, hello->epoch, hello->stream, hello->first);
    return agreed;
}

static void come_up(struct federation *federation, struct link *link, struct peer *peer, const struct hello *hello,
                    uint64_t valid_for_ms) {
    link->peer = peer;
    if (peer->attempt == link) peer->attempt = NULL;
    peer->link = link;
    link->state = LINK_UP;
    link->peer_epoch = hello->epoch;
    link->deadline_ms = UINT64_MAX;
    link->expires_ms = valid_for_ms > UINT64_MAX - federation->now_ms ? UINT64_MAX : federation->now_ms + valid_for_ms;
    link->frame_size_max = hello->frame_size_max;
    link->received_ms = link->useful_ms = link->up_since_ms = federation->now_ms;
    federation->counters.links_up++;
    carry_changed(federation);
    link_news_up(federation, peer);
    link_note(federation, BROKER_NOTE_INFO, link, "up", "");
    peer_linked(federation, peer);
    group_stale(federation, peer);
    interest_sync(federation, peer);
    if (peer->link == link) sender_plain(federation, link, FRAME_SYNCED);
    if (peer->link == link) replay_sync(federation, peer);
    link_set_timer(federation, link);
    link_wake(federation, link);
    carry_make_room(federation);
    why_linked(federation, peer);
}

static bool ask_who(struct federation *federation, struct link *link, const struct hello *hello,
                    struct peer_answer *answer) {
    char claimed[64];
    snprintf(claimed, sizeof claimed, "%.*s", hello->name_size < 63 ? (int)hello->name_size : 63,
             hello->name ? hello->name : "");
    memset(answer, 0, sizeof *answer);
    federation->questions.who_is(federation->questions.context, link->key_thumbprint, hello->token, hello->token_size,
                                 answer);
    answer->name[sizeof answer->name - 1] = answer->reason[sizeof answer->reason - 1] = 0;
    const char *who = answer->name[0] ? answer->name : claimed;
    if (!answer->allowed)
        link_refuse(federation, link, BYE_REFUSED, who, answer->reason);
    else if (memcmp(answer->id.bytes, hello->id, sizeof hello->id) != 0)
        link_refuse(federation, link, BYE_REFUSED, who, "the hello names another id than the key's");
    else if (memcmp(&answer->id, &federation->id, sizeof answer->id) == 0)
        link_refuse(federation, link, BYE_REFUSED, who,
                    "it holds this broker's own key; give each broker a key of its own");
    else if (link->dialled && memcmp(&answer->id, &link->dialled_to, sizeof answer->id) != 0)
        link_refuse(federation, link, BYE_REFUSED, who, "another broker answers at this address");
    else
        return true;
    return false;
}

/* Tokens of one issuer may be good in several federations. Asked after the token, so that a stranger is told nothing.
 */
static bool is_of_ours(struct federation *federation, struct link *link, const struct hello *hello,
                       const struct peer_answer *answer) {
    const char *ours = federation->federation;
    if (hello->federation_size == strlen(ours) && memcmp(hello->federation, ours, hello->federation_size) == 0)
        return true;
    char theirs[32], reason[256];
    size_t size = hello->federation_size < sizeof theirs - 1 ? hello->federation_size : sizeof theirs - 1;
    for (size_t i = 0; i < size; i++) /* it ends up in logs */
        theirs[i] = hello->federation[i] > ' ' && hello->federation[i] < 0x7f ? hello->federation[i] : '?';
    theirs[size] = '\0';
    snprintf(
        reason, sizeof reason,
        "%.31s is of the federation \"%s\" and %.31s of \"%.31s\": give both one federation.name, or take the other's "
        "address out of federation.bootstrap",
        answer->name, theirs, federation->name, ours);
    link_refuse(federation, link, BYE_FEDERATION, answer->name, reason);
    return false;
}

void link_on_hello(struct federation *federation, struct link *link, const struct hello *hello) {
    struct peer_answer answer;
    if (hello->protocol_min > LINK_PROTOCOL_MAX || hello->protocol_max < LINK_PROTOCOL_MIN ||
        hello->protocol_min > hello->protocol_max) {
        link_refuse(federation, link, BYE_PROTOCOL, link_far_name(link),
                    "no common protocol version; upgrade the older broker");
        return;
    }
    if (!ask_who(federation, link, hello, &answer) || !is_of_ours(federation, link, hello, &answer)) return;
    struct peer *peer = peers_make(federation, &answer.id);
    if (!peer) {
        link_refuse(federation, link, BYE_OVERLOAD, answer.name, "no room for another peer (peers_max)");
        return;
    }
    border_name(federation, peer, answer.name);
    link->peer = peer;
    if (hello->epoch < peer->epoch) {
        link_refuse(federation, link, BYE_EPOCH, answer.name,
                    "a later run of it is known; two brokers may share one key");
        return;
    }
    if (hello->epoch > peer->epoch) peer_restarted(federation, peer, hello->epoch);
    struct link *other = peer->link;
    if (other ? !outlives(federation, link, other) : ours_is_on_its_way(federation, link, peer)) {
        link_end(federation, link, BYE_DUPLICATE, "another link goes on");
        return;
    }
    if (other) {
        peer->link = link; /* so that the end of the other is no loss of the link */
        link_end(federation, other, BYE_DUPLICATE, "another link goes on");
    }
    if (!agree_on_numbers(federation, peer, hello) && link->dialled) {
        link_note(federation, BROKER_NOTE_WARNING, link, "begins anew",
                  "it has publications of this broker that are not on the disk here");
        link_end(federation, link, BYE_CLOSING, "the numbering of publications begins anew");
        return;
    }
    if (!link->dialled) sender_hello(federation, link);
    if (link->state == LINK_HANDSHAKE) come_up(federation, link, peer, hello, answer.valid_for_ms);
}
