/* PROXY headers as proxies send them, cut anywhere, and as they must not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/proxy.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\x0a\x01\x02\x03\x7f\x00\x00\x01\xde\xad\x07\x5b"
#define V6                                                                                                             \
    "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"                                                                             \
    "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02"                                                                             \
    "\xde\xad\x07\x5b"
#define BYTES(literal) literal, sizeof(literal) - 1

/* The bytes are copied so that AddressSanitizer sees a read behind them. */
static enum proxy_result decode(const char *bytes, size_t size, struct proxy_header *out) {
    const char *wrong = NULL;
    uint8_t *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const enum proxy_result result = proxy_decode(copy, size, out, &wrong);
    free(copy);
    assert_int_equal(result == PROXY_BAD, wrong != NULL);
    return result;
}

struct good_case {
    const char *bytes;
    size_t size;
    const char *ip; /* NULL: none */
    uint16_t port;
    const char *name;
};

static const struct good_case good[] = {
    {BYTES("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n"), "192.168.0.1", 56324, ""},
    {BYTES("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"), "255.255.255.255", 65535, ""},
    {BYTES("PROXY TCP4 0.0.0.0 1.2.3.4 0 0\r\n"), "0.0.0.0", 0, ""},
    {BYTES("PROXY TCP6 2001:DB8::7 ::1 1 2\r\n"), "2001:db8::7", 1, ""},
    {BYTES(
         "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n"),
     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535, ""},
    {BYTES("PROXY UNKNOWN\r\n"), NULL, 0, ""},
    {BYTES("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535"
           "\r\n"),
     NULL, 0, ""},
    {BYTES("PROXY UNKNOWN what ever  \r\n"), NULL, 0, ""},
    {BYTES(SIGNATURE "\x21\x11\x00\x0c" V4), "10.1.2.3", 57005, ""},
    {BYTES(SIGNATURE "\x21\x21\x00\x24" V6), "fd00::1", 57005, ""},
    {BYTES(SIGNATURE "\x20\x00\x00\x00"), NULL, 0, ""},                                 /* LOCAL */
    {BYTES(SIGNATURE "\x20\x11\x00\x0c" V4), NULL, 0, ""},                              /* its addresses mean nothing */
    {BYTES(SIGNATURE "\x20\x00\x00\x03xyz"), NULL, 0, ""},                              /* nor what else is in it */
    {BYTES(SIGNATURE "\x21\x00\x00\x00"), NULL, 0, ""},                                 /* UNSPEC */
    {BYTES(SIGNATURE "\x21\x12\x00\x0c" V4), NULL, 0, ""},                              /* UDP */
    {BYTES(SIGNATURE "\x21\x11\x00\x0f" V4 "\x04\x00\x00"), "10.1.2.3", 57005, ""},     /* NOOP */
    {BYTES(SIGNATURE "\x21\x11\x00\x10" V4 "\xe0\x00\x01\xff"), "10.1.2.3", 57005, ""}, /* another's own */
    /* SSL: a certificate on this connection, verified; version, CN */
    {BYTES(SIGNATURE "\x21\x11\x00\x26" V4 "\x20\x00\x17\x07\0\0\0\0\x21\x00\x07TLSv1.3\x22\x00\x05"
                     "alice"),
     "10.1.2.3", 57005, "alice"},
    /* not verified; not shown; no TLS; a zero within the name */
    {BYTES(SIGNATURE "\x21\x11\x00\x1c" V4 "\x20\x00\x0d\x07\0\0\0\x01\x22\x00\x05"
                     "alice"),
     "10.1.2.3", 57005, ""},
    {BYTES(SIGNATURE "\x21\x11\x00\x1c" V4 "\x20\x00\x0d\x01\0\0\0\0\x22\x00\x05"
                     "alice"),
     "10.1.2.3", 57005, ""},
    {BYTES(SIGNATURE "\x21\x11\x00\x1c" V4 "\x20\x00\x0d\x02\0\0\0\0\x22\x00\x05"
                     "alice"),
     "10.1.2.3", 57005, ""},
    {BYTES(SIGNATURE "\x21\x11\x00\x1c" V4 "\x20\x00\x0d\x03\0\0\0\0\x22\x00\x05"
                     "al\0ce"),
     "10.1.2.3", 57005, ""},
    /* not UTF-8; a control character above U+007F */
    {BYTES(SIGNATURE "\x21\x11\x00\x1c" V4 "\x20\x00\x0d\x03\0\0\0\0\x22\x00\x05"
                     "al\xc2\x9b"
                     "e"),
     "10.1.2.3", 57005, ""},
    {BYTES(SIGNATURE "\x21\x11\x00\x1c" V4 "\x20\x00\x0d\x03\0\0\0\0\x22\x00\x05"
                     "al\xff"
                     "ce"),
     "10.1.2.3", 57005, ""},
    /* CRC-32C; worked out by another program */
    {BYTES(SIGNATURE "\x21\x11\x00\x13" V4 "\x03\x00\x04\xb7\xa0\xb3\x4e"), "10.1.2.3", 57005, ""},
};

static void header_is_read_wherever_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct proxy_header header;
        char followed[600];
        memcpy(followed, good[i].bytes, good[i].size);
        memcpy(followed + good[i].size, "\x10\x0c\x00\x04MQTT", 8);
        for (size_t size = 0; size < good[i].size; size++)
            if (decode(followed, size, &header) != PROXY_MORE) fail_msg("case %zu, %zu bytes", i, size);
        for (size_t size = good[i].size; size <= good[i].size + 8; size++) {
            if (decode(followed, size, &header) != PROXY_DONE) fail_msg("case %zu, %zu bytes", i, size);
            assert_int_equal(header.size, good[i].size);
            assert_int_equal(header.has_address, good[i].ip != NULL);
            assert_int_equal(header.is_local, good[i].bytes[0] == '\r' && good[i].bytes[12] == 0x20);
            if (good[i].ip != NULL) assert_string_equal(header.ip, good[i].ip);
            if (good[i].ip != NULL) assert_int_equal(header.port, good[i].port);
            assert_string_equal(header.name, good[i].name);
        }
    }
}

struct bad_case {
    const char *bytes;
    size_t size;
    size_t bad_from; /* with so many bytes it is known */
};

static const struct bad_case bad[] = {
    {BYTES("\x10"), 1},
    {BYTES("GET / HTTP/1.1\r\n"), 1},
    {BYTES("PROXZ"), 5},
    {BYTES("PROXYTCP4"), 6},
    {BYTES("PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n"), 33},
    {BYTES("PROXY TCP4  1.2.3.4 1.2.3.4 1 1\r\n"), 33},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1 \r\n"), 33},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n"), 34},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n"), 30},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n"), 36},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n"), 33},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 -1 1\r\n"), 33},
    {BYTES("PROXY TCP4 1.2.3.04 1.2.3.4 1 1\r\n"), 33},
    {BYTES("PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n"), 30},
    {BYTES("PROXY TCP4 1.2.3.4 ::1 1 1\r\n"), 28},
    {BYTES("PROXY TCP6 1.2.3.4 ::1 1 1\r\n"), 28},
    {BYTES("PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n"), 32},
    {BYTES("PROXY tcp4 1.2.3.4 1.2.3.4 1 1\r\n"), 32},
    {BYTES("PROXY \r\n"), 8},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n"), 31},
    {BYTES("PROXY UNKNOWN\rx"), 15},
    {BYTES("PROXY UNKNOWN\0\r\n"), 14},
    {BYTES(
         "PROXY UNKNOWN xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
         "\r\n"),
     106},
    {BYTES(SIGNATURE "\x11\x11\x00\x0c" V4), 13}, /* version 1 */
    {BYTES(SIGNATURE "\x31\x11\x00\x0c" V4), 13},
    {BYTES(SIGNATURE "\x22\x11\x00\x0c" V4), 13}, /* no such command */
    {BYTES(SIGNATURE "\x21\x41\x00\x0c" V4), 14}, /* no such family */
    {BYTES(SIGNATURE "\x21\x13\x00\x0c" V4), 14}, /* no such transport */
    {BYTES(SIGNATURE "\x21\x11\x00\x0b" V4), 16}, /* shorter than its addresses */
    {BYTES(SIGNATURE "\x21\x21\x00\x0c" V4), 16},
    {BYTES(SIGNATURE "\x21\x31\x00\x0c" V4), 16},
    {BYTES(SIGNATURE "\x21\x11\xff\xff" V4), 16}, /* larger than anybody needs */
    {BYTES(SIGNATURE "\x20\x00\xff\xff" V4), 16},
    {BYTES(SIGNATURE "\x21\x11\x00\x0d" V4 "\x04"), 29}, /* half a TLV */
    {BYTES(SIGNATURE "\x21\x11\x00\x0f" V4 "\x04\x00\x01"), 31},
    {BYTES(SIGNATURE "\x21\x11\x00\x13" V4 "\x20\x00\x04\x01\0\0\0"), 35},               /* SSL too short */
    {BYTES(SIGNATURE "\x21\x11\x00\x17" V4 "\x20\x00\x08\x01\0\0\0\0\x22\x00\x01"), 39}, /* CN longer than SSL */
    {BYTES(SIGNATURE "\x21\x11\x00\x13" V4 "\x03\x00\x04\xb7\xa0\xb3\x4f"), 35},         /* wrong checksum */
    {BYTES(SIGNATURE "\x21\x11\x00\x12" V4 "\x03\x00\x03\xb7\xa0\xb3"), 34},
};

static void what_is_none_is_refused_as_soon_as_it_is_known(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (size_t size = 0; size <= bad[i].size; size++) {
            struct proxy_header header;
            const enum proxy_result expected = size >= bad[i].bad_from ? PROXY_BAD : PROXY_MORE;
            if (decode(bad[i].bytes, size, &header) != expected) fail_msg("case %zu, %zu bytes", i, size);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_read_wherever_it_is_cut),
        cmocka_unit_test(what_is_none_is_refused_as_soon_as_it_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
