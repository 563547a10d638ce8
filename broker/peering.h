/* The broker's door for peers: who publishes and subscribes where, links, and what crosses them.
 *
 * The rules of broker.h hold. Byte layout and rules of frames: PROTOCOL.md.
 *
 * A peer is known by its 16-byte id. The caller (daemon/node.c) says which peers are alive and which
 * registry rows they own; the broker says which rows it wants in the registry itself, which peers it
 * wants to be linked with, and what to send. Every publication is numbered by (origin, epoch, sequence).
 * A peer that joined a filter sits in the same subscription tree as local sessions.
 */
#ifndef BROKER_PEERING_H
#define BROKER_PEERING_H

#include "broker/broker.h"

struct peer_id {
    uint8_t bytes[16];
};

enum row_kind { ROW_NEWPUB = 1, ROW_NEWSUB = 2 };

/* ---- what the registry and the membership say ---- */

/* A verified peer is alive under this epoch. A higher epoch than before means that it restarted and
 * forgot its joins; its rows are gone too, those of the new run follow. Calling it again with the same epoch is
 * harmless. */
void broker_peer_alive(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, const char *name,
                       uint64_t epoch);
/* The peer left, is down, or lost its right to be here: its rows, joins and links go. */
void broker_peer_gone(struct broker *broker, uint64_t now_ms, const struct peer_id *peer);
/* A row of an alive peer appeared or disappeared. A newpub row may be a cover wider than the topics;
 * so may a newsub row. Never called for a private topic's sake: a filter here is what its owner signed. */
void broker_peer_row(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, enum row_kind kind,
                     const char *filter, size_t filter_size, bool active);
/* The peer is known to hold our registry log up to this sequence (for the SUBACK barrier, G3). */
void broker_peer_knows(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, uint64_t sequence);

/* The next change the broker wants in its own registry rows; false when there is none. The filter is
 * borrowed until the next call of any function of the broker. */
struct broker_row_change {
    enum row_kind kind;
    bool active;
    const char *filter;
    size_t filter_size;
    uint64_t ticket; /* to be given to broker_row_sequenced */
};
bool broker_next_row(struct broker *broker, struct broker_row_change *change);
/* The row of that ticket is in the registry log under this sequence (0: it could not be put there); SUBACKs that depend
 * on it wait for the peers to know it. */
void broker_row_sequenced(struct broker *broker, uint64_t now_ms, uint64_t ticket, uint64_t sequence);

/* What a peer asked for because of a row of ours, and nobody here wanted (an invite to this topic, ROW_NEWSUB) or had
 * (a join of this filter, ROW_NEWPUB); false when there is none. The name is borrowed until the next call of any
 * function of the broker. Where many are, some are left out. */
struct broker_unwanted {
    enum row_kind kind;
    const char *name;
    size_t size;
};
bool broker_next_unwanted(struct broker *broker, struct broker_unwanted *unwanted);
/* How many publications came from peers, or filters were joined here, that were wanted, since the broker began. */
uint64_t broker_wanted(const struct broker *broker, enum row_kind kind);

/* This broker's own epoch was raised (gossip found that others remember a later run): its links begin anew under it,
 * since a peer that knows the new epoch refuses a hello with the old one. A lower one than the present changes nothing.
 */
void broker_set_epoch(struct broker *broker, uint64_t now_ms, uint64_t epoch);

/* Another policy than that of broker_options, or than the one before, is in force; NULL: everything may pass. Borrowed
 * until another is set; the one before may be freed now. What may no longer cross is dropped where it waits, and where
 * exports change the link begins anew. What a peer has already stays there. False if it says the same. */
bool broker_set_policy(struct broker *broker, uint64_t now_ms, const struct policy *policy);

/* ---- links ---- */

/* The next peer to dial; false when there is none. Answer with broker_link_open(..., dialled = true) at once
 * if a dial is started, or broker_dial_failed(). Back-off with jitter (100 ms to 10 s) is the broker's. */
bool broker_next_dial(struct broker *broker, uint64_t now_ms, struct peer_id *peer);
void broker_dial_failed(struct broker *broker, uint64_t now_ms, const struct peer_id *peer);

/* A transport is under way (dialled: to the peer named, or with NULL to whoever is at an address that gossip wants
 * dialled) or has arrived (accepted: peer is NULL until its hello). Returns 0 when too many. */
broker_handle broker_link_open(struct broker *broker, uint64_t now_ms, bool dialled, const struct peer_id *peer);
/* The TLS handshake is done; key_thumbprint is the SHA-256 RFC 7638 thumbprint of the far end's key. Now the hello goes
 * out (both sides send one). For an accepted link both calls come together. */
void broker_link_ready(struct broker *broker, uint64_t now_ms, broker_handle link, const uint8_t key_thumbprint[32]);
/* A piece of a WebSocket message; final marks its last piece. One message is one frame. */
void broker_link_input(struct broker *broker, uint64_t now_ms, broker_handle link, const uint8_t *bytes, size_t size,
                       bool final);
void broker_link_closed(struct broker *broker, uint64_t now_ms, broker_handle link);

/* The next link that has a frame to send or is to be closed; false when there is none. */
bool broker_next_link(struct broker *broker, broker_handle *link);
/* The oldest whole frame to send; false when there is none. It stays where it is until broker_link_written(). */
bool broker_link_output(struct broker *broker, uint64_t now_ms, broker_handle link, struct broker_span *frame);
void broker_link_written(struct broker *broker, uint64_t now_ms, broker_handle link);
/* True once it is known whose it is: of a dialled one always, of another by its hello. */
bool broker_link_has_peer(const struct broker *broker, broker_handle link);
/* True once the broker is done with the link: send what is left, close it, forget it. */
bool broker_link_ended(const struct broker *broker, broker_handle link);

/* ---- gossip over links ---- */

/* Puts a packet of gossip in line for the peer; of many that wait the oldest are dropped. False if no link is up. */
bool broker_carry(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, const uint8_t *bytes,
                  size_t size);
/* Gossip wants a link to this peer for so long from now: it is dialled if the peer is alive, and not closed as idle. */
void broker_peer_keep(struct broker *broker, uint64_t now_ms, const struct peer_id *peer, uint32_t for_ms);

enum broker_carried_kind {
    CARRIED_UP,    /* a link with the peer is up, its token was good */
    CARRIED_DOWN,  /* and no more */
    CARRIED_FOUND, /* peer is who answered the dial of this link to an address, as the key shows; perhaps ourselves */
    CARRIED_PACKET /* came over the link with the peer */
};
struct broker_carried {
    enum broker_carried_kind kind;
    struct peer_id peer;
    broker_handle link;
    const uint8_t *bytes; /* good until the next call of any function of the broker */
    size_t size;
};
/* The next thing that gossip should know; false when there is none. */
bool broker_next_carried(struct broker *broker, struct broker_carried *carried);

/* A question the hello raises; pure, answered at once. */
struct peer_answer {
    bool allowed;
    struct peer_id id;
    char name[64];
    uint64_t valid_for_ms; /* until the token expires */
    char reason[160];      /* when not allowed: what is wrong and what to do */
};
struct peer_questions {
    void *context;
    /* Is the holder of this key, who shows this token, a broker of our federation? */
    void (*who_is)(void *context, const uint8_t key_thumbprint[32], const uint8_t *token, size_t token_size,
                   struct peer_answer *answer);
};
/* The token this broker shows in its hello; copied. Without it no link is made. May be called again to renew. */
int broker_set_identity(struct broker *broker, const uint8_t *token, size_t token_size,
                        const struct peer_questions *questions);

/* ---- listings ---- */

enum link_state { LINK_DIALLING, LINK_HANDSHAKE, LINK_UP, LINK_CLOSING };

/* Limits at which a publication for a peer is dropped. */
enum link_at {
    LINK_AT_QUEUE_BYTES,    /* the outbox is full */
    LINK_AT_QUEUES_BYTES,   /* all of them together are */
    LINK_AT_QUEUE_AGE,      /* it waited for too long for a peer that is away */
    LINK_AT_REPLAY_WINDOW,  /* the peer, whose registry row asked for it, has not joined in time */
    LINK_AT_REPLAY_BYTES,   /* too much waits for such joins, */
    LINK_AT_REPLAY_INVITES, /* or on too many topics */
    LINK_AT_FRAME_SIZE,     /* the peer takes no frame that large */
    LINK_AT_MEMORY,         /* no memory to keep it until it is sent */
    LINK_AT_COUNT
};
/* The limit's name as in struct broker_limits, or one of its kind where it has no setting here. */
const char *link_limit_name(enum link_at limit);

/* Why a publication for a peer is not wanted any more; no limit did this. */
enum given_up {
    GIVEN_UP_EXPIRED,    /* its expiry interval was over */
    GIVEN_UP_RESTARTED,  /* the peer began anew: QoS 0 that may have come before, what nobody there asks for any more */
    GIVEN_UP_POLICY,     /* it waited while what may leave was changed */
    GIVEN_UP_AWAY,       /* the peer is away, and at QoS 0 nothing waits for it */
    GIVEN_UP_REASSIGNED, /* another member of its group gets it, as the peer was gone or slow to come */
    GIVEN_UP_COUNT
};
const char *given_up_name(enum given_up why);

/* Of two brokers that run all the time, once nothing waits for the one that receives, and if nothing waited longer than
 * link_queue_age_h:
 *
 *   publications_sent + sent_as_nil = publications_received + received_as_nil + refused + lost
 *
 * What is cut off on its way comes again: sent_again here, and repeated there if it had come. */
struct link_info {
    struct peer_id peer;
    char name[64];
    enum link_state state;
    bool dialled;
    uint64_t up_since_ms;
    uint32_t joined_here, joined_there; /* filters this peer joined at us, and we at it */
    uint64_t frames_sent, frames_received, bytes_sent, bytes_received;
    uint64_t invites_sent, invites_received;
    uint64_t publications_sent;     /* for the first time */
    uint64_t sent_as_nil;           /* numbers whose publication was dropped or given up before */
    uint64_t sent_again;            /* on another link, with or without publication */
    uint64_t publications_received; /* and taken */
    uint64_t received_as_nil;       /* the peer had dropped them or given them up */
    uint64_t refused;               /* not to be taken, as the policy says, or retained in the far future */
    uint64_t repeated;              /* received again, and not taken */
    uint64_t lost;                  /* numbers that were passed over */
    uint64_t reordered;             /* of these, came later, and were not taken */
    uint64_t dropped_at[LINK_AT_COUNT];
    uint64_t dropped; /* the sum of these */
    uint64_t given_up[GIVEN_UP_COUNT];
    uint64_t subacks_unconfirmed; /* subscriptions here that it had not confirmed when their SUBACK was due */
    uint64_t outbox_messages, outbox_bytes;
    uint64_t gossip_sent, gossip_received, gossip_dropped; /* packets; dropped, as the link was slow */
    bool kept;                                             /* gossip wants it */
};
/* Fills info for the link at position index (0, 1, ...) in a stable order; false past the end. One entry per peer with
 * a link, or with counters from an earlier one (state then LINK_CLOSING if none is open). */
bool broker_link_at(const struct broker *broker, size_t index, struct link_info *info);

struct peering_counters {
    uint64_t links_up, links_opened, links_refused, dials_failed, frames_malformed;
    uint64_t barriers_waited, barriers_timed_out, replayed, replay_expired;
};
void broker_read_peering_counters(const struct broker *broker, struct peering_counters *out);

#endif
