#include "broker/link.h"

#include "broker/carry.h"
#include "broker/compare.h"
#include "broker/hash.h"
#include "broker/stock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct link *link_find(const struct federation *federation, broker_handle handle) {
    struct link *link;
    DL_FOREACH(federation->links, link) {
        if (link->handle == handle) return link;
    }
    return NULL;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void link_set_timer(struct federation *federation, struct link *link) {
    uint64_t due = link->deadline_ms;
    if (link->state == LINK_UP) {
        uint64_t idle_ms = federation->limits.link_idle_ms;
        due = least(due, link->received_ms + (link->pinged ? 2 * idle_ms : idle_ms));
        due = least(due, least(link->ack_ms, link->expires_ms));
        due = least(due, link->useful_ms + LINK_UNUSED_MS);
        if (link->is_behind) due = least(due, link->behind_ms);
    }
    if (!timer_is_set(&link->timer) || link->timer.due_ms != due)
        timer_set(&federation->link_timers, &link->timer, due);
}

/* The oldest of those who have not said who they are. */
static void make_room(struct federation *federation) {
    struct link *link;
    DL_FOREACH(federation->links, link) {
        if (link->dialled || (link->state != LINK_DIALLING && link->state != LINK_HANDSHAKE)) continue;
        link_end(federation, link, BYE_OVERLOAD, "too many wait to say who they are");
        return;
    }
}

broker_handle link_open(struct federation *federation, bool dialled, struct peer *peer) {
    /* Strangers who say no hello must not keep us from dialling: a dial has its peer, and peers are bounded. */
    bool full = !dialled && federation->link_count >= 2 * (size_t)federation->limits.peers_max;
    if (full) make_room(federation);
    if (!federation->token || full) return 0;
    struct link *link = calloc(1, sizeof *link);
    if (!link) return 0;
    link->handle = ++federation->last_handle;
    link->dialled = dialled;
    link->state = LINK_DIALLING;
    link->carry_had_turn = true; /* the hello goes first */
    link->deadline_ms = federation->now_ms + LINK_DIAL_MS;
    link->ack_ms = link->expires_ms = UINT64_MAX;
    if (peer) {
        link->peer = peer;
        link->dialled_to = peer->id;
        peer->attempt = link;
    }
    DL_APPEND(federation->links, link);
    federation->link_count++;
    federation->counters.links_opened++;
    link_set_timer(federation, link);
    return link->handle;
}

/* An address was dialled: the key says whose it is, before anything is told to it that is meant for one peer. False if
 * the link is of no use. */
static bool find_peer(struct federation *federation, struct link *link, const uint8_t key_thumbprint[32]) {
    memcpy(link->dialled_to.bytes, key_thumbprint, sizeof link->dialled_to.bytes);
    carry_found(federation, link, &link->dialled_to);
    if (memcmp(&link->dialled_to, &federation->id, sizeof federation->id) == 0) return false;
    struct peer *peer = peers_make(federation, &link->dialled_to);
    if (!peer || peer->link || peer->attempt) return false;
    link->peer = peer;
    peer->attempt = link;
    return true;
}

void link_ready(struct federation *federation, struct link *link, const uint8_t key_thumbprint[32]) {
    if (link->state != LINK_DIALLING) return;
    if (link->dialled && !link->peer && !find_peer(federation, link, key_thumbprint)) {
        link_end(federation, link, 0, "");
        return;
    }
    memcpy(link->key_thumbprint, key_thumbprint, 32);
    link->state = LINK_HANDSHAKE;
    link->tls_ready = true;
    link->deadline_ms = federation->now_ms + LINK_HELLO_MS;
    link_set_timer(federation, link);
    /* Who accepts speaks second, so that a stranger sees no token and takes no room among the peers. */
    if (link->dialled) sender_hello(federation, link);
}

/* ---- the end ---- */

/* For who asks why there is none. */
static void remember_end(struct federation *federation, const struct link *link, struct peer *peer) {
    if (peer->link == link) {
        peer->unlinked_ms = federation->now_ms;
        peer->undialled_why[0] = '\0';
        snprintf(peer->unlinked_why, sizeof peer->unlinked_why, "%s", link->why);
    } else if (!peer->link) {
        snprintf(peer->undialled_why, sizeof peer->undialled_why, "%s",
                 link->why[0] != '\0' ? link->why
                 : link->tls_ready    ? "the connection ended before the hello"
                                      : "the connection was not made");
    }
}

/* The peer can do without this link from now on. */
static void detach(struct federation *federation, struct link *link) {
    struct peer *peer = link->peer;
    bool was_up = link->state == LINK_UP;
    link->state = LINK_CLOSING;
    link->peer = NULL;
    free(link->parts);
    link->parts = NULL;
    link->parts_size = link->parts_capacity = 0;
    sender_drop_controls(link);
    carry_drop(link);
    stock_end(federation, link);
    bool compared = !compare_end(federation, link);
    if (was_up) carry_changed(federation);
    if (was_up) federation->counters.links_up--;
    if (!peer) return;
    remember_end(federation, link, peer);
    if (!compared) peer->snapshot_lost = true;
    if (peer->attempt == link) {
        peer->attempt = NULL;
        peer_back_off(federation, peer);
    }
    if (peer->link == link) {
        peer->link = NULL;
        link_news_ended(federation, peer, link->why);
        peer_back_off(federation, peer);
        peer_unlinked(federation, peer);
    }
    peer_want_link(federation, peer);
}

void link_end(struct federation *federation, struct link *link, enum bye_code code, const char *reason) {
    if (link->state == LINK_CLOSING) return;
    bool can_speak = link->tls_ready;
    if (link->why[0] == '\0') snprintf(link->why, sizeof link->why, "closed: %s", reason);
    detach(federation, link);
    link->deadline_ms = federation->now_ms + LINK_ENDED_MS;
    if (can_speak && code) sender_bye(federation, link, code, reason);
    link_set_timer(federation, link);
    link_wake(federation, link);
}

static void free_link(struct federation *federation, struct link *link) {
    timer_clear(&federation->link_timers, &link->timer);
    if (link->is_ready) DL_DELETE2(federation->ready, link, ready_prev, ready_next);
    DL_DELETE(federation->links, link);
    federation->link_count--;
    sender_drop_controls(link);
    carry_drop(link);
    stock_end(federation, link);
    compare_end(federation, link);
    frame_out_deinit(&link->out);
    frame_out_deinit(&link->scratch);
    free(link->parts);
    free(link);
}

void link_closed(struct federation *federation, struct link *link) {
    if (link->state != LINK_CLOSING) {
        if (link->dialled && !link->tls_ready) federation->counters.dials_failed++;
        if (link->state == LINK_UP) link_note(federation, BROKER_NOTE_INFO, link, "lost", "its connection has ended");
        detach(federation, link);
    }
    free_link(federation, link);
}

void links_deinit(struct federation *federation) {
    while (federation->links) {
        struct peer *peer = federation->links->peer;
        if (peer && peer->link == federation->links) peer->link = NULL;
        free_link(federation, federation->links);
    }
}

/* What to call the far end in a note. */
const char *link_far_name(const struct link *link) {
    return link->peer && link->peer->name[0] ? link->peer->name : "a peer";
}

void link_note(struct federation *federation, enum broker_note_level level, struct link *link, const char *what,
               const char *text) {
    if (text[0] != '\0') snprintf(link->why, sizeof link->why, "%s: %s", what, text);
    broker_note_add(federation->broker, level, "link %llu with %s: %s%s%s", (unsigned long long)link->handle,
                    link_far_name(link), what, text[0] ? ": " : "", text);
}

/* Those that are refused come again every few seconds: each reason is a warning once a minute. */
enum broker_note_level link_refusal_level(struct federation *federation, const char *who, const char *reason) {
    uint64_t hash = hash_bytes(hash_bytes(1, who, strlen(who)), reason, strlen(reason));
    struct refusal *oldest = &federation->refusals[0];
    for (size_t i = 0; i < sizeof federation->refusals / sizeof federation->refusals[0]; i++) {
        struct refusal *refusal = &federation->refusals[i];
        if (refusal->hash == hash && refusal->until_ms > federation->now_ms) return BROKER_NOTE_DEBUG;
        if (refusal->until_ms < oldest->until_ms) oldest = refusal;
    }
    *oldest = (struct refusal){.hash = hash, .until_ms = federation->now_ms + LINK_REFUSAL_MS};
    return BROKER_NOTE_WARNING;
}

void link_refuse(struct federation *federation, struct link *link, enum bye_code code, const char *who,
                 const char *reason) {
    federation->counters.links_refused++;
    broker_note_add(federation->broker, link_refusal_level(federation, who, reason), "link with %s refused: %s", who,
                    reason);
    snprintf(link->why, sizeof link->why, "refused: %s", reason);
    /* It has proved that it holds the key, if nothing else. */
    struct peer_id id;
    memcpy(id.bytes, link->key_thumbprint, sizeof id.bytes);
    struct peer *peer = link->tls_ready && !link->peer ? peers_find(federation, &id) : NULL;
    if (peer) remember_end(federation, link, peer);
    link_end(federation, link, code, reason);
}

void link_malformed(struct federation *federation, struct link *link, const char *reason) {
    federation->counters.frames_malformed++;
    link_note(federation, BROKER_NOTE_WARNING, link, "closed", reason);
    link_end(federation, link, BYE_MALFORMED, reason);
}

/* ---- bytes in ---- */

static void on_frame(struct federation *federation, struct link *link, const uint8_t *bytes, size_t size) {
    struct frame frame;
    enum frame_result result = frame_read(bytes, size, &frame);
    if (result == FRAME_MALFORMED) {
        link_malformed(federation, link, "a frame that cannot be read");
        return;
    }
    link->received_ms = federation->now_ms;
    link->pinged = false;
    if (link->peer) {
        link->peer->totals.frames_received++;
        link->peer->totals.bytes_received += size;
    }
    if (link->state == LINK_UP && result == FRAME_UNKNOWN)
        return; /* of a later version, which can do without an answer */
    if (link->state == LINK_UP)
        link_on_frame(federation, link, &frame, size);
    else if (frame.type == FRAME_HELLO)
        link_on_hello(federation, link, &frame.hello);
    else if (frame.type == FRAME_BYE)
        link_on_bye(federation, link, &frame);
    else
        link_malformed(federation, link, "a frame before the hello");
}

/* Grows with what arrived, never with what was announced. */
static bool keep_part(struct link *link, const uint8_t *bytes, size_t size) {
    if (link->parts_capacity - link->parts_size < size) {
        size_t capacity = link->parts_capacity ? link->parts_capacity : 4096;
        while (capacity - link->parts_size < size)
            capacity *= 2;
        uint8_t *parts = realloc(link->parts, capacity);
        if (!parts) return false;
        link->parts = parts;
        link->parts_capacity = capacity;
    }
    if (size > 0) memcpy(link->parts + link->parts_size, bytes, size);
    link->parts_size += size;
    return true;
}

void link_input(struct federation *federation, struct link *link, const uint8_t *bytes, size_t size, bool final) {
    if (link->state != LINK_HANDSHAKE && link->state != LINK_UP) return;
    uint64_t size_max = link->state == LINK_UP ? (uint64_t)federation->limits.packet_size_max + LINK_FRAME_SLACK
                                               : (uint64_t)LINK_HELLO_SIZE_MAX;
    if (size > size_max || link->parts_size > size_max - size) {
        link_malformed(federation, link, "a frame larger than the hello allows");
        return;
    }
    if (final && link->parts_size == 0) {
        on_frame(federation, link, bytes, size);
        return;
    }
    if (!keep_part(link, bytes, size)) {
        link_end(federation, link, BYE_OVERLOAD, "short of memory");
        return;
    }
    if (!final) return;
    uint8_t *parts = link->parts;
    size_t parts_size = link->parts_size;
    link->parts = NULL;
    link->parts_size = link->parts_capacity = 0;
    on_frame(federation, link, parts, parts_size);
    free(parts);
}

/* ---- time ---- */

static void tick_up(struct federation *federation, struct link *link) {
    uint64_t now_ms = federation->now_ms, silent_ms = now_ms - link->received_ms,
             idle_ms = federation->limits.link_idle_ms;
    if (peer_has_business(federation, link->peer)) link->useful_ms = now_ms;
    if (link->expires_ms <= now_ms) {
        link_note(federation, BROKER_NOTE_WARNING, link, "closed", "its token has expired; mint it a new one");
        link_end(federation, link, BYE_EXPIRED, "your token has expired; ask for a new one");
    } else if (silent_ms >= 2 * idle_ms) {
        link_note(federation, BROKER_NOTE_WARNING, link, "closed", "silent for too long");
        link_end(federation, link, BYE_SILENT, "silent for too long");
    } else if (link->useful_ms + LINK_UNUSED_MS <= now_ms) {
        link_end(federation, link, BYE_CLOSING, "nothing left to exchange");
    } else if (link->is_behind && link->behind_ms <= now_ms && broker_takes_from_peers(federation->broker)) {
        link_note(federation, BROKER_NOTE_INFO, link, "begins anew", "what had to wait can be taken now");
        link_end(federation, link, BYE_OVERLOAD, "what could not be taken can be now; send it again");
    } else if (silent_ms >= idle_ms && !link->pinged) {
        link->pinged = true;
        sender_plain(federation, link, FRAME_PING);
    }
    if (link->is_behind && link->behind_ms <= now_ms) link->behind_ms = now_ms + LINK_BEHIND_MS;
    if (link->state == LINK_UP && link->ack_ms <= now_ms) link_wake(federation, link);
}

static void tick_link(struct federation *federation, struct link *link) {
    if (link->state == LINK_UP) {
        tick_up(federation, link);
        if (link->state == LINK_UP) {
            /* An acknowledgement that is due goes out when the link is asked; no timer has to remind of it again. */
            uint64_t ack_ms = link->ack_ms;
            if (ack_ms <= federation->now_ms) link->ack_ms = UINT64_MAX;
            link_set_timer(federation, link);
            link->ack_ms = ack_ms;
        }
        return;
    }
    if (link->deadline_ms > federation->now_ms) {
        link_set_timer(federation, link);
        return;
    }
    if (link->state == LINK_CLOSING) {
        free_link(federation, link);
        return;
    }
    bool dialling = link->state == LINK_DIALLING;
    federation->counters.dials_failed += link->dialled;
    /* Of strangers any number may come. */
    link_note(federation, link->dialled ? BROKER_NOTE_INFO : BROKER_NOTE_DEBUG, link, "given up",
              dialling ? "no connection in time" : "no hello in time");
    link_end(federation, link, BYE_SILENT, "no hello in time");
}

void links_tick(struct federation *federation) {
    struct timer *timer;
    while ((timer = timers_take(&federation->link_timers, federation->now_ms)) != NULL)
        tick_link(federation, (struct link *)(void *)((char *)timer - offsetof(struct link, timer)));
}
