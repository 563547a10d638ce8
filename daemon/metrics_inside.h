/* Inside metrics: what its files write with. Not a door. */
#ifndef DAEMON_METRICS_INSIDE_H
#define DAEMON_METRICS_INSIDE_H

#include "daemon/metrics.h"

#define COUNTER "counter"
#define GAUGE "gauge"
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A metric: where its number lies. */
struct metrics_row {
    const char *name, *type, *help;
    size_t offset;
};

void metrics_head(struct text *out, const char *name, const char *type, const char *help);
uint64_t metrics_number(const void *numbers, size_t offset);
/* Appends the text as the value of a label: backslash, quote and newline escaped. */
void metrics_label(const char *value, struct text *out);

/* ---- metrics_links.c ---- */

void metrics_write_links(const struct metrics *metrics, struct text *out);

#endif
