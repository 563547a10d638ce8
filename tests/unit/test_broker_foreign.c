/* Other protocols on a port of MQTT: the log says what the client speaks, and what to do. */
#include "mqtt_client.h"

#include "broker/foreign.h"

static void it_is_known_by_its_first_bytes(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *words; /* NULL: not known */
    } cases[] = {
        {"\x16\x03\x01\x02\x00\x01", 6, "TLS"},
        {"\x16\x03", 2, "TLS"},
        {"\x16", 1, NULL},
        {"GET / HTTP/1.1\r\n", 16, "HTTP"},
        {"GET", 3, NULL},
        {"PROXY TCP4 ", 11, "listen.proxies"},
        {"\r\n\r\n\0\r\nQUIT\n\x21", 13, "listen.proxies"},
        {"\r\n\r\n\0\r\nQUIT", 11, NULL},
        {"\x10\x0c\0\4MQTT", 8, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *what = foreign_protocol((const uint8_t *)cases[i].bytes, cases[i].size);
        if ((what != NULL) != (cases[i].words != NULL)) fail_msg("case %zu: %s", i, what != NULL ? what : "nothing");
        if (what != NULL) assert_non_null(strstr(what, cases[i].words));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_known_by_its_first_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
