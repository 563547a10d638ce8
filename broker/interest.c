#include "broker/interest.h"

#include "broker/barrier.h"
#include "broker/stock.h"
#include "broker/link.h"
#include "broker/topic.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

static struct interest *interest_find(const struct federation *federation, const char *filter, size_t size) {
    return (struct interest *)(void *)names_find(&federation->interests, filter, size);
}

struct want *interest_want(struct interest *interest, const struct peer *peer) {
    for (uint16_t i = 0; i < interest->want_count; i++) {
        if (interest->wants[i].peer == peer->index) return &interest->wants[i];
    }
    return NULL;
}

static void want_set(struct federation *federation, struct interest *interest, struct peer *peer, struct want *want,
                     enum want_state state) {
    interest->missing = (uint16_t)(interest->missing - want_is_missing(want));
    peer->want_joined -= want->state == WANT_JOINED;
    if (want->state == WANT_SENT) stock_answered(federation, peer->link, want->frame);
    want->state = (uint8_t)state;
    interest->missing = (uint16_t)(interest->missing + want_is_missing(want));
    peer->want_joined += want->state == WANT_JOINED;
    barrier_check(federation, interest);
}

static void want_remove(struct federation *federation, struct interest *interest, struct peer *peer,
                        struct want *want) {
    want_set(federation, interest, peer, want, WANT_REFUSED);
    peer->want_count--;
    *want = interest->wants[--interest->want_count];
}

static void say(struct federation *federation, const struct interest *interest, struct peer *peer,
                enum frame_type type) {
    if (peer->link) sender_name(federation, peer->link, type, 0, interest->row.named.text, interest->row.named.size);
}

/* The longest that any of its subscriptions asks for. What nobody has any more stays as it was while it lingers. */
static enum keep_level level_of(const struct interest *interest) {
    if (interest->count == 0) return interest->level;
    if (interest->kept[KEEP_LASTING] > 0) return KEEP_LASTING;
    return interest->kept[KEEP_RUN] > 0 ? KEEP_RUN : KEEP_NOT;
}

static void say_level(struct federation *federation, const struct interest *interest, struct peer *peer) {
    if (peer->link)
        sender_name(federation, peer->link, FRAME_KEEP, interest->level, interest->row.named.text,
                    interest->row.named.size);
}

/* The frame of names is complete. Before joins goes what is held here already. */
static void end_names(struct federation *federation, struct peer *peer, enum frame_type type) {
    struct link *link = peer->link;
    if (type == FRAME_JOIN) stock_tell(federation, link, federation->join_frames);
    sender_end(federation, link, 0);
}

static void join(struct federation *federation, struct interest *interest, struct peer *peer, struct want *want) {
    if (!peer->link) {
        peer_want_link(federation, peer);
        return;
    }
    want_set(federation, interest, peer, want, WANT_SENT);
    want->frame = ++federation->join_frames;
    frame_add_name(sender_begin(peer->link, FRAME_JOIN, 0), interest->row.named.text, interest->row.named.size);
    end_names(federation, peer, FRAME_JOIN);
    if (interest->level != KEEP_NOT) say_level(federation, interest, peer);
}

/* Without memory the join is not made; the publisher's invite asks again with each publication. */
static void want_add(struct federation *federation, struct interest *interest, struct peer *peer) {
    const struct named *filter = &interest->row.named;
    if (interest_want(interest, peer) || !policy_lets(&peer->rules, POLICY_IMPORT, filter->text, filter->size)) return;
    if (interest->want_count == interest->want_capacity) {
        uint16_t capacity = (uint16_t)(interest->want_capacity ? interest->want_capacity * 2 : 2);
        struct want *wants = realloc(interest->wants, capacity * sizeof *wants);
        if (!wants) return;
        interest->wants = wants;
        interest->want_capacity = capacity;
    }
    struct want *want = &interest->wants[interest->want_count++];
    *want = (struct want){.peer = peer->index, .state = WANT_NEW};
    interest->missing++;
    peer->want_count++;
    join(federation, interest, peer, want);
}

static void leave(struct federation *federation, struct interest *interest, struct peer *peer, struct want *want) {
    if (want->state != WANT_NEW) say(federation, interest, peer, FRAME_LEAVE);
    want_remove(federation, interest, peer, want);
}

static void free_interest(struct federation *federation, struct interest *interest) {
    timer_clear(&federation->linger_timers, &interest->linger);
    free(interest->wants);
    interest->wants = NULL;
    row_orphan(federation, &interest->row);
}

static struct interest *make(struct federation *federation, const char *filter, size_t size) {
    static const struct subscription plain = {.qos = 2};
    struct interest *interest = named_new(sizeof *interest, filter, size);
    if (!interest) return NULL;
    row_init(&interest->row, ROW_NEWSUB);
    interest->subscriber.kind = SUBSCRIBER_PEER;
    if (subs_add(federation->interest_tree, filter, size, &interest->subscriber, &plain) != SUBS_OK) goto fail;
    if (names_add(&federation->interests, &interest->row.named)) {
        subs_remove(federation->interest_tree, filter, size, &interest->subscriber);
        goto fail;
    }
    return interest;
fail:
    free(interest);
    return NULL;
}

int interest_add(struct federation *federation, const char *filter, size_t size) {
    struct interest *interest = interest_find(federation, filter, size);
    if (interest) {
        if (interest->count++ > 0) return 0;
        timer_clear(&federation->linger_timers, &interest->linger);
        federation->linger_count--;
        return 0;
    }
    interest = make(federation, filter, size);
    if (!interest) return -1;
    interest->count = 1;
    row_want(federation, &interest->row, policy_lets_some_peer(federation->policy, POLICY_IMPORT, filter, size));
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (peer && peer->alive && peer_adverts(peer, filter, size)) want_add(federation, interest, peer);
    }
    return 0;
}

/* It is kept no longer: only where a row of the peer asks for it a join is of use. */
static void drop_unasked(struct federation *federation, struct interest *interest) {
    for (uint16_t i = interest->want_count; i-- > 0;) {
        struct peer *peer = federation->peers[interest->wants[i].peer];
        if (!peer_adverts(peer, interest->row.named.text, interest->row.named.size))
            leave(federation, interest, peer, &interest->wants[i]);
    }
}

void interest_keep(struct federation *federation, const char *filter, size_t size, enum keep_level before,
                   enum keep_level level) {
    struct interest *interest = interest_find(federation, filter, size);
    if (!interest) return; /* memory was short */
    if (before != KEEP_NOT) interest->kept[before]--;
    if (level != KEEP_NOT) interest->kept[level]++;
    if (interest->level == level_of(interest)) return;
    interest->level = level_of(interest);
    if (interest->level == KEEP_NOT) drop_unasked(federation, interest);
    for (uint16_t i = 0; i < interest->want_count; i++) {
        const struct want *want = &interest->wants[i];
        if (want->state == WANT_SENT || want->state == WANT_JOINED)
            say_level(federation, interest, federation->peers[want->peer]);
    }
}

static void end(struct federation *federation, struct interest *interest) {
    while (interest->want_count > 0) {
        struct want *want = &interest->wants[interest->want_count - 1];
        leave(federation, interest, federation->peers[want->peer], want);
    }
    barrier_abandon(federation, interest);
    subs_remove(federation->interest_tree, interest->row.named.text, interest->row.named.size, &interest->subscriber);
    names_remove(&federation->interests, &interest->row.named);
    free_interest(federation, interest);
}

static bool end_first(struct federation *federation, uint64_t now_ms) {
    struct timer *timer = timers_take(&federation->linger_timers, now_ms);
    if (!timer) return false;
    federation->linger_count--;
    end(federation, (struct interest *)(void *)((char *)timer - offsetof(struct interest, linger)));
    return true;
}

void interest_drop(struct federation *federation, const char *filter, size_t size) {
    struct interest *interest = interest_find(federation, filter, size);
    if (!interest || interest->count == 0 || --interest->count > 0) return;
    timer_set(&federation->linger_timers, &interest->linger, federation->now_ms + federation->limits.leave_linger_ms);
    if (++federation->linger_count > LINGER_MAX) end_first(federation, UINT64_MAX);
}

void interest_tick(struct federation *federation) {
    while (end_first(federation, federation->now_ms))
        continue;
}

struct invited {
    struct federation *federation;
    struct peer *peer;
    size_t matched;
};

static void on_match(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscription;
    struct invited *invited = context;
    struct interest *interest = (struct interest *)(void *)((char *)subscriber - offsetof(struct interest, subscriber));
    want_add(invited->federation, interest, invited->peer);
    struct want *want = interest_want(interest, invited->peer);
    if (!want || want->state != WANT_REFUSED) invited->matched++;
}

size_t interest_invited(struct federation *federation, struct peer *peer, const char *topic, size_t size) {
    struct invited invited = {.federation = federation, .peer = peer};
    subs_match(federation->interest_tree, topic, size, on_match, &invited);
    return invited.matched;
}

static void on_meeting(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscription;
    struct invited *invited = context;
    want_add(invited->federation,
             (struct interest *)(void *)((char *)subscriber - offsetof(struct interest, subscriber)), invited->peer);
}

void interest_advert(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    struct invited invited = {.federation = federation, .peer = peer};
    if (!topic_has_wildcard(filter, size)) {
        interest_invited(federation, peer, filter, size);
        return;
    }
    subs_meet(federation->interest_tree, filter, size, on_meeting, &invited);
}

void interest_review(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named && peer->want_count > 0; named = named->next) {
        struct interest *interest = (struct interest *)(void *)named;
        struct want *want = interest_want(interest, peer);
        bool imported = policy_lets(&peer->rules, POLICY_IMPORT, named->text, named->size);
        bool asked = interest->level != KEEP_NOT || peer_adverts(peer, named->text, named->size);
        if (want && !(imported && asked)) leave(federation, interest, peer, want);
    }
}

void interest_seek(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named; named = named->next) {
        if (peer_adverts(peer, named->text, named->size)) want_add(federation, (struct interest *)(void *)named, peer);
    }
}

void interests_tell(struct federation *federation) {
    for (struct named *named = federation->interests.first; named; named = named->next)
        row_want(federation, &((struct interest *)(void *)named)->row,
                 policy_lets_some_peer(federation->policy, POLICY_IMPORT, named->text, named->size));
}

void interest_joined(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                     enum joined_status status) {
    struct interest *interest = interest_find(federation, filter, size);
    struct want *want = interest ? interest_want(interest, peer) : NULL;
    if (!want || want->state != WANT_SENT) return;
    if (status == JOINED_YES && stock_is_compared(peer->link, want->frame)) return;
    want->status = (uint8_t)status;
    want_set(federation, interest, peer, want, status == JOINED_YES ? WANT_JOINED : WANT_REFUSED);
}

/* Those of all interests at the peer: joins; or, of those that are kept at this level, that they are. */
static void say_all(struct federation *federation, struct peer *peer, enum frame_type type, enum keep_level level) {
    struct link *link = peer->link;
    struct frame_out *out = NULL;
    for (struct named *named = federation->interests.first; named && peer->link == link; named = named->next) {
        struct interest *interest = (struct interest *)(void *)named;
        struct want *want = interest_want(interest, peer);
        if (!want || (type == FRAME_KEEP && interest->level != level)) continue;
        if (out && out->size >= federation->limits.link_frame_bytes) {
            end_names(federation, peer, type);
            out = NULL;
            if (peer->link != link) return;
        }
        if (!out) out = sender_begin(link, type, level);
        if (out->item_count == 0) federation->join_frames += type == FRAME_JOIN;
        frame_add_name(out, named->text, named->size);
        if (type != FRAME_JOIN) continue;
        want_set(federation, interest, peer, want, WANT_SENT);
        want->frame = federation->join_frames;
    }
    if (out && peer->link == link) end_names(federation, peer, type);
}

void interest_told(const struct federation *federation, const struct peer *peer, uint32_t frame,
                   struct selection *joins) {
    for (struct named *named = federation->interests.first; named; named = named->next) {
        const struct want *want = interest_want((struct interest *)(void *)named, peer);
        if (want && want->state == WANT_SENT && want->frame == frame) selection_add(joins, named->text, named->size);
    }
}

void interest_sync(struct federation *federation, struct peer *peer) {
    struct link *link = peer->link;
    if (peer->rejoins) say_all(federation, peer, FRAME_LEAVE, KEEP_NOT);
    if (peer->link == link) say_all(federation, peer, FRAME_JOIN, KEEP_NOT);
    if (peer->link == link) say_all(federation, peer, FRAME_KEEP, KEEP_RUN);
    if (peer->link == link) say_all(federation, peer, FRAME_KEEP, KEEP_LASTING);
}

void interest_void(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named && peer->want_count > 0; named = named->next) {
        struct want *want = interest_want((struct interest *)(void *)named, peer);
        if (want) want_set(federation, (struct interest *)(void *)named, peer, want, WANT_NEW);
    }
}

void interest_sleep(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named && peer->want_count > 0; named = named->next) {
        struct interest *interest = (struct interest *)(void *)named;
        struct want *want = interest_want(interest, peer);
        if (want && interest->level != KEEP_NOT && want->state != WANT_REFUSED)
            want_set(federation, interest, peer, want, WANT_ASLEEP);
        else if (want)
            want_remove(federation, interest, peer, want);
    }
}

void interest_wake(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named && peer->want_count > 0; named = named->next) {
        struct interest *interest = (struct interest *)(void *)named;
        struct want *want = interest_want(interest, peer);
        if (want && want->state == WANT_ASLEEP) want_set(federation, interest, peer, want, WANT_NEW);
    }
}

void interest_forget(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named && peer->want_count > 0; named = named->next) {
        struct want *want = interest_want((struct interest *)(void *)named, peer);
        if (want) want_remove(federation, (struct interest *)(void *)named, peer, want);
    }
    assert(peer->want_count == 0);
}

void interest_deinit(struct federation *federation) {
    while (federation->interests.first) {
        struct interest *interest = (struct interest *)(void *)federation->interests.first;
        interest->waits = NULL;
        names_remove(&federation->interests, &interest->row.named);
        free_interest(federation, interest);
    }
    names_deinit(&federation->interests);
}
