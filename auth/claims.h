/* The second part of a token: claims as JSON, both ways. TOKENS.md has the table. */
#ifndef AUTH_CLAIMS_H
#define AUTH_CLAIMS_H

#include "auth/token.h"

/* Strict: types checked, no member twice, lists bounded, filters valid. claims is initialised on AUTH_OK only. reason
 * may be NULL. */
enum auth_result auth_claims_parse(const char *json, size_t size, struct auth_claims *claims, char *reason);
/* JSON text for these claims with iss and jti as given; *json is freed by the caller with free(). */
enum auth_result auth_claims_print(const struct auth_claims *claims, const char *issuer, const char *token_id,
                                   char **json);

#endif
