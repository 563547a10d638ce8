#include "broker/handout.h"

#include "broker/group.h"
#include "broker/kept.h"
#include "broker/ledger.h"
#include "broker/link.h"
#include "broker/queues.h"

#include <stdlib.h>
#include <string.h>

static struct peer *peer_of(const struct subscriber *subscriber) {
    return (struct peer *)(void *)(uintptr_t)subscriber;
}

void federation_gave(struct federation *federation, const char *group, size_t size) {
    if (federation->peer_count == 0) return;
    if (federation->gave_in != federation->publication && federation->gave) federation->gave->size = 0;
    federation->gave_in = federation->publication;
    aims_add(&federation->gave, group, size); /* without memory who is late gets it once more */
}

enum peer_reach federation_reach(const struct subscriber *subscriber) {
    const struct peer *peer = peer_of(subscriber);
    if (peer->link) return PEER_LINKED;
    return peer_is_away(peer) ? PEER_AWAY : PEER_EXPECTED;
}

bool federation_offer(struct federation *federation, struct subscriber *subscriber, struct message *message,
                      const char *group, size_t size, bool kept, bool again) {
    struct peer *peer = peer_of(subscriber);
    if (!federation_sends(subscriber, message->topic, message->topic_size) || !queues_have_room(peer, message))
        return false;
    bool is_first = !peer->aims;
    if (aims_add(&peer->aims, group, size)) return false;
    federation->aimed += is_first;
    if (again) peer->aims->what |= AIMS_AGAIN;
    peer->aims_kept |= kept;
    return true;
}

struct aims *handout_take(struct federation *federation, struct peer *peer, bool *kept) {
    struct aims *aims = peer->aims;
    federation->aimed -= aims != NULL;
    *kept |= peer->aims_kept;
    peer->aims = NULL;
    peer->aims_kept = false;
    return aims;
}

void federation_settle(struct federation *federation, uint64_t now_ms, struct message *message) {
    federation->now_ms = now_ms;
    for (size_t i = 0; federation->aimed > 0 && i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        bool kept = false;
        struct aims *aims = peer ? handout_take(federation, peer, &kept) : NULL;
        if (aims) sender_publish(federation, peer, message, aims, kept && message->qos > 0);
    }
}

/* ---- it comes back ---- */

bool federation_return(struct federation *federation, uint64_t now_ms, struct message *message, const char *group,
                       size_t size) {
    struct peer_id id;
    federation->now_ms = now_ms;
    memcpy(id.bytes, message->stamp.origin, sizeof id.bytes);
    struct peer *peer = peers_find(federation, &id);
    struct aims *aims = NULL;
    if (!peer || peer_is_away(peer) || aims_add(&aims, group, size)) return false;
    aims->what = AIMS_RETURNED;
    kept_begin(federation, peer);
    return sender_publish(federation, peer, message, aims, message->qos > 0);
}

/* ---- it goes to others ---- */

struct again {
    struct federation *federation;
    struct peer *peer;
    const char *group; /* NULL: all of the entry */
    size_t size;
    bool connected_only, sent; /* only to who is; also what was sent at QoS 1 */
};

static bool may_go(const struct again *again, const struct outbox_entry *entry, uint64_t sequence) {
    if (!entry->message || !entry->aims || (entry->aims->what & AIMS_RETURNED)) return false;
    return sequence >= again->peer->outbox.highest || (again->sent && entry->message->qos == 1);
}

static bool is_meant(const struct again *again, const char *group, size_t size) {
    return !again->group || (size == again->size && memcmp(group, again->group, size) == 0);
}

/* It is for fewer there than before, or for nobody. */
static void end_or_change(struct federation *federation, struct peer *peer, const struct outbox_entry *entry,
                          uint64_t sequence) {
    if (entry->aims->size == 0 && !(entry->aims->what & AIMS_OTHERS)) {
        ledger_given_up(peer, GIVEN_UP_REASSIGNED, 1);
        outbox_give_up(&peer->outbox, sequence);
        return;
    }
    if (entry->aims->size == 0) outbox_unaim(&peer->outbox, sequence);
    kept_changed(federation, peer, sequence);
}

/* To others what they can take, group by group. */
static void give_again(const struct again *again, struct outbox_entry *entry, uint64_t sequence) {
    struct federation *federation = again->federation;
    struct message *message = message_ref(entry->message); /* counted, so this cannot fail */
    const uint32_t before = entry->aims->size;
    const char *group;
    for (size_t at = 0, size; (group = aims_at(entry->aims, at, &size)) != NULL;) {
        if (is_meant(again, group, size) &&
            broker_share_again(federation->broker, federation->now_ms, group, size, again->connected_only, message))
            aims_remove(entry->aims, group, size);
        else
            at += size + 1;
    }
    federation_settle(federation, federation->now_ms, message);
    if (entry->aims->size != before) end_or_change(federation, again->peer, entry, sequence);
    message_unref(message);
}

static void go_through(const struct again *again) {
    const struct outbox *outbox = &again->peer->outbox;
    if (again->federation->ends) return;
    for (uint64_t sequence = outbox->base; outbox->aimed > 0 && sequence < outbox->end; sequence++) {
        struct outbox_entry *entry = outbox_entry(outbox, sequence);
        if (may_go(again, entry, sequence)) give_again(again, entry, sequence);
    }
}

void handout_unlinked(struct federation *federation, struct peer *peer) {
    go_through(&(struct again){.federation = federation, .peer = peer, .connected_only = true});
}

void handout_gone(struct federation *federation, struct peer *peer) {
    go_through(&(struct again){.federation = federation, .peer = peer, .connected_only = true, .sent = true});
}

void handout_ended(struct federation *federation, struct peer *peer, const char *group, size_t size) {
    go_through(
        &(struct again){.federation = federation, .peer = peer, .group = group, .size = size, .sent = !peer->link});
}

bool handout_is_for(const struct federation *federation, const struct peer *peer, const struct outbox_entry *entry) {
    if (entry->aims->what & AIMS_RETURNED) return true;
    const struct message *message = entry->message;
    if ((entry->aims->what & AIMS_OTHERS) && group_matches(federation, peer, message->topic, message->topic_size))
        return true;
    const char *group;
    for (size_t at = 0, size; (group = aims_at(entry->aims, at, &size)) != NULL; at += size + 1)
        if (names_find(&peer->joins, group, size)) return true;
    return false;
}
