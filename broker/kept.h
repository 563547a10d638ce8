/* What waits for a peer outlives a crash here: the joins that are kept for it, and the publications in its outbox that
 * match them. So a PUBACK stands for other brokers' clients too.
 *
 * The peer tells by the numbers of the stream what it had before the crash, so the stream goes on, and no number that
 * was sent may be used again. Which ones were is not written down each time: they are reserved, many at once.
 */
#ifndef BROKER_KEPT_H
#define BROKER_KEPT_H

#include "broker/frames.h"

struct federation;
struct message;
struct peer;
struct record;

struct kept {
    bool is_recorded;  /* the journal tells of the peer */
    uint64_t reserved; /* numbers below may be sent once record is on the disk; */
    uint64_t record;
    uint64_t safe; /* below this one before that */
    uint64_t run;  /* the peer's epoch in an earlier run of ours, as long as its present one is not known; else 0 */
};

/* The peer joined this filter, at a level that is not KEEP_NOT, or at another than before; and no longer. */
void kept_join(struct federation *federation, struct peer *peer, const char *filter, size_t size,
               enum keep_level level);
void kept_leave(struct federation *federation, struct peer *peer, const char *filter, size_t size);
/* Something is to be kept for it from now on. */
void kept_begin(struct federation *federation, struct peer *peer);
/* The last publication in its outbox is of QoS 1 or 2 and matches a join that is kept. */
void kept_publication(struct federation *federation, struct peer *peer);
/* Those that one there is for are fewer than before. */
void kept_changed(struct federation *federation, struct peer *peer, uint64_t sequence);
/* What is known of the peer has changed: its epoch, or when all that is kept for it ends. */
void kept_peer(struct federation *federation, struct peer *peer);
/* The peer has seen more than we know of, as the disk is behind what happened: the stream is another one now. */
void kept_begin_stream(struct federation *federation, struct peer *peer);
/* Nothing is kept for it any more. */
void kept_end(struct federation *federation, struct peer *peer);

/* The next publication in its outbox may be sent now. Reserves numbers. */
bool kept_may_send(struct federation *federation, struct peer *peer);

/* Records of an earlier run, in this order. 1 if one is unsound or there is no room, -1 when memory is short. */
int kept_restore_peer(struct federation *federation, const struct record *record);
int kept_restore_join(struct federation *federation, const struct record *record);
int kept_restore_publication(struct federation *federation, const struct record *record, struct message *message);
/* That was all. False when memory is short. */
bool kept_restored(struct federation *federation);

/* As it is now, for a journal that begins anew. before: the number of the last message that is not in it. */
void kept_dump(struct federation *federation, uint64_t before);

/* Of an outbox (outbox_on_done); context: the peer. */
void kept_done(void *context, uint64_t first, uint64_t below);

#endif
