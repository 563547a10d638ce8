/* What goes to one peer: publications in order, numbered, kept until the peer has acknowledged them.
 *
 * Numbers are contiguous, so the queue is a ring whose index is the number. What is dropped at the door gets no number;
 * what is given up later keeps its place without content, so that the receiver can tell "given up" from "lost".
 */
#ifndef BROKER_OUTBOX_H
#define BROKER_OUTBOX_H

#include "broker/aims.h"
#include "broker/message.h"

struct outbox_entry {
    struct message *message; /* NULL: given up */
    struct aims *aims;       /* its own; NULL: for those who joined */
    uint64_t record;         /* is not sent before this one is on the disk; 0: waits for none */
    bool snapshot;
    bool stored; /* the journal has it: on_done says when it is of no use any more */
};

/* Those from sequence first to below - 1 that are stored are acknowledged or given up; they are still there. */
typedef void outbox_on_done(void *context, uint64_t first, uint64_t below);

struct outbox {
    struct outbox_entry *ring;
    size_t capacity;         /* a power of two, or 0 */
    uint64_t base;           /* sequence of the oldest entry kept; everything below is acknowledged */
    uint64_t next;           /* of the next to be sent; base to next - 1 are on their way */
    uint64_t highest;        /* what next was at most; it is less after a rewind */
    uint64_t end;            /* of the next to be put */
    uint64_t messages;       /* live publications, snapshots too: those that are not given up */
    uint64_t bytes;          /* of them, */
    uint64_t snapshot_bytes; /* and of snapshots */
    uint64_t aimed;          /* publications with aims */
    uint64_t *sum;           /* of bytes of all outboxes of a broker */
    outbox_on_done *on_done;
    void *context;
};

/* The first sequence is 1. */
void outbox_init(struct outbox *outbox, uint64_t *sum, outbox_on_done *on_done, void *context);
void outbox_deinit(struct outbox *outbox);

enum outbox_result { OUTBOX_OK = 0, OUTBOX_FULL = 1, OUTBOX_NO_MEMORY = -1 };

/* Takes a reference of its own. Live publications of QoS 0 that are not retained are refused (FULL) above bytes_max,
 * all others above twice that; snapshots are never refused here: look at snapshot_bytes. */
enum outbox_result outbox_put(struct outbox *outbox, struct message *message, bool snapshot, uint64_t bytes_max);

/* For whom the last one put is, owned by the outbox from now on. */
void outbox_aim(struct outbox *outbox, struct aims *aims);
/* The one of this sequence is for those who joined alone. */
void outbox_unaim(struct outbox *outbox, uint64_t sequence);

/* The next entry to send, or NULL. outbox_sent() moves on. */
struct outbox_entry *outbox_peek(const struct outbox *outbox);
void outbox_sent(struct outbox *outbox);
/* The peer has everything below expected. False if that is more than was ever sent: then nothing changes. */
bool outbox_acknowledge(struct outbox *outbox, uint64_t expected);
/* The one of this sequence, from base to end - 1. */
struct outbox_entry *outbox_entry(const struct outbox *outbox, uint64_t sequence);
/* Puts what an earlier run kept into its place, behind all that is there; the places between are empty. FULL if they
 * are too many. */
enum outbox_result outbox_put_back(struct outbox *outbox, struct message *message, uint64_t sequence);
/* The next number is this one or higher. All that is below may have been sent. */
int outbox_skip_to(struct outbox *outbox, uint64_t sequence);
/* Empties a place without changing the numbers. */
void outbox_give_up(struct outbox *outbox, uint64_t sequence);
/* Everything unacknowledged is to be sent again. */
void outbox_rewind(struct outbox *outbox);
/* The peer has forgotten what it saw: what was sent at QoS 0 may have arrived there and is given up ("at most once").
 * Returns how many. */
uint64_t outbox_forget_sent_qos0(struct outbox *outbox);
/* What keeps() does not want is given up; returns how many publications, without snapshots. */
typedef bool outbox_keeps(void *context, const struct outbox_entry *entry);
uint64_t outbox_prune(struct outbox *outbox, outbox_keeps *keeps, void *context);
/* Drops everything; returns how many had content. The numbering goes on. */
uint64_t outbox_clear(struct outbox *outbox);

static inline uint64_t outbox_count(const struct outbox *outbox) {
    return outbox->end - outbox->base;
}

#endif
