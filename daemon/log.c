#include "daemon/log.h"

#include "daemon/log_stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LAST_WAIT_MS 500 /* for who reads standard error, at the end */

/* A token bucket in thousandths of a line. */
struct allowance {
    const char *event;
    enum log_level level;
    int64_t filled_ms; /* when tokens was last brought up to date */
    int64_t tokens;
    uint64_t suppressed; /* since the last line of this event and level */
};

struct log {
    struct log_options options;
    struct log_stream stream; /* standard error, if nothing else was asked for */
    size_t event_count;
    struct allowance events[LOG_EVENTS_MAX + 1]; /* the last is shared by what does not fit */
    uint64_t suppressed;
};

static int64_t system_wall_ms(void *context) {
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct log *log_new(const struct log_options *options) {
    struct log *log = calloc(1, sizeof(*log));
    if (log == NULL) return NULL;
    log->options = *options;
    log->stream.file = STDERR_FILENO;
    if (log->options.wall_ms == NULL) log->options.wall_ms = system_wall_ms;
    return log;
}

void log_free(struct log *log) {
    if (log == NULL) return;
    log_stream_flush(&log->stream, LAST_WAIT_MS);
    log_stream_deinit(&log->stream);
    free(log);
}

static void write_line(struct log *log, const char *line, size_t size) {
    if (log->options.write != NULL)
        log->options.write(log->options.context, line, size);
    else
        log_stream_write(&log->stream, line, size);
}

bool log_waits(const struct log *log) {
    return log_stream_waits(&log->stream);
}

void log_flush(struct log *log) {
    const uint64_t lost = log->stream.lost;
    log_stream_flush(&log->stream, 0);
    if (lost == 0 || log_stream_waits(&log->stream)) return;
    log->stream.lost = 0;
    log->suppressed += lost;
    log_text(log, LOG_LEVEL_WARNING, "log",
             "%llu lines were lost: nobody has read standard error for a while; see who reads it (a pipe, the journal)",
             (unsigned long long)lost);
}

void log_plain(struct log *log, const char *text) {
    write_line(log, text, strlen(text));
}

bool log_wants(const struct log *log, enum log_level level) {
    return level <= log->options.level;
}

uint64_t log_suppressed(const struct log *log) {
    return log->suppressed;
}

static const char *const level_names[] = {"error", "warning", "info", "debug"};

const char *log_level_name(enum log_level level) {
    return level_names[level];
}

bool log_level_parse(const char *name, enum log_level *level) {
    for (size_t i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strcmp(name, level_names[i]) != 0) continue;
        *level = (enum log_level)i;
        return true;
    }
    return false;
}

/* ---- the allowance ---- */

static struct allowance *find_allowance(struct log *log, enum log_level level, const char *event, int64_t now_ms) {
    for (size_t i = 0; i < log->event_count; i++)
        if (log->events[i].level == level && strcmp(log->events[i].event, event) == 0) return &log->events[i];
    struct allowance *allowance = &log->events[log->event_count];
    const bool is_new = allowance->event == NULL;
    if (is_new)
        *allowance = (struct allowance){
            .event = event, .level = level, .filled_ms = now_ms, .tokens = (int64_t)LOG_BURST * 1000};
    if (log->event_count < LOG_EVENTS_MAX) log->event_count++;
    return allowance;
}

/* True if one more line may go out now. A clock that jumps refills at most one burst and never takes anything away. */
static bool take(struct allowance *allowance, int64_t now_ms) {
    int64_t passed = now_ms - allowance->filled_ms;
    if (passed < 0) passed = 0;
    if (passed > (int64_t)LOG_BURST * 1000) passed = (int64_t)LOG_BURST * 1000;
    allowance->filled_ms = now_ms;
    allowance->tokens += passed * LOG_REFILL_PER_S;
    if (allowance->tokens > (int64_t)LOG_BURST * 1000) allowance->tokens = (int64_t)LOG_BURST * 1000;
    if (allowance->tokens < 1000) return false;
    allowance->tokens -= 1000;
    return true;
}

/* ---- the line ---- */

struct line {
    size_t size;
    char text[LOG_LINE_MAX];
};

/* Leaves room for what ends a line, so that a cut value is still closed. */
#define LINE_ROOM (LOG_LINE_MAX - 64u)

static void add(struct line *line, const char *text) {
    for (; *text != '\0' && line->size < LOG_LINE_MAX - 2; text++)
        line->text[line->size++] = *text;
}

static void add_value(struct line *line, const char *value) {
    for (; *value != '\0'; value++) {
        const unsigned char c = (unsigned char)*value;
        char escaped[8] = {(char)c, '\0'};
        if (line->size > LINE_ROOM) {
            add(line, "...");
            return;
        }
        if (c == '"' || c == '\\')
            snprintf(escaped, sizeof(escaped), "\\%c", c);
        else if (c == '\n')
            snprintf(escaped, sizeof(escaped), "\\n");
        else if (c < 0x20 || c == 0x7f)
            snprintf(escaped, sizeof(escaped), "\\x%02x", c);
        else if (c == 0xc2 && (unsigned char)value[1] >= 0x80 && (unsigned char)value[1] < 0xa0)
            snprintf(escaped, sizeof(escaped), "\\x%02x", (unsigned char)*++value); /* terminals obey U+009B, too */
        add(line, escaped);
    }
}

static void add_pair(struct line *line, const char *key, const char *value) {
    if (line->size > LINE_ROOM) return;
    add(line, " ");
    add(line, key);
    add(line, "=\"");
    add_value(line, value);
    add(line, "\"");
}

static void begin(struct line *line, int64_t now_ms, enum log_level level, const char *event) {
    const time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc;
    char text[64];
    gmtime_r(&seconds, &utc);
    line->size = strftime(line->text, sizeof(line->text), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof(text), ".%03dZ %s ", (int)(now_ms % 1000), level_names[level]);
    add(line, text);
    add(line, event);
}

/* Starts a line, if the level and the allowance let it. */
static struct allowance *admit(struct log *log, enum log_level level, const char *event, struct line *line) {
    if (!log_wants(log, level)) return NULL;
    const int64_t now_ms = log->options.wall_ms(log->options.context);
    struct allowance *allowance = find_allowance(log, level, event, now_ms);
    if (!take(allowance, now_ms)) {
        allowance->suppressed++;
        log->suppressed++;
        return NULL;
    }
    begin(line, now_ms, level, event);
    return allowance;
}

static void finish(struct log *log, struct allowance *allowance, struct line *line) {
    char count[24];
    if (allowance->suppressed > 0) {
        snprintf(count, sizeof(count), "%llu", (unsigned long long)allowance->suppressed);
        add(line, " suppressed=\"");
        add(line, count);
        add(line, "\"");
        allowance->suppressed = 0;
    }
    line->text[line->size++] = '\n';
    write_line(log, line->text, line->size);
}

void log_line(struct log *log, enum log_level level, const char *event, ...) {
    struct line line;
    struct allowance *allowance = admit(log, level, event, &line);
    if (allowance == NULL) return;
    va_list pairs;
    va_start(pairs, event);
    for (const char *key = va_arg(pairs, const char *); key != NULL; key = va_arg(pairs, const char *)) {
        const char *value = va_arg(pairs, const char *);
        if (value == NULL) break;
        add_pair(&line, key, value);
    }
    va_end(pairs);
    finish(log, allowance, &line);
}

void log_text(struct log *log, enum log_level level, const char *event, const char *format, ...) {
    struct line line;
    struct allowance *allowance = admit(log, level, event, &line);
    if (allowance == NULL) return;
    char text[LOG_LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    add_pair(&line, "text", text);
    finish(log, allowance, &line);
}
