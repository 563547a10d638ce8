/* What local sessions subscribe to, counted: filters, and groups of shared subscriptions. Each is a newsub row, and a
 * join wanted at every peer whose adverts intersect its filter, as far as the policy imports it. */
#ifndef BROKER_INTEREST_H
#define BROKER_INTEREST_H

#include "broker/rows.h"
#include "broker/selection.h"

enum want_state {
    WANT_NEW,
    WANT_SENT,
    WANT_JOINED,
    WANT_REFUSED,
    WANT_ASLEEP /* the peer is gone, and keeps the join */
};
struct want {
    uint16_t peer; /* index */
    uint8_t state;
    uint8_t status; /* of the last answer, enum joined_status */
    uint32_t frame; /* number of the frame that said it; stock.h */
};

/* Of one filter as it is subscribed to: with "$share/NAME/" for a group. */
struct interest {
    struct row row;
    size_t inner;                 /* of a group: where its filter begins; else 0 */
    struct subscriber subscriber; /* in federation.interest_tree */
    uint64_t count;
    uint64_t kept[KEEP_LASTING + 1]; /* of them, those at each level; of KEEP_NOT it is not counted */
    enum keep_level level;           /* as peers are told it */
    struct share_members members;    /* of a group, as peers were told of them last */
    struct timer linger;
    struct want *wants;
    uint16_t want_count, want_capacity;
    uint16_t missing; /* wants that are NEW or SENT */
    struct barrier_wait *waits;
    struct interest *waiting_prev, *waiting_next; /* in federation.waiting while waits is not empty */
};

/* The join is wanted, and not answered yet. */
static inline bool want_is_missing(const struct want *want) {
    return want->state == WANT_NEW || want->state == WANT_SENT;
}

struct want *interest_want(struct interest *interest, const struct peer *peer); /* NULL if there is none */
/* The topic filter: of a group the part behind its name. */
struct filter_text {
    const char *text;
    size_t size;
};
static inline struct filter_text interest_filter(const struct interest *interest) {
    return (struct filter_text){interest->row.named.text + interest->inner, interest->row.named.size - interest->inner};
}

int interest_add(struct federation *federation, const char *filter, size_t size);
void interest_keep(struct federation *federation, const char *filter, size_t size, enum keep_level before,
                   enum keep_level level);
void interest_drop(struct federation *federation, const char *filter, size_t size);
/* A newpub row of the peer appeared: joins what intersects it. */
void interest_advert(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* Drops the joins at the peer that its rules exclude, or that no row of it asks for. Those that are kept stay without a
 * row: what is published after all, while this broker is away, is to wait for it. */
void interest_review(struct federation *federation, struct peer *peer);
/* Tells, or withdraws, rows: another policy says what is imported. */
void interests_tell(struct federation *federation);
/* Joins at the peer what its rows ask for and is not joined yet. */
void interest_seek(struct federation *federation, struct peer *peer);
/* The peer invites to a topic: joins what matches. Returns how many do. */
size_t interest_invited(struct federation *federation, struct peer *peer, const char *topic, size_t size);
void interest_joined(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                     enum joined_status status);
/* The joins of this frame that are not answered; their texts are borrowed. */
void interest_told(const struct federation *federation, const struct peer *peer, uint32_t frame,
                   struct selection *joins);
/* Says all joins, again, after those that are to be left (peer.rejoins). */
void interest_sync(struct federation *federation, struct peer *peer);
/* Joins there are over (the peer forgot them): all wants are new. */
void interest_void(struct federation *federation, struct peer *peer);
/* The peer is gone: no wants there but for those that it keeps, until interest_wake(). */
void interest_sleep(struct federation *federation, struct peer *peer);
void interest_wake(struct federation *federation, struct peer *peer);
/* The peer keeps nothing any more. */
void interest_forget(struct federation *federation, struct peer *peer);
void interest_tick(struct federation *federation);
void interest_deinit(struct federation *federation);

#endif
