/* Section 4.7 of MQTT 5.0 written down as plainly as it will go: levels in arrays, one rule a line. Slow, and right. */
#ifndef TESTS_FUZZ_NAIVE_TOPICS_H
#define TESTS_FUZZ_NAIVE_TOPICS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NAIVE_LEVELS_MAX 160u

struct naive {
    size_t count;
    struct {
        const char *text;
        size_t size;
    } levels[NAIVE_LEVELS_MAX];
};

/* False if there are more levels than fit. */
static inline bool naive_split(const char *text, size_t size, struct naive *out) {
    out->count = 0;
    for (size_t start = 0, at = 0; at <= size; at++) {
        if (at < size && text[at] != '/') continue;
        if (out->count == NAIVE_LEVELS_MAX) return false;
        out->levels[out->count].text = text + start;
        out->levels[out->count].size = at - start;
        out->count++;
        start = at + 1;
    }
    return true;
}

static inline bool naive_is(const struct naive *split, size_t level, char sign) {
    return split->levels[level].size == 1 && split->levels[level].text[0] == sign;
}

static inline bool naive_equal(const struct naive *a, const struct naive *b, size_t level) {
    return a->levels[level].size == b->levels[level].size &&
           memcmp(a->levels[level].text, b->levels[level].text, a->levels[level].size) == 0;
}

static inline bool naive_is_reserved(const struct naive *name) {
    return name->levels[0].size > 0 && name->levels[0].text[0] == '$';
}

/* # and + alone in their levels, # in the last one only. */
static inline bool naive_filter_is_well_formed(const struct naive *filter) {
    for (size_t i = 0; i < filter->count; i++) {
        const char *text = filter->levels[i].text;
        size_t size = filter->levels[i].size;
        if ((memchr(text, '#', size) != NULL || memchr(text, '+', size) != NULL) && size != 1) return false;
        if (naive_is(filter, i, '#') && i + 1 != filter->count) return false;
    }
    return true;
}

static inline bool naive_matches(const struct naive *filter, const struct naive *name) {
    if (naive_is_reserved(name) && (naive_is(filter, 0, '#') || naive_is(filter, 0, '+'))) return false;
    for (size_t i = 0; i < filter->count; i++) {
        if (naive_is(filter, i, '#')) return true;
        if (i == name->count) return false;
        if (!naive_is(filter, i, '+') && !naive_equal(filter, name, i)) return false;
        /* sport/# matches sport too. */
        if (i + 1 == name->count && i + 2 == filter->count && naive_is(filter, i + 1, '#')) return true;
    }
    return filter->count == name->count;
}

#endif
