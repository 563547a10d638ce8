/* The subscription tree: who gets what. Local sessions, groups of them (share.h) and peers sit in the same
 * tree.
 *
 * A subscriber is embedded in a session, a group or a peer. The tree keeps no reference: remove all
 * subscriptions of a subscriber before freeing it. Filters must be valid (topic.h).
 */
#ifndef BROKER_SUBS_H
#define BROKER_SUBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct subs;

enum subscriber_kind { SUBSCRIBER_SESSION, SUBSCRIBER_SHARE, SUBSCRIBER_PEER };
struct subscriber {
    enum subscriber_kind kind;
    /* Scratch of the caller of subs_match, to gather overlapping filters: the last walk that met it, and its place
     * there. */
    uint32_t position;
    uint64_t seen;
};

struct subscription {
    uint8_t qos;
    bool no_local, retain_as_published;
    uint8_t retain_handling;
    uint32_t identifier; /* MQTT 5.0 subscription identifier, 0 if none */
};

enum subs_result { SUBS_OK = 0, SUBS_REPLACED = 1, SUBS_NOT_FOUND = 2, SUBS_NO_MEMORY = -1 };

struct subs *subs_new(uint64_t seed); /* seed of the hash functions; NULL when memory is short */
void subs_free(struct subs *subs);

/* Adds or replaces (MQTT-3.8.4-3): SUBS_OK if new, SUBS_REPLACED, or SUBS_NO_MEMORY and nothing changed. */
enum subs_result subs_add(struct subs *subs, const char *filter, size_t size, struct subscriber *subscriber,
                          const struct subscription *subscription);
/* SUBS_OK or SUBS_NOT_FOUND. */
enum subs_result subs_remove(struct subs *subs, const char *filter, size_t size, struct subscriber *subscriber);

/* Calls on_hit once for every subscription whose filter matches the name; a subscriber with overlapping filters is
 * named once per filter. on_hit must not change the tree. Allocates nothing. */
typedef void subs_on_hit(void *context, struct subscriber *subscriber, const struct subscription *subscription);
void subs_match(const struct subs *subs, const char *name, size_t size, subs_on_hit *on_hit, void *context);

/* The same for every subscription whose filter some name matches that this filter matches too. */
void subs_meet(const struct subs *subs, const char *filter, size_t size, subs_on_hit *on_hit, void *context);
/* True if there is one. */
bool subs_meets(const struct subs *subs, const char *filter, size_t size);

size_t subs_count(const struct subs *subs); /* subscriptions */
/* Changes with every change of the tree: a cache of matches is good as long as this is the same. */
uint64_t subs_generation(const struct subs *subs);
/* Something else has changed that such a cache depends on. */
void subs_touch(struct subs *subs);

#endif
