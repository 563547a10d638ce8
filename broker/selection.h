/* What is retained that one of several filters matches: found filter by filter, or, where these overlap so much that
 * this would mean to see the store again and again, topic by topic.
 */
#ifndef BROKER_SELECTION_H
#define BROKER_SELECTION_H

#include "broker/retained.h"

struct selection_filter {
    const char *text; /* borrowed */
    size_t size;
};

/* Zero at first. */
struct selection {
    struct selection_filter *filters;
    size_t count, capacity;
    bool failed; /* memory was short: some are missing */
};

void selection_add(struct selection *selection, const char *filter, size_t size);
void selection_deinit(struct selection *selection);

/* Shows each message and tombstone that a filter matches, some of them again. Returning false ends the walk. False if
 * it ended so, or memory is short. */
bool selection_walk(const struct selection *selection, struct retained *retained, uint64_t now_ms,
                    retained_on_message *on_message, void *context);
/* The same, looking at so many topics at most; false if there would have been more. */
bool selection_glance(const struct selection *selection, struct retained *retained, uint64_t now_ms, uint64_t budget,
                      retained_on_message *on_message, void *context);

#endif
