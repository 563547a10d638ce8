/* Tokens: JWT (RFC 7519) signed with ES256, bound to a key for brokers (RFC 7800, cnf.jkt as in RFC 9449). TOKENS.md
 * has the claims.
 *
 * The algorithm is pinned: a header with anything but ES256 is refused before any signature is looked at, "none" and
 * HMAC included.
 */
#ifndef AUTH_TOKEN_H
#define AUTH_TOKEN_H

#include "auth/keys.h"

#define AUTH_TOKEN_MAX 8192u       /* bytes of a token we look at */
#define AUTH_BROKER_TOKEN_MAX 900u /* bytes of a broker's: it must fit into one gossip datagram */
#define AUTH_FILTERS_MAX 64u       /* per list */
#define AUTH_LEEWAY_S 60           /* clocks differ: accepted before nbf, not after exp */

#define AUTH_AUDIENCE_BROKER "hobnob:broker"
#define AUTH_AUDIENCE_CLIENT "hobnob:client"
#define AUTH_AUDIENCE_ADMIN "hobnob:admin"

struct auth_filters {
    size_t count;
    char *items[AUTH_FILTERS_MAX]; /* MQTT filters (or broker names), owned */
};

struct auth_claims {
    char *issuer;                                    /* iss: thumbprint of the issuer's key in base64url */
    char *subject;                                   /* sub: the broker's or client's name */
    char *audience;                                  /* aud: one of the three above */
    char *token_id;                                  /* jti */
    int64_t issued_at_s, not_before_s, expires_at_s; /* seconds since 1970; not_before 0 if absent */
    bool key_bound;
    uint8_t key_thumbprint[AUTH_THUMBPRINT_SIZE]; /* cnf.jkt */
    struct auth_filters blocked_publish_topics, blocked_subscribe_topics, blocked_brokers, allowed_publish_topics,
        allowed_subscribe_topics;
};
void auth_claims_deinit(struct auth_claims *claims);

/* A name of a broker: 1 to 63 of A-Z a-z 0-9 . _ - with a letter or digit first, so that it is safe as a file name and
 * as an argument. */
bool auth_name_valid(const char *name, size_t size);

/* A token for these claims, signed by the issuer's private key; *token is freed by the caller. iss is always the
 * thumbprint of the issuer's key, claims->issuer is not looked at. entropy makes jti if claims->token_id is NULL.
 * AUTH_MALFORMED: a claim that no verifier would read. AUTH_REFUSED: a broker's token without a key, or larger than
 * AUTH_BROKER_TOKEN_MAX. */
enum auth_result auth_token_mint(const struct auth_claims *claims, const struct auth_key *issuer,
                                 const uint8_t entropy[16], char **token);
/* The same, with the reason when it is not AUTH_OK. */
enum auth_result auth_token_mint_saying(const struct auth_claims *claims, const struct auth_key *issuer,
                                        const uint8_t entropy[16], char **token, char reason[160]);

/* In what follows a token is its bytes alone, without the line break that ends its file. */

/* Reads without checking the signature: for listings only. reason (may be NULL) says in a sentence what is wrong. */
enum auth_result auth_token_decode(const char *token, size_t size, struct auth_claims *claims, char reason[160]);

/* Everything a verifier must check, in this order: size, shape, alg, claims readable, signature by the one of the
 * issuers that iss names, times at now_s, audience, and for brokers that a key is bound (that it is the right one is
 * the caller's to compare). AUTH_REFUSED or AUTH_MALFORMED with a reason that names cause and remedy. claims is
 * initialised on AUTH_OK only. */
enum auth_result auth_token_verify(const char *token, size_t size, const struct auth_key *const *issuers,
                                   size_t issuer_count, const char *audience, int64_t now_s, struct auth_claims *claims,
                                   char reason[160]);

#endif
