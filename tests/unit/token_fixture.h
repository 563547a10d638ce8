/* Tokens made by hand, as nobody honest would make them. For test_auth_token*.c and test_auth_trust.c. */
#ifndef TESTS_TOKEN_FIXTURE_H
#define TESTS_TOKEN_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/token.h"

#define FIXTURE_NOW INT64_C(1800000000)
#define FIXTURE_HEADER "{\"alg\":\"ES256\",\"typ\":\"JWT\"}"

static inline struct auth_key *fixture_key(uint8_t which) {
    uint8_t entropy[AUTH_ENTROPY_SIZE];
    struct auth_key *key = NULL;
    memset(entropy, which, sizeof entropy);
    assert_int_equal(auth_key_new(entropy, &key), AUTH_OK);
    return key;
}

static inline void fixture_thumbprint(const struct auth_key *key, char text[44]) {
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    auth_key_thumbprint(key, thumbprint);
    auth_base64url_encode(thumbprint, sizeof thumbprint, text);
}

/* "HEADER.PAYLOAD" in base64url; freed by the caller. */
static inline char *fixture_unsigned(const char *header, const char *payload) {
    size_t header_size = strlen(header), payload_size = strlen(payload);
    char *text = malloc(4 * (header_size + payload_size) / 3 + 200);
    assert_non_null(text);
    size_t at = auth_base64url_encode((const uint8_t *)header, header_size, text);
    text[at++] = '.';
    auth_base64url_encode((const uint8_t *)payload, payload_size, text + at);
    return text;
}

static inline char *fixture_append(char *text, const uint8_t *signature, size_t size) {
    size_t at = strlen(text);
    text[at++] = '.';
    auth_base64url_encode(signature, size, text + at);
    return text;
}

/* A token of any header and claims with a true ES256 signature. */
static inline char *fixture_signed(const char *header, const char *payload, const struct auth_key *key) {
    uint8_t signature[64];
    char *text = fixture_unsigned(header, payload);
    assert_true(auth_sign(key, (const uint8_t *)text, strlen(text), signature));
    return fixture_append(text, signature, sizeof signature);
}

/* Claims of a broker edge-4 that are good; extra begins with a comma or is empty. */
static inline char *fixture_claims(const struct auth_key *issuer, const struct auth_key *holder, const char *extra) {
    char iss[44], jkt[44], *text = malloc(strlen(extra) + 512);
    assert_non_null(text);
    fixture_thumbprint(issuer, iss);
    fixture_thumbprint(holder, jkt);
    sprintf(text,
            "{\"iss\":\"%s\",\"sub\":\"edge-4\",\"aud\":\"hobnob:broker\",\"jti\":\"x\",\"iat\":%lld,\"exp\":%lld,"
            "\"cnf\":{\"jkt\":\"%s\"}%s}",
            iss, (long long)FIXTURE_NOW - 100, (long long)FIXTURE_NOW + 7200, jkt, extra);
    return text;
}

/* What hobnob token mint would make for edge-4. */
static inline char *fixture_minted(const struct auth_key *issuer, const struct auth_key *holder) {
    char subject[] = "edge-4", audience[] = AUTH_AUDIENCE_BROKER, *token = NULL;
    static const uint8_t entropy[16] = {7};
    struct auth_claims claims = {.subject = subject,
                                 .audience = audience,
                                 .issued_at_s = FIXTURE_NOW - 100,
                                 .expires_at_s = FIXTURE_NOW + 7200,
                                 .key_bound = true};
    auth_key_thumbprint(holder, claims.key_thumbprint);
    assert_int_equal(auth_token_mint(&claims, issuer, entropy, &token), AUTH_OK);
    return token;
}

#endif
