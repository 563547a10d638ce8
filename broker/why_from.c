/* Where it is published. */
#include "broker/advert.h"
#include "broker/group.h"
#include "broker/replay.h"
#include "broker/topic.h"
#include "broker/why_path.h"

#include <stdio.h>
#include <string.h>

enum {
    STALLED_MS = 3000,      /* what is on its way is acknowledged after 50 ms, or when it is on a disk */
    JOINS_LOOKED_AT = 4096, /* for their names */
    NAMED_LIMITS_MAX = 300
};

static unsigned long long count_of(uint64_t count) {
    return count;
}

/* ---- what became of earlier ones ---- */

static void add_count(char text[NAMED_LIMITS_MAX], uint64_t count, const char *name) {
    size_t at = strlen(text);
    if (count > 0) snprintf(text + at, NAMED_LIMITS_MAX - at, "%s%llu %s", at > 0 ? ", " : "", count_of(count), name);
}

static void tell_losses(const struct why_path *path, enum why_stage stage) {
    const struct link_info *totals = &path->peer->totals;
    char dropped[NAMED_LIMITS_MAX] = "", given_up[NAMED_LIMITS_MAX] = "";
    for (int i = 0; i < LINK_AT_COUNT; i++)
        add_count(dropped, totals->dropped_at[i], link_limit_name((enum link_at)i));
    for (int i = 0; i < GIVEN_UP_COUNT; i++)
        add_count(given_up, totals->given_up[i], given_up_name((enum given_up)i));
    if (dropped[0] != '\0')
        why_passes(path->steps, stage, "of what was published for %s, on any topic, limits dropped: %s",
                   path->peer->name, dropped);
    if (given_up[0] != '\0')
        why_passes(path->steps, stage, "of what was published for %s, on any topic, was given up: %s", path->peer->name,
                   given_up);
}

/* ---- it is not there ---- */

static void tell_away(const struct why_path *path) {
    const struct peer *peer = path->peer;
    if (peer->lapse_ms != UINT64_MAX && group_matches(path->federation, peer, path->topic, path->size))
        why_passes(path->steps, WHY_MEMBER,
                   "what is published at QoS 1 and 2 waits for %s, for %s from now (limits.link_queue_age_h): "
                   "%llu publications do",
                   peer->name, why_span(peer->lapse_ms - path->federation->now_ms).text,
                   count_of(peer->outbox.messages));
    tell_losses(path, WHY_MEMBER);
    why_stops(path->steps, WHY_MEMBER, "sees %s as down or left", peer->name[0] != '\0' ? peer->name : "it");
}

/* ---- who asks for it ---- */

struct matched {
    const struct peer *peer;
    const struct subscriber *subscriber; /* for its rows that are of no group */
    bool is_there;
};

static void on_row(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscription;
    struct matched *matched = context;
    matched->is_there |= subscriber == matched->subscriber ||
                         (subscriber->kind == SUBSCRIBER_SHARE && group_row_of(subscriber)->peer == matched->peer);
}

static bool has_row(const struct why_path *path) {
    struct matched matched = {.peer = path->peer, .subscriber = &path->peer->rows.subscriber};
    subs_match(path->federation->peer_rows, path->topic, path->size, on_row, &matched);
    return matched.is_there;
}

static void tell_advert(const struct why_path *path) {
    const struct advert *advert =
        (const struct advert *)(const void *)names_find(&path->federation->adverts, path->topic, path->size);
    if (advert)
        why_passes(path->steps, WHY_ADVERT, "the topic was last published to %s ago%s",
                   why_span(path->federation->now_ms - advert->published_ms).text,
                   advert->row.sequence > path->peer->known_sequence ? "; the other may not have heard of it yet" : "");
    else
        why_passes(path->steps, WHY_ADVERT, "nobody has published to the topic lately");
}

/* Joins of the peer that match, the first few: of groups of shared subscriptions, or the others. */
static struct why_list joined(const struct why_path *path, bool shared) {
    struct why_list filters = {.named = 0};
    unsigned looked_at = 0;
    for (const struct named *named = path->peer->joins.first; named && looked_at < JOINS_LOOKED_AT;
         named = named->next, looked_at++) {
        size_t inner = topic_share_split(named->text, named->size);
        if ((inner > 0) == shared && topic_matches(named->text + inner, named->size - inner, path->topic, path->size))
            why_list_add(&filters, named->text, named->size);
    }
    return filters;
}

static bool tell_joined(const struct why_path *path) {
    bool is_joined = group_matches(path->federation, path->peer, path->topic, path->size);
    struct why_list others = joined(path, false), groups = joined(path, true);
    if (is_joined)
        why_passes(path->steps, WHY_JOIN, "%s has joined %s", path->peer->name,
                   others.named > 0 ? why_list_text(&others) : "what matches the topic");
    if (groups.named > 0) /* which member is not known before */
        why_passes(path->steps, WHY_JOIN, "%s has joined %s: one member of all, wherever it is, gets each publication",
                   path->peer->name, why_list_text(&groups));
    return is_joined || groups.named > 0;
}

static void tell_invite(const struct why_path *path) {
    const struct peer *peer = path->peer;
    if (replay_is_declined(peer, path->topic, path->size))
        why_stops(path->steps, WHY_JOIN, "%s was invited and declined: its registry row is wider than what it wants",
                  peer->name);
    else if (peer->hold_bytes >= path->federation->limits.replay_bytes_max)
        why_stops(path->steps, WHY_JOIN, "too much waits already for joins of %s (limits.replay_bytes_max)",
                  peer->name);
    else
        why_passes(path->steps, WHY_JOIN,
                   "%s has not joined yet: what is published waits for its join for %u ms (limits.replay_window_ms)",
                   peer->name, (unsigned)path->federation->limits.replay_window_ms);
}

/* ---- what waits ---- */

static uint64_t unacknowledged(const struct outbox *outbox) {
    return outbox->next - outbox->base;
}

/* It would be dropped to make room (queues.c). */
static bool others_give_way(const struct federation *federation) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        const struct peer *peer = federation->peers[i];
        if (peer && peer_is_away(peer) && peer->outbox.messages > 0) return true;
    }
    return false;
}

/* The limit at which the smallest publication of the topic is dropped; at_qos0: only at that QoS. NULL for none. */
static const char *full_limit(const struct why_path *path, bool *at_qos0) {
    const struct outbox *outbox = &path->peer->outbox;
    const struct broker_limits *limits = &path->federation->limits;
    uint64_t cost = sizeof(struct message) + path->size;
    *at_qos0 = outbox->bytes + cost <= 2 * limits->link_queue_bytes;
    if (outbox->bytes + cost > limits->link_queue_bytes) return "link_queue_bytes";
    *at_qos0 = false;
    bool all_full = path->federation->outbox_bytes + cost > limits->link_queues_bytes;
    return all_full && !others_give_way(path->federation) ? "link_queues_bytes" : NULL;
}

static bool tell_full(const struct why_path *path) {
    bool at_qos0;
    const char *limit = full_limit(path, &at_qos0);
    if (!limit) return false;
    why_stops(path->steps, WHY_QUEUE, "the queue for %s is full (limits.%s): %llu publications wait, and %s is dropped",
              path->peer->name, limit, count_of(path->peer->outbox.messages), at_qos0 ? "QoS 0" : "more");
    return true;
}

static void tell_acknowledged(const struct why_path *path) {
    const struct peer *peer = path->peer;
    const struct outbox *outbox = &peer->outbox;
    uint64_t now_ms = path->federation->now_ms;
    if (unacknowledged(outbox) > 0 && now_ms - peer->unacked_ms >= STALLED_MS)
        why_stops(
            path->steps, WHY_QUEUE,
            "%s has acknowledged nothing for %s: %llu publications are on their way to it and %llu wait; the last "
            "done is number %llu",
            peer->name, why_span(now_ms - peer->unacked_ms).text, count_of(unacknowledged(outbox)),
            count_of(outbox->end - outbox->next), count_of(outbox->base - 1));
    else if (peer->acked_ms > 0)
        why_passes(path->steps, WHY_QUEUE,
                   "%s last acknowledged something %s ago: all up to number %llu is done, %llu are still to come",
                   peer->name, why_span(now_ms - peer->acked_ms).text, count_of(outbox->base - 1),
                   count_of(outbox_count(outbox)));
    else
        why_passes(path->steps, WHY_QUEUE, "nothing has been acknowledged by %s yet; %llu wait", peer->name,
                   count_of(outbox_count(outbox)));
}

static void tell_queue(const struct why_path *path) {
    bool linked = why_is_linked(path->peer);
    if (!linked && path->peer->outbox.messages > 0)
        why_passes(path->steps, WHY_LINK, "%llu publications wait for %s meanwhile",
                   count_of(path->peer->outbox.messages), path->peer->name);
    tell_losses(path, linked ? WHY_QUEUE : WHY_LINK);
    why_tell_link(path);
    if (linked && !tell_full(path)) tell_acknowledged(path);
}

void why_tell_from(const struct why_path *path) {
    if (!why_tell_policy(path, POLICY_EXPORT)) return;
    if (!path->peer) {
        why_stops(path->steps, WHY_MEMBER, "does not know the other broker");
        return;
    }
    why_passes(path->steps, WHY_TOPIC, "the topic may go to %s", path->peer->name);
    if (!path->peer->alive) {
        tell_away(path);
        return;
    }
    tell_advert(path);
    bool is_joined = tell_joined(path);
    if (!is_joined && has_row(path))
        tell_invite(path);
    else if (!is_joined)
        why_stops(path->steps, WHY_ROW, "knows no registry row of %s that asks for the topic", path->peer->name);
    tell_queue(path);
}
