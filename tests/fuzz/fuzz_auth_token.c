/* Bytes as a token, and bytes as header and claims under the base64, so that both parsers are reached. Nothing may
 * verify: the issuer signs none here. */
#include <stdlib.h>
#include <string.h>

#include "auth/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct auth_key *issuer;

static void as_token(const char *token, size_t size) {
    const struct auth_key *issuers[] = {issuer};
    struct auth_claims claims;
    char reason[160];
    if (auth_token_decode(token, size, &claims, reason) == AUTH_OK)
        auth_claims_deinit(&claims);
    else if (memchr(reason, '\0', sizeof reason) == NULL)
        abort();
    if (auth_token_verify(token, size, issuers, 1, AUTH_AUDIENCE_BROKER, 1800000000, &claims, reason) == AUTH_OK)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (issuer == NULL) {
        static const uint8_t entropy[AUTH_ENTROPY_SIZE] = {1};
        if (auth_key_new(entropy, &issuer) != AUTH_OK) abort();
    }
    as_token((const char *)bytes, size);
    if (size > AUTH_TOKEN_MAX) return 0;
    /* A good header, then the input as claims, then a signature of the right size. */
    char text[2 * AUTH_TOKEN_MAX] = "eyJhbGciOiJFUzI1NiJ9.";
    size_t at = strlen(text);
    at += auth_base64url_encode(bytes, size, text + at);
    text[at++] = '.';
    memset(text + at, 'A', 86);
    as_token(text, at + 86);
    /* The input as header. */
    at = auth_base64url_encode(bytes, size, text);
    memcpy(text + at, ".e30.AA", 7);
    as_token(text, at + 7);
    return 0;
}
