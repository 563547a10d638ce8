/* Inside broker/: records made and not yet on the disk. Records are numbered from 1; a number is durable once the store
 * has said so. What must wait for a record keeps its number and asks journal_has().
 *
 * Nothing here fails: when memory is short, or the store is too far behind, the records are dropped and the journal is
 * lost. Numbers go on, and nothing becomes durable, until the whole state was written anew (dump.c).
 */
#ifndef BROKER_JOURNAL_H
#define BROKER_JOURNAL_H

#include "broker/broker.h"
#include "broker/record.h"

struct journal_take {
    uint64_t last;       /* record */
    uint64_t bytes_made; /* up to there */
};

struct journal {
    bool is_on;   /* options.durable */
    bool failing; /* the store cannot write */
    bool lost;    /* records were dropped: it has to begin anew */
    bool beginning_anew;
    struct record_buffer buffer;        /* made and not taken */
    uint64_t last;                      /* record made */
    uint64_t durable;                   /* record on the disk */
    uint64_t bytes_max;                 /* of records made and not on the disk: see journal_refuses() */
    uint64_t bytes_made, bytes_durable; /* of all records ever, without those dropped */
    uint64_t anew_last;                 /* record that ends the whole state, when it was last written */
    uint64_t anew_made;                 /* bytes_made then */
    struct journal_take *takes;         /* not durable, in order */
    size_t take_count, take_capacity;
};

void journal_discard(struct journal *journal);

void journal_add(struct journal *journal, const struct record *record);
bool journal_take(struct journal *journal, struct broker_journal *out);
void journal_durable(struct journal *journal, uint64_t number);
/* True if this record is on the disk; 0 always is. */
bool journal_has(const struct journal *journal, uint64_t number);
/* What must wait for the records made since last was this: 0 if there are none. */
uint64_t journal_since(const struct journal *journal, uint64_t last);

/* Made and not on the disk. */
uint64_t journal_bytes(const struct journal *journal);
/* Half full: who makes records is paused. Full: what needs the store is refused. At twice the limit the journal is
 * lost. */
bool journal_is_half_full(const struct journal *journal);
bool journal_refuses(const struct journal *journal); /* full, or the store fails */

/* Drops what is not taken. */
void journal_lose(struct journal *journal);
/* Between these two the whole state is added, in place of what is not taken. False if memory was short: it is lost. */
void journal_begin_anew(struct journal *journal);
bool journal_end_anew(struct journal *journal);

#endif
