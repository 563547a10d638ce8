/* What several gossips in one process hold alike, held once: a simulator with thousands of brokers would else keep
 * thousands of copies of every key, token, head and table. A daemon has one gossip and no pool.
 *
 * struct shared is the first member of an object that does not change while others may hold it. Objects are found by
 * what they say (kind, hash, equal), never by who made them: a gossip that found an object has checked everything that
 * it would have checked had it made its own. Not for several threads.
 */
#ifndef GOSSIP_SHARED_H
#define GOSSIP_SHARED_H

#include "gossip/gossip.h"

enum shared_kind { SHARED_IDENTITY = 1, SHARED_HEAD = 2, SHARED_REGISTRY = 3, SHARED_PORTRAIT = 4 };

struct shared {
    struct gossip_shared *pool; /* NULL: nobody else can find it */
    struct shared *next;        /* in its chain of the pool */
    uint64_t hash;
    uint32_t references;
    enum shared_kind kind;
};

/* One reference, in no pool. The hash is of what equal compares. */
void shared_init(struct shared *shared, enum shared_kind kind, uint64_t hash);
void shared_ref(struct shared *shared);
/* True: this was the last reference. It has left its pool; the caller frees it. */
bool shared_unref(struct shared *shared);

/* Does the object say what is wanted? */
typedef bool shared_equal(const struct shared *shared, const void *wanted);
/* A new reference, or NULL. The pool may be NULL. */
struct shared *shared_find(struct gossip_shared *pool, enum shared_kind kind, uint64_t hash, shared_equal *equal,
                           const void *wanted);
/* From now on others find it, so it must not change. The pool may be NULL. When memory is short it stays private. */
void shared_offer(struct gossip_shared *pool, struct shared *shared);
/* Nobody else holds it: it may change, once it is withdrawn from the pool. */
bool shared_is_alone(const struct shared *shared);
void shared_withdraw(struct shared *shared);

#endif
