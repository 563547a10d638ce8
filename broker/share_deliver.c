#include "broker/engine.h"
#include "broker/share.h"

#include <string.h>
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

/* False if nobody here could take it. */
static bool give_here(struct broker *broker, uint64_t now_ms, struct share *share, bool connected,
                      struct message *message) {
    struct share_member *member = connected ? choose_from(broker, &share->connected, share->connected_count, message)
                                            : choose_from(broker, &share->away, share->away_count, message);

    if (member != NULL) deliver(broker, now_ms, member, message);
    return member != NULL;
}

/* The same among all that are connected, or that are not, here and at other brokers. */
static bool give_in_turn(struct broker *broker, uint64_t now_ms, struct share *share, bool connected,
                         struct message *message) {
    struct share_remote *remote =
        share_remote_next(share, connected ? share->connected_count : share->away_count, connected, message);

    if (remote != NULL && share_remote_give(broker, share, remote, message)) return true;
    return give_here(broker, now_ms, share, connected, message) ||
           share_remote_give_any(broker, share, connected, message);
}

/* It came over a link: the broker that sent it chooses among brokers. */
static bool is_foreign(const struct broker *broker, const struct message *message) {
    static const uint8_t nobody[sizeof message->stamp.origin];

    return memcmp(message->stamp.origin, nobody, sizeof nobody) != 0 &&
           memcmp(message->stamp.origin, broker->id, sizeof broker->id) != 0;
}

/* False if nobody could take it. */
static bool give(struct broker *broker, uint64_t now_ms, struct share *share, bool connected_only,
                 struct message *message) {
    bool anywhere = share->remotes != NULL && !is_foreign(broker, message);

    if (anywhere ? give_in_turn(broker, now_ms, share, true, message) : give_here(broker, now_ms, share, true, message))
        return true;
    if (connected_only) return false;
    return anywhere ? give_in_turn(broker, now_ms, share, false, message)
                    : give_here(broker, now_ms, share, false, message);
}

/* Whoever is next drops it, and counts that as it would its own. */
static void drop(struct broker *broker, uint64_t now_ms, struct share *share, struct message *message) {
    struct share_member *member = share->connected != NULL ? share->connected : share->away;

    if (member != NULL) deliver(broker, now_ms, member, message);
}

void share_deliver(struct broker *broker, uint64_t now_ms, struct subscriber *group, struct message *message) {
    struct share *share = (struct share *)(void *)((char *)group - offsetof(struct share, subscriber));

    federation_gave(broker->federation, share->named.text, share->named.size);
    if (!give(broker, now_ms, share, false, message)) drop(broker, now_ms, share, message);
}

bool share_deliver_here(struct broker *broker, uint64_t now_ms, struct share *share, struct message *message) {
    if (share->connected_count + share->away_count == 0) return false;
    if (!give_here(broker, now_ms, share, true, message) && !give_here(broker, now_ms, share, false, message))
        drop(broker, now_ms, share, message);
    return true;
}

bool broker_share_again(struct broker *broker, uint64_t now_ms, const char *group, size_t size, bool connected_only,
                        struct message *message) {
    struct share *share = share_find(broker, group, size);

    return share != NULL && give(broker, now_ms, share, connected_only, message);
}

static bool ring_lasts(const struct share_member *ring, uint32_t count) {
    for (uint32_t i = 0; i < count; i++, ring = ring->next)
        if (i == ASKED_MAX || (ring->place.session->durable && ring->subscription.qos > 0)) return true;
    return false;
}

bool share_lasts(const struct subscriber *group) {
    const struct share *share =
        (const struct share *)(const void *)((const char *)group - offsetof(struct share, subscriber));

    return ring_lasts(share->connected, share->connected_count) || ring_lasts(share->away, share->away_count) ||
           share_remote_lasts(share);
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
    if (share->remotes != NULL) federation_settle(broker->federation, now_ms, message);
    note_answer(broker, share, message, taken);
    return taken;
}

/* Nobody here is in the group any more: whom it is for now is to be said where it came from. */
static bool give_back(struct broker *broker, uint64_t now_ms, const struct share *share, struct message *message) {
    return share->connected_count + share->away_count == 0 && is_foreign(broker, message) && !broker->stopping &&
           federation_return(broker->federation, now_ms, message, share->named.text, share->named.size);
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
        if (give_if_free(broker, now_ms, share, reason == SHARE_DETACHED, outgoing->message) ||
            (reason == SHARE_ENDED && give_back(broker, now_ms, share, outgoing->message)))
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
