#include "daemon/expiry.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY_S 86400
#define WARNED_MAX_S (14 * DAY_S)
#define REMEDY "renew it, then send hobnobd a SIGHUP"

bool expiry_due(struct expiry *expiry, int64_t from_s, int64_t to_s, int64_t now_s, char text[EXPIRY_TEXT_MAX]) {
    const int64_t left_s = to_s - now_s, quarter_s = (to_s - from_s) / 4;
    const bool expired = left_s < 0;
    if (to_s == 0 || left_s > WARNED_MAX_S || left_s > quarter_s) {
        *expiry = (struct expiry){0}; /* it was renewed */
        return false;
    }
    const int64_t since_s = now_s - expiry->told_s;
    if (expired == expiry->told_expired && expiry->told_s != 0 && since_s >= 0 && since_s < DAY_S) return false;
    *expiry = (struct expiry){.told_s = now_s, .told_expired = expired};
    if (expired)
        snprintf(text, EXPIRY_TEXT_MAX, "the one in tls.cert has expired, and clients refuse it: " REMEDY);
    else
        snprintf(text, EXPIRY_TEXT_MAX,
                 "the one in tls.cert expires in %" PRIi64 " %s, and then clients will refuse it: " REMEDY,
                 left_s >= 2 * DAY_S ? left_s / DAY_S : left_s / 3600, left_s >= 2 * DAY_S ? "days" : "hours");
    return true;
}
