/* What must outlive a crash, as records: each says how the durable part of the broker's state changes.
 *
 * The broker writes records into its journal in the order of what happens; the daemon applies them to its store in that
 * order, many in one transaction, and says how far it is (broker_durable()). At the next start the store tells its
 * content as records of the same kinds to broker_restore(). Only sessions that outlive their connection are told of;
 * so everything here is durable, and what is not never waits for a disk.
 *
 * Numbers of sessions, messages and positions are never used twice in the life of a store. Times are wall-clock
 * milliseconds since 1970, as monotonic time does not outlive a run; 0 means never, or not now.
 */
#ifndef BROKER_RECORD_H
#define BROKER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum record_type {
    RECORD_RESET = 1,        /* all that was is void: the whole state follows */
    RECORD_SESSION,          /* session made or changed: number is its key */
    RECORD_SESSION_END,      /* session: gone with its subscriptions, queue and received ids */
    RECORD_SUBSCRIPTION,     /* session, filter (as subscribed, with $share): made or replaced */
    RECORD_SUBSCRIPTION_END, /* session, filter */
    RECORD_MESSAGE,          /* message: a publication that queues refer to */
    RECORD_MESSAGE_END,      /* message: nobody refers to it any more */
    RECORD_QUEUED,           /* session, position: a publication waits for or is on its way to the client */
    RECORD_SENT,             /* session, position: got its packet id */
    RECORD_RELEASED,         /* session, position: PUBREC has come (QoS 2); its message is no longer needed */
    RECORD_DONE,             /* session, position: acknowledged, expired or dropped */
    RECORD_RECEIVED,         /* session, packet_id: a QoS 2 publication of the client was routed */
    RECORD_RECEIVED_END,     /* session, packet_id: PUBREL has come */
    RECORD_RETAINED,         /* the retained message of publication.topic, or the tombstone of one (empty payload) */
    RECORD_RETAINED_END,     /* publication.topic: neither message nor tombstone */
    RECORD_TAKEN,            /* peer: how far its publications were taken, with what came of them before this record */
    RECORD_TAKEN_END,        /* peer: nobody knows any more */
    RECORD_PEER,             /* peer: what is kept for it, and the numbering of its outbox, outlive this run */
    RECORD_PEER_END,         /* peer: that with its joins and its outbox */
    RECORD_JOIN,             /* peer, filter: a join that is kept, new or at another level */
    RECORD_JOIN_END,         /* peer, filter */
    RECORD_OUTBOX,           /* peer, sequence: a publication waits for the peer, or for its acknowledgement */
    RECORD_OUTBOX_END,       /* peer: those from sequence to below - 1 are acknowledged or given up */
};
#define RECORD_TYPE_MAX RECORD_OUTBOX_END

struct record_text { /* borrowed bytes, no final zero; NULL only with size 0 */
    const void *bytes;
    size_t size;
};

struct record_publication {
    struct record_text topic, payload, properties; /* properties as in struct message */
    uint8_t qos;
    bool retain;
    uint64_t expires_wall_ms;
    /* Of those with the retain flag; else zero. */
    uint64_t stamp_wall_ms;
    uint32_t stamp_count;
    uint8_t stamp_origin[16]; /* of what came over a link for a group, the broker it came from, too */
};

/* One record. Only the fields that belong to its type count; the others are zero. */
struct record {
    enum record_type type;
    uint64_t session, message, position;

    /* RECORD_SESSION */
    struct record_text client_id;
    struct record_text user_name; /* whose certificate it takes to resume it; size 0: nobody's */
    uint32_t expiry_s;            /* session expiry interval, UINT32_MAX: never; at least 1 */
    uint64_t ends_wall_ms;        /* without a connection: when it expires. 0: connected, or never */
    bool has_will;
    struct record_publication will; /* expires_wall_ms is not used */
    uint32_t will_delay_s;
    uint64_t will_expiry_s;    /* of 32 bits, or MESSAGE_NO_EXPIRY (message.h) */
    uint64_t will_due_wall_ms; /* without a connection. 0: connected */

    /* RECORD_SUBSCRIPTION, RECORD_SUBSCRIPTION_END */
    struct record_text filter; /* of RECORD_JOIN and its end too */
    uint8_t options;           /* the options byte of SUBSCRIBE */
    uint32_t identifier;       /* 0: none */

    /* RECORD_MESSAGE and RECORD_RETAINED; of RECORD_RETAINED_END the topic alone */
    struct record_publication publication;
    uint64_t publisher; /* session that published; 0: a peer, or none that outlives (no local) */

    /* RECORD_QUEUED (with message), RECORD_SENT; packet_id also of RECORD_RECEIVED and its end */
    uint8_t qos;
    bool retain, released;          /* released: PUBREC has come, message is 0 */
    uint16_t packet_id;             /* 0: waits in the queue, and was never sent */
    struct record_text identifiers; /* subscription identifiers: uint32_t each, native order, any alignment */

    uint8_t peer[16]; /* of RECORD_TAKEN and all behind it in the list of types */

    /* RECORD_TAKEN: as in the peer's hello, and the next sequence wanted (PROTOCOL.md). RECORD_PEER: its epoch, 0 if it
     * is not known; the stream of our hellos */
    uint64_t peer_epoch, stream, expected;

    /* RECORD_PEER, with ends_wall_ms: without a link, when what is kept for it ends. 0: linked */
    struct record_text peer_name;
    uint64_t reserved; /* sequences below may have been sent */

    /* RECORD_JOIN */
    uint8_t level; /* enum keep_level */

    /* RECORD_OUTBOX, with message, and its end */
    uint64_t sequence, below;
    struct record_text aims; /* for whom there (aims.h); size 0: for those who joined */
};

/* ---- bytes: how records travel to the storage thread; for this process only ---- */

struct record_buffer {
    uint8_t *bytes; /* malloc */
    size_t size, capacity;
};
/* Appends; -1 when memory is short, or a record is larger than 4 GiB, and nothing changed. */
int record_write(struct record_buffer *buffer, const struct record *record);
/* How many bytes the record at bytes takes by its head, and its type; 0 if they are not the whole of one. Its fields
 * may be unsound. */
size_t record_peek(const uint8_t *bytes, size_t size, enum record_type *type);
/* The record at bytes, its views borrowed from there; returns how many bytes it takes, 0 if they are not a whole and
 * sound record; *out is undefined then. */
size_t record_read(const uint8_t *bytes, size_t size, struct record *out);

#endif
