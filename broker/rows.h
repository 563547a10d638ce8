/* Our own rows in the registry: what we want there, what the caller was told of it, and under which sequence of our log
 * it stands. */
#ifndef BROKER_ROWS_H
#define BROKER_ROWS_H

#include "broker/peers.h"

/* A row of our own in the registry. First member of interest and advert. */
struct row {
    struct named named;
    enum row_kind kind;
    bool wanted, told;
    bool queued;  /* in federation.row_queue */
    bool pending; /* in federation.unsequenced: told as active, its sequence to come */
    bool orphan;  /* its owner is done with it: rows.c frees it when the withdrawal was told */
    uint64_t ticket;
    uint64_t sequence; /* 0 until known */
    struct row *queue_prev, *queue_next, *pending_prev, *pending_next;
};

void row_init(struct row *row, enum row_kind kind);
void row_want(struct federation *federation, struct row *row, bool wanted);
/* Withdraws it, and frees it (it must be the first member of its allocation) when that was told. */
void row_orphan(struct federation *federation, struct row *row);
bool rows_next(struct federation *federation, struct broker_row_change *change);
void rows_sequenced(struct federation *federation, uint64_t ticket, uint64_t sequence);
void rows_deinit(struct federation *federation);

#endif
