#include "auth/token.h"

#include <jwt.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "auth/claims.h"
#include "auth/header.h"
#include "auth/reason.h"

#define HEADER_MAX 384u /* bytes of a header's JSON */
#define SIGNATURE_SIZE 64u

struct parts {
    const char *text[3];
    size_t size[3];
};

/* ---- making ---- */

static enum auth_result libjwt_sign(const char *json, const char *pem, char **token) {
    jwt_t *jwt = NULL;
    char *encoded = NULL;
    if (jwt_new(&jwt) == 0 && jwt_add_grants_json(jwt, json) == 0 &&
        jwt_set_alg(jwt, JWT_ALG_ES256, (const unsigned char *)pem, (int)strlen(pem)) == 0)
        encoded = jwt_encode_str(jwt); /* from malloc, as we set no allocator of libjwt's */
    jwt_free(jwt);
    ERR_clear_error();
    if (encoded == NULL) return AUTH_NO_MEMORY;
    *token = encoded;
    return AUTH_OK;
}

/* The claims as JSON. What a verifier would not read is not signed: the same code decides. */
static enum auth_result mint_claims(const struct auth_claims *claims, const struct auth_key *issuer,
                                    const uint8_t entropy[16], char **json, char *reason) {
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    char issuer_text[44], token_id[23];
    auth_key_thumbprint(issuer, thumbprint);
    auth_base64url_encode(thumbprint, sizeof thumbprint, issuer_text);
    auth_base64url_encode(entropy, 16, token_id);
    enum auth_result result =
        auth_claims_print(claims, issuer_text, claims->token_id != NULL ? claims->token_id : token_id, json);
    if (result != AUTH_OK) {
        auth_say(reason, "a claim is missing, too long or not UTF-8: correct it");
        return result;
    }
    struct auth_claims read;
    result = auth_claims_parse(*json, strlen(*json), &read, reason);
    if (result != AUTH_OK) return result;
    auth_claims_deinit(&read);
    return AUTH_OK;
}

static bool for_broker(const struct auth_claims *claims) {
    return strcmp(claims->audience, AUTH_AUDIENCE_BROKER) == 0;
}

static enum auth_result check_size(const struct auth_claims *claims, size_t size, char *reason) {
    size_t size_max = for_broker(claims) ? AUTH_BROKER_TOKEN_MAX : AUTH_TOKEN_MAX;
    if (size <= size_max) return AUTH_OK;
    auth_say(reason, "the token would have %zu bytes, and %zu are allowed%s: use fewer or shorter filters", size,
             size_max, for_broker(claims) ? " for a broker" : "");
    return AUTH_REFUSED;
}

static enum auth_result mint(const struct auth_claims *claims, const struct auth_key *issuer, const uint8_t entropy[16],
                             char **token, char *reason) {
    if (!auth_key_is_private(issuer)) {
        auth_say(reason, "a public key cannot sign: give the issuer's private key");
        return AUTH_NO_PRIVATE_KEY;
    }
    char *json = NULL, *pem = NULL, *made = NULL;
    enum auth_result result = mint_claims(claims, issuer, entropy, &json, reason);
    if (result == AUTH_OK && for_broker(claims) && !claims->key_bound) {
        auth_say(reason, "a broker's token must be bound to its key: name that key");
        result = AUTH_REFUSED;
    }
    if (result == AUTH_OK) result = auth_key_private_pem(issuer, &pem);
    if (result == AUTH_OK) result = libjwt_sign(json, pem, &made);
    if (result == AUTH_OK) result = check_size(claims, strlen(made), reason);
    if (result == AUTH_NO_MEMORY) auth_say(reason, "memory is short: try again");
    if (result == AUTH_OK)
        *token = made;
    else
        free(made);
    if (pem != NULL) OPENSSL_cleanse(pem, strlen(pem));
    free(pem);
    free(json);
    return result;
}

enum auth_result auth_token_mint(const struct auth_claims *claims, const struct auth_key *issuer,
                                 const uint8_t entropy[16], char **token) {
    return mint(claims, issuer, entropy, token, NULL);
}

enum auth_result auth_token_mint_saying(const struct auth_claims *claims, const struct auth_key *issuer,
                                        const uint8_t entropy[16], char **token, char reason[160]) {
    return mint(claims, issuer, entropy, token, reason);
}

/* ---- reading ---- */

static bool in_alphabet(char letter) {
    return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
           letter == '-' || letter == '_';
}

static bool all_in_alphabet(const char *text) {
    while (in_alphabet(*text))
        text++;
    return *text == '\0';
}

/* Exactly three parts, each of base64url letters only (RFC 7515 section 7.1). */
static enum auth_result split(const char *token, size_t size, struct parts *parts, char *reason) {
    if (size == 0 || size > AUTH_TOKEN_MAX) {
        if (size == 0)
            auth_say(reason, "there is no token: mint one with hobnob token mint");
        else
            auth_say(reason, "the token has %zu bytes, and at most %u are read: mint a smaller one", size,
                     AUTH_TOKEN_MAX);
        return AUTH_MALFORMED;
    }
    size_t part = 0, begin = 0;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && in_alphabet(token[i])) continue;
        if ((i < size && token[i] != '.') || part > 2 || i == begin) {
            auth_say(reason, "the token is not three parts of base64url with dots between: it may be cut or have a "
                             "line break, copy it again");
            return AUTH_MALFORMED;
        }
        parts->text[part] = token + begin;
        parts->size[part++] = i - begin;
        begin = i + 1;
    }
    if (part == 3) return AUTH_OK;
    auth_say(reason, "the token has %zu of 3 parts: it may be cut, copy it again", part);
    return AUTH_MALFORMED;
}

static enum auth_result read_header(const struct parts *parts, char *reason) {
    uint8_t json[HEADER_MAX];
    long size = auth_base64url_decode(parts->text[0], parts->size[0], json, sizeof json);
    if (size < 0) {
        auth_say(reason, "the token's header is not base64url of at most %u bytes: copy the token again", HEADER_MAX);
        return AUTH_MALFORMED;
    }
    return auth_header_check((const char *)json, (size_t)size, reason);
}

static enum auth_result read_claims(const struct parts *parts, struct auth_claims *claims, char *reason) {
    uint8_t json[AUTH_TOKEN_MAX];
    long size = auth_base64url_decode(parts->text[1], parts->size[1], json, sizeof json);
    if (size < 0) {
        auth_say(reason, "the token's claims are not base64url: copy the token again");
        return AUTH_MALFORMED;
    }
    return auth_claims_parse((const char *)json, (size_t)size, claims, reason);
}

enum auth_result auth_token_decode(const char *token, size_t size, struct auth_claims *claims, char reason[160]) {
    struct parts parts;
    enum auth_result result = split(token, size, &parts, reason);
    if (result == AUTH_OK) result = read_header(&parts, reason);
    if (result == AUTH_OK) result = read_claims(&parts, claims, reason);
    return result;
}

/* ---- believing ---- */

/* A name for sentences. A subject that is no plain name is not repeated: it may be a stranger's. */
static const char *whose(const struct auth_claims *claims) {
    return auth_name_valid(claims->subject, strlen(claims->subject)) ? claims->subject : "a client";
}

static const struct auth_key *issuer_of(const struct auth_claims *claims, const struct auth_key *const *issuers,
                                        size_t count) {
    uint8_t named[AUTH_THUMBPRINT_SIZE], thumbprint[AUTH_THUMBPRINT_SIZE];
    if (auth_base64url_decode(claims->issuer, strlen(claims->issuer), named, sizeof named) != (long)sizeof named)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        auth_key_thumbprint(issuers[i], thumbprint);
        if (memcmp(named, thumbprint, sizeof named) == 0) return issuers[i];
    }
    return NULL;
}

/* Only called for a header that says ES256, and never without a key: libjwt would accept anything then. */
static enum auth_result libjwt_verify(const char *token, size_t size, const char *pem) {
    char *copy = malloc(size + 1);
    if (copy == NULL) return AUTH_NO_MEMORY;
    memcpy(copy, token, size);
    copy[size] = '\0';
    jwt_t *jwt = NULL;
    int error = jwt_decode(&jwt, copy, (const unsigned char *)pem, (int)strlen(pem));
    bool good = error == 0 && jwt != NULL && jwt_get_alg(jwt) == JWT_ALG_ES256;
    if (error == 0) jwt_free(jwt);
    free(copy);
    ERR_clear_error();
    return good ? AUTH_OK : error == ENOMEM ? AUTH_NO_MEMORY : AUTH_REFUSED;
}

static enum auth_result check_signature(const char *token, size_t size, const struct parts *parts,
                                        const struct auth_claims *claims, const struct auth_key *const *issuers,
                                        size_t issuer_count, char *reason) {
    uint8_t signature[SIGNATURE_SIZE];
    if (auth_base64url_decode(parts->text[2], parts->size[2], signature, sizeof signature) != (long)sizeof signature) {
        auth_say(reason, "the token's signature is not %u bytes in base64url: the token may be cut, copy it again",
                 SIGNATURE_SIZE);
        return AUTH_MALFORMED;
    }
    const struct auth_key *issuer = issuer_of(claims, issuers, issuer_count);
    if (issuer == NULL) {
        auth_say(reason,
                 "token of %s is from issuer %.10s, not one of the %zu trusted here: add its .pub to identity.issuers "
                 "or mint with the right key",
                 whose(claims), all_in_alphabet(claims->issuer) ? claims->issuer : "unknown", issuer_count);
        return AUTH_REFUSED;
    }
    char *pem = NULL;
    enum auth_result result = auth_key_public_pem(issuer, &pem);
    if (result == AUTH_OK) result = pem[0] != '\0' ? libjwt_verify(token, size, pem) : AUTH_REFUSED;
    free(pem);
    if (result == AUTH_REFUSED)
        auth_say(reason, "token of %s was changed after it was signed: copy it again or mint a new one", whose(claims));
    if (result == AUTH_NO_MEMORY) auth_say(reason, "memory is short: try again");
    return result;
}

static enum auth_result check_times(const struct auth_claims *claims, int64_t now_s, char *reason) {
    if (now_s >= claims->expires_at_s) { /* RFC 7519 section 4.1.4: not on or after */
        auth_say(reason, "token of %s expired %s ago: mint a new one with hobnob token mint", whose(claims),
                 auth_words_for_seconds(now_s - claims->expires_at_s).text);
        return AUTH_REFUSED;
    }
    if (now_s < claims->not_before_s - AUTH_LEEWAY_S) {
        auth_say(reason, "token of %s begins to be valid in %s: wait, or set this host's clock right", whose(claims),
                 auth_words_for_seconds(claims->not_before_s - now_s).text);
        return AUTH_REFUSED;
    }
    return AUTH_OK;
}

static enum auth_result check_purpose(const char *token_audience, const struct auth_claims *claims, size_t size,
                                      const char *audience, char *reason) {
    if (strcmp(token_audience, audience) != 0) {
        const char *wanted = strncmp(audience, "hobnob:", 7) == 0 ? audience + 7 : audience;
        auth_say(reason, "token of %s is not for use as %s: mint one with hobnob token mint --%s", whose(claims),
                 audience, wanted);
        return AUTH_REFUSED;
    }
    if (strcmp(audience, AUTH_AUDIENCE_BROKER) != 0) return AUTH_OK;
    if (!claims->key_bound) {
        auth_say(reason, "token of %s is bound to no key: mint one with hobnob token mint --key", whose(claims));
        return AUTH_REFUSED;
    }
    if (size > AUTH_BROKER_TOKEN_MAX) {
        auth_say(reason, "token of %s has %zu bytes, and a broker's may have %u: mint one with fewer filters",
                 whose(claims), size, AUTH_BROKER_TOKEN_MAX);
        return AUTH_REFUSED;
    }
    return AUTH_OK;
}

enum auth_result auth_token_verify(const char *token, size_t size, const struct auth_key *const *issuers,
                                   size_t issuer_count, const char *audience, int64_t now_s, struct auth_claims *claims,
                                   char reason[160]) {
    struct parts parts;
    struct auth_claims read;
    enum auth_result result = split(token, size, &parts, reason);
    if (result == AUTH_OK) result = read_header(&parts, reason);
    if (result == AUTH_OK) result = read_claims(&parts, &read, reason);
    if (result != AUTH_OK) return result;

    result = check_signature(token, size, &parts, &read, issuers, issuer_count, reason);
    if (result == AUTH_OK) result = check_times(&read, now_s, reason);
    if (result == AUTH_OK) result = check_purpose(read.audience, &read, size, audience, reason);
    if (result == AUTH_OK)
        *claims = read;
    else
        auth_claims_deinit(&read);
    return result;
}
