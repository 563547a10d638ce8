/* Inside broker/: what the client side (on_*.c, session.c) tells the peer side (peering.c, group.c, link.c), and back.
 * Not a door: only files of broker/ include it.
 */
#ifndef BROKER_FEDERATION_H
#define BROKER_FEDERATION_H

#include "broker/broker.h"
#include "broker/frames.h"
#include "broker/message.h"
#include "broker/peering.h"
#include "broker/retained.h"
#include "broker/subs.h"
#include "broker/unconfirmed.h"

struct record;     /* record.h */
struct federation; /* all state of the peer side; owned by struct broker */

/* The peer side works on the broker's own tree and store, borrowed. */
struct federation_options {
    const struct broker_options *options; /* limits already filled with defaults; copied as needed */
    struct subs *subs;
    struct retained *retained;
    struct broker *broker; /* for the functions below that it implements */
};
struct federation *federation_new(const struct federation_options *options, uint64_t now_ms);
void federation_free(struct federation *federation);
uint64_t federation_deadline_ms(const struct federation *federation);
void federation_tick(struct federation *federation, uint64_t now_ms);

/* What the peer side remembers of a topic, for whoever publishes to it again. Zero at first. */
struct topic_memo {
    uint64_t edition; /* of the peer side, when nobody had to be told of the topic */
    struct advert *advert;
};

/* For the journal that begins anew. before: the number of the last message that is not in it. */
void federation_dump(struct federation *federation, uint64_t before);
/* Memory is short: what waits for others that are away gives way, a part of it at each call. */
void federation_relieve(struct federation *federation);
/* The broker ends in order. */
void federation_stop(struct federation *federation);
/* The store is further than before, or fails. */
void federation_durable(struct federation *federation, uint64_t now_ms);

/* ---- client side -> peer side ---- */

/* May this subscriber of kind SUBSCRIBER_PEER get the topic? So the policy says; subs_generation() changes with it. */
bool federation_sends(const struct subscriber *peer, const char *topic, size_t size);

/* A subscriber of kind SUBSCRIBER_PEER was hit by a publication of a local client; called at most once per peer and
 * publication, whatever the number of its filters, and only if federation_sends(). Puts it into the peer's outbox.
 * kept: some of these filters are kept there (group.h).
 */
void federation_hit(struct federation *federation, uint64_t now_ms, struct subscriber *peer, struct message *message,
                    bool kept);
/* A local client's publication (also a will) was matched, after all its federation_hit calls: adverts its topic,
 * invites peers whose interest matches and that were not hit, and keeps it for them (G4). memo is zero or what an
 * earlier call for the same topic left there: it makes the call cheap as long as nothing changes. */
void federation_published(struct federation *federation, uint64_t now_ms, struct message *message,
                          struct topic_memo *memo);

/* This retained message (or tombstone) of a local client is one of an earlier run: its topic is adverted as if it had
 * been published now, so that others still find it (G6). -1 when memory is short. */
int federation_retains(struct federation *federation, uint64_t now_ms, const struct message *message);

/* A local session holds one more, or one less, subscription to this filter, with "$share/NAME/" if it is a shared one.
 * Counted per filter: the first makes an interest and joins, the last starts the linger. federation_subscribed returns
 * -1 when memory is short: other brokers do not know of it then. */
int federation_subscribed(struct federation *federation, uint64_t now_ms, const char *filter, size_t size);
void federation_unsubscribed(struct federation *federation, uint64_t now_ms, const char *filter, size_t size);

/* One of these subscriptions is to be kept for longer or less long than before while this broker is away: what others
 * publish waits there. */
void federation_keep(struct federation *federation, uint64_t now_ms, const char *filter, size_t size,
                     enum keep_level before, enum keep_level level);

/* The barrier of one SUBSCRIBE packet (G3): call after federation_subscribed for all its filters. Returns 0 if nothing
 * is missing, else a number that federation_next_released() names once, when all has come in or subscribe_barrier_ms
 * are over. */
uint64_t federation_barrier(struct federation *federation, uint64_t now_ms, const char *const *filters,
                            const size_t *sizes, size_t count);
/* unconfirmed: the caller's, to free(); NULL unless it timed out, or if memory is short. */
bool federation_next_released(struct federation *federation, uint64_t *barrier, bool *timed_out,
                              struct unconfirmed **unconfirmed);

/* Members of a group of a shared subscription. */
struct share_members {
    uint32_t connected, away; /* sessions with and without a connection */
    bool kept;                /* at a peer: what is published while it is away waits for them */
};
/* Other members than before are here: brokers that are joined for this group ("$share/NAME/FILTER") are told. */
void federation_members(struct federation *federation, const char *group, size_t size);

/* What is being published was given to this group. */
void federation_gave(struct federation *federation, const char *group, size_t size);
enum peer_reach { PEER_LINKED, PEER_EXPECTED, PEER_AWAY };
enum peer_reach federation_reach(const struct subscriber *peer);
/* A member there is to get it. False if the peer may not have it, or cannot take it. It is put into the outbox with
 * federation_hit(), or else with federation_settle() of the same message. */
bool federation_offer(struct federation *federation, struct subscriber *peer, struct message *message,
                      const char *group, size_t size, bool kept, bool again);
void federation_settle(struct federation *federation, uint64_t now_ms, struct message *message);
/* It came from a peer for a member here, and nobody is in the group any more: back to that peer, or if that is away, to
 * whoever is known here. False if neither can be. */
bool federation_return(struct federation *federation, uint64_t now_ms, struct message *message, const char *group,
                       size_t size);

/* ---- peer side -> client side (implemented by route.c, notes.c, sys.c, clock.c and durable.c) ---- */

enum peer_taken {
    PEER_TAKEN = 0, /* or dropped and counted, as that of a client would have been */
    PEER_TAKEN_NO_MEMORY = -1,
    PEER_TAKEN_LATER = 1 /* when broker_takes_from_peers() */
};
/* A publication that came over a link, complete and new: goes to sessions only and, if retain is set, into the store by
 * its stamp; never to a peer. sent: for whom
 * here it is: who joined its topic, a member of each group it names, or both; NULL: who joined. Nothing happened if it
 * was not taken. */
enum peer_taken broker_deliver_from_peer(struct broker *broker, uint64_t now_ms, struct message *message,
                                         const struct publication *sent);
/* One of our own that comes back from a peer: for a member elsewhere of each of these groups. */
enum peer_taken broker_deliver_again(struct broker *broker, uint64_t now_ms, struct message *message,
                                     const struct subscriber *from, const struct publication *sent);

/* Members of a group at a peer, by share.h: so many from now on; none any more. The group is a valid one. -1 when
 * memory is short, and nothing changed. */
int broker_share_set(struct broker *broker, const char *group, size_t size, struct subscriber *peer,
                     const struct share_members *members);
void broker_share_unset(struct broker *broker, const char *group, size_t size, struct subscriber *peer);
/* Those here. */
struct share_members broker_share_members(const struct broker *broker, const char *group, size_t size);
/* What waits for a member at a peer goes to another, here or, with federation_settle(), at a peer. False if there is
 * none that can take it. */
bool broker_share_again(struct broker *broker, uint64_t now_ms, const char *group, size_t size, bool connected_only,
                        struct message *message);
/* Part of the retained snapshot that precedes a "joined": into the store by its stamp; sent to sessions only if it is
 * newer than what the store had (as a live publication that they missed). */
enum peer_taken broker_merge_retained(struct broker *broker, uint64_t now_ms, struct message *message);
/* False while memory is short or the store far behind: what lasts is not taken from peers for now. */
bool broker_takes_from_peers(const struct broker *broker);
/* The journal: the last record made; is it on the disk, or does nobody wait for it as the store fails? */
uint64_t broker_last_record(const struct broker *broker);
bool broker_has_record(const struct broker *broker, uint64_t record);
bool broker_has_journal(const struct broker *broker);
bool broker_store_fails(const struct broker *broker);
void broker_record(struct broker *broker, const struct record *record);
/* A queue that lasts holds the message from now on; and no longer. It is in the journal, under message.number, as long
 * as one does. */
void broker_hold_message(struct broker *broker, uint64_t now_ms, struct message *message);
void broker_let_go_message(struct broker *broker, struct message *message);
/* It is in the journal that begins anew: written if its number is not above before. */
void broker_dump_message(struct broker *broker, uint64_t now_ms, struct message *message, uint64_t before);
/* Wall-clock time of a time, for the journal, and back: what is over then is so at now_ms. Never is UINT64_MAX here and
 * 0 there. */
uint64_t clock_wall_of(const struct broker *broker, uint64_t now_ms, uint64_t at_ms);
uint64_t clock_time_of(const struct broker *broker, uint64_t now_ms, uint64_t wall_ms);
/* Adds a line for the log, like snprintf. */
void broker_note_add(struct broker *broker, enum broker_note_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Retains a text under a topic of $SYS, for clients here. */
void broker_tell_sys(struct broker *broker, uint64_t now_ms, const char *topic, const char *text);
/* May a peer's stamp be one that a broker has made? */
bool broker_clock_believes(const struct broker *broker, uint64_t now_ms, uint64_t stamp_wall_ms);
/* The hybrid clock has seen this stamp. */
void broker_clock_seen(struct broker *broker, uint64_t now_ms, const struct stamp *stamp);

/* The struct federation of a broker, for the functions of peering.h (implemented by broker.c). */
struct federation *broker_federation(const struct broker *broker);

#endif
