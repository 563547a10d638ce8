#include "broker/group.h"

#include "broker/compare.h"
#include "broker/handout.h"
#include "broker/kept.h"
#include "broker/replay.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <string.h>

/* A filter that a peer joined here, or a group of a shared subscription: its members there. */
struct join {
    struct named named;
    size_t inner; /* of a group: where its filter begins */
    uint32_t connected, away;
    bool stale;            /* from an earlier link, not said again yet */
    enum keep_level level; /* for how long it is kept while the peer is away */
    enum keep_level said;  /* on this link, so far */
    uint32_t mark;         /* of the comparison that it waits for, or has waited for (compare.h) */
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

bool group_is_ours(const struct federation *federation, const struct message *message) {
    return memcmp(message->stamp.origin, federation->id.bytes, sizeof message->stamp.origin) == 0;
}

enum group_result group_send_retained(struct federation *federation, struct peer *peer, struct message *message) {
    if (outbox_put(&peer->outbox, message, true, 0) != OUTBOX_OK) return GROUP_NO_MEMORY;
    compare_sent(peer->link, message);
    return peer->outbox.snapshot_bytes <= federation->limits.retained_bytes_max + federation->limits.link_queue_bytes
               ? GROUP_OK
               : GROUP_OVERLOAD;
}

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
    if (!group_is_ours(federation, message)) return true;
    if (!policy_lets(&peer->rules, POLICY_EXPORT, message->topic, message->topic_size)) return true;
    if (joined_otherwise(snapshot, message) || replay_holds(peer, message)) return true;
    snapshot->result = group_send_retained(federation, peer, message);
    return snapshot->result == GROUP_OK;
}

/* Groups get none. */
static enum group_result send_snapshot(struct federation *federation, struct peer *peer, const char *filter,
                                       size_t size) {
    if (topic_is_shared(filter, size)) return GROUP_OK;
    struct snapshot snapshot = {
        .federation = federation, .peer = peer, .filter = filter, .size = size, .result = GROUP_OK};
    retained_match(federation->retained, federation->now_ms, filter, size, true, on_retained, &snapshot);
    return snapshot.result;
}

enum joined_status group_status(const struct peer *peer, const char *filter, size_t size) {
    if (names_find(&peer->joins, filter, size)) return JOINED_YES;
    size_t inner = topic_share_split(filter, size);
    return policy_lets(&peer->rules, POLICY_EXPORT, filter + inner, size - inner) ? JOINED_FULL : JOINED_PRIVATE;
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

static struct join *join_find(const struct peer *peer, const char *filter, size_t size) {
    return (struct join *)(void *)names_find(&peer->joins, filter, size);
}

/* Into the tree, or at another level than before: with a QoS above 0 if it is kept (route.c). -1 when memory is short.
 */
static int enter(struct federation *federation, struct peer *peer, const struct join *join) {
    const struct subscription subscription = {.qos = join->level == KEEP_NOT ? 0 : 2, .retain_as_published = true};
    const struct share_members members = {
        .connected = join->connected, .away = join->away, .kept = join->level != KEEP_NOT};
    if (join->inner > 0)
        return broker_share_set(federation->broker, join->named.text, join->named.size, &peer->subscriber, &members);
    return subs_add(federation->subs, join->named.text, join->named.size, &peer->subscriber, &subscription) < 0 ? -1
                                                                                                                : 0;
}

static void depart(struct federation *federation, struct peer *peer, const struct join *join) {
    if (join->inner > 0)
        broker_share_unset(federation->broker, join->named.text, join->named.size, &peer->subscriber);
    else
        subs_remove(federation->subs, join->named.text, join->named.size, &peer->subscriber);
}

static void set_level(struct federation *federation, struct peer *peer, struct join *join, enum keep_level level) {
    enum keep_level before = join->level;
    if (level == before) return;
    join->level = level;
    if ((level == KEEP_NOT) != (before == KEEP_NOT) && enter(federation, peer, join) < 0) {
        join->level = before;
        return;
    }
    if (level == KEEP_NOT)
        kept_leave(federation, peer, join->named.text, join->named.size);
    else
        kept_join(federation, peer, join->named.text, join->named.size, level);
}

/* NULL when memory is short. */
static struct join *join_new(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                             enum keep_level level) {
    struct join *join = named_new(sizeof *join, filter, size);
    if (!join) return NULL;
    join->inner = topic_share_split(filter, size);
    join->connected = 1; /* until it says how many there are */
    join->level = level;
    if (names_add(&peer->joins, &join->named)) {
        free(join);
        return NULL;
    }
    if (enter(federation, peer, join) < 0) {
        names_remove(&peer->joins, &join->named);
        free(join);
        return NULL;
    }
    peer->join_bytes += cost_of(filter, size);
    return join;
}

bool group_lacks(const struct peer *peer, const char *filter, size_t size) {
    return peer->snapshot_lost || group_status(peer, filter, size) == JOINED_FULL;
}

static void set_mark(struct federation *federation, struct peer *peer, struct join *join, uint32_t mark) {
    uint32_t before = join->mark;
    join->mark = mark;
    if (before != mark) compare_left(federation, peer->link, before);
}

static enum group_result join_again(struct federation *federation, struct peer *peer, struct join *join,
                                    uint32_t mark) {
    if (join->stale && peer->stale_ms != UINT64_MAX) set_level(federation, peer, join, KEEP_NOT);
    join->stale = false;
    if (mark != 0) set_mark(federation, peer, join, mark);
    if (mark != 0 || !peer->snapshot_lost) return GROUP_OK;
    return send_snapshot(federation, peer, join->named.text, join->named.size);
}

enum group_result group_join(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                             uint32_t mark) {
    struct join *join = join_find(peer, filter, size);
    if (join) return join_again(federation, peer, join, mark);
    if (group_status(peer, filter, size) == JOINED_PRIVATE || !has_room(peer, filter, size)) return GROUP_OK;
    enum group_result result = mark == 0 ? send_snapshot(federation, peer, filter, size) : GROUP_OK;
    if (result != GROUP_OK) return result;
    if (replay_joined(federation, peer, filter, size) == OUTBOX_NO_MEMORY) return GROUP_NO_MEMORY;
    join = join_new(federation, peer, filter, size, KEEP_NOT);
    if (!join) return GROUP_NO_MEMORY;
    join->mark = mark;
    return GROUP_OK;
}

void group_marked(const struct peer *peer, uint32_t mark, struct selection *joins) {
    for (const struct named *named = peer->joins.first; named; named = named->next) {
        if (((const struct join *)(const void *)named)->mark == mark) selection_add(joins, named->text, named->size);
    }
}

static void drop(struct federation *federation, struct peer *peer, struct join *join) {
    set_mark(federation, peer, join, 0);
    if (join->level != KEEP_NOT) kept_leave(federation, peer, join->named.text, join->named.size);
    depart(federation, peer, join);
    peer->join_bytes -= cost_of(join->named.text, join->named.size);
    names_remove(&peer->joins, &join->named);
    federation->generation++;
    if (join->inner > 0) handout_ended(federation, peer, join->named.text, join->named.size);
    free(join);
}

void group_keep(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                enum keep_level level) {
    struct join *join = join_find(peer, filter, size);
    if (!join) return;
    join->said = level;
    set_level(federation, peer, join, level);
}

void group_members(struct federation *federation, struct peer *peer, const struct frame_members *members) {
    struct join *join = join_find(peer, members->group, members->size);
    if (!join || join->inner == 0) return;
    join->connected = members->connected;
    join->away = members->away;
    enter(federation, peer, join); /* it is there: needs no memory */
}

void group_leave(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    struct join *join = join_find(peer, filter, size);
    if (join) drop(federation, peer, join);
}

/* Until it says who is in a group, somebody may be, but others come first. */
static void doubt_members(struct federation *federation, struct peer *peer, struct join *join) {
    join->away = join->connected + join->away > 0;
    join->connected = 0;
    enter(federation, peer, join); /* it is there: needs no memory */
}

void group_stale(struct federation *federation, struct peer *peer) {
    for (struct named *named = peer->joins.first; named; named = named->next) {
        struct join *join = (struct join *)(void *)named;
        join->stale = true;
        join->said = KEEP_NOT;
        if (join->inner > 0) doubt_members(federation, peer, join);
    }
}

/* Drops those, or those alone that are stale, that are kept for less than this level. */
static void drop_below(struct federation *federation, struct peer *peer, bool stale, unsigned level) {
    struct named *next;
    for (struct named *named = peer->joins.first; named; named = next) {
        next = named->next;
        struct join *join = (struct join *)(void *)named;
        if (join->level < level && (join->stale || !stale)) drop(federation, peer, join);
    }
}

void group_synced(struct federation *federation, struct peer *peer) {
    drop_below(federation, peer, true, KEEP_RUN);
    for (struct named *named = peer->joins.first; named; named = named->next) {
        struct join *join = (struct join *)(void *)named;
        if (!join->stale) set_level(federation, peer, join, join->said);
    }
    peer->snapshot_lost = false;
}

void group_end_stale(struct federation *federation, struct peer *peer) {
    drop_below(federation, peer, true, KEEP_LASTING + 1);
}

void group_end_unexported(struct federation *federation, struct peer *peer) {
    struct named *next;
    for (struct named *named = peer->joins.first; named; named = next) {
        next = named->next;
        struct join *join = (struct join *)(void *)named;
        if (!policy_lets(&peer->rules, POLICY_EXPORT, named->text + join->inner, named->size - join->inner))
            drop(federation, peer, join);
    }
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

void group_lapse(struct federation *federation, struct peer *peer, enum keep_level level) {
    drop_below(federation, peer, false, level);
}

int group_restore(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                  enum keep_level level) {
    if (join_find(peer, filter, size) || !has_room(peer, filter, size)) return 1;
    struct join *join = join_new(federation, peer, filter, size, level);
    if (!join) return -1;
    join->stale = true;
    peer->snapshot_lost = true; /* what was on its way and had not to last is not known any more */
    return 0;
}

void group_dump(struct federation *federation, struct peer *peer) {
    for (struct named *named = peer->joins.first; named; named = named->next) {
        const struct join *join = (const struct join *)(const void *)named;
        if (join->level != KEEP_NOT) kept_join(federation, peer, named->text, named->size, join->level);
    }
}

void group_clear(struct federation *federation, struct peer *peer) {
    while (peer->joins.first)
        drop(federation, peer, (struct join *)(void *)peer->joins.first);
    names_deinit(&peer->joins);
}
