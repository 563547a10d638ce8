/* The joins of peers here: a peer is a subscriber in the broker's tree like a session. */
#ifndef BROKER_GROUP_H
#define BROKER_GROUP_H

#include "broker/peers.h"

enum group_result { GROUP_OK = 0, GROUP_NO_MEMORY = -1, GROUP_OVERLOAD = -2 };
/* Puts the snapshot and what was held for this filter into the outbox, then the peer into the tree. A repeated join
 * only confirms. The negative results mean that the link should be given up. */
enum group_result group_join(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* What to answer to a join after group_join(). */
enum joined_status group_status(const struct federation *federation, const struct peer *peer, const char *filter,
                                size_t size);
/* The join is kept while the peer is away, or no longer. One that is not there stays so. */
void group_keep(struct peer *peer, const char *filter, size_t size, bool kept);
void group_leave(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* A new link: all joins have to be said again, then group_synced() drops those that were not; those that were kept only
 * when group_end_stale() is called, as a peer that was away may first have to hear what is published here. */
void group_stale(struct federation *federation, struct peer *peer);
void group_synced(struct federation *federation, struct peer *peer);
void group_end_stale(struct federation *federation, struct peer *peer);
/* Some join of the peer matches the topic. */
bool group_matches(const struct federation *federation, const struct peer *peer, const char *topic, size_t size);
/* The peer is away: joins that are not kept end. */
void group_lapse(struct federation *federation, struct peer *peer);
void group_clear(struct federation *federation, struct peer *peer);

#endif
