/* memberlist's published rules, as the simulator follows them: so that figures beside Hobnob's are fair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/simulate/memberlist_inside.h"
#include "tools/simulate/standin.h"
#include "tools/simulate/world.h"

/* ---- a few brokers by hand ---- */

enum { FEW = 6 };
struct few {
    uint64_t now_us, now_ms;
    struct standin_world crypto;
    struct standin keys[FEW];
    void *common;
    struct ml *nodes[FEW];
    bool deaf[FEW]; /* nothing goes there, and nothing comes */
    uint64_t rows_sent[FEW], downs[FEW][FEW];
};

static struct gossip_address address(int i) {
    return (struct gossip_address){.family = 4, .ip = {10, 0, 0, (uint8_t)(i + 1)}, .port = 7100};
}

static void few_drain(struct few *few, int from) {
    const struct strategy *strategy = &strategy_memberlist;
    struct gossip_datagram datagram;
    struct strategy_frame frame;
    struct gossip_event event;
    struct gossip_address here = address(from);
    while (strategy->next_datagram(few->nodes[from], &datagram)) {
        int to = datagram.to.ip[3] - 1;
        for (int i = 0; i < datagram.bytes[0]; i++)
            few->rows_sent[from] += datagram.bytes[1 + i * 15] == ML_MSG_ROW;
        if (few->deaf[from] || few->deaf[to]) continue;
        strategy->receive(few->nodes[to], few->now_ms, &here, datagram.bytes, datagram.size);
        few_drain(few, to);
    }
    while (strategy->next_frame(few->nodes[from], &frame)) {
        int to = frame.to.ip[3] - 1;
        if (few->deaf[from] || few->deaf[to]) continue;
        uint8_t *copy = malloc(frame.size);
        assert_non_null(copy);
        memcpy(copy, frame.bytes, frame.size);
        strategy->receive_frame(few->nodes[to], few->now_ms, &here, copy, frame.size);
        free(copy);
        few_drain(few, to);
    }
    while (strategy->next_event(few->nodes[from], &event))
        if (event.kind == GOSSIP_MEMBER && event.state == MEMBER_DOWN)
            for (int i = 0; i < FEW; i++)
                if (memcmp(&event.id, &few->nodes[from]->common->owners[i].id, sizeof event.id) == 0)
                    few->downs[from][i] = few->now_ms;
}

static struct few *few_new(void) {
    struct few *few = calloc(1, sizeof *few);
    assert_non_null(few);
    few->crypto = (struct standin_world){7, &few->now_us};
    few->common = strategy_memberlist.common_new();
    few->now_ms = 1000;
    for (int i = 0; i < FEW; i++) {
        char name[24];
        standin_init(&few->keys[i], &few->crypto, (uint32_t)i);
        snprintf(name, sizeof name, "broker-%d", i);
        struct gossip_options options = {.name = name,
                                         .advertise = address(i),
                                         .seed = (uint64_t)i + 1,
                                         .public_key = few->keys[i].public_key,
                                         .crypto = standin_crypto(&few->keys[i])};
        few->nodes[i] = strategy_memberlist.create(&options, few->common, few->now_ms);
        struct gossip_address first = address(0);
        strategy_memberlist.set_bootstrap(few->nodes[i], few->now_ms, &first, 1);
        few_drain(few, i);
    }
    return few;
}

static void few_run(struct few *few, uint64_t ms) {
    for (uint64_t end = few->now_ms + ms; few->now_ms < end; few->now_ms += 10)
        for (int i = 0; i < FEW; i++) {
            if (strategy_memberlist.deadline_ms(few->nodes[i]) > few->now_ms) continue;
            strategy_memberlist.tick(few->nodes[i], few->now_ms);
            few_drain(few, i);
        }
}

static void few_free(struct few *few) {
    for (int i = 0; i < FEW; i++)
        strategy_memberlist.destroy(few->nodes[i]);
    strategy_memberlist.common_free(few->common);
    free(few);
}

static void a_message_is_sent_four_times_the_logarithm(void **unused) {
    (void)unused;
    struct few *few = few_new();
    few_run(few, 5000);
    for (int i = 1; i < FEW; i++)
        few->deaf[i] = true; /* so that nobody else passes it on */
    strategy_memberlist.row(few->nodes[0], few->now_ms, GOSSIP_NEWSUB, "a/b", 3, true);
    few_run(few, 3000);
    assert_int_equal(few->rows_sent[0], 4); /* 4 ceil(log10(6 + 1)) */
    few_free(few);
}

static void all_know_a_row_and_its_end(void **unused) {
    (void)unused;
    struct few *few = few_new();
    few_run(few, 5000);
    uint64_t before = strategy_memberlist.table_hash(few->nodes[0]);
    strategy_memberlist.row(few->nodes[0], few->now_ms, GOSSIP_NEWSUB, "a/b", 3, true);
    few_run(few, 3000);
    for (int i = 0; i < FEW; i++) {
        assert_true(strategy_memberlist.table_hash(few->nodes[i]) != before);
        assert_true(strategy_memberlist.table_hash(few->nodes[i]) == strategy_memberlist.table_hash(few->nodes[0]));
    }
    strategy_memberlist.row(few->nodes[0], few->now_ms, GOSSIP_NEWSUB, "a/b", 3, false);
    few_run(few, 3000);
    for (int i = 0; i < FEW; i++)
        assert_true(strategy_memberlist.table_hash(few->nodes[i]) == before);
    few_free(few);
}

static void a_death_that_all_see_takes_the_least_time_and_one_that_nobody_confirms_the_most(void **unused) {
    (void)unused;
    struct few *few = few_new();
    few_run(few, 5000);
    uint64_t from = few->now_ms;
    few->deaf[5] = true;
    few_run(few, 20000);
    uint64_t took = few->downs[0][5] - from;
    assert_true(took >= 4000 && took <= 12000); /* 4 s, once two others have said so too */
    /* Who is alone has nobody to confirm: 6 times that, from the first probe that failed. */
    took = few->downs[5][0] - from;
    assert_true(few->downs[5][0] == 0 || took >= 24000);
    few_run(few, 40000);
    took = few->downs[5][0] - from;
    assert_true(took >= 24000 && took <= 50000);
    few_free(few);
}

static void who_is_accused_falsely_says_so_with_a_higher_incarnation(void **unused) {
    (void)unused;
    struct few *few = few_new();
    few_run(few, 5000);
    uint32_t before = ml_known(few->nodes[3], few->nodes[3]->self)->incarnation;
    state_suspect(few->nodes[0], few->nodes[3]->self, before, few->nodes[0]->self);
    few_run(few, 10000);
    assert_true(ml_known(few->nodes[3], few->nodes[3]->self)->incarnation > before);
    for (int i = 0; i < FEW; i++) {
        assert_int_equal(few->downs[i][3], 0);
        assert_int_equal(ml_known(few->nodes[i], few->nodes[3]->self)->state, ML_ALIVE);
    }
    few_free(few);
}

/* ---- in the simulator's world ---- */

static struct result run(struct plan *plan, const struct strategy *strategy) {
    struct world *world = world_new(plan, strategy, NULL, SABOTAGE_NONE);
    world_run(world, NULL, NULL);
    struct result result = *measure_result(world->measure);
    world_free(world);
    return result;
}

static void after_a_long_cut_only_join_brings_the_halves_together(void **unused) {
    (void)unused;
    for (int joins = 0; joins < 2; joins++) {
        struct plan plan;
        plan_init(&plan);
        plan_spread(&plan, 8);
        plan.duration_us = 400 * AGENDA_S;
        struct plan_fault *cut = plan_add_fault(&plan);
        *cut = (struct plan_fault){.kind = FAULT_PARTITION,
                                   .shape = SHAPE_HALF,
                                   .broker = PLAN_ANY,
                                   .site = PLAN_ANY,
                                   .at_us = 30 * AGENDA_S,
                                   .for_us = 200 * AGENDA_S};
        struct result result = run(&plan, joins ? &strategy_memberlist_joining : &strategy_memberlist);
        assert_int_equal(result.heal.count, joins);
        plan_free(&plan);
    }
}

/* Where datagrams do not pass, its TCP ping keeps brokers alive. */
static void without_datagrams_tcp_pings_keep_all_alive(void **unused) {
    (void)unused;
    struct plan plan;
    plan_init(&plan);
    plan_spread(&plan, 5);
    plan.weather.mtu = 60;
    plan.duration_us = 300 * AGENDA_S;
    struct result result = run(&plan, &strategy_memberlist);
    assert_true(result.formed_us != UINT64_MAX);
    assert_int_equal(result.false_deaths, 0);
    assert_int_equal(result.suspicions, 0);
    plan_free(&plan);
}

static void the_same_seed_gives_the_same_run(void **unused) {
    (void)unused;
    struct plan plan;
    plan_init(&plan);
    plan_spread(&plan, 20);
    plan.weather.loss = 0.2;
    plan.load.change_us = 10 * AGENDA_S;
    plan.duration_us = 60 * AGENDA_S;
    struct result first = run(&plan, &strategy_memberlist), second = run(&plan, &strategy_memberlist);
    assert_true(first.trace_hash == second.trace_hash && first.bytes == second.bytes);
    assert_true(first.know.count > 0 && first.changes_incomplete == 0);
    plan_free(&plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_sent_four_times_the_logarithm),
        cmocka_unit_test(all_know_a_row_and_its_end),
        cmocka_unit_test(a_death_that_all_see_takes_the_least_time_and_one_that_nobody_confirms_the_most),
        cmocka_unit_test(who_is_accused_falsely_says_so_with_a_higher_incarnation),
        cmocka_unit_test(after_a_long_cut_only_join_brings_the_halves_together),
        cmocka_unit_test(without_datagrams_tcp_pings_keep_all_alive),
        cmocka_unit_test(the_same_seed_gives_the_same_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
