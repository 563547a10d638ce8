#include "gossip/shared.h"

#include <assert.h>
#include <stdlib.h>

#define CHAINS_FIRST 64u

struct gossip_shared {
    struct shared **chains;
    size_t chain_count; /* a power of two, or 0 */
    size_t count;
};

struct gossip_shared *gossip_shared_new(void) {
    return calloc(1, sizeof(struct gossip_shared));
}

void gossip_shared_free(struct gossip_shared *pool) {
    if (!pool) return;
    assert(pool->count == 0); /* all that held something of it is gone */
    free(pool->chains);
    free(pool);
}

void shared_init(struct shared *shared, enum shared_kind kind, uint64_t hash) {
    *shared = (struct shared){.hash = hash, .references = 1, .kind = kind};
}

void shared_ref(struct shared *shared) {
    assert(shared->references > 0 && shared->references < UINT32_MAX);
    shared->references++;
}

static struct shared **chain_of(const struct gossip_shared *pool, uint64_t hash) {
    return &pool->chains[hash & (pool->chain_count - 1)];
}

/* A longer chain is slower, and nothing else: so growing may fail. */
static void grow(struct gossip_shared *pool) {
    size_t count = pool->chain_count ? pool->chain_count * 2 : CHAINS_FIRST;
    struct shared **chains = calloc(count, sizeof *chains);
    if (!chains) return;
    struct gossip_shared grown = {.chains = chains, .chain_count = count, .count = pool->count};
    for (size_t i = 0; i < pool->chain_count; i++) {
        while (pool->chains[i]) {
            struct shared *shared = pool->chains[i], **chain = chain_of(&grown, shared->hash);
            pool->chains[i] = shared->next;
            shared->next = *chain;
            *chain = shared;
        }
    }
    free(pool->chains);
    *pool = grown;
}

struct shared *shared_find(struct gossip_shared *pool, enum shared_kind kind, uint64_t hash, shared_equal *equal,
                           const void *wanted) {
    if (!pool || pool->chain_count == 0) return NULL;
    for (struct shared *shared = *chain_of(pool, hash); shared; shared = shared->next) {
        if (shared->hash != hash || shared->kind != kind || !equal(shared, wanted)) continue;
        shared_ref(shared);
        return shared;
    }
    return NULL;
}

void shared_offer(struct gossip_shared *pool, struct shared *shared) {
    if (!pool || shared->pool) return;
    if (pool->count >= pool->chain_count) grow(pool);
    if (pool->chain_count == 0) return;
    struct shared **chain = chain_of(pool, shared->hash);
    shared->next = *chain;
    *chain = shared;
    shared->pool = pool;
    pool->count++;
}

bool shared_is_alone(const struct shared *shared) {
    return shared->references == 1;
}

void shared_withdraw(struct shared *shared) {
    if (!shared->pool) return;
    struct shared **place = chain_of(shared->pool, shared->hash);
    while (*place != shared)
        place = &(*place)->next;
    *place = shared->next;
    shared->next = NULL;
    shared->pool->count--;
    shared->pool = NULL;
}

bool shared_unref(struct shared *shared) {
    assert(shared->references > 0);
    if (--shared->references > 0) return false;
    shared_withdraw(shared);
    return true;
}
