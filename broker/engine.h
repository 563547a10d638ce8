/* Inside broker/: the state of one broker, and what its files call of each other. Not a door. */
#ifndef BROKER_ENGINE_H
#define BROKER_ENGINE_H

#include "broker/federation.h"
#include "broker/held.h"
#include "broker/journal.h"
#include "broker/rates.h"
#include "broker/retained.h"
#include "broker/session.h"
#include "broker/sys.h"

struct client_slot {
    struct client *client;
    uint32_t generation; /* part of the handle, so that none comes twice */
    uint32_t next_free;  /* position + 1 */
};

struct note {
    struct note *next;
    struct broker_note note;
};

/* The lines about one limit: at most one in LIMIT_NOTE_MS, the others are counted. */
enum { LIMIT_NOTE_MS = 10000 };
struct limit_note {
    uint64_t next_ms; /* before it no other line; 0 at first */
    uint64_t more;    /* left out since the last one */
};

struct broker {
    struct broker_limits limits;
    struct broker_questions questions;
    uint8_t id[16];
    uint64_t seed;
    uint64_t now_ms; /* the latest seen, for what a door without time sets off */
    bool stopping, memory_short;
    uint64_t memory_used; /* of the process, bytes; 0 if nobody has said */

    struct client_slot *slots;
    uint32_t slot_count, slot_capacity, slot_free; /* slot_free: position + 1 */
    uint32_t client_count;
    struct client *ready;  /* to be named by broker_next_client */
    struct client *doomed; /* to be ended by broker_settle */
    struct chunk_pool chunks;
    struct timers client_timers;
    struct client *connecting; /* without CONNECT, the longest waiting first */
    uint32_t connecting_count;
    struct partial *partials; /* the large ones, the longest waiting first */
    uint64_t partial_bytes;

    struct session *sessions;
    uint64_t last_number; /* of sessions, and of messages and positions in the journal */
    uint64_t id_counter;
    struct timers session_timers;

    struct subs *subs;
    struct names shares;                     /* groups of shared subscriptions */
    struct share_member *share_members;      /* of all groups, by group and session */
    uint64_t share_walk;                     /* counts share_pass_on() */
    const struct subscriber *share_returner; /* what is handed out comes back from this peer; else NULL */
    struct retained *retained;               /* but what is under $SYS: see sys_retained_for() */
    struct sys sys;
    struct federation *federation;
    struct held *held;          /* those that wait for their barrier, by its number */
    struct held *held_by_store; /* then for their record, in the order of release */
    struct held *held_unmarked; /* of both, those not yet in the tree */
    struct subs *held_tree;     /* NULL until it is needed */
    uint32_t held_mark;         /* counts held_mark() */
    struct client *showing;     /* those that can take more retained messages now */
    uint32_t show_budget;       /* topics that may still be looked at before the next tick */

    struct routes *routes;
    struct rates *rates;          /* NULL without limits.publish_rate_max */
    struct route_hint peers_hint; /* the topic of the last publication that came over a link */

    struct journal journal;
    struct restoring *restoring; /* between broker_restore() and broker_restored() */
    bool restore_failed;
    struct timers waiting; /* struct acks, by record number instead of time */
    broker_handle *paused;
    uint32_t paused_count, paused_capacity;

    int64_t wall_offset_ms;
    struct stamp clock; /* the latest of the hybrid clock */

    bool debug_notes; /* see broker_options */
    struct note *first_note, *last_note;
    uint32_t note_count;
    uint64_t notes_dropped;
    struct limit_note limit_notes[BROKER_AT_COUNT];
    uint64_t limit_notes_due_ms; /* UINT64_MAX if nothing was left out */

    struct broker_counters counters;
};

/* limits.c: every zero becomes the default of broker.h; what would break the protocol is bent to the nearest that does
 * not. */
void limits_complete(struct broker_limits *limits);

/* clock.c: the stamp of a retained publication accepted now (Kulkarni et al. 2014, send event). */
struct stamp clock_stamp(struct broker *broker, uint64_t now_ms);

/* notes.c */
void notes_free(struct broker *broker);
/* A limit was reached: counted, and told in a line of at most one in LIMIT_NOTE_MS. Like snprintf; the text says what
 * happens and to whom, the limit's name is added. */
void limit_reached(struct broker *broker, enum broker_at limit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Tells how many lines were left out, once their time is over. */
void limit_notes_tick(struct broker *broker, uint64_t now_ms);

/* route.c: a publication of a client here, or a will: retained if it says so, to sessions and peers. The message must
 * be borrowed or have no other holder yet: its stamp is set here. only_if_retained: without room
 * in the store it is not routed. */
enum routed {
    ROUTED = 0,
    ROUTED_NO_MEMORY = -1,    /* and nothing happened */
    ROUTED_NOT_RETAINED = -2, /* and so not routed */
    ROUTED_NOT_STORED = -3,   /* never from route_local(): what must outlive a crash is not let in */
};
enum routed route_local(struct broker *broker, uint64_t now_ms, struct message *message, bool only_if_retained);
/* The same for a publisher whose last topic is remembered. */
enum routed route_publication(struct broker *broker, uint64_t now_ms, struct message *message, bool only_if_retained,
                              struct route_hint *hint);
/* True if this publication of QoS 1 or 2 of a client would have to outlive a crash: it is to be retained, a durable
 * session would get it, or it is kept for another broker. */
bool route_lasts(const struct broker *broker, const struct message *message);

/* shows.c: retained messages go out as the client takes them, and in pieces, so that nobody else waits for a large
 * store to be searched. */
/* What is left of held to show is shown, then it is freed. */
void show_add(struct broker *broker, struct held *held);
/* The client may take more now. */
void show_wake(struct broker *broker, struct client *client);
void show_forget_client(struct broker *broker, struct client *client);
/* Does a bounded piece of the work; false if nothing could be done. */
bool show_some(struct broker *broker, uint64_t now_ms);
void show_refill(struct broker *broker);

/* restore.c: for broker_free() in the midst of it */
void restore_drop(struct broker *broker);

/* pause.c */
/* After input of the client; before: the last record at its begin. */
void pause_check(struct broker *broker, struct client *client, uint64_t before);
/* The store or other brokers have caught up, or the store fails. */
void pause_release(struct broker *broker);

/* dump.c */
/* The session with all it holds, all of it new to the journal. */
void dump_session(struct broker *broker, uint64_t now_ms, struct session *session);
/* The whole state, in a journal that begins anew. False when memory is short. */
bool dump_all(struct broker *broker, uint64_t now_ms);

/* broker.c: ends the doomed and releases SUBACKs, until there is nothing of both. */
void broker_settle(struct broker *broker);

#endif
