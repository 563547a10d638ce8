/* A whole scenario between two brokers, once for each allocation that fails: nothing crashes, nothing leaks, and once
 * memory is there again the brokers find each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oom.h"
#include "peers.h"
#include "policies.h"

static void set_policies(struct world *world, const struct policy *policy) {
    for (int i = 0; i < 2; i++)
        broker_set_policy(world->sites[i].broker, world->now_ms, policy);
}

/* Join, invite, snapshot, publications of each QoS, a cut, another policy for a while, a leave, a SUBACK that times
 * out, all small. */
static void scenario(struct world *world, const struct policy *policy) {
    struct client *says = client_connect(world, 0), *hears = says ? client_connect(world, 1) : NULL;
    if (!hears) return;
    client_publish(world, says, "r/1", "kept", 1, true);
    client_subscribe(world, hears, "r/+", 1);
    client_subscribe(world, hears, "t/#", 2);
    client_subscribe(world, hears, "$share/g/t/+", 1);
    client_subscribe(world, says, "$share/g/t/+", 1);
    world_run(world, 400);
    for (int qos = 0; qos < 3; qos++)
        client_publish(world, says, "t/1", "m", qos, false);
    world_run(world, 100);
    world_cut(world, 0, 1);
    client_publish(world, says, "t/1", "n", 1, false);
    world_run(world, 600);
    set_policies(world, policy);
    client_publish(world, says, "t/2", "o", 1, false);
    world_run(world, 600);
    set_policies(world, NULL);
    world_run(world, 600);
    client_unsubscribe(world, hears, "r/+");
    client_unsubscribe(world, hears, "$share/g/t/+");
    world->hold_frames = true;
    client_subscribe(world, hears, "+/1", 1);
    world_run(world, 300);
    world->hold_frames = false;
    world_run(world, 6000);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    long nth = 0;
    struct policy *policy = POLICY({"", POLICY_EXPORT, "t/#"}, {"", POLICY_IMPORT, "t/1"});
    for (bool failed = true; failed; nth++) {
        struct world *world = __real_calloc(1, sizeof *world);
        world_init(world, 2);
        shortage_after(nth);
        bool up = world_start(world);
        if (up) scenario(world, policy);
        shortage_over();
        failed = shortage.failed;
        if (up) {
            set_policies(world, NULL);
            /* What the peers heard before may be lost to them; a registry says it again. */
            world_run(world, 12000);
            world_meet(world);
            struct client *says = client_connect(world, 0), *hears = client_connect(world, 1);
            client_subscribe(world, hears, "after", 1);
            world_run(world, 1000);
            client_publish(world, says, "after", "all is well", 1, false);
            world_run(world, 12000);
            if (client_got(hears, "all is well") != 1) fail_msg("no recovery after allocation %ld failed", nth);
        }
        world_free(world);
        free(world);
    }
    policy_free(policy);
    assert_true(nth > 200); /* the scenario did allocate */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
