#include "broker/why_near.h"

#include <string.h>

enum { LOOKED_AT_MAX = 4096 }; /* peers may ask, and this is the dearest part of an answer */

/* What is left of a name or filter; text NULL: nothing. */
struct rest {
    const char *text;
    size_t size;
};

static struct rest level_of(struct rest rest) {
    const char *slash = memchr(rest.text, '/', rest.size);
    if (slash) rest.size = (size_t)(slash - rest.text);
    return rest;
}

static struct rest after_level(struct rest rest) {
    const char *slash = memchr(rest.text, '/', rest.size);
    if (!slash) return (struct rest){NULL, 0};
    return (struct rest){slash + 1, rest.size - (size_t)(slash + 1 - rest.text)};
}

static bool is(struct rest level, const char *word) {
    return level.size == strlen(word) && memcmp(level.text, word, level.size) == 0;
}

static bool level_fits(struct rest filter, struct rest topic) {
    return is(filter, "+") || (filter.size == topic.size && memcmp(filter.text, topic.text, filter.size) == 0);
}

static bool fits(struct rest filter, struct rest topic) {
    while (filter.text && topic.text) {
        struct rest level = level_of(filter);
        if (is(level, "#")) return true;
        if (!level_fits(level, level_of(topic))) return false;
        filter = after_level(filter);
        topic = after_level(topic);
    }
    return !topic.text && (!filter.text || is(filter, "#"));
}

static bool is_near(struct rest filter, struct rest topic, struct why_near *near) {
    near->level = 1;
    while (filter.text && topic.text && !is(level_of(filter), "#") && level_fits(level_of(filter), level_of(topic))) {
        filter = after_level(filter);
        topic = after_level(topic);
        near->level++;
    }
    struct rest filter_after = filter.text ? after_level(filter) : filter,
                topic_after = topic.text ? after_level(topic) : topic;
    if (filter.text && topic.text && fits(filter_after, topic_after))
        near->change = WHY_OTHER;
    else if (topic.text && fits(filter, topic_after))
        near->change = WHY_MORE;
    else if (filter.text && fits(filter_after, topic))
        near->change = WHY_LESS;
    else
        return false;
    return true;
}

bool why_near(const struct federation *federation, const char *topic, size_t size, struct why_near *near) {
    unsigned looked_at = 0;
    for (const struct named *named = federation->interests.first; named && looked_at < LOOKED_AT_MAX;
         named = named->next, looked_at++) {
        near->interest = (const struct interest *)(const void *)named;
        const struct filter_text filter = interest_filter(near->interest);
        if (near->interest->count > 0 &&
            is_near((struct rest){filter.text, filter.size}, (struct rest){topic, size}, near))
            return true;
    }
    return false;
}
