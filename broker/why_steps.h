/* Inside broker/: a list of steps, and the texts in them. */
#ifndef BROKER_WHY_STEPS_H
#define BROKER_WHY_STEPS_H

#include "broker/why.h"

struct why_steps {
    const char *teller; /* borrowed: who says what is added */
    size_t count;
    struct why_step all[WHY_STEPS_MAX];
};

void why_passes(struct why_steps *steps, enum why_stage stage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void why_stops(struct why_steps *steps, enum why_stage stage, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with a text as it came from a peer. */
void why_add(struct why_steps *steps, uint8_t stage, bool stops, const char *text, size_t size);
/* Puts them in order of stages, those that stop last in theirs and those of this broker first, and drops what is behind
 * the first that stops. */
void why_order(struct why_steps *steps, const char *first);

/* A span of time for people: "0.4 s", "12 s", "35 min", "5 h". */
struct why_span {
    char text[24];
};
struct why_span why_span(uint64_t ms);

/* Names of filters, the first few and how many more. */
struct why_list {
    char text[256];
    size_t named, more;
};
void why_list_add(struct why_list *list, const char *name, size_t size);
/* The whole list; good as long as it. */
const char *why_list_text(struct why_list *list);

#endif
