/* G6: brokers that die and begin again with what is on their disks still exchange only what changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compare_world.h"
#include "with_disk.h"

static const unsigned sizes[] = {20, 300, 2000};

/* A has retained so many, and the client of "cz" at B, whose session lasts if it is asked for QoS 1, has them. */
static struct pair retaining(unsigned topics, int qos) {
    struct pair pair = pair_with(true, 0);
    memset(&crossing, 0, sizeof crossing);
    pair.world->passes = count_crossing;
    pair.world->sites[A].cover = pair.world->sites[B].cover = "t/#";
    for (unsigned i = 0; i < topics; i++)
        retain_at(&(struct flap){.world = pair.world, .says = pair.says}, i, "first");
    run(&pair, 10);
    pair.hears = client_connect_as(pair.world, B, 'z', false);
    client_subscribe(pair.world, pair.hears, "t/#", qos);
    run(&pair, 1000);
    run(&pair, 1000);
    assert_int_equal(crossing.publications, topics);
    nothing_crossed();
    return pair;
}

static void change(struct pair *pair, unsigned topics, unsigned step) {
    for (unsigned i = 0; i < topics; i += step)
        retain_at(&(struct flap){.world = pair->world, .says = pair->says}, i, i % 2 ? "" : "changed");
    run(pair, 10);
}

static void begin_anew(struct pair *pair, int site) {
    assert_true(site_start(pair->world, site));
    if (site == A) pair->says = client_connect(pair->world, A);
    commit_at(pair, site);
    world_meet(pair->world);
    run(pair, 20000);
    run(pair, 1000);
}

static void a_subscriber_that_dies_gets_what_changed(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int qos = 0; qos < 2; qos++) {
            struct pair pair = retaining(sizes[s], qos);
            for (unsigned round = 0; round < 4; round++) {
                die_at(&pair, B);
                broker_peer_gone(pair.world->sites[A].broker, pair.world->now_ms, &pair.world->sites[B].id);
                change(&pair, sizes[s], 10);
                run(&pair, OUTAGE_MS);
                begin_anew(&pair, B);
                assert_int_equal(expect_agreement(pair.world), sizes[s]);
                assert_int_equal(crossing.publications, (round + 1) * (sizes[s] / 10));
            }
            assert_int_equal(crossing.repeated, 0);
            pair_end(&pair);
        }
    }
}

/* What it retained while B was away, at a QoS that does not wait for it, is not forgotten with what was to be said. */
static void a_publisher_that_dies_sends_what_changed(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int qos = 0; qos < 2; qos++) {
            struct pair pair = retaining(sizes[s], qos);
            for (unsigned round = 0; round < 4; round++) {
                lose_link(pair.world);
                broker_peer_gone(pair.world->sites[A].broker, pair.world->now_ms, &pair.world->sites[B].id);
                broker_peer_gone(pair.world->sites[B].broker, pair.world->now_ms, &pair.world->sites[A].id);
                change(&pair, sizes[s], 10);
                run(&pair, OUTAGE_MS);
                die_at(&pair, A);
                pair.world->apart[A][B] = pair.world->apart[B][A] = false;
                begin_anew(&pair, A);
                assert_int_equal(expect_agreement(pair.world), sizes[s]);
                assert_int_equal(crossing.publications, (round + 1) * (sizes[s] / 10));
            }
            assert_int_equal(crossing.repeated, 0);
            pair_end(&pair);
        }
    }
}

/* In the midst of it, after each number of frames. */
static void a_death_in_the_midst_of_it_loses_nothing(void **state) {
    (void)state;
    for (int site = 0; site < 2; site++) {
        for (int steps = 0; steps < 14; steps++) {
            struct pair pair = retaining(2000, 1);
            struct world *world = pair.world;
            lose_link(world);
            broker_peer_gone(world->sites[A].broker, world->now_ms, &world->sites[B].id);
            broker_peer_gone(world->sites[B].broker, world->now_ms, &world->sites[A].id);
            change(&pair, 2000, 10);
            run(&pair, OUTAGE_MS);
            world->apart[A][B] = world->apart[B][A] = false;
            world->step_frames = true;
            world_meet(world);
            while (crossing.digest_frames == 0)
                world_run(world, 100);
            for (int step = 0; step < steps; step++)
                run(&pair, 1);
            die_at(&pair, site);
            world->step_frames = false;
            begin_anew(&pair, site);
            assert_int_equal(expect_agreement(world), 2000);
            pair_end(&pair);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_subscriber_that_dies_gets_what_changed),
        cmocka_unit_test(a_publisher_that_dies_sends_what_changed),
        cmocka_unit_test(a_death_in_the_midst_of_it_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
