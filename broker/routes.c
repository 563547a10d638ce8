#include "broker/routes.h"

#include "broker/gather.h"
#include "broker/hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BUCKETS = 64, RECENT = 4096 };

struct routes {
    const struct subs *subs;
    uint64_t seed;
    uint64_t era; /* how often all were dropped, + 1 */
    struct gather gather;
    struct route **buckets; /* NULL until the first */
    size_t bucket_count, count, bytes;
    uint32_t recent[RECENT]; /* marks of topics published to that are not kept */
    struct route passing;    /* of the last topic that is not kept */
};

struct routes *routes_new(const struct subs *subs, uint64_t seed) {
    struct routes *routes = calloc(1, sizeof *routes);

    if (routes == NULL) return NULL;
    routes->subs = subs;
    routes->seed = seed;
    routes->era = 1;
    return routes;
}

static void route_free(struct route *route) {
    free(route->receivers);
    free(route);
}

static void drop_all(struct routes *routes) {
    for (size_t i = 0; i < routes->bucket_count; i++) {
        struct route *route = routes->buckets[i];
        while (route != NULL) {
            struct route *next = route->chain;
            route_free(route);
            route = next;
        }
    }
    free(routes->buckets);
    routes->buckets = NULL;
    routes->bucket_count = routes->count = routes->bytes = 0;
    routes->era++;
}

void routes_free(struct routes *routes) {
    if (routes == NULL) return;
    drop_all(routes);
    free(routes->passing.receivers);
    gather_deinit(&routes->gather);
    free(routes);
}

static bool is_of(const struct route *route, const void *topic, size_t size) {
    return route->topic_size == size && memcmp(route->topic, topic, size) == 0;
}

bool routes_hints(const struct routes *routes, const struct route_hint *hint, const void *topic, size_t size) {
    return hint->era == routes->era && is_of(hint->route, topic, size);
}

static struct route *look_up(const struct routes *routes, uint64_t hash, const char *topic, size_t size) {
    struct route *route = routes->count > 0 ? routes->buckets[hash & (routes->bucket_count - 1)] : NULL;

    while (route != NULL && (route->hash != hash || !is_of(route, topic, size)))
        route = route->chain;
    return route;
}

/* Whether the topic was published to not long ago; from now on it was. */
static bool is_recent(struct routes *routes, uint64_t hash) {
    uint32_t *mark = &routes->recent[hash % RECENT];
    bool recent = *mark == (uint32_t)(hash >> 32);

    *mark = (uint32_t)(hash >> 32);
    return recent;
}

/* A table that cannot grow only gets slower; -1 if there is none. */
static int make_buckets(struct routes *routes) {
    size_t bucket_count = routes->bucket_count ? routes->bucket_count * 2 : FIRST_BUCKETS;
    struct route **buckets;

    if (routes->count < routes->bucket_count) return 0;
    buckets = calloc(bucket_count, sizeof(struct route *));
    if (buckets == NULL) return routes->buckets != NULL ? 0 : -1;
    for (size_t i = 0; i < routes->bucket_count; i++) {
        struct route *route = routes->buckets[i];
        while (route != NULL) {
            struct route *next = route->chain;
            route->chain = buckets[route->hash & (bucket_count - 1)];
            buckets[route->hash & (bucket_count - 1)] = route;
            route = next;
        }
    }
    free(routes->buckets);
    routes->buckets = buckets;
    routes->bucket_count = bucket_count;
    return 0;
}

/* A kept route, without receivers yet; NULL when memory is short. */
static struct route *keep(struct routes *routes, uint64_t hash, const char *topic, size_t size) {
    struct route *route = make_buckets(routes) == 0 ? malloc(sizeof *route + size) : NULL;
    struct route **bucket;

    if (route == NULL) return NULL;
    *route = (struct route){.hash = hash, .topic = (char *)(route + 1), .topic_size = (uint32_t)size};
    memcpy(route + 1, topic, size);
    bucket = &routes->buckets[hash & (routes->bucket_count - 1)];
    route->chain = *bucket;
    *bucket = route;
    routes->count++;
    routes->bytes += sizeof *route + size;
    return route;
}

/* Room in the block for what was gathered; -1 when memory is short and the route is as before. */
static int make_block(struct routes *routes, struct route *route, size_t size) {
    void *block;

    if (size <= route->block_size) return 0;
    block = realloc(route->receivers, size);
    if (block == NULL) return -1;
    if (route != &routes->passing) routes->bytes += size - route->block_size;
    route->receivers = block;
    route->block_size = size;
    return 0;
}

/* The route that takes what was gathered: a kept one if there is room for it. */
static struct route *place(struct routes *routes, struct route *route, uint64_t hash, const char *topic, size_t size) {
    size_t block_size = gather_size(&routes->gather);

    if (routes->count >= ROUTES_MAX || routes->bytes + sizeof *route + size + block_size > ROUTES_BYTES_MAX) {
        drop_all(routes);
        route = NULL;
    }
    if (route == NULL && block_size <= ROUTE_BYTES_MAX && is_recent(routes, hash))
        route = keep(routes, hash, topic, size);
    if (route != NULL && make_block(routes, route, block_size) == 0) return route;
    routes->passing.memo = (struct topic_memo){0};
    return make_block(routes, &routes->passing, block_size) == 0 ? &routes->passing : NULL;
}

struct route *routes_find(struct routes *routes, const char *topic, size_t size, struct route_hint *hint) {
    uint64_t generation = subs_generation(routes->subs), hash;
    struct route *route = routes_hints(routes, hint, topic, size) ? hint->route : NULL;

    if (route != NULL) {
        hash = route->hash;
    } else {
        hash = hash_bytes(routes->seed, topic, size);
        route = look_up(routes, hash, topic, size);
        if (route != NULL) *hint = (struct route_hint){.route = route, .era = routes->era};
    }
    if (route != NULL && route->generation == generation) return route;
    if (gather_topic(&routes->gather, routes->subs, topic, size) != 0) return NULL;
    route = place(routes, route, hash, topic, size);
    if (route == NULL) return NULL;
    gather_write(&routes->gather, route);
    route->generation = generation;
    return route;
}

size_t routes_count(const struct routes *routes) {
    return routes->count;
}
