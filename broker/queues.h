/* What waits for all peers together has a limit (G12): with it reached, room is made at the cost of the peer that has
 * been away longest. */
#ifndef BROKER_QUEUES_H
#define BROKER_QUEUES_H

#include "broker/peers.h"

/* Puts it into the peer's outbox, within limits.link_queue_bytes and link_queues_bytes. What these drop is counted. */
enum outbox_result queues_put(struct federation *federation, struct peer *peer, struct message *message);
/* The peer's outbox would take it. */
bool queues_have_room(const struct peer *peer, const struct message *message);
/* Memory is short: gives up what waits for the peer that has been away longest. */
void queues_relieve(struct federation *federation);

#endif
