#include "daemon/log_stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TERMINAL_CHUNK 256u /* a terminal that says it takes something takes this much (WAKEUP_CHARS of Linux) */

static void look_at(struct log_stream *stream) {
    struct stat status = {0};
    fstat(stream->file, &status);
    stream->is_socket = S_ISSOCK(status.st_mode);
    stream->chunk = S_ISCHR(status.st_mode) ? TERMINAL_CHUNK : PIPE_BUF; /* of a pipe a page is free, or nothing */
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* How many of the bytes were taken, or came to nothing as nobody will ever read them. 0: not now. */
static size_t put(struct log_stream *stream, const char *bytes, size_t size, int wait_ms) {
    struct pollfd poll_file = {.fd = stream->file, .events = POLLOUT};
    if (stream->chunk == 0) look_at(stream);
    if (size > stream->chunk) size = stream->chunk;
    if (poll(&poll_file, 1, wait_ms) <= 0) return 0;
    const ssize_t written = stream->is_socket ? send(stream->file, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                                              : write(stream->file, bytes, size);
    if (written >= 0) return (size_t)written;
    return errno == EAGAIN || errno == EINTR ? 0 : size;
}

static size_t put_all(struct log_stream *stream, const char *bytes, size_t size, int wait_ms) {
    const int64_t until_ms = wait_ms > 0 ? now_ms() + wait_ms : 0;
    size_t done = 0, part = 1;
    while (done < size && part > 0) {
        const int64_t left_ms = wait_ms > 0 ? until_ms - now_ms() : 0;
        done += part = put(stream, bytes + done, size - done, left_ms > 0 ? (int)left_ms : 0);
    }
    return done;
}

/* The rest of a line is never left out: room for it is there before the line begins. */
static bool make_room(struct log_stream *stream, size_t size) {
    if (stream->kept == NULL) {
        stream->kept = malloc(LOG_STREAM_KEPT_MAX);
        stream->size = stream->at = 0;
    }
    if (stream->kept == NULL) return false;
    if (stream->at > 0 && stream->size + size > LOG_STREAM_KEPT_MAX) {
        stream->size -= stream->at;
        memmove(stream->kept, stream->kept + stream->at, stream->size);
        stream->at = 0;
    }
    return stream->size + size <= LOG_STREAM_KEPT_MAX;
}

void log_stream_write(struct log_stream *stream, const char *line, size_t size) {
    log_stream_flush(stream, 0);
    const size_t done = log_stream_waits(stream) ? 0 : put_all(stream, line, size, 0);
    if (done == size) return;
    if (!make_room(stream, size - done)) {
        stream->lost++;
        return;
    }
    memcpy(stream->kept + stream->size, line + done, size - done);
    stream->size += size - done;
}

bool log_stream_waits(const struct log_stream *stream) {
    return stream->kept != NULL;
}

void log_stream_flush(struct log_stream *stream, int wait_ms) {
    if (stream->kept == NULL) return;
    stream->at += put_all(stream, stream->kept + stream->at, stream->size - stream->at, wait_ms);
    if (stream->at == stream->size) log_stream_deinit(stream);
}

void log_stream_deinit(struct log_stream *stream) {
    free(stream->kept);
    stream->kept = NULL;
}
