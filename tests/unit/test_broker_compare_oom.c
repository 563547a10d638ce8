/* A comparison of what is retained, once for each allocation that fails: nothing crashes or leaks, and what was not
 * compared then is so on the next link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oom.h"

#include "compare_world.h"

static struct flap flap_apart(unsigned topics, unsigned changes) {
    struct flap flap = flap_with(topics, "t/#");
    client_subscribe(flap.world, flap.hears, "t/+", 0);
    world_run(flap.world, 1000);
    lose_link(flap.world);
    world_run(flap.world, OUTAGE_MS);
    for (unsigned i = 0; i < changes; i++)
        retain_at(&flap, i * (topics / changes), i % 3 == 0 ? "" : "changed");
    world_run(flap.world, OUTAGE_MS);
    return flap;
}

static void try_sizes(unsigned topics, unsigned changes, long at_least) {
    long nth = 0;
    for (bool failed = true; failed; nth++) {
        struct flap flap = flap_apart(topics, changes);
        struct world *world = flap.world;
        world->apart[A][B] = world->apart[B][A] = false;
        shortage_after(nth);
        world_run(world, 12000);
        shortage_over();
        failed = shortage.failed;
        /* A wire that found no memory has lost a frame: another link makes up for it. */
        lose_link(world);
        world_run(world, OUTAGE_MS);
        heal_link(world);
        world_run(world, 20000);
        expect_agreement(world);
        assert_int_equal(broker_federation(world->sites[A].broker)->digest_items, 0);
        assert_int_equal(broker_federation(world->sites[B].broker)->digest_items, 0);
        world_free(world);
        free(world);
    }
    assert_true(nth > at_least);
}

static void any_allocation_may_fail_when_all_is_told_at_once(void **state) {
    (void)state;
    try_sizes(20, 5, 40);
}

static void any_allocation_may_fail_when_items_are_offered(void **state) {
    (void)state;
    try_sizes(100, 10, 60);
}

static void any_allocation_may_fail_when_parts_are_asked_for(void **state) {
    (void)state;
    try_sizes(2600, 20, 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail_when_all_is_told_at_once),
        cmocka_unit_test(any_allocation_may_fail_when_items_are_offered),
        cmocka_unit_test(any_allocation_may_fail_when_parts_are_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
