/* Sealing and hashing, over OpenSSL: the primitives that gossip asks for. */
#ifndef AUTH_SEAL_H
#define AUTH_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_TAG_SIZE 16u

/* AES-256-GCM (NIST SP 800-38D). out holds size + AUTH_TAG_SIZE bytes. False only when memory is short. */
bool auth_seal(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
               const uint8_t *plain, size_t size, uint8_t *out);
/* out holds size - AUTH_TAG_SIZE bytes; false if the tag is wrong or size is under AUTH_TAG_SIZE. */
bool auth_open(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
               const uint8_t *sealed, size_t size, uint8_t *out);
/* All zeros, which is the digest of nothing known, if memory is short. */
void auth_sha256(const uint8_t *bytes, size_t size, uint8_t digest[32]);

#endif
