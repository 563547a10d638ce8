#include "tests/sim/credentials.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

#include "auth/seal.h"

struct auth_key *credentials_key(struct dice *dice) {
    uint8_t entropy[AUTH_ENTROPY_SIZE];
    struct auth_key *key = NULL;
    dice_bytes(dice, entropy, sizeof entropy);
    enum auth_result result = auth_key_new(entropy, &key);
    assert(result == AUTH_OK);
    return key;
}

void credentials_ring(struct dice *dice, struct auth_ring *ring) {
    uint8_t digest[32];
    memset(ring, 0, sizeof *ring);
    ring->count = 1;
    dice_bytes(dice, ring->keys[0].key, sizeof ring->keys[0].key);
    auth_sha256(ring->keys[0].key, sizeof ring->keys[0].key, digest);
    memcpy(ring->keys[0].id, digest, sizeof ring->keys[0].id);
}

static char *mint(struct dice *dice, const struct auth_key *issuer, const struct auth_claims *claims) {
    uint8_t entropy[16];
    char *token = NULL;
    dice_bytes(dice, entropy, sizeof entropy);
    enum auth_result result = auth_token_mint(claims, issuer, entropy, &token);
    assert(result == AUTH_OK);
    return token;
}

/* The same claims under another header; secret NULL leaves the signature out. */
static char *forge(const char *token, const char *header, const char *secret) {
    const char *claims = strchr(token, '.') + 1;
    size_t claims_size = (size_t)(strchr(claims, '.') - claims), size = strlen(header);
    char *forged = calloc(1, strlen(token) + 200);
    assert(forged != NULL);
    size_t at = auth_base64url_encode((const uint8_t *)header, size, forged);
    forged[at++] = '.';
    memcpy(forged + at, claims, claims_size);
    at += claims_size;
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned mac_size = 0;
    if (secret != NULL) HMAC(EVP_sha256(), secret, (int)strlen(secret), (const uint8_t *)forged, at, mac, &mac_size);
    forged[at++] = '.';
    if (secret != NULL) auth_base64url_encode(mac, mac_size, forged + at);
    return forged;
}

char *credentials_token(struct dice *dice, const struct auth_key *issuer, const char *name, const struct auth_key *key,
                        int64_t now_s, int64_t valid_s, enum credentials_fault fault) {
    struct auth_key *other = credentials_key(dice);
    char audience[] = AUTH_AUDIENCE_BROKER, client_audience[] = AUTH_AUDIENCE_CLIENT, issuer_name[] = "simulation";
    char subject[64];
    strncpy(subject, name, sizeof subject - 1);
    subject[sizeof subject - 1] = '\0';
    struct auth_claims claims = {.issuer = issuer_name,
                                 .subject = subject,
                                 .audience = fault == CREDENTIALS_CLIENT_AUDIENCE ? client_audience : audience,
                                 .issued_at_s = now_s,
                                 .expires_at_s = now_s + valid_s,
                                 .key_bound = true};
    if (fault == CREDENTIALS_EXPIRED) {
        claims.issued_at_s = now_s - 7200;
        claims.expires_at_s = now_s - 3600;
    }
    auth_key_thumbprint(fault == CREDENTIALS_OTHER_KEY ? other : key, claims.key_thumbprint);
    char *token = mint(dice, fault == CREDENTIALS_OTHER_ISSUER ? other : issuer, &claims), *forged = NULL, *pem = NULL;
    if (fault == CREDENTIALS_HMAC && auth_key_public_pem(issuer, &pem) == AUTH_OK)
        forged = forge(token, "{\"alg\":\"HS256\",\"typ\":\"JWT\"}", pem);
    if (fault == CREDENTIALS_NO_SIGNATURE) forged = forge(token, "{\"alg\":\"none\",\"typ\":\"JWT\"}", NULL);
    auth_key_free(other);
    free(pem);
    if (forged != NULL) {
        free(token);
        return forged;
    }
    return token;
}
