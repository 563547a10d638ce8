/* The simulator's own time and network: what the scenarios stand on. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/network.h"
#include "tests/sim/trace.h"

/* ---- events ---- */

struct mark {
    struct event event;
    char *log;
    char name;
};

static unsigned dropped;

static void write_mark(struct event *event) {
    struct mark *mark = (struct mark *)event;
    strncat(mark->log, &mark->name, 1);
    free(mark);
}

static void drop_mark(struct event *event) {
    dropped++;
    free(event);
}

static void push_mark(struct heap *heap, char *log, char name, uint64_t delay_us) {
    struct mark *mark = calloc(1, sizeof *mark);
    assert_non_null(mark);
    mark->event.fire = write_mark;
    mark->event.drop = drop_mark;
    mark->log = log;
    mark->name = name;
    heap_push(heap, &mark->event, delay_us);
}

static void events_fire_in_time_order_and_equal_times_in_push_order(void **state) {
    (void)state;
    char log[64] = "";
    struct heap *heap = heap_new();
    push_mark(heap, log, 'c', 30);
    push_mark(heap, log, 'a', 10);
    push_mark(heap, log, 'd', 30);
    push_mark(heap, log, 'b', 20);
    push_mark(heap, log, 'e', 30);
    push_mark(heap, log, 'z', 1000);
    while (heap_step(heap, 100))
        continue;
    assert_string_equal(log, "abcde");
    assert_int_equal(heap_now_us(heap), 100);
    push_mark(heap, log, 'y', 0);
    assert_true(heap_step(heap, 100));
    assert_string_equal(log, "abcdey");
    dropped = 0;
    heap_free(heap);
    assert_int_equal(dropped, 1);
}

static void heap_sorts_ten_thousand_events(void **state) {
    (void)state;
    struct dice dice;
    struct heap *heap = heap_new();
    char log[10001] = "";
    dice_init(&dice, 1, "test");
    for (unsigned i = 0; i < 10000; i++)
        push_mark(heap, log, 'x', dice_below(&dice, 1000));
    uint64_t last = 0;
    while (heap_step(heap, 2000)) {
        if (heap_now_us(heap) < last) fail();
        last = heap_now_us(heap);
    }
    assert_int_equal(heap_fired(heap), 10000);
    heap_free(heap);
}

/* ---- a network of hosts that write down what comes ---- */

#define HOSTS 3

struct site {
    struct rig *rig;
    size_t host;
    bool refuses;
    network_end end; /* the last one accepted or connected */
    char log[4096];
    size_t bytes, messages;
};

struct rig {
    struct heap *heap;
    struct network *network;
    struct trace trace;
    struct site sites[HOSTS];
};

static void on_datagram(void *context, uint16_t port, const struct gossip_address *from, const uint8_t *bytes,
                        size_t size) {
    struct site *site = context;
    (void)port;
    trace_line(&site->rig->trace, heap_now_us(site->rig->heap), "host", "%zu gets %zu bytes from %u", site->host, size,
               from->ip[3]);
    if (strlen(site->log) + 2 < sizeof site->log) strncat(site->log, (const char *)bytes, 1);
    site->messages++;
}

static bool on_accept(void *context, network_end end, uint16_t port, size_t from_host) {
    struct site *site = context;
    (void)from_host;
    if (site->refuses || port != 80) return false;
    site->end = end;
    strcat(site->log, "A");
    return true;
}

static void on_connected(void *context, network_end end, size_t to_host) {
    struct site *site = context;
    (void)to_host;
    site->end = end;
    strcat(site->log, "C");
}

static void on_bytes(void *context, network_end end, const uint8_t *bytes, size_t size, bool final) {
    struct site *site = context;
    (void)end;
    trace_line(&site->rig->trace, heap_now_us(site->rig->heap), "host", "%zu gets a piece of %zu", site->host, size);
    site->bytes += size;
    if (!final) return;
    site->messages++;
    if (size != 0 && strlen(site->log) + 2 < sizeof site->log) strncat(site->log, (const char *)&bytes[size - 1], 1);
}

static void on_writable(void *context, network_end end) {
    struct site *site = context;
    (void)end;
    strcat(site->log, "W");
}

static void on_closed(void *context, network_end end) {
    struct site *site = context;
    (void)end;
    strcat(site->log, "X");
}

static void rig_open(struct rig *rig, uint64_t seed, const struct network_weather *weather) {
    memset(rig, 0, sizeof *rig);
    rig->heap = heap_new();
    rig->network = network_new(rig->heap, seed);
    trace_init(&rig->trace, NULL);
    if (weather != NULL) network_set_weather(rig->network, weather);
    for (size_t i = 0; i < HOSTS; i++) {
        rig->sites[i].rig = rig;
        struct network_ports ports = {&rig->sites[i], on_datagram, on_accept, on_connected,
                                      on_bytes,       on_writable, on_closed};
        rig->sites[i].host = network_add_host(rig->network, &ports);
    }
}

static void rig_close(struct rig *rig) {
    heap_free(rig->heap);
    network_free(rig->network);
}

static void rig_run_ms(struct rig *rig, uint64_t ms) {
    uint64_t until = heap_now_us(rig->heap) + ms * HEAP_MS;
    while (heap_step(rig->heap, until))
        continue;
}

static void rig_shout(struct rig *rig, size_t from, size_t to, char what) {
    struct gossip_address address = network_address(rig->network, to, 7);
    network_datagram(rig->network, from, 7, &address, (const uint8_t *)&what, 1);
}

static network_end rig_dial(struct rig *rig, size_t from, size_t to) {
    struct gossip_address address = network_address(rig->network, to, 80);
    return network_dial(rig->network, from, &address, 5000 * HEAP_MS);
}

static void rig_connect(struct rig *rig) {
    rig_dial(rig, 0, 1);
    rig_run_ms(rig, 100);
    assert_string_equal(rig->sites[0].log, "C");
    assert_string_equal(rig->sites[1].log, "A");
    rig->sites[0].log[0] = rig->sites[1].log[0] = '\0';
}

/* ---- datagrams ---- */

static void datagrams_are_lost_doubled_and_overtake_as_the_weather_says(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 5, &(struct network_weather){.delay_us = 1000, .loss_ppm = 200000, .duplicate_ppm = 100000});
    for (unsigned i = 0; i < 10000; i++)
        rig_shout(&rig, 0, 1, 'x');
    rig_run_ms(&rig, 10);
    assert_in_range(rig.sites[1].messages, 8600, 9000); /* 80 % of them, and a tenth of those twice */
    rig_close(&rig);
    rig_open(&rig, 5, &(struct network_weather){.delay_us = 1000, .jitter_us = 5000});
    for (char c = 'a'; c <= 'z'; c++)
        rig_shout(&rig, 0, 1, c);
    rig_run_ms(&rig, 10);
    assert_int_equal(rig.sites[1].messages, 26);
    assert_string_not_equal(rig.sites[1].log, "abcdefghijklmnopqrstuvwxyz");
    rig_close(&rig);
}

static void cut_is_one_way(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, NULL);
    network_cut(rig.network, 0, 1, true);
    rig_shout(&rig, 0, 1, 'a');
    rig_shout(&rig, 1, 0, 'b');
    rig_run_ms(&rig, 10);
    assert_string_equal(rig.sites[1].log, "");
    assert_string_equal(rig.sites[0].log, "b");
    network_heal(rig.network);
    rig_shout(&rig, 0, 1, 'c');
    rig_run_ms(&rig, 10);
    assert_string_equal(rig.sites[1].log, "c");
    rig_close(&rig);
}

static void old_address_of_a_moved_host_is_nobodys(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, NULL);
    struct gossip_address old = network_address(rig.network, 1, 7);
    network_move_host(rig.network, 1);
    network_datagram(rig.network, 0, 7, &old, (const uint8_t *)"a", 1);
    rig_shout(&rig, 0, 1, 'b');
    rig_run_ms(&rig, 10);
    assert_string_equal(rig.sites[1].log, "b");
    rig_close(&rig);
}

/* ---- streams ---- */

static void connecting_takes_three_round_trips(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, &(struct network_weather){.delay_us = 10000});
    rig_dial(&rig, 0, 1);
    rig_run_ms(&rig, 49);
    assert_string_equal(rig.sites[1].log, "");
    rig_run_ms(&rig, 1);
    assert_string_equal(rig.sites[1].log, "A");
    rig_run_ms(&rig, 9);
    assert_string_equal(rig.sites[0].log, "");
    rig_run_ms(&rig, 1);
    assert_string_equal(rig.sites[0].log, "C");
    rig_close(&rig);
}

static void dead_process_refuses_and_dead_host_is_silent(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, NULL);
    rig.sites[2].refuses = true;
    rig_dial(&rig, 0, 2);
    rig_run_ms(&rig, 100);
    assert_string_equal(rig.sites[0].log, "X");
    network_set_power(rig.network, 1, NETWORK_DOWN);
    rig_dial(&rig, 0, 1);
    rig_run_ms(&rig, 100);
    assert_string_equal(rig.sites[0].log, "XX");
    network_set_power(rig.network, 1, NETWORK_DARK);
    rig_dial(&rig, 0, 1);
    rig_run_ms(&rig, 4900);
    assert_string_equal(rig.sites[0].log, "XX");
    rig_run_ms(&rig, 200);
    assert_string_equal(rig.sites[0].log, "XXX");
    rig_close(&rig);
}

static void stream_keeps_order_in_any_weather_and_close_comes_last(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 9,
             &(struct network_weather){.delay_us = 1000, .jitter_us = 20000, .loss_ppm = 100000, .piece_bytes = 3});
    rig_dial(&rig, 0, 1);
    rig_run_ms(&rig, 1000);
    for (char c = 'a'; c <= 'z'; c++)
        network_send(rig.network, rig.sites[0].end, (const uint8_t[]){'1', '2', '3', '4', '5', (uint8_t)c}, 6);
    network_close(rig.network, rig.sites[0].end);
    rig_run_ms(&rig, 20000);
    assert_string_equal(rig.sites[1].log, "AabcdefghijklmnopqrstuvwxyzX");
    assert_int_equal(rig.sites[1].bytes, 26 * 6);
    assert_string_equal(rig.sites[0].log, "C");
    rig_close(&rig);
}

static void cut_makes_a_stream_stand_still_until_it_is_whole(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, NULL);
    rig_connect(&rig);
    network_cut(rig.network, 1, 0, true); /* without acknowledgements nothing moves either */
    network_send(rig.network, rig.sites[0].end, (const uint8_t *)"a", 1);
    rig_run_ms(&rig, 60000);
    assert_string_equal(rig.sites[1].log, "");
    network_heal(rig.network);
    rig_run_ms(&rig, 4000);
    assert_string_equal(rig.sites[1].log, "a");
    rig_close(&rig);
}

static void reset_loses_what_is_under_way_and_both_learn_it(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, NULL);
    rig_connect(&rig);
    network_send(rig.network, rig.sites[0].end, (const uint8_t *)"a", 1);
    network_reset(rig.network, 0, 1);
    rig_run_ms(&rig, 100);
    assert_string_equal(rig.sites[1].log, "X");
    assert_string_equal(rig.sites[0].log, "X");
    network_send(rig.network, rig.sites[0].end, (const uint8_t *)"b", 1); /* over: does nothing */
    rig_run_ms(&rig, 100);
    assert_string_equal(rig.sites[1].log, "X");
    rig_close(&rig);
}

static void host_without_power_ends_its_streams_when_it_is_back(void **state) {
    (void)state;
    struct rig rig;
    rig_open(&rig, 1, NULL);
    rig_connect(&rig);
    network_set_power(rig.network, 1, NETWORK_DARK);
    rig_run_ms(&rig, 60000);
    network_send(rig.network, rig.sites[0].end, (const uint8_t *)"a", 1);
    rig_run_ms(&rig, 60000);
    assert_string_equal(rig.sites[0].log, "");
    network_set_power(rig.network, 1, NETWORK_UP);
    rig_run_ms(&rig, 4000);
    assert_string_equal(rig.sites[0].log, "X");
    assert_string_equal(rig.sites[1].log, "");
    rig_close(&rig);
}

static void dead_process_ends_its_streams_at_once(void **state) {
    (void)state;
    struct rig rig;
    for (uint64_t seed = 0; seed < 8; seed++) { /* in order or by a reset */
        rig_open(&rig, seed, NULL);
        rig_connect(&rig);
        network_set_power(rig.network, 1, NETWORK_DOWN);
        rig_run_ms(&rig, 10);
        assert_string_equal(rig.sites[0].log, "X");
        assert_string_equal(rig.sites[1].log, "");
        rig_close(&rig);
    }
}

static void full_window_says_when_it_is_writable_again(void **state) {
    (void)state;
    struct rig rig;
    uint8_t bytes[100] = {0};
    rig_open(&rig, 1, &(struct network_weather){.delay_us = 1000, .window_bytes = 250, .bytes_per_ms = 10});
    rig_connect(&rig);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(network_writable(rig.network, rig.sites[0].end));
        network_send(rig.network, rig.sites[0].end, bytes, sizeof bytes);
    }
    assert_false(network_writable(rig.network, rig.sites[0].end));
    rig_run_ms(&rig, 11);
    assert_string_equal(rig.sites[0].log, "");
    rig_run_ms(&rig, 3);
    assert_string_equal(rig.sites[0].log, "W");
    assert_true(network_writable(rig.network, rig.sites[0].end));
    rig_run_ms(&rig, 100);
    assert_int_equal(rig.sites[1].bytes, 300);
    rig_close(&rig);
}

/* ---- repeatability ---- */

static uint64_t storm(uint64_t seed) {
    struct rig rig;
    rig_open(&rig, seed,
             &(struct network_weather){.delay_us = 1000,
                                       .jitter_us = 3000,
                                       .loss_ppm = 100000,
                                       .duplicate_ppm = 50000,
                                       .late_ppm = 10000,
                                       .late_us = 50000,
                                       .piece_bytes = 10});
    rig_dial(&rig, 0, 1);
    rig_run_ms(&rig, 2000);
    for (unsigned i = 0; i < 200; i++) {
        rig_shout(&rig, i % 3, (i + 1) % 3, 'a');
        network_send(rig.network, rig.sites[0].end, (const uint8_t *)"some bytes that are cut into pieces", 35);
        if (i == 100) network_cut(rig.network, 0, 1, true);
        if (i == 150) network_heal(rig.network);
        rig_run_ms(&rig, 5);
    }
    rig_run_ms(&rig, 10000);
    uint64_t hash = rig.trace.hash;
    rig_close(&rig);
    return hash;
}

static void same_seed_is_the_same_run_and_another_is_another(void **state) {
    (void)state;
    assert_true(storm(1) == storm(1));
    assert_true(storm(2) == storm(2));
    assert_true(storm(1) != storm(2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_fire_in_time_order_and_equal_times_in_push_order),
        cmocka_unit_test(heap_sorts_ten_thousand_events),
        cmocka_unit_test(datagrams_are_lost_doubled_and_overtake_as_the_weather_says),
        cmocka_unit_test(cut_is_one_way),
        cmocka_unit_test(old_address_of_a_moved_host_is_nobodys),
        cmocka_unit_test(connecting_takes_three_round_trips),
        cmocka_unit_test(dead_process_refuses_and_dead_host_is_silent),
        cmocka_unit_test(stream_keeps_order_in_any_weather_and_close_comes_last),
        cmocka_unit_test(cut_makes_a_stream_stand_still_until_it_is_whole),
        cmocka_unit_test(reset_loses_what_is_under_way_and_both_learn_it),
        cmocka_unit_test(host_without_power_ends_its_streams_when_it_is_back),
        cmocka_unit_test(dead_process_ends_its_streams_at_once),
        cmocka_unit_test(full_window_says_when_it_is_writable_again),
        cmocka_unit_test(same_seed_is_the_same_run_and_another_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
