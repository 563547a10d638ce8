/* Links: one transport to one peer. link.c keeps its state and takes bytes in, hello.c decides who
 * may come up, receive.c acts on the frames of a link that is up, sender.c makes the frames that go out.
 *
 * A link that ended stays in memory until it is closed or a few seconds have passed, so pointers to it are good for the
 * whole of a call into the broker. */
#ifndef BROKER_LINK_H
#define BROKER_LINK_H

#include "broker/peers.h"

/* A frame that waits to be sent, not before publication number after has gone out. */
struct control {
    struct control *prev, *next;
    uint64_t after;
    size_t size;
    uint8_t bytes[];
};

struct link {
    broker_handle handle;
    struct link *prev, *next;
    struct link *ready_prev, *ready_next;
    bool is_ready; /* in federation.ready */
    bool dialled;
    enum link_state state;
    bool tls_ready;
    struct peer *peer; /* dialled: from the start; accepted: from the hello */
    struct peer_id dialled_to;
    uint64_t peer_epoch; /* of the hello */
    uint8_t key_thumbprint[32];
    struct timer timer;   /* the earliest of the times below */
    uint64_t deadline_ms; /* of the present state; UINT64_MAX when up */
    uint64_t expires_ms;  /* the peer's token */
    uint64_t received_ms; /* the last frame */
    uint64_t useful_ms;   /* the last moment with business */
    uint64_t ack_ms;      /* an acknowledgement is due then; UINT64_MAX if none is */
    uint64_t ack_bytes;
    uint64_t acked; /* said on this link */
    bool ack_waits; /* more was taken, and will be said when it is on the disk */
    bool is_behind; /* a publication could not be taken, nor may those after it: they come again by the next link, */
    uint64_t behind_ms; /* once they can be taken; looked at then */
    uint64_t up_since_ms;
    char why[LINK_NEWS_WHY]; /* it ends, in the log's words */
    bool pinged;
    uint64_t frame_size_max; /* the peer's */
    uint8_t *parts;          /* of a frame that is not complete */
    size_t parts_size, parts_capacity;
    struct frame_out out; /* the frame given to the caller */
    bool out_given;
    struct frame_out scratch;
    struct control *controls;
    size_t control_bytes;
    struct carry_queue carry; /* packets of gossip that wait; carry.c */
    bool carry_had_turn;      /* the last frame was of these: others go first */
    struct stock *stocks;     /* what is held here of what was joined there; stock.c */
    uint32_t stock_count;
    bool compares;                             /* so the peer does, as was seen on this link */
    struct comparison *comparisons;            /* with what the peer holds, for its joins here; compare.c */
    uint32_t comparison_count, compare_frames; /* and frames on their way to it */
    struct told *told;                         /* what it holds of what its next join asks for */
};

/* ---- link.c ---- */

struct link *link_find(const struct federation *federation, broker_handle handle);
broker_handle link_open(struct federation *federation, bool dialled, struct peer *peer);
void link_ready(struct federation *federation, struct link *link, const uint8_t key_thumbprint[32]);
void link_input(struct federation *federation, struct link *link, const uint8_t *bytes, size_t size, bool final);
void link_closed(struct federation *federation, struct link *link);
/* Says bye with a reason and is done with it. */
void link_end(struct federation *federation, struct link *link, enum bye_code code, const char *reason);
void links_tick(struct federation *federation);
void links_deinit(struct federation *federation);
/* To be called when the link's times changed. */
void link_set_timer(struct federation *federation, struct link *link);

/* For the log: what to call the far end; a line about the link, which is why it ends if there is a text; a peer
 * refused; a frame that is none, or out of its order. */
const char *link_far_name(const struct link *link);
void link_note(struct federation *federation, enum broker_note_level level, struct link *link, const char *what,
               const char *text);
void link_refuse(struct federation *federation, struct link *link, enum bye_code code, const char *who,
                 const char *reason);
void link_malformed(struct federation *federation, struct link *link, const char *reason);

/* The level of a note that this far end refuses or is refused for this reason. */
enum broker_note_level link_refusal_level(struct federation *federation, const char *who, const char *reason);

/* ---- hello.c ---- */

void link_on_hello(struct federation *federation, struct link *link, const struct hello *hello);

/* ---- receive.c ---- */

/* A frame on a link that is up. */
void link_on_frame(struct federation *federation, struct link *link, struct frame *frame, size_t size);
void link_on_bye(struct federation *federation, struct link *link, const struct frame *frame);
/* What the peer joins is too much to be sent: ends the link. */
void link_no_room(struct federation *federation, struct link *link);

/* ---- sender.c ---- */

/* The store is further than before, or fails: what waited for it is acknowledged or sent. */
void senders_durable(struct federation *federation);
/* The link has something to send: names it to the caller. NULL is fine. */
void link_wake(struct federation *federation, struct link *link);
/* A frame of names: begin, frame_add_name() on what it returns, end. after: a publication sequence the frame must not
 * overtake, or 0. */
struct frame_out *sender_begin(struct link *link, enum frame_type type, uint64_t number);
void sender_end(struct federation *federation, struct link *link, uint64_t after);
void sender_name(struct federation *federation, struct link *link, enum frame_type type, uint64_t number,
                 const char *text, size_t size);
void sender_plain(struct federation *federation, struct link *link, enum frame_type type);
void sender_why(struct federation *federation, struct link *link, const struct inquiry *inquiry);
/* Another frame, which stays the caller's. */
void sender_frame(struct federation *federation, struct link *link, const struct frame_out *frame, uint64_t after);
void sender_hello(struct federation *federation, struct link *link);
void sender_bye(struct federation *federation, struct link *link, enum bye_code code, const char *reason);
void sender_drop_controls(struct link *link);
/* The next frame into link->out; false when there is none. */
bool sender_next(struct federation *federation, struct link *link);
/* A publication for the peer of QoS and limits as they are: queued, or dropped and counted. kept: it outlives a crash.
 */
bool sender_publish(struct federation *federation, struct peer *peer, struct message *message, struct aims *aims,
                    bool kept);

#endif
