#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench_histogram.h"
#include "tools/bench_wire.h"

static void greetings_are_as_the_protocol_has_them(void **state) {
    (void)state;
    uint8_t out[64];
    const struct bench_login plain = {.version = 4, .client_id = "c"};
    static const uint8_t plain_bytes[] = "\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01\x63";
    assert_int_equal(bench_write_connect(out, sizeof out, &plain), sizeof plain_bytes - 1);
    assert_memory_equal(out, plain_bytes, sizeof plain_bytes - 1);

    const struct bench_login full = {
        .version = 5, .client_id = "c", .user = "u", .password = "p", .session_expiry_s = 0x01020304};
    static const uint8_t full_bytes[] = "\x10\x19\x00\x04MQTT\x05\xc0\x00\x00\x05\x11\x01\x02\x03\x04\x00\x01"
                                        "c\x00\x01u\x00\x01p";
    assert_int_equal(bench_write_connect(out, sizeof out, &full), sizeof full_bytes - 1);
    assert_memory_equal(out, full_bytes, sizeof full_bytes - 1);

    static const uint8_t subscribe_bytes[] = "\x82\x07\x00\x01\x00\x00\x01t\x02";
    assert_int_equal(bench_write_subscribe(out, sizeof out, 5, "t", 2), sizeof subscribe_bytes - 1);
    assert_memory_equal(out, subscribe_bytes, sizeof subscribe_bytes - 1);
    assert_int_equal(bench_write_subscribe(out, sizeof out, 4, "t", 2), sizeof subscribe_bytes - 2);

    for (size_t room = 0; room < sizeof full_bytes - 1; room++)
        assert_int_equal(bench_write_connect(out, room, &full), 0);
}

static void a_publication_written_is_read_again(void **state) {
    (void)state;
    static const size_t sizes[] = {8, 64, 130, 20000, 3000000};
    for (uint8_t version = 4; version <= 5; version++)
        for (uint8_t qos = 0; qos <= 2; qos++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                struct bench_template template;
                const struct bench_stamp stamp = {0x12345678, 7, 9};
                struct bench_packet packet;
                assert_true(bench_template_init(&template, version, "a/b", qos, sizes[i]));
                uint8_t *bytes = malloc(template.size);
                assert_non_null(bytes);
                bench_write_publish(bytes, &template, 0x0102, &stamp);
                for (size_t cut = 0; cut < template.size && cut < 12; cut++)
                    assert_int_equal(bench_read_packet(version, bytes, cut, &packet), 0);
                assert_int_equal(bench_read_packet(version, bytes, template.size - 1, &packet), 0);
                assert_int_equal(bench_read_packet(version, bytes, template.size, &packet), 1);
                assert_int_equal(packet.type, BENCH_PUBLISH);
                assert_int_equal(packet.qos, qos);
                assert_int_equal(packet.packet_id, qos > 0 ? 0x0102 : 0);
                assert_int_equal(packet.size, template.size);
                assert_int_equal(packet.payload_size, sizes[i]);
                assert_memory_equal(packet.payload, &stamp, sizeof stamp);
                free(bytes);
                bench_template_deinit(&template);
            }
}

static void answers_of_a_broker_are_read(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        uint8_t version, type, reason;
        uint16_t packet_id, receive_max;
    } rows[] = {
        {"\x20\x02\x00\x05", 4, 4, BENCH_CONNACK, 5, 0, 0},
        {"\x20\x03\x01\x00\x00", 5, 5, BENCH_CONNACK, 0, 0, 0},
        /* Topic Alias Maximum, a user property and an assigned client id before Receive Maximum. */
        {"\x20\x14\x00\x00\x11\x22\x00\x0a\x26\x00\x01k\x00\x01v\x12\x00\x01i\x21\x00\x14", 22, 5, BENCH_CONNACK, 0, 0,
         20},
        {"\x40\x02\x00\x07", 4, 4, BENCH_PUBACK, 0, 7, 0},
        {"\x50\x03\x00\x07\x97", 5, 5, BENCH_PUBREC, 0x97, 7, 0},
        {"\x62\x02\x01\x00", 4, 5, BENCH_PUBREL, 0, 256, 0},
        {"\x90\x03\x00\x01\x02", 5, 4, BENCH_SUBACK, 2, 1, 0},
        {"\x90\x04\x00\x01\x00\x87", 6, 5, BENCH_SUBACK, 0x87, 1, 0},
        {"\xe0\x01\x8b", 3, 5, BENCH_DISCONNECT, 0x8b, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench_packet packet;
        const uint8_t *bytes = (const uint8_t *)rows[i].bytes;
        for (size_t cut = 0; cut < rows[i].size; cut++)
            assert_int_equal(bench_read_packet(rows[i].version, bytes, cut, &packet), 0);
        assert_int_equal(bench_read_packet(rows[i].version, bytes, rows[i].size, &packet), 1);
        assert_int_equal(packet.type, rows[i].type);
        assert_int_equal(packet.reason, rows[i].reason);
        assert_int_equal(packet.packet_id, rows[i].packet_id);
        assert_int_equal(packet.receive_max, rows[i].receive_max);
        assert_int_equal(packet.size, rows[i].size);
    }
}

static void what_is_no_mqtt_is_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"\x30\xff\xff\xff\xff\x01", 6}, /* a length that does not end */
        {"\x30\x01\x00", 3},             /* no room for the topic's size */
        {"\x30\x04\x00\x09xy", 6},       /* a topic past the end */
        {"\x32\x03\x00\x01t", 5},        /* no packet id */
        {"\x30\x04\x00\x01t\x05", 6},    /* properties past the end */
        {"\x40\x01\x00", 3},
        {"\x20\x01\x00", 3},
        {"\x90\x02\x00\x01", 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench_packet packet;
        /* On the heap, so that the sanitizer sees a read past the end. */
        uint8_t *bytes = malloc(rows[i].size);
        assert_non_null(bytes);
        memcpy(bytes, rows[i].bytes, rows[i].size);
        assert_int_equal(bench_read_packet(5, bytes, rows[i].size, &packet), -1);
        free(bytes);
    }
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void percentiles_are_near_those_of_the_sorted_values(void **state) {
    (void)state;
    enum { COUNT = 10000 };
    static uint32_t values[COUNT];
    static struct bench_histogram histogram;
    uint32_t dice = 1;
    for (size_t i = 0; i < COUNT; i++) {
        dice = dice * 1664525u + 1013904223u;
        values[i] = dice >> (dice >> 3) % 32; /* all sizes */
        bench_histogram_add(&histogram, values[i]);
    }
    qsort(values, COUNT, sizeof *values, by_value);
    static const double shares[] = {0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        size_t rank = (size_t)(shares[i] * COUNT);
        uint32_t exact = values[rank > 0 ? rank - 1 : 0], found = bench_histogram_at(&histogram, shares[i]);
        assert_true(found >= exact);
        assert_true(found - exact <= exact / 64);
    }
    assert_int_equal(bench_histogram_at(&histogram, 1), values[COUNT - 1]);
}

static void of_nothing_every_percentile_is_zero(void **state) {
    (void)state;
    static const struct bench_histogram empty;
    static struct bench_histogram one;
    assert_int_equal(bench_histogram_at(&empty, 0.5), 0);
    bench_histogram_add(&one, UINT32_MAX);
    assert_int_equal(bench_histogram_at(&one, 0.5), UINT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greetings_are_as_the_protocol_has_them),
        cmocka_unit_test(a_publication_written_is_read_again),
        cmocka_unit_test(answers_of_a_broker_are_read),
        cmocka_unit_test(what_is_no_mqtt_is_told_apart),
        cmocka_unit_test(percentiles_are_near_those_of_the_sorted_values),
        cmocka_unit_test(of_nothing_every_percentile_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
