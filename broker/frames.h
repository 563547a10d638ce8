/* The frames of a link: bytes from structures, structures from bytes. Layout: PROTOCOL.md.
 *
 * The only file of broker/ that knows msgpack. A frame is checked from its first byte to its last before any of it is
 * believed; what was read are views into the bytes given, good as long as these are.
 */
#ifndef BROKER_FRAMES_H
#define BROKER_FRAMES_H

#include "broker/aims.h"
#include "broker/message.h"

enum { LINK_PROTOCOL_MIN = 1, LINK_PROTOCOL_MAX = 1 };

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_BYE = 2,
    FRAME_JOIN = 3,
    FRAME_LEAVE = 4,
    FRAME_JOINED = 5,
    FRAME_SYNCED = 6,
    FRAME_PUBLISH = 7,
    FRAME_ACK = 8,
    FRAME_INVITE = 9,
    FRAME_DECLINE = 10,
    FRAME_PING = 11,
    FRAME_PONG = 12,
    FRAME_GOSSIP = 13,
    FRAME_KEEP = 14,
    FRAME_WHY = 15,
    FRAME_BECAUSE = 16,
    FRAME_HOLDS = 17,
    FRAME_COMPARE = 18,
    FRAME_COMPARED = 19,
    FRAME_MEMBERS = 20
};

enum bye_code {
    BYE_CLOSING = 1,   /* in order: nothing left to do */
    BYE_DUPLICATE = 2, /* another link of this pair goes on */
    BYE_REFUSED = 3,   /* the token */
    BYE_PROTOCOL = 4,  /* no common version */
    BYE_MALFORMED = 5, /* a frame that is none, or out of its order */
    BYE_SILENT = 6,
    BYE_EXPIRED = 7,
    BYE_OVERLOAD = 8,   /* short of memory or over a limit; come again later */
    BYE_GONE = 9,       /* the membership here says that you are down or left */
    BYE_EPOCH = 10,     /* a later run of yours is known */
    BYE_FEDERATION = 11 /* you are of another federation */
};

enum joined_status { JOINED_YES = 0, JOINED_PRIVATE = 1, JOINED_FULL = 2 };

/* For how long a join is kept while who said it is away. */
enum keep_level {
    KEEP_NOT = 0,    /* it stands for subscriptions at QoS 0 */
    KEEP_RUN = 1,    /* for as long as its broker runs: some are at QoS 1 or 2, of sessions that end with it */
    KEEP_LASTING = 2 /* beyond that: of sessions that outlive it */
};

struct hello {
    uint64_t protocol_min, protocol_max;
    uint8_t id[16];
    const char *name;
    size_t name_size;
    const char *federation;
    size_t federation_size;
    uint64_t epoch;
    const uint8_t *token;
    size_t token_size;
    uint64_t stream;     /* names the numbering below */
    uint64_t first;      /* sequence of the first publication that can still come */
    uint64_t seen_epoch; /* of the receiver's numbering: whose publications were seen, 0 if none */
    uint64_t seen_stream;
    uint64_t expected;       /* the next sequence wanted of it */
    uint64_t credit;         /* bytes granted; 0 is without limit */
    uint64_t frame_size_max; /* bytes of the largest frame taken */
};

/* One publication of a publish frame. */
struct publication {
    bool skipped; /* a number used up without content: expired, or given up */
    bool snapshot;
    bool retain;
    uint8_t qos;
    const char *topic;
    size_t topic_size;
    const uint8_t *payload;
    size_t payload_size;
    const uint8_t *properties;
    size_t properties_size;
    uint64_t expiry_s; /* of 32 bits, or MESSAGE_NO_EXPIRY */
    uint64_t stamp_wall_ms;
    uint32_t stamp_count;
    bool groups_only, returned, again; /* enum in aims.h */
    uint32_t group_count;              /* of shared subscriptions, a member of each of which is to get it */
    const uint8_t *groups;
    size_t groups_size;
};

/* Who is in a group of a shared subscription at the sender. */
struct frame_members {
    const char *group;
    size_t size;
    uint32_t connected, away;
};

/* Would a publication on this topic at one broker reach clients at the other? */
struct inquiry {
    uint64_t number; /* given back with the answer */
    const char *topic;
    size_t topic_size;
    uint8_t from[16], to[16]; /* ids of the brokers */
};

/* One item of an answer to it. */
struct inquiry_step {
    uint64_t stage;
    bool stops;
    const char *text;
    size_t size;
};

/* Bytes inside of a frame. */
struct frame_part {
    const uint8_t *bytes;
    size_t size;
};

/* What is held of retained messages is compared (digest.h); sizes are multiples of those there. */
struct frame_digests {
    uint32_t number;          /* of the comparison */
    uint64_t expected;        /* holds: the next sequence wanted when this was said */
    struct frame_part sums;   /* holds, compared */
    struct frame_part items;  /* holds, compare */
    struct frame_part nodes;  /* compare */
    struct frame_part wanted; /* compared: a bit for each item, the first is the highest of its byte */
};

struct frame {
    enum frame_type type;
    struct hello hello;
    struct inquiry inquiry; /* why; because: its number alone */
    uint64_t code;          /* bye; joined: status; keep: level */
    const char *reason;
    size_t reason_size;
    uint64_t sequence; /* publish: of the first; ack: the next expected */
    uint64_t ttl_ms;   /* decline */
    struct frame_digests digests;
    const uint8_t *items;
    size_t items_size;
    uint32_t item_count; /* join, leave, joined, invite, decline, keep: names; publish: publications; gossip:
                            packets; because: steps; members: groups */
};

enum frame_result {
    FRAME_OK = 0,
    FRAME_MALFORMED = -1,
    FRAME_UNKNOWN = 1 /* an array whose type is one of a later version; nothing else of it was looked at */
};

/* Checks the whole frame and fills what its type has. Names are checked for their size only (1 to 65,535 bytes). */
enum frame_result frame_read(const uint8_t *bytes, size_t size, struct frame *frame);
/* The next item of a frame that was read; false after the last. */
bool frame_next_name(struct frame *frame, const char **text, size_t *size);
bool frame_next_members(struct frame *frame, struct frame_members *members);
bool frame_next_publication(struct frame *frame, struct publication *publication);
/* The next of the groups it names; false after the last. */
bool publication_next_group(struct publication *publication, const char **text, size_t *size);
bool frame_next_packet(struct frame *frame, const uint8_t **bytes, size_t *size);
bool frame_next_step(struct frame *frame, struct inquiry_step *step);

/* A frame being written. Memory that is short is remembered in failed; ask once at the end. */
struct frame_out {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed;
    size_t count_at; /* where the number of items goes */
    uint32_t item_count;
};
void frame_out_deinit(struct frame_out *out);
/* Makes it empty; a large buffer is given back. */
void frame_out_clear(struct frame_out *out);

void frame_write_hello(struct frame_out *out, const struct hello *hello);
void frame_write_bye(struct frame_out *out, enum bye_code code, const char *reason);
void frame_write_ack(struct frame_out *out, uint64_t expected);
void frame_write_plain(struct frame_out *out, enum frame_type type); /* synced, ping, pong */
void frame_write_why(struct frame_out *out, const struct inquiry *inquiry);
/* holds, compare, compared */
void frame_write_digests(struct frame_out *out, enum frame_type type, const struct frame_digests *digests);

/* join, leave, joined (number: its status), invite, decline (number: its ttl_ms), keep (number: its level); because
 * (number: the inquiry's), whose items are steps */
void frame_begin_names(struct frame_out *out, enum frame_type type, uint64_t number);
void frame_add_name(struct frame_out *out, const char *text, size_t size);

void frame_add_step(struct frame_out *out, const struct inquiry_step *step);
void frame_begin_members(struct frame_out *out);
void frame_add_members(struct frame_out *out, const struct frame_members *members);

void frame_begin_publish(struct frame_out *out, uint64_t first);
/* aims: NULL if it is for who joined alone. */
void frame_add_publication(struct frame_out *out, const struct message *message, const struct aims *aims, bool snapshot,
                           uint64_t expiry_s);
void frame_add_skipped(struct frame_out *out);
/* Bytes a publication adds to a frame at most, its content apart. */
#define FRAME_PUBLICATION_OVERHEAD 64u
/* The same for groups of so many bytes, of which the shortest has 10, with a final zero. */
#define FRAME_GROUP_OVERHEAD(size) (((uint64_t)(size)*12) / 10 + 5)
/* Bytes of an empty publish frame at most. */
#define FRAME_PUBLISH_OVERHEAD 32u

void frame_begin_packets(struct frame_out *out);
void frame_add_packet(struct frame_out *out, const uint8_t *bytes, size_t size);

/* Ends a frame of items. */
void frame_end_items(struct frame_out *out);

#endif
