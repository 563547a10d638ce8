/* The envelope of a datagram: version (1 byte), key id (4), nonce (12), AES-256-GCM ciphertext, tag (16).
 *
 * Associated data is the version, the key id and the name of the federation, so that a datagram of another federation
 * does not open even under the same key. The nonce is 8 bytes drawn from the seed at start and a 4-byte counter; when
 * the counter wraps the prefix, as a number, grows by 1. So no key sees a nonce twice as long as no two starts share a
 * seed.
 */
#ifndef GOSSIP_SEAL_H
#define GOSSIP_SEAL_H

#include "gossip/chance.h"
#include "gossip/gossip.h"
#include "gossip/replay.h"

#define SEAL_VERSION 1u
#define SEAL_OVERHEAD 33u
#define SEAL_PLAIN_MAX (GOSSIP_DATAGRAM_MAX - SEAL_OVERHEAD)
#define SEAL_FEDERATION_MAX 255u

struct seal {
    struct gossip_key keys[GOSSIP_KEYS_MAX];
    size_t key_count;
    uint8_t prefix[8];
    uint32_t counter;
    char federation[SEAL_FEDERATION_MAX];
    size_t federation_size;
};

/* False if an option is out of range. */
bool seal_init(struct seal *seal, const struct gossip_options *options, struct chance *chance);
/* The first seals, all open, from now on. */
void seal_set_keys(struct seal *seal, const struct gossip_key *keys, size_t count);
/* Returns the sealed size, or 0 when the crypto has failed. size is at most SEAL_PLAIN_MAX. */
size_t seal_close(struct seal *seal, const struct gossip_crypto *crypto, const uint8_t *plain, size_t size,
                  uint8_t out[GOSSIP_DATAGRAM_MAX]);
/* Returns the plain size, or -1. *own says that this very process sealed it. */
long seal_open(const struct seal *seal, const struct gossip_crypto *crypto, const uint8_t *bytes, size_t size,
               uint8_t out[SEAL_PLAIN_MAX], bool *own);
/* What the nonce of a datagram that opened says of its place; the epoch is not in it. */
void seal_place(const uint8_t *bytes, struct replay_place *place);

#endif
