/* Our filters, as the registry shows them: exact while there is room, otherwise covered by wider ones.
 *
 * Every wanted filter is always covered by a shown row (topic_filter_covers), so a cover costs idle group joins and
 * never a miss. Over rows_max rows, siblings become one: `dev/17/t`, `dev/18/t` and so on `dev/+/t`, or all below a
 * level `dev/#`; first those by which the least unwanted comes in for each row that is saved (cover_choose.c: what came
 * in lately where known, how many siblings are wanted otherwise). When there is room again they are split, the
 * costliest first, in cover_tick, some time after the last merge, so that rows do not come and go with each client.
 *
 * Two trees of levels: what is wanted, with a count at each node, and what is shown, a tree of at most rows_max rows
 * where a node can be marked as merged. A change walks down both: its cost is the depth of the filter. A merge costs a
 * walk over what is shown, a split a bounded walk over what is wanted.
 *
 * Filters that begin with `$` are never merged with others. One that is too long for a row (ENTRY_FILTER_MAX) is shown
 * as the longest `prefix/#` that fits.
 */
#ifndef GOSSIP_COVER_H
#define GOSSIP_COVER_H

#include "gossip/gossip.h"
#include "gossip/levels.h"

#define COVER_SPOTS_MAX 32u

/* A change of what is shown, in an order in which nothing wanted is uncovered in between; for that there may be more
 * than rows_max rows within a call. The filter is borrowed. False: no memory. */
typedef bool cover_on_change(void *context, enum gossip_row_kind kind, const char *filter, size_t size, bool shown);

struct cover_options {
    enum gossip_row_kind kind;
    uint32_t rows_max; /* at least 1 */
    uint64_t seed;     /* of the hash functions */
    cover_on_change *on_change;
    void *context;
};

/* cover_traffic.c: what came in through covers and nobody wanted. */
struct cover_traffic {
    struct cover_spot {
        uint64_t path; /* hash of the merged node */
        uint32_t count;
    } spots[COVER_SPOTS_MAX];
    uint64_t halve_ms; /* all counts are halved then */
    uint64_t wanted, unwanted, window_ms;
    uint64_t alarm_ms; /* not before this again */
    bool over;         /* over-coverage was above its bound in the last window */
};

struct cover {
    uint32_t stale_count;  /* shown and not needed: a deletion that failed for want of memory */
    uint32_t merged_count; /* nodes that are merged */
    bool relieved;         /* since the last look there is less wanted, or more unwanted */
    uint64_t split_ms;     /* no split before */
    uint64_t sweep_ms;     /* stale rows are taken away then */
    uint64_t hold_ms, last_split_ms;
    uint32_t row_count;    /* shown */
    uint32_t needed_count; /* nodes of `shown` that stand for wanted filters */
    struct cover_options options;
    struct levels wanted;
    struct levels shown;
    struct cover_traffic traffic;
    uint64_t merges, splits, unwanted, alarms; /* counters */
};

void cover_init(struct cover *cover, const struct cover_options *options);
void cover_free(struct cover *cover);

/* Both are idempotent. False when memory is short: a put has then changed nothing, and a delete left a row too many,
 * which cover_tick takes away. A put also fails when it would leave no row for anything but
 * filters that begin with `$`. */
bool cover_put(struct cover *cover, uint64_t now_ms, const char *filter, size_t size);
bool cover_delete(struct cover *cover, uint64_t now_ms, const char *filter, size_t size);

uint64_t cover_deadline_ms(const struct cover *cover); /* UINT64_MAX for never */
/* Splits what fits, a bounded piece at a time. */
void cover_tick(struct cover *cover, uint64_t now_ms);

/* This came in through some cover, and nobody here wanted it: a topic (of an interest) or a filter (of an advert). */
void cover_note_unwanted(struct cover *cover, uint64_t now_ms, const char *name, size_t size);
/* So many came in and were wanted. */
void cover_note_wanted(struct cover *cover, uint64_t now_ms, uint64_t count);
/* True once when more than one in a hundred of what came in was unwanted: in a minute, and at most each ten minutes. */
bool cover_take_alarm(struct cover *cover, uint64_t now_ms);

size_t cover_wanted_count(const struct cover *cover);
/* Bytes of memory for what is wanted and shown. */
size_t cover_memory(const struct cover *cover);

#endif
