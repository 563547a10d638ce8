/* Inside broker/: a filter that was perhaps meant to match a topic. */
#ifndef BROKER_WHY_NEAR_H
#define BROKER_WHY_NEAR_H

#include "broker/interest.h"

/* What to do to one level of the topic, that the filter matches. */
enum why_change {
    WHY_OTHER, /* replace it */
    WHY_MORE,  /* leave it out */
    WHY_LESS   /* put one more before it */
};
struct why_near {
    const struct interest *interest;
    enum why_change change;
    size_t level; /* of the topic, from 1 */
};

/* Of the filters that clients here subscribe to, one that does not match the topic and would with one level changed,
 * added or left out; false if none of the first few thousand is. */
bool why_near(const struct federation *federation, const char *topic, size_t size, struct why_near *near);

#endif
