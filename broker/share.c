#include "broker/share.h"

#include "broker/engine.h"
#include "broker/hash.h"
#include "broker/topic.h"

#include <stdlib.h>
#include <utlist.h>

static unsigned place_hash(const struct broker *broker, const struct share_place *place) {
    return (unsigned)hash_bytes(broker->seed, place, sizeof *place);
}

static struct share_member *member_find(const struct broker *broker, struct share *share, struct session *session) {
    struct share_place place = {.share = share, .session = session};
    struct share_member *member;

    HASH_FIND_BYHASHVALUE(hh, broker->share_members, &place, sizeof place, place_hash(broker, &place), member);
    return member;
}

static void ring_add(struct share_member *member) {
    struct share *share = member->place.share;

    member->connected = member->place.session->client != NULL;
    if (member->connected) {
        CDL_APPEND(share->connected, member);
        share->connected_count++;
    } else {
        CDL_APPEND(share->away, member);
        share->away_count++;
    }
}

static void ring_remove(struct share_member *member) {
    struct share *share = member->place.share;

    if (member->connected) {
        CDL_DELETE(share->connected, member);
        share->connected_count--;
    } else {
        CDL_DELETE(share->away, member);
        share->away_count--;
    }
}

static bool is_empty(const struct share *share) {
    return share->connected_count + share->away_count == 0 && share->remotes == NULL;
}

bool share_has_members_here(const struct subscriber *group) {
    const struct share *share =
        (const struct share *)(const void *)((const char *)group - offsetof(struct share, subscriber));

    return share->connected_count + share->away_count > 0;
}

struct share *share_find(const struct broker *broker, const char *filter, size_t size) {
    return (struct share *)(void *)names_find(&broker->shares, filter, size);
}

void share_release(struct share *share) {
    if (--share->references > 0) return;
    names_remove(&share->broker->shares, &share->named);
    free(share);
}

void share_member_ref(struct share_member *member) {
    member->outgoing++;
}

static void free_if_done(struct share_member *member) {
    if (!member->left || member->outgoing > 0) return;
    share_release(member->place.share);
    free(member);
}

void share_member_unref(struct share_member *member) {
    if (member == NULL) return;
    member->outgoing--;
    free_if_done(member);
}

struct share *share_take(struct broker *broker, const char *filter, size_t size) {
    struct share *share = share_find(broker, filter, size);

    if (share == NULL) {
        share = named_new(sizeof *share, filter, size);
        if (share == NULL) return NULL;
        share->subscriber.kind = SUBSCRIBER_SHARE;
        share->broker = broker;
        share->inner = (uint32_t)topic_share_split(filter, size);
        if (names_add(&broker->shares, &share->named) != 0) {
            free(share);
            return NULL;
        }
    }
    share->references++;
    return share;
}

int share_enter(struct share *share) {
    static const struct subscription plain = {.qos = 2}; /* what is granted is each member's */

    if (!is_empty(share)) return 0;
    return subs_add(share->broker->subs, share->named.text + share->inner, share->named.size - share->inner,
                    &share->subscriber, &plain) == SUBS_NO_MEMORY
               ? -1
               : 0;
}

void share_leave_if_empty(struct share *share) {
    if (is_empty(share))
        subs_remove(share->broker->subs, share->named.text + share->inner, share->named.size - share->inner,
                    &share->subscriber);
}

/* Other brokers give its members here what is their part. */
static void tell(struct broker *broker, const struct share *share) {
    federation_members(broker->federation, share->named.text, share->named.size);
}

static struct share_member *member_new(struct broker *broker, struct share *share, struct session *session) {
    struct share_member *member = calloc(1, sizeof *member);

    if (member == NULL) return NULL;
    member->place = (struct share_place){.share = share, .session = session};
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, broker->share_members, &member->place, sizeof member->place,
                                place_hash(broker, &member->place), member);
    if (member->hh.tbl == NULL) {
        free(member);
        return NULL;
    }
    return member;
}

enum subs_result share_join(struct broker *broker, struct session *session, const char *filter, size_t size,
                            const struct subscription *subscription) {
    struct share *share = share_take(broker, filter, size);
    struct share_member *member = share != NULL ? member_find(broker, share, session) : NULL;

    if (share == NULL) return SUBS_NO_MEMORY;
    if (member != NULL) {
        share_release(share); /* this one's is enough */
        member->subscription = *subscription;
        return SUBS_REPLACED;
    }
    member = member_new(broker, share, session);
    if (member != NULL && share_enter(share) != 0) {
        HASH_DEL(broker->share_members, member);
        free(member);
        member = NULL;
    }
    if (member == NULL) {
        share_release(share);
        return SUBS_NO_MEMORY;
    }
    member->subscription = *subscription;
    ring_add(member);
    DL_APPEND2(session->memberships, member, session_prev, session_next);
    tell(broker, share);
    return SUBS_OK;
}

/* It is no member any more, but not yet freed. */
static void take_out(struct broker *broker, struct share_member *member) {
    HASH_DEL(broker->share_members, member);
    ring_remove(member);
    DL_DELETE2(member->place.session->memberships, member, session_prev, session_next);
    member->left = true;
    share_leave_if_empty(member->place.share);
}

void share_leave(struct broker *broker, uint64_t now_ms, struct session *session, const char *filter, size_t size) {
    struct share *share = share_find(broker, filter, size);
    struct share_member *member = share != NULL ? member_find(broker, share, session) : NULL;

    if (member == NULL) return;
    take_out(broker, member);
    tell(broker, share);
    share_member_ref(member); /* it must stay for the walk */
    if (member->outgoing > 1) share_pass_on(broker, now_ms, session, member, SHARE_LEFT);
    share_member_unref(member);
}

static void leave_all(struct session *session, bool is_told) {
    while (session->memberships != NULL) {
        struct share_member *member = session->memberships;
        struct broker *broker = member->place.share->broker;
        take_out(broker, member);
        if (is_told) tell(broker, member->place.share);
        free_if_done(member);
    }
}

void share_end(struct broker *broker, uint64_t now_ms, struct session *session) {
    leave_all(session, true);
    share_pass_on(broker, now_ms, session, NULL, SHARE_ENDED);
}

void share_forget(struct session *session) {
    leave_all(session, false);
}

void share_attach(struct session *session) {
    struct share_member *member;

    DL_FOREACH2(session->memberships, member, session_next) {
        ring_remove(member);
        ring_add(member);
        tell(member->place.share->broker, member->place.share);
    }
}

void share_detach(struct broker *broker, uint64_t now_ms, struct session *session) {
    struct share_member *member;
    bool somebody = false; /* could take over */

    DL_FOREACH2(session->memberships, member, session_next) {
        ring_remove(member);
        ring_add(member);
        tell(broker, member->place.share);
        somebody = somebody || (member->outgoing > 0 &&
                                (member->place.share->connected_count > 0 || member->place.share->remotes != NULL));
    }
    if (somebody && !broker->stopping) share_pass_on(broker, now_ms, session, NULL, SHARE_DETACHED);
}

void share_recall_end(struct share_recall *recall) {
    subs_free(recall->filters);
    *recall = (struct share_recall){0};
}

static int recall_filters(struct broker *broker, struct share_recall *recall, struct session *session) {
    static const struct subscription plain = {.qos = 2};

    share_recall_end(recall);
    recall->filters = subs_new(broker->seed);
    for (uint32_t i = 0; recall->filters != NULL && i < session->filters.count; i++) {
        const struct filter *filter = &session->filters.items[i];
        size_t inner = topic_share_split(filter->text, filter->size);
        struct share *share = share_find(broker, filter->text, filter->size);
        struct subscriber *subscriber = inner > 0 ? &share->subscriber : &session->subscriber;
        if (subs_add(recall->filters, filter->text + inner, filter->size - inner, subscriber, &plain) < 0)
            share_recall_end(recall);
    }
    if (recall->filters == NULL) return -1;
    recall->session = session;
    recall->filter_count = session->filters.count;
    return 0;
}

struct recalled {
    struct share *share; /* the last one that matches */
    unsigned count;      /* of those that match */
};

static void on_recalled(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    struct recalled *recalled = context;

    (void)subscription;
    recalled->count++;
    recalled->share = subscriber->kind == SUBSCRIBER_SHARE
                          ? (struct share *)(void *)((char *)subscriber - offsetof(struct share, subscriber))
                          : NULL;
}

int share_recall(struct broker *broker, struct share_recall *recall, struct session *session, const char *topic,
                 size_t size, struct share_member **member) {
    struct recalled recalled = {0};

    *member = NULL;
    if (session->memberships == NULL) return 0;
    if ((recall->session != session || recall->filter_count != session->filters.count) &&
        recall_filters(broker, recall, session) != 0)
        return -1;
    subs_match(recall->filters, topic, size, on_recalled, &recalled);
    if (recalled.count == 1 && recalled.share != NULL) *member = member_find(broker, recalled.share, session);
    return 0;
}
