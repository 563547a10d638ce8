/* A whole broker without peers in a child process, and sockets of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/server.h"

#include "patient_clock.h"

#define WAIT_MS 60000 /* for what happens at all */
#define SOON_MS 5000  /* less than the 6 s that an end may take */

static uint16_t free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(file, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(file, (struct sockaddr *)&address, &size), 0);
    close(file);
    return ntohs(address.sin_port);
}

static void discard(void *context, const char *line, size_t size) {
    (void)context;
    if (getenv("HOBNOB_TEST_LOG") != NULL) fwrite(line, 1, size, stderr);
}

static bool run_server(const char *text, uint16_t port, char error[SERVER_ERROR_MAX]) {
    struct config_faults faults = {0};
    struct identity identity = {0};
    struct config *config = config_parse(text, strlen(text), "/nowhere", &faults);
    if (config == NULL || faults.errors > 0) return false;
    free(config->data_dir);
    config->data_dir = NULL; /* in memory */
    config->listen.mqtt.items[0].port = port;
    struct log *log = log_new(&(struct log_options){.level = LOG_LEVEL_DEBUG, .write = discard});
    struct tls_certificates *certificates = tls_certificates_new();
    const bool good = server_run(config, &identity, certificates, log, error);
    log_free(log);
    tls_certificates_free(certificates);
    config_free(config);
    return good;
}

struct daemon {
    pid_t pid;
    uint16_t port;
};

static int dial(uint16_t port) {
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const uint64_t until_ms = patient_clock_ms() + WAIT_MS;
    for (;;) {
        const int file = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(file, (const struct sockaddr *)&address, sizeof(address)) == 0) return file;
        assert_int_equal(errno, ECONNREFUSED);
        assert_true(patient_clock_ms() < until_ms);
        close(file);
        poll(NULL, 0, 10); /* until the child listens */
    }
}

/* The child's exit status says whether it ended well and, under AddressSanitizer, whether it freed all. */
static struct daemon start(const char *text) {
    struct daemon daemon = {.port = free_port()};
    daemon.pid = fork();
    assert_true(daemon.pid >= 0);
    if (daemon.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
        char error[SERVER_ERROR_MAX] = "";
        exit(run_server(text, daemon.port, error) ? 0 : 1);
    }
    close(dial(daemon.port));
    return daemon;
}

static uint64_t stop(struct daemon daemon, int signals) {
    const uint64_t before_ms = patient_clock_ms();
    int status = 0;
    pid_t ended = 0;
    kill(daemon.pid, SIGTERM);
    if (signals > 1) {
        poll(NULL, 0, 200); /* so that they are two */
        kill(daemon.pid, SIGINT);
    }
    while ((ended = waitpid(daemon.pid, &status, WNOHANG)) == 0 && patient_clock_ms() < before_ms + WAIT_MS)
        poll(NULL, 0, 5);
    if (ended == 0) kill(daemon.pid, SIGKILL);
    assert_int_equal(ended, daemon.pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return patient_clock_ms() - before_ms;
}

/* Reads exactly that much; fails after WAIT_MS. */
static void take(int file, void *bytes, size_t size) {
    const uint64_t until_ms = patient_clock_ms() + WAIT_MS;
    for (size_t got = 0; got < size;) {
        struct pollfd poll_file = {.fd = file, .events = POLLIN};
        assert_true(patient_clock_ms() < until_ms);
        if (poll(&poll_file, 1, 100) == 0) continue;
        const ssize_t part = read(file, (char *)bytes + got, size - got);
        assert_true(part > 0);
        got += (size_t)part;
    }
}

static void expect(int file, const char *bytes, size_t size) {
    char got[256];
    assert_true(size <= sizeof(got));
    take(file, got, size);
    assert_memory_equal(got, bytes, size);
}
#define EXPECT(file, literal) expect(file, literal, sizeof(literal) - 1)

static void expect_end(int file) {
    char byte;
    struct pollfd poll_file = {.fd = file, .events = POLLIN};
    assert_int_equal(poll(&poll_file, 1, WAIT_MS), 1);
    assert_true(read(file, &byte, 1) <= 0);
    close(file);
}

static void give(int file, const void *bytes, size_t size) {
    for (size_t given = 0; given < size;) {
        const ssize_t part = send(file, (const char *)bytes + given, size - given, MSG_NOSIGNAL);
        assert_true(part > 0);
        given += (size_t)part;
    }
}
#define GIVE(file, literal) give(file, literal, sizeof(literal) - 1)

static int new_client(struct daemon daemon, char letter) {
    char connect_packet[] = "\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01?";
    connect_packet[14] = letter;
    const int file = dial(daemon.port);
    give(file, connect_packet, sizeof(connect_packet) - 1);
    EXPECT(file, "\x20\x02\x00\x00");
    return file;
}

static int new_subscriber(struct daemon daemon, char letter) {
    const int file = new_client(daemon, letter);
    GIVE(file, "\x82\x06\x00\x01\x00\x01#\x00");
    EXPECT(file, "\x90\x03\x00\x01\x00");
    return file;
}

#define SITE "name: test\nlisten: {mqtt: 127.0.0.1:1}\nlimits: {output_bytes_max: 33554432}\n"
#define BIG_SIZE                                                                                                       \
    14000000u /* bytes: more than the buffers of a socket hold, less than limits.output_bytes_max and packet_size_max  \
               */

static void publish_big(int file) {
    static uint8_t packet[1 + 4 + 3 + BIG_SIZE];
    const size_t size = 3 + BIG_SIZE;
    const uint8_t header[] = {0x30,
                              (uint8_t)(size % 128 | 128),
                              (uint8_t)(size / 128 % 128 | 128),
                              (uint8_t)(size / 16384 % 128 | 128),
                              (uint8_t)(size / 2097152),
                              0,
                              1,
                              't'};
    for (size_t i = 0; i < BIG_SIZE; i++)
        packet[sizeof(header) + i] = (uint8_t)(i * 31 / 7);
    memcpy(packet, header, sizeof(header));
    give(file, packet, sizeof(packet));
}

/* ---- tests ---- */

static void client_is_served_over_tcp(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    const int subscriber = new_subscriber(daemon, 's'), publisher = new_client(daemon, 'p');
    GIVE(publisher, "\x30\x08\x00\x01thello");
    EXPECT(subscriber, "\x30\x08\x00\x01thello");
    GIVE(publisher, "\xc0\x00");
    EXPECT(publisher, "\xd0\x00");
    GIVE(publisher, "\xe0\x00");
    expect_end(publisher);
    close(subscriber);
    stop(daemon, 1);
}

static void stream_split_anywhere_is_one_stream(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    static const char bytes[] =
        "\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01p\x82\x06\x00\x01\x00\x01#\x00\x30\x08\x00\x01thello";
    const int file = dial(daemon.port);
    for (size_t i = 0; i < sizeof(bytes) - 1; i++)
        give(file, bytes + i, 1);
    EXPECT(file, "\x20\x02\x00\x00\x90\x03\x00\x01\x00\x30\x08\x00\x01thello");
    close(file);
    stop(daemon, 1);
}

static void message_larger_than_the_socket_arrives_whole(void **state) {
    (void)state;
    static uint8_t got[8 + BIG_SIZE];
    const struct daemon daemon = start(SITE);
    const int subscriber = new_subscriber(daemon, 's'), publisher = new_client(daemon, 'p');
    publish_big(publisher);
    GIVE(publisher, "\xc0\x00");
    EXPECT(publisher, "\xd0\x00"); /* by now the subscriber's socket is full */
    take(subscriber, got, sizeof(got));
    for (size_t i = 0; i < BIG_SIZE; i++)
        if (got[8 + i] != (uint8_t)(i * 31 / 7)) fail_msg("byte %zu is damaged", i);
    GIVE(publisher, "\x30\x08\x00\x01thello");
    EXPECT(subscriber, "\x30\x08\x00\x01thello");
    close(subscriber);
    close(publisher);
    stop(daemon, 1);
}

static void client_that_is_cut_off_leaves_its_will(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    const int subscriber = new_subscriber(daemon, 's'), file = dial(daemon.port);
    GIVE(file, "\x10\x14\x00\x04MQTT\x04\x06\x00\x00\x00\x01w\x00\x01t\x00\x02id");
    EXPECT(file, "\x20\x02\x00\x00");
    const struct linger now = {.l_onoff = 1};
    setsockopt(file, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* a reset */
    close(file);
    EXPECT(subscriber, "\x30\x05\x00\x01tid");
    close(subscriber);
    stop(daemon, 1);
}

static void who_breaks_the_rules_is_cut_off_alone(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    const int good = new_client(daemon, 'g'), bad = dial(daemon.port);
    GIVE(bad, "GET / HTTP/1.1\r\n\r\n");
    expect_end(bad);
    GIVE(good, "\xc0\x00");
    EXPECT(good, "\xd0\x00");
    close(good);
    stop(daemon, 1);
}

static void anonymous_client_is_refused_where_the_configuration_says_so(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE "clients: {anonymous: false}\n");
    const int file = dial(daemon.port);
    GIVE(file, "\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01"
               "a");
    EXPECT(file, "\x20\x02\x00\x05");
    expect_end(file);
    stop(daemon, 1);
}

static void anonymous_client_is_refused_where_strangers_can_listen_in(void **state) {
    (void)state;
    const struct daemon daemon = start("name: test\nlisten: {mqtt: 0.0.0.0:1}\n");
    const int file = dial(daemon.port);
    GIVE(file, "\x10\x0e\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x01"
               "a");
    char head[4];
    take(file, head, sizeof(head));
    assert_int_equal((uint8_t)head[3], 0x87);
    close(file);
    stop(daemon, 1);
}

static void sigterm_tells_clients_and_ends(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    const int file = dial(daemon.port);
    GIVE(file, "\x10\x0e\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x01"
               "a");
    uint8_t head[2], rest[127];
    take(file, head, 2);
    take(file, rest, head[1]);
    assert_int_equal(head[0], 0x20);
    kill(daemon.pid, SIGTERM);
    take(file, head, 2);
    take(file, rest, head[1]);
    assert_int_equal(head[0], 0xe0);
    assert_int_equal(rest[0], 0x8b);
    expect_end(file);
    assert_true(stop(daemon, 1) < SOON_MS);
}

static void client_that_does_not_read_cannot_hold_the_end(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    const int deaf = new_subscriber(daemon, 's'), publisher = new_client(daemon, 'p');
    publish_big(publisher);
    GIVE(publisher, "\xc0\x00");
    EXPECT(publisher, "\xd0\x00");
    assert_true(stop(daemon, 1) < WAIT_MS / 2);
    close(deaf);
    close(publisher);
}

static void client_that_never_reads_is_ended_for_good(void **state) {
    (void)state;
    const struct daemon daemon = start("name: test\nlisten: {mqtt: 127.0.0.1:1}\n");
    const int deaf = new_client(daemon, 'd'), small = 4096;
    static uint8_t pings[65536];
    bool cut = false;
    for (size_t i = 0; i < sizeof(pings); i += 2)
        pings[i] = 0xc0;
    setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    /* It asks for ever and takes no answer: at the limit it is ended, and its socket must go too, with the write that
     * waits in it. */
    for (const uint64_t until_ms = patient_clock_ms() + WAIT_MS; !cut && patient_clock_ms() < until_ms;)
        cut = send(deaf, pings, sizeof(pings), MSG_NOSIGNAL) < 0;
    assert_true(cut);
    close(deaf);
    stop(daemon, 1);
}

static void costly_client_does_not_keep_others_waiting(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    const int costly = new_client(daemon, 'c'), other = new_client(daemon, 'o');
    /* 512 filters that all match t/t/t/t/t/t/t/t/t/0000 and the like, so that each publication to another takes long.
     */
    for (unsigned n = 0; n < 512; n++) {
        uint8_t subscribe[] = "\x82\x18\x00\x01\x00\x13t/t/t/t/t/t/t/t/t/+\x00";
        for (unsigned level = 0; level < 9; level++)
            if (n >> level & 1) subscribe[6 + 2 * level] = '+';
        give(costly, subscribe, sizeof(subscribe) - 1);
        EXPECT(costly, "\x90\x03\x00\x01\x00");
    }
    enum { PUBLISH_SIZE = 26, COUNT = 6000 };
    static char packets[PUBLISH_SIZE * COUNT + 1];
    for (unsigned n = 0; n < COUNT; n++) {
        memcpy(packets + n * PUBLISH_SIZE, "\x30\x18\x00\x16t/t/t/t/t/t/t/t/t/", PUBLISH_SIZE - 4);
        snprintf(packets + (n + 1) * PUBLISH_SIZE - 4, 5, "%04u", n);
    }
    give(costly, packets, sizeof(packets) - 1);
    for (unsigned n = 0; n < 3; n++) {
        GIVE(other, "\xc0\x00");
        EXPECT(other, "\xd0\x00");
    }
    /* All of it is done, and in order, but not yet. */
    int waiting = 0;
    assert_int_equal(ioctl(costly, FIONREAD, &waiting), 0);
    assert_true((size_t)waiting < sizeof(packets) / 2);
    for (unsigned n = 0; n < COUNT; n++)
        expect(costly, packets + n * PUBLISH_SIZE, PUBLISH_SIZE);
    GIVE(costly, "\xc0\x00");
    EXPECT(costly, "\xd0\x00");
    close(costly);
    close(other);
    stop(daemon, 1);
}

static void second_signal_ends_at_once(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    const int deaf = new_subscriber(daemon, 's'), publisher = new_client(daemon, 'p');
    publish_big(publisher);
    GIVE(publisher, "\xc0\x00");
    EXPECT(publisher, "\xd0\x00");
    assert_true(stop(daemon, 2) < SOON_MS);
    close(deaf);
    close(publisher);
}

static void port_in_use_is_named_with_a_remedy(void **state) {
    (void)state;
    const struct daemon daemon = start(SITE);
    char error[SERVER_ERROR_MAX] = "", expected[SERVER_ERROR_MAX];
    assert_false(run_server(SITE, daemon.port, error));
    snprintf(expected, sizeof(expected),
             "listen.mqtt: 127.0.0.1:%u is in use by another process: stop that one (ss -lntup shows it), or write "
             "another port",
             daemon.port);
    assert_string_equal(error, expected);
    stop(daemon, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_is_served_over_tcp),
        cmocka_unit_test(stream_split_anywhere_is_one_stream),
        cmocka_unit_test(message_larger_than_the_socket_arrives_whole),
        cmocka_unit_test(client_that_is_cut_off_leaves_its_will),
        cmocka_unit_test(who_breaks_the_rules_is_cut_off_alone),
        cmocka_unit_test(anonymous_client_is_refused_where_the_configuration_says_so),
        cmocka_unit_test(anonymous_client_is_refused_where_strangers_can_listen_in),
        cmocka_unit_test(sigterm_tells_clients_and_ends),
        cmocka_unit_test(client_that_does_not_read_cannot_hold_the_end),
        cmocka_unit_test(client_that_never_reads_is_ended_for_good),
        cmocka_unit_test(costly_client_does_not_keep_others_waiting),
        cmocka_unit_test(second_signal_ends_at_once),
        cmocka_unit_test(port_in_use_is_named_with_a_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
