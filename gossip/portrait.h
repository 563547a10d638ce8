/* Who a member is, the last it said of itself, and what it has published: what does not change until it says something
 * newer. Counted, and shared by all gossips of one pool (shared.h). */
#ifndef GOSSIP_PORTRAIT_H
#define GOSSIP_PORTRAIT_H

#include "gossip/registry.h"

/* Checked by who_is. */
struct who {
    struct shared shared;
    struct member_id id;
    uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE];
    char name[GOSSIP_NAME_MAX + 1];
    uint32_t name_hash; /* never 0 */
    size_t token_size;
    uint8_t token[];
};

/* A head, its signature checked. */
struct statement {
    struct shared shared;
    uint64_t epoch, incarnation;
    struct gossip_address address;
    bool leaving;
    uint64_t ring;
    uint8_t ring_mark[8];
    uint8_t mark[8]; /* signed_mark() */
    size_t size;
    uint8_t bytes[];
};

/* All that many know alike of one member. */
struct portrait {
    struct shared shared;
    struct member_id id;
    struct who *who;
    struct statement *said;
    struct registry *registry; /* NULL: nothing published */
};

uint32_t name_hash(const char *name); /* never 0 */
/* With one reference, new or found; NULL: no memory. */
struct who *who_new(struct gossip_shared *pool, const struct member_id *id,
                    const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const char *name, const uint8_t *token,
                    size_t token_size);
void who_unref(struct who *who); /* NULL is fine */
struct statement *statement_new(struct gossip_shared *pool, const struct gossip_crypto *crypto, const struct head *head,
                                const uint8_t *bytes, size_t size);
void statement_unref(struct statement *said); /* NULL is fine */
/* With one reference, new or found; it takes over the caller's to what it is made of, unless it is NULL: no memory. */
struct portrait *portrait_take(struct gossip_shared *pool, struct who *who, struct statement *said,
                               struct registry *registry);
/* Gives a reference to each of its parts in exchange for the one to it. */
void portrait_give(struct portrait *portrait, struct who **who, struct statement **said, struct registry **registry);
void portrait_unref(struct portrait *portrait);

#endif
