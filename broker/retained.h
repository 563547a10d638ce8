/* Retained messages: the last one of each topic, by hybrid clock (MQTT 5.0 section 3.3.1.3, G6).
 *
 * A delete leaves a tombstone (a message without payload), so that an older message that arrives later from a peer does
 * not come back. Tombstones are not shown to clients. They are dropped after RETAINED_TOMBSTONE_MS, the oldest first
 * when the store is full.
 */
#ifndef BROKER_RETAINED_H
#define BROKER_RETAINED_H

#include "broker/message.h"
#include "broker/tree.h"

struct retained;

/* A broker that was away for longer may bring a deleted message back. */
#define RETAINED_TOMBSTONE_MS (7u * 24 * 3600 * 1000)

enum retained_result { RETAINED_STORED = 0, RETAINED_OLDER = 1, RETAINED_FULL = -1, RETAINED_NO_MEMORY = -2 };

struct retained *retained_new(uint64_t bytes_max, uint32_t messages_max, uint64_t seed);
/* From now on told of each message or tombstone that is set (is_set) or dropped without another in its place. */
typedef void retained_on_change(void *context, uint64_t now_ms, const struct message *message, bool is_set);
void retained_watch(struct retained *retained, retained_on_change *on_change, void *context);
void retained_free(struct retained *retained);

/* Takes a reference of its own. An empty payload is a delete. RETAINED_OLDER: what is there has a higher or equal
 * stamp. */
enum retained_result retained_set(struct retained *retained, uint64_t now_ms, struct message *message);
/* The same for one of an earlier run: if it is a tombstone it is dropped at tombstone_end_ms, if that is sooner. */
enum retained_result retained_put_back(struct retained *retained, uint64_t now_ms, struct message *message,
                                       uint64_t tombstone_end_ms);

/* Calls on_message for each message whose topic matches the filter, in no particular order; tombstones only if asked
 * for; expired ones never. on_message must not change the store. The message is borrowed for the call. Returning false
 * ends the walk. */
typedef bool retained_on_message(void *context, struct message *message);
void retained_match(struct retained *retained, uint64_t now_ms, const char *filter, size_t size, bool with_tombstones,
                    retained_on_message *on_message, void *context);
/* The same with tombstones, looking at as many topics as *budget says, which it reduces. False if there would have been
 * more, or on_message ended it. */
bool retained_match_some(struct retained *retained, uint64_t now_ms, const char *filter, size_t size, uint64_t *budget,
                         retained_on_message *on_message, void *context);

/* The same for clients, in pieces: between them the store may change. Zero before it begins. */
struct retained_walk {
    struct tree_stand at; /* the next to be shown, pinned */
    uint64_t until;       /* what is set later is live and not shown */
};
void retained_walk_begin(struct retained *retained, struct retained_walk *walk);
/* Looks at as many topics as *budget says and reduces it. on_message returns false for "not now": the same message is
 * shown again first. False if there is more to see. The filter must be the same all the time. */
bool retained_walk_on(struct retained *retained, struct retained_walk *walk, uint64_t now_ms, const char *filter,
                      size_t size, uint32_t *budget, retained_on_message *on_message, void *context);
/* Gives up the rest. */
void retained_walk_end(struct retained *retained, struct retained_walk *walk);

/* Every message and tombstone, also what has expired. */
void retained_each(const struct retained *retained, retained_on_message *on_message, void *context);

/* True if this exact topic has a message that is no tombstone. */
bool retained_has(const struct retained *retained, const char *topic, size_t size);

size_t retained_count(const struct retained *retained); /* without tombstones */
/* How many topics a walk over everything looks at, with those that only lead to others. */
size_t retained_topics(const struct retained *retained);
/* For another tree of topics that strangers choose. */
uint64_t retained_seed(const struct retained *retained);
uint64_t retained_bytes(const struct retained *retained);
/* The next time at which retained_tick() has work; UINT64_MAX if none. */
uint64_t retained_deadline_ms(const struct retained *retained);
void retained_tick(struct retained *retained, uint64_t now_ms); /* drops what expired, a bounded amount per call */

#endif
