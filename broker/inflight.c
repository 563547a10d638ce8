#include "broker/session.h"

#include <stdlib.h>
#include <utlist.h>

/* Up to this many a walk finds the packet id; it is the first as a rule. Beyond, the ids are indexed, so that a client
 * with a large window may acknowledge in any order. */
enum { WALK_MAX = 32 };

/* Ids are given out in turn, so their low bits spread them evenly. */
static struct outgoing **bucket_of(const struct session *session, uint16_t packet_id) {
    return &session->by_id[packet_id & (session->by_id_size - 1)];
}

static void link_id(struct session *session, struct outgoing *outgoing) {
    struct outgoing **bucket = bucket_of(session, outgoing->packet_id);

    outgoing->chain = *bucket;
    *bucket = outgoing;
}

static void unlink_id(struct session *session, const struct outgoing *outgoing) {
    struct outgoing **place = bucket_of(session, outgoing->packet_id);

    while (*place != outgoing)
        place = &(*place)->chain;
    *place = outgoing->chain;
}

/* An index that cannot be made or grow only makes it slower. */
static void grow(struct session *session) {
    uint32_t size = session->by_id_size ? session->by_id_size * 2 : 2 * WALK_MAX;
    struct outgoing **by_id = calloc(size, sizeof(struct outgoing *));

    if (by_id == NULL) return;
    free(session->by_id);
    session->by_id = by_id;
    session->by_id_size = size;
    for (struct outgoing *outgoing = session->inflight; outgoing != NULL; outgoing = outgoing->next)
        link_id(session, outgoing);
}

void session_inflight_add(struct session *session, struct outgoing *outgoing) {
    DL_APPEND(session->inflight, outgoing);
    session->inflight_count++;
    if (session->by_id != NULL) link_id(session, outgoing);
    if (session->inflight_count > (session->by_id_size ? session->by_id_size : WALK_MAX)) grow(session);
}

void session_inflight_remove(struct session *session, struct outgoing *outgoing) {
    if (outgoing->in_air) session->in_air--;
    if (session->resend == outgoing) session->resend = outgoing->next;
    if (session->by_id != NULL) unlink_id(session, outgoing);
    DL_DELETE(session->inflight, outgoing);
    session->inflight_count--;
    if (session->inflight_count > 0) return;
    free(session->by_id);
    session->by_id = NULL;
    session->by_id_size = 0;
}

struct outgoing *session_inflight(const struct session *session, uint16_t packet_id) {
    struct outgoing *outgoing = session->by_id != NULL ? *bucket_of(session, packet_id) : session->inflight;

    while (outgoing != NULL && outgoing->packet_id != packet_id)
        outgoing = session->by_id != NULL ? outgoing->chain : outgoing->next;
    return outgoing;
}
