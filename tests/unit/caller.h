/* A site with a fake broker behind it (fake_node.h), and callers on real sockets, all turned by one loop. */
#ifndef TESTS_CALLER_H
#define TESTS_CALLER_H

#include "fake_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct site {
    uv_loop_t loop;
    struct fake_server fake;
};

static inline int set_up(void **state) {
    struct site *site = calloc(1, sizeof *site);
    assert_non_null(site);
    assert_int_equal(uv_loop_init(&site->loop), 0);
    fake_server_init(&site->fake, &site->loop, 1);
    *state = site;
    return 0;
}

/* Every test ends with the loop drained and nothing leaked. */
static inline int tear_down(void **state) {
    struct site *site = *state;
    fake_server_stop(&site->fake);
    assert_true(fake_drain(&site->loop));
    fake_server_free(&site->fake);
    assert_int_equal(uv_loop_close(&site->loop), 0);
    free(site);
    return 0;
}

/* A client of the test. */
struct caller {
    int fd;
    struct text out, in;
    size_t out_sent, wanted;
    bool over;
};

static inline void caller_init(struct caller *caller, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    *caller = (struct caller){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    assert_int_equal(connect(caller->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(caller->fd, F_SETFL, O_NONBLOCK), 0);
}

static inline void caller_deinit(struct caller *caller) {
    text_deinit(&caller->out);
    text_deinit(&caller->in);
    if (caller->fd >= 0) close(caller->fd);
}

static inline void step(struct caller *caller) {
    char bytes[65536];
    if (caller->out_sent < caller->out.size) {
        ssize_t sent =
            send(caller->fd, caller->out.bytes + caller->out_sent, caller->out.size - caller->out_sent, MSG_NOSIGNAL);
        if (sent > 0) caller->out_sent += (size_t)sent;
    }
    ssize_t got;
    while (!caller->over && (got = recv(caller->fd, bytes, sizeof bytes, 0)) != -1) {
        if (got == 0)
            caller->over = true;
        else
            text_append(&caller->in, bytes, (size_t)got);
    }
    if (!caller->over && errno != EAGAIN) caller->over = true;
}

static inline bool over(void *context) {
    struct caller *caller = context;
    step(caller);
    return caller->over;
}

/* So many whole answers of /healthz. */
static inline bool has_wanted(void *context) {
    struct caller *caller = context;
    size_t answers = 0;
    step(caller);
    for (size_t at = 0; at + 7 <= caller->in.size; at++)
        if (memcmp(caller->in.bytes + at, "\r\n\r\nok\n", 7) == 0) answers++;
    return answers >= caller->wanted;
}

/* One exchange on a connection of its own; the answer has a final zero. */
static inline void ask(struct site *site, struct caller *caller, uint16_t port, const char *request) {
    caller_init(caller, port);
    text_add(&caller->out, "%s", request);
    assert_true(fake_wait(&site->loop, over, caller));
    text_append(&caller->in, "", 1);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nConnection: close\r\n\r\n"

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
