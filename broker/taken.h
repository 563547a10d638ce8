/* How far the publications of one peer were taken, and how far it may be told so: what it was told, it forgets, so a
 * crash here must not forget it either.
 *
 * What came of a frame of publications and how far that went are records of one call, so they are on the disk together
 * or not at all: after a crash the peer is asked from there on, and nothing is lost or comes twice.
 */
#ifndef BROKER_TAKEN_H
#define BROKER_TAKEN_H

#include <stdbool.h>
#include <stdint.h>

struct federation;
struct peer;
struct record;

/* A record that tells of it and may not be on the disk yet; number 0: there is none. */
struct taken_mark {
    uint64_t record, expected;
};

struct taken {
    uint64_t epoch, stream;        /* of the peer's numbering; 0 if none was seen */
    uint64_t expected;             /* the next sequence wanted */
    uint64_t safe;                 /* everything below may be acknowledged */
    struct taken_mark first, last; /* the first that is waited for; the last that was made */
    bool is_recorded;              /* the journal tells of this peer */
};

/* The peer's hello names the numbering that begins or goes on. first: the lowest sequence that may still come; what is
 * below and did not come was acknowledged by an earlier run, which knew of nothing that had to last. */
void taken_begin(struct taken *taken, uint64_t epoch, uint64_t stream, uint64_t first);

/* Publications were taken: to be called in the same call in which the records of what came of them were made. before:
 * the last record then. */
void taken_note(struct federation *federation, struct peer *peer, uint64_t before);
/* How far the peer may be told now. */
uint64_t taken_safe(const struct federation *federation, struct peer *peer);
/* The broker ends in order: what came of none but clients that were here, which come back, is told too. */
void taken_stop(struct federation *federation);
/* The peer is forgotten. */
void taken_forget(struct federation *federation, struct peer *peer);
/* A record of an earlier run. 1 if it is unsound or peers are too many, -1 when memory is short. */
int taken_restore(struct federation *federation, const struct record *record);
/* As it is now, whether it is in the journal or not. */
void taken_dump(struct federation *federation);

#endif
