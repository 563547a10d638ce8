/* Inside broker/: a session, which outlives its connections (MQTT 5.0 section 4.1). */
#ifndef BROKER_SESSION_H
#define BROKER_SESSION_H

#include "broker/client.h"
#include "broker/filters.h"
#include "broker/share.h"

#ifndef HASH_NONFATAL_OOM
#define HASH_NONFATAL_OOM 1
#endif
#include <uthash.h>

/* One QoS 1 or 2 publication on its way to a client. */
struct outgoing {
    struct outgoing *prev, *next;
    struct outgoing *chain;      /* same bucket of session.by_id */
    struct message *message;     /* NULL once PUBREC has come */
    struct share_member *member; /* through whose shared subscription it came; NULL if through none */
    uint64_t position;           /* in the journal; 0 if the session is not durable */
    uint64_t record;             /* the last that tells of it: at QoS 2 nothing is sent before that is durable */
    uint16_t packet_id;          /* 0 while queued */
    uint8_t qos;
    bool retain;
    bool sent;     /* once at least, on whatever connection: the next time is a repetition */
    bool in_air;   /* sent on this connection and not done */
    bool released; /* PUBREC has come, PUBREL is what is sent */
    uint16_t identifier_count;
    uint32_t identifiers[];
};

struct session {
    struct subscriber subscriber; /* first: the subscriber of a session is the session */
    struct timer timer;           /* while there is no connection: the will or the end, whichever is first */
    UT_hash_handle hh;            /* of broker.sessions, by client id */
    uint64_t number;              /* unique in the life of the broker, and of its store */
    struct client *client;        /* NULL while there is no connection */

    struct filters filters;
    struct share_member *memberships; /* of shared subscriptions */

    struct outgoing *inflight; /* with packet id, in the order of their first sending */
    struct outgoing *resend;   /* first of inflight not yet sent on this connection */
    struct outgoing *queue;
    struct outgoing **by_id; /* index of inflight by packet id, chained; NULL while they are few */
    uint32_t by_id_size;     /* a power of two */
    uint32_t in_air, inflight_count, queue_count;
    uint64_t queue_bytes;

    uint16_t *received; /* QoS 2 packet ids between PUBLISH and PUBREL: see received.c */
    uint32_t received_count, received_capacity;

    struct message *will; /* NULL if none */
    uint32_t will_delay_s;
    uint64_t will_expiry_s; /* of 32 bits, or MESSAGE_NO_EXPIRY */
    uint64_t will_due_ms;   /* while there is no connection */
    uint16_t last_packet_id;
    uint16_t free_ids;        /* so many ids after it are not in flight, as far as is known */
    uint16_t received_before; /* of the received, when this connection began */
    bool durable;             /* told of in the journal */
    uint32_t expiry_s;        /* UINT32_MAX: never */
    uint64_t expires_at_ms;

    /* Who it belongs to: the name in a verified client certificate. Nobody else may have it; size 0: whoever comes. */
    char *principal;
    uint32_t principal_size;

    uint32_t client_id_size;
    char client_id[];
};

struct session *session_find(const struct broker *broker, const void *client_id, size_t size);
/* NULL when memory is short; the limit sessions_max is the caller's to check. */
struct session *session_new(struct broker *broker, const void *client_id, size_t size);
/* Ends it: subscriptions go, a will that waits is published. It must have no connection. */
void session_end(struct broker *broker, uint64_t now_ms, struct session *session);
/* Without a last word, for broker_free(). */
void session_free(struct broker *broker, struct session *session);

void session_attach(struct broker *broker, struct session *session, struct client *client);
/* The connection is gone. The session may end with it. */
void session_detach(struct broker *broker, uint64_t now_ms, struct session *session, enum will_fate fate);
/* Sets when its will is due and when it ends, from now. */
void session_begin_absence(struct broker *broker, uint64_t now_ms, struct session *session);
void session_set_timer(struct broker *broker, struct session *session);
/* Does what is due of a session without a connection; it may end with that. */
void session_timeout(struct broker *broker, uint64_t now_ms, struct session *session);

/* SUBS_OK, SUBS_REPLACED or SUBS_NO_MEMORY. */
/* The session expiry interval from now on. */
void session_set_expiry(struct broker *broker, uint64_t now_ms, struct session *session, uint32_t expiry_s);
enum subs_result session_subscribe(struct broker *broker, uint64_t now_ms, struct session *session, const char *filter,
                                   size_t size, const struct subscription *subscription);
/* SUBS_OK or SUBS_NOT_FOUND. */
enum subs_result session_unsubscribe(struct broker *broker, uint64_t now_ms, struct session *session,
                                     const char *filter, size_t size);
bool session_holds(const struct broker *broker, const struct session *session, const char *filter, size_t size);

/* ---- delivery.c: what goes to the client ---- */

/* The packets of one publication at QoS 0 without subscription identifiers, by version (MQTT 5.0 or not) and retain:
 * encoded for the first who gets it, they are copied from there. Good while nothing is written. */
struct encodings {
    struct mqtt_view packets[2][2];
};

struct delivery {
    uint8_t qos;
    bool retain;
    const uint32_t *identifiers;
    size_t identifier_count;
    struct share_member *member; /* of the shared subscription it comes through; NULL if through none */
    struct encodings *encodings; /* NULL if there is only one to deliver to */
};
enum session_readiness {
    SESSION_FULL,   /* would be dropped */
    SESSION_QUEUES, /* would wait */
    SESSION_SENDS
};
enum session_readiness session_readiness(const struct broker *broker, const struct session *session,
                                         const struct message *message, const struct delivery *delivery);
/* Sends, queues or drops by the session's state and limits. */
void session_deliver(struct broker *broker, uint64_t now_ms, struct session *session, struct message *message,
                     const struct delivery *delivery);
/* delivery_qos0.c: sends at once, or drops. */
void session_deliver_qos0(struct broker *broker, uint64_t now_ms, struct session *session, struct message *message,
                          const struct delivery *delivery);
/* True if one more of this QoS would neither be dropped nor take what the queue keeps for live messages. */
bool session_has_room(const struct broker *broker, const struct session *session, uint8_t qos);
/* Sends what waits, as far as the client's window and output allow. */
void session_pump(struct broker *broker, uint64_t now_ms, struct session *session);
/* PUBREC has come: its message is no longer needed. */
void session_outgoing_released(struct broker *broker, const struct session *session, struct outgoing *outgoing);
/* It is acknowledged, dropped or somebody else's: takes it out of the queue or of those in flight. */
void session_outgoing_done(struct broker *broker, struct session *session, struct outgoing *outgoing);
/* One of an earlier run, as its RECORD_QUEUED says, behind those put back before. message is NULL if PUBREC had come,
 * member if it came through none. -1 when memory is short. */
int session_put_back(struct broker *broker, struct session *session, struct message *message,
                     struct share_member *member, const struct record *record);
/* Frees all that is queued and in flight. */
void session_drop_outgoing(struct broker *broker, struct session *session);

/* ---- inflight.c: what has a packet id ---- */

/* Its packet id is set. It becomes the last of them. */
void session_inflight_add(struct session *session, struct outgoing *outgoing);
void session_inflight_remove(struct session *session, struct outgoing *outgoing);
/* The one under this packet id; NULL if there is none. */
struct outgoing *session_inflight(const struct session *session, uint16_t packet_id);

/* ---- received.c: QoS 2 packet ids of the client's publications (MQTT 5.0 section 4.3.3, method B) ---- */

enum received_result { RECEIVED_NEW = 0, RECEIVED_AGAIN = 1, RECEIVED_NO_MEMORY = -1 };
enum received_result session_received_add(struct session *session, uint16_t packet_id);
bool session_received_has(const struct session *session, uint16_t packet_id);
/* False if it was not there. */
bool session_received_remove(struct session *session, uint16_t packet_id);
/* The lowest above this one, of 0 the first; 0 if there is none. */
uint16_t session_received_next(const struct session *session, uint16_t after);

#endif
