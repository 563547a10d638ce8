/* The state of a gossip. What happens for each packet walks over no members: what is due is found by timers (timers.h),
 * who is alive, suspect or absent by the parts of one array (members.c), what is to be told by a list, and the digests
 * are kept as they change. What the files of this folder do for one another is in verbs.h. */
#ifndef GOSSIP_STATE_H
#define GOSSIP_STATE_H

#include "gossip/budget.h"
#include "gossip/carrier.h"
#include "gossip/catchup.h"
#include "gossip/chance.h"
#include "gossip/conduct.h"
#include "gossip/cover.h"
#include "gossip/doubt.h"
#include "gossip/effort.h"
#include "gossip/graves.h"
#include "gossip/member.h"
#include "gossip/seal.h"
#include "gossip/shared.h"
#include "gossip/timers.h"
#include "gossip/transfer.h"
#include "gossip/wants.h"

#define BOOTSTRAP_MAX 64u
#define REMEMBERED_MAX 64u
#define GROUPS_MAX 4u
#define SOUGHT_MAX 8u
#define WHO_PLACES 64u
#define STRANGERS_MAX 128u /* unproven addresses whose bytes are counted */
#define UNVERIFIED_MAX                                                                                                 \
    256u               /* members whose token we have not seen; strangers replace one another, never a verified one */
#define RELAYS_MAX 64u /* probes made for others and not yet answered; a power of two */
#define ASKED_MAX 64u  /* helpers asked for a probe, the newest; a power of two */
#define OWN_ASK_MS 5000u
#define TOLD_EPOCH_MAX 8u
#define SEEN_MAX 4u
#define ROLL_WANTED_MAX 32u /* whom one answer brings */

/* names.c: numbers of those who are there, by hash of their name (linear probing). */
struct names {
    uint32_t *slots; /* 1 + number; 0 empty */
    uint32_t size;   /* a power of two, or 0 */
    uint32_t count;
};

struct digest {
    uint64_t all;
    uint64_t table;
    uint64_t buckets[MESSAGE_BUCKET_COUNT];
};

/* digest.c: whom we compare with. */
struct comparison {
    struct member_id with;
    uint64_t until_ms;       /* until then its answer is awaited, and the question said again if need be; 0: it came */
    uint64_t hurry_until_ms; /* until then we compare more often */
    uint64_t meet_ms;        /* before that, not at once with whoever becomes visible */
};

/* sweep.c: whose log, and by whom told, is gone through; who said in vain that it holds another. */
#define SWEEPS 4u
#define VAIN_MAX 16u
struct sweeps {
    struct sweep {
        struct member_id id, from;
        uint64_t at, asked, end; /* up to here it is the same, what is behind this was asked for, and so far it goes */
        uint64_t retry_ms, end_ms;
        uint32_t tries; /* left; 0: none is going on */
        bool found;     /* something differs */
    } of[SWEEPS];
    struct vain {
        struct member_id from;
        uint64_t until_ms;
    } vain[VAIN_MAX];
    uint32_t vain_next;
};

/* One packet being written. */
struct packet {
    struct gossip_address to;
    struct member *member; /* NULL: nobody we know */
    bool dial;             /* of our own accord, to an address we were configured with or that its owner signed */
    bool filled;           /* something besides the header */
    bool introduces;       /* our token is in it */
    enum budget_class class;
    struct wire_out out;
    uint8_t body[SEAL_PLAIN_MAX - MESSAGE_HEADER_MAX];
};

struct queued_event {
    struct queued_event *next;
    struct gossip_event event;
    char filter[];
};

#define STRANGER_PACKETS 8u /* so many may overtake one another */

struct stranger {
    uint8_t cookie[8]; /* of its address */
    bool used;
    uint64_t received, sent, last_ms;
    uint64_t dials_ms;                 /* what was sent there of our own accord is paid for by then */
    uint64_t greet_ms;                 /* next time that an answer is as long as it is */
    uint64_t prefix;                   /* of the packets from there that echoed its cookie; 0: there was none, */
    uint64_t proven_ms;                /* when the last of them came, */
    uint32_t newest[STRANGER_PACKETS]; /* and the newest counters, with 1 added */
};

struct bootstrap {
    struct gossip_address address;
    uint64_t number;         /* of the dial that is not answered yet */
    struct member_id member; /* who answered there last */
    bool answered;
    uint64_t self_until_ms; /* it is our own address, as far as we know */
};

/* seek.c: discovery by multicast. */
struct seek {
    uint64_t next_ms, gap_ms; /* our next SEEK, and how long before it the last one was */
    uint64_t dial_ms;         /* when the next of those that were sought is dialled; NEVER */
    uint32_t heard;           /* SEEKs of others since the last of ours */
    size_t group_count;
    struct gossip_address groups[GROUPS_MAX];
    size_t waiting; /* the first of these are still to be dialled */
    struct bootstrap sought[SOUGHT_MAX];
};

/* Helpers were asked to probe this member. */
struct asked {
    uint64_t number;       /* its low bits are the place of this record */
    uint64_t probe_number; /* of the probe it is about */
    struct member_id member;
};

/* roll.c: everybody's key, token and head in bulk. */
struct roll {
    uint64_t next_ms;              /* our next question, or when an answer is given up; NEVER: we do not ask */
    bool asked;                    /* an answer is awaited */
    uint64_t gap_ms;               /* between an answer and the next question */
    struct member_id first, after; /* where this pass began, and how far it is */
    bool wrapped;
    uint64_t listed;         /* members of the one because of whom it is called */
    struct member_id peer;   /* who is asked, */
    uint32_t peer_questions; /* so often still, */
    uint32_t unanswered;     /* of those, in a row, until now */
    uint32_t put_off;        /* it had no time so often since its last answer */
    uint32_t empty_passes;
    uint32_t found;             /* in this pass */
    bool found_any;             /* in earlier ones since the start */
    uint64_t wait_ms, again_ms; /* not before that */
    uint32_t welcome_left;      /* strangers that may still begin to join us, */
    uint64_t welcome_ms;        /* until then */
    uint32_t serve_left;        /* members that others may still be told, */
    uint64_t serve_ms;          /* until then */
    uint32_t wanted_count; /* members that the present answer brought, and whose entries are still to be asked for */
    struct member_id wanted[ROLL_WANTED_MAX];
    uint32_t serve_waiting; /* who were put off and may come again, one after each such time */
};

/* watch.c: the member before us in the ring of ids, and until when it should have asked us; NEVER: there is none. */
struct watch {
    struct member_id id;
    uint64_t due_ms;
};

struct relay {
    bool used;
    uint64_t number, origin_number, deadline_ms;
    struct member_id origin, target;
};

/* Pings for others in this second, by the first byte of the id of who is pinged. */
struct helped {
    uint64_t until_ms;
    uint8_t count[256];
};

/* An entry of ours that is being written. */
struct draft {
    size_t size;
    uint8_t ops[ENTRY_BODY_MAX];
    uint32_t count;
};

struct own {
    struct draft *drafts; /* become the next entries, in order */
    size_t draft_count, draft_room;
    uint64_t next_cut_ms;
    bool left, leaving;
    uint64_t token_ms;            /* identity.c: our new token is told to more then, 0: all were told, */
    struct member_id token_after; /* who are behind this one */
    bool epoch_owed, head_owed;   /* memory was short for the event that tells our epoch, for a head */
    uint64_t leave_deadline_ms;
    uint64_t cloned_told_until_ms; /* our head says so, 0: it does not */
    struct {
        struct member_id by;
        struct gossip_address address;
        uint64_t at_ms;
    } seen[SEEN_MAX];                       /* where others say that we are; the last words of a few */
    uint64_t seen_changed_ms, seen_hold_ms; /* the next change is believed so long after the last */
    bool advertise_fixed;
    uint64_t ask_until_ms; /* nothing is published before the first who knows us has answered, or then; 0: go on */
    uint64_t raised_ms[3]; /* the last times our epoch was taken by another */
    uint64_t cloned_until_ms;
    uint64_t cloned_event_ms;                    /* before that our caller is not told again */
    struct restraint unmixed;                    /* of new heads because a mixture of our lives is held, */
    struct restraint refuted, refuted_strangers; /* because members, because strangers accuse us */
    uint64_t told_epoch_ms;                      /* next time a bare word for it counts */
    struct {
        struct member_id id;
        uint64_t until_ms;
    } told_epoch[TOLD_EPOCH_MAX]; /* whose word for it does not count again before that */
    struct cover covers[2];       /* newpub, newsub */
};

/* ring.c: the key ring that is used; that of number 0 is the configuration's and travels nowhere. */
struct ring {
    uint64_t next_tell_ms;      /* NEVER when nobody is known to have an older one */
    uint64_t next_fetch_ms;     /* NEVER when nobody is known to have a newer one */
    uint64_t owed_ms;           /* tried again then; NEVER */
    bool event_owed, head_owed; /* memory was short for them */
    uint32_t tell_gap_ms, fetch_gap_ms;
    uint64_t next_absent_ms, next_greet_ms, next_refused_ms; /* next allowed */
    struct member_id from;                                   /* who brought it */
    uint8_t digest[32];
    uint8_t other_mark[8]; /* of the last ring that had our number and other keys, and was told of */
    size_t size;
    uint8_t bytes[GOSSIP_RING_SIZE_MAX];
};

/* holdings.c: of all registries but our own. */
struct holdings {
    uint64_t bytes;
    uint64_t look_again_ms, tell_again_ms; /* when there is no room: when to look for some, and to tell of it */
    uint64_t unfair_until_ms;              /* nobody is away whose rows could go */
};

/* What each packet and each look at the deadlines needs stands together in front: a broker among a thousand in one
 * process finds nothing of its own in the caches. What is large and seldom looked at stands behind. */
struct gossip {
    uint64_t now_ms;
    struct member *self;

    /* What is due, and when. */
    uint64_t next_probe_ms; /* probe.c */
    uint64_t next_rumor_ms, last_rumor_ms, next_sync_ms, next_rejoin_ms, dial_gap_ms;
    struct comparison comparison; /* digest.c */
    uint64_t sweep_ms;            /* sweep.c */
    struct watch watch;
    bool rumor_ahead;            /* rumors.c: which neighbour the last round went to */
    uint32_t awareness;          /* 0 is well; Lifeguard's local health */
    uint32_t relay_count;        /* in use */
    struct timers timers;        /* one for each member: the earliest of its deadlines */
    struct transfers transfers;  /* repair.c */
    struct budget budget;        /* outbox.c */
    uint64_t partition_since_ms; /* probe.c */
    uint16_t loss;               /* of pings to all (doubt.h) */
    uint16_t lost_now;           /* silence.c */
    struct effort effort;
    struct chance chance;

    struct members members;
    struct names names;

    /* receive.c: the packet in hand */
    const struct packet_header *header;
    struct replay_place place;
    struct member *sender;
    struct gossip_address source;
    uint8_t source_cookie[8];
    bool source_proven;
    bool greeted;           /* what it is answered may be longer, once */
    bool proof_due;         /* the sender wants ours, or can use it now; it goes behind our token and head */
    bool authentic;         /* the sender is known, and its key has signed that it is at the source */
    bool over_link;         /* the packet came over the sender's link: authentic once the sender is known */
    bool introduced;        /* our own key and token are in the reply */
    uint64_t unproven_pong; /* in the packet, before a proof; 0: none */
    bool reply_open;
    bool resync;        /* events.c: of some member */
    uint8_t secret[16]; /* of cookies */
    struct gossip_limits limits;
    struct gossip_crypto crypto;
    struct gossip_shared *shared; /* NULL: none */
    /* events.c */
    struct queued_event *events, *events_last, *event_given;
    struct gossip_counters counters;
    struct seal seal;

    /* Of these the first bytes. */
    struct roll roll;
    struct seek seek;
    struct ring ring;
    struct carrier carrier;
    struct own own;

    struct wants wants;
    struct digest digest;
    struct packet reply; /* to the packet in hand */
    struct catchup catchup;
    struct sweeps sweeps;

    struct registry_rules rules;
    struct graves graves; /* holdings.c */
    struct holdings holdings;
    struct conduct conduct;
    uint8_t federation_mark[8]; /* of its name: on packets over links, as the seal is on datagrams */
    struct {
        uint32_t left; /* questions to who_is in this second */
        uint64_t until_ms;
        uint8_t taken[WHO_PLACES];          /* by strangers, by hash of their IP */
    } who_budget[2];                        /* of strangers, of members */
    struct allowances strangers_allowances; /* of all who have not proved where they are, together */
    size_t bootstrap_count, remembered_count, dial_from;
    struct bootstrap bootstrap[BOOTSTRAP_MAX], remembered[REMEMBERED_MAX];
    /* helpers.c */
    uint32_t asked_next;
    struct asked asked[ASKED_MAX];
    struct relay relays[RELAYS_MAX];
    struct helped helped;
    struct stranger strangers[STRANGERS_MAX]; /* outbox.c */
};

#endif
