/* Names and filters against a naive matcher. The input is a list of texts, each behind a line's end; every one is tried
 * as a filter on every one as a name, and pairs of filters are tried on all of the names. */
#include "broker/topic.h"
#include "tests/fuzz/naive_topics.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXTS_MAX 12

struct text {
    char *bytes; /* of exactly this size, so that a read past its end is seen */
    size_t size;
    bool is_name, is_filter;
    struct naive split;
};

static void read_text(struct text *text, const uint8_t *bytes, size_t size) {
    text->bytes = malloc(size + (size == 0));
    assert(text->bytes != NULL);
    if (size > 0) memcpy(text->bytes, bytes, size);
    text->size = size;
    text->is_name = topic_name_valid(text->bytes, size);
    text->is_filter = topic_filter_valid(text->bytes, size);
    bool fits = naive_split(text->bytes, size, &text->split) && text->split.count <= TOPIC_LEVELS_MAX;
    bool is_text = size > 0 && fits && topic_utf8_valid(text->bytes, size);
    bool has_sign = size > 0 && (memchr(text->bytes, '#', size) != NULL || memchr(text->bytes, '+', size) != NULL);
    assert(text->is_name == (is_text && !has_sign));
    assert(text->is_filter == (is_text && naive_filter_is_well_formed(&text->split)));
    if (text->is_filter) assert(topic_has_wildcard(text->bytes, size) == has_sign);
    assert(topic_is_shared(text->bytes, size) == (size >= 7 && memcmp(text->bytes, "$share/", 7) == 0));
}

static bool matches(const struct text *filter, const struct text *name) {
    return topic_matches(filter->bytes, filter->size, name->bytes, name->size);
}

/* What covering and intersecting mean, said by the names at hand; and what follows from them by themselves. */
static void try_pair(const struct text *a, const struct text *b, const struct text *texts, size_t count) {
    bool covers = topic_filter_covers(a->bytes, a->size, b->bytes, b->size);
    bool intersect = topic_filters_intersect(a->bytes, a->size, b->bytes, b->size);
    assert(intersect == topic_filters_intersect(b->bytes, b->size, a->bytes, a->size));
    if (a == b) assert(covers && intersect);
    for (size_t i = 0; i < count; i++) {
        if (!texts[i].is_name) continue;
        if (covers && matches(b, &texts[i])) assert(matches(a, &texts[i]));
        if (matches(a, &texts[i]) && matches(b, &texts[i])) assert(intersect);
    }
    /* A name is matched by itself alone as a filter. */
    if (b->is_name) assert(covers == matches(a, b) && intersect == covers);
    if (covers && topic_filter_covers(b->bytes, b->size, a->bytes, a->size))
        for (size_t i = 0; i < count; i++)
            assert(!texts[i].is_name || matches(a, &texts[i]) == matches(b, &texts[i]));
}

/* A name that b matches, made of it: each + and # becomes a level that stands nowhere else. If a does not cover b, one
 * of these must show it. */
static void try_witness(const struct text *a, const struct text *b) {
    static const char *const ends[] = {"", "/~", "/~/~", "/~/~/~"};
    bool covers = topic_filter_covers(a->bytes, a->size, b->bytes, b->size), shown = false;
    if (b->split.count >= TOPIC_LEVELS_MAX - 4 || memchr(b->bytes, '~', b->size) != NULL ||
        memchr(a->bytes, '~', a->size) != NULL)
        return;
    bool has_end = naive_is(&b->split, b->split.count - 1, '#');
    for (size_t i = 0; i < (has_end ? 4 : 1); i++) {
        char *name = malloc(b->size + 8);
        assert(name != NULL);
        size_t size = has_end ? (b->size >= 2 ? b->size - 2 : 0) : b->size;
        memcpy(name, b->bytes, size);
        memcpy(name + size, ends[i], strlen(ends[i]));
        size += strlen(ends[i]);
        if (has_end && b->size < 2 && size > 0) memmove(name, name + 1, --size); /* # alone: no level before it */
        for (size_t at = 0; at < size; at++)
            if (name[at] == '+') name[at] = '~';
        if (size > 0 && topic_name_valid(name, size)) {
            assert(topic_matches(b->bytes, b->size, name, size));
            bool also = topic_matches(a->bytes, a->size, name, size);
            if (covers) assert(also);
            shown = shown || !also;
        }
        free(name);
    }
    /* A + may stand for an empty level, and after # may come as many as fit; the longest a that could tell the
     * difference has no more levels than b and the ends together. */
    if (!covers && a->split.count <= b->split.count + 2) assert(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text texts[TEXTS_MAX];
    size_t count = 0;
    while (size > 0 && count < TEXTS_MAX) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t length = end != NULL ? (size_t)(end - data) : size;
        read_text(&texts[count++], data, length);
        data += length + (end != NULL), size -= length + (end != NULL);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            if (!texts[i].is_filter) continue;
            if (texts[j].is_name)
                assert(matches(&texts[i], &texts[j]) == naive_matches(&texts[i].split, &texts[j].split));
            if (!texts[j].is_filter) continue;
            try_pair(&texts[i], &texts[j], texts, count);
            try_witness(&texts[i], &texts[j]);
        }
    for (size_t i = 0; i < count; i++)
        free(texts[i].bytes);
    return 0;
}
