/* Times and durations as people write and read them. */
#ifndef TOOLS_WHEN_H
#define TOOLS_WHEN_H

#include <stdbool.h>
#include <stdint.h>

struct when_text {
    char text[64];
};

/* "2027-01-31", "2027-01-31T12:00:00Z" (both UTC) or seconds since 1970. */
bool when_parse_time(const char *text, int64_t *time_s);
/* An end: a duration from now_s, or a time. */
bool when_parse_end(const char *text, int64_t now_s, int64_t *time_s);
int64_t when_now(void);

/* "2027-01-31 12:00:00 UTC" */
struct when_text when_time(int64_t time_s);
/* "in 90 d", "2 h ago" */
struct when_text when_relative(int64_t time_s, int64_t now_s);

#endif
