#include "broker/queues.h"

#include "broker/ledger.h"

/* NULL if nothing waits for one that is away. */
static struct peer *longest_away(const struct federation *federation) {
    struct peer *longest = NULL;
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (!peer || !peer_is_away(peer) || peer->outbox.messages == 0) continue;
        if (!longest || peer->lapse_ms < longest->lapse_ms) longest = peer;
    }
    return longest;
}

static void give_up(struct federation *federation, struct peer *peer, enum link_at limit) {
    uint64_t dropped = outbox_clear(&peer->outbox);
    peer->snapshot_lost = true;
    ledger_dropped(federation, peer, limit, dropped);
    broker_note_add(federation->broker, BROKER_NOTE_WARNING,
                    "%s: %llu publications that waited for it were dropped: it has been away longest, and limits.%s "
                    "is reached",
                    peer->name, (unsigned long long)dropped,
                    limit == LINK_AT_MEMORY ? "memory_bytes_max" : link_limit_name(limit));
}

static bool has_room(struct federation *federation, const struct peer *peer, const struct message *message) {
    size_t cost = message_cost(message);
    while (federation->outbox_bytes + cost > federation->limits.link_queues_bytes) {
        struct peer *longest = longest_away(federation);
        if (!longest || (peer_is_away(peer) && peer->lapse_ms <= longest->lapse_ms)) return false;
        give_up(federation, longest, LINK_AT_QUEUES_BYTES);
    }
    return true;
}

enum outbox_result queues_put(struct federation *federation, struct peer *peer, struct message *message) {
    if (!has_room(federation, peer, message)) {
        ledger_dropped(federation, peer, LINK_AT_QUEUES_BYTES, 1);
        return OUTBOX_FULL;
    }
    enum outbox_result result = outbox_put(&peer->outbox, message, false, federation->limits.link_queue_bytes);
    if (result == OUTBOX_FULL) ledger_dropped(federation, peer, LINK_AT_QUEUE_BYTES, 1);
    return result;
}

bool queues_have_room(const struct peer *peer, const struct message *message) {
    const struct federation *federation = peer->federation;
    size_t cost = message_cost(message);
    return peer->outbox.bytes + cost <= federation->limits.link_queue_bytes &&
           federation->outbox_bytes + cost <= federation->limits.link_queues_bytes;
}

void queues_relieve(struct federation *federation) {
    struct peer *longest = longest_away(federation);
    if (longest) give_up(federation, longest, LINK_AT_MEMORY);
}
