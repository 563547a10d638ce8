/* Crypto for a simulated federation: hashes that cost nanoseconds instead of signatures that cost fractions of a
 * millisecond. Honest, and of no worth against anybody who looks: a wrong key, federation, byte, signer or token is
 * refused as the real one would be. Sizes are those of the real thing, so that bytes on the wire are counted right.
 *
 * What is sealed stays readable, so that the simulator can look into datagrams.
 */
#ifndef SIMULATE_STANDIN_H
#define SIMULATE_STANDIN_H

#include "gossip/gossip.h"

#include <string.h>

#define STANDIN_TOKEN_SIZE 320u /* what a minted token of a broker takes */
#define STANDIN_RING_SIZE 400u  /* what a signed ring of two keys takes */
#define STANDIN_FIRST_KEY 1u    /* of standin_key(): the one of the configuration */

/* What every broker of a run shares. */
struct standin_world {
    uint64_t salt; /* secrets follow from it and the public key */
    const uint64_t *now_us;
};

/* The context of one broker's ports. */
struct standin {
    const struct standin_world *world;
    const char *federation; /* whose rings it believes */
    uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE];
    uint64_t secret;
    int64_t wall_offset_ms; /* its wall clock: this much ahead. Only the expiry of tokens knows it */
    bool believes_all;      /* fault made on purpose: takes every signature for good */
    /* Called with all that it signs; NULL: nobody listens. */
    void (*on_signed)(void *context, const uint8_t *bytes, size_t size);
    void *on_signed_context;
};

uint64_t standin_hash(uint64_t seed, const void *bytes, size_t size);
/* The key of identity number. */
void standin_init(struct standin *standin, const struct standin_world *world, uint32_t identity);
struct gossip_crypto standin_crypto(struct standin *standin);
/* A token for the holder of the key, good until the run's wall clock says so; UINT64_MAX: for ever. */
void standin_mint(const struct standin *standin, const char *name, uint64_t expires_ms,
                  uint8_t token[STANDIN_TOKEN_SIZE]);
bool standin_verify(const struct standin_world *world, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE],
                    const uint8_t *bytes, size_t size, const uint8_t signature[GOSSIP_SIGNATURE_SIZE]);
struct member_id standin_id(const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE]);
/* A ring that only the issuer can make. */
void standin_sign_ring(const struct standin_world *world, const char *federation, uint64_t number,
                       const struct gossip_key *keys, size_t count, uint8_t ring[STANDIN_RING_SIZE]);
void standin_read_ring(const struct standin_world *world, const char *federation, const uint8_t *ring, size_t size,
                       struct gossip_ring *read);
struct gossip_key standin_key(uint32_t number);

#endif
