#include "broker/peers.h"

#include "broker/barrier.h"
#include "broker/border.h"
#include "broker/group.h"
#include "broker/handout.h"
#include "broker/interest.h"
#include "broker/ledger.h"
#include "broker/link.h"
#include "broker/replay.h"
#include "broker/topic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer *peers_find(const struct federation *federation, const struct peer_id *id) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (peer && memcmp(&peer->id, id, sizeof *id) == 0) return peer;
    }
    return NULL;
}

/* How long something waits for a peer that is gone; 0 if nothing does. */
static uint64_t kept_until_ms(const struct peer *peer) {
    return peer->joins.count > 0 || outbox_count(&peer->outbox) > 0 ? peer->lapse_ms : 0;
}

/* A slot of the table; when it is full, that of a peer that is gone and kept for its counters only, or longest. */
static size_t free_slot(struct federation *federation) {
    for (size_t i = 0; i < federation->peer_count; i++) {
        if (!federation->peers[i]) return i;
    }
    if (federation->peer_count < federation->peer_capacity) return federation->peer_count;
    if (federation->peer_capacity < federation->limits.peers_max) {
        size_t capacity = federation->peer_capacity ? federation->peer_capacity * 2 : 8;
        struct peer **peers = realloc(federation->peers, capacity * sizeof(struct peer *));
        if (peers) {
            federation->peers = peers;
            federation->peer_capacity = capacity;
            return federation->peer_count;
        }
    }
    struct peer *longest = NULL;
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (peer->alive || peer->link || peer->attempt) continue;
        if (!longest || kept_until_ms(peer) < kept_until_ms(longest)) longest = peer;
    }
    if (!longest) return SIZE_MAX;
    size_t slot = longest->index;
    taken_forget(federation, longest);
    peer_free(federation, longest);
    return slot;
}

struct peer *peers_make(struct federation *federation, const struct peer_id *id) {
    struct peer *peer = peers_find(federation, id);
    if (peer) return peer;
    size_t index = free_slot(federation);
    peer = index >= federation->limits.peers_max || index >= PEERS_INDEX_MAX ? NULL : calloc(1, sizeof *peer);
    if (!peer) return NULL;
    peer->subscriber.kind = SUBSCRIBER_PEER;
    peer->rows.subscriber.kind = SUBSCRIBER_PEER;
    peer->rows.peer = peer;
    peer->federation = federation;
    peer->index = (uint16_t)index;
    peer->id = *id;
    peer->rules = policy_rules_of(federation->policy, NULL); /* what waits for it until it is named is looked at then */
    peer->joins_void_ms = peer->review_ms = peer->replay_ms = UINT64_MAX;
    peer->stale_ms = peer->lapse_ms = UINT64_MAX;
    peer->backoff_ms = BACKOFF_MIN_MS;
    /* Not counted: a broker that lost its disk may run twice under one epoch for a moment. */
    peer->stream = federation_random(federation) ^ federation->epoch * 0x9e3779b97f4a7c15u; /* apart from other runs */
    uint64_t seed = federation_random(federation);
    peer->newpub_tree = subs_new(seed);
    if (!peer->newpub_tree) {
        free(peer);
        return NULL;
    }
    names_init(&peer->newpub, seed);
    names_init(&peer->newsub, seed);
    names_init(&peer->joins, seed);
    names_init(&peer->invites, seed);
    outbox_init(&peer->outbox, &federation->outbox_bytes, kept_done, peer);
    federation->peers[index] = peer;
    if (index == federation->peer_count) federation->peer_count++;
    return peer;
}

int peers_restore(struct federation *federation, const uint8_t id[16], struct peer **peer) {
    struct peer_id known;
    memcpy(known.bytes, id, sizeof known.bytes);
    *peer = peers_find(federation, &known);
    if (*peer) return 0;
    if (federation->peer_count >= federation->limits.peers_max) return 1;
    *peer = peers_make(federation, &known);
    return *peer ? 0 : -1;
}

static struct names *rows_of(struct peer *peer, enum row_kind kind) {
    return kind == ROW_NEWPUB ? &peer->newpub : &peer->newsub;
}

static struct subs *tree_of(struct federation *federation, struct peer *peer, enum row_kind kind) {
    return kind == ROW_NEWPUB ? peer->newpub_tree : federation->peer_rows;
}

static void note_unseen(struct federation *federation, const struct peer *peer) {
    broker_note_add(federation->broker, BROKER_NOTE_WARNING, "short of memory: a registry row of %s is not seen",
                    peer->name);
}

/* Into the tree, as far as it is imported. A group is a subscriber of its own there: it is joined apart. */
static int enter_row(struct federation *federation, struct peer *peer, enum row_kind kind, struct named *row) {
    static const struct subscription plain = {.qos = 2};
    size_t inner = kind == ROW_NEWSUB ? topic_share_split(row->text, row->size) : 0;
    struct subscriber *subscriber = &peer->rows.subscriber;
    if (kind == ROW_NEWPUB && !policy_lets(&peer->rules, POLICY_IMPORT, row->text, row->size)) return 0;
    if (inner > 0) {
        struct group_row *group = (struct group_row *)(void *)row;
        group->peer = peer;
        group->subscriber.kind = SUBSCRIBER_SHARE;
        subscriber = &group->subscriber;
    }
    return subs_add(tree_of(federation, peer, kind), row->text + inner, row->size - inner, subscriber, &plain) < 0 ? -1
                                                                                                                   : 0;
}

static void leave_row(struct federation *federation, struct peer *peer, enum row_kind kind, struct named *row) {
    size_t inner = kind == ROW_NEWSUB ? topic_share_split(row->text, row->size) : 0;
    struct subscriber *subscriber = inner > 0 ? &((struct group_row *)(void *)row)->subscriber : &peer->rows.subscriber;
    subs_remove(tree_of(federation, peer, kind), row->text + inner, row->size - inner, subscriber);
    names_remove(rows_of(peer, kind), row);
    peer->group_row_count -= inner > 0;
    free(row);
}

static void clear_rows(struct federation *federation, struct peer *peer) {
    while (peer->newpub.first)
        leave_row(federation, peer, ROW_NEWPUB, peer->newpub.first);
    while (peer->newsub.first)
        leave_row(federation, peer, ROW_NEWSUB, peer->newsub.first);
    names_deinit(&peer->newpub);
    names_deinit(&peer->newsub);
}

/* Nothing is kept for it any more. */
static void lapse(struct federation *federation, struct peer *peer) {
    peer->stale_ms = peer->lapse_ms = UINT64_MAX;
    interest_forget(federation, peer);
    group_clear(federation, peer);
    ledger_dropped(federation, peer, LINK_AT_QUEUE_AGE, outbox_clear(&peer->outbox));
    kept_end(federation, peer);
}

static void keep_for_now(struct federation *federation, struct peer *peer) {
    if (peer->lapse_ms != UINT64_MAX) return;
    peer->lapse_ms = federation->now_ms + federation->limits.link_queue_age_h * 3600000ull;
    kept_peer(federation, peer);
}

void peer_keep_until(struct federation *federation, struct peer *peer, uint64_t lapse_ms) {
    keep_for_now(federation, peer);
    if (lapse_ms < peer->lapse_ms) peer->lapse_ms = lapse_ms;
    peer_set_timer(federation, peer);
}

/* QoS 0 is not, nor are snapshots: what is retained is shown when the peer is back. */
static bool is_to_be_kept(void *context, const struct outbox_entry *entry) {
    struct peer *peer = context;
    if (entry->message->qos > 0 && !entry->snapshot) return true;
    peer->snapshot_lost |= entry->message->retain;
    return false;
}

/* It is away, and may come back: what sessions there that outlive their connections asked for is kept. */
static void forget(struct federation *federation, struct peer *peer) {
    clear_rows(federation, peer);
    interest_sleep(federation, peer);
    group_lapse(federation, peer, KEEP_RUN);
    replay_clear(federation, peer);
    ledger_given_up(peer, GIVEN_UP_AWAY, outbox_prune(&peer->outbox, is_to_be_kept, peer));
    peer->known_sequence = 0;
    peer->joins_void_ms = peer->review_ms = UINT64_MAX;
    keep_for_now(federation, peer);
    federation->generation++;
}

void peer_free(struct federation *federation, struct peer *peer) {
    forget(federation, peer);
    lapse(federation, peer);
    timer_clear(&federation->peer_timers, &peer->timer);
    outbox_deinit(&peer->outbox);
    free(peer->aims);
    subs_free(peer->newpub_tree);
    federation->peers[peer->index] = NULL;
    free(peer);
}

static void review_later(struct federation *federation, struct peer *peer) {
    if (peer->review_ms != UINT64_MAX) return;
    peer->review_ms = federation->now_ms + federation->limits.leave_linger_ms;
    peer_set_timer(federation, peer);
}

void peer_alive(struct federation *federation, struct peer *peer, const char *name, uint64_t epoch) {
    border_name(federation, peer, name);
    if (epoch > peer->epoch) peer_restarted(federation, peer, epoch);
    if (epoch > peer->rows_epoch) {
        /* Its rows of this run follow; those of the run before are gone. A hello may have told of the run earlier. */
        peer->rows_epoch = epoch;
        clear_rows(federation, peer);
        replay_reconsider(federation, peer);
        review_later(federation, peer);
    }
    if (peer->alive) return;
    peer->alive = true;
    peer->backoff_ms = BACKOFF_MIN_MS;
    peer->dial_ms = 0;
    interest_wake(federation, peer);
    federation->alive_count++;
    federation->generation++;
    peer_want_link(federation, peer);
}

struct pruning {
    const struct federation *federation;
    const struct peer *peer;
};

static bool is_waited_for(void *context, const struct outbox_entry *entry) {
    const struct pruning *pruning = context;
    if (entry->aims) return handout_is_for(pruning->federation, pruning->peer, entry);
    return group_matches(pruning->federation, pruning->peer, entry->message->topic, entry->message->topic_size);
}

void peer_restarted(struct federation *federation, struct peer *peer, uint64_t epoch) {
    uint64_t known = peer->epoch != 0 ? peer->epoch : peer->kept.run;
    peer->epoch = epoch;
    peer->kept.run = 0;
    if (known == 0 || known == epoch) return;
    kept_peer(federation, peer);
    if (peer->link && peer->link->peer_epoch < epoch)
        link_end(federation, peer->link, BYE_EPOCH, "a later run of yours is known here");
    group_lapse(federation, peer, KEEP_LASTING);
    interest_void(federation, peer);
    uint64_t unwanted = outbox_forget_sent_qos0(&peer->outbox);
    /* Sessions that ended with its earlier run wait no more, and those of the new one asked later. */
    unwanted += outbox_prune(&peer->outbox, is_waited_for, &(struct pruning){.federation = federation, .peer = peer});
    ledger_given_up(peer, GIVEN_UP_RESTARTED, unwanted);
    peer->joins_void_ms = UINT64_MAX;
    peer->known_sequence = 0;
    peer->dial_ms = 0;
    peer->backoff_ms = BACKOFF_MIN_MS;
    replay_reconsider(federation, peer);
    peer_want_link(federation, peer);
}

void peer_gone(struct federation *federation, struct peer *peer) {
    if (peer->alive) federation->alive_count--;
    peer->alive = false;
    if (peer->link) link_end(federation, peer->link, BYE_GONE, "you are down or left, as the membership here sees it");
    if (peer->attempt)
        link_end(federation, peer->attempt, BYE_GONE, "you are down or left, as the membership here sees it");
    handout_gone(federation, peer);
    forget(federation, peer);
    peer_set_timer(federation, peer);
    barrier_check_all(federation);
}

static void row_appeared(struct federation *federation, struct peer *peer, enum row_kind kind, const char *filter,
                         size_t size) {
    struct names *rows = rows_of(peer, kind);
    if (rows->count >= PEER_ROWS_MAX || names_find(rows, filter, size)) return;
    bool is_group = kind == ROW_NEWSUB && topic_share_split(filter, size) > 0;
    struct named *row = named_new(is_group ? sizeof(struct group_row) : sizeof *row, filter, size);
    if (!row || names_add(rows, row)) {
        free(row);
        note_unseen(federation, peer);
        return;
    }
    if (enter_row(federation, peer, kind, row)) {
        names_remove(rows, row);
        free(row);
        note_unseen(federation, peer);
        return;
    }
    peer->group_row_count += is_group;
    if (kind == ROW_NEWPUB && policy_lets(&peer->rules, POLICY_IMPORT, filter, size))
        interest_advert(federation, peer, filter, size);
}

void peer_sift_rows(struct federation *federation, struct peer *peer) {
    static const struct subscription plain = {.qos = 2};
    for (const struct named *row = peer->newpub.first; row; row = row->next) {
        if (!policy_lets(&peer->rules, POLICY_IMPORT, row->text, row->size))
            subs_remove(peer->newpub_tree, row->text, row->size, &peer->rows.subscriber);
        else if (subs_add(peer->newpub_tree, row->text, row->size, &peer->rows.subscriber, &plain) < 0)
            note_unseen(federation, peer);
    }
}

static void row_disappeared(struct federation *federation, struct peer *peer, enum row_kind kind, const char *filter,
                            size_t size) {
    struct names *rows = rows_of(peer, kind);
    struct named *named = names_find(rows, filter, size);
    if (!named) return;
    leave_row(federation, peer, kind, named);
    if (kind == ROW_NEWPUB) review_later(federation, peer);
}

void peer_row(struct federation *federation, struct peer *peer, enum row_kind kind, const char *filter, size_t size,
              bool active) {
    size_t inner = kind == ROW_NEWSUB ? topic_share_split(filter, size) : 0;
    if (!topic_filter_valid(filter, size) || filter[inner] == '$') return;
    if (active)
        row_appeared(federation, peer, kind, filter, size);
    else
        row_disappeared(federation, peer, kind, filter, size);
    if (kind == ROW_NEWSUB) replay_reconsider(federation, peer);
}

bool peer_adverts(const struct peer *peer, const char *filter, size_t size) {
    return subs_meets(peer->newpub_tree, filter, size);
}

bool peer_has_business(const struct federation *federation, const struct peer *peer) {
    return peer->want_count > 0 || peer->joins.count > 0 || outbox_count(&peer->outbox) > 0 || peer->holds[0] ||
           federation->now_ms < peer->keep_until_ms;
}

static bool may_dial(const struct federation *federation, const struct peer *peer) {
    return peer->alive && !peer->link && !peer->attempt && federation->token && peer_has_business(federation, peer);
}

bool peer_wants_dial(const struct federation *federation, const struct peer *peer) {
    return may_dial(federation, peer) && peer->dial_ms <= federation->now_ms;
}

void peer_want_link(struct federation *federation, struct peer *peer) {
    if (!may_dial(federation, peer)) return;
    if (peer->dial_ms <= federation->now_ms)
        federation->dial_due = true;
    else
        peer_set_timer(federation, peer);
}

void peer_back_off(struct federation *federation, struct peer *peer) {
    uint64_t half = peer->backoff_ms / 2;
    peer->dial_ms = federation->now_ms + half + federation_random(federation) % (half + 1);
    peer->backoff_ms = peer->backoff_ms >= BACKOFF_MAX_MS / 2 ? BACKOFF_MAX_MS : peer->backoff_ms * 2;
    peer_set_timer(federation, peer);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void peer_set_timer(struct federation *federation, struct peer *peer) {
    uint64_t due = least(least(peer->joins_void_ms, peer->review_ms), peer->replay_ms);
    due = least(due, least(peer->stale_ms, peer->lapse_ms));
    if (may_dial(federation, peer) && peer->dial_ms > federation->now_ms) due = least(due, peer->dial_ms);
    if (!timer_is_set(&peer->timer) || peer->timer.due_ms != due)
        timer_set(&federation->peer_timers, &peer->timer, due);
}

void peers_tick(struct federation *federation) {
    struct timer *timer;
    while ((timer = timers_take(&federation->peer_timers, federation->now_ms)) != NULL) {
        struct peer *peer = (struct peer *)(void *)((char *)timer - offsetof(struct peer, timer));
        if (peer->joins_void_ms <= federation->now_ms) {
            peer->joins_void_ms = UINT64_MAX;
            group_lapse(federation, peer, KEEP_RUN);
            interest_void(federation, peer);
        }
        if (peer->stale_ms <= federation->now_ms) {
            peer->stale_ms = UINT64_MAX;
            group_end_stale(federation, peer);
        }
        if (peer->lapse_ms <= federation->now_ms) lapse(federation, peer);
        if (peer->review_ms <= federation->now_ms) {
            peer->review_ms = UINT64_MAX;
            interest_review(federation, peer);
        }
        replay_expire(federation, peer);
        peer_want_link(federation, peer);
        peer_set_timer(federation, peer);
    }
}

void peer_linked(struct federation *federation, struct peer *peer) {
    peer->joins_void_ms = peer->stale_ms = peer->lapse_ms = UINT64_MAX;
    kept_peer(federation, peer);
    peer_set_timer(federation, peer);
}

bool peer_is_away(const struct peer *peer) {
    return !peer->link && peer->joins_void_ms == UINT64_MAX;
}

void peer_synced(struct federation *federation, struct peer *peer) {
    group_synced(federation, peer);
    peer->stale_ms = federation->now_ms + PEER_JOIN_KEEP_MS;
    peer_set_timer(federation, peer);
}

void peer_unlinked(struct federation *federation, struct peer *peer) {
    peer->joins_void_ms = federation->now_ms + PEER_JOIN_KEEP_MS;
    peer->stale_ms = UINT64_MAX;
    keep_for_now(federation, peer);
    handout_unlinked(federation, peer);
    peer_want_link(federation, peer);
    peer_set_timer(federation, peer);
}
