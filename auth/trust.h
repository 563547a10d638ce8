/* Who is a broker of this federation: our key, our token, the issuers we believe, and the time. What the cores'
 * questions are answered from. */
#ifndef AUTH_TRUST_H
#define AUTH_TRUST_H

#include "auth/token.h"

struct auth_trust {
    const struct auth_key *key;            /* our pair; borrowed */
    const struct auth_key *const *issuers; /* borrowed */
    size_t issuer_count;
    int64_t wall_s; /* the caller's last reading of the wall clock, seconds since 1970 */
};

struct auth_verdict {
    bool allowed;
    uint8_t id[16]; /* first bytes of the thumbprint */
    /* The token's subject. Refused: the same if all but the time is good, else with '?' behind it, since only the token
     * itself says so; empty if there is none. */
    char name[64];
    uint64_t valid_for_ms;
    char reason[160];
};

/* The token must be valid, for brokers, and bound to this very key. A name longer than 63 bytes is refused. Nothing is
 * remembered: the caller asks when a token is new, not per datagram. */
void auth_trust_check(const struct auth_trust *trust, const uint8_t key_thumbprint[AUTH_THUMBPRINT_SIZE],
                      const char *token, size_t size, struct auth_verdict *verdict);
/* The same for a key given as its point. */
void auth_trust_check_point(const struct auth_trust *trust, const uint8_t point[AUTH_PUBLIC_KEY_SIZE],
                            const char *token, size_t size, struct auth_verdict *verdict);

#endif
