/* Plans: what is read, and what is said of what is wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/simulate/agenda.h"
#include "tools/simulate/plan_read.h"

static struct plan_complaints complaints;

static bool parse(struct plan *plan, const char *text) {
    return plan_parse(plan, text, strlen(text), &complaints);
}

static void a_plan_is_read_as_it_is_written(void **state) {
    (void)state;
    struct plan plan;
    assert_true(parse(&plan, "title: two sites\n"
                             "faults:\n"
                             "  - {at: 60s, partition: sites, sites: [ship], for: 10m, flap: 5s, one_way: true}\n"
                             "  - {at: 1m, crash: shore-2, disk: lost, for: 20s}\n"
                             "  - {at: 2m, clock: ship, jump: -1h}\n"
                             "  - {at: 3m, rotate: shore, by: 30s}\n"
                             "  - {at: 4m, rotate: any, at_once: true, count: 2}\n"
                             "chaos: {pause: 2/min, rotate: 1/h}\n"
                             "paths:\n"
                             "  - {between: [ship, shore], delay: 270ms, loss: 5%, bandwidth: 128kbit/s}\n"
                             "sites:\n"
                             "  - {name: shore, brokers: 5}\n"
                             "  - {name: ship, brokers: 3, nat: symmetric}\n"
                             "network: {delay: 2ms, loss: 0.01, mtu: 1280}\n"
                             "load: {publishers: 7, subscribers: 3, changes: 6/h}\n"
                             "gossip: {probe_interval: 1s}\n"
                             "duration: 1h\n"));
    assert_int_equal(plan.broker_count, 8);
    assert_int_equal(plan.duration_us, 3600 * AGENDA_S);
    assert_int_equal(plan.sites[1].nat, NAT_SYMMETRIC);
    assert_int_equal(plan.weather.delay_us, 2000);
    assert_true(plan.weather.loss > 0.0099 && plan.weather.loss < 0.0101);
    assert_int_equal(plan.path_count, 2); /* both directions, and the rest from the network */
    assert_int_equal(plan.paths[0].weather.delay_us, 270000);
    assert_int_equal(plan.paths[1].weather.mtu, 1280);
    assert_int_equal(plan.paths[1].weather.bytes_per_s, 16000);
    assert_int_equal(plan.load.change_us, 600 * AGENDA_S);
    assert_int_equal(plan.limits.probe_interval_ms, 1000);
    assert_int_equal(plan.fault_count, 5);
    assert_int_equal(plan.faults[0].shape, SHAPE_SITES);
    assert_int_equal(plan.faults[0].sites[0], 1);
    assert_true(plan.faults[0].one_way);
    assert_int_equal(plan.faults[1].broker, 1);
    assert_int_equal(plan.faults[1].disk, DISK_LOST);
    assert_int_equal(plan.faults[2].site, 1);
    assert_int_equal(plan.faults[2].jump_ms, -3600000);
    assert_int_equal(plan.faults[3].kind, FAULT_ROTATE);
    assert_int_equal(plan.faults[3].site, 0);
    assert_int_equal(plan.faults[3].amount_us, 30 * AGENDA_S);
    assert_true(plan.faults[4].at_once && plan.faults[4].count == 2);
    assert_int_equal(plan.chaos_us[FAULT_PAUSE], 30 * AGENDA_S);
    assert_int_equal(plan.chaos_us[FAULT_ROTATE], 3600 * AGENDA_S);
    plan_free(&plan);
}

#define SITES "sites: [{name: edge, brokers: 5}]\n"

static void what_is_wrong_is_said_with_its_line_and_a_remedy(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int line;
        const char *says;
    } cases[] = {
        {SITES "durations: 5m\n", 2, "unknown key \"durations\" of the plan; write \"duration\""},
        {SITES "duration: 5\n", 2, "duration: \"5\" is not understood; write a time, such as 500ms, 2s, 10m or 24h"},
        {SITES "network:\n  los: 5%\n", 3, "unknown key \"los\" of network; write \"loss\""},
        {SITES "network:\n  loss: 150%\n", 3, "loss: \"150%\" is not understood; write a share"},
        {SITES "network:\n  delay: 24h\n", 3, "delay: \"24h\" is too much; write at most 71m"},
        {SITES "network:\n  bandwidth: 1000000000000GB/s\n", 3, "is too much; write at most 1000000GB/s"},
        {SITES "duration: 1001d\n", 2, "duration: \"1001d\" is too much; write at most 1000d"},
        {SITES "gossip: {rejoin: 50d}\n", 2, "rejoin: \"50d\" is too much; write at most 49d"},
        {SITES "load: {publishers: 4294967296}\n", 2, "is too much; write at most 4294967295"},
        {SITES "load: {subscribers: 100001}\n", 2, "write 100000 of each at most"},
        {SITES "load: {changes: 1000000000/s}\n", 2, "is too much; write at most 1000/s"},
        {SITES "network:\n  loss: [1, 2]\n", 3, "loss is a list; write a share"},
        {SITES "seed: 1\nseed: 2\n", 3, "seed was given before; write it once"},
        {SITES "paths:\n  - {between: [edge, shore]}\n", 3, "there is no site \"shore\"; name it under sites first"},
        {SITES "faults:\n  - {at: 5s, crash: edge-6}\n", 3, "there is no broker or site \"edge-6\""},
        {SITES "faults:\n  - {crash: any}\n", 3, "a fault has no time; write at: 60s"},
        {SITES "faults:\n  - {at: 5s}\n", 3, "a fault says not what happens"},
        {SITES "faults:\n  - {at: 5s, crash: any, pause: any}\n", 3, "this fault is already a crash"},
        {SITES "faults:\n  - {at: 5s, pause: any}\n", 3, "pause has no end; write for: 10s"},
        {SITES "faults:\n  - {at: 5s, partition: quarters}\n", 3, "write half, thirds, one, ring or sites"},
        {SITES "faults:\n  - {at: 5s, rotate: any, count: 3}\n", 3,
         "two who do not know of each other; write count: 2"},
        {SITES "faults:\n  - {at: 5s, rotate: any, by: now}\n", 3, "write a time, such as 500ms"},
        {SITES "faults:\n  - {at: 5s, rotate: half}\n", 3, "there is no broker or site \"half\""},
        {SITES "faults:\n  - {at: 5s, crash: any, at_once: true}\n", 3, "at_once is of rotate"},
        {SITES "faults:\n  - {at: 1h, crash: any}\n", 0, "after the end; write a longer duration"},
        {SITES "chaos: {crash: 5}\n", 2, "write a rate, such as 2/min or 10/h"},
        {"duration: 5m\n", 0, "there are no sites"},
        {"sites: [{name: edge, brokers: 1}]\n", 0, "there are 1 brokers; write 2 to 20000 in all"},
        {"sites: [{name: edge, brokers: 5, nat: true}]\n", 0, "is behind NAT; name sites with public addresses first"},
        {"sites: [{name: \"a b\", brokers: 5}]\n", 1, "name: \"a b\" is not understood"},
        {"sites: {\n", 2, "no YAML"},
        {"- 1\n", 1, "the plan has no keys"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan;
        assert_false(parse(&plan, cases[i].text));
        assert_true(complaints.count > 0);
        if (complaints.items[0].line != cases[i].line || !strstr(complaints.items[0].text, cases[i].says))
            fail_msg("%s\n  says, line %d: %s", cases[i].text, complaints.items[0].line, complaints.items[0].text);
        plan_free(&plan);
    }
}

static void all_that_is_wrong_is_said_at_once(void **state) {
    (void)state;
    struct plan plan;
    assert_false(parse(&plan, "durtion: 5m\nnetwork: {los: 1%, delay: fast}\n" SITES));
    assert_int_equal(complaints.count, 3);
    plan_free(&plan);
}

static void brokers_are_spread_in_proportion(void **state) {
    (void)state;
    struct plan plan;
    char name[GOSSIP_NAME_MAX + 1];
    assert_true(parse(&plan, "sites: [{name: a, brokers: 1}, {name: b, brokers: 3}]\n"));
    plan_spread(&plan, 1000);
    assert_int_equal(plan.sites[0].brokers, 250);
    assert_int_equal(plan.sites[1].brokers, 750);
    assert_int_equal(plan_site_of(&plan, 249), 0);
    assert_int_equal(plan_site_of(&plan, 250), 1);
    plan_broker_name(&plan, 250, name);
    assert_string_equal(name, "b-1");
    plan_spread(&plan, 2); /* no site is left without */
    assert_int_equal(plan.sites[0].brokers, 1);
    assert_int_equal(plan.sites[1].brokers, 1);
    plan_free(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_read_as_it_is_written),
        cmocka_unit_test(what_is_wrong_is_said_with_its_line_and_a_remedy),
        cmocka_unit_test(all_that_is_wrong_is_said_at_once),
        cmocka_unit_test(brokers_are_spread_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
