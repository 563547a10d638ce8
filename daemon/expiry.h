/* When to say that our certificate runs out: nobody who is connected notices, and then nobody gets in any more. */
#ifndef DAEMON_EXPIRY_H
#define DAEMON_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#define EXPIRY_TEXT_MAX 200u

struct expiry {
    int64_t told_s; /* 0: not yet */
    bool told_expired;
};

/* True if text, one line, is to be logged now: once a day in the last quarter of the certificate's life, but not before
 * its last 14 days, and when it has expired. from_s and to_s, seconds since 1970, are its dates; to_s is 0 without one.
 */
bool expiry_due(struct expiry *expiry, int64_t from_s, int64_t to_s, int64_t now_s, char text[EXPIRY_TEXT_MAX]);

#endif
