/* Two brokers' webs on one loop, linked over real sockets and real TLS. What is behind them is fake_node.h. */
#include "fake_node.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "daemon/web_inside.h"

struct pair {
    uv_loop_t loop;
    struct fake_server a, b;
    broker_handle at_a, at_b; /* the link, seen from both */
};

static struct gossip_address loopback(uint16_t port) {
    return (struct gossip_address){.family = 4, .ip = {127, 0, 0, 1}, .port = port};
}

static int set_up(void **state) {
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    assert_int_equal(uv_loop_init(&pair->loop), 0);
    fake_server_init(&pair->a, &pair->loop, 1);
    fake_server_init(&pair->b, &pair->loop, 2);
    *state = pair;
    return 0;
}

/* Every test ends with the loop drained and nothing leaked. */
static int tear_down(void **state) {
    struct pair *pair = *state;
    fake_server_stop(&pair->a);
    fake_server_stop(&pair->b);
    assert_true(fake_drain(&pair->loop));
    fake_server_free(&pair->a);
    fake_server_free(&pair->b);
    assert_int_equal(uv_loop_close(&pair->loop), 0);
    free(pair);
    return 0;
}

static bool both_ready(void *context) {
    struct pair *pair = context;
    return fake_end(&pair->a.node.broker, pair->at_a)->ready && pair->b.node.broker.end_count > 0 &&
           pair->b.node.broker.ends[0].ready;
}

static void dial(struct pair *pair, uint16_t port) {
    struct gossip_address to = loopback(port);
    pair->at_a = fake_open(&pair->a.node.broker, true);
    web_dial(pair->a.server.web, pair->at_a, &to, "edge-2");
}

static void link_up(struct pair *pair) {
    dial(pair, web_port(pair->b.server.web, WEB_PEERS, 0));
    assert_true(fake_wait(&pair->loop, both_ready, pair));
    pair->at_b = 1;
}

static struct fake_end *end_a(struct pair *pair) {
    return fake_end(&pair->a.node.broker, pair->at_a);
}

static struct fake_end *end_b(struct pair *pair) {
    return fake_end(&pair->b.node.broker, pair->at_b);
}

static void both_sides_learn_the_key_of_the_other(void **state) {
    struct pair *pair = *state;
    uint8_t key_a[32], key_b[32];
    link_up(pair);
    auth_key_thumbprint(pair->a.identity.key, key_a);
    auth_key_thumbprint(pair->b.identity.key, key_b);
    assert_memory_equal(end_a(pair)->thumbprint, key_b, 32);
    assert_memory_equal(end_b(pair)->thumbprint, key_a, 32);
    assert_memory_not_equal(key_a, key_b, 32);
}

static bool one_message_each(void *context) {
    struct pair *pair = context;
    return end_a(pair)->messages == 1 && end_b(pair)->messages == 1;
}

static void frame_of_any_size_arrives_as_one_message(void **state) {
    static const size_t sizes[] = {1, 125, 126, 4096, 65535, 65536, 65537, 131072, 3000001};
    struct pair *pair = *state;
    link_up(pair);
    char *frame = malloc(3000001);
    assert_non_null(frame);
    for (size_t i = 0; i < 3000001; i++)
        frame[i] = (char)(i * 31 + i / 256);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fake_send(&pair->a.node, pair->at_a, frame, sizes[i]);
        fake_send(&pair->b.node, pair->at_b, frame, sizes[i]);
        assert_true(fake_wait(&pair->loop, one_message_each, pair));
        struct fake_end *ends[] = {end_a(pair), end_b(pair)};
        for (size_t side = 0; side < 2; side++) {
            assert_int_equal(ends[side]->last_message_size, sizes[i]);
            assert_int_equal(ends[side]->input.size, sizes[i]);
            assert_memory_equal(ends[side]->input.bytes, frame, sizes[i]);
            assert_int_equal(ends[side]->frames_written, i + 1);
            text_deinit(&ends[side]->input);
            ends[side]->messages = 0;
        }
    }
    free(frame);
}

static bool sixty_at_b(void *context) {
    return end_b(context)->messages == 60;
}

static void frames_arrive_in_order_and_apart(void **state) {
    struct pair *pair = *state;
    char bytes[60];
    link_up(pair);
    for (size_t i = 0; i < 60; i++) {
        bytes[i] = (char)i;
        fake_send(&pair->a.node, pair->at_a, &bytes[i], 1);
    }
    assert_true(fake_wait(&pair->loop, sixty_at_b, pair));
    assert_int_equal(end_b(pair)->input.size, 60);
    assert_memory_equal(end_b(pair)->input.bytes, bytes, 60);
}

/* Nagle's algorithm and delayed acknowledgements together would hold a small frame back for 40 ms. */
static void frames_do_not_wait_for_more(void **state) {
    struct pair *pair = *state;
    link_up(pair);
    struct web *webs[] = {pair->a.server.web, pair->b.server.web};
    for (size_t i = 0; i < 2; i++) {
        int on = 0;
        socklen_t size = sizeof on;
        assert_non_null(webs[i]->connections);
        assert_int_equal(getsockopt(lws_get_socket_fd(webs[i]->connections->wsi), IPPROTO_TCP, TCP_NODELAY, &on, &size),
                         0);
        assert_int_equal(on, 1);
    }
}

static bool both_closed(void *context) {
    return end_a(context)->closed && end_b(context)->closed;
}

static void ended_link_sends_what_is_left_and_closes(void **state) {
    struct pair *pair = *state;
    char *frame = calloc(1, 500000);
    assert_non_null(frame);
    link_up(pair);
    fake_send(&pair->b.node, pair->at_b, frame, 500000);
    fake_end_it(&pair->b.node, pair->at_b);
    assert_true(fake_wait(&pair->loop, both_closed, pair));
    assert_int_equal(end_a(pair)->messages, 1);
    assert_int_equal(end_a(pair)->last_message_size, 500000);
    free(frame);
}

static bool a_closed(void *context) {
    return end_a(context)->closed;
}

static void dial_to_a_closed_port_ends_as_closed(void **state) {
    struct pair *pair = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0); /* bound and not listening: nobody else gets the port meanwhile */
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    dial(pair, ntohs(address.sin_port));
    assert_true(fake_wait(&pair->loop, a_closed, pair));
    close(fd);
}

static bool none_open_at_a(void *context) {
    struct pair *pair = context;
    struct web_counters counters;
    web_read_counters(pair->a.server.web, &counters);
    return counters.open[WEB_PEERS] == 0;
}

static int silent_listener(uint16_t *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static bool one_open_at_a(void *context) {
    struct pair *pair = context;
    struct web_counters counters;
    web_read_counters(pair->a.server.web, &counters);
    return counters.open[WEB_PEERS] == 1;
}

static void dial_that_nobody_answers_is_dropped_once_the_broker_gives_up(void **state) {
    struct pair *pair = *state;
    uint16_t port;
    int fd = silent_listener(&port);
    dial(pair, port);
    assert_true(fake_wait(&pair->loop, one_open_at_a, pair));
    for (int turns = 0; turns < 20; turns++)
        uv_run(&pair->loop, UV_RUN_NOWAIT); /* TCP is up, TLS waits */
    assert_false(end_a(pair)->closed);
    uint64_t before_ms = patient_clock_ms();
    fake_end_it(&pair->a.node, pair->at_a);
    assert_true(fake_wait(&pair->loop, none_open_at_a, pair));
    assert_true(patient_clock_ms() - before_ms < 2000); /* at once, not when libwebsockets' own time is over */
    assert_true(end_a(pair)->closed);
    close(fd);
}

static void dial_given_up_before_its_turn_is_dropped(void **state) {
    struct pair *pair = *state;
    uint16_t port;
    int fd = silent_listener(&port);
    dial(pair, port);
    fake_end_it(&pair->a.node, pair->at_a);
    assert_true(fake_wait(&pair->loop, none_open_at_a, pair));
    close(fd);
}

static void stop_in_the_middle_of_a_dial_drains_the_loop(void **state) {
    struct pair *pair = *state;
    uint16_t port;
    int fd = silent_listener(&port);
    dial(pair, port);
    assert_true(fake_wait(&pair->loop, one_open_at_a, pair));
    for (int turns = 0; turns < 20; turns++)
        uv_run(&pair->loop, UV_RUN_NOWAIT); /* TCP is up, TLS waits */
    struct fake_end *begun = end_a(pair);
    dial(pair, port); /* and one that has not begun */
    fake_server_stop(&pair->a);
    assert_true(fake_wait(&pair->loop, none_open_at_a, pair));
    assert_true(begun->closed);
    assert_true(end_a(pair)->closed);
    close(fd);
}

/* ---- a stranger with OpenSSL ---- */

struct stranger {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
    bool over;           /* end of file or an alert came */
    const char *request; /* sent once the handshake is done */
    size_t answer_size;
    char answer[512];
};

static void stranger_init(struct stranger *stranger, struct pair *pair, int version, const struct fake_server *key_of) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons(web_port(pair->b.server.web, WEB_PEERS, 0));
    *stranger = (struct stranger){.context = SSL_CTX_new(TLS_client_method())};
    assert_non_null(stranger->context);
    if (key_of != NULL) assert_true(web_tls_set_up(stranger->context, key_of->identity.key, "stranger"));
    assert_int_equal(SSL_CTX_set_min_proto_version(stranger->context, version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(stranger->context, version), 1);
    stranger->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(stranger->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(stranger->fd, F_SETFL, O_NONBLOCK), 0);
    stranger->ssl = SSL_new(stranger->context);
    assert_non_null(stranger->ssl);
    assert_int_equal(SSL_set_fd(stranger->ssl, stranger->fd), 1);
}

static void stranger_deinit(struct stranger *stranger) {
    SSL_free(stranger->ssl);
    SSL_CTX_free(stranger->context);
    close(stranger->fd);
}

static bool retry(SSL *ssl, int result) {
    int error = SSL_get_error(ssl, result);
    ERR_clear_error();
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* One step of the stranger: handshake, request, reading to the end. */
static bool stranger_over(void *context) {
    struct stranger *stranger = context;
    int result = SSL_is_init_finished(stranger->ssl) ? 1 : SSL_connect(stranger->ssl);
    if (result == 1 && stranger->request != NULL) {
        result = SSL_write(stranger->ssl, stranger->request, (int)strlen(stranger->request));
        stranger->request = NULL;
    }
    while (result > 0) {
        size_t room = sizeof stranger->answer - 1 - stranger->answer_size;
        result = SSL_read(stranger->ssl, stranger->answer + stranger->answer_size, (int)room);
        if (result > 0) stranger->answer_size += (size_t)result;
    }
    if (!retry(stranger->ssl, result)) stranger->over = true;
    return stranger->over;
}

static void assert_turned_away(struct pair *pair, struct stranger *stranger) {
    assert_true(fake_wait(&pair->loop, stranger_over, stranger));
    assert_int_equal(pair->b.node.broker.end_count, 0);
    stranger_deinit(stranger);
}

#define UPGRADE(path, protocol)                                                                                        \
    "GET " path " HTTP/1.1\r\nHost: hobnob\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "        \
    "dGhlIHNhbXBsZSBub25jZQ==\r\n"                                                                                     \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: " protocol "\r\n\r\n"

static void stranger_without_a_certificate_is_turned_away(void **state) {
    struct pair *pair = *state;
    struct stranger stranger;
    stranger_init(&stranger, pair, TLS1_3_VERSION, NULL);
    stranger.request = UPGRADE("/hobnob", "hobnob");
    assert_turned_away(pair, &stranger);
    assert_int_equal(stranger.answer_size, 0);
}

static void tls_1_2_is_turned_away(void **state) {
    struct pair *pair = *state;
    struct stranger stranger;
    stranger_init(&stranger, pair, TLS1_2_VERSION, &pair->a);
    stranger.request = UPGRADE("/hobnob", "hobnob");
    assert_turned_away(pair, &stranger);
}

static void other_path_or_protocol_over_good_tls_is_no_link(void **state) {
    static const char *const requests[] = {UPGRADE("/mqtt", "hobnob"), UPGRADE("/hobnob", "mqtt"),
                                           UPGRADE("/hobnob", "http"), "GET /hobnob HTTP/1.0\r\nHost: plain\r\n\r\n",
                                           "GET /metrics HTTP/1.0\r\nHost: plain\r\n\r\n"};
    struct pair *pair = *state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct stranger stranger;
        stranger_init(&stranger, pair, TLS1_3_VERSION, &pair->a);
        stranger.request = requests[i];
        assert_turned_away(pair, &stranger);
        assert_null(strstr(stranger.answer, " 101 "));
        assert_null(strstr(stranger.answer, " 200 "));
    }
}

static bool answered(void *context) {
    struct stranger *stranger = context;
    stranger_over(stranger);
    return strstr(stranger->answer, "\r\n\r\n") != NULL;
}

static void the_same_stranger_with_the_right_path_is_a_link(void **state) {
    struct pair *pair = *state;
    struct stranger stranger;
    stranger_init(&stranger, pair, TLS1_3_VERSION, &pair->a);
    stranger.request = UPGRADE("/hobnob", "hobnob");
    assert_true(fake_wait(&pair->loop, answered, &stranger));
    assert_non_null(strstr(stranger.answer, " 101 "));
    assert_int_equal(pair->b.node.broker.end_count, 1);
    stranger_deinit(&stranger);
}

/* A key and a WebSocket are cheap: who has not said whose link it is makes room as well. */
static void links_that_are_nobodys_make_room(void **state) {
    struct pair *pair = *state;
    struct stranger strangers[4];
    pair->b.server.web->strangers_max[WEB_PEERS] = 2;
    for (size_t i = 0; i < 3; i++) {
        stranger_init(&strangers[i], pair, TLS1_3_VERSION, &pair->a);
        strangers[i].request = UPGRADE("/hobnob", "hobnob");
        assert_true(fake_wait(&pair->loop, answered, &strangers[i]));
        if (i == 0) pair->b.node.broker.ends[0].has_peer = true; /* no stranger any more, and so there may be two */
    }
    stranger_init(&strangers[3], pair, TLS1_3_VERSION, &pair->a);
    assert_true(fake_wait(&pair->loop, stranger_over, &strangers[3])); /* again, please */
    assert_true(fake_wait(&pair->loop, stranger_over, &strangers[1]));
    assert_false(stranger_over(&strangers[0]));
    assert_false(stranger_over(&strangers[2]));
    for (size_t i = 0; i < 4; i++)
        stranger_deinit(&strangers[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(both_sides_learn_the_key_of_the_other),
        TEST(frame_of_any_size_arrives_as_one_message),
        TEST(frames_arrive_in_order_and_apart),
        TEST(frames_do_not_wait_for_more),
        TEST(ended_link_sends_what_is_left_and_closes),
        TEST(dial_to_a_closed_port_ends_as_closed),
        TEST(dial_that_nobody_answers_is_dropped_once_the_broker_gives_up),
        TEST(dial_given_up_before_its_turn_is_dropped),
        TEST(stop_in_the_middle_of_a_dial_drains_the_loop),
        TEST(stranger_without_a_certificate_is_turned_away),
        TEST(tls_1_2_is_turned_away),
        TEST(other_path_or_protocol_over_good_tls_is_no_link),
        TEST(the_same_stranger_with_the_right_path_is_a_link),
        TEST(links_that_are_nobodys_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
