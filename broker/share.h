/* Inside broker/: shared subscriptions (MQTT 5.0 section 4.8.2), for MQTT 3.1.1 clients too.
 *
 * A group is all sessions subscribed to the same "$share/NAME/FILTER", here and at other brokers (G7). It is one
 * subscriber in the tree, at FILTER; each publication that hits it goes to one member, chosen when it is delivered, by
 * the broker it was published at. That of another broker counts for it as one, with the weight of its members there:
 * which of them it is that broker chooses. A publication of QoS 1 or 2 remembers through whom it came to its session,
 * so that another member can get it when the session goes.
 */
#ifndef BROKER_SHARE_H
#define BROKER_SHARE_H

#include "broker/federation.h"
#include "broker/message.h"
#include "broker/names.h"
#include "broker/subs.h"

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

struct broker;
struct session;

/* The members at one other broker. */
struct share_remote {
    struct share_remote *prev, *next;
    struct subscriber *peer;
    struct share_members members;
    int64_t turn; /* share_remote_next() */
};

struct share {
    struct named named; /* first: in broker.shares, by the filter as subscribed */
    struct subscriber subscriber;
    struct broker *broker;
    struct share_member *connected, *away; /* rings of the members with and without a connection; next to be asked */
    uint32_t connected_count, away_count;
    struct share_remote *remotes;
    int64_t turn;        /* of those here, among the remotes */
    uint32_t references; /* member structs and remotes: it goes with the last */
    uint32_t inner;      /* where FILTER begins in named.text */
    uint64_t walk;       /* share_pass_on() that asked it last, and what it refused there in a row: */
    uint32_t refused_count;
    size_t refused_size; /* of the largest of them */
};

/* What a member is found by. */
struct share_place {
    struct share *share;
    struct session *session;
};

/* A session's place in a group. It is left behind while publications are under way that came through it. */
struct share_member {
    struct share_place place; /* its session counts only while it is a member */
    UT_hash_handle hh;        /* of broker.share_members, by place */
    struct share_member *prev, *next;
    struct share_member *session_prev, *session_next; /* of session.memberships */
    struct subscription subscription;
    uint32_t outgoing; /* publications that came through it and are not done */
    bool connected;    /* in that ring */
    bool left;
};

/* ---- share.c: who is in ---- */

/* Of the subscriber that a group is. */
bool share_has_members_here(const struct subscriber *group);
struct share *share_find(const struct broker *broker, const char *filter, size_t size);
/* The group of this filter, with one more reference; made if need be. NULL when memory is short. */
struct share *share_take(struct broker *broker, const char *filter, size_t size);
void share_release(struct share *share);
/* Somebody is to be in it: it is in the tree then, if it was not. -1 when memory is short. */
int share_enter(struct share *share);
/* Somebody is no longer in it. */
void share_leave_if_empty(struct share *share);

/* Joins, or replaces the subscription of, the group of a filter that topic_share_split() takes. SUBS_OK, SUBS_REPLACED
 * or SUBS_NO_MEMORY and nothing changed. */
enum subs_result share_join(struct broker *broker, struct session *session, const char *filter, size_t size,
                            const struct subscription *subscription);
/* What waits for this member and was never sent goes to others, if there are any that can take it. */
void share_leave(struct broker *broker, uint64_t now_ms, struct session *session, const char *filter, size_t size);
/* The session's connection has come. */
void share_attach(struct session *session);
/* It has gone, and the session goes on without: what was never sent goes to members that are connected. */
void share_detach(struct broker *broker, uint64_t now_ms, struct session *session);
/* It leaves all groups; what it has not acknowledged goes to others. */
void share_end(struct broker *broker, uint64_t now_ms, struct session *session);
/* The same without a last word, for broker_free(). */
void share_forget(struct session *session);

/* Through which membership a publication came to a session that is restored, as no record tells: NULL if through none,
 * or if an ordinary subscription or another group may have been it. Messages of one session after the other cost one
 * look into its filters each, not one at each filter. 0, or -1 when memory is short. Zero before the first. */
struct share_recall {
    const struct session *session;
    uint32_t filter_count; /* of the session then */
    struct subs *filters;  /* of this session alone */
};
int share_recall(struct broker *broker, struct share_recall *recall, struct session *session, const char *topic,
                 size_t size, struct share_member **member);
void share_recall_end(struct share_recall *recall);

/* One more, or one less, publication under way that came through it. */
void share_member_ref(struct share_member *member);
void share_member_unref(struct share_member *member); /* NULL is fine */

/* ---- share_remote.c: members at other brokers ---- */

/* Whose turn it is among the remotes and those here, of whom so many count; NULL if it is theirs. */
struct share_remote *share_remote_next(struct share *share, uint32_t weight_here, bool connected_only,
                                       const struct message *message);
/* False if it cannot take it. */
bool share_remote_give(struct broker *broker, struct share *share, struct share_remote *remote,
                       struct message *message);
bool share_remote_give_any(struct broker *broker, struct share *share, bool connected_only, struct message *message);
bool share_remote_lasts(const struct share *share);

/* ---- share_deliver.c: who gets it ---- */

/* The group was hit by a publication. */
void share_deliver(struct broker *broker, uint64_t now_ms, struct subscriber *group, struct message *message);
/* Another broker says that a member here is to get it; false if there is none. */
bool share_deliver_here(struct broker *broker, uint64_t now_ms, struct share *share, struct message *message);

/* True if a durable session may be chosen for what has a QoS above 0. */
bool share_lasts(const struct subscriber *group);

enum share_reason {
    SHARE_DETACHED, /* never sent: to members that are connected, else it stays */
    SHARE_LEFT,     /* never sent: to any other, else it stays */
    SHARE_ENDED     /* all but QoS 2 that was sent (MQTT-4.8.2-5): to any other; the session is to be freed */
};
/* Passes on what came to the session through this member, or through any if it is NULL, in its order. */
void share_pass_on(struct broker *broker, uint64_t now_ms, struct session *session, const struct share_member *member,
                   enum share_reason reason);

#endif
