/* The first part of a token: what algorithm it claims. Looked at before anything else, because libjwt believes it. */
#ifndef AUTH_HEADER_H
#define AUTH_HEADER_H

#include "auth/keys.h"

/* json is the decoded header. AUTH_OK only for alg "ES256" and nothing that would change its meaning (RFC 7515
 * section 4.1.11, crit). */
enum auth_result auth_header_check(const char *json, size_t size, char *reason);

#endif
