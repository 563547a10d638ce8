/* Clients on real sockets: WebSocket as a client sees it, handshakes, fairness. What is behind is fake_node.h. */
#include "caller.h"

#include "daemon/clients_inside.h"

static uint16_t mqtt_port(struct site *site) {
    return clients_port(site->fake.server.clients, CLIENTS_MQTT, 0);
}

static uint16_t ws_port(struct site *site) {
    return clients_port(site->fake.server.clients, CLIENTS_WS, 0);
}

/* ---- WebSocket ---- */

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
    static const char *const refused[] = {GET("/"),
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
    static const char *const accepted[] = {UPGRADE("/mqtt", PROTOCOL("mqtt")), UPGRADE("/", PROTOCOL("mqtt")),
                                           UPGRADE("/mqtt", PROTOCOL("mqttv3.1")),
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
    assert_int_equal(site->fake.node.broker.end_count, 4);
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
    uint64_t before_ms = patient_clock_ms();
    assert_true(fake_wait(&site->loop, closed_at_broker, site));
    assert_true(patient_clock_ms() - before_ms < 1000); /* the will is due now, not when the close is acknowledged */
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

static void stop_listening_keeps_clients(void **state) {
    struct site *site = *state;
    struct caller caller, late;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(ws_port(site))};
    connect_websocket(site, &caller);
    clients_stop_listening(site->fake.server.clients);
    late.fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(late.fd, (struct sockaddr *)&address, sizeof address), -1);
    close(late.fd);
    assert_false(closed_at_broker(site));
    caller_deinit(&caller);
}

static bool some_input(void *context) {
    struct site *site = context;
    return site->fake.node.broker.ends[0].input.size > 0;
}

/* RFC 6455 section 5.1. */
static void frame_without_a_mask_ends_the_client(void **state) {
    struct site *site = *state;
    struct caller caller;
    struct fake_end *end = connect_websocket(site, &caller);
    text_append(&caller.out, "\x82\x02\x10\x00", 4);
    step(&caller);
    assert_true(fake_wait(&site->loop, closed_at_broker, site));
    caller.wanted = 4;
    assert_true(fake_wait(&site->loop, some_bytes, &caller));
    assert_memory_equal(caller.in.bytes, "\x88\x02\x03\xea", 4); /* close, 1002 */
    assert_int_equal(end->input.size, 0);
    caller_deinit(&caller);
}

static bool both_fragments(void *context) {
    const struct fake_end *end = context;
    return end->input.size >= 2;
}

static void ping_is_answered_between_fragments(void **state) {
    struct site *site = *state;
    struct caller caller;
    struct fake_end *end = connect_websocket(site, &caller);
    add_frame(&caller, 2, false, "a", 1);
    add_frame(&caller, 9, true, "hello", 5);
    add_frame(&caller, 0, true, "b", 1);
    caller.wanted = 7;
    assert_true(fake_wait(&site->loop, some_bytes, &caller));
    assert_int_equal(caller.in.size, 7);
    assert_memory_equal(caller.in.bytes, "\x8a\x05hello", 7);
    assert_true(fake_wait(&site->loop, both_fragments, end));
    assert_int_equal(end->input.size, 2);
    assert_memory_equal(end->input.bytes, "ab", 2);
    caller_deinit(&caller);
}

static void close_is_answered_with_its_code(void **state) {
    struct site *site = *state;
    struct caller caller;
    connect_websocket(site, &caller);
    add_frame(&caller, 8, true,
              "\x03\xe9"
              "bye",
              5); /* 1001: going away */
    step(&caller);
    assert_true(fake_wait(&site->loop, closed_at_broker, site));
    assert_true(fake_wait(&site->loop, over, &caller));
    assert_int_equal(caller.in.size, 4);
    assert_memory_equal(caller.in.bytes, "\x88\x02\x03\xe9", 4);
    caller_deinit(&caller);
}

static void frames_behind_the_request_are_read(void **state) {
    struct site *site = *state;
    struct caller caller;
    caller_init(&caller, ws_port(site));
    text_add(&caller.out, UPGRADE("/mqtt", PROTOCOL("mqtt")));
    add_frame(&caller, 2, true, "xyz", 3);
    assert_true(fake_wait(&site->loop, upgraded, &caller));
    assert_true(fake_wait(&site->loop, some_input, site));
    assert_int_equal(site->fake.node.broker.ends[0].input.size, 3);
    assert_memory_equal(site->fake.node.broker.ends[0].input.bytes, "xyz", 3);
    caller_deinit(&caller);
}

/* ---- limits ---- */

static size_t arriving(struct site *site) {
    struct clients_counters counters;
    clients_read_counters(site->fake.server.clients, &counters);
    return counters.arriving;
}

static bool four_arrive(void *context) {
    return arriving(context) == 4;
}

/* Who opens connections and says nothing does not keep out those that come after. */
static void the_silent_make_room(void **state) {
    struct site *site = *state;
    struct caller silent[5], speaks;
    site->fake.node.broker.limits.connecting_max = 4;
    for (size_t i = 0; i < 5; i++) {
        caller_init(&silent[i], ws_port(site));
        for (int turns = 0; turns < 20; turns++)
            uv_run(&site->loop, UV_RUN_NOWAIT);
    }
    const uint64_t start_ms = patient_clock_ms();
    assert_true(fake_wait(&site->loop, over, &silent[0])); /* the oldest */
    assert_true(patient_clock_ms() - start_ms < 5000);     /* not because its time was over */
    assert_true(four_arrive(site));
    ask(site, &speaks, ws_port(site), GET("/nothing/here"));
    assert_non_null(strstr(speaks.in.bytes, "HTTP/1.1 404"));
    assert_false(over(&silent[2]));
    caller_deinit(&speaks);
    for (size_t i = 0; i < 5; i++)
        caller_deinit(&silent[i]);
}

static void handshake_has_a_deadline(void **state) {
    struct site *site = *state;
    struct caller slow;
    struct clients_counters counters;
    site->fake.node.broker.limits.connect_timeout_ms = 50;
    caller_init(&slow, ws_port(site));
    text_add(&slow.out, "GET /mqtt HTTP/1.1\r\nHost: ");
    assert_true(fake_wait(&site->loop, over, &slow));
    clients_read_counters(site->fake.server.clients, &counters);
    assert_int_equal(counters.arrivals_timed_out, 1);
    assert_int_equal(counters.arriving, 0);
    assert_int_equal(counters.open, 0);
    caller_deinit(&slow);
}

/* ---- pausing ---- */

static bool wanted_input(void *context) {
    struct caller *caller = context;
    step(caller);
    return caller->out_sent == caller->out.size;
}

static void paused_client_is_not_read_from_until_it_is_named(void **state) {
    struct site *site = *state;
    struct caller caller;
    caller_init(&caller, mqtt_port(site));
    text_append(&caller.out, "abc", 3);
    assert_true(fake_wait(&site->loop, wanted_input, &caller));
    for (int turns = 0; turns < 20 && site->fake.node.broker.end_count == 0; turns++)
        uv_run(&site->loop, UV_RUN_NOWAIT);
    struct fake_end *end = fake_end(&site->fake.node.broker, 1);
    end->paused = true;
    text_append(&caller.out, "d", 1); /* after this it is seen that there shall be no more */
    assert_true(fake_wait(&site->loop, wanted_input, &caller));
    for (int turns = 0; turns < 20; turns++)
        uv_run(&site->loop, UV_RUN_NOWAIT);
    const size_t before = end->input.size;
    text_append(&caller.out, "efg", 3);
    assert_true(fake_wait(&site->loop, wanted_input, &caller));
    for (int turns = 0; turns < 50; turns++)
        uv_run(&site->loop, UV_RUN_NOWAIT);
    assert_int_equal(end->input.size, before);
    end->paused = false;
    assert_true(clients_ready(site->fake.server.clients, 1));
    for (const uint64_t until_ms = patient_clock_ms() + 5000; end->input.size < 7 && patient_clock_ms() < until_ms;)
        uv_run(&site->loop, UV_RUN_NOWAIT);
    assert_int_equal(end->input.size, 7);
    assert_memory_equal(end->input.bytes, "abcdefg", 7);
    caller_deinit(&caller);
}

/* ---- fairness ---- */

static bool heard_the_second(void *context) {
    struct site *site = context;
    return site->fake.node.broker.ends[1].input.size > 0;
}

static bool heard_all_of_the_first(void *context) {
    struct site *site = context;
    return site->fake.node.broker.ends[0].input.size == 60000;
}

static void first_costs_much(struct site *site, struct caller *costly) {
    struct caller other;
    char bytes[60000];
    struct broker *broker = &site->fake.node.broker;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 5 + i / 256);
    caller_init(&other, mqtt_port(site));
    for (int turns = 0; turns < 20 && broker->end_count < 2; turns++)
        uv_run(&site->loop, UV_RUN_NOWAIT);
    assert_int_equal(broker->end_count, 2);
    broker->input_ns_per_byte = 2000; /* 120 ms for all of it */
    if (costly->wanted == 1)          /* a WebSocket */
        add_frame(costly, 2, true, bytes, sizeof bytes);
    else
        text_append(&costly->out, bytes, sizeof bytes);
    assert_true(fake_wait(&site->loop, wanted_input, costly));
    text_append(&other.out, "x", 1);
    assert_true(fake_wait(&site->loop, wanted_input, &other));
    assert_true(fake_wait(&site->loop, heard_the_second, site));
    assert_true(broker->ends[0].input.size < sizeof bytes / 2);
    assert_true(fake_wait(&site->loop, heard_all_of_the_first, site));
    assert_memory_equal(broker->ends[0].input.bytes, bytes, sizeof bytes);
    caller_deinit(&other);
    caller_deinit(costly);
}

static void costly_client_shares_the_turn(void **state) {
    struct site *site = *state;
    struct caller costly;
    caller_init(&costly, mqtt_port(site));
    for (int turns = 0; turns < 20 && site->fake.node.broker.end_count < 1; turns++)
        uv_run(&site->loop, UV_RUN_NOWAIT);
    first_costs_much(site, &costly);
}

static void what_a_client_costs_in_the_registry_is_its_own(void **state) {
    struct site *site = *state;
    site->fake.node.broker.costs_in_rows = true;
    costly_client_shares_the_turn(state);
}

static void costly_client_shares_the_turn_over_websocket(void **state) {
    struct site *site = *state;
    struct caller costly;
    connect_websocket(site, &costly);
    costly.wanted = 1;
    first_costs_much(site, &costly);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(costly_client_shares_the_turn),
        TEST(what_a_client_costs_in_the_registry_is_its_own),
        TEST(costly_client_shares_the_turn_over_websocket),
        TEST(the_right_path_and_subprotocol_only),
        TEST(packets_may_span_messages_and_fragments),
        TEST(text_message_ends_the_client),
        TEST(frame_without_a_mask_ends_the_client),
        TEST(ping_is_answered_between_fragments),
        TEST(close_is_answered_with_its_code),
        TEST(frames_behind_the_request_are_read),
        TEST(a_socket_that_breaks_is_reported_closed),
        TEST(output_goes_out_whole_in_bounded_messages_then_the_end),
        TEST(client_that_does_not_read_is_closed_in_the_end),
        TEST(stop_reports_open_clients_as_closed),
        TEST(stop_listening_keeps_clients),
        TEST(the_silent_make_room),
        TEST(handshake_has_a_deadline),
        TEST(paused_client_is_not_read_from_until_it_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
