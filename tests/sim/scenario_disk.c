/* Brokers that die and find on their disk what they had acknowledged: G5 for one broker. */
#include "tests/sim/scenario.h"

#include <string.h>

#define SETTLE_MS 8000u
#define RETAINED_TOPICS 10u

/* One broker, a publisher and a subscriber whose sessions are kept; the subscriber is granted disk/# at QoS 2. */
static bool one_broker(struct run *run, struct world *world, uint8_t version) {
    world_add_nodes(world, 1);
    world_start(world, 0);
    world_add_client(
        world,
        &(struct sim_client_options){
            .id = "publisher", .version = version, .persistent = true, .keep_alive_s = 1, .reconnects = true},
        0);
    sim_client_subscribe(
        world_add_client(
            world,
            &(struct sim_client_options){
                .id = "subscriber", .version = version, .persistent = true, .keep_alive_s = 1, .reconnects = true},
            0),
        "disk/#", 2);
    return run_settle(run, world, SETTLE_MS);
}

static void publish_some(struct world *world, unsigned count, uint64_t pause_ms) {
    for (unsigned i = 0; i < count; i++) {
        sim_client_publish(world->clients[0], "disk/a", (uint8_t)(i % 3), false, 16 + i % 300);
        world_run_ms(world, dice_below(&world->dice, pause_ms));
    }
}

static enum network_power power(const struct run *run) {
    return run->variant & 1 ? NETWORK_DARK : NETWORK_DOWN;
}

/* Variants: MQTT 3.1.1 or 5.0, killed or without power. */
static bool absent_session_survives_a_crash(struct run *run, struct world *world) {
    if (!one_broker(run, world, run->variant & 2 ? 4 : 5)) return false;
    sim_client_drop(world->clients[1]);
    world_run_ms(world, 100);
    publish_some(world, 60, 10);
    world_run_ms(world, 200);
    CHECK(disk_count(world->nodes[0]->disk, RECORD_QUEUED) == 40, "%zu are queued on the disk, not 40",
          disk_count(world->nodes[0]->disk, RECORD_QUEUED));
    world_crash(world, 0, power(run));
    world_run_ms(world, 1000);
    world_start(world, 0);
    sim_client_connect(world->clients[1], world->nodes[0]->host);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_run_ms(world, 1000);
    CHECK(sim_client_sessions(world->clients[1]) == 1, "the session was lost");
    CHECK(disk_count(world->nodes[0]->disk, RECORD_QUEUED) == 0 &&
              disk_count(world->nodes[0]->disk, RECORD_MESSAGE) == 0,
          "the disk still holds what was delivered");
    return run_verify(run, world, heap_now_us(world->heap), CHECKS_ONCE);
}

static bool crashes_under_load_lose_nothing_acknowledged(struct run *run, struct world *world) {
    if (!one_broker(run, world, run->variant & 2 ? 4 : 5)) return false;
    for (unsigned crash = 0; crash < 12; crash++) {
        publish_some(world, 5 + (unsigned)dice_below(&world->dice, 25), 6);
        world_crash(world, 0, power(run));
        world_run_ms(world, dice_below(&world->dice, 700));
        world_start(world, 0);
        world_run_ms(world, dice_below(&world->dice, 2500));
    }
    if (!run_settle(run, world, 2 * SETTLE_MS)) return false;
    world_run_ms(world, 3000);
    const struct journal *journal = &world->journal;
    for (size_t i = 0; i < journal->publication_count; i++) {
        const size_t copies = journal_copies(journal, 1, i, false);
        if (journal->publications[i].qos == 2) CHECK(copies == 1, "publication %zu of QoS 2 came %zu times", i, copies);
        if (journal->publications[i].qos == 1) CHECK(copies >= 1, "publication %zu of QoS 1 never came", i);
    }
    CHECK(disk_count(world->nodes[0]->disk, RECORD_MESSAGE) == 0, "messages stay on the disk");
    CHECK(disk_count(world->nodes[0]->disk, RECORD_RECEIVED) == 0, "packet ids stay on the disk");
    return run_verify(run, world, heap_now_us(world->heap), CHECKS_ONCE);
}

/* The last one of each topic that was acknowledged, SIZE_MAX if none. */
static size_t last_retained(const struct world *world, const char *topic) {
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < world->journal.publication_count; i++)
        if (strcmp(world->journal.publications[i].topic, topic) == 0) found = i;
    return found;
}

static bool retained_messages_survive_a_crash(struct run *run, struct world *world) {
    static char topics[RETAINED_TOPICS][16];
    world_add_nodes(world, 1);
    world_start(world, 0);
    world_add_plain_client(world, "publisher", 0);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (unsigned i = 0; i < 3 * RETAINED_TOPICS; i++) {
        char *topic = topics[i % RETAINED_TOPICS];
        snprintf(topic, sizeof topics[0], "sign/%u", i % RETAINED_TOPICS);
        sim_client_publish(world->clients[0], topic, 1, true, 20);
        world_run_ms(world, dice_below(&world->dice, 10));
    }
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_crash(world, 0, power(run));
    world_start(world, 0);
    sim_client_subscribe(world_add_plain_client(world, "late", 0), "sign/#", 1);
    world_run_ms(world, 3000);
    for (unsigned i = 0; i < RETAINED_TOPICS; i++)
        CHECK(journal_copies(&world->journal, 1, last_retained(world, topics[i]), true) == 1,
              "the retained message of %s is gone", topics[i]);
    CHECK(world->journal.receipt_count == RETAINED_TOPICS, "%zu retained messages came", world->journal.receipt_count);
    return true;
}

static bool ended_subscription_does_not_come_back(struct run *run, struct world *world) {
    if (!one_broker(run, world, 5)) return false;
    sim_client_subscribe(world->clients[1], "other/+", 1);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    sim_client_unsubscribe(world->clients[1], "disk/#");
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_crash(world, 0, power(run));
    world_start(world, 0);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_run_ms(world, 12000); /* no longer a doubtful case for the checks */
    if (!run_settle(run, world, SETTLE_MS)) return false;
    const uint64_t from_us = heap_now_us(world->heap);
    sim_client_publish(world->clients[0], "disk/a", 1, false, 20);
    sim_client_publish(world->clients[0], "other/a", 1, false, 20);
    world_run_ms(world, 2000);
    return run_verify(run, world, from_us, CHECKS_ONCE);
}

static bool session_that_ended_leaves_nothing_on_the_disk(struct run *run, struct world *world) {
    if (!one_broker(run, world, 5)) return false;
    sim_client_drop(world->clients[1]);
    publish_some(world, 30, 5);
    if (!run_settle(run, world, 1)) run->failure[0] = '\0'; /* the subscriber is away */
    world_run_ms(world, 500);
    CHECK(disk_count(world->nodes[0]->disk, RECORD_MESSAGE) > 0, "nothing is queued");
    sim_client_drop(world->clients[0]);
    world_run_ms(world, 8u * 24 * 3600 * 1000);
    for (enum record_type type = RECORD_SESSION; type < RECORD_RETAINED; type++)
        CHECK(disk_count(world->nodes[0]->disk, type) == 0, "%zu records of type %d are left",
              disk_count(world->nodes[0]->disk, type), type);
    return true;
}

static void slow_disk(struct world_options *options) {
    options->commit_us_max = 200000;
}

const struct scenario scenarios_disk[] = {
    {"absent_session_survives_a_crash", absent_session_survives_a_crash, 4, NULL},
    {"crashes_under_load_lose_nothing_acknowledged", crashes_under_load_lose_nothing_acknowledged, 4, NULL},
    {"crashes_on_a_slow_disk_lose_nothing_acknowledged", crashes_under_load_lose_nothing_acknowledged, 4, slow_disk},
    {"retained_messages_survive_a_crash", retained_messages_survive_a_crash, 2, NULL},
    {"ended_subscription_does_not_come_back", ended_subscription_does_not_come_back, 2, NULL},
    {"session_that_ended_leaves_nothing_on_the_disk", session_that_ended_leaves_nothing_on_the_disk, 1, NULL},
    {0},
};
