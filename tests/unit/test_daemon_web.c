/* The admin port as callers on real sockets see it. What is behind is fake_node.h. */
#include "caller.h"

#include <jansson.h>

#include "daemon/admin.h"
#include "daemon/web_inside.h"

static uint16_t admin_port(struct site *site) {
    return web_port(site->fake.server.web, WEB_ADMIN, 0);
}

static uint16_t peers_port(struct site *site) {
    return web_port(site->fake.server.web, WEB_PEERS, 0);
}

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
        {GET("/api/v1/why"), "HTTP/1.1 400", "topic=TOPIC"},
        {GET("/api/v1/why?topic=a&from=x"), "HTTP/1.1 400", "to=BROKER"},
        {GET("/api/v1/why?topic=a&from=x&to="), "HTTP/1.1 400", "to=BROKER"},
        {GET("/api/v1/why?topic=%ff&from=x&to=y"), "HTTP/1.1 400", "UTF-8"},
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

#define POST(path, length, body)                                                                                       \
    "POST " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" length "\r\n\r\n" body

static void a_posted_ring_gets_the_nodes_verdict(void **state) {
    static const struct {
        const char *request, *status, *piece;
    } cases[] = {
        {POST("/api/v1/ring", "Content-Length: 9", "ring good"), "HTTP/1.1 200",
         "{\"ring\": {\"number\": 7, \"verdict\": \"taken\"}}"},
        {POST("/api/v1/ring", "Content-Length: 8", "ring old"), "HTTP/1.1 409", "{\"error\":\"of 8 bytes"},
        {POST("/api/v1/ring", "Content-Length: 8", "ring bad"), "HTTP/1.1 400",
         "{\"error\":\"of 8 bytes \\\"ring bad\\\"\"}"},
        {POST("/api/v1/ring", "Content-Length: 0", ""), "HTTP/1.1 411", "hobnob key push"},
        {POST("/api/v1/ring", "Accept: x", ""), "HTTP/1.1 411", "hobnob key push"},
        {POST("/api/v1/ring", "Content-Length: -5", ""), "HTTP/1.1 411", "hobnob key push"},
        {POST("/api/v1/ring", "Content-Length: 4097", ""), "HTTP/1.1 413", "too large"},
        {POST("/api/v1/ring", "Origin: http://localhost\r\nContent-Length: 9", "ring good"), "HTTP/1.1 403",
         "web pages"},
        {"POST /api/v1/ring HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\nContent-Length: 9\r\n\r\n"
         "ring good",
         "HTTP/1.1 421", "localhost"},
        {GET("/api/v1/ring"), "HTTP/1.1 404", "\"error\""},
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

static void a_ring_that_comes_in_pieces_is_read_whole(void **state) {
    struct site *site = *state;
    struct caller caller;
    static const char request[] = POST("/api/v1/ring", "Content-Length: 3000", "");
    caller_init(&caller, admin_port(site));
    text_add(&caller.out, "%s", request);
    for (int i = 0; i < 299; i++) {
        text_add(&caller.out, "0123456789");
        if (i % 100 == 0) uv_run(&site->loop, UV_RUN_NOWAIT);
    }
    text_add(&caller.out, "ring  good");
    assert_true(fake_wait(&site->loop, over, &caller));
    text_append(&caller.in, "", 1);
    assert_non_null(strstr(caller.in.bytes, "HTTP/1.1 200"));
    caller_deinit(&caller);
}

static bool is_asked(void *context) {
    const struct site *site = context;
    return site->fake.node.broker.why.open;
}

static bool is_ended(void *context) {
    return !is_asked(context);
}

static void begin_why(struct site *site, struct caller *caller, const char *request) {
    caller_init(caller, admin_port(site));
    text_add(&caller->out, "%s", request);
    step(caller);
    assert_true(fake_wait(&site->loop, is_asked, site));
}

static void why_waits_for_the_brokers_answer(void **state) {
    static const struct {
        struct why_step step;
        const char *pieces[2];
    } cases[] = {
        {{WHY_QUEUE, false, "edge-1", "all \"well\""},
         {"\"arrives\":true,\"stage\":null,\"broker\":null,\"reason\":null",
          "{\"stage\":\"queue\",\"broker\":\"edge-1\",\"stops\":false,\"text\":\"all \\\"well\\\"\"}"}},
        {{WHY_JOIN, true, "edge-2", "not \xc3\xbc"},
         {"\"arrives\":false,\"stage\":\"join\",\"broker\":\"edge-2\",\"reason\":\"not \\u00FC\"", "\"stops\":true"}},
        {{WHY_SILENCE, true, "edge-1", "who knows"},
         {"\"arrives\":null,\"stage\":\"silence\"", "{\"why\":{\"topic\":\"a/b&+=c\",\"from\":\"x\",\"to\":\"y\""}},
    };
    struct site *site = *state;
    struct fake_why *why = &site->fake.node.broker.why;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct caller caller;
        begin_why(site, &caller, GET("/api/v1/why?to=y&topic=a%2Fb%26%2B%3dc&n=1&from=x"));
        assert_string_equal(why->asked, "a/b&+=c from x to y");
        uv_run(&site->loop, UV_RUN_NOWAIT);
        assert_int_equal(caller.in.size, 0);
        why->step = cases[i].step;
        why->is_done = true;
        assert_true(fake_wait(&site->loop, over, &caller));
        text_append(&caller.in, "", 1);
        for (int piece = 0; piece < 2; piece++)
            if (strstr(caller.in.bytes, cases[i].pieces[piece]) == NULL) fail_msg("answered with %s", caller.in.bytes);
        assert_false(why->open);
        caller_deinit(&caller);
    }
}

static void why_of_a_caller_who_hangs_up_is_ended(void **state) {
    struct site *site = *state;
    struct caller caller, other;
    begin_why(site, &caller, GET("/api/v1/why?topic=a&from=x&to=y"));
    ask(site, &other, admin_port(site), GET("/api/v1/why?topic=a&from=x&to=y"));
    assert_non_null(strstr(other.in.bytes, "HTTP/1.1 503"));
    caller_deinit(&other);
    caller_deinit(&caller);
    assert_true(fake_wait(&site->loop, is_ended, site));
    begin_why(site, &caller,
              "HEAD /api/v1/why?topic=a&from=x&to=y HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    site->fake.node.broker.why.step = (struct why_step){.stage = WHY_TOPIC, .broker = "x", .text = "fine"};
    site->fake.node.broker.why.is_done = true;
    assert_true(fake_wait(&site->loop, over, &caller));
    text_append(&caller.in, "", 1);
    assert_non_null(strstr(caller.in.bytes, "HTTP/1.1 200"));
    assert_null(strstr(caller.in.bytes, "fine"));
    caller_deinit(&caller);
    begin_why(site, &caller, GET("/api/v1/why?topic=a&from=x&to=y")); /* and one is open at the end */
    caller_deinit(&caller);
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

static void store_that_fails_is_told_wherever_one_asks(void **state) {
    struct site *site = *state;
    struct store_state store = {.failing = true, .reason = "the disk is full", .commits = 3, .commit_buckets = {1, 2}};
    static const char *const cases[][2] = {
        {GET("/readyz"), "the disk is full"},
        {GET("/metrics"), "hobnob_store_failing 1\n"},
        {GET("/metrics"), "hobnob_store_commit_seconds_bucket{le=\"0.0010\"} 3\n"},
        {GET("/metrics"), "hobnob_ready 0\n"},
        {GET("/api/v1/status"), "\"state\":\"failing\""},
        {GET("/api/v1/status"), "\"reason\":\"the disk is full\""},
    };
    site->fake.server.storing = (struct storing *)&store;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct caller caller;
        ask(site, &caller, admin_port(site), cases[i][0]);
        if (strstr(caller.in.bytes, cases[i][1]) == NULL)
            fail_msg("%s was answered with %s", cases[i][0], caller.in.bytes);
        caller_deinit(&caller);
    }
    site->fake.server.storing = NULL;
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

static bool says(struct site *site, const char *path, const char *piece) {
    struct text text = {0};
    const char *type = NULL;
    assert_int_equal(admin_respond(&site->fake.server, path, strlen(path), &text, &type), ADMIN_OK);
    text_append(&text, "", 1);
    const bool found = strstr(text.bytes, piece) != NULL;
    text_deinit(&text);
    return found;
}

static void own_row_tells_what_is_wrong_with_the_token(void **state) {
    struct site *site = *state;
    struct identity *identity = &site->fake.identity;
    static const struct {
        int64_t now_s;
        bool fault, refused;
        const char *trouble;
    } cases[] = {{1899, false, false, NULL},
                 {1900, false, false, "token ends soon"},
                 {1900, false, true, "refused by others"},
                 {1899, false, true, "refused by others"},
                 {1899, true, true, "token refused"},
                 {2000, false, false, "token ends soon"},
                 {2001, true, true, "token expired"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char row[64], sample[160];
        const char *trouble = cases[i].trouble;
        identity->token_from_s = 1000;
        identity->token_ends_s = 2000;
        snprintf(identity->token_fault, sizeof identity->token_fault, "%s", cases[i].fault ? "no good" : "");
        site->fake.node.refused = cases[i].refused;
        site->fake.server.wall_told_ms = cases[i].now_s * 1000;
        snprintf(row, sizeof row, "\"trouble\":\"%s\",\"self\":true", trouble != NULL ? trouble : "");
        snprintf(sample, sizeof sample, "hobnob_member_in_trouble{member=\"edge-1\",id=\"ab%030d\",trouble=\"%s\"} 1\n",
                 0, trouble != NULL ? trouble : "");
        assert_int_equal(says(site, "/api/v1/members", row), trouble != NULL);
        assert_int_equal(says(site, "/metrics", sample), trouble != NULL);
        assert_int_equal(says(site, "/metrics", "hobnob_gossip_members_in_trouble 1\n"), trouble != NULL);
        assert_int_equal(says(site, "/api/v1/status", "\"in_trouble\":1"), trouble != NULL);
        assert_true(says(site, "/metrics", "hobnob_token_expires_seconds 2000\n"));
        assert_true(says(site, "/api/v1/members", "\"trouble\":null,\"self\":false")); /* the other's */
    }
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
    config.listen.admin.items[0].port = admin_port(site);
    snprintf(expected, sizeof expected, "127.0.0.1:%u", admin_port(site));
    assert_null(web_new(&server, error));
    assert_non_null(strstr(error, expected));
    assert_non_null(strstr(error, "in use"));
    assert_non_null(strstr(error, "listen.admin"));
    config.listen.admin.items[0].port = 0;
    config.listen.peers.items[0].port = 0;
    snprintf(config.listen.peers.items[0].ip, sizeof config.listen.peers.items[0].ip, "192.0.2.1");
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
    return counters.open[WEB_PEERS] < 4;
}

/* Who opens connections and says nothing does not keep out those that come after. */
static void the_silent_make_room(void **state) {
    struct site *site = *state;
    struct caller silent[5];
    site->fake.server.web->open_max[WEB_PEERS] = 4;
    for (size_t i = 0; i < 5; i++) {
        caller_init(&silent[i], peers_port(site));
        for (int turns = 0; turns < 20; turns++)
            uv_run(&site->loop, UV_RUN_NOWAIT);
    }
    uint64_t start_ms = patient_clock_ms();
    assert_true(fake_wait(&site->loop, over, &silent[0]));              /* the oldest */
    assert_true(patient_clock_ms() - start_ms < WEB_HANDSHAKE_S * 500); /* not because its time was over */
    assert_true(fake_wait(&site->loop, over, &silent[4]));              /* it came when all was full: again, please */
    assert_true(fake_wait(&site->loop, nobody_waits, site));
    assert_false(over(&silent[1]));
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
    assert_true(counters.open[WEB_ADMIN] <= 32);
    assert_true(counters.refused_full > 0);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_path_has_its_status),
        TEST(a_posted_ring_gets_the_nodes_verdict),
        TEST(a_ring_that_comes_in_pieces_is_read_whole),
        TEST(why_waits_for_the_brokers_answer),
        TEST(why_of_a_caller_who_hangs_up_is_ended),
        TEST(readyz_is_503_before_and_after_serving),
        TEST(store_that_fails_is_told_wherever_one_asks),
        TEST(head_has_headers_only),
        TEST(requests_one_after_the_other_share_a_connection),
        TEST(table_of_many_megabytes_arrives_whole),
        TEST(members_and_status_have_the_promised_fields),
        TEST(own_row_tells_what_is_wrong_with_the_token),
        cmocka_unit_test(broker_alone_is_its_only_member),
        cmocka_unit_test(only_names_of_this_host_are_ours),
        TEST(port_in_use_is_an_error_with_a_remedy),
        TEST(admin_port_is_for_loopback_only),
        TEST(admin_connections_are_bounded),
        TEST(the_silent_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
