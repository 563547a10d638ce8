/* The weather that the system tests make: shares, times and order as asked for, and the same for the same seed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/weather/flight.h"
#include "tests/weather/packet.h"
#include "tests/weather/sky.h"

#define UDP 17u
#define TCP 6u
#define MANY 100000u

static struct sky sky_with(uint64_t seed, const char *const *words) {
    struct sky sky;
    const char *error = "";
    sky_init(&sky, seed, "a to b");
    for (; *words; words++)
        if (!sky_set(&sky.weather, *words, &error)) fail_msg("%s: %s", *words, error);
    return sky;
}

#define SKY(...) sky_with(1, (const char *const[]){__VA_ARGS__, NULL})

/* Sends MANY, one a millisecond; the mean length of a row of losses, in hundredths. */
static uint64_t row_of_losses(struct sky *sky) {
    uint64_t rows = 0, lost = 0;
    bool before = false;
    for (uint64_t i = 0; i < MANY; i++) {
        bool gone = sky_pass(sky, i * 1000, UDP, 100).copies == 0;
        rows += gone && !before;
        lost += gone;
        before = gone;
    }
    return rows > 0 ? lost * 100 / rows : 0;
}

static void a_perfect_cable_changes_nothing(void **state) {
    (void)state;
    struct sky sky = SKY("loss=0");
    for (uint64_t i = 0; i < 1000; i++) {
        struct sky_fate fate = sky_pass(&sky, i, UDP, 1500);
        assert_int_equal(fate.copies, 1);
        assert_int_equal(fate.due_us[0], i);
        assert_false(fate.corrupt);
    }
    assert_int_equal(sky.counts.passed, 1000);
}

static void losses_are_as_many_as_asked_for(void **state) {
    (void)state;
    static const char *const shares[] = {"loss=0.5", "loss=5", "loss=20", "loss=40", "loss=90", "loss=100"};
    static const uint64_t lost[] = {500, 5000, 20000, 40000, 90000, 100000};
    for (size_t i = 0; i < 6; i++) {
        struct sky sky = SKY(shares[i]);
        row_of_losses(&sky);
        assert_in_range(sky.counts.lost, lost[i] - lost[i] / 10, lost[i] + lost[i] / 10);
        assert_int_equal(sky.counts.lost + sky.counts.passed, MANY);
    }
}

static void losses_in_bursts_are_as_many_and_as_long(void **state) {
    (void)state;
    struct sky single = SKY("loss=20"), bursts = SKY("loss=20", "burst=8");
    assert_in_range(row_of_losses(&single), 110, 140); /* 1 / (1 - 0.2) */
    assert_in_range(row_of_losses(&bursts), 700, 900);
    assert_in_range(bursts.counts.lost, 17000, 23000);
}

static bool is_same(const struct sky_fate *a, const struct sky_fate *b) {
    bool same = a->copies == b->copies && a->too_big == b->too_big && a->corrupt == b->corrupt;
    for (uint32_t i = 0; same && i < a->copies; i++)
        same = a->due_us[i] == b->due_us[i];
    return same && (!a->corrupt || a->bit == b->bit);
}

static void the_same_seed_gives_the_same_weather(void **state) {
    (void)state;
    const char *const words[] = {"loss=20", "jitter=50", "reorder=5", "duplicate=5", NULL};
    struct sky one = sky_with(7, words), same = sky_with(7, words), other = sky_with(8, words);
    bool differs = false;
    for (uint64_t i = 0; i < 1000; i++) {
        struct sky_fate a = sky_pass(&one, i, UDP, 100), b = sky_pass(&same, i, UDP, 100);
        struct sky_fate c = sky_pass(&other, i, UDP, 100);
        assert_true(is_same(&a, &b));
        differs = differs || !is_same(&a, &c);
    }
    assert_true(differs);
}

static void jitter_keeps_the_order_and_the_late_are_overtaken(void **state) {
    (void)state;
    struct sky sky = SKY("delay=10", "jitter=30");
    uint64_t last = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        struct sky_fate fate = sky_pass(&sky, i * 1000, UDP, 100);
        assert_in_range(fate.due_us[0], i * 1000 + 10000, i * 1000 + 40000);
        assert_true(fate.due_us[0] >= last);
        last = fate.due_us[0];
    }
    const char *error;
    assert_true(sky_set(&sky.weather, "jitter=0", &error) && sky_set(&sky.weather, "reorder=100", &error));
    assert_int_equal(sky_pass(&sky, 2000000, UDP, 100).due_us[0], 2030000);
    assert_true(sky_set(&sky.weather, "reorder=0", &error));
    assert_int_equal(sky_pass(&sky, 2001000, UDP, 100).due_us[0], 2011000);
}

static void a_rate_holds_back_and_then_drops(void **state) {
    (void)state;
    struct sky sky = SKY("rate=100", "queue=50"); /* 1,000 bytes take 10 ms */
    assert_int_equal(sky_pass(&sky, 0, UDP, 1000).due_us[0], 10000);
    assert_int_equal(sky_pass(&sky, 0, UDP, 1000).due_us[0], 20000);
    for (size_t i = 0; i < 10; i++)
        sky_pass(&sky, 0, UDP, 1000);
    assert_int_equal(sky.counts.passed, 6);
    assert_int_equal(sky.counts.queue_dropped, 6);
    assert_int_equal(sky_pass(&sky, 500000, UDP, 1000).due_us[0], 510000);
}

static void cuts_and_blocks_and_narrow_wires(void **state) {
    (void)state;
    struct sky cut = SKY("cut=on"), no_udp = SKY("no_udp=on"), no_tcp = SKY("no_tcp=on");
    struct sky narrow = SKY("mtu=1000"), hole = SKY("mtu=1000", "hole=on");
    assert_int_equal(sky_pass(&cut, 0, TCP, 100).copies, 0);
    assert_int_equal(sky_pass(&no_udp, 0, UDP, 100).copies, 0);
    assert_int_equal(sky_pass(&no_udp, 0, TCP, 100).copies, 1);
    assert_int_equal(sky_pass(&no_tcp, 0, TCP, 100).copies, 0);
    assert_int_equal(sky_pass(&no_tcp, 0, UDP, 100).copies, 1);
    assert_true(sky_pass(&narrow, 0, UDP, 1001).too_big);
    assert_int_equal(sky_pass(&narrow, 0, UDP, 1000).copies, 1);
    assert_false(sky_pass(&hole, 0, UDP, 1001).too_big);
    assert_int_equal(sky_pass(&hole, 0, UDP, 1001).copies, 0);
}

static void words_that_say_nothing_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"loss",      "loss=",      "loss=-1", "loss=101", "loss=1x",
                                      "delay=nan", "cut=1",      "cut=",    "hail=1",   "=1",
                                      "",          "delay=1e99", "los=1",   "lossy=1",  "mtu=-5"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sky_weather weather = {0}, same = {0};
        const char *error = NULL;
        assert_false(sky_set(&weather, bad[i], &error));
        assert_non_null(error);
        assert_memory_equal(&weather, &same, sizeof weather);
    }
}

static void packets_land_in_the_order_of_their_times(void **state) {
    (void)state;
    struct flight flight = {0};
    struct dice dice;
    uint8_t bytes[4];
    dice_init(&dice, 3, "flight");
    for (uint32_t i = 0; i < 5000; i++) {
        memcpy(bytes, &i, 4);
        assert_true(flight_add(&flight, dice_below(&dice, 100), i % 5, bytes, 4));
    }
    uint64_t last_due = 0, last_order = 0, landed = 0;
    for (struct flying *flying; (flying = flight_take(&flight, 100)); landed++) {
        assert_true(flying->due_us > last_due ||
                    (flying->due_us == last_due && (landed == 0 || flying->order > last_order)));
        last_due = flying->due_us;
        last_order = flying->order;
        free(flying);
    }
    assert_int_equal(flight.bytes, 0);
    assert_int_equal(flight_next_us(&flight), UINT64_MAX);
    flight_free(&flight);
}

static void the_air_is_not_without_end(void **state) {
    (void)state;
    static uint8_t bytes[60000];
    struct flight flight = {0};
    size_t added = 0;
    while (flight_add(&flight, added, 0, bytes, sizeof bytes))
        added++;
    assert_int_equal(added, FLIGHT_BYTES_MAX / sizeof bytes);
    flight_free(&flight);
}

static void a_router_says_how_wide_the_wire_is(void **state) {
    (void)state;
    uint8_t packet[1200] = {0x45, 0, 4, 0xb0, 0, 1, 0x40, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2},
            answer[IP_TOO_BIG_MAX];
    struct ip_packet read;
    assert_int_equal(ip_too_big(packet, sizeof packet, 1000, answer), IP_TOO_BIG_MAX);
    assert_true(ip_read(answer, sizeof answer, &read));
    assert_int_equal(read.protocol, 1);
    assert_memory_equal(read.to.bytes, packet + 12, 4);
    assert_int_equal(answer[20 + 6] << 8 | answer[20 + 7], 1000);
    packet[6] = 0; /* it may be cut: then nobody is to blame */
    assert_int_equal(ip_too_big(packet, sizeof packet, 1000, answer), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_perfect_cable_changes_nothing),
        cmocka_unit_test(losses_are_as_many_as_asked_for),
        cmocka_unit_test(losses_in_bursts_are_as_many_and_as_long),
        cmocka_unit_test(the_same_seed_gives_the_same_weather),
        cmocka_unit_test(jitter_keeps_the_order_and_the_late_are_overtaken),
        cmocka_unit_test(a_rate_holds_back_and_then_drops),
        cmocka_unit_test(cuts_and_blocks_and_narrow_wires),
        cmocka_unit_test(words_that_say_nothing_are_refused),
        cmocka_unit_test(packets_land_in_the_order_of_their_times),
        cmocka_unit_test(the_air_is_not_without_end),
        cmocka_unit_test(a_router_says_how_wide_the_wire_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
