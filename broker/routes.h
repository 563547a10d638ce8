/* Inside broker/: where the publications of a topic go, found once and kept: a cache in front of the subscription tree.
 *
 * What is kept of a topic is what a walk of the tree would find now, without the peers that the policy does not let
 * have it: it is good as long as subs_generation() is what it was then, and made anew after that. It does not depend on
 * the publication: QoS and retain of that, and who published, are looked at when it is delivered. Members of a $share
 * group are chosen then, too: the group is the receiver.
 *
 * A topic is kept from its second publication on, if the first is not long ago, so that many topics with few
 * publications each cost no memory. When ROUTES_MAX or ROUTES_BYTES_MAX is reached, all are dropped.
 */
#ifndef BROKER_ROUTES_H
#define BROKER_ROUTES_H

#include "broker/federation.h"
#include "broker/subs.h"

enum {
    ROUTES_MAX = 65536,
    ROUTES_BYTES_MAX = 16 << 20, /* of those kept */
    ROUTE_BYTES_MAX = 1 << 20    /* one with more receivers than fit here is not kept */
};

/* For which publications a receiver counts: a session with no-local subscriptions (MQTT 5.0 section 3.8.3.1) may have
 * two, for those of others and for its own. */
enum receiver_scope { RECEIVES_ALL, RECEIVES_OTHERS, RECEIVES_OWN };

/* A subscriber with all its subscriptions that match: one copy, at the highest QoS (MQTT-3.3.4-2 to -5). */
struct receiver {
    struct subscriber *subscriber;
    uint32_t identifier_at; /* in route.identifiers */
    uint16_t identifier_count;
    uint8_t qos;   /* the highest granted; of a peer above 0 if a join of it that matches is kept */
    uint8_t scope; /* enum receiver_scope */
    bool retain_as_published;
};

struct route {
    struct route *chain; /* same bucket */
    uint64_t hash;
    uint64_t generation; /* of the tree, when it was gathered */
    struct topic_memo memo;
    struct receiver *receivers; /* a block with the identifiers behind them */
    uint32_t *identifiers;
    size_t block_size; /* bytes */
    uint32_t receiver_count;
    uint8_t qos;     /* the highest of the receivers; peers and $share groups count as 2 */
    bool has_groups; /* of shared subscriptions, among the receivers */
    uint32_t topic_size;
    const char *topic; /* valid; no final zero. Behind the struct */
};

/* The topic somebody published to last, so that the same again is found without a hash. Zero: none. */
struct route_hint {
    struct route *route;
    uint64_t era; /* of the cache: routes are dropped all together */
};

struct routes;
struct routes *routes_new(const struct subs *subs, uint64_t seed);
void routes_free(struct routes *routes);

/* The route of a valid topic, until the next call or change of the tree; NULL when memory is short. hint is brought up
 * to date. */
struct route *routes_find(struct routes *routes, const char *topic, size_t size, struct route_hint *hint);
/* True if the hint still stands for this topic: then the topic is a valid one. */
bool routes_hints(const struct routes *routes, const struct route_hint *hint, const void *topic, size_t size);
size_t routes_count(const struct routes *routes); /* kept */

#endif
