/* SUBACKs that wait until everybody who could publish something that matches knows of it (G3 in README.md). */
#ifndef BROKER_BARRIER_H
#define BROKER_BARRIER_H

#include "broker/interest.h"

uint64_t barrier_new(struct federation *federation, const char *const *filters, const size_t *sizes, size_t count);
bool barrier_next_released(struct federation *federation, uint64_t *number, bool *timed_out,
                           struct unconfirmed **unconfirmed);
/* Something this interest waited for may have come. */
void barrier_check(struct federation *federation, struct interest *interest);
/* The same for all: a peer came, went, or knows more. */
void barrier_check_all(struct federation *federation);
/* The interest ends: nobody may wait for it. */
void barrier_abandon(struct federation *federation, struct interest *interest);
void barriers_tick(struct federation *federation);
void barriers_deinit(struct federation *federation);

#endif
