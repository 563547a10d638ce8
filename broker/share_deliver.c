#include "broker/engine.h"
#include "broker/share.h"

#include <utlist.h>

/* So many members are asked at most, so that a large group whose members are all busy costs no walk through it. */
enum { ASKED_MAX = 32 };
/* So often in a row it may be that only the size of a publication keeps all members from it. */
enum { TRIES_MAX = 64 };

static uint8_t qos_of(const struct share_member *member, const struct message *message) {
    return member->subscription.qos < message->qos ? member->subscription.qos : message->qos;
}

/* How the message would go to this member. */
static struct delivery delivery_of(struct share_member *member, const struct message *message) {
    return (struct delivery){.qos = qos_of(member, message),
                             .retain = message->retain && member->subscription.retain_as_published,
                             .identifiers = &member->subscription.identifier,
                             .identifier_count = member->subscription.identifier != 0,
                             .member = member};
}

/* The one of the ring to get it: the first that it can be sent to, else of those that can keep it the one with the
 * shortest queue; NULL if there is none. The ring turns, so that the next publication begins with the next member. */
static struct share_member *choose_from(const struct broker *broker, struct share_member **ring, uint32_t count,
                                        const struct message *message) {
    struct share_member *best = NULL;

    for (uint32_t i = 0; i < count && i < ASKED_MAX; i++) {
        struct share_member *member = *ring;
        const struct session *session = member->place.session;
        struct delivery delivery = delivery_of(member, message);
        enum session_readiness readiness = session_readiness(broker, session, message, &delivery);
        *ring = member->next;
        if (broker->stopping && session->expiry_s == 0) continue; /* it is the next to go */
        if (readiness == SESSION_SENDS) return member;
        if (readiness == SESSION_QUEUES && (best == NULL || session->queue_count < best->place.session->queue_count))
            best = member;
    }
    return best;
}

static void deliver(struct broker *broker, uint64_t now_ms, struct share_member *member, struct message *message) {
    struct delivery delivery = delivery_of(member, message);

    session_deliver(broker, now_ms, member->place.session, message, &delivery);
}

/* False if nobody could take it. */
static bool give(struct broker *broker, uint64_t now_ms, struct share *share, bool connected_only,
                 struct message *message) {
    struct share_member *member = choose_from(broker, &share->connected, share->connected_count, message);

    if (member == NULL && !connected_only) member = choose_from(broker, &share->away, share->away_count, message);
    if (member != NULL) deliver(broker, now_ms, member, message);
    return member != NULL;
}

/* Whoever is next drops it, and counts that as it would its own. */
static void drop(struct broker *broker, uint64_t now_ms, struct share *share, struct message *message) {
    struct share_member *member = share->connected != NULL ? share->connected : share->away;

    if (member != NULL) deliver(broker, now_ms, member, message);
}

void share_deliver(struct broker *broker, uint64_t now_ms, struct subscriber *group, struct message *message) {
    struct share *share = (struct share *)(void *)((char *)group - offsetof(struct share, subscriber));

    if (!give(broker, now_ms, share, false, message)) drop(broker, now_ms, share, message);
}

static bool ring_lasts(const struct share_member *ring, uint32_t count) {
    for (uint32_t i = 0; i < count; i++, ring = ring->next)
        if (i == ASKED_MAX || (ring->place.session->durable && ring->subscription.qos > 0)) return true;
    return false;
}

bool share_lasts(const struct subscriber *group) {
    const struct share *share =
        (const struct share *)(const void *)((const char *)group - offsetof(struct share, subscriber));

    return ring_lasts(share->connected, share->connected_count) || ring_lasts(share->away, share->away_count);
}

/* In this walk all members have refused what was no larger, or so much that another try is not worth its time. */
static bool is_busy(const struct broker *broker, const struct share *share, const struct message *message) {
    uint32_t rounds = (share->connected_count + share->away_count) / ASKED_MAX + 1;

    if (share->walk != broker->share_walk) return false;
    return share->refused_count >= rounds + TRIES_MAX ||
           (share->refused_count >= rounds && message_cost(message) >= share->refused_size);
}

static void note_answer(const struct broker *broker, struct share *share, const struct message *message, bool taken) {
    if (taken || share->walk != broker->share_walk) {
        share->refused_count = 0;
        share->refused_size = 0;
    }
    share->walk = broker->share_walk;
    if (taken) return;
    share->refused_count++;
    if (message_cost(message) > share->refused_size) share->refused_size = message_cost(message);
}

/* False if nobody could take it. */
static bool give_if_free(struct broker *broker, uint64_t now_ms, struct share *share, bool connected_only,
                         struct message *message) {
    bool taken;

    if (is_busy(broker, share, message)) return false;
    taken = give(broker, now_ms, share, connected_only, message);
    note_answer(broker, share, message, taken);
    return taken;
}

static void pass_on_from(struct broker *broker, uint64_t now_ms, struct session *session, struct outgoing *first,
                         const struct share_member *member, enum share_reason reason) {
    struct outgoing *outgoing, *next;

    for (outgoing = first; outgoing != NULL; outgoing = next) {
        struct share *share;
        next = outgoing->next;
        if (outgoing->member == NULL || (member != NULL && outgoing->member != member)) continue;
        if (outgoing->sent && (reason != SHARE_ENDED || outgoing->qos == 2)) continue;
        share = outgoing->member->place.share;
        if (give_if_free(broker, now_ms, share, reason == SHARE_DETACHED, outgoing->message))
            session_outgoing_done(broker, session, outgoing);
        else if (reason == SHARE_ENDED && !broker->stopping)
            drop(broker, now_ms, share, outgoing->message);
    }
}

void share_pass_on(struct broker *broker, uint64_t now_ms, struct session *session, const struct share_member *member,
                   enum share_reason reason) {
    broker->share_walk++;
    pass_on_from(broker, now_ms, session, session->inflight, member, reason);
    pass_on_from(broker, now_ms, session, session->queue, member, reason);
}
