/* The admin with the issuer's key, who changes the gossip key of a simulated federation: the rings are made by the same
 * steps as hobnob key rotate makes them, signed with the stand-in, and given to one broker. What brokers do with them
 * is the core's. */
#ifndef SIMULATE_ISSUER_H
#define SIMULATE_ISSUER_H

#include "gossip/gossip.h"

struct world;
struct broker;
struct issuer;

struct issuer *issuer_new(const struct world *world);
void issuer_free(struct issuer *issuer);

enum issuer_act {
    ISSUER_GOES_ON,    /* the next of the three steps */
    ISSUER_BEGINS_ANEW /* one new key and no other: the present one is in the wrong hands */
};
/* Makes the ring that follows the last and gives it to the broker. With a second broker another admin does the same at
 * the same moment and gives his there, under the same number; both go on from the one that all brokers will take. */
void issuer_act(struct world *world, enum issuer_act act, struct broker *broker, struct broker *second);
/* That many acts make one whole change of the key. */
#define ISSUER_STEPS 3u

/* Rings are known by the order in which they were made, from 1 on; 0 is the key of the configuration. The key that
 * seals is the first. */
void issuer_keys(const struct issuer *issuer, uint32_t ring, struct gossip_key keys[GOSSIP_KEYS_MAX], size_t *count);
/* For a broker that starts with this ring on its disk. */
void issuer_fill(const struct issuer *issuer, uint32_t ring, struct gossip_options *options);
/* UINT32_MAX: the issuer never made it. */
uint32_t issuer_find(const struct issuer *issuer, const uint8_t *bytes, size_t size);
/* By number, then by digest, as all brokers order them: below 0, 0 or above 0. */
int issuer_order(const struct issuer *issuer, uint32_t ring, uint32_t than);
uint64_t issuer_number(const struct issuer *issuer, uint32_t ring);
uint32_t issuer_count(const struct issuer *issuer);

#endif
