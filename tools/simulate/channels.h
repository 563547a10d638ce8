/* Reliable, ordered messages between brokers, as over TCP: lost segments cost time and bytes, a path that stays cut
 * costs the message. A channel is opened, at the price of a round trip, when none was used lately between the two. */
#ifndef SIMULATE_CHANNELS_H
#define SIMULATE_CHANNELS_H

#include "tools/simulate/strategy.h"

struct channels;
struct world;
struct broker;

struct channels *channels_new(void);
void channels_free(struct channels *channels);
void channels_send(struct world *world, struct broker *from, const struct strategy_frame *frame);
/* EVENT_FRAME has come: frame is its number. */
void channels_on_event(struct world *world, uint32_t frame);

#endif
