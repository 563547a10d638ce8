/* What the files of the peer side share: the federation and its peers. Each part is changed by one file only, named
 * beside it.
 *
 *   peers.c     the table of peers, their registry rows
 *   rows.h      our own registry rows
 *   interest.h  filters subscribed here; the joins we want at peers
 *   advert.h    topics published here
 *   group.h     joins of peers at us
 *   compare.h   what is retained here, compared with what they hold; stock.h: the other way round
 *   replay.h    invites, and publications held for joins on their way
 *   barrier.h   SUBACKs that wait
 *   link.h      links
 *   ledger.h    what became of publications; link_news.h tells of it
 *   carry.h     packets of gossip on links
 *   why_inside.h  why a publication reaches another broker, or does not
 *   unwanted.h  what peers ask for in vain because of our rows
 *   border.h    what the policy says of each peer, and what follows when it says something else
 */
#ifndef BROKER_PEERS_H
#define BROKER_PEERS_H

#include "broker/federation.h"
#include "broker/gaps.h"
#include "broker/kept.h"
#include "broker/link_news.h"
#include "broker/names.h"
#include "broker/outbox.h"
#include "broker/policy.h"
#include "broker/taken.h"
#include "broker/timers.h"

/* Bounds that are not worth a setting. */
enum {
    PEERS_INDEX_MAX = 32768,             /* an index and the number of wants fit 16 bits */
    PEER_JOINS_MAX = 65536,              /* filters a peer may join here, */
    PEER_JOIN_BYTES_MAX = 64 << 20,      /* and what they take up, about (group.c) */
    PEER_ROWS_MAX = 8192,                /* registry rows of each kind per peer */
    UNWANTED_MAX = 32,                   /* topics and filters asked for in vain, to be told */
    LINGER_MAX = 10000,                  /* filters that linger; that for which it is longest ago goes first */
    PEER_INVITES_MAX = 4096,             /* topics a peer is invited to or has declined at one time */
    PEER_JOIN_KEEP_MS = 30000,           /* joins outlive a lost link for this long */
    PEER_DECLINE_MAX_MS = 30000,         /* longest a decline counts */
    ADVERTS_MAX = 100000,                /* topics; the one published to longest ago goes first */
    ADVERT_BYTES_MAX = 64 << 20,         /* and their bytes */
    LINK_CONTROL_MAX = 16 * 1024 * 1024, /* bytes of frames waiting besides publications */
    LINK_YIELD_MS = 1000,                /* how long a dial of ours makes the peer's wait */
    LINK_DIAL_MS = 5000,                 /* from the dial to the end of the TLS handshake */
    LINK_HELLO_MS = 5000,                /* from there to the hello */
    LINK_UNUSED_MS = 60000,              /* a link without business is closed after this */
    LINK_ENDED_MS = 5000,                /* a link that ended is forgotten after this, its last frame sent or not */
    LINK_REFUSAL_MS = 60000,             /* the same refusal is no warning again within this */
    LINK_ACK_MS = 50,
    LINK_BEHIND_MS = 1000,       /* at least so long what could not be taken waits at the peer */
    LINK_ACK_BYTES = 256 * 1024, /* publications received that are acknowledged without waiting */
    LINK_HELLO_SIZE_MAX = 65536,
    LINK_FRAME_SLACK = 1024 * 1024, /* a frame may hold this much besides one packet of packet_size_max */
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 10000,
    CARRY_SEEK_MAX = 8,    /* dials at a time to addresses of which nobody knows who is there */
    BARRIER_PEERS_MAX = 32 /* with more alive peers SUBACK waits for joins only */
};

struct peer;
struct link;
struct row;
struct interest;
struct barrier;
struct why;

struct hold;

/* A group of a shared subscription with members at the peer: in federation.peer_rows, as a subscriber of its own. */
struct group_row {
    struct named named; /* first: in peer.newsub, with "$share/NAME/" */
    struct subscriber subscriber;
    struct peer *peer;
};
static inline struct group_row *group_row_of(struct subscriber *subscriber) {
    return (struct group_row *)(void *)((char *)subscriber - offsetof(struct group_row, subscriber));
}
/* A peer's registry interest as a subscriber, so that a tree finds the peers whose rows match a topic. */
struct peer_rows {
    struct subscriber subscriber;
    struct peer *peer;
};

struct peer {
    struct subscriber subscriber; /* in the broker's tree: what it joined here */
    struct federation *federation;
    struct peer_rows rows; /* in federation.peer_rows: its newsub rows; in newpub_tree: the others */
    uint16_t index;
    struct peer_id id;
    char name[64];
    struct policy_rules rules; /* of the policy for this name; border.c */
    bool alive;
    uint64_t epoch;         /* 0 until known */
    size_t group_row_count; /* of its newsub rows, those for groups */
    uint64_t rows_epoch;    /* of the run whose rows are known; they end with it */
    uint64_t known_sequence;
    struct names newpub, newsub; /* of bare struct named */
    struct subs *newpub_tree;    /* those of them that we import, for what meets them */
    struct names joins;          /* of struct join (group.c) */
    size_t join_bytes;           /* what they take up, about */
    struct timer timer;          /* the earliest of the times below; peers.c */
    uint64_t joins_void_ms;      /* link lost: joins end then, but for those that are kept; UINT64_MAX with a link */
    uint64_t stale_ms;           /* link back: kept joins that were not said again end then */
    uint64_t lapse_ms;           /* link lost: all that is kept for it ends then */
    uint64_t review_ms;          /* wants without an advert are dropped then */
    uint64_t dial_ms;            /* not dialled before this */
    uint32_t backoff_ms;
    uint32_t want_count, want_joined; /* joins we want there; interest.c */
    uint64_t unconfirmed;             /* number of the last barrier that it missed; barrier.c */
    bool rejoins;                     /* they are to be left first, so that the snapshots come again */
    uint64_t hit;                     /* federation.publication that reached it through a join, */
    uint64_t held;                    /* or that is held for it */
    struct aims *aims;                /* groups whose members there get what is being published; handout.c */
    bool aims_kept;
    /* replay.c */
    struct hold *holds[2]; /* nobody there was sent them yet; members of a group were */
    uint64_t hold_bytes;
    uint64_t replay_ms; /* holds or invites may be over then */
    struct names invites;
    bool snapshot_lost; /* a retained publication was dropped: kept joins need their snapshot again */
    /* sending; sender.c, hello.c, kept.c */
    struct outbox outbox;
    uint64_t stream;
    struct kept kept;
    struct taken taken;      /* receiving; hello.c, receive.c */
    struct link *link;       /* the one in use */
    struct link *attempt;    /* dialled and not yet up */
    uint64_t keep_until_ms;  /* gossip wants a link to it until then; carry.c */
    bool carry_told_up;      /* what the caller was told of its link; carry.c */
    struct link_info totals; /* counters only; the rest is filled when asked */
    struct gaps gaps;        /* in what came; ledger.c */
    struct link_news news;
    /* For who asks why nothing comes through (why_from.c). */
    uint64_t acked_ms;                 /* it acknowledged something; 0 never; receive.c, hello.c */
    uint64_t unacked_ms;               /* since then nothing of what is on its way; sender.c */
    uint64_t unlinked_ms;              /* when its link ended; 0: it has had none; link.c */
    char unlinked_why[LINK_NEWS_WHY];  /* it did; link.c */
    char undialled_why[LINK_NEWS_WHY]; /* since then another did not come up; link.c */
    uint64_t inquiries_ms;             /* inquiries are counted from then on; why.c */
    uint32_t inquiries;
};

/* Packets of gossip; carry.c. */
struct carry_queue {
    struct carried *first, *last;
    size_t bytes;
};

struct federation {
    struct broker *broker;
    struct subs *subs;
    struct retained *retained;
    struct broker_limits limits;
    char name[64], federation[64];
    struct peer_id id;
    uint64_t epoch, random, now_ms; /* now_ms: of the call under way */
    const struct policy *policy;    /* NULL: everything may pass */
    uint8_t *token;
    size_t token_size;
    struct peer_questions questions;

    struct peer **peers;
    size_t peer_count, peer_capacity;
    size_t alive_count;
    struct link *links; /* utlist DL */
    size_t link_count;
    broker_handle last_handle;
    struct link *ready; /* named by broker_next_link; utlist with ready_prev, ready_next */
    bool dial_due;      /* some peer may want a dial */
    /* carry.c */
    struct carry_queue arrived;
    bool arrived_given; /* the first of them is with the caller */
    bool carry_changed; /* a link came up or ended */
    struct {
        broker_handle link;
        struct peer_id peer;
    } found[CARRY_SEEK_MAX]; /* who answered the dials to addresses */
    size_t found_count;

    struct names interests; /* of struct interest */
    size_t group_count;     /* of them for shared subscriptions */
    struct names adverts;   /* of struct advert, about in the order of their last publications */
    struct subs *interest_tree, *peer_rows;
    struct row *row_queue, *unsequenced;
    struct row *row_given;                                    /* the filter of the last row change given is its */
    struct unwanted *unwanted[UNWANTED_MAX], *unwanted_given; /* unwanted.c */
    uint32_t unwanted_count;
    uint64_t wanted[2]; /* newpub, newsub */
    uint64_t tickets;

    struct interest *waiting;
    struct barrier *barriers, *released;
    uint64_t barrier_numbers;
    size_t digest_items; /* of all comparisons; stock.h */
    uint32_t join_frames, comparison_marks;

    uint64_t generation; /* changes with anything after which somebody more may have to be invited */
    uint64_t adverts_withdrawn;
    size_t advert_bytes;   /* of the topics of adverts */
    uint64_t outbox_bytes; /* of all outboxes; queues.c */
    uint64_t publication;  /* number of the one being published */
    uint64_t gave_in;      /* the one that was given to */
    struct aims *gave;     /* these groups */
    size_t aimed;          /* peers with aims */
    bool ends;
    struct timers link_timers, peer_timers, linger_timers, barrier_timers;
    uint32_t linger_count; /* interests that nobody has any more */
    struct timer advert_timer;
    struct timers advert_timers;
    uint64_t news_ms; /* link_news.c has something to tell then */
    struct why *whys; /* utlist DL */
    size_t why_count;
    uint64_t why_numbers;
    struct peering_counters counters;
    struct refusal {
        uint64_t hash, until_ms;
    } refusals[16]; /* what was said at warning level lately; link.c */
};

uint64_t federation_random(struct federation *federation);

/* ---- peers.c ---- */

struct peer *peers_find(const struct federation *federation, const struct peer_id *id);
/* Finds it or makes it; NULL when peers_max are alive or linked, or memory is short. */
struct peer *peers_make(struct federation *federation, const struct peer_id *id);
/* The same for one that an earlier run knew. 1 if there are too many, -1 when memory is short. */
int peers_restore(struct federation *federation, const uint8_t id[16], struct peer **peer);
void peer_free(struct federation *federation, struct peer *peer);
void peer_alive(struct federation *federation, struct peer *peer, const char *name, uint64_t epoch);
/* A later run of the same peer: joins on both sides are void. */
void peer_restarted(struct federation *federation, struct peer *peer, uint64_t epoch);
void peer_gone(struct federation *federation, struct peer *peer);
void peer_row(struct federation *federation, struct peer *peer, enum row_kind kind, const char *filter, size_t size,
              bool active);
/* Other rows of it count, by its rules. */
void peer_sift_rows(struct federation *federation, struct peer *peer);
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
/* No link, and none is to be expected soon: what is kept for it is all that waits. */
bool peer_is_away(const struct peer *peer);
/* It was away when an earlier run ended: what is kept for it ends then, or earlier. */
void peer_keep_until(struct federation *federation, struct peer *peer, uint64_t lapse_ms);
/* It has said all its joins again. */
void peer_synced(struct federation *federation, struct peer *peer);
/* Its link is up; its link is lost. */
void peer_linked(struct federation *federation, struct peer *peer);
void peer_unlinked(struct federation *federation, struct peer *peer);

#endif
