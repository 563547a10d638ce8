/* When to say that our certificate or our token runs out: nobody who is connected notices, and then nobody gets in any
 * more, or we get in nowhere. */
#ifndef DAEMON_EXPIRY_H
#define DAEMON_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

#define EXPIRY_TEXT_MAX 200u

enum expiry_kind {
    EXPIRY_CERTIFICATE, /* said in the last quarter of its life, but not before its last 14 days */
    EXPIRY_TOKEN        /* in the last tenth */
};

enum expiry_state { EXPIRY_FAR, EXPIRY_NEAR, EXPIRY_OVER };

/* from_s and to_s, seconds since 1970, are its dates; to_s is 0 without one. */
enum expiry_state expiry_state(enum expiry_kind kind, int64_t from_s, int64_t to_s, int64_t now_s);

struct expiry {
    int64_t told_s; /* 0: not yet */
    bool told_expired;
};

/* True if text, one line, is to be logged now: once a day while its end is near, and when it has expired. */
bool expiry_due(struct expiry *expiry, enum expiry_kind kind, int64_t from_s, int64_t to_s, int64_t now_s,
                char text[EXPIRY_TEXT_MAX]);

#endif
