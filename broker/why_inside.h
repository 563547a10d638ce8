/* Inside broker/: questions why, asked here or by other brokers (why.c). */
#ifndef BROKER_WHY_INSIDE_H
#define BROKER_WHY_INSIDE_H

#include "broker/link.h"

/* A peer asks: answered at once, or not at all if it asks too often. */
void why_on_inquiry(struct federation *federation, struct link *link, const struct inquiry *inquiry);
/* A peer answers. What it was not asked is passed over. */
void why_on_answer(struct federation *federation, const struct peer *peer, struct frame *frame);
/* Its link is up: asks what waited for that. */
void why_linked(struct federation *federation, struct peer *peer);
uint64_t whys_deadline_ms(const struct federation *federation);
void whys_tick(struct federation *federation);
void whys_deinit(struct federation *federation);

#endif
