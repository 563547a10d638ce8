/* The joins of peers here: a peer is a subscriber in the broker's tree like a session. */
#ifndef BROKER_GROUP_H
#define BROKER_GROUP_H

#include "broker/peers.h"
#include "broker/selection.h"

enum group_result { GROUP_OK = 0, GROUP_NO_MEMORY = -1, GROUP_OVERLOAD = -2 };
/* Puts the snapshot and what was held for this filter into the outbox, then the peer into the tree. A repeated join
 * only confirms. The negative results mean that the link should be given up. mark: of a comparison that will see to the
 * snapshot (compare.h), or 0. */
enum group_result group_join(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                             uint32_t mark);
/* Joining it now would mean a snapshot. */
bool group_lacks(const struct peer *peer, const char *filter, size_t size);
/* The joins with this mark; their texts are borrowed. */
void group_marked(const struct peer *peer, uint32_t mark, struct selection *joins);
/* A broker speaks for its own clients only; what came from another broker is that one's to tell. */
bool group_is_ours(const struct federation *federation, const struct message *message);
/* As part of a snapshot. */
enum group_result group_send_retained(struct federation *federation, struct peer *peer, struct message *message);
/* What to answer to a join after group_join(). */
enum joined_status group_status(const struct peer *peer, const char *filter, size_t size);
/* For how long the join is kept while the peer is away. One that is not there stays so. */
void group_keep(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                enum keep_level level);
/* Who is in a group there. One that is not joined stays so. */
void group_members(struct federation *federation, struct peer *peer, const struct frame_members *members);
void group_leave(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* A new link: all joins have to be said again, with their levels, then group_synced() drops those that were not; those
 * that were kept only when group_end_stale() is called, as a peer that was away may first have to hear what is
 * published here. */
void group_stale(struct federation *federation, struct peer *peer);
void group_synced(struct federation *federation, struct peer *peer);
void group_end_stale(struct federation *federation, struct peer *peer);
/* Joins end of which the peer's rules let nothing out. */
void group_end_unexported(struct federation *federation, struct peer *peer);
/* Some join of the peer matches the topic. */
bool group_matches(const struct federation *federation, const struct peer *peer, const char *topic, size_t size);
/* Joins that are kept for less than this level end: the peer is away (KEEP_RUN), or has begun anew (KEEP_LASTING). */
void group_lapse(struct federation *federation, struct peer *peer, enum keep_level level);
/* One that was kept by an earlier run. 1 if it is there already or there is no room, -1 when memory is short. */
int group_restore(struct federation *federation, struct peer *peer, const char *filter, size_t size,
                  enum keep_level level);
/* Those that are kept, for a journal that begins anew. */
void group_dump(struct federation *federation, struct peer *peer);
void group_clear(struct federation *federation, struct peer *peer);

#endif
