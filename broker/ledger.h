/* Counts what became of the publications to and from one peer (G13 in README.md), in its struct link_info: how the
 * counters of two ends add up stands there. */
#ifndef BROKER_LEDGER_H
#define BROKER_LEDGER_H

#include "broker/peers.h"

/* ---- to the peer ---- */

/* The next of the outbox goes into a frame, as nil if it was given up before. */
void ledger_sent(struct peer *peer, const struct outbox_entry *entry);
void ledger_dropped(struct federation *federation, struct peer *peer, enum link_at limit, uint64_t count);
void ledger_given_up(struct peer *peer, enum given_up why, uint64_t count);

/* ---- from the peer ---- */

/* The number is taken; those from what was expected up to it were not there. */
void ledger_reached(struct federation *federation, struct peer *peer, uint64_t sequence);
/* The number is below what is expected. */
void ledger_late(struct federation *federation, struct peer *peer, uint64_t sequence);

#endif
