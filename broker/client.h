/* Inside broker/: one connection of a client, from open to the end of its output. */
#ifndef BROKER_CLIENT_H
#define BROKER_CLIENT_H

#include "broker/mqtt.h"
#include "broker/output.h"
#include "broker/retained.h"
#include "broker/routes.h"
#include "broker/timers.h"

struct acks;
struct aliases_out;
struct exchange;
struct held;
struct partial;
struct session;

enum client_state {
    CLIENT_NEW,       /* no CONNECT yet */
    CLIENT_CONNECTED, /* CONNECT accepted; has a session */
    CLIENT_ENDED,     /* only its output is left */
};

struct client {
    struct timer timer; /* first: the timer of a client is the client. Connect timeout, then keep alive */
    broker_handle handle;
    struct session *session;
    struct output output;
    struct client *prev, *next; /* of broker.ready */
    struct client *doomed_next;
    struct partial *partial;         /* the packet that has not arrived whole; NULL if none */
    struct mqtt_view *aliases;       /* topic_alias_max of them, owned, by alias - 1; NULL until the first */
    struct aliases_out *aliases_out; /* those that it has from us; NULL until the first */
    struct exchange *exchange;       /* if it named an authentication method (connect.h) */
    struct route_hint hint;          /* the topic it published to last */
    uint64_t heard_ms;               /* the last whole packet, or large piece of one */
    uint32_t packet_size_max;        /* the client's */
    uint32_t held_count;             /* SUBACKs that wait, or whose retained messages are not all sent */
    uint32_t waiting_count;          /* of these, those that wait */
    uint32_t held_bytes;             /* what all of them take */
    uint32_t covered;                /* the latest held_mark() that marked it */
    struct held *waiting;            /* those of them that wait */
    struct held *shows;              /* those of them whose retained messages are under way */
    union {
        struct {
            struct client *connecting_prev, *connecting_next; /* of broker.connecting, while it is new */
        };
        struct {
            struct client *show_prev, *show_next; /* of broker.showing, once it has a session */
        };
    };
    uint32_t alias_bytes;     /* of all topics in aliases */
    uint16_t aliases_out_max; /* 0: it takes none */
    uint64_t rate_full_ns;    /* see admission_rate() */
    struct acks *acks;        /* what waits for the store; NULL if nothing does */
    const char *why;          /* Reason String of its end; NULL: mqtt_reason_text() */
    uint16_t window;          /* QoS 1 and 2 publications it takes unacknowledged */
    uint16_t keep_alive_s;    /* 0: none */
    uint8_t state, version;
    uint8_t doom; /* why it is to be ended; 0 if it is not */
    bool ready : 1, is_showing : 1;
    bool told : 1;                   /* the log knows already why it ends */
    bool muted : 1;                  /* its CONNACK waits: nothing else may be sent (MQTT-3.2.0-1) */
    bool paused : 1;                 /* not to be read */
    bool is_bridge : 1;              /* see MQTT_BRIDGE */
    bool has_assigned_id : 1;        /* the client id is our choice */
    bool no_problem_information : 1; /* it wants no reason strings (MQTT 5.0 section 3.1.2.11.7) */
    struct broker_origin origin;     /* its texts follow in the same allocation */
    char texts[];
};

/* What an end means for the will (MQTT 5.0 section 3.1.2.5). Deferred: it is due at the next start, if its session is
 * there then; without one it is dropped. */
enum will_fate { WILL_DUE, WILL_DROPPED, WILL_DEFERRED };

struct client *client_find(const struct broker *broker, broker_handle handle);
/* NULL at clients_max or when memory is short. At connecting_max the longest silent one ends. */
struct client *client_new(struct broker *broker, uint64_t now_ms, const struct broker_origin *origin);
void client_free(struct broker *broker, struct client *client);

/* Ends the connection now: the session is detached, and MQTT 5.0 clients are told the reason unless it is MQTT_SUCCESS.
 * Never from within the routing of a publication: use client_doom() there. */
void client_end(struct broker *broker, uint64_t now_ms, struct client *client, enum mqtt_reason reason,
                enum will_fate fate);
/* The client broke the rules: counted, noted and ended. */
void client_fault(struct broker *broker, uint64_t now_ms, struct client *client, enum mqtt_reason reason);
/* The client went beyond a limit: counted, noted and ended. why: words of its own for the Reason String, static, at
 * most MQTT_REASON_STRING_MAX bytes, or NULL. */
void client_limit(struct broker *broker, uint64_t now_ms, struct client *client, enum broker_at limit,
                  enum mqtt_reason reason, const char *why);
/* CONNECT is accepted. */
void client_accepted(struct broker *broker, struct client *client);
/* Will be ended with this reason by broker_settle(). */
void client_doom(struct broker *broker, struct client *client, enum mqtt_reason reason);

/* For notes, client_notes.c: what fills "client '%.*s' at %s". The id is the words of a stranger, and cut. */
#define CLIENT_WHO(client) client_id_shown(client), client_id_of(client), (client)->origin.address
int client_id_shown(const struct client *client);
const char *client_id_of(const struct client *client);
/* Its end, for the log (client_notes.c). how: in words, after "is gone: ". */
void note_gone(struct broker *broker, const struct client *client, const char *how, enum will_fate fate);

/* Queues a control packet, behind the CONNACK if that waits. A client that makes us answer without ever reading is
 * doomed. */
void client_send(struct broker *broker, struct client *client, const void *packet, size_t size);

enum client_sent { CLIENT_SENT, CLIENT_TOO_LARGE, CLIENT_NO_MEMORY };
/* CLIENT_TOO_LARGE: larger than the client takes. encoded is where the packet lies until it is written, if in one
 * piece and right for others too: with no topic alias; else it is left alone. sending names no alias, it is found
 * here. */
enum client_sent client_send_publish(struct broker *broker, struct client *client, struct mqtt_sending *sending,
                                     struct message *message, struct mqtt_view *encoded);
/* The same for the bytes of a whole PUBLISH; not for a client that takes topic aliases. */
enum client_sent client_send_encoded(struct broker *broker, struct client *client, const struct message *message,
                                     struct mqtt_view packet);
/* True while so much is unwritten that publications wait or are dropped. */
bool client_output_full(const struct broker *broker, const struct client *client);
void client_mark_ready(struct broker *broker, struct client *client);

/* Cuts the bytes into packets and hands each to its handler. */
void client_input(struct broker *broker, uint64_t now_ms, struct client *client, const uint8_t *bytes, size_t size);
/* For what is due first: keep alive, or the end of a re-authentication. */
void client_set_timer(struct broker *broker, struct client *client);
/* The client's timer went off. */
void client_timeout(struct broker *broker, uint64_t now_ms, struct client *client);

/* The handlers: one file each. They are given whole packets. */
void on_connect(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                struct mqtt_view body);
void on_auth(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
             struct mqtt_view body);
void on_publish(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                struct mqtt_view body);
void on_ack(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
            struct mqtt_view body);
void on_subscribe(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                  struct mqtt_view body);
void on_unsubscribe(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                    struct mqtt_view body);
void on_disconnect(struct broker *broker, uint64_t now_ms, struct client *client, const struct mqtt_frame *frame,
                   struct mqtt_view body);

#endif
