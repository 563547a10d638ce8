/* G5: a broker that dies and comes back with its disk takes each publication of its peers once, wherever it died, as it
 * acknowledges over a link only what it will know then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "with_disk.h"

enum { MESSAGES = 8 };

/* B's session of "cz" lasts, and its client is away. */
static struct pair lasting_new(void) {
    struct pair pair = pair_new(0);
    struct client *hears = client_connect_as(pair.world, B, 'z', false);
    commit(&pair);
    client_subscribe(pair.world, hears, "t", 2);
    run(&pair, 1000);
    client_publish(pair.world, pair.says, "t", "warm", 2, false);
    run(&pair, 1000);
    assert_int_equal(client_got(hears, "warm"), 1);
    broker_client_closed(pair.world->sites[B].broker, pair.world->now_ms, hears->handle);
    commit(&pair);
    return pair;
}

static void crash(struct pair *pair) {
    die(pair);
    assert_true(site_start(pair->world, B));
    world_meet(pair->world);
    run(pair, 1000);
}

static void publish(struct pair *pair, int number, int qos) {
    char payload[12];
    snprintf(payload, sizeof payload, "%d", number);
    client_publish(pair->world, pair->says, "t", payload, qos, false);
    world_run(pair->world, 60); /* an acknowledgement would be due */
}

static uint64_t waiting_at_a(struct pair *pair) {
    return link_at_a(pair).outbox_messages;
}

static void each_comes_once_wherever_it_dies(void **state) {
    (void)state;
    for (int died = 0; died <= MESSAGES; died++)
        for (int saved = 0; saved <= died; saved++) {
            struct pair pair = lasting_new();
            for (int i = 0; i < MESSAGES; i++) {
                if (i == died) crash(&pair);
                publish(&pair, i, 1 + i % 2);
                if (i < saved || i >= died) commit(&pair);
            }
            if (died == MESSAGES) crash(&pair);
            world_run(pair.world, 1000);
            struct client *hears = come_back(&pair);
            for (int i = 0; i < MESSAGES; i++) {
                char payload[12];
                snprintf(payload, sizeof payload, "%d", i);
                if (client_got(hears, payload) != 1)
                    fail_msg("died before %d with %d saved: %d came %d times", died, saved, i,
                             client_got(hears, payload));
            }
            assert_int_equal(waiting_at_a(&pair), 0);
            assert_int_equal(world_link(pair.world, B, A).lost, 0);
            pair_end(&pair);
        }
}

static void nothing_comes_again_if_its_acknowledgement_is_lost(void **state) {
    (void)state;
    for (int taken = 1; taken <= MESSAGES; taken++) {
        struct pair pair = lasting_new();
        for (int i = 0; i < taken; i++)
            publish(&pair, i, 1 + i % 2);
        pair.world->hold_frames = true;
        commit(&pair);
        pair.world->hold_frames = false;
        world_cut(pair.world, A, B);
        crash(&pair);
        struct client *hears = come_back(&pair);
        assert_int_equal(hears->received_count, taken);
        assert_int_equal(waiting_at_a(&pair), 0);
        pair_end(&pair);
    }
}

static void what_is_not_on_the_disk_is_not_acknowledged(void **state) {
    (void)state;
    struct pair pair = lasting_new();
    publish(&pair, 0, 1);
    publish(&pair, 1, 2);
    world_run(pair.world, 5000);
    assert_int_equal(waiting_at_a(&pair), 2);
    world_cut(pair.world, A, B); /* nor by a new link's hello */
    world_run(pair.world, 5000);
    assert_int_equal(waiting_at_a(&pair), 2);
    commit(&pair);
    assert_int_equal(waiting_at_a(&pair), 0); /* at once */
    pair_end(&pair);
}

static void what_lasts_nowhere_waits_for_no_disk(void **state) {
    (void)state;
    struct pair pair = lasting_new();
    struct client *passing = client_connect(pair.world, B);
    client_subscribe(pair.world, passing, "low", 2);
    run(&pair, 1000);
    client_publish(pair.world, pair.says, "low", "1", 2, false);
    world_run(pair.world, 1000); /* and nothing is written */
    assert_int_equal(client_got(passing, "1"), 1);
    assert_int_equal(waiting_at_a(&pair), 0);
    pair_end(&pair);
}

static void a_disk_that_fails_holds_up_no_acknowledgement(void **state) {
    (void)state;
    struct pair pair = lasting_new();
    publish(&pair, 0, 1);
    assert_int_equal(waiting_at_a(&pair), 1);
    broker_set_store_failing(pair.world->sites[B].broker, pair.world->now_ms, true);
    world_settle(pair.world);
    assert_int_equal(waiting_at_a(&pair), 0);
    broker_set_store_failing(pair.world->sites[B].broker, pair.world->now_ms, false);
    commit(&pair);
    pair_end(&pair);
}

/* The whole state, written anew, holds it too. */
static void a_journal_that_begins_anew_tells_of_it(void **state) {
    (void)state;
    struct pair pair = lasting_new();
    publish(&pair, 0, 2);
    assert_true(broker_restart_journal(pair.world->sites[B].broker, pair.world->now_ms));
    commit(&pair);
    assert_int_equal(disk_count(pair.disks[B], RECORD_TAKEN), 1);
    world_cut(pair.world, A, B);
    crash(&pair);
    assert_int_equal(client_got(come_back(&pair), "0"), 1);
    pair_end(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_comes_once_wherever_it_dies),
        cmocka_unit_test(nothing_comes_again_if_its_acknowledgement_is_lost),
        cmocka_unit_test(what_is_not_on_the_disk_is_not_acknowledged),
        cmocka_unit_test(what_lasts_nowhere_waits_for_no_disk),
        cmocka_unit_test(a_disk_that_fails_holds_up_no_acknowledgement),
        cmocka_unit_test(a_journal_that_begins_anew_tells_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
