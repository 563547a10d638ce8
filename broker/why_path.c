#include "broker/why_path.h"

#include <string.h>

const char *why_unlinked(const struct peer *peer) {
    return peer->undialled_why[0] != '\0' ? peer->undialled_why : peer->unlinked_why;
}

static const char *dial_of(const struct why_path *path) {
    const struct peer *peer = path->peer;
    if (peer->attempt) return "it is being dialled";
    if (!path->federation->token) return "this broker has no token to show";
    if (peer->dial_ms > path->federation->now_ms) return "it is dialled again soon";
    return "it is dialled when there is something to exchange";
}

/* Nothing has called for it, apart from who asks why. */
static bool is_not_needed(const struct why_path *path) {
    const struct peer *peer = path->peer;
    return path->federation->token && peer->undialled_why[0] == '\0' && peer->want_count == 0 &&
           peer->joins.count == 0 && outbox_count(&peer->outbox) == 0 && !peer->holds[0];
}

static void tell_down(const struct why_path *path) {
    const struct peer *peer = path->peer;
    bool failed = peer->undialled_why[0] != '\0';
    if (peer->unlinked_ms > 0)
        why_stops(path->steps, WHY_LINK, "the link with %s has been down for %s (%s)%s%s; %s", peer->name,
                  why_span(path->federation->now_ms - peer->unlinked_ms).text, peer->unlinked_why,
                  failed ? "; the last dial: " : "", peer->undialled_why, dial_of(path));
    else
        why_stops(path->steps, WHY_LINK, "there has been no link with %s yet%s%s; %s", peer->name,
                  failed ? "; the last dial: " : "", peer->undialled_why, dial_of(path));
}

void why_tell_link(const struct why_path *path) {
    const struct peer *peer = path->peer;
    if (why_is_linked(peer))
        why_passes(path->steps, WHY_LINK, "the link with %s has been up for %s", peer->name,
                   why_span(path->federation->now_ms - peer->link->up_since_ms).text);
    else if (is_not_needed(path))
        why_passes(path->steps, WHY_LINK, "has no link with %s, and makes one when there is something to exchange",
                   peer->name);
    else
        tell_down(path);
}

static void tell_unlisted(const struct why_path *path, enum policy_kind way, const char *section, const char *peer) {
    const char *dot = peer[0] != '\0' ? "." : "";
    if (way == POLICY_EXPORT)
        why_stops(path->steps, WHY_POLICY, "policy: no filter of %s%s%sexport here matches the topic", section, peer,
                  dot);
    else
        why_stops(path->steps, WHY_POLICY, "policy: no filter of %s%s%simport here matches the topic", section, peer,
                  dot);
}

bool why_tell_policy(const struct why_path *path, enum policy_kind way) {
    const char *peer = path->peer && path->peer->name[0] != '\0' ? path->peer->name : NULL;
    switch (policy_verdict(path->federation->policy, peer, way, path->topic, path->size)) {
    case POLICY_LETS: return true;
    case POLICY_STAYS: why_stops(path->steps, WHY_TOPIC, "topics that start with $ never leave their broker"); break;
    case POLICY_IS_PRIVATE:
        why_stops(path->steps, WHY_TOPIC, "the topic is private here (federation.private_topics)%s",
                  way == POLICY_IMPORT ? ", so that nobody else's is taken" : "");
        break;
    case POLICY_NOT_FOR_OTHERS: tell_unlisted(path, way, "federation.", ""); break;
    case POLICY_NOT_FOR_PEER: tell_unlisted(path, way, "federation.peers.", peer); break;
    }
    return false;
}

static const struct peer *peer_of(const struct federation *federation, const uint8_t id[16]) {
    struct peer_id peer;
    memcpy(peer.bytes, id, sizeof peer.bytes);
    return peers_find(federation, &peer);
}

void why_tell(const struct federation *federation, const struct inquiry *inquiry, struct why_steps *steps) {
    bool from_here = memcmp(inquiry->from, federation->id.bytes, sizeof inquiry->from) == 0,
         to_here = memcmp(inquiry->to, federation->id.bytes, sizeof inquiry->to) == 0;
    struct why_path path = {
        .federation = federation, .topic = inquiry->topic, .size = inquiry->topic_size, .steps = steps};
    if (from_here && to_here) {
        why_tell_here(&path);
    } else if (from_here) {
        path.peer = peer_of(federation, inquiry->to);
        why_tell_from(&path);
    } else if (to_here) {
        path.peer = peer_of(federation, inquiry->from);
        why_tell_to(&path);
    }
}
