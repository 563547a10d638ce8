#include "daemon/expiry.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY_S 86400

static const struct {
    int64_t share, max_s; /* near: the last one of so many parts of its life, and not more than that */
    const char *which, *who, *remedy;
} kinds[] = {
    [EXPIRY_CERTIFICATE] = {4, 14 * DAY_S, "the one in tls.cert", "clients", "renew it, then send hobnobd a SIGHUP"},
    [EXPIRY_TOKEN] = {10, INT64_MAX, "ours, of identity.token,", "other brokers",
                      "mint one with hobnob token mint, put it there and restart hobnobd"},
};

enum expiry_state expiry_state(enum expiry_kind kind, int64_t from_s, int64_t to_s, int64_t now_s) {
    const int64_t left_s = to_s - now_s;
    if (to_s == 0 || left_s > kinds[kind].max_s || left_s > (to_s - from_s) / kinds[kind].share) return EXPIRY_FAR;
    return left_s < 0 ? EXPIRY_OVER : EXPIRY_NEAR;
}

static void how_long(int64_t left_s, char *text, size_t size) {
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{DAY_S, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};
    size_t i = 0;
    while (i + 1 < sizeof(units) / sizeof(units[0]) && left_s < 2 * units[i].seconds)
        i++;
    snprintf(text, size, "%" PRIi64 " %s", left_s / units[i].seconds, units[i].name);
}

bool expiry_due(struct expiry *expiry, enum expiry_kind kind, int64_t from_s, int64_t to_s, int64_t now_s,
                char text[EXPIRY_TEXT_MAX]) {
    const enum expiry_state state = expiry_state(kind, from_s, to_s, now_s);
    const bool expired = state == EXPIRY_OVER;
    char left[32];
    if (state == EXPIRY_FAR) {
        *expiry = (struct expiry){0}; /* it was renewed */
        return false;
    }
    const int64_t since_s = now_s - expiry->told_s;
    if (expired == expiry->told_expired && expiry->told_s != 0 && since_s >= 0 && since_s < DAY_S) return false;
    *expiry = (struct expiry){.told_s = now_s, .told_expired = expired};
    how_long(to_s - now_s, left, sizeof(left));
    if (expired)
        snprintf(text, EXPIRY_TEXT_MAX, "%s has expired, and %s refuse it: %s", kinds[kind].which, kinds[kind].who,
                 kinds[kind].remedy);
    else
        snprintf(text, EXPIRY_TEXT_MAX, "%s expires in %s, and then %s will refuse it: %s", kinds[kind].which, left,
                 kinds[kind].who, kinds[kind].remedy);
    return true;
}
