/* The log: one line per fact on standard error, in logfmt (key="value" pairs), for people and programs alike:
 *
 *   2026-11-29T16:54:01.123Z info listening what="mqtt" address="127.0.0.1:1883"
 *
 * that is time (UTC), level, event, pairs. The event is a short constant name and the thing to search for. Values are
 * quoted; quotes, backslashes and control characters in them are escaped (\" \\ \n \x1b), since many come from
 * strangers.
 *
 * Each event has its own allowance at each level (LOG_BURST lines, then LOG_REFILL_PER_S a second), so that no peer can
 * fill the disk, nor hide behind news of itself that another is down; the next such line says how many were left out:
 * suppressed="N".
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_BURST 50u
#define LOG_REFILL_PER_S 5u
#define LOG_LINE_MAX 2048u  /* bytes; longer values are cut */
#define LOG_EVENTS_MAX 128u /* distinct events and levels; the rest share one allowance */

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log;

struct log_options {
    enum log_level level; /* lines above it are not written */
    /* NULL: standard error, the system's clock. A line ends in a newline and no zero. */
    void *context;
    void (*write)(void *context, const char *line, size_t size);
    int64_t (*wall_ms)(void *context);
};

/* NULL when memory is short. */
struct log *log_new(const struct log_options *options);
/* Waits a moment for who reads standard error. */
void log_free(struct log *log);

/* Standard error that nobody reads stops nobody: lines wait (log_stream.h), and log_flush() is to be called some times
 * a second as long as any do. Of those that were lost meanwhile the first line after that says how many. */
bool log_waits(const struct log *log);
void log_flush(struct log *log);

/* Pairs of key and value (const char *, both), ended by NULL:
 *   log_line(log, LOG_LEVEL_INFO, "listening", "what", "mqtt", "address", text, NULL);
 * A NULL value ends the pairs too. Keys are constants of ours. event must be a string that lives for ever. */
void log_line(struct log *log, enum log_level level, const char *event, ...) __attribute__((sentinel));
/* The same with one pair, text="...", made as printf does. */
void log_text(struct log *log, enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Text as it is, for who started the program; it ends in a newline. */
void log_plain(struct log *log, const char *text);

bool log_wants(const struct log *log, enum log_level level);
uint64_t log_suppressed(const struct log *log); /* lines left out since the start */

/* "error", "warning", "info", "debug"; parse returns false for anything else. */
const char *log_level_name(enum log_level level);
bool log_level_parse(const char *name, enum log_level *level);

#endif
