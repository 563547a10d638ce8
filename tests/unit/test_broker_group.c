/* Who gets what: whole brokers wired back to back; what crosses a link, once, to whom, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "joined.h"
#include "policies.h"

/* The registry has not brought the advert of the topic yet: the invite alone does it. */
static void first_message_waits_for_the_invited_join(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *hears = client_connect(world, 1), *says = client_connect(world, 0);
    world->sites[0].mute = true;
    client_subscribe(world, hears, "plant/+/t", 0);
    world_settle(world);
    assert_int_equal(hears->subacks, 1);
    client_publish(world, says, "plant/1/t", "first", 0, false);
    world_settle(world);
    assert_int_equal(client_got(hears, "first"), 1);
    assert_int_equal(world_counters(world, 0).replayed, 1);
    assert_int_equal(world_link(world, 0, 1).invites_sent, 1);
    client_publish(world, says, "plant/1/t", "second", 0, false);
    world_settle(world);
    assert_int_equal(client_got(hears, "second"), 1);
    assert_int_equal(world_counters(world, 0).replayed, 1);
    end(world);
}

static void held_messages_keep_their_order(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *hears = client_connect(world, 1), *says = client_connect(world, 0);
    client_subscribe(world, hears, "#", 1);
    world_settle(world);
    char text[16];
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%d", i);
        client_publish(world, says, i % 3 ? "a" : "b", text, i % 3, i % 5 == 0);
        if (i % 10 == 9) site_pump(world, 0);
    }
    world_settle(world);
    assert_int_equal(hears->received_count, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(atoi(hears->received[i].payload), i);
    assert_int_equal(world_link(world, 1, 0).lost, 0);
    end(world);
}

static void the_largest_limits_are_as_good_as_none(void **state) {
    static const uint64_t large[] = {UINT64_MAX, UINT64_MAX / 2 + 1};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world *world = world_of(2);
        world->sites[0].limits.link_queue_bytes = large[i];
        world->sites[0].limits.retained_bytes_max = large[1 - i];
        assert_true(world_start(world));
        world_settle(world);
        struct client *hears = client_connect(world, 1), *says = client_connect(world, 0);
        client_publish(world, says, "t", "kept", 1, true);
        client_subscribe(world, hears, "t", 1);
        world_run(world, 1000);
        client_publish(world, says, "t", "live", 1, false);
        world_settle(world);
        assert_int_equal(client_got(hears, "kept"), 1);
        assert_int_equal(client_got(hears, "live"), 1);
        assert_int_equal(world_link(world, 0, 1).dropped, 0);
        end(world);
    }
}

static void message_from_a_peer_is_not_sent_on(void **state) {
    (void)state;
    struct world *world = started(3);
    struct client *clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(world, i);
        client_subscribe(world, clients[i], "#", 1);
    }
    world_run(world, 1000);
    for (int i = 0; i < 3; i++)
        client_publish(world, clients[i], "t", "warm", 1, false);
    world_run(world, 1000);
    client_publish(world, clients[0], "t", "once", 1, false);
    world_run(world, 1000);
    for (int i = 0; i < 3; i++)
        assert_int_equal(client_got(clients[i], "once"), 1);
    assert_int_equal(world_link(world, 1, 2).publications_sent, 1); /* its own "warm" */
    assert_int_equal(world_link(world, 0, 1).publications_sent, 2);
    end(world);
}

static void one_copy_per_link_with_overlapping_filters(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *a = client_connect(world, 1), *b = client_connect(world, 1), *says = client_connect(world, 0);
    client_subscribe(world, a, "x/#", 0);
    client_subscribe(world, a, "x/+", 0);
    client_subscribe(world, b, "x/y", 0);
    client_subscribe(world, b, "#", 0);
    world_settle(world);
    client_publish(world, says, "x/y", "one", 0, false);
    world_settle(world);
    client_publish(world, says, "x/y", "two", 0, false);
    world_settle(world);
    assert_int_equal(client_got(a, "one"), 1);
    assert_int_equal(client_got(b, "one"), 1);
    assert_int_equal(client_got(a, "two"), 1);
    assert_int_equal(client_got(b, "two"), 1);
    assert_int_equal(world_link(world, 0, 1).publications_sent, 2);
    assert_int_equal(world_link(world, 0, 1).joined_here, 4);
    assert_int_equal(world_link(world, 1, 0).joined_there, 4);
    end(world);
}

static void broker_without_interest_gets_nothing(void **state) {
    (void)state;
    struct world *world = started(3);
    struct client *hears = client_connect(world, 1), *says = client_connect(world, 0),
                  *other = client_connect(world, 2);
    client_subscribe(world, hears, "a/#", 1);
    client_subscribe(world, other, "b/#", 1);
    world_settle(world);
    for (int i = 0; i < 10; i++)
        client_publish(world, says, "a/b", "m", 1, false);
    world_run(world, 2000);
    assert_int_equal(client_got(hears, "m"), 10);
    assert_int_equal(other->received_count, 0);
    assert_int_equal(world_link(world, 2, 0).publications_received, 0);
    assert_int_equal(world_link(world, 2, 0).frames_received, 0);
    end(world);
}

/* A row that is only a cover: the peer declines, and is not asked again for a while. */
static void a_cover_is_declined_once(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0);
    broker_peer_row(world->sites[0].broker, world->now_ms, &world->sites[1].id, ROW_NEWSUB, "dev/+/t", 7, true);
    for (int i = 0; i < 5; i++) {
        client_publish(world, says, "dev/1/t", "m", 0, false);
        world_run(world, 1000);
    }
    assert_int_equal(world_link(world, 0, 1).invites_sent, 1);
    assert_int_equal(world_link(world, 0, 1).publications_sent, 0);
    assert_int_equal(world_counters(world, 0).replay_expired, 0);
    world_run(world, 31000);
    client_publish(world, says, "dev/1/t", "m", 0, false);
    world_settle(world);
    assert_int_equal(world_link(world, 0, 1).invites_sent, 2);
    end(world);
}

/* Whoever chooses the rows learns what a cover lets through, and what of it was wanted. */
static void what_a_row_lets_through_is_told(void **state) {
    (void)state;
    struct world *world = started(2);
    struct broker *here = world->sites[1].broker;
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_subscribe(world, hears, "dev/2/t", 0);
    broker_peer_row(world->sites[0].broker, world->now_ms, &world->sites[1].id, ROW_NEWSUB, "dev/+/t", 7, true);
    client_publish(world, says, "dev/1/t", "m", 0, false);
    client_publish(world, says, "dev/2/t", "m", 0, false);
    world_settle(world);
    struct broker_unwanted unwanted;
    assert_true(broker_next_unwanted(here, &unwanted));
    assert_int_equal(unwanted.kind, ROW_NEWSUB);
    assert_int_equal(unwanted.size, 7);
    assert_memory_equal(unwanted.name, "dev/1/t", 7);
    assert_false(broker_next_unwanted(here, &unwanted));
    assert_int_equal(broker_wanted(here, ROW_NEWSUB), 1);
    /* An advert that is a cover: who joins because of it finds nothing. */
    broker_peer_row(here, world->now_ms, &world->sites[0].id, ROW_NEWPUB, "site/#", 6, true);
    client_subscribe(world, hears, "site/none", 0);
    world_settle(world);
    assert_true(broker_next_unwanted(world->sites[0].broker, &unwanted));
    assert_int_equal(unwanted.kind, ROW_NEWPUB);
    assert_memory_equal(unwanted.name, "site/none", 9);
    assert_int_equal(broker_wanted(world->sites[0].broker, ROW_NEWPUB), 1); /* dev/2/t */
    end(world);
}

static void a_declined_topic_is_asked_again_when_rows_change(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    broker_peer_row(world->sites[0].broker, world->now_ms, &world->sites[1].id, ROW_NEWSUB, "dev/+/t", 7, true);
    client_publish(world, says, "dev/1/t", "nobody", 0, false);
    world_settle(world);
    world->apart[0][1] = world->apart[1][0] = true;
    world_cut(world, 0, 1);
    client_subscribe(world, hears, "dev/1/t", 0);
    world_settle(world);
    client_publish(world, says, "dev/1/t", "somebody", 0, false);
    world->apart[0][1] = world->apart[1][0] = false;
    world_run(world, 1000);
    assert_int_equal(client_got(hears, "nobody"), 0);
    assert_int_equal(client_got(hears, "somebody"), 1);
    end(world);
}

static void what_nobody_joins_for_expires_and_is_counted(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *hears = client_connect(world, 1), *says = client_connect(world, 0);
    client_subscribe(world, hears, "t", 0);
    world_settle(world);
    world->apart[0][1] = true;
    client_publish(world, says, "t", "m", 1, false);
    world_run(world, 4900);
    assert_int_equal(world_counters(world, 0).replay_expired, 0);
    world_run(world, 200);
    assert_int_equal(world_counters(world, 0).replay_expired, 1);
    end(world);
}

static void a_resubscribe_within_the_linger_causes_no_traffic(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined_idle(&says, &hears, 60000); /* no pings in the count */
    uint64_t frames = world->frames_moved;
    int rows = world->row_count;
    client_unsubscribe(world, hears, "t");
    world_run(world, 4000);
    client_subscribe(world, hears, "t", 1);
    world_run(world, 900);
    assert_int_equal(world->frames_moved, frames);
    assert_int_equal(world->row_count, rows);
    assert_int_equal(hears->subacks, 2);
    end(world);
}

static void after_the_linger_the_peer_leaves(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    int rows = world->row_count;
    client_unsubscribe(world, hears, "t");
    world_run(world, 6000);
    assert_int_equal(world->row_count, rows - 1);
    assert_int_equal(world_link(world, 0, 1).joined_here, 0);
    uint64_t sent = world_link(world, 0, 1).publications_sent, invites = world_link(world, 0, 1).invites_sent;
    client_publish(world, says, "t", "nobody", 1, false);
    world_run(world, 1000);
    assert_int_equal(world_link(world, 0, 1).publications_sent, sent);
    assert_int_equal(world_link(world, 0, 1).invites_sent, invites);
    /* And a link that is of no use ends. */
    world_run(world, 70000);
    assert_true(world_link(world, 0, 1).state == LINK_CLOSING);
    end(world);
}

static void private_topics_never_cross(void **state) {
    (void)state;
    struct world *world = world_of(2);
    struct policy *policy = POLICY({"", POLICY_PRIVATE, "local/#"});
    world->sites[0].policy = policy;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_publish(world, says, "local/a", "retained secret", 1, true);
    client_publish(world, says, "open/a", "retained", 1, true);
    client_subscribe(world, hears, "#", 1);
    client_subscribe(world, hears, "local/a", 1);
    client_subscribe(world, says, "local/b", 1);
    client_subscribe(world, says, "#", 1);
    world_run(world, 1000);
    client_publish(world, says, "local/a", "secret", 1, false);
    client_publish(world, says, "open/a", "public", 1, false);
    client_publish(world, hears, "local/b", "from outside", 1, false);
    client_publish(world, hears, "open/b", "let in", 1, false);
    world_run(world, 1000);
    assert_int_equal(client_got(says, "let in"), 1);
    assert_int_equal(client_got(hears, "retained"), 1);
    assert_int_equal(client_got(hears, "public"), 1);
    assert_int_equal(client_got(hears, "secret") + client_got(hears, "retained secret"), 0);
    assert_int_equal(client_got(says, "from outside"), 0);
    for (int i = 0; i < world->row_count; i++)
        assert_true(world->rows[i].site == 1 || strncmp(world->rows[i].filter, "local", 5) != 0);
    end(world);
    policy_free(policy);
}

static void a_topic_is_invited_once_until_it_is_answered(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    world->sites[0].mute = true;
    client_subscribe(world, hears, "u/#", 1);
    world_run(world, 400);
    uint64_t invites = world_link(world, 0, 1).invites_sent;
    world->hold_frames = true;
    for (int i = 0; i < 5; i++) {
        client_publish(world, says, "u/1", "m", 1, false);
        world_run(world, 20);
    }
    assert_int_equal(world_link(world, 0, 1).invites_sent, invites + 1);
    world->hold_frames = false;
    world_run(world, 100);
    assert_int_equal(client_got(hears, "m"), 5);
    end(world);
}

/* The join ended, but the peer's row still asks for the topic: the next publication invites. */
static void after_a_leave_an_interest_is_seen_again(void **state) {
    (void)state;
    struct client *says, *hears;
    struct world *world = joined(&says, &hears);
    client_publish(world, says, "t", "settled", 1, false);
    world_run(world, 100);
    world->sites[0].deaf = true; /* the withdrawal of the row does not arrive */
    client_unsubscribe(world, hears, "t");
    world_run(world, 5100);
    assert_int_equal(world_link(world, 0, 1).joined_here, 0);
    client_subscribe(world, hears, "t", 1);
    world->sites[1].mute = true;
    client_publish(world, says, "t", "again", 1, false);
    world_run(world, 1000);
    assert_int_equal(client_got(hears, "again"), 1);
    end(world);
}

static int rows_of(const struct world *world, int site) {
    int count = 0;
    for (int i = 0; i < world->row_count; i++)
        count += world->rows[i].site == site;
    return count;
}

/* A topic nobody publishes to any more: its advert goes, unless it retains something, and with it the joins that it
 * caused and for which nothing is kept. */
static void an_idle_advert_is_withdrawn_and_its_joins_end(void **state) {
    (void)state;
    struct world *world = world_of(2);
    world->sites[0].limits.advert_idle_s = 10;
    assert_true(world_start(world));
    struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
    client_publish(world, says, "t", "m", 1, false);
    client_publish(world, says, "r", "m", 1, true);
    client_subscribe(world, hears, "t", 0);
    client_subscribe(world, hears, "r", 0);
    world_run(world, 8000);
    assert_int_equal(rows_of(world, 0), 2);
    client_publish(world, says, "t", "m", 1, false);
    world_run(world, 8000);
    assert_int_equal(rows_of(world, 0), 2);
    world_run(world, 2500);
    assert_int_equal(rows_of(world, 0), 1);
    assert_int_equal(world_link(world, 0, 1).joined_here, 2);
    world_run(world, 5000);
    assert_int_equal(world_link(world, 0, 1).joined_here, 1);
    client_publish(world, says, "t", "first again", 1, false);
    world_run(world, 1000);
    assert_int_equal(client_got(hears, "first again"), 1);
    end(world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_message_waits_for_the_invited_join),
        cmocka_unit_test(held_messages_keep_their_order),
        cmocka_unit_test(the_largest_limits_are_as_good_as_none),
        cmocka_unit_test(message_from_a_peer_is_not_sent_on),
        cmocka_unit_test(one_copy_per_link_with_overlapping_filters),
        cmocka_unit_test(broker_without_interest_gets_nothing),
        cmocka_unit_test(a_cover_is_declined_once),
        cmocka_unit_test(what_a_row_lets_through_is_told),
        cmocka_unit_test(a_declined_topic_is_asked_again_when_rows_change),
        cmocka_unit_test(what_nobody_joins_for_expires_and_is_counted),
        cmocka_unit_test(a_resubscribe_within_the_linger_causes_no_traffic),
        cmocka_unit_test(after_the_linger_the_peer_leaves),
        cmocka_unit_test(private_topics_never_cross),
        cmocka_unit_test(a_topic_is_invited_once_until_it_is_answered),
        cmocka_unit_test(after_a_leave_an_interest_is_seen_again),
        cmocka_unit_test(an_idle_advert_is_withdrawn_and_its_joins_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
