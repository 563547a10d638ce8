/* The broker: MQTT 3.1.1 and MQTT 5.0 for clients, on bytes and time alone.
 *
 * Rules of this door (and of peering.h, the door for peers):
 *  1. Nothing here blocks, reads a clock, opens a socket or logs. Time is the argument now_ms:
 *     monotonic milliseconds that never go back.
 *  2. A call takes input; what the broker wants done is kept inside and fetched afterwards with
 *     broker_next_client(), broker_next_note() and the functions of peering.h, until they return
 *     false. No function pointer given to the broker calls back into it.
 *  3. Handles (client, link) are never reused within a broker's life. A handle that ended is
 *     accepted by every function and does nothing, so a caller's late event harms nothing.
 *  4. Memory is bounded by broker_limits from the first byte; when allocation fails the one client
 *     concerned is refused or closed with the protocol's reason.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;
struct policy;
struct record;

typedef uint64_t broker_handle; /* 0 is none */

/* Every quantity a stranger can grow. Zero in any field means the default written beside it. */
struct broker_limits {
    uint32_t packet_size_max;   /* bytes of one MQTT packet: 16 MiB */
    uint64_t partial_bytes_max; /* bytes of packets that have not arrived whole, of all clients together: 256 MiB */
    uint32_t clients_max;       /* open connections: 100,000 */
    uint32_t connecting_max;    /* of these, without a CONNECT accepted yet: 10,000 */
    uint32_t sessions_max;      /* sessions, connected or not: 100,000 */
    uint32_t subscriptions_per_client; /* 1,000 */
    uint32_t
        inflight_max; /* QoS 1 and 2 messages sent and not acknowledged, per client; also our Receive Maximum: 100 */
    uint32_t queue_messages_max; /* waiting QoS 1 and 2 messages per session: 10,000 */
    uint64_t queue_bytes_max;    /* and their bytes: 64 MiB */
    uint64_t queues_bytes_max;   /* waiting and in flight to all sessions together, a publication counted once: 1 GiB.
                                    Half of it is for whoever comes; an equal part of the other is each session's own */
    uint64_t output_bytes_max; /* bytes given for a client and not yet written; above it QoS 0 is dropped and counted: 4
                                  MiB */
    uint32_t topic_alias_max;  /* topic aliases we accept per client: 32 */
    uint32_t topic_alias_out_max;  /* topic aliases we give to a client that takes some; none */
    uint32_t topic_size_max;       /* bytes of a topic name or filter: 65,535 */
    uint32_t topic_levels_max;     /* levels of one: 128, which is also the most that can be set */
    uint32_t publish_rate_max;     /* publications per second and client, bursts of one second's worth, over all its
                                      connections: 0, no limit */
    uint64_t journal_bytes_max;    /* records made and not yet durable: 64 MiB. Above half of it clients that make more
                                      are paused; above it, publications the store would have to keep are refused; at
                                      twice it the journal is dropped, to begin anew with the whole state */
    uint32_t sys_interval_s;       /* between two rounds of $SYS topics: 10; 0xFFFFFFFF means none */
    uint32_t connect_timeout_ms;   /* from open to a whole CONNECT: 10,000 */
    uint32_t session_expiry_max_s; /* longest life of a session without connection; 0xFFFFFFFF means for ever: 7 days */
    uint32_t keep_alive_max_s;     /* longest keep alive granted (MQTT 5.0 Server Keep Alive): 0xFFFF, no change */
    uint64_t retained_bytes_max;   /* all retained messages, with the levels of their topics: 256 MiB */
    uint32_t retained_messages_max; /* 1,000,000 */
    uint32_t subscribe_barrier_ms;  /* longest wait of a SUBACK for other brokers (G3): 300 */
    uint32_t replay_window_ms;      /* how long a publication waits for an invited peer's join (G4): 5,000 */
    uint64_t replay_bytes_max;      /* bytes so held per peer: 4 MiB */
    uint32_t leave_linger_ms;       /* from the last unsubscribe to the leave: 5,000 */
    uint32_t peers_max;             /* 1,024 */
    uint64_t link_queue_bytes;      /* outbox per peer: 64 MiB */
    uint64_t link_queues_bytes;     /* those of all peers: 256 MiB */
    uint32_t link_queue_age_h;      /* for how long it is kept, and filled, for a peer that is away: 24 h */
    uint32_t link_frame_bytes;      /* a publish frame is closed once it holds this much: 64 KiB */
    uint32_t idle_links_max;        /* links used for gossip alone, unless wanted by ours: 64 */
    uint32_t link_idle_ms;          /* a link silent for this long is pinged, after twice this it is closed: 5,000 */
    uint32_t advert_idle_s; /* an advert whose topic nobody published to for this long, and that retains nothing, is
                               withdrawn: 3,600 */
};

/* What the transport knows of the far end. */
struct broker_origin {
    const char *address;          /* text, for listings and notes; copied */
    const char *certificate_name; /* subject CN of a client certificate that was verified; NULL if none; copied */
    uint32_t waited_ms; /* since the connection was made, if its handshakes took time: connect_timeout_ms counts from
                           then */
    bool from_loopback;
};

/* Who asks to be let in; all is borrowed. What is missing is NULL. */
struct broker_applicant {
    const struct broker_origin *origin;
    const char *client_id;
    size_t client_id_size;
    const char *user_name; /* as sent; a certificate's name stands in origin and goes first */
    size_t user_name_size;
    const void *password;
    size_t password_size;
};

struct broker_auth_step {
    /* in */
    const char *method; /* the client's Authentication Method, the same in all steps */
    size_t method_size;
    const void *data; /* its Authentication Data; NULL if none */
    size_t data_size;
    bool again; /* the client, long connected, re-authenticates */
    /* in and out: zero in the first step, the method's own after that */
    uint64_t state;
    /* out */
    uint8_t reason;       /* 0x00 done, 0x18 go on with another AUTH; else why it is refused: 0x86, 0x87, 0x8C (no such
                             method) ... */
    uint8_t answer[1024]; /* Authentication Data for the client, with 0x00 and 0x18 */
    size_t answer_size;   /* 0: none */
};

/* Pure questions the broker may ask while it works. They answer at once, from memory. NULL members
 * mean: anonymous clients are welcome, everything is allowed. */
struct broker_questions {
    void *context;
    /* May this client connect? Returns an MQTT 5.0 reason code: 0x00 yes, 0x86 bad user name or
     * password, 0x87 not authorized. With these two *why, NULL before, may be set to what client and log are told of
     * cause and remedy: a constant of at most 100 bytes. */
    uint8_t (*may_connect)(void *context, const struct broker_applicant *applicant, const char **why);
    /* One step of enhanced authentication (MQTT 5.0 section 4.12), at CONNECT and at re-authentication. NULL: no
     * method is known (0x8C). */
    void (*authenticate)(void *context, const struct broker_applicant *applicant, struct broker_auth_step *step);
};

struct broker_options {
    const char *name;            /* this broker's name, for HLC ties and $SYS; copied */
    const char *federation;      /* at most 63 bytes: links are made with brokers of the same one; copied */
    uint8_t id[16];              /* this broker's id (first 16 bytes of its key's thumbprint) */
    uint64_t epoch;              /* of this run, larger than that of any run before */
    uint64_t seed;               /* for assigned client ids and hash keys */
    const struct policy *policy; /* policy.h; NULL: everything may pass. Borrowed until another is set */
    bool debug_notes;            /* notes at level debug are wanted: who connects, and who goes */
    bool durable;                /* keeps a journal; without it nothing outlives a run, and nothing waits */
    const char *version;         /* for $SYS; copied; NULL: none */
    struct broker_limits limits;
    struct broker_questions questions; /* its context must outlive the broker */
};

/* NULL when memory is short. */
struct broker *broker_new(const struct broker_options *options, uint64_t now_ms);
/* The limits in force: no zero among them but where it means no limit. */
const struct broker_limits *broker_limits_of(const struct broker *broker);
void broker_free(struct broker *broker);

/* Wall-clock milliseconds since 1970 minus now_ms. Feeds the hybrid clock of retained messages and the times in the
 * journal; steps in either direction are harmless (after one of more than ten minutes the journal begins anew). Call it
 * at start and whenever convenient. */
void broker_set_wall_offset(struct broker *broker, int64_t offset_ms);

/* The next time at which broker_tick() has work; UINT64_MAX if none. */
uint64_t broker_deadline_ms(const struct broker *broker);
/* Does everything due: keep alive, will delay, session expiry, barriers, replay, link timers. */
void broker_tick(struct broker *broker, uint64_t now_ms);

/* ---- clients ---- */

/* A transport connection arrived. Returns 0 when clients_max is reached or memory is short: close the socket. At
 * connecting_max, and at clients_max if there is one, the connection that has waited longest without a CONNECT ends
 * instead: who says who he is at once is never kept out by those who say nothing. */
broker_handle broker_client_open(struct broker *broker, uint64_t now_ms, const struct broker_origin *origin);

/* How many have sent no CONNECT that was accepted, and which of them has waited longest; 0 if there is none. */
size_t broker_clients_connecting(const struct broker *broker, broker_handle *longest);

/* A small number of the client's own while its handle is good, so that the caller finds its side of it in an array: at
 * most as many as there ever were clients at once. A later client may have it again. */
static inline uint32_t broker_client_place(broker_handle client) {
    return (uint32_t)client - 1;
}

/* Bytes from the client, split anywhere, as many as the socket held. They are borrowed for the call. */
void broker_client_input(struct broker *broker, uint64_t now_ms, broker_handle client, const uint8_t *bytes,
                         size_t size);

/* The transport ended without our asking (end of file, error): the will is due. */
void broker_client_closed(struct broker *broker, uint64_t now_ms, broker_handle client);

/* The next client that has bytes to write or is to be closed; false when there is none. Each client is
 * named once per reason; ask its output until it is empty. */
bool broker_next_client(struct broker *broker, broker_handle *client);

struct broker_span {
    const uint8_t *bytes;
    size_t size;
};

/* Up to span_max pieces to write, in order; returns their number. The pieces stay where they are until
 * broker_client_written() says so, whatever else is called (broker_client_closed() and broker_free()
 * apart), so an asynchronous write needs no copy. */
size_t broker_client_output(struct broker *broker, broker_handle client, struct broker_span *spans, size_t span_max);
/* The first size bytes of the output are gone. */
void broker_client_written(struct broker *broker, uint64_t now_ms, broker_handle client, size_t size);
/* True once the broker is done with the client: when its output is empty, close the transport and
 * forget the handle; broker_client_closed() is then not needed but harmless. */
bool broker_client_ended(const struct broker *broker, broker_handle client);

/* True while no more should be read from the client: it has sent more than it may before the store, or
 * other brokers, have caught up. It is
 * named by broker_next_client() when that is over. Input that is given all the same is taken. */
bool broker_client_paused(const struct broker *broker, broker_handle client);

/* ---- what must outlive a crash (options.durable) ---- */

/* At the start, after broker_set_wall_offset() (by the latest wall_ms that came with a journal, if the clock is behind
 * it) and before anything else: what the store holds, as records in this
 * order: all sessions, subscriptions, messages, queued (by position), received and retained ones. Then
 * broker_restored(). A record that refers to what is not there is left out and noted. */
void broker_restore(struct broker *broker, uint64_t now_ms, const struct record *record);
/* That was all. Wills and expiries that fell due meanwhile happen at the next tick. first_number is larger than every
 * number of a session, message or position in the store. False if memory was short and some of it is missing: do not
 * serve then, or it is lost. */
bool broker_restored(struct broker *broker, uint64_t now_ms, uint64_t first_number);

struct broker_journal {
    uint8_t *bytes; /* records (record.h) one after the other; the caller's, to free() */
    size_t size;
    uint64_t last;    /* number of the last of them; the first ever is 1 */
    uint64_t wall_ms; /* by the clock that times in them are told by */
};
/* The records made since the last call; false if there are none. They only mean something together: one transaction, or
 * several takes in one. A journal that was dropped begins anew here, with RECORD_RESET and the whole state, once the
 * store does not fail. */
bool broker_take_journal(struct broker *broker, struct broker_journal *journal);
/* The records up to this number are on the disk: what waited for them (PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK,
 * UNSUBACK, CONNACK, QoS 2 publications) goes out. */
void broker_durable(struct broker *broker, uint64_t now_ms, uint64_t number);
/* The store cannot write (full, failing disk), or can again. While it cannot, publications of QoS 1 and 2 that would
 * have to outlive a crash are refused with 0x97 (3.1.1: the connection is closed); what is on its way waits. */
void broker_set_store_failing(struct broker *broker, uint64_t now_ms, bool failing);
/* Begins the journal anew: RECORD_RESET and the whole state. For a store that lost what it was given. False when memory
 * is short. */
bool broker_restart_journal(struct broker *broker, uint64_t now_ms);

/* All memory of the process together is at its limit, or no longer: while it is, nothing that lasts is taken. CONNECT
 * of new sessions, subscriptions and publications of QoS 1 and 2 are refused with 0x97, QoS 0 is dropped; all
 * counted. Deletes of retained messages are taken. */
void broker_set_memory_short(struct broker *broker, uint64_t now_ms, bool is_short);

/* Bytes that the process has in memory, for $SYS. To be said again and again: while memory is short, what waits for
 * other brokers that are away gives way, the one that has been away longest first. */
void broker_set_memory_used(struct broker *broker, uint64_t bytes);

/* Orderly end of the broker: every client gets DISCONNECT 0x8B (MQTT 5.0) and is ended, no new client is accepted.
 * Fetch the output as usual. No will is published, and no session expires any more: those that are in the journal keep
 * their wills, and what is due then happens after the next start (MQTT 5.0 section 3.1.2.5). */
void broker_stop(struct broker *broker, uint64_t now_ms);

/* ---- what happened, for logs and metrics ---- */

/* Limits at which something is refused, dropped or closed. */
enum broker_at {
    BROKER_AT_CLIENTS_MAX,           /* connection refused, or a silent one ended for it */
    BROKER_AT_CONNECTING_MAX,        /* connection without CONNECT ended for another */
    BROKER_AT_CONNECT_TIMEOUT_MS,    /* connection without CONNECT, or in the midst of authentication, closed */
    BROKER_AT_SESSIONS_MAX,          /* CONNECT refused */
    BROKER_AT_SUBSCRIPTIONS,         /* subscription refused */
    BROKER_AT_PACKET_SIZE_MAX,       /* client closed */
    BROKER_AT_PARTIAL_BYTES_MAX,     /* client closed whose packet was the longest on its way */
    BROKER_AT_INFLIGHT_MAX,          /* client closed: it sent more than our Receive Maximum */
    BROKER_AT_QUEUE_MESSAGES_MAX,    /* QoS 1 or 2 dropped for one session */
    BROKER_AT_QUEUE_BYTES_MAX,       /* the same */
    BROKER_AT_QUEUES_BYTES_MAX,      /* the same */
    BROKER_AT_OUTPUT_BYTES_MAX,      /* QoS 0 dropped for one client, or a client closed that makes us answer and never
                                        reads */
    BROKER_AT_TOPIC_ALIAS_MAX,       /* client closed */
    BROKER_AT_TOPIC_SIZE_MAX,        /* publication, will or subscription refused */
    BROKER_AT_TOPIC_LEVELS_MAX,      /* the same */
    BROKER_AT_PUBLISH_RATE_MAX,      /* client closed */
    BROKER_AT_RETAINED_BYTES_MAX,    /* publication refused or not retained */
    BROKER_AT_RETAINED_MESSAGES_MAX, /* the same */
    BROKER_AT_JOURNAL_BYTES_MAX,     /* publication refused: the store is too far behind */
    BROKER_AT_MEMORY_BYTES_MAX,      /* whatever broker_set_memory_short() refuses or drops */
    BROKER_AT_COUNT
};
/* The limit's name as in struct broker_limits; for BROKER_AT_MEMORY_BYTES_MAX memory_bytes_max, which is the
 * daemon's. */
const char *broker_limit_name(enum broker_at limit);

struct broker_counters {
    uint64_t clients_connected;             /* now, with CONNECT accepted */
    uint64_t sessions;                      /* now */
    uint64_t subscriptions;                 /* now */
    uint64_t shared_subscriptions;          /* of these */
    uint64_t queued_messages, queued_bytes; /* QoS 1 and 2, waiting for clients now */
    uint64_t inflight_messages;             /* sent to clients and not acknowledged now */
    uint64_t held_bytes;                    /* of both now, a publication counted once however many wait for it */
    uint64_t clients_maximum;               /* the most that were connected at a time */
    uint64_t retained_messages;             /* now */
    uint64_t connections_opened;
    uint64_t sessions_expired;
    uint64_t connects_accepted, connects_refused, protocol_errors, takeovers;
    uint64_t packets_received, packets_sent;
    uint64_t publications_received;                              /* from clients */
    uint64_t publications_sent;                                  /* to clients */
    uint64_t publication_bytes_received, publication_bytes_sent; /* payloads of these */
    uint64_t dropped_qos0;                                       /* output full */
    uint64_t dropped_queue_full;                                 /* QoS 1 and 2 */
    uint64_t bytes_received, bytes_sent;
    uint64_t client_timeouts;      /* keep alive, and no CONNECT in time */
    uint64_t publications_refused; /* of QoS 1 and 2, as the store could not keep them */
    uint64_t dropped_too_large;    /* publications larger than the client's Maximum Packet Size */
    uint64_t dropped_expired;      /* queued publications whose Message Expiry Interval was over */
    uint64_t publications_denied;  /* to $SYS or $share topics */
    uint64_t not_retained;         /* publications that the retained store did not take */
    uint64_t reauthentications_refused;
    uint64_t at_limit[BROKER_AT_COUNT]; /* how often each limit was reached */
};
void broker_read_counters(const struct broker *broker, struct broker_counters *out);

enum broker_note_level { BROKER_NOTE_DEBUG, BROKER_NOTE_INFO, BROKER_NOTE_WARNING };
struct broker_note {
    enum broker_note_level level;
    char text[320]; /* one line, without control characters */
};
/* The oldest note not yet fetched; at most 256 are kept (at level debug half of that), newer ones are counted and
 * dropped. */
bool broker_next_note(struct broker *broker, struct broker_note *note);

#endif
