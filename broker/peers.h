/* What the files of the peer side share: the federation and its peers. Each part is changed by one file only, named beside it.
 *
 *   peers.c     the table of peers, their registry rows
 *   rows.c      our own registry rows
 *   interest.c  filters subscribed here; the joins we want at peers
 *   advert.c    topics published here
 *   group.c     joins of peers at us
 *   replay.c    invites, and publications held for joins on their way
 *   barrier.c   SUBACKs that wait
 *   link.h      links
 */
#ifndef BROKER_PEERS_H
#define BROKER_PEERS_H

#include "broker/federation.h"
#include "broker/frames.h"
#include "broker/names.h"
#include "broker/outbox.h"
#include "broker/timers.h"

/* Bounds that are not worth a setting. */
enum {
    PEERS_INDEX_MAX = 32768,           /* an index and the number of wants fit 16 bits */
    PEER_JOINS_MAX = 65536,            /* filters a peer may join here */
    PEER_ROWS_MAX = 8192,              /* registry rows of each kind per peer */
    PEER_INVITES_MAX = 4096,           /* topics a peer is invited to or has declined at one time */
    PEER_JOIN_KEEP_MS = 30000,         /* joins outlive a lost link for this long */
    PEER_DECLINE_MAX_MS = 30000,       /* longest a decline counts */
    ADVERTS_MAX = 100000,              /* topics; the one published to longest ago goes first */
    LINK_CONTROL_MAX = 16 * 1024 * 1024, /* bytes of frames waiting besides publications */
    LINK_DIAL_MS = 5000,               /* from the dial to the end of the TLS handshake */
    LINK_HELLO_MS = 5000,              /* from there to the hello */
    LINK_UNUSED_MS = 60000,            /* a link without business is closed after this */
    LINK_ENDED_MS = 5000,              /* a link that ended is forgotten after this, its last frame sent or not */
    LINK_ACK_MS = 50,
    LINK_ACK_BYTES = 256 * 1024,       /* publications received that are acknowledged without waiting */
    LINK_HELLO_SIZE_MAX = 65536,
    LINK_FRAME_SLACK = 1024 * 1024,    /* a frame may hold this much besides one packet of packet_size_max */
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 10000,
    BARRIER_PEERS_MAX = 32             /* with more alive peers SUBACK waits for joins only */
};

struct peer;
struct link;

/* A row of our own in the registry. First member of interest and advert. */
struct row {
    struct named named;
    enum row_kind kind;
    bool wanted, told;
    bool queued;  /* in federation.row_queue */
    bool pending; /* in federation.unsequenced: told as active, its sequence to come */
    bool orphan;  /* its owner is done with it: rows.c frees it when the withdrawal was told */
    uint64_t ticket;
    uint64_t sequence; /* 0 until known */
    struct row *queue_prev, *queue_next, *pending_prev, *pending_next;
};

enum want_state { WANT_NEW, WANT_SENT, WANT_JOINED, WANT_REFUSED };
struct want {
    uint16_t peer; /* index */
    uint8_t state;
};

/* A filter that local sessions subscribe to. */
struct interest {
    struct row row;
    struct subscriber subscriber; /* in federation.interest_tree */
    uint64_t count;
    struct timer linger;
    struct want *wants;
    uint16_t want_count, want_capacity;
    uint16_t missing; /* wants that are NEW or SENT */
    struct barrier_wait *waits;
    struct interest *waiting_prev, *waiting_next; /* in federation.waiting while waits is not empty */
};

struct advert {
    struct row row;
    uint64_t published_ms;
    uint64_t settled; /* federation.generation at which nobody had to be invited; 0 never */
};

struct hold;

/* A peer's registry interest as a subscriber, so that a tree finds the peers whose rows match a topic. */
struct peer_rows {
    struct subscriber subscriber;
    struct peer *peer;
};

struct peer {
    struct subscriber subscriber; /* in the broker's tree: what it joined here */
    struct peer_rows rows;        /* in federation.peer_rows: its newsub rows */
    uint16_t index;
    struct peer_id id;
    char name[64];
    bool alive;
    uint64_t epoch; /* 0 until known */
    uint64_t known_sequence;
    struct names newpub, newsub; /* of bare struct named */
    struct names joins;          /* of struct join (group.c) */
    struct timer timer;          /* the earliest of the times below; peers.c */
    uint64_t joins_void_ms;      /* link lost: joins end then; UINT64_MAX with a link */
    uint64_t review_ms;          /* wants without an advert are dropped then */
    uint64_t dial_ms;            /* not dialled before this */
    uint32_t backoff_ms;
    uint32_t want_count, want_joined; /* joins we want there; interest.c */
    uint64_t hit;                /* federation.publication that reached it through a join */
    /* replay.c */
    struct hold *holds;
    uint64_t hold_bytes;
    uint64_t replay_ms;          /* holds or invites may be over then */
    struct names invites;
    bool snapshot_lost; /* a retained publication was dropped: kept joins need their snapshot again */
    /* sending; sender.c, hello.c */
    struct outbox outbox;
    uint64_t stream;
    /* receiving; hello.c, receive.c */
    uint64_t seen_epoch, seen_stream, expected;
    struct link *link;    /* the one in use */
    struct link *attempt; /* dialled and not yet up */
    struct link_info totals; /* counters only; the rest is filled when asked */
};

struct private_filter {
    struct private_filter *next;
    size_t size;
    char text[];
};

struct federation {
    struct broker *broker;
    struct subs *subs;
    struct retained *retained;
    struct broker_limits limits;
    char name[64];
    struct peer_id id;
    uint64_t epoch, random, now_ms; /* now_ms: of the call under way */
    struct private_filter *privates;
    uint8_t *token;
    size_t token_size;
    struct peer_questions questions;

    struct peer **peers;
    size_t peer_count, peer_capacity;
    size_t alive_count;
    uint64_t streams;
    struct link *links; /* utlist DL */
    size_t link_count;
    broker_handle last_handle;
    struct link *ready; /* named by broker_next_link; utlist with ready_prev, ready_next */
    bool dial_due;      /* some peer may want a dial */

    struct names interests; /* of struct interest */
    struct names adverts;   /* of struct advert, the one published to longest ago first */
    struct subs *interest_tree, *peer_rows;
    struct row *row_queue, *unsequenced;
    struct row *row_given; /* the filter of the last row change given is its */
    uint64_t tickets;

    struct interest *waiting;
    struct barrier *barriers, *released;
    uint64_t barrier_numbers;

    uint64_t generation;  /* changes with anything after which somebody more may have to be invited */
    uint64_t publication; /* number of the one being published */
    struct timers link_timers, peer_timers, linger_timers, barrier_timers;
    struct timer advert_timer;
    struct timers advert_timers;
    struct peering_counters counters;
};

uint64_t federation_random(struct federation *federation);
/* Stays here whatever peers want: starts with $, or is private as a whole. */
bool federation_filter_is_local(const struct federation *federation, const char *filter, size_t size);

/* ---- peers.c ---- */

struct peer *peers_find(const struct federation *federation, const struct peer_id *id);
/* Finds it or makes it; NULL when peers_max are alive or linked, or memory is short. */
struct peer *peers_make(struct federation *federation, const struct peer_id *id);
void peer_free(struct federation *federation, struct peer *peer);
void peer_alive(struct federation *federation, struct peer *peer, const char *name, uint64_t epoch);
/* A later run of the same peer: joins on both sides are void. */
void peer_restarted(struct federation *federation, struct peer *peer, uint64_t epoch);
void peer_gone(struct federation *federation, struct peer *peer);
void peer_row(struct federation *federation, struct peer *peer, enum row_kind kind, const char *filter, size_t size, bool active);
bool peer_adverts(const struct peer *peer, const char *filter, size_t size);
/* There is something to exchange with it. */
bool peer_has_business(const struct federation *federation, const struct peer *peer);
/* A dial is due now. */
bool peer_wants_dial(const struct federation *federation, const struct peer *peer);
/* To be called when business may have arisen: dials if there is no link. */
void peer_want_link(struct federation *federation, struct peer *peer);
void peer_back_off(struct federation *federation, struct peer *peer);
void peer_set_timer(struct federation *federation, struct peer *peer);
void peers_tick(struct federation *federation);
/* Its link is up; its link is lost. */
void peer_linked(struct federation *federation, struct peer *peer);
void peer_unlinked(struct federation *federation, struct peer *peer);

/* ---- rows.c ---- */

void row_init(struct row *row, enum row_kind kind);
void row_want(struct federation *federation, struct row *row, bool wanted);
/* Withdraws it, and frees it (it must be the first member of its allocation) when that was told. */
void row_orphan(struct federation *federation, struct row *row);
bool rows_next(struct federation *federation, struct broker_row_change *change);
void rows_sequenced(struct federation *federation, uint64_t ticket, uint64_t sequence);
void rows_deinit(struct federation *federation);

/* ---- interest.c ---- */

int interest_add(struct federation *federation, const char *filter, size_t size);
void interest_drop(struct federation *federation, const char *filter, size_t size);
/* A newpub row of the peer appeared: joins what intersects it. */
void interest_advert(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* Drops the joins at the peer that no row of it asks for. */
void interest_review(struct federation *federation, struct peer *peer);
/* The peer invites to a topic: joins the filters that match. Returns how many do. */
size_t interest_invited(struct federation *federation, struct peer *peer, const char *topic, size_t size);
void interest_joined(struct federation *federation, struct peer *peer, const char *filter, size_t size, enum joined_status status);
/* Says all joins again on a new link. */
void interest_sync(struct federation *federation, struct peer *peer);
/* Joins there are over (the peer forgot them): all wants are new. */
void interest_void(struct federation *federation, struct peer *peer);
/* The peer is gone: no wants there. */
void interest_forget(struct federation *federation, struct peer *peer);
void interest_tick(struct federation *federation);
void interest_deinit(struct federation *federation);

/* ---- advert.c ---- */

/* The topic is published to now: its advert, new or old; NULL when memory is short. */
struct advert *advert_touch(struct federation *federation, const char *topic, size_t size);
void adverts_tick(struct federation *federation);
void adverts_deinit(struct federation *federation);

/* ---- group.c ---- */

enum group_result { GROUP_OK = 0, GROUP_NO_MEMORY = -1, GROUP_OVERLOAD = -2 };
/* Puts the snapshot and what was held for this filter into the outbox, then the peer into the tree. A repeated join only
 * confirms. The negative results mean that the link should be given up. */
enum group_result group_join(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* What to answer to a join after group_join(). */
enum joined_status group_status(const struct federation *federation, const struct peer *peer, const char *filter, size_t size);
void group_leave(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* A new link: all joins have to be said again, then group_synced() drops those that were not. */
void group_stale(struct federation *federation, struct peer *peer);
void group_synced(struct federation *federation, struct peer *peer);
void group_clear(struct federation *federation, struct peer *peer);

/* ---- replay.c ---- */

/* Keeps the message for the peer and invites it, once per topic until it answers. False if the peer has declined the topic. */
bool replay_hold(struct federation *federation, struct peer *peer, struct message *message);
/* Moves what matches the filter to the outbox, in order. */
enum outbox_result replay_joined(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* A message that is held and matches: a snapshot would repeat it. */
bool replay_holds(const struct peer *peer, const struct message *message);
void replay_declined(struct federation *federation, struct peer *peer, const char *topic, size_t size, uint64_t ttl_ms);
/* The peer's interest changed: what it declined may be asked again. */
void replay_reconsider(struct federation *federation, struct peer *peer);
/* Invites without an answer go out on a new link. */
void replay_sync(struct federation *federation, struct peer *peer);
/* Drops what is over and sets replay_ms anew. */
void replay_expire(struct federation *federation, struct peer *peer);
void replay_clear(struct federation *federation, struct peer *peer);

/* ---- barrier.c ---- */

uint64_t barrier_new(struct federation *federation, const char *const *filters, const size_t *sizes, size_t count);
bool barrier_next_released(struct federation *federation, uint64_t *number, bool *timed_out);
/* Something this interest waited for may have come. */
void barrier_check(struct federation *federation, struct interest *interest);
/* The same for all: a peer came, went, or knows more. */
void barrier_check_all(struct federation *federation);
/* The interest ends: nobody may wait for it. */
void barrier_abandon(struct federation *federation, struct interest *interest);
void barriers_tick(struct federation *federation);
void barriers_deinit(struct federation *federation);

#endif
