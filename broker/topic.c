#include "broker/topic.h"

#include <string.h>

/* Size of the UTF-8 sequence at text, 0 if it is not well-formed (Unicode table 3-7) or U+0000. */
static size_t utf8_sequence(const unsigned char *text, size_t left) {
    unsigned char lead = text[0];
    unsigned char low = 0x80, high = 0xBF; /* range of the second byte */
    size_t size;

    if (lead == 0x00) return 0;
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) {
        size = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        size = 3;
        if (lead == 0xE0) low = 0xA0;  /* shorter forms exist below */
        if (lead == 0xED) high = 0x9F; /* surrogates above */
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        size = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F; /* U+10FFFF is the last */
    } else {
        return 0;
    }
    if (left < size || text[1] < low || text[1] > high) return 0;
    for (size_t i = 2; i < size; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    return size;
}

bool topic_utf8_valid(const char *text, size_t size) {
    const unsigned char *bytes = (const unsigned char *)text;

    for (size_t at = 0; at < size;) {
        size_t step = utf8_sequence(bytes + at, size - at);
        if (step == 0) return false;
        at += step;
    }
    return true;
}

size_t topic_levels(const char *text, size_t size) {
    size_t levels = 1;

    for (size_t i = 0; i < size; i++)
        levels += text[i] == '/';
    return levels;
}

static bool size_and_depth_valid(const char *text, size_t size) {
    return size > 0 && size <= TOPIC_SIZE_MAX && topic_levels(text, size) <= TOPIC_LEVELS_MAX;
}

bool topic_name_valid(const char *name, size_t size) {
    return size_and_depth_valid(name, size) && !topic_has_wildcard(name, size) && topic_utf8_valid(name, size);
}

bool topic_filter_valid(const char *filter, size_t size) {
    if (!size_and_depth_valid(filter, size) || !topic_utf8_valid(filter, size)) return false;
    for (size_t i = 0; i < size; i++) {
        if (filter[i] != '+' && filter[i] != '#') continue;
        if (i > 0 && filter[i - 1] != '/') return false;
        if (i + 1 < size && (filter[i] == '#' || filter[i + 1] != '/')) return false;
    }
    return true;
}

bool topic_has_wildcard(const char *filter, size_t size) {
    return size > 0 && (memchr(filter, '+', size) != NULL || memchr(filter, '#', size) != NULL);
}

bool topic_is_shared(const char *filter, size_t size) {
    return size >= 7 && memcmp(filter, "$share/", 7) == 0;
}

size_t topic_share_split(const char *filter, size_t size) {
    const char *name = filter + 7, *slash;
    size_t name_size, inner;

    if (!topic_is_shared(filter, size)) return 0;
    slash = memchr(name, '/', size - 7);
    if (slash == NULL) return 0;
    name_size = (size_t)(slash - name);
    if (name_size == 0 || topic_has_wildcard(name, name_size) || !topic_utf8_valid(name, name_size)) return 0;
    inner = 7 + name_size + 1;
    return topic_filter_valid(filter + inner, size - inner) ? inner : 0;
}

/* A filter is read level by level. "#" also matches its parent level, and no name is empty: so "#" means the same
 * as "+/#", and "/#" the same as "/+/#". Read that way, "#" stands for any number of further levels and never for
 * the first one, which makes the set operations below plain. */
enum level_kind { LEVEL_NAME, LEVEL_PLUS, LEVEL_REST, LEVEL_END };

struct level {
    enum level_kind kind;
    const char *text;
    size_t size;
};

struct levels {
    const char *at; /* NULL after the last level */
    const char *end;
    size_t depth;
    bool first_empty;
    bool widened;
};

static struct levels levels_of(const char *text, size_t size) {
    return (struct levels){.at = text, .end = text + size};
}

static struct level levels_next(struct levels *levels) {
    struct level level = {.kind = LEVEL_END};
    const char *slash;

    if (levels->at == NULL) return level;
    slash = memchr(levels->at, '/', (size_t)(levels->end - levels->at));
    level.text = levels->at;
    level.size = (size_t)((slash ? slash : levels->end) - levels->at);
    level.kind = LEVEL_NAME;
    if (level.size == 1 && level.text[0] == '+') level.kind = LEVEL_PLUS;
    if (level.size == 1 && level.text[0] == '#') {
        if (!levels->widened && (levels->depth == 0 || (levels->depth == 1 && levels->first_empty))) {
            levels->widened = true;
            levels->depth++;
            level.kind = LEVEL_PLUS;
            return level;
        }
        level.kind = LEVEL_REST;
    }
    if (levels->depth == 0) levels->first_empty = level.size == 0;
    levels->depth++;
    levels->at = slash ? slash + 1 : NULL;
    return level;
}

static bool levels_equal(const struct level *a, const struct level *b) {
    return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

static bool starts_with_dollar(const struct level *level) {
    return level->kind == LEVEL_NAME && level->size > 0 && level->text[0] == '$';
}

bool topic_filter_covers(const char *outer, size_t outer_size, const char *inner, size_t inner_size) {
    struct levels outer_levels = levels_of(outer, outer_size);
    struct levels inner_levels = levels_of(inner, inner_size);

    for (bool first = true;; first = false) {
        struct level o = levels_next(&outer_levels);
        struct level i = levels_next(&inner_levels);
        if (o.kind == LEVEL_REST) return true;
        if (i.kind == LEVEL_REST || i.kind == LEVEL_END || o.kind == LEVEL_END) return o.kind == i.kind;
        if (o.kind == LEVEL_PLUS) {
            if (first && starts_with_dollar(&i)) return false;
        } else if (i.kind != LEVEL_NAME || !levels_equal(&o, &i)) {
            return false;
        }
    }
}

bool topic_matches(const char *filter, size_t filter_size, const char *name, size_t name_size) {
    return topic_filter_covers(filter, filter_size, name, name_size);
}

bool topic_filters_intersect(const char *a, size_t a_size, const char *b, size_t b_size) {
    struct levels a_levels = levels_of(a, a_size);
    struct levels b_levels = levels_of(b, b_size);

    for (bool first = true;; first = false) {
        struct level x = levels_next(&a_levels);
        struct level y = levels_next(&b_levels);
        if (x.kind == LEVEL_REST || y.kind == LEVEL_REST) return true;
        if (x.kind == LEVEL_END || y.kind == LEVEL_END) return x.kind == y.kind;
        if (x.kind == LEVEL_NAME && y.kind == LEVEL_NAME) {
            if (!levels_equal(&x, &y)) return false;
        } else if (first && (starts_with_dollar(&x) || starts_with_dollar(&y))) {
            return false;
        }
    }
}
