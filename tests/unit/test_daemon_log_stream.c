/* Standard error that nobody reads: a pipe of two pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/log_stream.h"

#define PIPE_SIZE 8192u

static int ends[2];
static struct log_stream stream;
static char text[LOG_STREAM_KEPT_MAX + 4 * PIPE_SIZE];

static int begin(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    if (pipe(ends) != 0 || fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE) != PIPE_SIZE) return -1;
    stream = (struct log_stream){.file = ends[1]};
    return 0;
}

static int end(void **state) {
    (void)state;
    log_stream_deinit(&stream);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static unsigned said;

static void say_lines(unsigned count) {
    char line[64];
    for (unsigned i = 0; i < count; i++) {
        snprintf(line, sizeof(line), "line %06u of a log that nobody reads\n", said++);
        log_stream_write(&stream, line, strlen(line));
    }
}

/* What comes out now, behind what is there. */
static size_t read_some(int file, size_t at, size_t max) {
    const ssize_t got = read(file, text + at, max);
    assert_true(got >= 0);
    return at + (size_t)got;
}

/* All lines from 0 on, whole and in order; returns how many. */
static unsigned count_lines(size_t size) {
    unsigned count = 0;
    for (const char *at = text; at < text + size; count++) {
        unsigned number = UINT32_MAX;
        assert_int_equal(sscanf(at, "line %6u of a log that nobody reads\n", &number), 1);
        assert_int_equal(number, count);
        at = memchr(at, '\n', size - (size_t)(at - text));
        assert_non_null(at);
        at++;
    }
    return count;
}

static void what_is_read_goes_straight_through(void **state) {
    (void)state;
    said = 0;
    say_lines(3);
    assert_false(log_stream_waits(&stream));
    assert_int_equal(count_lines(read_some(ends[0], 0, sizeof(text))), 3);
}

static void nobody_waits_and_lines_come_whole_and_in_order_once_they_are_read(void **state) {
    size_t size = 0;
    (void)state;
    said = 0;
    say_lines(5000); /* would block for ever */
    assert_true(log_stream_waits(&stream));
    assert_int_equal(stream.lost, 0);
    while (log_stream_waits(&stream)) {
        size = read_some(ends[0], size, 1000);
        log_stream_flush(&stream, 0);
        if (said < 5100) say_lines(1);
    }
    while (size < (size_t)said * strlen("line 000000 of a log that nobody reads\n"))
        size = read_some(ends[0], size, sizeof(text) - size);
    assert_int_equal(count_lines(size), said);
}

static void what_does_not_fit_is_counted_and_cuts_no_line(void **state) {
    size_t size = 0;
    (void)state;
    said = 0;
    say_lines(10000);
    assert_true(stream.lost > 0);
    const unsigned kept = 10000 - (unsigned)stream.lost;
    while (log_stream_waits(&stream)) {
        size = read_some(ends[0], size, sizeof(text) - size);
        log_stream_flush(&stream, 0);
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    size = read_some(ends[0], size, sizeof(text) - size);
    assert_int_equal(count_lines(size), kept);
}

static void a_reader_that_is_gone_costs_nothing(void **state) {
    (void)state;
    said = 0;
    say_lines(1000);
    assert_true(log_stream_waits(&stream));
    close(ends[0]);
    log_stream_flush(&stream, 0);
    assert_false(log_stream_waits(&stream));
    say_lines(1000);
    assert_false(log_stream_waits(&stream));
    ends[0] = dup(ends[1]);
}

static void one_that_is_closed_costs_nothing(void **state) {
    (void)state;
    stream.file = 1000000;
    say_lines(10);
    assert_false(log_stream_waits(&stream));
}

/* The journal of systemd is one. */
static void a_socket_is_like_a_pipe(void **state) {
    int pair[2], small = 4096;
    size_t size = 0;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    stream = (struct log_stream){.file = pair[1]};
    said = 0;
    say_lines(2000);
    assert_true(log_stream_waits(&stream));
    while (log_stream_waits(&stream)) {
        size = read_some(pair[0], size, sizeof(text) - size);
        log_stream_flush(&stream, 0);
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    while (size < 2000 * strlen("line 000000 of a log that nobody reads\n"))
        size = read_some(pair[0], size, sizeof(text) - size);
    assert_int_equal(count_lines(size), 2000);
    close(pair[0]);
    close(pair[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_read_goes_straight_through),
        TEST(nobody_waits_and_lines_come_whole_and_in_order_once_they_are_read),
        TEST(what_does_not_fit_is_counted_and_cuts_no_line),
        TEST(a_reader_that_is_gone_costs_nothing),
        TEST(one_that_is_closed_costs_nothing),
        TEST(a_socket_is_like_a_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
