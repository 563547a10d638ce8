/* Keys and tokens of a simulated federation: all real, made from the seed. */
#ifndef SIM_CREDENTIALS_H
#define SIM_CREDENTIALS_H

#include "auth/trust.h"
#include "tests/sim/dice.h"

struct auth_key *credentials_key(struct dice *dice);
void credentials_ring(struct dice *dice, struct auth_ring *ring);

/* What is wrong with a token; see the list of issue "First light". */
enum credentials_fault {
    CREDENTIALS_GOOD,
    CREDENTIALS_EXPIRED,
    CREDENTIALS_OTHER_ISSUER,
    CREDENTIALS_OTHER_KEY,      /* bound to a key that its holder does not have */
    CREDENTIALS_HMAC,           /* HS256 with the issuer's public key (PEM) as secret */
    CREDENTIALS_NO_SIGNATURE,   /* alg none */
    CREDENTIALS_CLIENT_AUDIENCE /* good, but for clients */
};

/* A broker's token for name and key at this time, good for valid_s seconds. Freed by the caller. */
char *credentials_token(struct dice *dice, const struct auth_key *issuer, const char *name, const struct auth_key *key,
                        int64_t now_s, int64_t valid_s, enum credentials_fault fault);

#endif
