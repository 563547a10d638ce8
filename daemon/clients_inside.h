/* Inside daemon/clients*.c: connections and what is done with them. Not a door.
 *
 * A connection is in one of these states, which is the list that it is in:
 *   arriving   its PROXY header or its handshakes are under way; the broker does not know it. It has a deadline. While
 *              it is queued, for its share of the time that handshakes may take, it is not read from.
 *   open       the broker knows it (handle). While the broker has paused it, it is not read from.
 *   waiting    the same, but it has used up its share of the turn, and the rest of its input is kept for the next.
 *   ended      nobody listens to it any more; its last bytes, and the far end's hang-up, have a deadline.
 *   dead       its socket is closed. Its memory goes once no event of this turn can name it.
 *
 *   clients_accept.c   listeners, new connections
 *   clients_arrive.c   PROXY header, TLS and WebSocket handshakes, up to the broker's handle
 *   clients_stream.c   reads and writes of a socket
 *   clients_frames.c   the same for what goes through TLS or WebSocket
 *   clients_share.c    fairness: how much of a turn one client's input may take
 *   clients.c          the turn of the loop, ends, the door
 */
#ifndef DAEMON_CLIENTS_INSIDE_H
#define DAEMON_CLIENTS_INSIDE_H

#include <sys/epoll.h>

#include "daemon/clients.h"
#include "daemon/proxy.h"
#include "daemon/text.h"
#include "daemon/tls_stream.h"
#include "daemon/websocket.h"

#define CLIENTS_READ_SIZE (64u * 1024u) /* bytes taken from a socket at once */
#define CLIENTS_SEND_SIZE (64u * 1024u) /* bytes framed or encrypted for one write */
#define CLIENTS_EVENTS_MAX 256u         /* fetched at once */
#define CLIENTS_ROUNDS_MAX 4u           /* writes for one client in one turn; then the kernel's readiness paces it */

enum connection_list { LIST_OPEN, LIST_ARRIVING, LIST_WAITING, LIST_ENDED, LIST_DEAD };
enum connection_stage { STAGE_MQTT, STAGE_PROXY, STAGE_HELLO, STAGE_TLS, STAGE_REQUEST };

/* What a connection has beyond plain TCP, and while it is in a list. */
struct layers {
    struct connection *connection;
    struct layers *next, *prev;               /* of the list */
    struct layers *queued_next, *queued_prev; /* of clients->queued */
    uint64_t due_ms;                          /* of arriving and ended */
    uint8_t stage;                            /* enum connection_stage */
    bool with_tls, with_websocket;
    bool from_loopback;
    bool said_goodbye; /* close frame and close_notify are sent */
    uint16_t close_code;
    uint64_t arrived_ms;
    char address[64];
    char *name;                         /* of the client's certificate; NULL if none */
    struct tls_stream *tls;             /* from STAGE_TLS on */
    struct websocket_reader *websocket; /* from STAGE_MQTT on */
    struct text greeting;               /* a PROXY header, the first record of TLS or a request, so far */
    struct text unsent;                 /* framed or encrypted, what the socket had no room for */
    size_t unsent_at;
    struct text rest; /* input that waits for the next share: of MQTT, or frames of WebSocket */
    size_t rest_at;
};

struct connection {
    struct clients *clients;
    struct layers *layers; /* NULL for plain TCP that is open */
    broker_handle handle;  /* 0 before the broker knows it, and once it knows no more of it */
    struct connection *ready_next, *dead_next;
    int file;                /* -1 once dead */
    uint32_t turn, spent_ns; /* the turn it was last heard in, and what that cost */
    unsigned list : 3;       /* enum connection_list */
    unsigned watched : 3;    /* enum connection_interest */
    unsigned slice_bits : 4; /* log2 of the bytes given to the broker at once */
    bool is_ready : 1;       /* in clients->ready */
    bool is_blocked : 1;     /* the socket took no more, or the turn's writes are used up */
    bool is_paused : 1;      /* by the broker */
    bool is_shut : 1;        /* all is written, the far end's hang-up awaited */
    bool is_queued : 1;      /* in clients->queued */
};

enum connection_interest { WATCH_NONE = 0, WATCH_IN = 1, WATCH_OUT = 2, WATCH_END = 4 };

struct listener {
    uv_poll_t poll; /* first: handles are cast to listeners */
    struct clients *clients;
    int file;
    enum clients_kind kind;
    uint16_t port;
    bool from_loopback; /* nobody else can reach it */
    bool is_polling;
    const char *unix_path;  /* borrowed from the configuration; NULL if it is none */
    uint64_t device, inode; /* of the socket's file */
};

struct clients {
    struct server *server;
    const struct broker_limits *limits;
    size_t handles; /* on the loop, all kinds; at 0 everything is freed */
    bool closing;
    int epoll;               /* -1 if it could not be made */
    uv_poll_t poll;          /* of epoll */
    uv_timer_t timer;        /* for the first of arriving and ended */
    uv_timer_t accept_timer; /* accepts again after descriptors ran out */
    uv_idle_t idle;          /* while there is work that no socket tells of */
    size_t listener_count;
    struct listener *listeners[CONFIG_LISTENERS_MAX * CLIENTS_KINDS];
    uint64_t files_max;

    struct connection **by_place; /* broker_client_place() */
    size_t place_count;
    struct connection *ready, **ready_end;
    struct layers *arriving, *waiting, *ended; /* the first of each is the oldest */
    struct layers *queued;                     /* TLS handshakes with something to read */
    uint64_t handshakes_ns;                    /* what those of this turn have cost */
    struct connection *dead;
    size_t count, arriving_count;

    struct epoll_event events[CLIENTS_EVENTS_MAX];
    int event_count, event_at;
    uint32_t turn;
    uint64_t clock_ns; /* read last */

    struct text sending; /* framed or encrypted for the connection in hand; empty between two of them */
    struct clients_counters counters;
    uint8_t input[CLIENTS_READ_SIZE];
    uint8_t plain[TLS_RECORD_MAX + WEBSOCKET_SENT_HEAD_MAX];
};

/* ---- clients.c ---- */

/* NULL when memory or the epoll instance is short; the descriptor is closed then. It is open. */
struct connection *connection_new(struct clients *clients, int file);
/* It must have layers to be arriving, waiting or ended. */
void connection_move(struct connection *connection, enum connection_list list);
/* Tells the broker of it; false, and it is closed, when it is refused. */
bool connection_open(struct connection *connection, const struct broker_origin *origin);
/* The socket goes at once, and what was not written with it. */
void connection_close(struct connection *connection);
/* Nobody listens to it any more: what is left to write, and the far end's hang-up, have little time. */
void connection_end(struct connection *connection);
/* Brings what epoll watches for up to date. */
void connection_watch(struct connection *connection);
/* One handle of the loop less; with the last of them, all is freed. */
void clients_release(struct clients *clients);
/* One line for the log, of a connection that came to nothing. */
void connection_log(const struct connection *connection, const char *event, const char *why);
/* Layers, made on demand; NULL when memory is short. */
struct layers *connection_layers(struct connection *connection);
void connection_drop_layers(struct connection *connection);

/* ---- clients_accept.c ---- */

/* False on failure, and then error is one line with the remedy. */
bool listeners_open(struct clients *clients, char error[SERVER_ERROR_MAX]);
void listeners_close(struct clients *clients);

/* ---- clients_arrive.c ---- */

/* The way in, for a connection with layers; the address is the far end's of the socket. */
void arrive(struct connection *connection, const struct listener *listener, bool proxied, const char *address);
/* Bytes for the stage that it is in: PROXY header, first record of TLS, or request for a WebSocket. Returns how many
 * were used; the connection may be at the next stage then, or have ended. */
size_t arrive_take(struct connection *connection, const uint8_t *bytes, size_t size);
/* TLS is up: who is it? */
void arrive_secured(struct connection *connection);
/* The far end got its TLS wrong. */
void arrive_tls_failed(struct connection *connection);

/* ---- clients_stream.c ---- */

void stream_read(struct connection *connection);
void stream_flush(struct connection *connection);

/* ---- clients_frames.c ---- */

/* Bytes of TLS. */
void frames_take_tls(struct connection *connection, const uint8_t *bytes, size_t size);
/* Bytes from the socket, of a connection with layers. They are changed. */
void frames_take_raw(struct connection *connection, uint8_t *bytes, size_t size);
/* Of MQTT, or frames of it: returns how many were taken in this turn. They are changed. */
size_t frames_take(struct connection *connection, uint8_t *bytes, size_t size);
/* Appends bytes to clients->sending, encrypted if the connection is. */
bool frames_put(struct connection *connection, const void *bytes, size_t size);
/* Sends clients->sending, and keeps what the socket has no room for. False if the connection is dead or blocked. */
bool frames_send(struct connection *connection);
/* What is in clients->sending was for a connection that is gone. */
void frames_discard(struct clients *clients);
/* All output of the broker, and the goodbye if it has ended; true if nothing is left to write. */
bool frames_flush(struct connection *connection);

/* ---- clients_share.c ---- */

void share_begin(struct connection *connection);
/* Bytes that may be given at once now; 0: its share of this turn is used up. */
size_t share_part(const struct connection *connection);
void share_give(struct connection *connection, const uint8_t *bytes, size_t size);
/* MQTT of a plain connection; returns how much was given. */
size_t share_give_all(struct connection *connection, const uint8_t *bytes, size_t size);
/* Keeps the bytes; share_check_pause() follows. */
void share_keep(struct connection *connection, const uint8_t *bytes, size_t size);
/* After input was given: it may have to wait with what is kept, or the broker may want no more. */
void share_check_pause(struct connection *connection);
/* The connection has something to read: now, or in a later turn if it is in its TLS handshake and those have had their
 * share of this one. */
void share_read(struct connection *connection);
/* Goes on with those that wait, the longest waiting first, for a bounded time: handshakes, and then input. */
void share_resume(struct clients *clients);
/* It is queued no more, if it was. */
void share_leave_queue(struct connection *connection);

#endif
