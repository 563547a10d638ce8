/* Shared subscriptions, at one broker and beside others. */
#include "tests/sim/scenario.h"

#define SETTLE_MS 5000u

static bool three_brokers(struct run *run, struct world *world) {
    world_add_nodes(world, 3);
    world_start_all(world);
    return run_settle(run, world, SETTLE_MS);
}

static void add_members(struct world *world, size_t node, unsigned count, const char *filter) {
    for (unsigned i = 0; i < count; i++) {
        char id[64];
        snprintf(id, sizeof id, "member-%zu-%u", node + 1, i);
        sim_client_subscribe(world_add_plain_client(world, id, node), filter, 2);
    }
}

static void publish(struct sim_client *publisher, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        sim_client_publish(publisher, "work/item", (uint8_t)(i % 3), false, 64);
}

static bool verify(struct run *run, struct world *world, enum checks_repeats repeats) {
    char why[CHECKS_WHY] = "";
    CHECK(checks_groups(world, 0, repeats, why), "%s", why);
    return true;
}

static bool one_of_all_members_gets_each_message(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *here = world_add_plain_client(world, "here", 1),
                      *there = world_add_plain_client(world, "there", 0);
    add_members(world, 1, 3, "$share/workers/work/#");
    add_members(world, 2, 2, "$share/workers/work/#");
    sim_client_subscribe(world_add_plain_client(world, "watcher", 2), "work/+", 1);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    publish(here, 1);
    publish(there, 1);
    world_run_ms(world, 1000);
    uint64_t received = checks_links(world, 2).publications_received;
    publish(here, 30);
    publish(there, 30);
    world_run_ms(world, 5000);
    /* What both a member and another client want there crosses once. */
    received = checks_links(world, 2).publications_received - received;
    CHECK(received == 60, "edge-3 received %llu publications instead of 60", (unsigned long long)received);
    for (size_t i = 2; i < 7; i++) {
        size_t copies = 0;
        for (size_t number = 0; number < 62; number++)
            copies += journal_copies(&world->journal, i, number, false);
        CHECK(copies >= 8 && copies <= 20, "%s got %zu of 60", sim_client_id(world->clients[i]), copies);
    }
    return verify(run, world, CHECKS_ONCE) && run_verify(run, world, 0, CHECKS_ONCE);
}

/* Members vanish in the midst of it, without a word or with one; the last stays. What they had not acknowledged goes
 * on: QoS 1 is lost never, QoS 2 comes never twice. */
static bool group_goes_on_when_members_go(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0);
    add_members(world, 1, 4, "$share/workers/work/#");
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (size_t leaver = 1; leaver <= 3; leaver++) {
        for (unsigned i = 0; i < 50; i++)
            sim_client_publish(publisher, "work/item", 1, false, 64);
        world_run_ms(world, run->variant);
        if (leaver % 2 == 0)
            sim_client_disconnect(world->clients[leaver]);
        else
            sim_client_drop(world->clients[leaver]);
    }
    world_run_ms(world, 5000);
    char why[CHECKS_WHY] = "";
    CHECK(checks_never(world, why) && checks_acknowledged(world, why), "%s", why);
    return verify(run, world, CHECKS_QOS1_MAY_REPEAT);
}

/* The interest of the group ends with its last member, as that of any other subscriber. */
static bool last_member_ends_the_traffic(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0);
    add_members(world, 1, 2, "$share/workers/work/#");
    if (!run_settle(run, world, SETTLE_MS)) return false;
    publish(publisher, 3);
    world_run_ms(world, 1000);
    sim_client_unsubscribe(world->clients[1], "$share/workers/work/#");
    world_run_ms(world, 10000);
    publish(publisher, 3);
    world_run_ms(world, 1000);
    sim_client_unsubscribe(world->clients[2], "$share/workers/work/#");
    world_run_ms(world, 10000); /* past the linger of 5 s */
    publish(publisher, 3);
    world_run_ms(world, 7000); /* past the replay window */
    uint64_t received = checks_links(world, 1).publications_received;
    CHECK(received == 6, "edge-2 received %llu publications instead of the 6 it wanted", (unsigned long long)received);
    return verify(run, world, CHECKS_ONCE) && run_verify(run, world, 0, CHECKS_ONCE);
}

const struct scenario scenarios_share[] = {
    {"one_of_all_members_gets_each_message", one_of_all_members_gets_each_message, 1, NULL},
    {"group_goes_on_when_members_go", group_goes_on_when_members_go, 5, NULL},
    {"last_member_ends_the_traffic", last_member_ends_the_traffic, 1, NULL},
    {0},
};
