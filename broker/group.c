#include "broker/group.h"

#include "broker/replay.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

/* A filter that a peer joined here. */
struct join {
    struct named named;
    bool stale; /* from an earlier link, not said again yet */
    bool kept;  /* while the peer is away: a session there that outlives its connection asked for it */
};

/* With more joins than this a snapshot may repeat what an earlier one had: harmless, and cheaper than looking. */
enum { JOINS_COMPARED_MAX = 64, LEVEL_COST = 128 };

struct snapshot {
    struct federation *federation;
    struct peer *peer;
    const char *filter;
    size_t size;
    enum group_result result;
};

/* What matches another join of the peer has been sent already, or will be, as it was published. */
static bool joined_otherwise(const struct snapshot *snapshot, const struct message *message) {
    const struct names *joins = &snapshot->peer->joins;
    if (joins->count > JOINS_COMPARED_MAX || snapshot->peer->snapshot_lost) return false;
    for (const struct named *named = joins->first; named; named = named->next) {
        if (topic_matches(named->text, named->size, message->topic, message->topic_size)) return true;
    }
    return false;
}

static bool on_retained(void *context, struct message *message) {
    struct snapshot *snapshot = context;
    struct federation *federation = snapshot->federation;
    struct peer *peer = snapshot->peer;
    /* A broker speaks for its own clients only; what came from another broker is that one's to tell. */
    if (memcmp(message->stamp.origin, federation->id.bytes, sizeof message->stamp.origin) != 0) return true;
    if (message->topic[0] == '$' || federation_private(federation, message->topic, message->topic_size)) return true;
    if (joined_otherwise(snapshot, message) || replay_holds(peer, message)) return true;
    if (outbox_put(&peer->outbox, message, true, 0) != OUTBOX_OK)
        snapshot->result = GROUP_NO_MEMORY;
    else if (peer->outbox.snapshot_bytes > federation->limits.retained_bytes_max + federation->limits.link_queue_bytes)
        snapshot->result = GROUP_OVERLOAD;
    return snapshot->result == GROUP_OK;
}

static enum group_result send_snapshot(struct federation *federation, struct peer *peer, const char *filter,
                                       size_t size) {
    struct snapshot snapshot = {
        .federation = federation, .peer = peer, .filter = filter, .size = size, .result = GROUP_OK};
    retained_match(federation->retained, federation->now_ms, filter, size, true, on_retained, &snapshot);
    return snapshot.result;
}

enum joined_status group_status(const struct federation *federation, const struct peer *peer, const char *filter,
                                size_t size) {
    if (names_find(&peer->joins, filter, size)) return JOINED_YES;
    return federation_filter_is_local(federation, filter, size) ? JOINED_PRIVATE : JOINED_FULL;
}

/* About what a join takes up: its text, twice, and a node of the tree for each level. */
static size_t cost_of(const char *filter, size_t size) {
    size_t cost = sizeof(struct join) + 2 * size + LEVEL_COST;
    for (size_t i = 0; i < size; i++)
        if (filter[i] == '/') cost += LEVEL_COST;
    return cost;
}

static bool has_room(const struct peer *peer, const char *filter, size_t size) {
    return peer->joins.count < PEER_JOINS_MAX && peer->join_bytes + cost_of(filter, size) <= PEER_JOIN_BYTES_MAX;
}

enum group_result group_join(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    static const struct subscription subscription = {.qos = 2, .retain_as_published = true};
    struct join *join = (struct join *)(void *)names_find(&peer->joins, filter, size);
    if (join) {
        join->kept = join->kept && !join->stale; /* it is said anew too */
        join->stale = false;
        return peer->snapshot_lost ? send_snapshot(federation, peer, filter, size) : GROUP_OK;
    }
    if (group_status(federation, peer, filter, size) == JOINED_PRIVATE || !has_room(peer, filter, size))
        return GROUP_OK;
    enum group_result result = send_snapshot(federation, peer, filter, size);
    if (result != GROUP_OK) return result;
    if (replay_joined(federation, peer, filter, size) == OUTBOX_NO_MEMORY) return GROUP_NO_MEMORY;
    join = named_new(sizeof *join, filter, size);
    if (!join) return GROUP_NO_MEMORY;
    if (names_add(&peer->joins, &join->named)) {
        free(join);
        return GROUP_NO_MEMORY;
    }
    if (subs_add(federation->subs, filter, size, &peer->subscriber, &subscription) < 0) {
        names_remove(&peer->joins, &join->named);
        free(join);
        return GROUP_NO_MEMORY;
    }
    peer->join_bytes += cost_of(filter, size);
    return GROUP_OK;
}

static void drop(struct federation *federation, struct peer *peer, struct join *join) {
    subs_remove(federation->subs, join->named.text, join->named.size, &peer->subscriber);
    peer->join_bytes -= cost_of(join->named.text, join->named.size);
    names_remove(&peer->joins, &join->named);
    free(join);
    federation->generation++;
}

void group_keep(struct peer *peer, const char *filter, size_t size, bool kept) {
    struct join *join = (struct join *)(void *)names_find(&peer->joins, filter, size);
    if (join) join->kept = kept;
}

void group_leave(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    struct join *join = (struct join *)(void *)names_find(&peer->joins, filter, size);
    if (join) drop(federation, peer, join);
}

void group_stale(struct federation *federation, struct peer *peer) {
    (void)federation;
    for (struct named *named = peer->joins.first; named; named = named->next)
        ((struct join *)(void *)named)->stale = true;
}

static bool is_unkept(const struct join *join) {
    return !join->kept;
}

static bool is_stale(const struct join *join) {
    return join->stale;
}

static bool is_stale_and_unkept(const struct join *join) {
    return join->stale && !join->kept;
}

static void drop_all(struct federation *federation, struct peer *peer, bool (*ends)(const struct join *join)) {
    struct named *next;
    for (struct named *named = peer->joins.first; named; named = next) {
        next = named->next;
        struct join *join = (struct join *)(void *)named;
        if (ends(join)) drop(federation, peer, join);
    }
}

void group_synced(struct federation *federation, struct peer *peer) {
    drop_all(federation, peer, is_stale_and_unkept);
    peer->snapshot_lost = false;
}

void group_end_stale(struct federation *federation, struct peer *peer) {
    drop_all(federation, peer, is_stale);
}

struct meeting {
    const struct subscriber *subscriber;
    bool met;
};

static void on_met(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscription;
    struct meeting *meeting = context;
    meeting->met |= subscriber == meeting->subscriber;
}

bool group_matches(const struct federation *federation, const struct peer *peer, const char *topic, size_t size) {
    struct meeting meeting = {.subscriber = &peer->subscriber};
    if (peer->joins.count > 0) subs_match(federation->subs, topic, size, on_met, &meeting);
    return meeting.met;
}

void group_lapse(struct federation *federation, struct peer *peer) {
    drop_all(federation, peer, is_unkept);
}

void group_clear(struct federation *federation, struct peer *peer) {
    while (peer->joins.first)
        drop(federation, peer, (struct join *)(void *)peer->joins.first);
    names_deinit(&peer->joins);
}
