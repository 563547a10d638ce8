/* G5: a broker that dies and comes back with its disk takes each publication of its peers once, wherever it died, as it
 * acknowledges over a link only what it will know then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"

#include "tests/sim/disk.h"

enum { A, B, MESSAGES = 8 };

/* B's session of client "cz" lasts, and its client is away. */
struct lasting {
    struct world *world;
    struct client *says;
    struct disk *disk;
};

struct restoring {
    struct broker *broker;
    uint64_t now_ms;
};

static void restore_one(void *context, const struct record *record) {
    const struct restoring *restoring = context;
    broker_restore(restoring->broker, restoring->now_ms, record);
}

static void restore(struct broker *broker, uint64_t now_ms, void *context) {
    struct restoring restoring = {broker, now_ms};
    uint64_t first_number = disk_read(context, restore_one, &restoring);
    assert_true(broker_restored(broker, now_ms, first_number));
}

/* What B has said so far is on its disk. */
static void commit(struct lasting *lasting) {
    struct broker *broker = lasting->world->sites[B].broker;
    struct broker_journal journal;
    while (broker_take_journal(broker, &journal)) {
        disk_commit(lasting->disk, journal.bytes, journal.size);
        free(journal.bytes);
        broker_durable(broker, lasting->world->now_ms, journal.last);
    }
    world_settle(lasting->world);
}

static struct lasting lasting_new(void) {
    struct lasting lasting = {.world = world_of(2), .disk = disk_new()};
    struct site *site = &lasting.world->sites[B];
    site->durable = true;
    site->restore = restore;
    site->restore_context = lasting.disk;
    assert_true(world_start(lasting.world));
    lasting.says = client_connect(lasting.world, A);
    struct client *hears = client_connect_as(lasting.world, B, 'z', false);
    commit(&lasting);
    client_subscribe(lasting.world, hears, "t", 2);
    client_subscribe(lasting.world, hears, "low", 0);
    commit(&lasting);
    world_run(lasting.world, 1000);
    client_publish(lasting.world, lasting.says, "t", "warm", 2, false);
    client_publish(lasting.world, lasting.says, "low", "warm", 2, false);
    world_run(lasting.world, 1000);
    commit(&lasting);
    assert_int_equal(client_got(hears, "warm"), 2);
    broker_client_closed(site->broker, lasting.world->now_ms, hears->handle);
    commit(&lasting);
    return lasting;
}

static void lasting_end(struct lasting *lasting) {
    char why[DISK_WHY];
    if (!disk_is_sound(lasting->disk, why)) fail_msg("%s", why);
    end(lasting->world);
    disk_free(lasting->disk);
}

static void crash(struct lasting *lasting) {
    struct world *world = lasting->world;
    broker_free(world->sites[B].broker);
    world->sites[B].broker = NULL;
    world_cut(world, A, B);
    assert_true(site_start(world, B));
    world_meet(world);
    world_run(world, 1000);
    commit(lasting);
}

static void publish(struct lasting *lasting, int number, int qos) {
    char payload[12];
    snprintf(payload, sizeof payload, "%d", number);
    client_publish(lasting->world, lasting->says, "t", payload, qos, false);
    world_run(lasting->world, 60); /* an acknowledgement would be due */
}

static struct client *come_back(struct lasting *lasting) {
    struct client *hears = client_connect_as(lasting->world, B, 'z', false);
    world_run(lasting->world, 1000);
    commit(lasting);
    world_run(lasting->world, 1000);
    commit(lasting);
    return hears;
}

static uint64_t waiting_at_a(struct lasting *lasting) {
    return world_link(lasting->world, A, B).outbox_messages;
}

static void each_comes_once_wherever_it_dies(void **state) {
    (void)state;
    for (int died = 0; died <= MESSAGES; died++)
        for (int saved = 0; saved <= died; saved++) {
            struct lasting lasting = lasting_new();
            for (int i = 0; i < MESSAGES; i++) {
                if (i == died) crash(&lasting);
                publish(&lasting, i, 1 + i % 2);
                if (i < saved || i >= died) commit(&lasting);
            }
            if (died == MESSAGES) crash(&lasting);
            world_run(lasting.world, 1000);
            struct client *hears = come_back(&lasting);
            for (int i = 0; i < MESSAGES; i++) {
                char payload[12];
                snprintf(payload, sizeof payload, "%d", i);
                if (client_got(hears, payload) != 1)
                    fail_msg("died before %d with %d saved: %d came %d times", died, saved, i,
                             client_got(hears, payload));
            }
            assert_int_equal(waiting_at_a(&lasting), 0);
            assert_int_equal(world_link(lasting.world, B, A).lost, 0);
            lasting_end(&lasting);
        }
}

static void nothing_comes_again_if_its_acknowledgement_is_lost(void **state) {
    (void)state;
    for (int taken = 1; taken <= MESSAGES; taken++) {
        struct lasting lasting = lasting_new();
        for (int i = 0; i < taken; i++)
            publish(&lasting, i, 1 + i % 2);
        lasting.world->hold_frames = true;
        commit(&lasting);
        lasting.world->hold_frames = false;
        world_cut(lasting.world, A, B);
        crash(&lasting);
        struct client *hears = come_back(&lasting);
        assert_int_equal(hears->received_count, taken);
        assert_int_equal(waiting_at_a(&lasting), 0);
        lasting_end(&lasting);
    }
}

static void what_is_not_on_the_disk_is_not_acknowledged(void **state) {
    (void)state;
    struct lasting lasting = lasting_new();
    publish(&lasting, 0, 1);
    publish(&lasting, 1, 2);
    world_run(lasting.world, 5000);
    assert_int_equal(waiting_at_a(&lasting), 2);
    world_cut(lasting.world, A, B); /* nor by a new link's hello */
    world_run(lasting.world, 5000);
    assert_int_equal(waiting_at_a(&lasting), 2);
    commit(&lasting);
    assert_int_equal(waiting_at_a(&lasting), 0); /* at once */
    lasting_end(&lasting);
}

static void what_lasts_nowhere_waits_for_no_disk(void **state) {
    (void)state;
    struct lasting lasting = lasting_new();
    client_publish(lasting.world, lasting.says, "low", "0", 1, false); /* to nobody who is there */
    world_run(lasting.world, 60);
    assert_int_equal(waiting_at_a(&lasting), 0);
    lasting_end(&lasting);
}

static void a_disk_that_fails_holds_up_no_acknowledgement(void **state) {
    (void)state;
    struct lasting lasting = lasting_new();
    publish(&lasting, 0, 1);
    assert_int_equal(waiting_at_a(&lasting), 1);
    broker_set_store_failing(lasting.world->sites[B].broker, lasting.world->now_ms, true);
    world_settle(lasting.world);
    assert_int_equal(waiting_at_a(&lasting), 0);
    broker_set_store_failing(lasting.world->sites[B].broker, lasting.world->now_ms, false);
    commit(&lasting);
    lasting_end(&lasting);
}

/* The whole state, written anew, holds it too. */
static void a_journal_that_begins_anew_tells_of_it(void **state) {
    (void)state;
    struct lasting lasting = lasting_new();
    publish(&lasting, 0, 2);
    assert_true(broker_restart_journal(lasting.world->sites[B].broker, lasting.world->now_ms));
    commit(&lasting);
    assert_int_equal(disk_count(lasting.disk, RECORD_TAKEN), 1);
    world_cut(lasting.world, A, B);
    crash(&lasting);
    assert_int_equal(client_got(come_back(&lasting), "0"), 1);
    lasting_end(&lasting);
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
