/* Inside of a key, for the files of auth/ only. */
#ifndef AUTH_PAIR_H
#define AUTH_PAIR_H

#include <openssl/evp.h>

#include "auth/keys.h"

struct auth_key {
    EVP_PKEY *pkey;
    bool is_private;
    uint8_t point[AUTH_PUBLIC_KEY_SIZE];
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
};

/* SHA-256 that can say that memory was short. */
bool auth_digest(const uint8_t *bytes, size_t size, uint8_t digest[32]);
/* The RFC 7638 thumbprint of the key with this point; false when memory is short. */
bool auth_point_thumbprint(const uint8_t point[AUTH_PUBLIC_KEY_SIZE], uint8_t thumbprint[AUTH_THUMBPRINT_SIZE]);
/* Why OpenSSL failed: AUTH_NO_MEMORY or AUTH_MALFORMED. Empties its error queue, which the TLS code on this thread
 * would else misread. */
enum auth_result auth_openssl_failure(void);

#endif
