#include "broker/peering.h"

#include "broker/barrier.h"
#include "broker/border.h"
#include "broker/carry.h"
#include "broker/link.h"
#include "broker/rows.h"
#include "broker/unwanted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static struct federation *enter(struct broker *broker, uint64_t now_ms) {
    struct federation *federation = broker_federation(broker);
    federation->now_ms = now_ms;
    return federation;
}

/* ---- what the registry and the membership say ---- */

void broker_peer_alive(struct broker *broker, uint64_t now_ms, const struct peer_id *id, const char *name,
                       uint64_t epoch) {
    struct federation *federation = enter(broker, now_ms);
    struct peer *peer = memcmp(id, &federation->id, sizeof *id) == 0 ? NULL : peers_make(federation, id);
    if (peer)
        peer_alive(federation, peer, name, epoch);
    else
        broker_note_add(broker, BROKER_NOTE_WARNING,
                        "no room for %s among the peers (peers_max, memory), or it is this broker itself", name);
}

void broker_peer_gone(struct broker *broker, uint64_t now_ms, const struct peer_id *id) {
    struct federation *federation = enter(broker, now_ms);
    struct peer *peer = peers_find(federation, id);
    if (peer) peer_gone(federation, peer);
}

void broker_peer_row(struct broker *broker, uint64_t now_ms, const struct peer_id *id, enum row_kind kind,
                     const char *filter, size_t filter_size, bool active) {
    struct federation *federation = enter(broker, now_ms);
    struct peer *peer = peers_find(federation, id);
    if (peer && peer->alive) peer_row(federation, peer, kind, filter, filter_size, active);
}

void broker_peer_knows(struct broker *broker, uint64_t now_ms, const struct peer_id *id, uint64_t sequence) {
    struct federation *federation = enter(broker, now_ms);
    struct peer *peer = peers_find(federation, id);
    if (!peer || sequence <= peer->known_sequence) return;
    peer->known_sequence = sequence;
    barrier_check_all(federation);
}

void broker_set_epoch(struct broker *broker, uint64_t now_ms, uint64_t epoch) {
    struct federation *federation = enter(broker, now_ms);
    struct link *link, *next;
    if (epoch <= federation->epoch) return;
    federation->epoch = epoch;
    DL_FOREACH_SAFE(federation->links, link, next) {
        link_end(federation, link, BYE_CLOSING, "a later epoch of this broker begins");
    }
}

bool broker_set_policy(struct broker *broker, uint64_t now_ms, const struct policy *policy) {
    return border_set(enter(broker, now_ms), policy);
}

bool broker_next_row(struct broker *broker, struct broker_row_change *change) {
    return rows_next(broker_federation(broker), change);
}

bool broker_next_unwanted(struct broker *broker, struct broker_unwanted *unwanted) {
    return unwanted_next(broker_federation(broker), unwanted);
}

uint64_t broker_wanted(const struct broker *broker, enum row_kind kind) {
    return broker_federation(broker)->wanted[kind == ROW_NEWPUB ? 0 : 1];
}

void broker_row_sequenced(struct broker *broker, uint64_t now_ms, uint64_t ticket, uint64_t sequence) {
    rows_sequenced(enter(broker, now_ms), ticket, sequence);
}

/* ---- links ---- */

bool broker_next_dial(struct broker *broker, uint64_t now_ms, struct peer_id *id) {
    struct federation *federation = enter(broker, now_ms);
    for (size_t i = 0; federation->dial_due && i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (!peer || !peer_wants_dial(federation, peer)) continue;
        peer->dial_ms = now_ms + BACKOFF_MIN_MS; /* whatever the caller makes of it, he is not asked again at once */
        *id = peer->id;
        return true;
    }
    federation->dial_due = false;
    return false;
}

void broker_dial_failed(struct broker *broker, uint64_t now_ms, const struct peer_id *id) {
    struct federation *federation = enter(broker, now_ms);
    struct peer *peer = peers_find(federation, id);
    federation->counters.dials_failed++;
    if (!peer) return;
    snprintf(peer->undialled_why, sizeof peer->undialled_why,
             "not dialled: it has no address yet, or refuses the token of this broker");
    peer_back_off(federation, peer);
}

/* Dials to whoever answers that are still under way. */
static size_t seeking(const struct federation *federation) {
    const struct link *link;
    size_t count = 0;
    DL_FOREACH(federation->links, link) {
        count += link->dialled && !link->peer && link->state == LINK_DIALLING;
    }
    return count;
}

broker_handle broker_link_open(struct broker *broker, uint64_t now_ms, bool dialled, const struct peer_id *id) {
    struct federation *federation = enter(broker, now_ms);
    struct peer *peer = dialled && id ? peers_find(federation, id) : NULL;
    if (dialled && id && (!peer || peer->attempt || peer->link)) return 0;
    if (dialled && !id && seeking(federation) >= CARRY_SEEK_MAX) return 0;
    return link_open(federation, dialled, peer);
}

void broker_link_ready(struct broker *broker, uint64_t now_ms, broker_handle handle, const uint8_t key_thumbprint[32]) {
    struct federation *federation = enter(broker, now_ms);
    struct link *link = link_find(federation, handle);
    if (link) link_ready(federation, link, key_thumbprint);
}

void broker_link_input(struct broker *broker, uint64_t now_ms, broker_handle handle, const uint8_t *bytes, size_t size,
                       bool final) {
    struct federation *federation = enter(broker, now_ms);
    struct link *link = link_find(federation, handle);
    if (link) link_input(federation, link, bytes, size, final);
}

void broker_link_closed(struct broker *broker, uint64_t now_ms, broker_handle handle) {
    struct federation *federation = enter(broker, now_ms);
    struct link *link = link_find(federation, handle);
    if (link) link_closed(federation, link);
}

bool broker_next_link(struct broker *broker, broker_handle *handle) {
    struct federation *federation = broker_federation(broker);
    struct link *link = federation->ready;
    if (!link) return false;
    DL_DELETE2(federation->ready, link, ready_prev, ready_next);
    link->is_ready = false;
    *handle = link->handle;
    return true;
}

bool broker_link_output(struct broker *broker, uint64_t now_ms, broker_handle handle, struct broker_span *frame) {
    struct federation *federation = enter(broker, now_ms);
    struct link *link = link_find(federation, handle);
    if (!link) return false;
    if (!link->out_given) link->out_given = sender_next(federation, link);
    if (!link->out_given) return false;
    *frame = (struct broker_span){.bytes = link->out.bytes, .size = link->out.size};
    return true;
}

void broker_link_written(struct broker *broker, uint64_t now_ms, broker_handle handle) {
    struct federation *federation = enter(broker, now_ms);
    struct link *link = link_find(federation, handle);
    if (!link || !link->out_given) return;
    if (link->peer) {
        link->peer->totals.frames_sent++;
        link->peer->totals.bytes_sent += link->out.size;
    }
    link->out_given = false;
    frame_out_clear(&link->out);
}

bool broker_link_has_peer(const struct broker *broker, broker_handle handle) {
    const struct link *link = link_find(broker_federation(broker), handle);
    return link && link->peer;
}

bool broker_link_ended(const struct broker *broker, broker_handle handle) {
    const struct link *link = link_find(broker_federation(broker), handle);
    return !link || link->state == LINK_CLOSING;
}

int broker_set_identity(struct broker *broker, const uint8_t *token, size_t token_size,
                        const struct peer_questions *questions) {
    struct federation *federation = broker_federation(broker);
    uint8_t *copy = token_size > 0 ? malloc(token_size) : NULL;
    if (!copy) return -1;
    memcpy(copy, token, token_size);
    free(federation->token);
    federation->token = copy;
    federation->token_size = token_size;
    federation->questions = *questions;
    federation->dial_due = true;
    return 0;
}

/* ---- listings ---- */

static uint64_t dropped(const struct link_info *info) {
    uint64_t sum = 0;
    for (int limit = 0; limit < LINK_AT_COUNT; limit++)
        sum += info->dropped_at[limit];
    return sum;
}

/* Something was sent to it, came from it, was kept from it, or is kept for it. */
static bool has_history(const struct peer *peer) {
    const struct link_info *info = &peer->totals;
    uint64_t sum = info->frames_sent + info->frames_received + info->subacks_unconfirmed + dropped(info);
    for (int why = 0; why < GIVEN_UP_COUNT; why++)
        sum += info->given_up[why];
    return sum > 0 || peer->kept.is_recorded;
}

bool broker_link_at(const struct broker *broker, size_t index, struct link_info *info) {
    const struct federation *federation = broker_federation(broker);
    for (size_t i = 0; i < federation->peer_count; i++) {
        const struct peer *peer = federation->peers[i];
        const struct link *link = peer ? (peer->link ? peer->link : peer->attempt) : NULL;
        if (!peer || !(link || has_history(peer)) || index-- > 0) continue;
        *info = peer->totals;
        info->dropped = dropped(&peer->totals);
        info->peer = peer->id;
        memcpy(info->name, peer->name, sizeof info->name);
        info->state = link ? link->state : LINK_CLOSING;
        info->dialled = link && link->dialled;
        info->up_since_ms = link ? link->up_since_ms : 0;
        info->joined_here = (uint32_t)peer->joins.count;
        info->joined_there = peer->want_joined;
        info->kept = federation->now_ms < peer->keep_until_ms;
        info->outbox_messages = peer->outbox.messages;
        info->outbox_bytes = peer->outbox.bytes + peer->outbox.snapshot_bytes;
        return true;
    }
    return false;
}

void broker_read_peering_counters(const struct broker *broker, struct peering_counters *out) {
    *out = broker_federation(broker)->counters;
}
