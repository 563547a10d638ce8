/* What $SYS/federation tells clients of links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"

/* The next thing told, as "TOPIC PAYLOAD" below $SYS/federation/links/. */
static void expect_told(struct client *watches, int *at, const char *told) {
    static const char prefix[] = "$SYS/federation/links/";
    char text[2 * TOPIC_MAX + 1];
    if (*at >= watches->received_count) fail_msg("nothing told, not %s", told);
    const struct received *received = &watches->received[(*at)++];
    assert_memory_equal(received->topic, prefix, sizeof prefix - 1);
    snprintf(text, sizeof text, "%s %s", received->topic + sizeof prefix - 1, received->payload);
    assert_string_equal(text, told);
    assert_int_equal(received->qos, 0);
}

static struct client *watch(struct world *world, int site) {
    struct client *watches = client_connect(world, site);
    client_subscribe(world, watches, "$SYS/federation/#", 0);
    world_settle(world);
    return watches;
}

/* A and B joined, and one at A who has heard of it. */
static struct world *watched(struct client **watches, int *at) {
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    *watches = watch(world, 0);
    expect_told(*watches, at, "site-1/state up"); /* retained: it was before */
    return world;
}

static void a_link_that_comes_up_and_ends_is_told_with_the_reason(void **state) {
    (void)state;
    struct client *watches;
    int at = 0;
    struct world *world = watched(&watches, &at);
    world_cut(world, 0, 1);
    world_run(world, 1000);
    expect_told(watches, &at, "site-1/state lost: its connection has ended");
    expect_told(watches, &at, "site-1/state up");
    world->sites[0].refuses = true;
    world->hold_frames = true;
    world_run(world, 11000);
    expect_told(watches, &at, "site-1/state closed: silent for too long");
    assert_int_equal(watches->received_count, at);
    end(world);
}

static void one_that_is_back_before_the_next_tick_is_told_as_ended_and_up(void **state) {
    (void)state;
    struct client *watches;
    int at = 0;
    struct world *world = watched(&watches, &at);
    world_cut(world, 0, 1);
    world->now_ms += 200;
    broker_tick(world->sites[1].broker, world->now_ms);
    world_settle(world);
    assert_int_equal(world_link(world, 0, 1).state, LINK_UP);
    world_run(world, 1);
    expect_told(watches, &at, "site-1/state lost: its connection has ended");
    expect_told(watches, &at, "site-1/state up");
    assert_int_equal(watches->received_count, at);
    end(world);
}

/* Who dialled it knows that it is dead, and dials again. */
static void one_that_takes_the_place_of_another_is_no_news(void **state) {
    (void)state;
    struct client *says, *hears;
    int at = 0;
    struct world *world = joined(&says, &hears);
    struct wire *old = world->wires;
    int dialler = old->ends[0].site, other = 1 - dialler;
    assert_true(old->ends[0].open && old->ends[1].open);
    struct client *watches = watch(world, other);
    expect_told(watches, &at, dialler == 0 ? "site-0/state up" : "site-1/state up");
    uint64_t since_ms = world_link(world, other, dialler).up_since_ms;
    old->held = true;
    old->ends[0].open = false;
    broker_link_closed(world->sites[dialler].broker, world->now_ms, old->ends[0].handle);
    world_run(world, 1000);
    assert_true(world_link(world, other, dialler).up_since_ms > since_ms);
    assert_int_equal(watches->received_count, at);
    end(world);
}

static void what_the_peer_gives_as_its_reason_is_told(void **state) {
    (void)state;
    struct client *watches;
    int at = 0;
    struct world *world = watched(&watches, &at);
    world->apart[0][1] = true;
    broker_peer_gone(world->sites[1].broker, world->now_ms, &world->sites[0].id);
    world_run(world, 1000);
    expect_told(watches, &at, "site-1/state closed by it: you are down or left, as the membership here sees");
    end(world);
}

static void counts_are_told_when_they_rise_and_not_too_often(void **state) {
    (void)state;
    struct world *world = world_of(2);
    int at = 0;
    world->sites[0].limits.link_queue_bytes = 1;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_publish(world, says, "t", "m", 1, false);
    client_subscribe(world, hears, "t", 1);
    world_run(world, 400);
    struct client *watches = watch(world, 0);
    expect_told(watches, &at, "site-1/state up");
    for (int i = 0; i < 3; i++) {
        client_publish(world, says, "t", "m", 0, false);
        world_run(world, 1000);
    }
    expect_told(watches, &at, "site-1/dropped/link_queue_bytes 1");
    assert_int_equal(watches->received_count, at);
    world_run(world, 2001);
    expect_told(watches, &at, "site-1/dropped/link_queue_bytes 3");
    world_run(world, 60000);
    assert_int_equal(watches->received_count, at);
    client_publish(world, says, "t", "m", 0, false);
    world_run(world, 1);
    expect_told(watches, &at, "site-1/dropped/link_queue_bytes 4");
    struct client *later = watch(world, 0);
    assert_int_equal(client_got(later, "up") + client_got(later, "4"), 2);
    assert_int_equal(later->received_count, 2);
    end(world);
}

static void without_sys_nothing_is_told(void **state) {
    (void)state;
    struct world *world = world_of(2);
    world->sites[0].limits.sys_interval_s = UINT32_MAX;
    assert_true(world_start(world));
    struct client *watches = watch(world, 0), *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_publish(world, says, "t", "m", 1, false);
    client_subscribe(world, hears, "t", 1);
    world_run(world, 400);
    assert_int_equal(world_link(world, 0, 1).state, LINK_UP);
    assert_int_equal(watches->received_count, 0);
    end(world);
}

static void it_stays_at_its_broker(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    struct client *watches = watch(world, 1);
    int before = watches->received_count;
    world_cut(world, 0, 1);
    world_run(world, 1000);
    for (int i = before; i < watches->received_count; i++)
        assert_string_equal(watches->received[i].topic, "$SYS/federation/links/site-0/state");
    assert_int_equal(watches->received_count, before + 2);
    end(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_that_comes_up_and_ends_is_told_with_the_reason),
        cmocka_unit_test(one_that_is_back_before_the_next_tick_is_told_as_ended_and_up),
        cmocka_unit_test(one_that_takes_the_place_of_another_is_no_news),
        cmocka_unit_test(what_the_peer_gives_as_its_reason_is_told),
        cmocka_unit_test(counts_are_told_when_they_rise_and_not_too_often),
        cmocka_unit_test(without_sys_nothing_is_told),
        cmocka_unit_test(it_stays_at_its_broker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
