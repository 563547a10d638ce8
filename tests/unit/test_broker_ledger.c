/* What both ends of a link count (G13): every case once, and that the two agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"
#include "policies.h"

static void publish_many(struct world *world, struct client *says, const char *topic, int count, int qos) {
    for (int i = 0; i < count; i++)
        client_publish(world, says, topic, "m", qos, false);
}

/* The last 60 are on their way when the link is cut. */
static void what_a_cut_took_is_sent_again(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    publish_many(world, says, "t", 40, 1);
    world_settle(world);
    world->hold_frames = true;
    publish_many(world, says, "t", 60, 1);
    world_settle(world);
    world_cut(world, 0, 1);
    world->hold_frames = false;
    world_run(world, 1000);
    assert_int_equal(client_got(hears, "m"), 100);
    struct link_info sent = world_link(world, 0, 1), got = world_link(world, 1, 0);
    assert_int_equal(sent.publications_sent, 101);
    assert_int_equal(sent.sent_again, 60); /* of the others the hello tells that they have come */
    assert_int_equal(got.publications_received, 101);
    assert_int_equal(got.repeated + got.lost + got.reordered, 0);
    end(world);
}

static void any_cuts_leave_counts_that_agree(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct client *says, *hears;
        struct world *world = joined(&says, &hears);
        unsigned random = seed * 2654435761u;
        for (int round = 0; round < 30; round++) {
            random = random * 1103515245u + 12345u;
            world->hold_frames = random >> 16 & 1;
            publish_many(world, says, "t", (int)(random >> 20 & 7), (int)(random >> 24) % 3);
            site_pump(world, 0);
            if ((random >> 28 & 3) == 0) world_cut(world, 0, 1);
            world_run(world, random >> 17 & 255);
        }
        world->hold_frames = false;
        world_run(world, 20000);
        assert_int_equal(world_link(world, 0, 1).outbox_messages, 0);
        assert_int_equal(world_link(world, 1, 0).lost, 0);
        end(world);
    }
}

static void each_limit_counts_what_it_drops(void **state) {
    (void)state;
    struct world *world = world_of(2);
    world->sites[0].limits.link_queue_bytes = 20000;
    world->sites[0].limits.replay_bytes_max = 2000;
    world->sites[0].limits.replay_window_ms = 2000;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_subscribe(world, hears, "t", 1);
    world_run(world, 400);

    /* Nobody answers the invitation. */
    world->hold_frames = true;
    publish_many(world, says, "t", 100, 1);
    uint64_t full = world_link(world, 0, 1).dropped_at[LINK_AT_REPLAY_BYTES];
    assert_in_range(full, 1, 99);
    world_run(world, 2000);
    struct link_info info = world_link(world, 0, 1);
    assert_int_equal(info.dropped_at[LINK_AT_REPLAY_WINDOW], 100 - full);
    assert_int_equal(info.dropped, 100);

    world->hold_frames = false;
    client_publish(world, says, "t", "first", 1, false);
    world_run(world, 1000);
    assert_int_equal(client_got(hears, "first"), 1);

    static const char large[30000];
    world->hold_frames = true;
    client_publish_bytes(world, says, "t", large, sizeof large, 1, false);
    publish_many(world, says, "t", 100, 0);
    assert_int_equal(world_link(world, 0, 1).dropped_at[LINK_AT_QUEUE_BYTES], 100);
    world->hold_frames = false;
    world_run(world, 1000);
    assert_int_equal(world_link(world, 0, 1).outbox_messages, 0);
    end(world);
}

static void what_no_frame_can_hold_is_dropped_and_told_as_nil(void **state) {
    (void)state;
    struct world *world = world_of(2);
    world->sites[1].limits.packet_size_max = 1000;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_subscribe(world, hears, "t", 1);
    client_publish(world, says, "t", "before", 1, false);
    world_run(world, 400);
    static char large[2 << 20];
    client_publish_bytes(world, says, "t", large, sizeof large, 1, false);
    client_publish(world, says, "t", "after", 1, false);
    world_run(world, 400);
    assert_int_equal(client_got(hears, "after"), 1);
    assert_int_equal(world_link(world, 0, 1).dropped_at[LINK_AT_FRAME_SIZE], 1);
    assert_int_equal(world_link(world, 0, 1).dropped, 1);
    assert_int_equal(world_link(world, 0, 1).sent_as_nil, 1);
    assert_int_equal(world_link(world, 1, 0).received_as_nil, 1);
    end(world);
}

static void what_expires_on_its_way_is_given_up(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    struct client *new_says = client_connect_5(world, 0, NULL, 0);
    world_cut(world, 0, 1);
    world->apart[0][1] = true;
    static const uint8_t body[] = {0, 1, 't', 0, 1, 5, 2, 0, 0, 0, 1, 'p'}; /* QoS 1, expires after 1 s */
    client_packet(world, new_says, 0x32, body, sizeof body);
    client_publish(world, says, "t", "lasts", 1, false);
    world_run(world, 2000);
    world->apart[0][1] = false;
    world_run(world, 20000);
    assert_int_equal(client_got(hears, "lasts"), 1);
    assert_int_equal(world_link(world, 0, 1).given_up[GIVEN_UP_EXPIRED], 1);
    assert_int_equal(world_link(world, 0, 1).sent_as_nil, 1);
    assert_int_equal(world_link(world, 0, 1).dropped, 0);
    assert_int_equal(world_link(world, 1, 0).received_as_nil, 1);
    end(world);
}

/* They may have arrived before it began anew, and at QoS 0 nothing comes twice. */
static void qos_0_under_way_to_one_that_restarts_is_given_up(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world->hold_frames = true;
    publish_many(world, says, "t", 3, 0);
    world_settle(world);
    broker_peer_alive(world->sites[0].broker, world->now_ms, &world->sites[1].id, "site-1", 2);
    assert_int_equal(world_link(world, 0, 1).given_up[GIVEN_UP_RESTARTED], 3);
    world_free(world);
    free(world);
}

static void for_one_that_is_gone_nothing_of_qos_0_waits(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world->hold_frames = true;
    publish_many(world, says, "t", 3, 0);
    broker_peer_gone(world->sites[0].broker, world->now_ms, &world->sites[1].id);
    assert_int_equal(world_link(world, 0, 1).given_up[GIVEN_UP_AWAY], 3);
    assert_int_equal(world_link(world, 0, 1).dropped, 0);
    world_free(world);
    free(world);
}

static void what_is_private_at_the_other_end_is_refused_there(void **state) {
    (void)state;
    struct world *world = world_of(2);
    struct policy *policy = POLICY({"", POLICY_PRIVATE, "t/secret"});
    world->sites[1].policy = policy;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_subscribe(world, hears, "t/#", 1);
    world_settle(world);
    client_publish(world, says, "t/open", "m", 1, false);
    world_run(world, 400);
    client_publish(world, says, "t/secret", "m", 1, false);
    world_run(world, 400);
    assert_int_equal(client_got(hears, "m"), 1);
    assert_int_equal(world_link(world, 1, 0).refused, 1);
    assert_int_equal(world_link(world, 1, 0).publications_received, 1);
    end(world);
    policy_free(policy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_cut_took_is_sent_again),
        cmocka_unit_test(any_cuts_leave_counts_that_agree),
        cmocka_unit_test(each_limit_counts_what_it_drops),
        cmocka_unit_test(what_no_frame_can_hold_is_dropped_and_told_as_nil),
        cmocka_unit_test(what_expires_on_its_way_is_given_up),
        cmocka_unit_test(qos_0_under_way_to_one_that_restarts_is_given_up),
        cmocka_unit_test(for_one_that_is_gone_nothing_of_qos_0_waits),
        cmocka_unit_test(what_is_private_at_the_other_end_is_refused_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
