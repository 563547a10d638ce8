#include "broker/rows.h"

#include "broker/barrier.h"

#include <stdlib.h>
#include <utlist.h>

void row_init(struct row *row, enum row_kind kind) {
    row->kind = kind;
}

void row_want(struct federation *federation, struct row *row, bool wanted) {
    row->wanted = wanted;
    if (row->queued || row->wanted == row->told) return;
    row->queued = true;
    DL_APPEND2(federation->row_queue, row, queue_prev, queue_next);
}

void row_orphan(struct federation *federation, struct row *row) {
    row->orphan = true;
    row_want(federation, row, false);
    /* Nobody heard of it, and perhaps nobody asks: a broker alone must not gather these. */
    if (row->queued && !row->told) {
        DL_DELETE2(federation->row_queue, row, queue_prev, queue_next);
        row->queued = false;
    }
    if (!row->queued) free(row);
}

static void no_longer_pending(struct federation *federation, struct row *row) {
    if (row->pending) DL_DELETE2(federation->unsequenced, row, pending_prev, pending_next);
    row->pending = false;
}

bool rows_next(struct federation *federation, struct broker_row_change *change) {
    free(federation->row_given);
    federation->row_given = NULL;
    for (;;) {
        struct row *row = federation->row_queue;
        if (!row) return false;
        DL_DELETE2(federation->row_queue, row, queue_prev, queue_next);
        row->queued = false;
        if (row->wanted == row->told) continue; /* changed its mind before anybody heard */
        row->told = row->wanted;
        row->sequence = 0;
        row->ticket = ++federation->tickets;
        no_longer_pending(federation, row);
        row->pending = row->told;
        if (row->pending) DL_APPEND2(federation->unsequenced, row, pending_prev, pending_next);
        if (row->orphan) federation->row_given = row;
        *change = (struct broker_row_change){.kind = row->kind,
                                             .active = row->told,
                                             .filter = row->named.text,
                                             .filter_size = row->named.size,
                                             .ticket = row->ticket};
        return true;
    }
}

void rows_sequenced(struct federation *federation, uint64_t ticket, uint64_t sequence) {
    struct row *row;
    DL_FOREACH2(federation->unsequenced, row, pending_next) {
        if (row->ticket == ticket) break;
    }
    if (!row) return;
    no_longer_pending(federation, row);
    row->sequence = sequence;
    if (row->kind == ROW_NEWSUB) barrier_check(federation, (struct interest *)(void *)row);
}

void rows_deinit(struct federation *federation) {
    free(federation->row_given);
    struct row *row, *next;
    DL_FOREACH_SAFE2(federation->row_queue, row, next, queue_next) {
        if (row->orphan) free(row);
    }
}
