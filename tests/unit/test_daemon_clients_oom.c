/* Memory that runs short anywhere between a client's first byte and its input at the broker: that client may be lost,
 * nobody else is, and nothing leaks. */
#include "caller.h"
#include "oom.h"

#define UPGRADE                                                                                                        \
    "GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
#define FRAME "\x82\x83\0\0\0\0abc"
#define HEADER "PROXY TCP4 127.0.0.1 127.0.0.1 5 6\r\n"

static void turn(struct site *site, struct caller *caller) {
    for (int i = 0; i < 40; i++) {
        if (!caller->over) step(caller);
        uv_run(&site->loop, UV_RUN_NOWAIT);
    }
}

/* In two parts, so that the greeting is kept in between. */
static void talk(struct site *site, struct caller *caller, const char *bytes, size_t size) {
    text_append(&caller->out, bytes, 7);
    turn(site, caller);
    text_append(&caller->out, bytes + 7, size - 7);
    turn(site, caller);
}

static bool heard_abc(struct site *site) {
    const struct broker *broker = &site->fake.node.broker;
    const struct text *input = broker->end_count > 0 ? &broker->ends[broker->end_count - 1].input : NULL;
    return input != NULL && input->size == 3 && memcmp(input->bytes, "abc", 3) == 0;
}

/* Returns false once so many allocations are not even made. */
static bool nth_fails(struct site *site, enum clients_kind kind, const char *bytes, size_t size, long nth) {
    struct caller unlucky, lucky;
    caller_init(&unlucky, clients_port(site->fake.server.clients, kind, 0));
    shortage_after(nth);
    talk(site, &unlucky, bytes, size);
    shortage_over();
    const bool failed = shortage.failed;
    caller_init(&lucky, clients_port(site->fake.server.clients, kind, 0));
    talk(site, &lucky, bytes, size);
    assert_true(heard_abc(site));
    caller_deinit(&lucky);
    caller_deinit(&unlucky);
    turn(site, &(struct caller){.over = true});
    return failed;
}

static void sweep(enum clients_kind kind, bool proxied, const char *bytes, size_t size) {
    bool failed = true;
    long nth = 0;
    for (; failed; nth++) {
        void *state = NULL;
        set_up(&state);
        struct site *site = state;
        site->fake.config.listen.proxy_count = proxied ? 1 : 0; /* all of them: no bit counts */
        failed = nth_fails(site, kind, bytes, size, nth);
        tear_down(&state);
    }
    assert_true(nth > 4);
}

static void nobody_else_is_lost_over_websocket(void **state) {
    (void)state;
    sweep(CLIENTS_WS, false, UPGRADE FRAME, sizeof(UPGRADE FRAME) - 1);
}

static void nobody_else_is_lost_behind_a_proxy(void **state) {
    (void)state;
    sweep(CLIENTS_MQTT, true, HEADER "abc", sizeof(HEADER "abc") - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_else_is_lost_over_websocket),
        cmocka_unit_test(nobody_else_is_lost_behind_a_proxy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
