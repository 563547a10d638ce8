/* Keys: P-256 key pairs of issuers and brokers, and the gossip key ring. Bytes in, bytes out; no files.
 *
 * Sources: SEC 1 (points), RFC 7517 and 7638 (JWK and its thumbprint), RFC 5915 and 5208 (PEM).
 */
#ifndef AUTH_KEYS_H
#define AUTH_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUTH_PUBLIC_KEY_SIZE 65u /* uncompressed SEC 1 point */
#define AUTH_THUMBPRINT_SIZE 32u
#define AUTH_ENTROPY_SIZE 48u
#define AUTH_RING_MAX 4u

enum auth_result {
    AUTH_OK = 0,
    AUTH_NO_MEMORY = -1,
    AUTH_MALFORMED = -2, /* not PEM, not P-256, not base64 ... */
    AUTH_NO_PRIVATE_KEY = -3,
    AUTH_REFUSED = -4 /* well-formed and not valid: see the reason that came with it */
};

struct auth_key; /* a public key, or a pair */

/* A pair from 48 bytes of the caller's randomness (FIPS 186-5 A.2.1, extra random bits); the same bytes give the same
 * pair. */
enum auth_result auth_key_new(const uint8_t entropy[AUTH_ENTROPY_SIZE], struct auth_key **key);
/* PEM: "PRIVATE KEY" (PKCS 8), "EC PRIVATE KEY" or "PUBLIC KEY". The text need not end in zero. */
enum auth_result auth_key_parse(const char *pem, size_t size, struct auth_key **key);
/* A public key from its point. */
enum auth_result auth_key_from_point(const uint8_t point[AUTH_PUBLIC_KEY_SIZE], struct auth_key **key);
void auth_key_free(struct auth_key *key);

bool auth_key_is_private(const struct auth_key *key);
void auth_key_point(const struct auth_key *key, uint8_t point[AUTH_PUBLIC_KEY_SIZE]);
void auth_key_thumbprint(const struct auth_key *key, uint8_t thumbprint[AUTH_THUMBPRINT_SIZE]);
/* PEM text with a final zero; *pem is freed by the caller with free(). */
enum auth_result auth_key_public_pem(const struct auth_key *key, char **pem);
enum auth_result auth_key_private_pem(const struct auth_key *key, char **pem);

/* ECDSA with SHA-256; the signature is r then s, 32 bytes each. verify returns false for anything else. */
bool auth_sign(const struct auth_key *key, const uint8_t *bytes, size_t size, uint8_t signature[64]);
bool auth_verify(const struct auth_key *key, const uint8_t *bytes, size_t size, const uint8_t signature[64]);

/* A self-signed X.509 certificate on this pair for links (the key is what counts, name and dates are not looked at), as
 * DER. *der is freed by the caller. */
enum auth_result auth_key_certificate(const struct auth_key *key, const char *common_name, uint8_t **der, size_t *size);

/* The gossip key file: one key of 32 bytes in base64 a line, # comments; the first seals. The id of a key is the first
 * 4 bytes of its SHA-256. */
struct auth_ring {
    size_t count;
    struct {
        uint8_t id[4];
        uint8_t key[32];
    } keys[AUTH_RING_MAX];
};
enum auth_result auth_ring_parse(const char *text, size_t size, struct auth_ring *ring);
/* One line of the file for these 32 bytes, with newline and final zero. */
void auth_ring_line(const uint8_t key[32], char line[48]);

/* base64url without padding (RFC 4648 section 5). decode returns the number of bytes or -1. encode writes a final zero;
 * out holds 4*((size+2)/3)+1. */
size_t auth_base64url_encode(const uint8_t *bytes, size_t size, char *out);
long auth_base64url_decode(const char *text, size_t size, uint8_t *out, size_t out_max);

#endif
