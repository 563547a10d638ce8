/* Publications held for peers whose registry rows ask for them and whose joins are still to come (G4 in README.md). */
#ifndef BROKER_REPLAY_H
#define BROKER_REPLAY_H

#include "broker/peers.h"

/* Keeps the message for the peer and invites it, once per topic until it answers. others: not only for groups there.
 * False if the peer has declined the topic. */
bool replay_hold(struct federation *federation, struct peer *peer, struct message *message, bool others);
/* Puts what matches the filter into the outbox, in order, once for all filters; of a group ("$share/NAME/FILTER") what
 * none of its members anywhere was given. */
enum outbox_result replay_joined(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* Drops what the peer's rules do not let out. */
void replay_end_unexported(struct peer *peer);
/* A message that is held and matches: a snapshot would repeat it. */
bool replay_holds(const struct peer *peer, const struct message *message);
/* The peer was invited to the topic and does not want to be for now. */
bool replay_is_declined(const struct peer *peer, const char *topic, size_t size);
void replay_declined(struct federation *federation, struct peer *peer, const char *topic, size_t size, uint64_t ttl_ms);
/* The peer's interest changed: what it declined may be asked again. */
void replay_reconsider(struct federation *federation, struct peer *peer);
/* Invites without an answer go out on a new link. */
void replay_sync(struct federation *federation, struct peer *peer);
/* Drops what is over and sets replay_ms anew. */
void replay_expire(struct federation *federation, struct peer *peer);
void replay_clear(struct federation *federation, struct peer *peer);

#endif
