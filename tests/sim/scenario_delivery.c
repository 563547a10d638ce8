/* Publications that reach their subscribers: G1, G2, G3, G4. */
#include "tests/sim/scenario.h"

#include <string.h>

#define SETTLE_MS 5000u

static bool three_brokers(struct run *run, struct world *world) {
    world_add_nodes(world, 3);
    world_start_all(world);
    return run_settle(run, world, SETTLE_MS);
}

/* All three start within a second, each with a # subscriber that connects at once. */
static bool one_copy_each_on_every_start_order(struct run *run, struct world *world) {
    static const char *const ids[] = {"all-1", "all-2", "all-3"};
    const size_t *order = run_order(run->variant);
    world_add_nodes(world, 3);
    for (size_t i = 0; i < 3; i++) {
        world_start(world, order[i]);
        struct sim_client *client = world_add_plain_client(world, ids[order[i]], order[i]);
        sim_client_subscribe(client, "#", (uint8_t)order[i]);
        world_run_ms(world, 300);
    }
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (size_t i = 0; i < 3; i++)
        sim_client_publish(world->clients[i], "site/temperature", (uint8_t)i, false, 64);
    world_run_ms(world, 2000);
    for (size_t i = 0; i < 3; i++) {
        uint64_t received = checks_links(world, i).publications_received;
        CHECK(received == 2, "edge-%zu received %llu publications over its links instead of 2", i + 1,
              (unsigned long long)received);
    }
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool overlapping_filters_are_one_copy(struct run *run, struct world *world) {
    static const char *const filters[] = {"#", "a/+", "a/b", "+/b", "a/#"};
    if (!three_brokers(run, world)) return false;
    for (size_t node = 1; node < 3; node++) {
        for (unsigned i = 0; i < 2; i++) {
            char id[64];
            snprintf(id, sizeof id, "overlap-%zu-%u", node + 1, i);
            struct sim_client *client = world_add_plain_client(world, id, node);
            /* one copy for overlapping filters is ours to give (MQTT 5.0 section 3.3.4 allows both) */
            for (size_t filter = i; filter < 5; filter += 2)
                sim_client_subscribe(client, filters[filter], (uint8_t)(filter % 3));
        }
    }
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (uint8_t qos = 0; qos <= 2; qos++)
        sim_client_publish(publisher, "a/b", qos, false, 32);
    world_run_ms(world, 3000);
    for (size_t i = 1; i < 3; i++) {
        uint64_t received = checks_links(world, i).publications_received;
        CHECK(received == 3, "edge-%zu received %llu publications over its link instead of 3", i + 1,
              (unsigned long long)received);
    }
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool granted(struct world *world, void *context) {
    return world->journal.subscriptions[*(size_t *)context].granted_us != JOURNAL_NEVER;
}

/* Brokers are far from each other and clients near: who does not wait for the others answers too early. Variants: the
 * publisher's topic is new, is known, or is covered by a wildcard. */
static bool message_right_after_suback_arrives(struct run *run, struct world *world) {
    static const char *const filters[] = {"lamp/1", "lamp/1", "lamp/+", "#"};
    if (!three_brokers(run, world)) return false;
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < a; b++)
            network_lengthen(world->network, world->nodes[a]->host, world->nodes[b]->host, 40000);
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0),
                      *subscriber = world_add_plain_client(world, "subscriber", 2);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    if (run->variant != 0) sim_client_publish(publisher, "lamp/1", 0, false, 16);
    world_run_ms(world, 1500);
    size_t entry = sim_client_subscribe(subscriber, filters[run->variant], 0);
    while (!granted(world, &entry)) { /* event by event: not a microsecond later */
        CHECK(heap_step(world->heap, heap_now_us(world->heap) + 1000 * HEAP_MS), "no SUBACK");
    }
    uint64_t waited_us = world->journal.subscriptions[entry].granted_us - world->journal.subscriptions[entry].asked_us;
    CHECK(waited_us < 350 * HEAP_MS, "SUBACK took %llu us", (unsigned long long)waited_us);
    sim_client_publish(publisher, "lamp/1", 0, false, 16);
    sim_client_publish(publisher, "lamp/1", 1, false, 16);
    world_run_ms(world, 3000);
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool first_message_arrives(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0);
    sim_client_subscribe(world_add_plain_client(world, "exact", 1), "fire/alarm", 0);
    sim_client_subscribe(world_add_plain_client(world, "wild", 2), "fire/#", 0);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_run_ms(world, 10000); /* long after: nothing is under way */
    for (unsigned i = 0; i < 3; i++)
        sim_client_publish(publisher, "fire/alarm", 0, false, 16);
    world_run_ms(world, 3000);
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool broker_without_interest_gets_nothing(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0);
    sim_client_subscribe(world_add_plain_client(world, "hot", 1), "temperature/+", 1);
    sim_client_subscribe(world_add_plain_client(world, "cold", 2), "humidity/+", 1);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (unsigned i = 0; i < 10; i++)
        sim_client_publish(publisher, "temperature/1", (uint8_t)(i % 3), false, 100);
    world_run_ms(world, 5000);
    uint64_t got = checks_links(world, 2).publications_received, due = checks_links(world, 1).publications_received;
    CHECK(got == 0, "edge-3 received %llu publications without interest", (unsigned long long)got);
    CHECK(due == 10, "edge-2 received %llu publications instead of 10", (unsigned long long)due);
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool every_qos_and_size_crosses(struct run *run, struct world *world) {
    static const size_t sizes[] = {8, 100, 1024, 16384, 100000, 1048576};
    network_set_weather(
        world->network,
        &(struct network_weather){.delay_us = 2000, .jitter_us = 1000, .piece_bytes = 40000, .bytes_per_ms = 100000});
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_client(world, &(struct sim_client_options){.id = "old", .version = 4}, 0);
    for (uint8_t qos = 0; qos <= 2; qos++) {
        char id[64];
        snprintf(id, sizeof id, "qos-%u", qos);
        sim_client_subscribe(
            world_add_client(world, &(struct sim_client_options){.id = id, .version = qos == 1 ? 4 : 5}, qos), "size/+",
            qos);
    }
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
        for (uint8_t qos = 0; qos <= 2; qos++)
            sim_client_publish(publisher, "size/x", qos, false, sizes[size]);
    world_run_ms(world, 10000);
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool many_publishers_keep_their_order(struct run *run, struct world *world) {
    network_set_weather(
        world->network,
        &(struct network_weather){.delay_us = 5000, .jitter_us = 20000, .loss_ppm = 10000, .piece_bytes = 200});
    if (!three_brokers(run, world)) return false;
    for (size_t node = 0; node < 3; node++) {
        char id[64];
        snprintf(id, sizeof id, "mixed-%zu", node + 1);
        sim_client_subscribe(world_add_plain_client(world, id, node), "order/#", 2);
    }
    if (!run_settle(run, world, SETTLE_MS)) return false;
    for (unsigned i = 0; i < 120; i++) {
        struct sim_client *publisher = world->clients[i % 3];
        sim_client_publish(publisher, i % 5 == 0 ? "order/b" : "order/a", (uint8_t)(i / 3 % 3), false, 20 + i);
        world_run_ms(world, dice_below(&world->dice, 20));
    }
    world_run_ms(world, 15000);
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool retained_message_reaches_a_later_subscriber_elsewhere(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0),
                      *late = world_add_plain_client(world, "late", 2);
    sim_client_publish(publisher, "sign/text", 1, true, 20);
    size_t last = sim_client_publish(publisher, "sign/text", 1, true, 30);
    world_run_ms(world, 2000);
    sim_client_subscribe(late, "sign/+", 1);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_run_ms(world, 1000);
    size_t copies = journal_copies(&world->journal, sim_client_number(late), last, true);
    CHECK(copies == 1 && journal_copies(&world->journal, sim_client_number(late), last - 1, true) == 0,
          "the latest retained message came %zu times", copies);
    return run_verify(run, world, 0, CHECKS_ONCE);
}

static bool absent_client_finds_what_was_published_elsewhere(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0);
    for (uint8_t version = 4; version <= 5; version++) {
        char id[64];
        snprintf(id, sizeof id, "absent-%u", version);
        sim_client_subscribe(
            world_add_client(world, &(struct sim_client_options){.id = id, .version = version, .persistent = true}, 2),
            "post/+", 2);
    }
    if (!run_settle(run, world, SETTLE_MS)) return false;
    sim_client_disconnect(world->clients[1]);
    sim_client_drop(world->clients[2]);
    for (unsigned i = 0; i < 50; i++) {
        sim_client_publish(publisher, "post/letter", (uint8_t)(1 + i % 2), false, 100);
        world_run_ms(world, 100);
    }
    for (size_t i = 1; i <= 2; i++)
        sim_client_connect(world->clients[i], world->nodes[2]->host);
    world_run_ms(world, 3000);
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, 0, CHECKS_ONCE);
}

/* Two writers of one topic on two sides of a partition: afterwards all show the same one. */
static bool retained_messages_agree_after_a_partition(struct run *run, struct world *world) {
    static const bool sides[3] = {false, true, true};
    world_add_nodes(world, 3);
    for (size_t i = 0; i < 3; i++) {
        char id[64];
        snprintf(id, sizeof id, "writer-%zu", i + 1);
        world_start(world, i);
        sim_client_subscribe(world_add_plain_client(world, id, i), "sign/#", 1);
    }
    if (!run_settle(run, world, SETTLE_MS)) return false;
    world_partition(world, sides);
    world_run_ms(world, 10000);
    sim_client_publish(world->clients[0], "sign/a", 1, true, 16);
    world_run_ms(world, 1000);
    size_t last = sim_client_publish(world->clients[1], "sign/a", 1, true, 16);
    world_run_ms(world, 10000);
    network_heal(world->network);
    world_run_ms(world, 16000);
    for (size_t i = 0; i < 3; i++) {
        char id[64];
        snprintf(id, sizeof id, "reader-%zu", i + 1);
        sim_client_subscribe(world_add_plain_client(world, id, i), "sign/a", 1);
    }
    world_run_ms(world, 2000);
    for (size_t i = 3; i < 6; i++) {
        CHECK(journal_copies(&world->journal, i, last, true) == 1 &&
                  journal_copies(&world->journal, i, last - 1, true) == 0,
              "%s was not given the later message alone", sim_client_id(world->clients[i]));
    }
    return true;
}

static bool last_unsubscribe_ends_the_traffic(struct run *run, struct world *world) {
    if (!three_brokers(run, world)) return false;
    struct sim_client *publisher = world_add_plain_client(world, "publisher", 0);
    struct sim_client *first = world_add_plain_client(world, "first", 1),
                      *second = world_add_plain_client(world, "second", 1);
    sim_client_subscribe(first, "news", 1);
    sim_client_subscribe(second, "news", 1);
    if (!run_settle(run, world, SETTLE_MS)) return false;
    sim_client_publish(publisher, "news", 1, false, 16);
    world_run_ms(world, 1000);
    sim_client_unsubscribe(first, "news");
    world_run_ms(world, 10000);
    sim_client_publish(publisher, "news", 1, false, 16);
    world_run_ms(world, 1000);
    sim_client_unsubscribe(second, "news");
    world_run_ms(world, 10000); /* past the linger of 5 s */
    sim_client_publish(publisher, "news", 1, false, 16);
    world_run_ms(world, 7000); /* past the replay window */
    uint64_t received = checks_links(world, 1).publications_received;
    CHECK(received == 2, "edge-2 received %llu publications instead of the 2 it wanted", (unsigned long long)received);
    return run_settle(run, world, SETTLE_MS) && run_verify(run, world, 0, CHECKS_ONCE);
}

const struct scenario scenarios_delivery[] = {
    {"three_brokers_one_copy_each_on_every_start_order", one_copy_each_on_every_start_order, 6, NULL},
    {"overlapping_filters_are_one_copy", overlapping_filters_are_one_copy, 1, NULL},
    {"message_right_after_suback_arrives", message_right_after_suback_arrives, 4, NULL},
    {"first_message_arrives", first_message_arrives, 1, NULL},
    {"broker_without_interest_gets_nothing", broker_without_interest_gets_nothing, 1, NULL},
    {"every_qos_and_size_crosses", every_qos_and_size_crosses, 1, NULL},
    {"many_publishers_keep_their_order", many_publishers_keep_their_order, 1, NULL},
    {"retained_message_reaches_a_later_subscriber_elsewhere", retained_message_reaches_a_later_subscriber_elsewhere, 1,
     NULL},
    {"absent_client_finds_what_was_published_elsewhere", absent_client_finds_what_was_published_elsewhere, 1, NULL},
    {"retained_messages_agree_after_a_partition", retained_messages_agree_after_a_partition, 1, NULL},
    {"last_unsubscribe_ends_the_traffic", last_unsubscribe_ends_the_traffic, 1, NULL},
    {0},
};
