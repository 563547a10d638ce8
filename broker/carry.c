#include "broker/carry.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void carry_changed(struct federation *federation) {
    federation->carry_changed = true;
}

void carry_found(struct federation *federation, const struct link *link, const struct peer_id *peer) {
    if (federation->found_count == CARRY_SEEK_MAX) return; /* nobody fetches */
    federation->found[federation->found_count].link = link->handle;
    federation->found[federation->found_count++].peer = *peer;
}

/* ---- to the peer ---- */

static void drop_first(struct carry_queue *queue) {
    struct carried *first = queue->first;
    queue->first = first->next;
    if (!queue->first) queue->last = NULL;
    queue->bytes -= first->size;
    free(first);
}

/* What does not fit takes the place of the oldest. */
static bool put(struct carry_queue *queue, const struct peer_id *peer, const uint8_t *bytes, size_t size,
                size_t bytes_max, uint64_t *dropped) {
    struct carried *carried = size <= bytes_max ? malloc(sizeof *carried + size) : NULL;
    if (!carried) {
        ++*dropped;
        return false;
    }
    carried->next = NULL;
    carried->peer = *peer;
    carried->size = size;
    if (size > 0) memcpy(carried->bytes, bytes, size);
    for (; queue->first && queue->bytes + size > bytes_max; ++*dropped)
        drop_first(queue);
    if (queue->last)
        queue->last->next = carried;
    else
        queue->first = carried;
    queue->last = carried;
    queue->bytes += size;
    return true;
}

bool broker_carry(struct broker *broker, uint64_t now_ms, const struct peer_id *id, const uint8_t *bytes, size_t size) {
    struct federation *federation = broker_federation(broker);
    federation->now_ms = now_ms;
    struct peer *peer = peers_find(federation, id);
    if (!peer || !peer->link || peer->link->state != LINK_UP) return false;
    struct link *link = peer->link;
    if (put(&link->carry, id, bytes, size, CARRY_QUEUE_MAX, &peer->totals.gossip_dropped)) link_wake(federation, link);
    return true;
}

bool carry_next(struct federation *federation, struct link *link) {
    if (!link->carry.first) return false;
    frame_begin_packets(&link->out);
    do {
        frame_add_packet(&link->out, link->carry.first->bytes, link->carry.first->size);
        link->peer->totals.gossip_sent++;
        drop_first(&link->carry);
    } while (link->carry.first && !link->out.failed && link->out.size + link->carry.first->size < CARRY_FRAME_BYTES);
    frame_end_items(&link->out);
    link->useful_ms = federation->now_ms;
    return true;
}

void carry_drop(struct link *link) {
    while (link->carry.first)
        drop_first(&link->carry);
}

void broker_peer_keep(struct broker *broker, uint64_t now_ms, const struct peer_id *id, uint32_t for_ms) {
    struct federation *federation = broker_federation(broker);
    federation->now_ms = now_ms;
    struct peer *peer = peers_find(federation, id);
    if (!peer) return;
    peer->keep_until_ms = now_ms + for_ms;
    peer_want_link(federation, peer);
}

void carry_make_room(struct federation *federation) {
    struct link *link, *oldest = NULL;
    uint32_t count = 0;
    DL_FOREACH(federation->links, link) {
        if (link->state != LINK_UP || peer_has_business(federation, link->peer)) continue;
        count++;
        if (!oldest || link->useful_ms < oldest->useful_ms) oldest = link;
    }
    if (count > federation->limits.idle_links_max)
        link_end(federation, oldest, BYE_CLOSING, "too many links that are used for gossip alone");
}

/* ---- to the caller ---- */

void carry_on_frame(struct federation *federation, struct link *link, struct frame *frame) {
    const uint8_t *bytes;
    size_t size;
    link->useful_ms = federation->now_ms;
    while (frame_next_packet(frame, &bytes, &size)) {
        link->peer->totals.gossip_received++;
        put(&federation->arrived, &link->peer->id, bytes, size, CARRY_ARRIVED_MAX, &link->peer->totals.gossip_dropped);
    }
}

/* Read off the state, so that no lack of memory loses one. */
static bool next_change(struct federation *federation, struct broker_carried *carried) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        bool up = peer && peer->link && peer->link->state == LINK_UP;
        if (!peer || peer->carry_told_up == up) continue;
        peer->carry_told_up = up;
        *carried = (struct broker_carried){.kind = up ? CARRIED_UP : CARRIED_DOWN, .peer = peer->id};
        return true;
    }
    federation->carry_changed = false;
    return false;
}

bool broker_next_carried(struct broker *broker, struct broker_carried *carried) {
    struct federation *federation = broker_federation(broker);
    struct carry_queue *arrived = &federation->arrived;
    if (federation->arrived_given) drop_first(arrived);
    federation->arrived_given = false;
    if (federation->found_count > 0) {
        federation->found_count--;
        *carried = (struct broker_carried){.kind = CARRIED_FOUND,
                                           .peer = federation->found[federation->found_count].peer,
                                           .link = federation->found[federation->found_count].link};
        return true;
    }
    if (federation->carry_changed && next_change(federation, carried)) return true;
    if (!arrived->first) return false;
    federation->arrived_given = true;
    *carried = (struct broker_carried){.kind = CARRIED_PACKET,
                                       .peer = arrived->first->peer,
                                       .bytes = arrived->first->bytes,
                                       .size = arrived->first->size};
    return true;
}

void carry_deinit(struct federation *federation) {
    while (federation->arrived.first)
        drop_first(&federation->arrived);
}
