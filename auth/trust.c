#include "auth/trust.h"

#include <string.h>

#include "auth/pair.h"
#include "auth/reason.h"

/* One that an issuer has signed for this key, and whose time is over. */
static bool is_merely_over(const struct auth_trust *trust, const uint8_t key_thumbprint[AUTH_THUMBPRINT_SIZE],
                           const char *token, size_t size, const struct auth_claims *claims) {
    struct auth_claims checked;
    char reason[160];
    if (claims->expires_at_s > trust->wall_s || !claims->key_bound ||
        memcmp(claims->key_thumbprint, key_thumbprint, AUTH_THUMBPRINT_SIZE) != 0 ||
        auth_token_verify(token, size, trust->issuers, trust->issuer_count, AUTH_AUDIENCE_BROKER,
                          claims->expires_at_s - 1, &checked, reason) != AUTH_OK)
        return false;
    auth_claims_deinit(&checked);
    return true;
}

static void name_refused(const struct auth_trust *trust, const uint8_t key_thumbprint[AUTH_THUMBPRINT_SIZE],
                         const char *token, size_t size, struct auth_verdict *verdict) {
    struct auth_claims claims;
    char reason[160];
    if (auth_token_decode(token, size, &claims, reason) != AUTH_OK) return;
    if (!auth_name_valid(claims.subject, strlen(claims.subject)))
        verdict->name[0] = '\0';
    else if (is_merely_over(trust, key_thumbprint, token, size, &claims))
        snprintf(verdict->name, sizeof verdict->name, "%.63s", claims.subject);
    else
        snprintf(verdict->name, sizeof verdict->name, "%.62s?", claims.subject);
    auth_claims_deinit(&claims);
}

void auth_trust_check(const struct auth_trust *trust, const uint8_t key_thumbprint[AUTH_THUMBPRINT_SIZE],
                      const char *token, size_t size, struct auth_verdict *verdict) {
    memset(verdict, 0, sizeof *verdict);
    memcpy(verdict->id, key_thumbprint, sizeof verdict->id);

    struct auth_claims claims;
    if (auth_token_verify(token, size, trust->issuers, trust->issuer_count, AUTH_AUDIENCE_BROKER, trust->wall_s,
                          &claims, verdict->reason) != AUTH_OK) {
        name_refused(trust, key_thumbprint, token, size, verdict);
        return;
    }
    if (strlen(claims.subject) >= sizeof verdict->name) {
        auth_say(verdict->reason, "the token's name has more than %zu bytes: mint one with a shorter name",
                 sizeof verdict->name - 1);
    } else if (memcmp(claims.key_thumbprint, key_thumbprint, AUTH_THUMBPRINT_SIZE) != 0) {
        auth_say(verdict->reason,
                 "token of %s is bound to another key: copy its .key along, or mint one with hobnob token mint --key",
                 claims.subject);
        snprintf(verdict->name, sizeof verdict->name, "%.62s?", claims.subject);
    } else {
        verdict->allowed = true;
        memcpy(verdict->name, claims.subject, strlen(claims.subject) + 1);
        verdict->valid_for_ms = (uint64_t)(claims.expires_at_s - trust->wall_s) * 1000u;
    }
    auth_claims_deinit(&claims);
}

void auth_trust_check_point(const struct auth_trust *trust, const uint8_t point[AUTH_PUBLIC_KEY_SIZE],
                            const char *token, size_t size, struct auth_verdict *verdict) {
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    if (point[0] == 4 && auth_point_thumbprint(point, thumbprint)) {
        auth_trust_check(trust, thumbprint, token, size, verdict);
        return;
    }
    memset(verdict, 0, sizeof *verdict);
    auth_say(verdict->reason, point[0] == 4
                                  ? "memory is short: try again"
                                  : "the key is not an uncompressed point on P-256: make one with hobnob key new");
}
