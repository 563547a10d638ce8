#include "broker/engine.h"
#include "broker/held.h"

#include <utlist.h>

/* The filters that wait are put into a tree only when the first snapshot comes that they could match, so that it costs
 * nothing as long as there is none. */

void held_cover(struct broker *broker, struct held *held) {
    DL_APPEND2(broker->held_unmarked, held, mark_prev, mark_next);
}

static bool is_covering(const struct held_filter *filter) {
    return filter->code < 0x80 && filter->inner == 0;
}

void held_uncover(struct broker *broker, struct held *held) {
    if (!held->marked) {
        DL_DELETE2(broker->held_unmarked, held, mark_prev, mark_next);
        return;
    }
    for (uint32_t i = 0; i < held->filter_count; i++)
        if (is_covering(&held->filters[i]))
            subs_remove(broker->held_tree, held->filters[i].text, held->filters[i].size, &held->subscriber);
}

/* Without memory a message may come twice. */
static void enter_tree(struct broker *broker, struct held *held) {
    DL_DELETE2(broker->held_unmarked, held, mark_prev, mark_next);
    held->marked = true;
    for (uint32_t i = 0; i < held->filter_count; i++)
        if (is_covering(&held->filters[i]))
            subs_add(broker->held_tree, held->filters[i].text, held->filters[i].size, &held->subscriber,
                     &held->filters[i].subscription);
}

static void on_hit(void *context, struct subscriber *subscriber, const struct subscription *subscription) {
    const struct broker *broker = context;

    (void)subscription;
    ((struct held *)subscriber)->client->covered = broker->held_mark;
}

void held_mark(struct broker *broker, const char *topic, size_t size) {
    broker->held_mark++;
    if (broker->held_unmarked != NULL && broker->held_tree == NULL) broker->held_tree = subs_new(broker->seed);
    if (broker->held_tree == NULL) return;
    while (broker->held_unmarked != NULL)
        enter_tree(broker, broker->held_unmarked);
    subs_match(broker->held_tree, topic, size, on_hit, broker);
}

bool held_covers(const struct broker *broker, const struct client *client) {
    return client->covered == broker->held_mark;
}
