/* The inside of a gossip, shared by the files of this folder. One member record holds all that is known of one broker;
 * each file owns the fields of its verb.
 *
 * No call walks over all members: what is due is found by timers (timers.h), who is alive, suspect or absent by the
 * parts of one array (members.c), what is to be told by a list, and the digests are kept as they change. Whoever
 * changes a field of a member therefore calls members_changed() before the packet or the tick is done;
 * members_fault() shows, in tests, who forgot it. */
#ifndef GOSSIP_STATE_H
#define GOSSIP_STATE_H

#include "gossip/allowance.h"
#include "gossip/budget.h"
#include "gossip/carrier.h"
#include "gossip/catchup.h"
#include "gossip/chance.h"
#include "gossip/cover.h"
#include "gossip/directory.h"
#include "gossip/portrait.h"
#include "gossip/graves.h"
#include "gossip/seal.h"
#include "gossip/shared.h"
#include "gossip/suspicion.h"
#include "gossip/timers.h"
#include "gossip/transfer.h"

#define BOOTSTRAP_MAX 64u
#define REMEMBERED_MAX 64u
#define GROUPS_MAX 4u
#define SOUGHT_MAX 8u
#define STRANGERS_MAX 128u /* unproven addresses whose bytes are counted */
#define UNVERIFIED_MAX                                                                                                 \
    256u               /* members whose token we have not seen; strangers replace one another, never a verified one */
#define RELAYS_MAX 64u /* probes made for others and not yet answered; a power of two */
#define ASKED_MAX 64u  /* helpers asked for a probe, the newest; a power of two */
#define ACCUSED_MAX 8u /* different members one accuser has accused lately */
#define NEVER UINT64_MAX
#define OWN_ASK_MS 5000u

/* rumors.c: what is still to be told about one member. The newest takes the place of the older. */
struct rumor {
    uint32_t head_sends, entry_sends, accuse_sends; /* left; 0: nothing to tell */
    uint32_t head_had, entry_had;                   /* receivers that had it already */
};

/* probe.c */
struct probe {
    uint64_t number; /* of the newest ping; 0 none outstanding */
    uint64_t sent_ms;
    uint64_t deadline_ms; /* NEVER when nothing is outstanding */
    uint8_t stage;        /* 1 direct, 2 indirect too */
    uint8_t helpers, nacks;
};

/* digest.c: what of a member is in the hashes. */
struct counted {
    bool listed;
    struct version version;
};

struct member {
    struct member_id id;
    enum member_state state;
    bool self;

    /* members.c */
    struct timer timer;
    uint32_t number;
    uint32_t awake_at;  /* place in members.awake */
    uint32_t told_at;   /* 1 + place among those with something to tell */
    uint32_t name_hash; /* names.c: under which it is found by its name; 0: it is not */
    struct member *next_free;
    struct probe probe;
    struct way way; /* carrier.c */
    struct rumor rumor;
    struct counted counted;
    struct who *who;        /* NULL until its token was accepted once */
    struct statement *said; /* NULL until a head of it was checked */

    /* identity.c */
    bool known; /* key and token checked, and the token still valid */
    bool has_key;
    const uint8_t *public_key; /* of who */
    const uint8_t *token;      /* of who; NULL when it is over */
    size_t token_size;
    uint64_t valid_until_ms;
    bool refused, name_taken; /* its token; because another has its name */
    uint8_t refused_hash[8];
    bool refuses_us; /* it said so, and has not said since that it holds our head */
    uint64_t refused_event_ms, refused_told_ms, refused_us_ms; /* next allowed */
    uint64_t who_asked_ms;                                     /* next allowed */
    const char *name; /* GOSSIP_NAME_MAX + 1 bytes, of who; empty when it is not known */
    size_t waiting_head_size;

    /* evidence.c: the newest of each sort, kept even when it does not change the state */
    uint64_t epoch, incarnation;
    const uint8_t *head; /* of said */
    size_t head_size;
    struct gossip_address address; /* announced; family 0: path */
    bool leaving;
    bool cloned;   /* its head says that another uses its key */
    uint64_t ring; /* the key ring it uses: number and mark (ring.c) */
    uint8_t ring_mark[8];
    uint64_t accused_epoch, accused_incarnation; /* the highest at which it was suspected */
    uint64_t down_epoch, down_incarnation;       /* the highest at which we held it dead */
    struct member_id accuser;
    bool visible_told; /* its rows are known to our caller */
    bool resync;       /* an event was lost for want of memory: tell all again */
    uint64_t down_since_ms, made_ms, evidence_sent_ms;
    uint64_t head_told_ms; /* our head goes with answers to it again then */

    /* contact */
    uint64_t heard_ms;          /* its last answer to a ping of ours, or NEVER */
    uint64_t fresh_epoch;       /* the epoch that answered, 0 none: it was proved alive */
    struct gossip_address path; /* where its last proven packet came from */
    bool path_proven;           /* its cookie came back; of a known member, signed by its key (proof.c) */
    uint8_t echo[8];
    uint64_t prove_ms; /* next time we may sign for it where we are */
    struct allowances allowances;

    /* own.c */
    uint64_t known_sequence; /* of our log */
    uint64_t known_incarnation;
    uint64_t sent_sequence; /* the newest entry that was sent to it */
    uint64_t resend_ms;     /* NEVER: nothing was sent that is not acknowledged, or it was sent often enough */
    uint32_t resends;

    struct suspicion suspicion;
    uint64_t want_ms; /* repair.c: next time we may ask for its entries */

    /* suspicion by this member of others */
    struct {
        struct member_id id;
        uint64_t until_ms;
    } accused[ACCUSED_MAX];

    uint8_t waiting_head[HEAD_SIZE_MAX]; /* not checked yet: its key is not known */

    bool has_grave;            /* its rows are not shown until they are as new as they were once */
    struct registry *registry; /* of this epoch; NULL: nothing published. What is on its way: gossip->transfers */
};

/* quiet.c: a member with whom nothing is going on. */
struct quiet {
    union {
        struct who *who;
        struct member *awake;
    };
    struct statement *said;
    struct registry *registry;
    uint64_t known_sequence;
    uint8_t echo[8];
    uint32_t known_incarnation;
    uint32_t heard; /* in QUIET_TICK_MS */
    uint32_t place;
    bool is_awake; /* all that is known of it is in *awake, and besides the place nothing is here */
    bool path_proven, fresh;
};

#define MEMBERS_CHUNK 64u
/* members.c: parts of one array, in this order; those of the first four are visible. Who was asked in this round of
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

struct members {
    struct quiet **chunks; /* MEMBERS_CHUNK each, by number */
    size_t chunk_count;
    uint32_t free;                           /* 1 + number, a list by quiet.place; 0: none */
    uint32_t *awake;                         /* numbers */
    uint32_t awake_count, awake_room, tired; /* the next one that may go to sleep */
    struct member *spare;                    /* some records of those who went */
    uint32_t spare_count;
    struct directory directory;
    uint32_t *places; /* numbers, in parts */
    uint32_t part_end[PART_COUNT];
    size_t count, room;
    uint32_t *told; /* numbers of those with something to tell; they are awake */
    uint32_t told_count;
    size_t unverified;
};

/* names.c: numbers of those who are there, by hash of their name (linear probing). */
struct names {
    uint32_t *slots; /* 1 + number; 0 empty */
    uint32_t size;   /* a power of two, or 0 */
    uint32_t count;
};

struct digest {
    uint64_t buckets[MESSAGE_BUCKET_COUNT];
    uint64_t all;
    uint64_t table;
};

/* One packet being written. */
struct packet {
    struct gossip_address to;
    struct member *member; /* NULL: nobody we know */
    bool dial;             /* of our own accord, to an address we were configured with or that its owner signed */
    bool filled;           /* something besides the header */
    enum budget_class class;
    struct wire_out out;
    uint8_t body[SEAL_PLAIN_MAX - MESSAGE_HEADER_MAX];
};

struct queued_event {
    struct queued_event *next;
    struct gossip_event event;
    char filter[];
};

struct stranger {
    uint8_t cookie[8]; /* of its address */
    bool used;
    uint64_t received, sent, last_ms;
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
    struct gossip_address groups[GROUPS_MAX];
    size_t group_count;
    uint64_t next_ms, gap_ms; /* our next SEEK, and how long before it the last one was */
    uint32_t heard;           /* SEEKs of others since the last of ours */
    struct bootstrap sought[SOUGHT_MAX];
    size_t waiting;   /* the first of these are still to be dialled */
    uint64_t dial_ms; /* when the next of them is; NEVER */
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
    struct member_id peer;   /* who is asked, */
    uint32_t peer_questions; /* so often still */
    uint32_t empty_passes;
    uint32_t found;             /* in this pass */
    bool found_any;             /* in earlier ones since the start */
    uint64_t wait_ms, again_ms; /* not before that */
    uint32_t welcome_left;      /* strangers that may still begin to join us, */
    uint64_t welcome_ms;        /* until then */
    uint32_t serve_left;        /* members that others may still be told, */
    uint64_t serve_ms;          /* until then */
};

struct relay {
    bool used;
    uint64_t number, origin_number, deadline_ms;
    struct member_id origin, target;
};

/* An entry of ours that is being written. */
struct draft {
    size_t size;
    uint8_t ops[ENTRY_BODY_MAX];
    uint32_t count;
};

struct own {
    struct cover covers[2]; /* newpub, newsub */
    struct draft *drafts;   /* become the next entries, in order */
    size_t draft_count, draft_room;
    uint64_t next_cut_ms;
    bool left, leaving;
    uint64_t leave_deadline_ms;
    struct gossip_address seen_at;
    uint64_t seen_changed_ms, seen_hold_ms; /* the next change is believed so long after the last */
    bool advertise_fixed;
    uint64_t ask_until_ms; /* nothing is published before the first who knows us has answered, or then; 0: go on */
    uint64_t raised_ms[3]; /* the last times our epoch was taken by another */
    uint64_t cloned_until_ms;
    uint64_t say_again_ms;         /* next time that a mixture of our lives is answered */
    uint64_t cloned_told_until_ms; /* our head says so, 0: it does not */
    bool epoch_owed;               /* memory was short for the event that tells our epoch */
    uint64_t told_epoch_ms;        /* next time a bare word for it counts */
};

/* ring.c: the key ring that is used; that of number 0 is the configuration's and travels nowhere. */
struct ring {
    uint8_t digest[32];
    uint8_t bytes[GOSSIP_RING_SIZE_MAX];
    size_t size;
    uint8_t other_mark[8]; /* of the last ring that had our number and other keys, and was told of */
    uint64_t next_tell_ms; /* NEVER when nobody is known to have an older one */
    uint64_t next_absent_ms, next_greet_ms, next_refused_ms; /* next allowed */
    struct member_id from;                                   /* who brought it */
    bool event_owed, head_owed;                              /* memory was short for them */
    uint64_t owed_ms;                                        /* tried again then; NEVER */
};

/* holdings.c: of all registries but our own. */
struct holdings {
    uint64_t bytes;
    uint64_t look_again_ms, tell_again_ms; /* when there is no room: when to look for some, and to tell of it */
};

struct gossip {
    struct gossip_limits limits;
    struct registry_rules rules;
    struct gossip_crypto crypto;
    struct gossip_shared *shared; /* NULL: none */
    struct graves graves;         /* holdings.c */
    struct holdings holdings;
    struct transfers transfers; /* repair.c */
    struct seal seal;
    uint8_t federation_mark[8]; /* of its name: on packets over links, as the seal is on datagrams */
    struct ring ring;
    struct chance chance;
    uint8_t secret[16]; /* of cookies */
    uint64_t now_ms;

    struct members members;
    struct names names;
    struct timers timers; /* one for each member: the earliest of its deadlines */
    struct digest digest;
    struct member *self;
    struct own own;

    /* outbox.c */
    struct budget budget;
    struct stranger strangers[STRANGERS_MAX];
    /* events.c */
    struct queued_event *events, *events_last, *event_given;
    bool resync; /* of some member */

    /* receive.c: the packet in hand and the reply to it */
    const struct packet_header *header;
    struct gossip_address source;
    uint8_t source_cookie[8];
    bool source_proven;
    bool proof_due; /* the sender wants ours, or can use it now; it goes behind our token and head */
    bool authentic; /* the sender is known, and its key has signed that it is at the source */
    bool over_link; /* the packet came over the sender's link: authentic once the sender is known */
    struct member *sender;
    struct packet reply;
    bool reply_open;

    /* probe.c */
    uint64_t next_probe_ms, next_hard_probe_ms;
    uint32_t awareness; /* 0 is well; Lifeguard's local health */
    struct relay relays[RELAYS_MAX];
    uint32_t relay_count; /* in use */
    struct asked asked[ASKED_MAX];
    uint32_t asked_next;
    uint64_t partition_since_ms;

    uint64_t next_rumor_ms, last_rumor_ms, next_sync_ms, next_rejoin_ms;
    struct bootstrap bootstrap[BOOTSTRAP_MAX], remembered[REMEMBERED_MAX];
    size_t bootstrap_count, remembered_count, dial_from;
    uint64_t dial_gap_ms;
    struct seek seek;
    struct roll roll;
    struct {
        uint32_t left; /* questions to who_is in this second */
        uint64_t until_ms;
    } who_budget[2];                        /* of strangers, of members */
    struct allowances strangers_allowances; /* of all who have not proved where they are, together */

    struct carrier carrier;
    struct catchup catchup;
    struct gossip_counters counters;
};

/* ---- members.c ---- */
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
/* What is not up to date, for tests; NULL when nothing is. Walks over all. */
const char *members_fault(const struct gossip *gossip);
/* The next in the order of ids; NULL at the end. */
struct member *members_after(struct gossip *gossip, const struct member_id *id);
/* All of them, place below members.count, in no order that means anything. Removing one or a change of state moves
 * others. The copy is used, and returned, for one that sleeps: not to be kept or changed. */
const struct member *members_look(const struct gossip *gossip, size_t place, struct member *copy);
const struct member *members_look_at(const struct gossip *gossip, uint32_t number, struct member *copy);
/* The same by id: whoever is found, and in the order of ids. */
const struct member *members_look_for(const struct gossip *gossip, const struct member_id *id, struct member *copy);
const struct member *members_look_after(const struct gossip *gossip, const struct member_id *id, struct member *copy);
/* Awake members, by an index below members.awake_count. */
struct member *members_awake(const struct gossip *gossip, size_t index);
/* Wakes it. NULL when memory is short. */
struct member *members_at(struct gossip *gossip, size_t place);
size_t members_place(const struct gossip *gossip, const struct member *member);
/* Takes the reference. */
void member_set_who(struct member *member, struct who *who);
void member_set_said(struct member *member, struct statement *said);
bool member_is_visible(const struct member *member); /* alive or suspect, verified, not ourselves */
/* Alive and suspect, ourselves included. */
uint32_t members_visible_count(const struct gossip *gossip);
/* The visible others by index, NULL past the end; and the suspects among them. */
struct member *members_visible(struct gossip *gossip, size_t index);
uint32_t members_suspect_count(const struct gossip *gossip);
struct member *members_suspect(struct gossip *gossip, size_t index);
/* Up to want random visible others; skip may be NULL. */
size_t members_pick(struct gossip *gossip, struct member **out, size_t want, const struct member *skip);
/* A random one that is down or was never verified, NULL if there is none. */
struct member *members_pick_absent(struct gossip *gossip);
uint32_t members_absent_count(const struct gossip *gossip);
/* A random visible one that was not yet asked in this round. */
struct member *members_next_to_ask(struct gossip *gossip);
/* Those with something to tell. */
uint32_t members_told_count(const struct gossip *gossip);
struct member *members_told(struct gossip *gossip, size_t index);
struct member *members_of_timer(struct timer *timer);
/* The earliest of its deadlines. */
uint64_t member_deadline_ms(const struct gossip *gossip, const struct member *member);
/* Where to send to it, family 0 if unknown. */
struct gossip_address member_route(const struct member *member);
bool id_equal(const struct member_id *a, const struct member_id *b);

/* ---- quiet.c ---- */
struct member *quiet_rise(struct gossip *gossip, uint32_t number); /* a new record; NULL when memory is short */
void quiet_drop(struct gossip *gossip, struct member *member);
struct member *quiet_wake(struct gossip *gossip, uint32_t number); /* NULL when memory is short */
void quiet_read(const struct gossip *gossip, const struct quiet *quiet, uint32_t number, struct member *out);
/* At the end of a call: who has nothing to do, beyond limits.awake_max, goes to sleep. Pointers to members end. */
void quiet_settle(struct gossip *gossip);
struct quiet *quiet_of(const struct members *members, uint32_t number);

/* ---- digest.c ---- */
void digest_changed(struct gossip *gossip, struct member *member);
void digest_forget(struct gossip *gossip, struct member *member);
const char *digest_fault(const struct gossip *gossip);
void digest_send(struct gossip *gossip, struct member *member);
void digest_meet(struct gossip *gossip, struct member *member); /* it has just become visible */
void digest_on_digest(struct gossip *gossip, uint64_t hash);
void digest_answer(struct gossip *gossip); /* the sender differs: in which buckets? */
void digest_on_buckets(struct gossip *gossip, const uint8_t *hashes);
void digest_on_versions(struct gossip *gossip, const struct message *message);
unsigned digest_bucket_of(const struct member_id *id);
bool digest_lists(const struct member *member);

/* ---- events.c ---- */
void event_member(struct gossip *gossip, struct member *member);
void event_rows_all(struct gossip *gossip, struct member *member);
void event_row(void *context, enum gossip_row_kind kind, const char *filter, size_t size,
               bool active); /* context: struct event_rows */
struct event_rows {
    struct gossip *gossip;
    struct member *member;
};
/* GOSSIP_RING; false when memory is short. */
bool event_ring(struct gossip *gossip, const struct member_id *from);
bool event_cloned(struct gossip *gossip, const struct gossip_address *from);
bool event_plain(struct gossip *gossip, enum gossip_event_kind kind, const struct member *member, uint64_t epoch,
                 uint64_t sequence, const char *text);
void events_free(struct gossip *gossip);
void events_resync(struct gossip *gossip);

/* ---- outbox.c ---- */
void packet_begin(struct packet *packet, struct member *member, const struct gossip_address *to);
/* Appends; when full, sends what is there and goes on in a new one. */
void packet_add(struct gossip *gossip, struct packet *packet, const struct message *message);
/* Sends it; without messages too if empty says so (it acknowledges). */
void packet_end(struct gossip *gossip, struct packet *packet, bool empty);
/* One message, one packet, to a member. */
void send_one(struct gossip *gossip, struct member *member, const struct message *message);
void cookie_for(const struct gossip *gossip, const struct gossip_address *address, uint8_t cookie[8]);
void outbox_free(struct gossip *gossip);
/* The reply to the packet in hand. */
void reply_add(struct gossip *gossip, const struct message *message);
void reply_acknowledge(struct gossip *gossip);

/* ---- strangers.c: what may be sent to whoever has not proved where it is; by the cookie of its address ---- */
void strangers_credit(struct gossip *gossip, const uint8_t cookie[8], size_t size); /* so much came from there */
bool strangers_spend(struct gossip *gossip, const uint8_t cookie[8], size_t size);  /* may so much be sent there? */

/* ---- receive.c ---- */
void receive_packet(struct gossip *gossip, const uint8_t *plain, size_t size);
/* May the sender of the packet in hand have so much more of it? Always, when there is none. */
bool receive_may(struct gossip *gossip, enum allowance which, uint32_t amount);

/* ---- proof.c ---- */
void proof_note_path(struct gossip *gossip, struct member *member);
void proof_give(struct gossip *gossip); /* to the sender of the packet in hand, if it is due and it may have it */
void proof_offer(struct gossip *gossip);
void proof_on_proof(struct gossip *gossip, const struct message *message);
void proof_forget(struct member *member);
/* May the packet in hand make us check one more signature? */
bool proof_may_check(struct gossip *gossip);

/* ---- identity.c ---- */
void identity_on_who(struct gossip *gossip, const struct member_id *id);
void identity_on_token(struct gossip *gossip, const struct message *message);
void identity_on_refused(struct gossip *gossip, const struct message *message);
void identity_ask(struct gossip *gossip, struct member *member);
struct message identity_token_of(const struct member *member);
void identity_tick(struct gossip *gossip, struct member *member);
uint64_t identity_deadline_ms(const struct member *member);

/* ---- names.c ---- */
/* Under the name it has now, if it is there; nowhere else. */
void names_changed(struct gossip *gossip, struct member *member);
void names_forget(struct gossip *gossip, struct member *member);
bool names_free(const struct gossip *gossip, const char *name, const struct member_id *id);
bool names_check(const struct gossip *gossip, const struct member_id *id, const char *name, char reason[160]);

/* ---- ring.c ---- */
bool ring_init(struct gossip *gossip, const struct gossip_options *options);
void ring_note(struct gossip *gossip, struct member *member, const struct head *head); /* its head says what it uses */
bool ring_is_behind(const struct gossip *gossip, const struct member *member); /* it uses an older one than we do */
/* The packet in hand came from it: over a link it is given the ring, if it has an older one. */
void ring_greet(struct gossip *gossip, struct member *sender);
void ring_link_up(struct gossip *gossip, struct member *member);
void ring_on_ring(struct gossip *gossip, const struct message *message);
void ring_tick(struct gossip *gossip);
uint64_t ring_deadline_ms(const struct gossip *gossip);

/* ---- evidence.c ---- */
void evidence_on_head(struct gossip *gossip, const uint8_t *bytes, size_t size);
void evidence_take_waiting(struct gossip *gossip, struct member *member);
void evidence_on_accuse(struct gossip *gossip, const struct message *message);
void evidence_suspect(struct gossip *gossip, struct member *member, const struct member_id *accuser);
/* It answered: its state follows from all that is known. */
void evidence_consider(struct gossip *gossip, struct member *member);
void evidence_set_state(struct gossip *gossip, struct member *member, enum member_state state);
void evidence_answer_older(struct gossip *gossip, struct member *member);
struct message evidence_head_of(const struct member *member);
struct message evidence_accusation_of(const struct member *member);
/* False: the member is to be removed. */
bool evidence_tick(struct gossip *gossip, struct member *member);
uint64_t evidence_deadline_ms(const struct gossip *gossip, const struct member *member);
void evidence_restart_suspicions(struct gossip *gossip);

/* ---- lag.c ---- */
/* gossip_tick() is called at now_ms for what was due at deadline_ms. */
void lag_note_tick(struct gossip *gossip, uint64_t deadline_ms);

/* ---- probe.c ---- */
void probe_member(struct gossip *gossip, struct member *member);
void probe_by(struct gossip *gossip, struct member *member, const struct gossip_address *to);
void probe_all(struct gossip *gossip);
void probe_add_to_reply(struct gossip *gossip, struct member *member);
void probe_on_pong(struct gossip *gossip, uint64_t number);
void probe_on_request(struct gossip *gossip, const struct message *message);
void probe_on_indirect(struct gossip *gossip, const struct message *message);
void probe_tick_member(struct gossip *gossip, struct member *member);
void probe_tick(struct gossip *gossip);
uint64_t probe_deadline_ms(const struct gossip *gossip);
bool probe_in_partition(struct gossip *gossip);
void probe_look_well(struct gossip *gossip, bool well); /* Lifeguard's local health, one step */
void probe_delay(struct gossip *gossip, uint64_t ms);   /* outstanding probes have so much longer */
void probe_forget(struct gossip *gossip);               /* outstanding probes neither succeed nor fail */

/* ---- own.c: our log ---- */
bool own_sign_head(struct gossip *gossip);
bool own_checkpoint(struct gossip *gossip);
/* Somebody holds a mixture of two lives of ours: a head of the present state says which is true. Not too often. */
void own_say_again(struct gossip *gossip);
void own_init(struct gossip *gossip);
struct cover *own_cover(struct gossip *gossip, enum gossip_row_kind kind);
uint64_t own_change(struct gossip *gossip, enum gossip_row_kind kind, const char *filter, size_t size, bool put);
void own_tick(struct gossip *gossip);
uint64_t own_deadline_ms(const struct gossip *gossip);
void own_resend(struct gossip *gossip, struct member *member);
void own_resend_soon(struct gossip *gossip, struct member *member);
void own_heard(struct gossip *gossip, struct member *member); /* the header of its packet says what it holds of us */
void own_refute(struct gossip *gossip, uint64_t incarnation);
/* from: where the other holder of our key is, family 0 if it is not known. */
void own_raise_epoch(struct gossip *gossip, uint64_t above, const struct gossip_address *from);
void own_answered(struct gossip *gossip); /* somebody who knows us has said what he holds of us */
bool own_is_cloned(const struct gossip *gossip);
void own_life_tick(struct gossip *gossip);
uint64_t own_life_deadline_ms(const struct gossip *gossip);
bool address_is_loopback(const struct gossip_address *address);
/* May be told to others: no unspecified address, multicast, or port 0. */
bool address_is_usable(const struct gossip_address *address);
/* By a member that has forgotten all of us but our grave, and so cannot show what we signed. */
void own_told_epoch(struct gossip *gossip, uint64_t epoch);
void own_tell_head(struct gossip *gossip);
void own_seen_at(struct gossip *gossip, const struct gossip_address *address);
void own_free(struct gossip *gossip);
void own_leave(struct gossip *gossip);

/* ---- rumors.c ---- */
void rumors_head(struct gossip *gossip, struct member *member);
void rumors_entry(struct gossip *gossip, struct member *member, bool known_widely);
void rumors_accusation(struct gossip *gossip, struct member *member);
void rumors_wake(struct gossip *gossip); /* somebody can be told again */
void rumors_say_had(struct gossip *gossip, const struct member *member);
void rumors_on_had(struct gossip *gossip, const struct message *message);
void rumors_tick(struct gossip *gossip);
uint64_t rumors_deadline_ms(const struct gossip *gossip);

/* ---- repair.c ---- */
struct version repair_version_of(const struct member *member);
void repair_want(struct gossip *gossip, struct member *member, struct member *from);
void repair_on_have(struct gossip *gossip, const struct message *message);
void repair_on_entry(struct gossip *gossip, const struct message *message);
/* One version that the sender holds. *served counts those answered in full. */
void repair_compare(struct gossip *gossip, const struct version *theirs, size_t *served);
void repair_on_want(struct gossip *gossip, const struct message *message);
void repair_on_want_chunk(struct gossip *gossip, const struct message *message);
void repair_on_chunk(struct gossip *gossip, const struct message *message);
void repair_head(struct gossip *gossip, struct member *member, const struct head *head, const uint8_t *bytes,
                 size_t size);
void repair_tick(struct gossip *gossip);
void repair_soon(struct gossip *gossip);
void repair_put_off(struct gossip *gossip, uint64_t until_ms); /* asks for no chunk of a large checkpoint before that */
uint64_t repair_deadline_ms(const struct gossip *gossip);

/* ---- catchup.c ---- */
/* May this chunk of so many go to the sender of the packet in hand? If not, it has been told to come again. */
bool catchup_serves_chunk(struct gossip *gossip, uint64_t chunks);
/* It is the sender's turn, so that an owner of whom it lacks about so many bytes is told in full. */
bool catchup_serves_owner(struct gossip *gossip, size_t size);
void catchup_on_pull(struct gossip *gossip);
/* A link to it is up: it may be what a comparison waited for. */
void catchup_on_link(struct gossip *gossip, struct member *member);
void catchup_on_later(struct gossip *gossip, const struct message *message);
/* Chunks that may be under way, asked of *from, which may become another, at *to; 0: not now. */
uint32_t catchup_way(struct gossip *gossip, const struct staging *staging, struct member **from,
                     struct gossip_address *to);
/* How many of the buckets in which we differ from the sender may be compared now. */
unsigned catchup_buckets(struct gossip *gossip, unsigned differing);

/* ---- carrier.c ---- */
struct gossip_address carrier_address(const struct member_id *id); /* of the link to it */
/* Datagrams pass, as far as we know, or its link is up. */
bool carrier_reaches(const struct gossip *gossip, const struct member *member);
/* How much longer a probe of it may take, as a link has to be dialled first. */
uint32_t carrier_patience_ms(struct gossip *gossip, const struct member *member);
/* One message over the link to it, never by datagram; false if there is none. */
bool carrier_send_one(struct gossip *gossip, struct member *member, const struct message *message);
void carrier_enqueue(struct gossip *gossip, const struct gossip_address *to, const uint8_t *plain, size_t size);
/* A link to it is wanted for so long, whatever its state; one to whoever is at the address: at the earliest a second
 * after the first call, so that datagrams can be answered, then ever more rarely while the calls go on. */
void carrier_want(struct gossip *gossip, const struct member *member, uint32_t for_ms);
void carrier_dial(struct gossip *gossip, const struct gossip_address *address);
/* The packet in hand answers us: if it is a datagram, its source needs no link, whatever else is wrong with it. */
void carrier_heard(struct gossip *gossip);
/* The packet in hand came over the sender's link. */
void carrier_note(struct gossip *gossip, struct member *sender);
/* A ping went by datagram; no answer in time; an answer came, by the way of the packet in hand; a helper has it. */
void carrier_asked(struct member *member);
void carrier_unanswered(struct gossip *gossip, struct member *member);
void carrier_answered(struct gossip *gossip, struct member *member, uint64_t number);
void carrier_answered_helper(struct gossip *gossip, struct member *member);
void carrier_forget(struct gossip *gossip, struct member *member); /* it is removed */
void carrier_tick(struct gossip *gossip);
uint64_t carrier_deadline_ms(const struct gossip *gossip);
void carrier_free(struct gossip *gossip);

/* ---- holdings.c ---- */
/* Around every change of a member's registry. It may come out of its grave by it, and its rows are told then. */
void holdings_begin(struct gossip *gossip, const struct member *member);
void holdings_end(struct gossip *gossip, struct member *member);
/* Is there room for more? Hidden owners' registries go first, the longest hidden ones before others. */
bool holdings_have_room(struct gossip *gossip);
/* Lets go of a hidden member's registry; a grave stays. */
void holdings_bury(struct gossip *gossip, struct member *member);
/* Lets go of it without one: another epoch begins, or the member itself goes. */
void holdings_free(struct gossip *gossip, struct member *member);
/* May this verified head make a new member of it? False: older than its grave; who brought it is told. */
bool holdings_let_pass(struct gossip *gossip, const struct member *member, const struct head *head);
/* Are its rows shown? */
bool holdings_show(const struct member *member);

/* ---- rejoin.c ---- */
void rejoin_on_link(struct gossip *gossip, const struct gossip_address *address, const struct member_id *id);
void rejoin_hurry(struct gossip *gossip); /* for some seconds those who are away are called often */
void rejoin_on_pong(struct gossip *gossip, uint64_t number);
void rejoin_on_own_packet(struct gossip *gossip, const uint8_t *plain, size_t size);
void rejoin_tick(struct gossip *gossip);
uint64_t rejoin_deadline_ms(const struct gossip *gossip);
bool rejoin_is_answered(struct gossip *gossip, struct bootstrap *contact);
void rejoin_dial(struct gossip *gossip, struct bootstrap *contact);

/* ---- roll.c ---- */
bool roll_is_called(const struct gossip *gossip);
/* There are many that we lack. False if the last one was not long ago and found nobody. */
bool roll_start(struct gossip *gossip);
void roll_found(struct gossip *gossip); /* somebody was verified */
/* So many tokens wait to be sent that another would come too late: who asks will ask again, or somebody else. */
bool roll_is_busy(const struct gossip *gossip);
/* May the sender of the packet in hand, who is unknown and has not proved its address, begin to join us now? */
bool roll_may_welcome(struct gossip *gossip);
void roll_on_roll(struct gossip *gossip, const struct message *message);
void roll_tick(struct gossip *gossip);
uint64_t roll_deadline_ms(const struct gossip *gossip);
struct message vouch_for(const struct member *member);
bool vouch_counts(const struct gossip *gossip);
void vouch_on_vouch(struct gossip *gossip, const struct message *message);

/* ---- seek.c ---- */
/* True if the packet in hand (its header is read) is a SEEK, which says nothing else. */
bool seek_hear(struct gossip *gossip, const struct wire_in *messages);
void seek_tick(struct gossip *gossip);
uint64_t seek_deadline_ms(const struct gossip *gossip);

static inline uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

#endif
