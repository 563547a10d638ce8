/* The WebSocket protocol as bytes: requests and frames, cut anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/text.h"
#include "daemon/websocket.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define REST "Host: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
#define MQTT "Sec-WebSocket-Protocol: mqtt\r\n"

/* ---- requests ---- */

static void key_of_the_standard_gets_its_answer(void **state) {
    (void)state;
    static const char request[] = "GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "\r\n\x82";
    struct websocket_answer answer;
    const size_t size = sizeof(request) - 2;
    for (size_t part = 0; part < size; part++)
        assert_int_equal(websocket_request(request, part, &answer), WEBSOCKET_MORE);
    assert_int_equal(websocket_request(request, size + 1, &answer), WEBSOCKET_ACCEPTED);
    assert_int_equal(answer.request_size, size);
    answer.bytes[answer.size] = '\0';
    /* RFC 6455 section 1.3 */
    assert_string_equal(answer.bytes,
                        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n");
}

static void request_is_answered_by_what_it_asks(void **state) {
    static const struct {
        const char *request, *answer; /* how it begins */
    } cases[] = {
        {"GET /mqtt?token=x HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 101 "},
        {"GET /mqtt HTTP/1.1\r\nhOST:a\r\nuPGRADE:\tWebSocket \r\nconnection: keep-alive, upgrade\r\n"
         "sec-websocket-version:13\r\n" KEY "sec-websocket-protocol: chat , mqtt\r\n\r\n",
         "HTTP/1.1 101 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY "Sec-WebSocket-Protocol: chat\r\n" MQTT "\r\n", "HTTP/1.1 101 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY "Sec-WebSocket-Protocol: mqttv3.1\r\n\r\n", "HTTP/1.1 101 "},
        {"GET / HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 101 "},
        {"GET /?token=x HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 101 "},
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 "},
        {"GET /x HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 404 "},
        {"GET /mqtt/ HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 404 "},
        {"GET /mqtt HTTP/1.0\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt  HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET \r\n\r\n", "HTTP/1.1 400 "},
        /* what others would read as another request */
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "X: a\nY: b\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "X: a\rY: b\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt?a\nb HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "Content-Length: 5\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "Content-Length: 0\r\n\r\n", "HTTP/1.1 101 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "Transfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "X: a\tb\r\n\r\n", "HTTP/1.1 101 "},
        {"POST /mqtt HTTP/1.1\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 426 "},
        {"GET /mqtt HTTP/1.1\r\n\r\n", "HTTP/1.1 426 "},
        {"GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "HTTP/1.1 426 "},
        {"GET /mqtt HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
         "8\r\n" KEY MQTT "\r\n",
         "HTTP/1.1 426 Upgrade Required\r\nSec-WebSocket-Version: 13\r\n"},
        {"GET /mqtt HTTP/1.1\r\n" REST MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY KEY MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST "Sec-WebSocket-Key: short==\r\n" MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!Q==\r\n" MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\nHost: b\r\n" REST KEY MQTT "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY "\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY "Sec-WebSocket-Protocol: mqtts\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT " folded\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "no colon\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "Name : x\r\n\r\n", "HTTP/1.1 400 "},
        {"GET /mqtt HTTP/1.1\r\n" REST KEY MQTT ": x\r\n\r\n", "HTTP/1.1 400 "},
        {"\x10\x0c", "HTTP/1.1 400 "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct websocket_answer answer;
        const size_t size = strlen(cases[i].request);
        char *copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, cases[i].request, size);
        const enum websocket_request_result result = websocket_request(copy, size, &answer);
        free(copy);
        assert_true(answer.size < sizeof(answer.bytes));
        answer.bytes[answer.size] = '\0';
        if (strncmp(answer.bytes, cases[i].answer, strlen(cases[i].answer)) != 0)
            fail_msg("%s got %s", cases[i].request, answer.bytes);
        assert_int_equal(result == WEBSOCKET_ACCEPTED, strncmp(answer.bytes, "HTTP/1.1 101 ", 13) == 0);
        assert_int_equal(result == WEBSOCKET_REFUSED, answer.wrong != NULL);
    }
}

static void page_of_another_host_is_known_by_its_origin(void **state) {
    (void)state;
    static const struct {
        const char *headers;
        bool from_page;
    } cases[] = {
        {"", false}, /* no browser */
        {"Origin: http://localhost\r\n", false},
        {"origin: https://LOCALHOST:8080\r\n", false},
        {"Origin: http://127.0.0.1:3000\r\n", false},
        {"Origin: http://[::1]:3000\r\n", false},
        {"Origin: http://example.org\r\n", true},
        {"Origin: http://a\r\n", true}, /* as in Host: its owner chose what address that leads to */
        {"Origin: http://localhost.example.org\r\n", true},
        {"Origin: http://127.0.0.1.example.org\r\n", true},
        {"Origin: null\r\n", true}, /* a file, or a frame without rights */
        {"Origin:\r\n", true},
        {"Origin: localhost\r\n", true},
        {"Origin: http://localhost\r\nOrigin: http://example.org\r\n", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char request[600];
        struct websocket_answer answer;
        const int size =
            snprintf(request, sizeof(request), "GET /mqtt HTTP/1.1\r\n" REST KEY MQTT "%s\r\n", cases[i].headers);
        assert_int_equal(websocket_request(request, (size_t)size, &answer), WEBSOCKET_ACCEPTED);
        if (answer.from_page != cases[i].from_page) fail_msg("%s", cases[i].headers);
    }
}

static void request_without_end_is_refused(void **state) {
    (void)state;
    static char request[WEBSOCKET_REQUEST_MAX];
    struct websocket_answer answer;
    memset(request, 'x', sizeof(request));
    memcpy(request, "GET /mqtt HTTP/1.1\r\nA: ", 23);
    assert_int_equal(websocket_request(request, sizeof(request) - 1, &answer), WEBSOCKET_MORE);
    assert_int_equal(websocket_request(request, sizeof(request), &answer), WEBSOCKET_REFUSED);
    assert_memory_equal(answer.bytes, "HTTP/1.1 431 ", 13);
}

/* ---- frames ---- */

static void add_frame(struct text *out, unsigned first, const char *payload, size_t size) {
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    uint8_t head[10];
    const size_t head_size = websocket_head(head, (enum websocket_opcode)0, size);
    head[0] = (uint8_t)first;
    head[1] |= 0x80;
    text_append(out, (char *)head, head_size);
    text_append(out, (const char *)mask, 4);
    for (size_t i = 0; i < size; i++) {
        const char byte = (char)((uint8_t)payload[i] ^ mask[i % 4]);
        text_append(out, &byte, 1);
    }
}

/* Reads all in parts of that size; what came of it as text: the bytes of messages, <p:PAYLOAD> for pings, <c:CODE> and
 * <w:CODE> at the end. */
static void read_parts(const struct text *in, size_t part_size, size_t payload_max, struct text *out) {
    struct websocket_reader reader = {0};
    for (size_t at = 0; at < in->size;) {
        struct websocket_piece piece;
        const size_t part = in->size - at < part_size ? in->size - at : part_size;
        uint8_t *copy = malloc(part);
        assert_non_null(copy);
        memcpy(copy, in->bytes + at, part);
        size_t used = 0;
        while (used < part) {
            const enum websocket_event event = websocket_read(&reader, copy + used, part - used, payload_max, &piece);
            assert_true(piece.used > 0 && piece.used <= part - used);
            used += piece.used;
            if (event == WEBSOCKET_BYTES) {
                assert_true(piece.size > 0 && piece.size <= payload_max);
                text_append(out, (const char *)piece.bytes, piece.size);
            } else if (event == WEBSOCKET_PING) {
                text_add(out, "<p:%.*s>", (int)piece.size, (const char *)piece.bytes);
            } else if (event != WEBSOCKET_NOTHING) {
                text_add(out, event == WEBSOCKET_CLOSE ? "<c:%u>" : "<w:%u>", piece.close_code);
                free(copy);
                return;
            }
        }
        free(copy);
        at += part;
    }
}

static void frames_are_read_wherever_they_are_cut(void **state) {
    static char large[70000];
    static const size_t parts[] = {1, 2, 3, 5, 7, 8, 13, 64, 1000, 65536, 1000000};
    struct text in = {0}, expected = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)(i * 31 + i / 256);
    const size_t sizes[] = {1, 0, 125, 126, 127, 65535, 65536, 70000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        add_frame(&in, i % 2 == 0 ? 0x02 : 0x80, large, sizes[i]); /* each message in two fragments */
        text_append(&expected, large, sizes[i]);
        add_frame(&in, 0x89, "hello", i % 6); /* control frames may stand between fragments */
        text_add(&expected, "<p:%.*s>", (int)(i % 6), "hello");
        add_frame(&in, 0x8a, "unasked", 7);
    }
    add_frame(&in, 0x88, "\x03\xe9", 2);
    text_add(&expected, "<c:1001>");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        struct text out = {0};
        read_parts(&in, parts[i], i % 2 == 0 ? 512 : 16384, &out);
        assert_int_equal(out.size, expected.size);
        assert_memory_equal(out.bytes, expected.bytes, expected.size);
        text_deinit(&out);
    }
    text_deinit(&in);
    text_deinit(&expected);
}

static void broken_rules_have_their_code(void **state) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *result;
    } cases[] = {
#define CASE(bytes, result) {bytes, sizeof(bytes) - 1, result}
        CASE("\x82\x01x", "<w:1002>"), /* no mask (section 5.1) */
        CASE("\x89\x00", "<w:1002>"),
        CASE("\xc2\x81\0\0\0\0x", "<w:1002>"), /* reserved bits */
        CASE("\x92\x81\0\0\0\0x", "<w:1002>"),
        CASE("\x83\x81\0\0\0\0x", "<w:1002>"), /* unknown opcodes */
        CASE("\x8b\x80\0\0\0\0", "<w:1002>"),
        CASE("\x81\x81\0\0\0\0x", "<w:1003>"),                   /* text */
        CASE("\x80\x81\0\0\0\0x", "<w:1002>"),                   /* continues nothing */
        CASE("\x02\x81\0\0\0\0x\x82\x81\0\0\0\0y", "x<w:1002>"), /* a message within one */
        CASE("\x02\x81\0\0\0\0x\x81\x81\0\0\0\0y", "x<w:1002>"),
        CASE("\x09\x80\0\0\0\0", "<w:1002>"),         /* a control frame in fragments */
        CASE("\x89\xfe\x00\x7e\0\0\0\0", "<w:1002>"), /* and one that is too long */
        CASE("\x82\xfe\x00\x7d\0\0\0\0", "<w:1002>"), /* sizes not in their shortest form */
        CASE("\x82\xff\0\0\0\0\0\0\xff\xff\0\0\0\0", "<w:1002>"),
        CASE("\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0", "<w:1002>"), /* and above 63 bits */
        CASE("\x88\x81\0\0\0\0\x03", "<w:1002>"),               /* half a code */
        CASE("\x88\x82\0\0\0\0\x03\xe7", "<w:1002>"),           /* 999 */
        CASE("\x88\x82\0\0\0\0\x03\xed", "<w:1002>"),           /* 1005 is never sent */
        CASE("\x88\x82\0\0\0\0\x03\xe8", "<c:1000>"),
        CASE("\x88\x82\0\0\0\0\x0b\xb8", "<c:3000>"),
        CASE("\x88\x80\0\0\0\0", "<c:0>"),
        CASE("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0xy", "xy"), /* any size needs no memory */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t part = 1; part <= cases[i].size; part++) {
            char copy[64];
            struct text in = {.bytes = copy, .size = cases[i].size}, out = {0};
            memcpy(copy, cases[i].bytes, cases[i].size);
            read_parts(&in, part, 4096, &out);
            text_append(&out, "", 1);
            if (strcmp(out.bytes, cases[i].result) != 0)
                fail_msg("case %zu in parts of %zu: %s, not %s", i, part, out.bytes, cases[i].result);
            text_deinit(&out);
        }
    }
}

static void heads_have_their_shortest_form(void **state) {
    (void)state;
    uint8_t head[WEBSOCKET_SENT_HEAD_MAX];
    assert_int_equal(websocket_head(head, WEBSOCKET_BINARY, 125), 2);
    assert_memory_equal(head, "\x82\x7d", 2);
    assert_int_equal(websocket_head(head, WEBSOCKET_PONG, 126), 4);
    assert_memory_equal(head, "\x8a\x7e\x00\x7e", 4);
    assert_int_equal(websocket_head(head, WEBSOCKET_BINARY, 65535), 4);
    assert_memory_equal(head, "\x82\x7e\xff\xff", 4);
    assert_int_equal(websocket_head(head, WEBSOCKET_BINARY, 65536), 10);
    assert_memory_equal(head, "\x82\x7f\0\0\0\0\0\x01\0\0", 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_of_the_standard_gets_its_answer),
        cmocka_unit_test(request_is_answered_by_what_it_asks),
        cmocka_unit_test(page_of_another_host_is_known_by_its_origin),
        cmocka_unit_test(request_without_end_is_refused),
        cmocka_unit_test(frames_are_read_wherever_they_are_cut),
        cmocka_unit_test(broken_rules_have_their_code),
        cmocka_unit_test(heads_have_their_shortest_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
