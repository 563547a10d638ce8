#include "broker/engine.h"
#include "broker/share.h"

#include <stdlib.h>
#include <utlist.h>

static struct share_remote *remote_find(const struct share *share, const struct subscriber *peer) {
    struct share_remote *remote;

    DL_FOREACH(share->remotes, remote) if (remote->peer == peer) return remote;
    return NULL;
}

int broker_share_set(struct broker *broker, const char *group, size_t size, struct subscriber *peer,
                     const struct share_members *members) {
    struct share *share = share_take(broker, group, size);
    struct share_remote *remote = share != NULL ? remote_find(share, peer) : NULL;

    if (share == NULL) return -1;
    if (remote != NULL) {
        remote->members = *members;
        share_release(share); /* this one's is enough */
        return 0;
    }
    remote = calloc(1, sizeof *remote);
    if (remote == NULL || share_enter(share) != 0) {
        free(remote);
        share_release(share);
        return -1;
    }
    remote->peer = peer;
    remote->members = *members;
    DL_APPEND(share->remotes, remote);
    return 0;
}

void broker_share_unset(struct broker *broker, const char *group, size_t size, struct subscriber *peer) {
    struct share *share = share_find(broker, group, size);
    struct share_remote *remote = share != NULL ? remote_find(share, peer) : NULL;

    if (remote == NULL) return;
    DL_DELETE(share->remotes, remote);
    free(remote);
    share_leave_if_empty(share);
    share_release(share);
}

struct share_members broker_share_members(const struct broker *broker, const char *group, size_t size) {
    const struct share *share = share_find(broker, group, size);

    if (share == NULL) return (struct share_members){0};
    return (struct share_members){.connected = share->connected_count, .away = share->away_count};
}

/* How many of its members there count now: at a broker with a link those that are connected, or else those that are
 * not; what waits for a broker without one waits like that for a member without a connection. */
static uint32_t weight(const struct broker *broker, const struct share_remote *remote, bool connected_only,
                       const struct message *message) {
    const struct share_members *members = &remote->members;
    uint32_t all = members->connected + members->away < UINT16_MAX ? members->connected + members->away : UINT16_MAX;

    if (remote->peer == broker->share_returner) return 0;
    switch (federation_reach(remote->peer)) {
    case PEER_LINKED: return connected_only ? (members->connected < all ? members->connected : all) : all;
    case PEER_EXPECTED: return connected_only ? 0 : all;
    case PEER_AWAY: break;
    }
    return connected_only || !members->kept || message->qos == 0 ? 0 : all;
}

/* Smooth weighted round robin: each gets its part, and not all of it at once. */
struct share_remote *share_remote_next(struct share *share, uint32_t weight_here, bool connected_only,
                                       const struct message *message) {
    struct share_remote *remote, *next = NULL;
    int64_t total = weight_here, highest = INT64_MIN;

    if (weight_here > 0) highest = share->turn += weight_here;
    DL_FOREACH(share->remotes, remote) {
        uint32_t its = weight(share->broker, remote, connected_only, message);
        if (its == 0) continue;
        total += its;
        remote->turn += its;
        if (remote->turn <= highest) continue;
        highest = remote->turn;
        next = remote;
    }
    *(next != NULL ? &next->turn : &share->turn) -= total;
    return next;
}

bool share_remote_give(struct broker *broker, struct share *share, struct share_remote *remote,
                       struct message *message) {
    return federation_offer(broker->federation, remote->peer, message, share->named.text, share->named.size,
                            remote->members.kept, broker->share_returner != NULL);
}

bool share_remote_give_any(struct broker *broker, struct share *share, bool connected_only, struct message *message) {
    struct share_remote *remote;

    DL_FOREACH(share->remotes, remote) {
        if (weight(broker, remote, connected_only, message) > 0 && share_remote_give(broker, share, remote, message))
            return true;
    }
    return false;
}

bool share_remote_lasts(const struct share *share) {
    const struct share_remote *remote;

    DL_FOREACH(share->remotes, remote)
    if (remote->members.kept && remote->members.connected + remote->members.away > 0) return true;
    return false;
}
