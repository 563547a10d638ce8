/* What peers ask for because of our rows in the registry, and what of that nobody here wants or has: a row may be wider
 * than what it stands for, and whoever chooses the rows is told what that costs. */
#ifndef BROKER_UNWANTED_H
#define BROKER_UNWANTED_H

#include "broker/peers.h"

/* The queue is short, and what finds it full is not told: those that are say enough. */
void unwanted_note(struct federation *federation, enum row_kind kind, const char *name, size_t size);
void wanted_note(struct federation *federation, enum row_kind kind);
/* A peer joins this filter here. Only of one without wildcards is it known at a glance whether it is published to. */
void unwanted_note_join(struct federation *federation, const char *filter, size_t size);
bool unwanted_next(struct federation *federation, struct broker_unwanted *out);
void unwanted_deinit(struct federation *federation);

#endif
