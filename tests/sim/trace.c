#include "tests/sim/trace.h"

#include <inttypes.h>
#include <stdarg.h>

void trace_init(struct trace *trace, FILE *out) {
    trace->hash = 0xcbf29ce484222325u; /* FNV-1a, 64 bits */
    trace->lines = 0;
    trace->out = out;
}

void trace_line(struct trace *trace, uint64_t now_us, const char *who, const char *format, ...) {
    char line[512];
    int size = snprintf(line, sizeof line, "%8" PRIu64 ".%03" PRIu64 " %-10s ", now_us / 1000, now_us % 1000, who);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + size, sizeof line - (size_t)size, format, arguments);
    va_end(arguments);
    for (const char *c = line; *c != '\0'; c++)
        trace->hash = (trace->hash ^ (uint8_t)*c) * 0x100000001b3u;
    trace->hash = (trace->hash ^ '\n') * 0x100000001b3u;
    trace->lines++;
    if (trace->out != NULL) fprintf(trace->out, "%s\n", line);
}
