/* A descriptor that lines are written to without ever waiting for who reads them: a pipe that nobody empties, a
 * terminal that is held (Ctrl-S), a journal that hangs. What it does not take now is kept, up to LOG_STREAM_KEPT_MAX
 * bytes; lines beyond that are lost, and counted. The descriptor is shared with others, so it stays in blocking mode.
 *
 * A file on a disk takes everything at once, as far as the system can tell.
 */
#ifndef DAEMON_LOG_STREAM_H
#define DAEMON_LOG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_STREAM_KEPT_MAX (256u * 1024u) /* bytes */

struct log_stream {
    int file;
    size_t chunk; /* bytes that it takes at once when it says that it takes any; 0: not known yet */
    bool is_socket;
    char *kept; /* malloc; NULL while nothing waits */
    size_t size, at;
    uint64_t lost; /* lines, since the owner last set it to 0 */
};

/* A whole line, or a part of what was kept. */
void log_stream_write(struct log_stream *stream, const char *line, size_t size);
bool log_stream_waits(const struct log_stream *stream);
/* Writes of what is kept as much as goes; waits for the reader, as long as this in all. */
void log_stream_flush(struct log_stream *stream, int wait_ms);
/* What is still kept is lost. */
void log_stream_deinit(struct log_stream *stream);

#endif
