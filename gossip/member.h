/* What is known of other brokers. One record holds all that is known of one; each file owns the fields of its verb.
 * Whoever changes a field therefore calls members_changed() before the packet or the tick is done, since who is due,
 * alive, suspect, absent or to be told of is found by timers and lists; members_fault() shows, in tests, who forgot it.
 */
#ifndef GOSSIP_MEMBER_H
#define GOSSIP_MEMBER_H

#include "gossip/allowance.h"
#include "gossip/carrier.h"
#include "gossip/directory.h"
#include "gossip/portrait.h"
#include "gossip/replay.h"
#include "gossip/restraint.h"
#include "gossip/shared.h"
#include "gossip/suspicion.h"
#include "gossip/timers.h"

#include <string.h>

#define ACCUSED_MAX 8u /* different members one accuser has accused lately */
#define NEVER UINT64_MAX

/* parts.c: parts of one array, in this order; those of the first four are visible. Who was asked in this round of
 * probes waits for the next. */
enum member_part {
    PART_ALIVE_ASKED,
    PART_ALIVE_TO_ASK,
    PART_SUSPECT_TO_ASK,
    PART_SUSPECT_ASKED,
    PART_ABSENT, /* down, or never verified and not refused */
    PART_OTHER,
    PART_COUNT
};

/* rumors.c: what is still to be told about one member. The newest takes the place of the older. */
struct rumor {
    uint32_t head_sends, entry_sends, accuse_sends; /* left; 0: nothing to tell */
    uint32_t head_had, entry_had;                   /* receivers that had it already */
};

/* probe.c */
struct probe {
    uint64_t number; /* of the newest ping; 0 none outstanding */
    uint64_t sent_ms;
    uint64_t deadline_ms; /* it is asked again; NEVER when nothing is outstanding */
    uint64_t first_ms;    /* when that number went the first time */
    uint64_t enough_ms;   /* what was asked by then unanswered is enough to suspect it; NEVER: it is not */
    uint64_t sure_ms;     /* the same, to hold it dead */
    uint64_t helped_ms;   /* when helpers were asked */
    uint16_t doubt;       /* of the questions so far; of a suspect those since it became one, or answered */
    uint16_t loss;        /* of pings to it (doubt.h) */
    uint8_t tries;        /* pings with that number */
    uint8_t helpers, nacks;
    bool helped;                    /* helpers were asked */
    bool judged;                    /* enough was asked, and it was suspected for it */
    bool greeted;                   /* it answered, without a proof that it is there */
    uint16_t rtt_ms, rtt_varies_ms; /* round trips by datagram, smoothed; 0: not known */
};

/* digest.c: what of a member is in the hashes. */
struct counted {
    bool listed;
    struct version version;
    uint8_t chain[8];
};

struct copied_head {
    size_t size;
    uint8_t bytes[HEAD_SIZE_MAX];
};

/* two_states.c */
struct two_states {
    uint64_t epoch;            /* in which it has signed two, 0: in none; */
    uint64_t incarnation;      /* two heads with this one, or, if it is 0, */
    uint64_t sequence;         /* two entries with this one */
    uint64_t due_ms;           /* when it is asked again which one counts; 0: never */
    uint64_t again_ms;         /* next time that something is done about it */
    uint64_t asked_ms;         /* when it was asked, 0: not yet; */
    uint64_t answered_ms;      /* when it answered a ping itself, */
    uint32_t answered;         /* and how many of our questions came with such a ping */
    struct copied_head *other; /* of the two, that we do not hold; or NULL */
};

#define REFUTE_AGAIN_MAX_MS 5000u /* nobody else believes one and the same accuser sooner again */
#define UNMIX_AGAIN_MAX_MS 60000u

/* Few have any. evidence.c: suspicion of a member, and by it. */
struct trouble {
    struct suspicion suspicion;
    struct member_id accuser;
    bool accusation_signed;
    uint8_t accusation[GOSSIP_SIGNATURE_SIZE]; /* by the accuser; of accused_epoch and accused_incarnation */
    struct {
        struct member_id id;
        uint64_t until_ms;
    } accused[ACCUSED_MAX]; /* by this member */
    /* own.c: our new heads, because it accuses us or holds a mixture of ours */
    struct restraint refuted, unmixed;
    uint64_t blamed_ms;      /* own.c: next time that its accusation of us is counted against it */
    uint64_t cloned_told_ms; /* evidence.c: next time that our caller is told that it says so */
    struct two_states two_states;
};

/* What each packet needs stands in front. */
struct member {
    struct member_id id;
    enum member_state state;
    /* members.c */
    enum member_part part; /* that it has its place in, or has when it is not asked */
    uint32_t number;
    struct timer timer;
    uint32_t awake_at;  /* place in members.awake */
    uint32_t told_at;   /* 1 + place among those with something to tell */
    uint32_t name_hash; /* names.c: under which it is found by its name; 0: it is not */

    bool self;
    bool known; /* identity.c: key and token checked, and the token still valid */
    bool has_key;
    bool refused, name_taken; /* its token; because another has its name */
    bool refuses_us;          /* it said so, and has not said since that it holds our head */
    bool path_proven;         /* its cookie came back; of a known member, signed by its key (proof.c) */
    bool leaving;
    bool cloned;               /* its head says that another uses its key */
    bool visible_told;         /* its rows are known to our caller */
    bool resync;               /* an event was lost for want of memory: tell all again */
    bool has_grave;            /* its rows are not shown until they are as new as they were once */
    struct registry *registry; /* of this epoch; NULL: nothing published. What is on its way: gossip->transfers */

    struct probe probe;
    /* evidence.c: the newest of each sort, kept even when it does not change the state */
    uint64_t epoch, incarnation;
    uint64_t heard_ms;    /* its last answer to a ping of ours, or NEVER */
    uint64_t fresh_epoch; /* the epoch that answered, 0 none: it was proved alive */
    /* own.c */
    uint64_t known_sequence; /* of our log */
    uint64_t known_incarnation;
    uint64_t resend_ms; /* NEVER: nothing was sent that is not acknowledged, or it was sent often enough */
    uint64_t valid_until_ms;
    struct gossip_address path; /* where its last proven packet came from */
    uint8_t echo[8];
    struct gossip_address address; /* announced; family 0: path */
    struct way way;                /* carrier.c */
    struct rumor rumor;
    struct counted counted;
    struct allowances allowances;
    struct who *who;        /* NULL until its token was accepted once */
    struct statement *said; /* NULL until a head of it was checked */
    struct member *next_free;

    uint64_t accused_epoch, accused_incarnation; /* the highest at which it was suspected */
    uint64_t down_epoch, down_incarnation;       /* the highest at which we held it dead */
    const uint8_t *head;                         /* of said */
    size_t head_size;
    uint64_t ring; /* the key ring it uses: number and mark (ring.c) */
    uint8_t ring_mark[8];
    uint64_t down_since_ms, made_ms, evidence_sent_ms;
    uint64_t hearsay_ms;        /* is it really there? asked then; 0: no need */
    uint64_t head_told_ms;      /* our head goes with answers to it again then */
    uint64_t prove_ms;          /* next time we may sign for it where we are */
    uint64_t hint_ms;           /* own.c: when its accusation of us says something again */
    uint64_t follow_ms;         /* evidence.c: next time that hearsay of it is followed, */
    uint32_t follow_gap_ms;     /* and how long after that again; 0: it has answered */
    uint64_t want_ms;           /* repair.c: next time we may ask for its entries */
    struct member_id wanted_of; /* who was asked last, */
    uint64_t wanted_above;      /* for what is above this */

    uint64_t sent_sequence; /* the newest entry of ours that was sent to it */
    uint32_t resends;

    /* identity.c */
    const uint8_t *public_key; /* of who */
    const uint8_t *token;      /* of who; NULL when it is over */
    size_t token_size;
    uint8_t refused_hash[8];
    uint64_t refused_event_ms, refused_told_ms, refused_us_ms; /* next allowed */
    uint64_t passed_over_ms;          /* until then what was refused from hearsay is not judged again */
    uint64_t who_asked_ms;            /* next allowed */
    const char *name;                 /* GOSSIP_NAME_MAX + 1 bytes, of who; empty when it is not known */
    struct copied_head *waiting_head; /* not checked yet, as its key is not known; NULL: none */

    uint64_t greeted_epoch;  /* receive.c: the last one, above the one that was known; 0: none */
    struct trouble *trouble; /* NULL: none */
    struct replay replay;    /* of its packets from its path */
};

/* quiet.c: a member with whom nothing is going on. */
struct quiet {
    union {
        struct portrait *portrait;
        struct member *awake;
    };
    uint8_t echo[8];
    uint32_t known_sequence;
    uint32_t known_incarnation : 24;
    uint32_t life : 8; /* of replay.h */
    uint32_t heard;    /* in QUIET_TICK_MS */
    uint32_t newest;   /* too */
    uint32_t place : 29;
    bool is_awake : 1; /* all that is known of it is in *awake, and besides the place nothing is here */
    bool path_proven : 1, fresh : 1;
    uint32_t told_at : 16; /* 1 + place among those with something to tell, which is: */
    uint32_t head_sends : 6, head_had : 2, entry_sends : 6, entry_had : 2;
};

#define QUIET_PLACE_MAX 0x1fffffffu /* what its bits hold: more members than there can be */
#define QUIET_KNOWN_MAX 0xffffffu   /* a sleeper's known_incarnation is the end of it */
#define QUIET_TOLD_MAX 0xffffu
#define QUIET_SENDS_MAX 63u
#define QUIET_HAD_MAX 3u /* more is as good as this (rumors.c) */

#define MEMBERS_RECENT 8u /* a power of two */
struct members {
    struct quiet *quiet; /* by number */
    uint32_t quiet_count, quiet_room;
    uint32_t free; /* 1 + number, a list by quiet.place; 0: none */
    struct awake {
        struct member *member;
        uint64_t not_before_ms; /* till then it does not sleep anyhow */
    } * awake;
    uint32_t awake_count, awake_room, tired; /* the next one that may go to sleep */
    struct member *spare;                    /* some records of those who went */
    uint32_t spare_count;
    struct directory directory;
    uint32_t *places; /* numbers, in parts */
    uint32_t part_end[PART_COUNT];
    size_t count, room;
    uint32_t *told; /* numbers of those with something to tell */
    uint32_t told_count, told_room;
    size_t unverified;
    uint32_t changes; /* of who is alive */
    struct {
        uint32_t number;    /* DIRECTORY_NOBODY: nobody is alive */
        uint32_t at_change; /* 1 + changes when it was found; 0: never looked for */
    } neighbours[2];        /* order.c: before and behind us */
    /* Some that are awake and were found by id lately, which are mostly our neighbours: by the last bits of the id. */
    struct recent {
        uint64_t id_end; /* a glance at the record tells less quickly whether it is the right one */
        struct member *member;
    } recent[MEMBERS_RECENT];
};

/* ---- members.c ---- */
void members_forget_recent(struct members *members, const struct member *member);
/* Wakes it. NULL when it is not there, or memory is short. */
struct member *members_find(struct gossip *gossip, const struct member_id *id);
/* Finds, or makes an unverified one; NULL when full or memory is short. */
struct member *members_make(struct gossip *gossip, const struct member_id *id);
/* The same of somebody whom a third one spoke of; NULL for an unknown one while the roll is called, which brings it,
 * and when the sender of the packet in hand speaks of too many. */
struct member *members_meet(struct gossip *gossip, const struct member_id *id);
void members_remove(struct gossip *gossip, struct member *member);
void members_free(struct gossip *gossip);
/* Brings all that is found by lists up to date with its fields. Cheap, and harmless when nothing has changed. */
void members_changed(struct gossip *gossip, struct member *member);
/* The same where nothing has changed but when it is due: what a probe does, each second. */
void members_timed(struct gossip *gossip, struct member *member);
/* What is not up to date, for tests; NULL when nothing is. Walks over all. */
const char *members_fault(const struct gossip *gossip);
/* All of them, place below members.count, in no order that means anything. Removing one or a change of state moves
 * others. The copy is used, and returned, for one that sleeps: not to be kept or changed. */
const struct member *members_look(const struct gossip *gossip, size_t place, struct member *copy);
const struct member *members_look_at(const struct gossip *gossip, uint32_t number, struct member *copy);
/* The same by id. */
const struct member *members_look_for(const struct gossip *gossip, const struct member_id *id, struct member *copy);
struct directory_ids members_ids(const struct members *members);
const struct member_id *members_id_at(const struct members *members, uint32_t number);
/* Awake members, by an index below members.awake_count. */
struct member *members_awake(const struct gossip *gossip, size_t index);
/* Each wakes it. NULL when memory is short. */
struct member *members_wake_at(struct gossip *gossip, uint32_t number);
struct member *members_at(struct gossip *gossip, size_t place);
size_t members_place(const struct gossip *gossip, const struct member *member);
/* Takes the reference. */
void member_set_who(struct member *member, struct who *who);
void member_set_said(struct member *member, struct statement *said);
bool member_is_visible(const struct member *member); /* alive or suspect, verified, not ourselves */
struct member *members_of_timer(struct timer *timer);
/* The earliest of its deadlines. */
uint64_t member_deadline_ms(const struct gossip *gossip, const struct member *member);
/* Where to send to it, family 0 if unknown. */
struct gossip_address member_route(const struct member *member);

static inline bool id_equal(const struct member_id *a, const struct member_id *b) {
    uint64_t left[2], right[2];
    memcpy(left, a, sizeof left);
    memcpy(right, b, sizeof right);
    return ((left[0] ^ right[0]) | (left[1] ^ right[1])) == 0;
}

/* What is known of suspicion of it and by it; nothing, when it has none. */
static inline const struct trouble *member_trouble(const struct member *member) {
    static const struct trouble none;
    return member->trouble ? member->trouble : &none;
}

/* ---- parts.c: in parts of one array ---- */
/* Alive and suspect, ourselves included. */
uint32_t members_visible_count(const struct gossip *gossip);
/* The visible others by index, NULL past the end; and the suspects among them. */
struct member *members_visible(struct gossip *gossip, size_t index);
uint32_t members_suspect_count(const struct gossip *gossip);
struct member *members_suspect(struct gossip *gossip, size_t index);
/* Up to want random visible others; skip may be NULL. Those who have proved where they are first: to others little may
 * be sent, and little is heeded that comes from us; and whoever it is. */
size_t members_pick(struct gossip *gossip, struct member **out, size_t want, const struct member *skip);
size_t members_pick_any(struct gossip *gossip, struct member **out, size_t want, const struct member *skip);
/* A random one that is down or was never verified, NULL if there is none. */
struct member *members_pick_absent(struct gossip *gossip);
uint32_t members_absent_count(const struct gossip *gossip);
uint32_t members_gone_count(const struct gossip *gossip); /* of those, down or left; walks them */
/* A random visible one that was not yet asked in this round. */
struct member *members_next_to_ask(struct gossip *gossip);
/* More others than own news goes to directly (limits.eager_members_max), as far as is known. */
bool members_are_many(const struct gossip *gossip);
/* For members.c alone: a number at a place; a record to another part, by its state or by hand; and whether it is where
 * its state says. */
void parts_put(struct members *members, uint32_t place, uint32_t number);
void parts_settle(struct gossip *gossip, struct member *member);
void parts_move(struct members *members, struct member *member, enum member_part to);
bool parts_hold(const struct members *members, uint32_t place, const struct member *member);

/* ---- told.c: those with something to tell ---- */
uint32_t members_told_count(const struct gossip *gossip);
struct member *members_told(struct gossip *gossip, size_t index); /* NULL: memory is short */
/* For members.c alone: in the list or out of it, as its rumour says; and whether that is so. */
void told_list(struct members *members, struct member *member);
bool told_holds(const struct member *member);

/* ---- order.c: in the order of ids ---- */
/* The next; NULL at the end. */
struct member *members_after(struct gossip *gossip, const struct member_id *id);
const struct member *members_look_after(const struct gossip *gossip, const struct member_id *id, struct member *copy);
/* Over all that are behind this id, by number; DIRECTORY_NOBODY at the end. It ends when one comes or goes. */
struct members_walk {
    size_t place;
};
struct members_walk members_walk_after(const struct gossip *gossip, const struct member_id *id);
uint32_t members_walk_next(const struct gossip *gossip, struct members_walk *walk);
/* Of the one that was passed last: the first 4 bytes of its id, and whether it is behind this one. */
uint32_t members_walk_prefix(const struct gossip *gossip, const struct members_walk *walk);
bool members_walk_is_behind(const struct gossip *gossip, const struct members_walk *walk, const struct member_id *id);
/* Alive or suspect, and not ourselves; without a look at its record. */
bool members_walk_is_visible(const struct gossip *gossip, uint32_t number);
/* The nearest behind and before us in the ring of ids that is alive and not suspect; NULL when nobody is. */
struct member *members_successor(struct gossip *gossip);
struct member *members_predecessor(struct gossip *gossip);

/* ---- quiet.c ---- */
struct member *quiet_rise(struct gossip *gossip, uint32_t number); /* a new record; NULL when memory is short */
void quiet_drop(struct gossip *gossip, struct member *member);
struct member *quiet_wake(struct gossip *gossip, uint32_t number); /* NULL when memory is short */
void quiet_read(const struct gossip *gossip, uint32_t number, struct member *out);
/* What the one at this place said last; NULL: it is awake. */
const struct statement *quiet_said(const struct members *members, size_t place);
/* Nobody holds anything of ours; wakes none. */
void quiet_forget_known(struct members *members);
/* At the end of a call: who has nothing to do, beyond limits.awake_max, goes to sleep. Pointers to members end. */
void quiet_settle(struct gossip *gossip);
struct quiet *quiet_of(const struct members *members, uint32_t number);

#endif
