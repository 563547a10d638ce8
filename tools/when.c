#include "when.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY_S INT64_C(86400)
#define DURATION_MAX_S (100 * 365 * DAY_S)
#define TIME_MAX_S INT64_C(253402300799) /* the end of the year 9999 */

static bool parse_digits(const char *text, char **end, int64_t *value) {
    *value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (*value > TIME_MAX_S) return false;
        *value = *value * 10 + (*at - '0');
    }
    *end = (char *)(uintptr_t)at;
    return at != text;
}

/* "90d", "12h", "30min", "45s", "2w", "1y" (365 days): seconds, 1 to 100 years. */
static bool parse_duration(const char *text, int64_t *seconds) {
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", DAY_S}, {"w", 7 * DAY_S}, {"y", 365 * DAY_S}};
    char *unit;
    int64_t value;
    if (!parse_digits(text, &unit, &value) || value == 0) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].unit) != 0) continue;
        if (value > DURATION_MAX_S / units[i].seconds) return false;
        *seconds = value * units[i].seconds;
        return true;
    }
    return false;
}

bool when_parse_time(const char *text, int64_t *time_s) {
    char *end;
    int64_t value;
    if (parse_digits(text, &end, &value) && *end == '\0' && value <= TIME_MAX_S) {
        *time_s = value;
        return true;
    }
    static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S UTC"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tm parts = {0};
        const char *rest = strptime(text, formats[i], &parts);
        if (rest == NULL || *rest != '\0') continue;
        int day = parts.tm_mday;
        int64_t time = timegm(&parts);
        /* timegm makes 31 February a day of March. */
        if (parts.tm_mday != day || time < 0 || time > TIME_MAX_S) return false;
        *time_s = time;
        return true;
    }
    return false;
}

bool when_parse_end(const char *text, int64_t now_s, int64_t *time_s) {
    int64_t seconds;
    if (parse_duration(text, &seconds)) {
        *time_s = now_s + seconds;
        return *time_s <= TIME_MAX_S;
    }
    /* Bare digits are left out: 90 would be a minute and a half of 1970. */
    return strchr(text, '-') != NULL && when_parse_time(text, time_s);
}

int64_t when_now(void) {
    return time(NULL);
}

struct when_text when_time(int64_t time_s) {
    struct when_text when;
    struct tm parts;
    time_t time = (time_t)time_s;
    if (gmtime_r(&time, &parts) == NULL || strftime(when.text, sizeof when.text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        snprintf(when.text, sizeof when.text, "%lld s after 1970", (long long)time_s);
    return when;
}

struct when_text when_relative(int64_t time_s, int64_t now_s) {
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{DAY_S, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    struct when_text when;
    int64_t away = time_s > now_s ? time_s - now_s : now_s - time_s;
    size_t i = 0;
    while (i < 3 && away < 2 * units[i].seconds)
        i++;
    snprintf(when.text, sizeof when.text, time_s > now_s ? "in %lld %s" : "%lld %s ago",
             (long long)(away / units[i].seconds), units[i].unit);
    if (time_s == now_s) snprintf(when.text, sizeof when.text, "now");
    return when;
}
