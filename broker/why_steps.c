#include "broker/why_steps.h"

#include "broker/topic.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LIST_NAMED_MAX = 3, LIST_NAME_MAX = 60 };

const char *why_stage_name(uint8_t stage) {
    static const struct {
        uint8_t stage;
        const char *name;
    } names[] = {{WHY_SILENCE, "silence"}, {WHY_QUEUE, "queue"},   {WHY_LINK, "link"},
                 {WHY_JOIN, "join"},       {WHY_ADVERT, "advert"}, {WHY_ROW, "row"},
                 {WHY_POLICY, "policy"},   {WHY_CLAIM, "claim"},   {WHY_SUBSCRIPTION, "subscription"},
                 {WHY_MEMBER, "member"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (stage >= names[i].stage) return names[i].name;
    return "topic";
}

/* C1 controls; and of Unicode what turns the writing round, parts lines or cannot be seen. */
static bool is_trick(const unsigned char *text, size_t size) {
    if (size >= 2 && text[0] == 0xc2) return text[1] < 0xa0;
    if (size < 3 || text[0] < 0xe2) return false;
    return (text[0] == 0xe2 && text[1] == 0x80 && ((text[2] >= 0x8b && text[2] <= 0x8f) || text[2] >= 0xa8)) ||
           (text[0] == 0xe2 && text[1] == 0x81 && text[2] >= 0xa0) ||
           (text[0] == 0xef && text[1] == 0xbb && text[2] == 0xbf);
}

/* Bytes of the character there that is to be shown; 0 if it is none: a control character, or no UTF-8. */
static size_t shown(const char *text, size_t size) {
    unsigned char first = (unsigned char)text[0];
    if (first < ' ' || first == 0x7f || is_trick((const unsigned char *)text, size)) return 0;
    for (size_t bytes = 1; bytes <= 4 && bytes <= size; bytes++)
        if (topic_utf8_valid(text, bytes)) return bytes;
    return 0;
}

/* Texts end up on terminals, and hold what clients and other brokers chose. */
static size_t clean(char *out, size_t room, const char *text, size_t size) {
    size_t at = 0, bytes;
    for (size_t i = 0; i<size; i += bytes> 0 ? bytes : 1) {
        bytes = shown(text + i, size - i);
        if (at + (bytes > 0 ? bytes : 1) >= room) break;
        memcpy(out + at, bytes > 0 ? text + i : "?", bytes > 0 ? bytes : 1);
        at += bytes > 0 ? bytes : 1;
    }
    out[at] = '\0';
    return at;
}

void why_add(struct why_steps *steps, uint8_t stage, bool stops, const char *text, size_t size) {
    assert(steps->count < WHY_STEPS_MAX); /* each teller keeps to WHY_TOLD_MAX */
    struct why_step *step = &steps->all[steps->count++];
    step->stage = stage;
    step->stops = stops;
    snprintf(step->broker, sizeof step->broker, "%s", steps->teller);
    clean(step->text, sizeof step->text, text, size);
}

static void add(struct why_steps *steps, enum why_stage stage, bool stops, const char *format, va_list arguments) {
    char text[WHY_TEXT_MAX];
    vsnprintf(text, sizeof text, format, arguments);
    why_add(steps, (uint8_t)stage, stops, text, strlen(text));
}

void why_passes(struct why_steps *steps, enum why_stage stage, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(steps, stage, false, format, arguments);
    va_end(arguments);
}

void why_stops(struct why_steps *steps, enum why_stage stage, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(steps, stage, true, format, arguments);
    va_end(arguments);
}

static bool goes_after(const struct why_step *a, const struct why_step *b, const char *first) {
    if (a->stage != b->stage) return a->stage > b->stage;
    if (a->stops != b->stops) return a->stops;
    if (a->stage == WHY_MEMBER) return false; /* what is known here was told before the others were asked */
    return strcmp(a->broker, first) != 0 && strcmp(b->broker, first) == 0;
}

void why_order(struct why_steps *steps, const char *first) {
    for (size_t i = 1; i < steps->count; i++) {
        struct why_step step = steps->all[i];
        size_t at = i;
        for (; at > 0 && goes_after(&steps->all[at - 1], &step, first); at--)
            steps->all[at] = steps->all[at - 1];
        steps->all[at] = step;
    }
    for (size_t i = 0; i < steps->count; i++)
        if (steps->all[i].stops) steps->count = i + 1;
}

struct why_span why_span(uint64_t ms) {
    struct why_span span;
    unsigned long long s = ms / 1000;
    if (s < 10)
        snprintf(span.text, sizeof span.text, "%llu.%llu s", s, (unsigned long long)(ms % 1000 / 100));
    else if (s < 120)
        snprintf(span.text, sizeof span.text, "%llu s", s);
    else if (s < 7200)
        snprintf(span.text, sizeof span.text, "%llu min", s / 60);
    else
        snprintf(span.text, sizeof span.text, "%llu h", s / 3600);
    return span;
}

void why_list_add(struct why_list *list, const char *name, size_t size) {
    if (list->named == LIST_NAMED_MAX) {
        list->more++;
        return;
    }
    size_t at = strlen(list->text);
    if (list->named++ > 0) at += (size_t)snprintf(list->text + at, sizeof list->text - at, ", ");
    at += clean(list->text + at, LIST_NAME_MAX, name, size);
    if (size >= LIST_NAME_MAX) snprintf(list->text + at, sizeof list->text - at, "...");
}

const char *why_list_text(struct why_list *list) {
    size_t at = strlen(list->text);
    if (list->more > 0) snprintf(list->text + at, sizeof list->text - at, " and %zu more", list->more);
    list->more = 0;
    return list->text;
}
