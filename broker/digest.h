/* What two brokers hold of the same retained messages, so that they find out where they differ without saying all of
 * it.
 *
 * A topic is a hash, keyed so that no client can aim at one; its stamp is what may differ. The items in the order of
 * their hashes are the leaves of a tree of which nothing is stored: a node stands for all hashes that begin with the
 * same bits, DIGEST_BITS more than its parent's, and its sum is that of the values of its items. Equal sums: equal
 * items. Bytes as they cross a link: PROTOCOL.md.
 */
#ifndef BROKER_DIGEST_H
#define BROKER_DIGEST_H

#include "broker/message.h"

enum {
    DIGEST_BITS = 6,
    DIGEST_FAN = 1 << DIGEST_BITS,
    DIGEST_DEPTH_MAX = 10,
    DIGEST_LIST_MAX = 32, /* so many items are told one by one */
    DIGEST_NODE_SIZE = 8, /* bytes of a node, */
    DIGEST_SUMS_SIZE = DIGEST_FAN * 8,
    DIGEST_ITEM_SIZE = 20 /* and of an item */
};
/* A node: the bits of its hashes behind a first bit that is 1. */
#define DIGEST_ROOT ((uint64_t)1)

struct digest_item {
    uint64_t topic; /* hash of it */
    uint64_t wall_ms;
    uint64_t sum;   /* of the values of all items up to this one; until it is settled its own */
    uint32_t count; /* of the stamp */
    uint8_t state;  /* the user's; 0 at first */
};

struct digest {
    uint64_t key;
    struct digest_item *items; /* by hash, once settled */
    size_t count, capacity;
};

void digest_init(struct digest *digest, uint64_t key);
void digest_deinit(struct digest *digest);

/* counts: its value is part of the sums. False when memory is short. */
bool digest_add(struct digest *digest, const char *topic, size_t size, const struct stamp *stamp, bool counts);
/* After the last digest_add(), before all that follows. Of those of one topic one stays. */
void digest_settle(struct digest *digest);

uint64_t digest_topic(const struct digest *digest, const char *topic, size_t size);
/* NULL if there is none. */
struct digest_item *digest_find(const struct digest *digest, uint64_t topic);
/* Its stamp is this one or a later one. */
bool digest_item_has(const struct digest_item *item, uint64_t wall_ms, uint32_t count);
/* It is of this very publication. */
bool digest_item_is(const struct digest_item *item, const struct stamp *stamp);

bool digest_node_valid(uint64_t node);
/* At the last depth; a node that is not has DIGEST_FAN children. */
bool digest_node_is_last(uint64_t node);
uint64_t digest_child(uint64_t node, unsigned index);
/* How many items a node has, the first of which is at *first. */
size_t digest_range(const struct digest *digest, uint64_t node, size_t *first);
/* The sums of the children of a node that is not of the last depth. */
void digest_sums(const struct digest *digest, uint64_t node, uint64_t sums[DIGEST_FAN]);

/* Numbers of 8 bytes and items on a link; what they return is where the next one goes. */
uint8_t *digest_put(uint8_t *at, uint64_t number);
uint64_t digest_get(const uint8_t *at);
uint8_t *digest_put_item(uint8_t *at, const struct digest_item *item);
struct digest_item digest_get_item(const uint8_t *at);

#endif
