/* The admin port and MQTT over WebSocket as clients on real sockets see them. What is behind is fake_node.h. */
#include "fake_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "daemon/admin.h"
#include "daemon/web_inside.h"

struct site {
    uv_loop_t loop;
    struct fake_server fake;
};

static int set_up(void **state) {
    struct site *site = calloc(1, sizeof *site);
    assert_non_null(site);
    assert_int_equal(uv_loop_init(&site->loop), 0);
    fake_server_init(&site->fake, &site->loop, 1);
    *state = site;
    return 0;
}

/* Every test ends with the loop drained and nothing leaked. */
static int tear_down(void **state) {
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

static void caller_init(struct caller *caller, uint16_t port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    *caller = (struct caller){.fd = socket(AF_INET, SOCK_STREAM, 0)};
    assert_int_equal(connect(caller->fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(fcntl(caller->fd, F_SETFL, O_NONBLOCK), 0);
}

static void caller_deinit(struct caller *caller) {
    text_deinit(&caller->out);
    text_deinit(&caller->in);
    if (caller->fd >= 0) close(caller->fd);
}

static void step(struct caller *caller) {
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

static bool over(void *context) {
    struct caller *caller = context;
    step(caller);
    return caller->over;
}

/* So many whole answers of /healthz. */
static bool has_wanted(void *context) {
    struct caller *caller = context;
    size_t answers = 0;
    step(caller);
    for (size_t at = 0; at + 7 <= caller->in.size; at++)
        if (memcmp(caller->in.bytes + at, "\r\n\r\nok\n", 7) == 0) answers++;
    return answers >= caller->wanted;
}

/* One exchange on a connection of its own; the answer has a final zero. */
static void ask(struct site *site, struct caller *caller, uint16_t port, const char *request) {
    caller_init(caller, port);
    text_add(&caller->out, "%s", request);
    assert_true(fake_wait(&site->loop, over, caller));
    text_append(&caller->in, "", 1);
}

static uint16_t admin_port(struct site *site) {
    return web_port(site->fake.server.web, WEB_ADMIN, 0);
}

static uint16_t ws_port(struct site *site) {
    return web_port(site->fake.server.web, WEB_WEBSOCKET, 0);
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nConnection: close\r\n\r\n"

static void each_path_has_its_status(void **state) {
    static const struct {
        const char *request, *status, *piece;
    } cases[] = {
        {GET("/healthz"), "HTTP/1.1 200", "ok\n"},
        {GET("/readyz"), "HTTP/1.1 200", "ready\n"},
        {GET("/"), "HTTP/1.1 200", "/api/v1/members"},
        {GET("/metrics"), "HTTP/1.1 200", "hobnob_clients 0\n"},
        {GET("/metrics"), "HTTP/1.1 200", "content-type: text/plain; version=0.0.4"},
        {GET("/api/v1/status"), "HTTP/1.1 200", "\"table_hash\":\"fedcba9876543210\""},
        {GET("/api/v1/members?x=y"), "HTTP/1.1 200", "\"state\":\"alive\""},
        {GET("/api/v1/links"), "HTTP/1.1 200", "\"publications_sent\":5"},
        {GET("/api/v1/registry"), "HTTP/1.1 200", "{\"registry\": []}"},
        {GET("/api/v1/nothing"), "HTTP/1.1 404", "\"error\""},
        {GET("/api/v1/"), "HTTP/1.1 404", "nothing here"},
        {GET("/api/v1/statusx"), "HTTP/1.1 404", "\"error\""},
        {GET("/mqtt"), "HTTP/1.1 404", "nothing here"},
        {GET("/../../etc/passwd"), "HTTP/1.1 404", "nothing here"},
        {"POST /api/v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
         "HTTP/1.1 405", "GET, HEAD"},
        {"DELETE /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 405", "Only GET"},
        {"GET /healthz HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 421", "localhost"},
        {"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 421", "localhost"},
        {"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: "
         "Upgrade\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
         "HTTP/1.0 404", ""},
    };
    struct site *site = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct caller caller;
        ask(site, &caller, admin_port(site), cases[i].request);
        if (strncmp(caller.in.bytes, cases[i].status, strlen(cases[i].status)) != 0 ||
            strstr(caller.in.bytes, cases[i].piece) == NULL)
            fail_msg("%s was answered with %s", cases[i].request, caller.in.bytes);
        caller_deinit(&caller);
    }
}

static void readyz_is_503_before_and_after_serving(void **state) {
    struct site *site = *state;
    struct caller caller;
    site->fake.server.ready = false;
    ask(site, &caller, admin_port(site), GET("/readyz"));
    assert_non_null(strstr(caller.in.bytes, "HTTP/1.1 503"));
    assert_non_null(strstr(caller.in.bytes, "starting"));
    caller_deinit(&caller);
    site->fake.server.ready = site->fake.server.leaving = true;
    ask(site, &caller, admin_port(site), GET("/readyz"));
    assert_non_null(strstr(caller.in.bytes, "HTTP/1.1 503"));
    caller_deinit(&caller);
}

static void head_has_headers_only(void **state) {
    struct site *site = *state;
    struct caller caller;
    ask(site, &caller, admin_port(site), "HEAD /healthz HTTP/1.1\r\nHost: [::1]:9100\r\nConnection: close\r\n\r\n");
    assert_non_null(strstr(caller.in.bytes, "HTTP/1.1 200"));
    assert_non_null(strstr(caller.in.bytes, "content-length: 3\r\n"));
    assert_string_equal(strstr(caller.in.bytes, "\r\n\r\n"), "\r\n\r\n");
    caller_deinit(&caller);
}

static void requests_one_after_the_other_share_a_connection(void **state) {
    struct site *site = *state;
    struct caller caller;
    caller_init(&caller, admin_port(site));
    for (caller.wanted = 1; caller.wanted <= 3; caller.wanted++) {
        text_add(&caller.out, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_true(fake_wait(&site->loop, has_wanted, &caller));
    }
    assert_false(caller.over);
    caller_deinit(&caller);
}

static void table_of_many_megabytes_arrives_whole(void **state) {
    struct site *site = *state;
    struct caller caller;
    site->fake.node.registry_rows = 100000;
    ask(site, &caller, admin_port(site), GET("/api/v1/registry"));
    const char *body = strstr(caller.in.bytes, "\r\n\r\n");
    assert_non_null(body);
    json_t *json = json_loads(body + 4, 0, NULL);
    assert_non_null(json);
    json_t *rows = json_object_get(json, "registry");
    assert_int_equal(json_array_size(rows), 100000);
    json_t *last = json_array_get(rows, 99999);
    assert_string_equal(json_string_value(json_object_get(last, "owner")), "edge-1");
    assert_string_equal(json_string_value(json_object_get(last, "kind")), "newsub");
    assert_string_equal(json_string_value(json_object_get(last, "filter")), "dev/99999/\"t\"");
    assert_true(json_is_true(json_object_get(last, "active")));
    json_decref(json);
    caller_deinit(&caller);
}

static void members_and_status_have_the_promised_fields(void **state) {
    struct site *site = *state;
    struct text text = {0};
    const char *type = NULL;
    assert_int_equal(admin_respond(&site->fake.server, "/api/v1/members", 15, &text, &type), ADMIN_OK);
    assert_string_equal(type, "application/json");
    json_t *json = json_loadb(text.bytes, text.size, 0, NULL);
    json_t *other = json_array_get(json_object_get(json, "members"), 1);
    assert_string_equal(json_string_value(json_object_get(other, "name")), "edge-2");
    assert_string_equal(json_string_value(json_object_get(other, "id")), "ab000000000000000000000000000000");
    assert_string_equal(json_string_value(json_object_get(other, "address")), "127.0.0.1:7100");
    assert_int_equal(json_integer_value(json_object_get(other, "epoch")), 7);
    assert_true(json_is_null(json_object_get(other, "heard_ms_ago")));
    assert_true(json_is_false(json_object_get(other, "self")));
    json_decref(json);
    text_deinit(&text);
    assert_int_equal(admin_respond(&site->fake.server, "/api/v1/status", 14, &text, &type), ADMIN_OK);
    json = json_loadb(text.bytes, text.size, 0, NULL);
    json_t *status = json_object_get(json, "status");
    assert_string_equal(json_string_value(json_object_get(status, "name")), "edge-1");
    assert_int_equal(json_integer_value(json_object_get(status, "rows")), 7);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(status, "members"), "alive")), 2);
    assert_int_equal(json_integer_value(json_object_get(status, "links")), 1);
    json_decref(json);
    text_deinit(&text);
}

static void broker_alone_is_its_only_member(void **state) {
    uv_loop_t loop;
    struct fake_server fake;
    struct text text = {0};
    const char *type = NULL;
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    fake_server_init(&fake, &loop, 0);
    fake.server.epoch = 12;
    assert_int_equal(web_port(fake.server.web, WEB_PEERS, 0), 0);
    assert_int_equal(admin_respond(&fake.server, "/api/v1/members", 15, &text, &type), ADMIN_OK);
    json_t *json = json_loadb(text.bytes, text.size, 0, NULL);
    json_t *members = json_object_get(json, "members"), *self = json_array_get(members, 0);
    assert_int_equal(json_array_size(members), 1);
    assert_string_equal(json_string_value(json_object_get(self, "name")), "edge-0");
    assert_int_equal(json_integer_value(json_object_get(self, "epoch")), 12);
    assert_true(json_is_true(json_object_get(self, "self")));
    json_decref(json);
    text_deinit(&text);
    assert_int_equal(admin_respond(&fake.server, "/api/v1/registry", 16, &text, &type), ADMIN_OK);
    assert_memory_equal(text.bytes, "{\"registry\": []}\n", text.size);
    text_deinit(&text);
    struct gossip_address to = {.family = 4, .ip = {127, 0, 0, 1}, .port = 1};
    web_dial(fake.server.web, 1, &to, "nobody"); /* has no key to show: nothing happens */
    fake_server_stop(&fake);
    assert_true(fake_drain(&loop));
    fake_server_free(&fake);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void only_names_of_this_host_are_ours(void **state) {
    static const char *const ours[] = {"localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:9100",
                                       "[::1]",     "[::1]:9100",   "10.1.2.3:1"};
    static const char *const others[] = {"",
                                         "example.com",
                                         "localhost.example.com",
                                         "127.0.0.1.example.com",
                                         "localhost:80x",
                                         "[::1",
                                         "[::1]x",
                                         "[example]",
                                         "::1",
                                         "127.0.0.1:9100:1",
                                         "[",
                                         "[]"};
    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!admin_host_is_ours(ours[i])) fail_msg("%s", ours[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (admin_host_is_ours(others[i])) fail_msg("%s", others[i]);
}

static void port_in_use_is_an_error_with_a_remedy(void **state) {
    struct site *site = *state;
    struct config config = site->fake.config;
    struct server server = site->fake.server;
    char error[SERVER_ERROR_MAX] = "", expected[64];
    server.config = &config;
    config.listen.ws.items[0].port = ws_port(site);
    snprintf(expected, sizeof expected, "127.0.0.1:%u", ws_port(site));
    assert_null(web_new(&server, error));
    assert_non_null(strstr(error, expected));
    assert_non_null(strstr(error, "in use"));
    assert_non_null(strstr(error, "listen.ws"));
    config.listen.ws.items[0].port = 0;
    snprintf(config.listen.ws.items[0].ip, sizeof config.listen.ws.items[0].ip, "192.0.2.1");
    assert_null(web_new(&server, error));
    assert_non_null(strstr(error, "is no address of this host"));
}

static void admin_port_is_for_loopback_only(void **state) {
    struct site *site = *state;
    struct config config = site->fake.config;
    struct server server = site->fake.server;
    char error[SERVER_ERROR_MAX] = "";
    server.config = &config;
    snprintf(config.listen.admin.items[0].ip, sizeof config.listen.admin.items[0].ip, "0.0.0.0");
    assert_null(web_new(&server, error));
    assert_non_null(strstr(error, "listen.admin"));
    assert_non_null(strstr(error, "loopback"));
}

static bool nobody_waits(void *context) {
    struct site *site = context;
    struct web_counters counters;
    web_read_counters(site->fake.server.web, &counters);
    return counters.open[WEB_WEBSOCKET] < 4;
}

/* Who opens connections and says nothing does not keep out those that come after. */
static void the_silent_make_room(void **state) {
    struct site *site = *state;
    struct caller silent[5], speaks;
    site->fake.server.web->open_max[WEB_WEBSOCKET] = 4;
    for (size_t i = 0; i < 5; i++) {
        caller_init(&silent[i], ws_port(site));
        for (int turns = 0; turns < 20; turns++)
            uv_run(&site->loop, UV_RUN_NOWAIT);
    }
    uint64_t start_ms = fake_clock_ms();
    assert_true(fake_wait(&site->loop, over, &silent[0]));           /* the oldest */
    assert_true(fake_clock_ms() - start_ms < WEB_HANDSHAKE_S * 500); /* not because its time was over */
    assert_true(fake_wait(&site->loop, over, &silent[4]));           /* it came when all was full: again, please */
    assert_true(fake_wait(&site->loop, nobody_waits, site));
    ask(site, &speaks, ws_port(site), GET("/nothing/here"));
    assert_non_null(strstr(speaks.in.bytes, "HTTP/1.1 404"));
    assert_false(over(&silent[1]));
    caller_deinit(&speaks);
    for (size_t i = 0; i < 5; i++)
        caller_deinit(&silent[i]);
}

static void admin_connections_are_bounded(void **state) {
    struct site *site = *state;
    struct caller callers[40];
    struct web_counters counters;
    for (size_t i = 0; i < 40; i++)
        caller_init(&callers[i], admin_port(site));
    assert_true(fake_wait(&site->loop, over, &callers[39]));
    web_read_counters(site->fake.server.web, &counters);
    assert_int_equal(counters.accepted, 40);
    assert_int_equal(counters.open[WEB_ADMIN], 32);
    assert_int_equal(counters.refused_full, 8);
    for (size_t i = 0; i < 40; i++)
        caller_deinit(&callers[i]);
    struct caller caller; /* and there is room again */
    for (int turns = 0; turns < 20; turns++)
        uv_run(&site->loop, UV_RUN_NOWAIT);
    ask(site, &caller, admin_port(site), GET("/healthz"));
    assert_non_null(strstr(caller.in.bytes, "HTTP/1.1 200"));
    caller_deinit(&caller);
}

/* ---- MQTT over WebSocket ---- */

#define UPGRADE(path, protocol)                                                                                        \
    "GET " path " HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "             \
    "dGhlIHNhbXBsZSBub25jZQ==\r\n"                                                                                     \
    "Sec-WebSocket-Version: 13\r\n" protocol "\r\n"
#define PROTOCOL(names) "Sec-WebSocket-Protocol: " names "\r\n"

static bool upgraded(void *context) {
    struct caller *caller = context;
    step(caller);
    return caller->in.size >= 4 && memmem(caller->in.bytes, caller->in.size, "\r\n\r\n", 4) != NULL;
}

static bool upgraded_or_over(void *context) {
    struct caller *caller = context;
    return upgraded(caller) || caller->over;
}

static struct fake_end *connect_websocket(struct site *site, struct caller *caller) {
    caller_init(caller, ws_port(site));
    text_add(&caller->out, UPGRADE("/mqtt", PROTOCOL("mqtt")));
    assert_true(fake_wait(&site->loop, upgraded, caller));
    text_append(&caller->in, "", 1);
    assert_non_null(strstr(caller->in.bytes, "HTTP/1.1 101"));
    assert_non_null(strcasestr(caller->in.bytes, "Sec-WebSocket-Protocol: mqtt\r\n"));
    text_deinit(&caller->in);
    return fake_end(&site->fake.node.broker, site->fake.node.broker.end_count);
}

/* A masked frame (RFC 6455 section 5.2): opcode 0 continuation, 1 text, 2 binary. */
static void add_frame(struct caller *caller, unsigned opcode, bool final, const char *bytes, size_t size) {
    static const uint8_t mask[4] = {1, 2, 3, 4};
    uint8_t head[8] = {(uint8_t)(opcode | (final ? 0x80u : 0))};
    size_t head_size = 2;
    if (size < 126)
        head[1] = (uint8_t)(0x80u | size);
    else {
        assert_true(size < 65536);
        head[1] = 0x80 | 126;
        head[2] = (uint8_t)(size >> 8);
        head[3] = (uint8_t)(size & 0xff);
        head_size = 4;
    }
    text_append(&caller->out, (char *)head, head_size);
    text_append(&caller->out, (const char *)mask, 4);
    for (size_t i = 0; i < size; i++) {
        char byte = (char)(bytes[i] ^ mask[i % 4]);
        text_append(&caller->out, &byte, 1);
    }
}

static void the_right_path_and_subprotocol_only(void **state) {
    static const char *const refused[] = {UPGRADE("/", PROTOCOL("mqtt")),
                                          UPGRADE("/hobnob", PROTOCOL("mqtt")),
                                          UPGRADE("/mqtt/x", PROTOCOL("mqtt")),
                                          UPGRADE("/mqtt", ""),
                                          UPGRADE("/mqtt", PROTOCOL("http")),
                                          UPGRADE("/mqtt", PROTOCOL("chat")),
                                          GET("/metrics"),
                                          GET("/healthz"),
                                          GET("/mqtt"),
                                          ("GET /mqtt HTTP/1.1\r\nHost: plain\r\nUpgrade: h2c\r\nConnection: Upgrade, "
                                           "HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"),
                                          "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n\x10\x0c",
                                          "\x10\x0cMQTT\r\n\r\n"};
    static const char *const accepted[] = {UPGRADE("/mqtt", PROTOCOL("mqtt")), UPGRADE("/mqtt", PROTOCOL("mqttv3.1")),
                                           UPGRADE("/mqtt", PROTOCOL("chat, mqtt"))};
    struct site *site = *state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct caller caller;
        caller_init(&caller, ws_port(site));
        text_add(&caller.out, "%s", refused[i]);
        if (!fake_wait(&site->loop, upgraded_or_over, &caller)) fail_msg("%s is not answered", refused[i]);
        text_append(&caller.in, "", 1);
        if (strstr(caller.in.bytes, " 101 ") != NULL || strstr(caller.in.bytes, " 200 ") != NULL)
            fail_msg("%s: %s", refused[i], caller.in.bytes);
        caller_deinit(&caller);
    }
    assert_int_equal(site->fake.node.broker.end_count, 0);
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        struct caller caller;
        caller_init(&caller, ws_port(site));
        text_add(&caller.out, "%s", accepted[i]);
        assert_true(fake_wait(&site->loop, upgraded, &caller));
        text_append(&caller.in, "", 1);
        if (strstr(caller.in.bytes, " 101 ") == NULL) fail_msg("%s: %s", accepted[i], caller.in.bytes);
        caller_deinit(&caller);
    }
    assert_int_equal(site->fake.node.broker.end_count, 3);
}

static bool input_wanted(void *context) {
    struct site *site = context;
    return site->fake.node.broker.ends[0].input.size >= 30003;
}

static void packets_may_span_messages_and_fragments(void **state) {
    struct site *site = *state;
    struct caller caller;
    char bytes[30003];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    struct fake_end *end = connect_websocket(site, &caller);
    add_frame(&caller, 2, true, bytes, 1);
    add_frame(&caller, 2, false, bytes + 1, 1);
    add_frame(&caller, 0, false, bytes + 2, 20000);
    add_frame(&caller, 0, true, bytes + 20002, 0);
    add_frame(&caller, 2, true, bytes + 20002, 10001);
    for (size_t sent = 0; sent < caller.out.size && end->input.size < sizeof bytes;) {
        step(&caller);
        sent = caller.out_sent;
        uv_run(&site->loop, UV_RUN_NOWAIT);
    }
    assert_true(fake_wait(&site->loop, input_wanted, site));
    assert_int_equal(end->input.size, sizeof bytes);
    assert_memory_equal(end->input.bytes, bytes, sizeof bytes);
    caller_deinit(&caller);
}

static bool closed_at_broker(void *context) {
    struct site *site = context;
    return site->fake.node.broker.ends[0].closed;
}

static bool some_bytes(void *context) {
    struct caller *caller = context;
    step(caller);
    return caller->in.size >= caller->wanted;
}

static void text_message_ends_the_client(void **state) {
    struct site *site = *state;
    struct caller caller;
    struct fake_end *end = connect_websocket(site, &caller);
    add_frame(&caller, 1, true, "\x10\x00", 2);
    add_frame(&caller, 2, true, "\x10\x00", 2);
    step(&caller);
    uint64_t before_ms = fake_clock_ms();
    assert_true(fake_wait(&site->loop, closed_at_broker, site));
    assert_true(fake_clock_ms() - before_ms < 1000); /* the will is due now, not when the close is acknowledged */
    caller.wanted = 4;
    assert_true(fake_wait(&site->loop, some_bytes, &caller));
    assert_memory_equal(caller.in.bytes, "\x88\x02\x03\xeb", 4); /* close, 1003 */
    assert_int_equal(end->input.size, 0);
    caller_deinit(&caller);
}

static void a_socket_that_breaks_is_reported_closed(void **state) {
    struct site *site = *state;
    struct caller caller;
    connect_websocket(site, &caller);
    close(caller.fd);
    caller.fd = -1;
    assert_true(fake_wait(&site->loop, closed_at_broker, site));
    caller_deinit(&caller);
}

/* The payloads of binary frames, unmasked as a server sends them; false if a frame is larger than 64 KiB or of another
 * kind. */
static bool unframe(const struct text *in, struct text *out) {
    const uint8_t *bytes = (const uint8_t *)in->bytes;
    for (size_t at = 0; at + 2 <= in->size;) {
        size_t size = bytes[at + 1], head = 2;
        if (bytes[at] != 0x82) return bytes[at] == 0x88;
        if (size == 126) {
            size = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
            head = 4;
        } else if (size == 127) {
            size =
                (size_t)bytes[at + 6] << 24 | (size_t)bytes[at + 7] << 16 | (size_t)bytes[at + 8] << 8 | bytes[at + 9];
            head = 10;
        }
        if (size > 65536 || at + head + size > in->size) return false;
        text_append(out, in->bytes + at + head, size);
        at += head + size;
    }
    return true;
}

static void output_goes_out_whole_in_bounded_messages_then_the_end(void **state) {
    struct site *site = *state;
    struct caller caller;
    struct text got = {0};
    size_t size = 2500000;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 11 + i / 65536);
    connect_websocket(site, &caller);
    fake_send(&site->fake.node, 1, bytes, 4);
    fake_send(&site->fake.node, 1, bytes + 4, 3);
    fake_send(&site->fake.node, 1, bytes + 7, size - 7);
    fake_end_it(&site->fake.node, 1);
    assert_true(fake_wait(&site->loop, over, &caller));
    assert_true(unframe(&caller.in, &got));
    assert_int_equal(got.size, size);
    assert_memory_equal(got.bytes, bytes, size);
    text_deinit(&got);
    caller_deinit(&caller);
    free(bytes);
}

static void client_that_does_not_read_is_closed_in_the_end(void **state) {
    struct site *site = *state;
    struct caller caller;
    size_t size = 30000000; /* more than socket buffers hold */
    char *bytes = calloc(1, size);
    assert_non_null(bytes);
    connect_websocket(site, &caller);
    fake_send(&site->fake.node, 1, bytes, size);
    fake_end_it(&site->fake.node, 1);
    assert_true(fake_wait(&site->loop, closed_at_broker, site));
    assert_int_equal(fake_end(&site->fake.node.broker, 1)->frames_written, 0);
    caller_deinit(&caller);
    free(bytes);
}

static void stop_reports_open_clients_as_closed(void **state) {
    struct site *site = *state;
    struct caller caller;
    connect_websocket(site, &caller);
    fake_server_stop(&site->fake);
    assert_true(fake_wait(&site->loop, closed_at_broker, site));
    caller_deinit(&caller);
}

static void stop_listening_keeps_clients_and_the_admin_port(void **state) {
    struct site *site = *state;
    struct caller caller, late, admin;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(ws_port(site))};
    connect_websocket(site, &caller);
    web_stop_listening(site->fake.server.web);
    late.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(late.fd, (struct sockaddr *)&address, sizeof address), -1);
    close(late.fd);
    ask(site, &admin, admin_port(site), GET("/healthz"));
    assert_non_null(strstr(admin.in.bytes, "HTTP/1.1 200"));
    assert_false(closed_at_broker(site));
    caller_deinit(&admin);
    caller_deinit(&caller);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_path_has_its_status),
        TEST(readyz_is_503_before_and_after_serving),
        TEST(head_has_headers_only),
        TEST(requests_one_after_the_other_share_a_connection),
        TEST(table_of_many_megabytes_arrives_whole),
        TEST(members_and_status_have_the_promised_fields),
        cmocka_unit_test(broker_alone_is_its_only_member),
        cmocka_unit_test(only_names_of_this_host_are_ours),
        TEST(port_in_use_is_an_error_with_a_remedy),
        TEST(admin_port_is_for_loopback_only),
        TEST(admin_connections_are_bounded),
        TEST(the_silent_make_room),
        TEST(the_right_path_and_subprotocol_only),
        TEST(packets_may_span_messages_and_fragments),
        TEST(text_message_ends_the_client),
        TEST(a_socket_that_breaks_is_reported_closed),
        TEST(output_goes_out_whole_in_bounded_messages_then_the_end),
        TEST(client_that_does_not_read_is_closed_in_the_end),
        TEST(stop_reports_open_clients_as_closed),
        TEST(stop_listening_keeps_clients_and_the_admin_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
