#include "broker/interest.h"

#include "broker/barrier.h"
#include "broker/link.h"
#include "broker/stock.h"
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

static bool is_group(const struct interest *interest) {
    return interest->inner > 0;
}

static bool is_adverted(const struct interest *interest, const struct peer *peer) {
    const struct filter_text filter = interest_filter(interest);
    return peer_adverts(peer, filter.text, filter.size);
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

static struct frame_members members_of(const struct federation *federation, struct interest *interest) {
    const struct named *group = &interest->row.named;
    interest->members = broker_share_members(federation->broker, group->text, group->size);
    return (struct frame_members){.group = group->text,
                                  .size = group->size,
                                  .connected = interest->members.connected,
                                  .away = interest->members.away};
}

static void say_members(struct federation *federation, struct peer *peer, const struct frame_members *members) {
    if (!peer->link) return;
    frame_add_members(sender_begin(peer->link, FRAME_MEMBERS, 0), members);
    sender_end(federation, peer->link, 0);
}

/* So different that others should know: a few more or less of many are the same. */
static bool differs(uint32_t before, uint32_t now) {
    uint32_t more = before < now ? now - before : before - now;
    return more > before / 4 || (before == 0) != (now == 0);
}

void federation_members(struct federation *federation, const char *group, size_t size) {
    struct interest *interest = interest_find(federation, group, size);
    if (!interest || interest->want_count == 0 || federation->ends) return;
    struct share_members before = interest->members, now = broker_share_members(federation->broker, group, size);
    if (!differs(before.connected, now.connected) && !differs(before.away, now.away)) return;
    struct frame_members members = members_of(federation, interest);
    for (uint16_t i = 0; i < interest->want_count; i++) {
        const struct want *want = &interest->wants[i];
        if (want->state == WANT_SENT || want->state == WANT_JOINED)
            say_members(federation, federation->peers[want->peer], &members);
    }
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
    if (!is_group(interest)) return;
    struct frame_members members = members_of(federation, interest);
    say_members(federation, peer, &members);
}

/* Without memory the join is not made; the publisher's invite asks again with each publication. */
static void want_add(struct federation *federation, struct interest *interest, struct peer *peer) {
    const struct filter_text filter = interest_filter(interest);
    if (interest_want(interest, peer) || !policy_lets(&peer->rules, POLICY_IMPORT, filter.text, filter.size)) return;
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
    federation->group_count -= is_group(interest);
    free(interest->wants);
    interest->wants = NULL;
    row_orphan(federation, &interest->row);
}

static struct interest *make(struct federation *federation, const char *filter, size_t size) {
    static const struct subscription plain = {.qos = 2};
    struct interest *interest = named_new(sizeof *interest, filter, size);
    if (!interest) return NULL;
    row_init(&interest->row, ROW_NEWSUB);
    interest->inner = topic_share_split(filter, size);
    interest->subscriber.kind = SUBSCRIBER_PEER;
    const struct filter_text inner = interest_filter(interest);
    if (subs_add(federation->interest_tree, inner.text, inner.size, &interest->subscriber, &plain) != SUBS_OK)
        goto fail;
    if (names_add(&federation->interests, &interest->row.named)) {
        subs_remove(federation->interest_tree, inner.text, inner.size, &interest->subscriber);
        goto fail;
    }
    federation->group_count += is_group(interest);
    return interest;
fail:
    free(interest);
    return NULL;
}

static void tell(struct federation *federation, struct interest *interest) {
    const struct filter_text filter = interest_filter(interest);
    row_want(federation, &interest->row,
             policy_lets_some_peer(federation->policy, POLICY_IMPORT, filter.text, filter.size));
}

void interests_tell(struct federation *federation) {
    for (struct named *named = federation->interests.first; named; named = named->next)
        tell(federation, (struct interest *)(void *)named);
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
    tell(federation, interest);
    for (size_t i = 0; i < federation->peer_count; i++) {
        struct peer *peer = federation->peers[i];
        if (peer && peer->alive && is_adverted(interest, peer)) want_add(federation, interest, peer);
    }
    return 0;
}

/* It is kept no longer: only where a row of the peer asks for it a join is of use. */
static void drop_unasked(struct federation *federation, struct interest *interest) {
    for (uint16_t i = interest->want_count; i-- > 0;) {
        struct peer *peer = federation->peers[interest->wants[i].peer];
        if (!is_adverted(interest, peer)) leave(federation, interest, peer, &interest->wants[i]);
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
    const struct filter_text filter = interest_filter(interest);
    subs_remove(federation->interest_tree, filter.text, filter.size, &interest->subscriber);
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

/* What the peer has of the topics in question is not joined yet. */
struct meeting {
    struct federation *federation;
    struct peer *peer;
    size_t met;
};

static void on_met(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    (void)subscription;
    struct meeting *meeting = context;
    struct interest *interest = (struct interest *)(void *)((char *)subscriber - offsetof(struct interest, subscriber));
    want_add(meeting->federation, interest, meeting->peer);
    const struct want *want = interest_want(interest, meeting->peer);
    if (!want || want->state != WANT_REFUSED) meeting->met++;
}

typedef void subs_walk(const struct subs *subs, const char *text, size_t size, subs_on_hit *on_hit, void *context);

static size_t meet(struct federation *federation, struct peer *peer, subs_walk *walk, const char *text, size_t size) {
    struct meeting meeting = {.federation = federation, .peer = peer};
    walk(federation->interest_tree, text, size, on_met, &meeting);
    return meeting.met;
}

size_t interest_invited(struct federation *federation, struct peer *peer, const char *topic, size_t size) {
    return meet(federation, peer, subs_match, topic, size);
}

void interest_advert(struct federation *federation, struct peer *peer, const char *filter, size_t size) {
    meet(federation, peer, topic_has_wildcard(filter, size) ? subs_meet : subs_match, filter, size);
}

void interest_review(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named && peer->want_count > 0; named = named->next) {
        struct interest *interest = (struct interest *)(void *)named;
        struct want *want = interest_want(interest, peer);
        const struct filter_text filter = interest_filter(interest);
        bool imported = policy_lets(&peer->rules, POLICY_IMPORT, filter.text, filter.size);
        bool asked = interest->level != KEEP_NOT || is_adverted(interest, peer);
        if (want && !(imported && asked)) leave(federation, interest, peer, want);
    }
}

void interest_seek(struct federation *federation, struct peer *peer) {
    for (struct named *named = federation->interests.first; named; named = named->next) {
        struct interest *interest = (struct interest *)(void *)named;
        if (is_adverted(interest, peer)) want_add(federation, interest, peer);
    }
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

typedef bool interest_is(const struct interest *interest);

static bool is_any(const struct interest *interest) {
    (void)interest;
    return true;
}

static bool is_kept_for_a_run(const struct interest *interest) {
    return interest->level == KEEP_RUN;
}

static bool is_lasting(const struct interest *interest) {
    return interest->level == KEEP_LASTING;
}

static void add_item(const struct federation *federation, struct frame_out *out, enum frame_type type,
                     struct interest *interest) {
    if (type != FRAME_MEMBERS) {
        frame_add_name(out, interest->row.named.text, interest->row.named.size);
        return;
    }
    struct frame_members members = members_of(federation, interest);
    frame_add_members(out, &members);
}

/* Frames of this type about all interests at the peer that are of this kind. */
static void say_all(struct federation *federation, struct peer *peer, enum frame_type type, uint64_t number,
                    interest_is *is_meant) {
    struct link *link = peer->link;
    struct frame_out *out = NULL;
    for (struct named *named = federation->interests.first; named && link && peer->link == link; named = named->next) {
        struct interest *interest = (struct interest *)(void *)named;
        struct want *want = interest_want(interest, peer);
        if (!want || !is_meant(interest)) continue;
        if (out && out->size >= federation->limits.link_frame_bytes) {
            end_names(federation, peer, type);
            out = NULL;
            if (peer->link != link) return;
        }
        if (!out) out = sender_begin(link, type, number);
        if (out->item_count == 0) federation->join_frames += type == FRAME_JOIN;
        add_item(federation, out, type, interest);
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
    if (peer->rejoins) say_all(federation, peer, FRAME_LEAVE, 0, is_any);
    say_all(federation, peer, FRAME_JOIN, 0, is_any);
    say_all(federation, peer, FRAME_KEEP, KEEP_RUN, is_kept_for_a_run);
    say_all(federation, peer, FRAME_KEEP, KEEP_LASTING, is_lasting);
    say_all(federation, peer, FRAME_MEMBERS, 0, is_group);
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
