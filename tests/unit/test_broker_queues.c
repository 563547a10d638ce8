/* What waits for all other brokers together has a limit, and who has been away longest pays for it (G12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"

enum { HERE, FIRST, SECOND, SITES };

struct absence {
    struct world *world;
    struct client *says;
};

static void go_away(struct world *world, int site) {
    world->apart[HERE][site] = world->apart[site][HERE] = true;
    world_cut(world, HERE, site);
    broker_peer_gone(world->sites[HERE].broker, world->now_ms, &world->sites[site].id);
    world_run(world, 1000);
}

/* Clients at FIRST and SECOND hear "t", and the two go away one after the other. */
static struct absence absence_new(uint64_t queues_bytes) {
    struct world *world = world_of(SITES);
    world->sites[HERE].limits.link_queues_bytes = queues_bytes;
    assert_true(world_start(world));
    struct absence absence = {.world = world, .says = client_connect(world, HERE)};
    for (int site = FIRST; site < SITES; site++)
        client_subscribe(world, client_connect(world, site), "t", 1);
    world_settle(world);
    client_publish(world, absence.says, "t", "warm", 1, false);
    world_run(world, 1000);
    go_away(world, FIRST);
    go_away(world, SECOND);
    return absence;
}

static void publish(struct absence *absence, int count) {
    for (int i = 0; i < count; i++) {
        client_publish(absence->world, absence->says, "t", "x", 1, false);
        world_settle(absence->world);
    }
}

static struct link_info of(struct absence *absence, int site) {
    return world_link(absence->world, HERE, site);
}

static void who_has_been_away_longest_pays(void **state) {
    (void)state;
    struct absence absence = absence_new(20000);
    publish(&absence, 1);
    uint64_t each = of(&absence, FIRST).outbox_bytes;
    int room = (int)(20000 / each);
    publish(&absence, room / 2 - 1);
    assert_int_equal(of(&absence, FIRST).outbox_messages, room / 2);
    assert_int_equal(of(&absence, SECOND).outbox_messages, room / 2);
    publish(&absence, 1);
    assert_int_equal(of(&absence, FIRST).dropped_at[LINK_AT_QUEUES_BYTES], of(&absence, FIRST).dropped);
    assert_in_range(of(&absence, FIRST).dropped, room / 2, room / 2 + 1);
    assert_in_range(of(&absence, FIRST).outbox_messages, 0, 1);
    assert_int_equal(of(&absence, SECOND).outbox_messages, room / 2 + 1);
    assert_int_equal(of(&absence, SECOND).dropped, 0);
    assert_true(absence.world->warnings[HERE] > 0);
    assert_non_null(strstr(absence.world->last_warning[HERE], "limits.link_queues_bytes"));
    publish(&absence, 10 * room); /* and in the end what is published now */
    assert_int_equal(of(&absence, FIRST).outbox_messages, 0);
    assert_in_range(of(&absence, SECOND).outbox_bytes, 20000 - each, 20000);
    assert_int_equal(of(&absence, SECOND).dropped_at[LINK_AT_QUEUES_BYTES], of(&absence, SECOND).dropped);
    end(absence.world);
}

static void while_memory_is_short_one_after_the_other_pays(void **state) {
    (void)state;
    struct absence absence = absence_new(0);
    struct broker *broker = absence.world->sites[HERE].broker;
    publish(&absence, 10);
    broker_set_memory_used(broker, 1000);
    assert_int_equal(of(&absence, FIRST).outbox_messages, 10);
    broker_set_memory_short(broker, absence.world->now_ms, true);
    broker_set_memory_used(broker, 1000);
    assert_int_equal(of(&absence, FIRST).outbox_messages, 0);
    assert_int_equal(of(&absence, FIRST).dropped_at[LINK_AT_MEMORY], 10);
    assert_int_equal(of(&absence, SECOND).outbox_messages, 10);
    world_run(absence.world, 1000);
    assert_non_null(strstr(absence.world->last_warning[HERE], "limits.memory_bytes_max"));
    broker_set_memory_used(broker, 1000);
    assert_int_equal(of(&absence, SECOND).outbox_messages, 0);
    broker_set_memory_used(broker, 1000);
    end(absence.world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_been_away_longest_pays),
        cmocka_unit_test(while_memory_is_short_one_after_the_other_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
