/* What happened, line by line, and its hash: equal hashes mean equal runs.
 *
 * Lines tell events, states and sizes, never sealed or signed bytes: signatures are randomised.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdint.h>
#include <stdio.h>

struct trace {
    uint64_t hash;
    uint64_t lines;
    FILE *out; /* also printed there; NULL for not */
};

void trace_init(struct trace *trace, FILE *out);
/* who: the broker or client that it happened to. */
void trace_line(struct trace *trace, uint64_t now_us, const char *who, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
