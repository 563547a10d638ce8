/* G6 over a link that flaps: of what is retained only what changed crosses, each change once at most, and in the end
 * both hold the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/compare.h"
#include "broker/stock.h"
#include "compare_world.h"
#include "policies.h"

/* None, few that are told at once, some that are offered, many that are asked for in parts. */
static const unsigned sizes[] = {0, 1, 20, 33, 300, 3000, 20000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void what_is_equal_does_not_cross(void **state) {
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        struct flap flap = flap_with(sizes[s], "t/#");
        assert_int_equal(crossing.publications, sizes[s]);
        assert_int_equal(expect_agreement(flap.world), sizes[s]);
        nothing_crossed();
        for (int i = 0; i < 20; i++)
            outage(flap.world);
        assert_int_equal(crossing.publications, 0);
        assert_true(crossing.digest_bytes < 20 * 800);
        assert_int_equal(expect_agreement(flap.world), sizes[s]);
        assert_int_equal(broker_federation(flap.world->sites[A].broker)->digest_items, 0);
        assert_int_equal(broker_federation(flap.world->sites[B].broker)->digest_items, 0);
        end(flap.world);
    }
}

static void a_first_join_costs_nothing_more(void **state) {
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        struct flap flap = flap_with(sizes[s], "t/#");
        assert_int_equal(crossing.digest_frames, 0);
        end(flap.world);
    }
}

/* Some topic changes; how says in which way. */
static void change(struct flap *flap, unsigned topics) {
    char payload[24];
    unsigned topic = (unsigned)(next_random() % (topics + 1)); /* one more than before: perhaps new */
    snprintf(payload, sizeof payload, "%llu", (unsigned long long)next_random());
    retain_at(flap, topic, next_random() % 4 == 0 ? "" : payload);
}

static void each_change_crosses_once_at_most(void **state) {
    (void)state;
    for (size_t s = 0; s < SIZES; s++) {
        struct flap flap = flap_with(sizes[s], "t/#");
        uint64_t changes = 0;
        nothing_crossed();
        for (int round = 0; round < 30; round++) {
            lose_link(flap.world);
            for (uint64_t n = next_random() % 60; n > 0; n--, changes++)
                change(&flap, sizes[s]);
            world_run(flap.world, next_random() % 2 ? OUTAGE_MS : next_random() % 3000);
            for (uint64_t n = next_random() % 60; n > 0; n--, changes++)
                change(&flap, sizes[s]);
            if (next_random() % 2) world_run(flap.world, OUTAGE_MS); /* what is held for an invite is so no more */
            heal_link(flap.world);
            for (uint64_t n = next_random() % 20; n > 0; n--, changes++)
                change(&flap, sizes[s]);
            world_settle(flap.world);
            expect_agreement(flap.world);
        }
        assert_int_equal(crossing.repeated, 0);
        assert_true(crossing.publications <= changes);
        end(flap.world);
    }
}

/* Frames go one at a time, and between them topics change and links break. */
static void changes_in_the_midst_of_it_cross_once_at_most(void **state) {
    (void)state;
    unsigned cut = 0, changed = 0;
    for (size_t s = 3; s < SIZES - 1; s++) {
        struct flap flap = flap_with(sizes[s], "t/#");
        nothing_crossed();
        for (int round = 0; round < 60; round++) {
            struct world *world = flap.world;
            lose_link(world);
            world_run(world, OUTAGE_MS);
            for (uint64_t n = next_random() % 200; n > 0; n--)
                change(&flap, sizes[s]);
            world_run(world, OUTAGE_MS);
            world->apart[A][B] = world->apart[B][A] = false;
            world->step_frames = true;
            for (int step = 0; step < 400 && world->step_frames; step++) {
                world_run(world, step < 150 ? 100 : 1);
                bool compares = crossing.compares > 0;
                if (compares && next_random() % 4 == 0) change(&flap, sizes[s]), changed++;
                if (compares && next_random() % 25 == 0) {
                    world_cut(world, A, B);
                    cut++;
                    world->step_frames = false;
                }
            }
            world->step_frames = false;
            heal_link(world);
            expect_agreement(world);
            crossing.compares = 0;
        }
        assert_int_equal(crossing.repeated, 0);
        end(flap.world);
    }
    assert_true(cut > 30 && changed > 100);
}

static void a_peer_that_begins_anew_gets_all_of_it(void **state) {
    (void)state;
    struct flap flap = flap_with(3000, "t/#");
    struct world *world = flap.world;
    nothing_crossed();
    broker_free(world->sites[B].broker);
    world->sites[B].broker = NULL;
    world_cut(world, A, B);
    assert_true(site_start(world, B));
    world_meet(world);
    struct client *hears = client_connect(world, B);
    client_subscribe(world, hears, "t/#", 0);
    world_run(world, 20000);
    assert_int_equal(crossing.publications, 3000);
    assert_int_equal(crossing.digest_frames, 0);
    assert_int_equal(expect_agreement(world), 3000);
    end(world);
}

/* A has lost all, and what B holds of its earlier run is newer than nothing. */
static void a_publisher_that_begins_anew_sends_what_is_new(void **state) {
    (void)state;
    struct flap flap = flap_with(3000, "t/#");
    struct world *world = flap.world;
    nothing_crossed();
    broker_free(world->sites[A].broker);
    world->sites[A].broker = NULL;
    world_cut(world, A, B);
    world->now_ms += 1000;
    assert_true(site_start(world, A));
    flap.says = client_connect(world, A);
    for (unsigned i = 0; i < 50; i++)
        retain_at(&flap, i * 7, "second");
    world_meet(world);
    world_run(world, 20000);
    assert_int_equal(crossing.publications, 50);
    assert_memory_equal(held_at(world, B, "t/7", 3)->payload, "second", 6);
    end(world);
}

static void an_older_peer_gets_all_of_it(void **state) {
    (void)state;
    struct flap flap = flap_with(3000, "t/#");
    nothing_crossed();
    crossing.older = true;
    for (int i = 0; i < 3; i++) {
        for (unsigned n = 0; n < 10; n++)
            change(&flap, 3000);
        outage(flap.world);
        expect_agreement(flap.world);
    }
    assert_true(crossing.snapshots >= 9000);
    assert_int_equal(crossing.compares, 0);
    assert_int_equal(broker_federation(flap.world->sites[B].broker)->digest_items, 0);
    crossing.older = false; /* it is brought up to date */
    nothing_crossed();
    outage(flap.world);
    assert_int_equal(crossing.publications, 0);
    end(flap.world);
}

/* What it was sent while it was held dead is not known, so it gets all for the joins that were kept. */
static void an_older_peer_that_was_held_dead_gets_all_of_it(void **state) {
    (void)state;
    struct flap flap = flap_with(300, "nothing");
    struct world *world = flap.world;
    client_subscribe(world, flap.hears, "t/#", 1);
    world_run(world, 2000);
    nothing_crossed();
    crossing.older = true;
    lose_link(world);
    broker_peer_gone(world->sites[A].broker, world->now_ms, &world->sites[B].id);
    retain_at(&flap, 7, "while away");
    world->apart[A][B] = world->apart[B][A] = false;
    world_meet(world);
    heal_link(world);
    assert_int_equal(crossing.snapshots, 300);
    assert_int_equal(expect_agreement(world), 300);
    end(world);
}

/* C's clients have the last word on some of A's topics; A, which does not subscribe, still holds its own. */
static void what_a_third_broker_replaced_is_not_sent(void **state) {
    (void)state;
    static const unsigned counts[] = {20, 500, 5000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct flap flap = {.world = covered_world(3)};
        struct world *world = flap.world;
        assert_true(world_start(world));
        flap.says = client_connect(world, A);
        flap.hears = client_connect(world, B);
        for (unsigned n = 0; n < counts[i]; n++)
            retain_at(&flap, n, "of A");
        client_subscribe(world, flap.hears, "t/#", 0);
        world_run(world, 2000);
        struct flap third = {.world = world, .says = client_connect(world, C)};
        for (unsigned n = 0; n < counts[i]; n += 3)
            retain_at(&third, n, "of C");
        world_run(world, 2000);
        nothing_crossed();
        for (int n = 0; n < 3; n++)
            outage(world);
        assert_int_equal(crossing.publications, 0);
        retain_at(&flap, 3, "of A again");
        world_run(world, 1000);
        assert_int_equal(crossing.publications, 1);
        assert_int_equal(held_at(world, B, "t/3", 3)->payload_size, 10);
        assert_int_equal(held_at(world, B, "t/6", 3)->payload_size, 4);
        end(world);
    }
}

static void put(struct world *world, int site, const char *topic, uint64_t wall_ms, uint32_t count, int origin) {
    struct message message = {.topic = topic,
                              .topic_size = (uint32_t)strlen(topic),
                              .payload = (const uint8_t *)"put",
                              .payload_size = 3,
                              .retain = true,
                              .expires_at_ms = UINT64_MAX,
                              .stamp = {.wall_ms = wall_ms, .count = count}};
    memcpy(message.stamp.origin, world->sites[origin].id.bytes, sizeof message.stamp.origin);
    assert_int_equal(retained_set(broker_federation(world->sites[site].broker)->retained, world->now_ms, &message),
                     RETAINED_STORED);
    message_return(&message);
}

/* Of the same time and count the higher id wins, whoever of the two is asked. */
static void equal_stamps_of_two_brokers_are_told_apart(void **state) {
    (void)state;
    static const struct {
        uint64_t wall_ms;
        uint32_t count;
    } stamps[] = {{5, 5}, {5, 0}, {0, 0}, {0, 1}};
    for (int reversed = 0; reversed < 2; reversed++) {
        for (size_t fill = 0; fill < 2; fill++) { /* told at once, or offered */
            struct flap flap = flap_with(fill ? 100 : 1, "t/#");
            struct world *world = flap.world;
            nothing_crossed();
            lose_link(world);
            world_run(world, OUTAGE_MS);
            memset(world->sites[C].id.bytes, reversed ? 0 : 255, sizeof world->sites[C].id.bytes);
            for (size_t i = 0; i < 4; i++) {
                char topic[16];
                snprintf(topic, sizeof topic, "t/x/%zu", i);
                put(world, A, topic, stamps[i].wall_ms, stamps[i].count, A);
                put(world, B, topic, stamps[i].wall_ms, stamps[i].count, C);
            }
            heal_link(world);
            assert_int_equal(crossing.publications, reversed ? 4 : 0);
            const struct message *held = held_at(world, B, "t/x/0", 5);
            assert_int_equal(memcmp(held->stamp.origin, world->sites[A].id.bytes, 16) == 0, reversed);
            end(world);
        }
    }
}

/* 100 of 3000. */
static void change_some(struct flap *flap) {
    for (unsigned i = 0; i < 3000; i += 30)
        retain_at(flap, i, "changed");
}

/* The subscriber hears nothing before all is compared. */
static void suback_waits_for_the_end_of_it(void **state) {
    (void)state;
    struct flap flap = flap_with(3000, "t/#");
    struct world *world = flap.world;
    client_unsubscribe(world, flap.hears, "t/#");
    world_run(world, 20000);
    change_some(&flap);
    world_settle(world);
    nothing_crossed();
    flap.hears->subacks = 0;
    flap.hears->received_count = 0;
    client_subscribe(world, flap.hears, "t/#", 0);
    world->step_frames = true;
    int steps = 0;
    for (; world_link(world, B, A).joined_there == 0; steps++) {
        assert_int_equal(flap.hears->subacks, 0);
        assert_int_equal(flap.hears->received_count, 0);
        world_run(world, 1);
    }
    world->step_frames = false;
    assert_true(steps > 8);
    world_run(world, 1);
    assert_int_equal(flap.hears->subacks, 1);
    assert_int_equal(crossing.publications, 100);
    assert_int_equal(flap.hears->received_count, 3000);
    assert_int_equal(world_counters(world, B).barriers_timed_out, 0);
    end(world);
}

/* It goes away, or subscribes again, after each number of frames. */
static void a_leave_in_the_midst_ends_it(void **state) {
    (void)state;
    for (int back = 0; back < 2; back++) {
        for (int steps = 1; steps < 12; steps++) {
            struct flap flap = flap_with(3000, "t/#");
            struct world *world = flap.world;
            client_unsubscribe(world, flap.hears, "t/#");
            world_run(world, 20000);
            change_some(&flap);
            world_settle(world);
            nothing_crossed();
            client_subscribe(world, flap.hears, "t/#", 0);
            world->step_frames = true;
            for (int step = 0; step < steps; step++)
                world_run(world, 1);
            world->hold_frames = true;
            client_unsubscribe(world, flap.hears, "t/#");
            world_run(world, 6000); /* it lingers */
            if (back) client_subscribe(world, flap.hears, "t/#", 0);
            world->hold_frames = world->step_frames = false;
            world_run(world, 20000);
            assert_int_equal(crossing.repeated, 0);
            assert_null(broker_federation(world->sites[A].broker)->peers[0]->link->comparisons);
            assert_null(broker_federation(world->sites[B].broker)->peers[0]->link->stocks);
            if (back) assert_int_equal(expect_agreement(world), 3000);
            end(world);
        }
    }
}

/* Filters that overlap, in one frame and in many at once. */
static void what_several_joins_match_crosses_once(void **state) {
    (void)state;
    static const char *const filters[] = {"t/#", "#", "t/+", "t/1", "+/2", "t/+/#", "+/#", "t/3"};
    enum { FILTERS = sizeof filters / sizeof filters[0] };
    static const unsigned counts[] = {20, 3000};
    for (size_t c = 0; c < 2; c++) {
        for (int apart = 0; apart < 2; apart++) {
            struct flap flap = flap_with(counts[c], "t/#");
            struct world *world = flap.world;
            client_unsubscribe(world, flap.hears, "t/#");
            world_run(world, 20000);
            if (apart) lose_link(world);
            for (unsigned i = 0; i < counts[c]; i += 2)
                retain_at(&flap, i, "changed");
            nothing_crossed();
            world->hold_frames = true;
            for (size_t f = 0; f < FILTERS; f++)
                client_subscribe(world, flap.hears, filters[f], 0);
            world_run(world, apart ? OUTAGE_MS : 100);
            world->hold_frames = false;
            heal_link(world);
            assert_int_equal(crossing.publications, counts[c] / 2);
            assert_int_equal(crossing.repeated, 0);
            assert_int_equal(expect_agreement(world), counts[c]);
            assert_int_equal(world_link(world, A, B).joined_here, FILTERS);
            end(world);
        }
    }
}

static void what_may_leave_from_now_on_is_all_that_crosses(void **state) {
    (void)state;
    struct flap flap = flap_with(3000, "t/#");
    struct world *world = flap.world;
    struct policy *closed = POLICY({"", POLICY_EXPORT, "t/#"}, {"", POLICY_PRIVATE, "t/closed/#"});
    broker_set_policy(world->sites[A].broker, world->now_ms, closed);
    for (unsigned i = 0; i < 100; i++) {
        char topic[TOPIC_MAX];
        snprintf(topic, sizeof topic, "t/closed/%u", 20000 + i);
        client_publish(world, flap.says, topic, "private", 0, true);
    }
    world_run(world, 20000);
    nothing_crossed();
    broker_set_policy(world->sites[A].broker, world->now_ms, NULL);
    world_run(world, 20000);
    assert_int_equal(crossing.publications, 100);
    assert_int_equal(expect_agreement(world), 3100);
    broker_set_policy(world->sites[A].broker, world->now_ms, closed);
    world_run(world, 20000);
    assert_int_equal(crossing.publications, 100);
    broker_set_policy(world->sites[A].broker, world->now_ms, NULL);
    end(world);
    policy_free(closed);
}

/* What was refused for want of room is found by the next comparison. */
static void what_did_not_fit_comes_with_the_next_join(void **state) {
    (void)state;
    struct flap flap = {.world = covered_world(2)};
    struct world *world = flap.world;
    world->sites[B].limits.retained_messages_max = 400;
    assert_true(world_start(world));
    flap.says = client_connect(world, A);
    flap.hears = client_connect(world, B);
    for (unsigned i = 0; i < 500; i++)
        retain_at(&flap, i, "x");
    client_subscribe(world, flap.hears, "t/#", 0);
    world_run(world, 2000);
    nothing_crossed();
    outage(world);
    assert_int_equal(crossing.publications, 100);
    end(world);
}

/* Joins that are kept while B is held dead: what is retained at QoS 0 does not wait for it. */
static void who_was_held_dead_gets_what_changed(void **state) {
    (void)state;
    struct flap flap = flap_with(3000, "nothing");
    struct world *world = flap.world;
    client_subscribe(world, flap.hears, "t/#", 1);
    world_run(world, 2000);
    nothing_crossed();
    for (int round = 0; round < 5; round++) {
        lose_link(world);
        broker_peer_gone(world->sites[A].broker, world->now_ms, &world->sites[B].id);
        broker_peer_gone(world->sites[B].broker, world->now_ms, &world->sites[A].id);
        for (unsigned i = 0; i < 40; i++)
            retain_at(&flap, i * 50 + (unsigned)round, "while away");
        world_run(world, OUTAGE_MS);
        world->apart[A][B] = world->apart[B][A] = false;
        world_meet(world);
        heal_link(world);
        assert_int_equal(expect_agreement(world), 3000);
    }
    assert_int_equal(crossing.publications, 200);
    assert_int_equal(crossing.snapshots, 200);
    end(world);
}

static void without_room_for_it_all_of_it_crosses(void **state) {
    (void)state;
    for (int site = 0; site < 2; site++) {
        struct flap flap = flap_with(3000, "t/#");
        struct federation *federation = broker_federation(flap.world->sites[site].broker);
        nothing_crossed();
        federation->digest_items = DIGEST_ITEMS_MAX - 10;
        outage(flap.world);
        assert_int_equal(federation->digest_items, DIGEST_ITEMS_MAX - 10);
        assert_int_equal(crossing.publications, 3000);
        assert_int_equal(world_link(flap.world, A, B).joined_here, 1);
        assert_int_equal(world_link(flap.world, B, A).joined_there, 1);
        federation->digest_items = 0;
        outage(flap.world);
        assert_int_equal(crossing.publications, 3000);
        end(flap.world);
    }
}

/* Clients come back one by one, each with topics of its own: more comparisons than may ask at one time, and than there
 * may be. */
static void many_comparisons_at_once_have_turns(void **state) {
    (void)state;
    enum { EACH = 40 };
    static const unsigned counts[] = {200, 1100 /* above COMPARISONS_MAX */};
    for (size_t c = 0; c < 2; c++) {
        for (int leaves = 0; leaves < 2; leaves++) {
            unsigned filters = counts[c];
            struct flap flap = {.world = covered_world(2)};
            struct world *world = flap.world;
            world->sites[B].limits.subscriptions_per_client = filters;
            assert_true(world_start(world));
            flap.says = client_connect(world, A);
            flap.hears = client_connect(world, B);
            for (unsigned i = 0; i < filters * EACH && i < TOPICS_MAX; i++) {
                char topic[TOPIC_MAX];
                snprintf(topic, sizeof topic, "t/%u/x/%u", i / EACH, i);
                client_publish(world, flap.says, topic, "first", 0, true);
            }
            client_subscribe(world, flap.hears, "t/#", 0);
            world_run(world, 2000);
            client_unsubscribe(world, flap.hears, "t/#");
            world_run(world, 20000);
            retain_at(&flap, 1, "new");
            nothing_crossed();
            world->hold_frames = true;
            for (unsigned i = 0; i < filters; i++) {
                char filter[TOPIC_MAX];
                snprintf(filter, sizeof filter, "t/%u/#", i);
                client_subscribe(world, flap.hears, filter, 0);
            }
            world_run(world, 100);
            world->hold_frames = false;
            world->step_frames = leaves;
            for (unsigned i = 0; leaves && i < filters; i += 2) {
                char filter[TOPIC_MAX];
                snprintf(filter, sizeof filter, "t/%u/#", i);
                client_unsubscribe(world, flap.hears, filter);
                world_run(world, 3);
            }
            world->step_frames = false;
            world_run(world, 20000);
            assert_int_equal(world_link(world, A, B).joined_here, leaves ? filters / 2 : filters);
            assert_int_equal(world_link(world, B, A).joined_there, leaves ? filters / 2 : filters);
            if (filters < COMPARISONS_MAX) assert_int_equal(crossing.publications, 1);
            assert_null(broker_federation(world->sites[A].broker)->peers[0]->link->comparisons);
            assert_int_equal(broker_federation(world->sites[A].broker)->peers[0]->link->compare_frames, 0);
            end(world);
        }
    }
}

/* It keeps itself from what was retained; what is published reaches it. */
static void a_peer_that_does_not_answer_costs_itself(void **state) {
    (void)state;
    struct flap flap = flap_with(3000, "t/#");
    struct world *world = flap.world;
    lose_link(world);
    world_run(world, OUTAGE_MS);
    retain_at(&flap, 5, "changed");
    world_run(world, OUTAGE_MS); /* it is not held for an invite any more */
    nothing_crossed();
    crossing.mute = true;
    heal_link(world);
    for (unsigned i = 100; i < 200; i++)
        retain_at(&flap, i, "live");
    world_run(world, 100000);
    assert_int_equal(crossing.publications, 100);
    assert_int_equal(crossing.snapshots, 0);
    assert_int_equal(world_link(world, A, B).state, LINK_UP);
    crossing.mute = false;
    world_cut(world, A, B); /* the joins outlive this */
    heal_link(world);
    assert_int_equal(crossing.publications, 101);
    assert_int_equal(crossing.repeated, 0);
    assert_int_equal(expect_agreement(world), 3000);
    end(world);
}

/* Who subscribes now gets what is published then. */
static void expect_crossing(struct world *world) {
    struct client *says = client_connect(world, A), *hears = client_connect(world, B);
    client_subscribe(world, hears, "t/after", 1);
    world_run(world, 10000);
    assert_int_equal(hears->subacks, 1);
    client_publish(world, says, "t/after", "all is well", 1, true);
    world_run(world, 10000);
    assert_int_equal(client_got(hears, "all is well"), 1);
    const struct link *link = broker_federation(world->sites[A].broker)->peers[0]->link;
    assert_non_null(link);
    assert_null(link->comparisons);
}

/* Either ends after each number of frames. */
static void the_end_of_a_broker_in_the_midst(void **state) {
    (void)state;
    for (int site = 0; site < 2; site++) {
        for (int steps = 0; steps < 14; steps++) {
            struct flap flap = flap_with(3000, "t/#");
            struct world *world = flap.world;
            lose_link(world);
            world_run(world, OUTAGE_MS);
            change_some(&flap);
            nothing_crossed();
            world->apart[A][B] = world->apart[B][A] = false;
            world->step_frames = true;
            while (crossing.digest_frames == 0)
                world_run(world, 100);
            for (int step = 0; step < steps; step++)
                world_run(world, 1);
            broker_free(world->sites[site].broker);
            world->sites[site].broker = NULL;
            world->step_frames = false;
            world_cut(world, A, B);
            assert_true(site_start(world, site));
            world_meet(world);
            world_run(world, 20000);
            expect_crossing(world);
            world_free(world);
            free(world);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_equal_does_not_cross),
        cmocka_unit_test(a_first_join_costs_nothing_more),
        cmocka_unit_test(each_change_crosses_once_at_most),
        cmocka_unit_test(changes_in_the_midst_of_it_cross_once_at_most),
        cmocka_unit_test(a_peer_that_begins_anew_gets_all_of_it),
        cmocka_unit_test(a_publisher_that_begins_anew_sends_what_is_new),
        cmocka_unit_test(an_older_peer_gets_all_of_it),
        cmocka_unit_test(an_older_peer_that_was_held_dead_gets_all_of_it),
        cmocka_unit_test(what_a_third_broker_replaced_is_not_sent),
        cmocka_unit_test(equal_stamps_of_two_brokers_are_told_apart),
        cmocka_unit_test(suback_waits_for_the_end_of_it),
        cmocka_unit_test(a_leave_in_the_midst_ends_it),
        cmocka_unit_test(what_several_joins_match_crosses_once),
        cmocka_unit_test(what_may_leave_from_now_on_is_all_that_crosses),
        cmocka_unit_test(what_did_not_fit_comes_with_the_next_join),
        cmocka_unit_test(who_was_held_dead_gets_what_changed),
        cmocka_unit_test(without_room_for_it_all_of_it_crosses),
        cmocka_unit_test(many_comparisons_at_once_have_turns),
        cmocka_unit_test(a_peer_that_does_not_answer_costs_itself),
        cmocka_unit_test(the_end_of_a_broker_in_the_midst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
