/* Clients that say anything at any time, to a broker whose disk is slow and sometimes fails: whatever they do, one that
 * behaves gets what is its own, once and in order. */
#include "mqtt_client.h"

enum { CLIENTS = 6, STEPS = 4000 };

static struct world world;
static struct client clients[CLIENTS];
static uint64_t dice_state;

static unsigned dice(unsigned sides) {
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice_state >> 33) % sides;
}

static const char *pick(const char *const *texts, unsigned count) {
    return texts[dice(count)];
}
#define PICK(texts) pick(texts, sizeof(texts) / sizeof(texts)[0])

static const char *const topics[] = {"a", "a/b", "b", "c/d/e", "$x/y"};
static const char *const filters[] = {"a",           "#",           "+/b", "$share/g/a", "$share/g/#", "$share/h/+/b",
                                      "$share/g/+",  "c/d/e",       "a/#", "+",          "$x/#",       "$SYS/#",
                                      "$share/g/b/", "$share/h/a/#"};
static const char *const connect_properties[] = {NULL,
                                                 "11 ff ff ff ff",
                                                 "11 00 00 00 05",
                                                 "11 ff ff ff ff 21 00 01",
                                                 "21 00 02",
                                                 "27 00 00 00 10",
                                                 "11 00 00 00 05 27 00 00 00 18",
                                                 "17 00"};
static const char *const publish_properties[] = {NULL,
                                                 "02 00 00 00 01",
                                                 "23 00 01",
                                                 "23 00 02",
                                                 "01 01 26 00 01 61 00 01 62",
                                                 "08 00 01 61 09 00 01 78",
                                                 "02 00 00 00 00"};
static const char *const bytes[] = {
    "c0 00", "e0 00", "e0 01 04", "f0 00", "00 00", "e0 07 00 05 11 00 00 00 00", "32 05 00 01", "e0 01 00"};

static void write_some(struct client *client) {
    struct broker_span spans[3];
    broker_handle named;
    size_t count, size = 0;

    while (broker_next_client(world.broker, &named)) {
    }
    count = broker_client_output(world.broker, client->handle, spans, 3);
    for (size_t i = 0; i < count; i++)
        size += spans[i].size;
    if (size > 0)
        broker_client_written(world.broker, world.now, client->handle, dice(2) ? size : 1 + dice((unsigned)size));
}

static void connect_anew(struct client *client) {
    static const char *const ids[] = {"p", "q", "r", "s"};

    if (client->handle) client_cut(client);
    client_open(&world, client, dice(3) ? 5 : 4);
    say_connect(client, &(struct connect){.id = PICK(ids),
                                          .resume = dice(4) > 0,
                                          .properties = PICK(connect_properties),
                                          .will_topic = dice(2) ? PICK(topics) : NULL,
                                          .will_payload = "will",
                                          .will_properties = dice(2) ? "18 00 00 00 02" : NULL,
                                          .will_qos = dice(3),
                                          .will_retain = dice(2)});
}

static void say_several(struct client *client) {
    static char large[1500]; /* so much is not copied into the output */
    struct packet all = {.size = 0};

    memset(large, 'l', sizeof large - 1);
    for (unsigned i = 1 + dice(4); i > 0; i--) {
        struct packet one =
            publish_packet(client->version, &(struct publish){.topic = PICK(topics),
                                                              .payload = (const char *[]){"", "x", "x", large}[dice(4)],
                                                              .qos = dice(3),
                                                              .id = 1 + dice(5),
                                                              .retain = dice(4) == 0,
                                                              .properties = PICK(publish_properties)});
        put(&all, one.bytes, one.size);
        if (dice(2))
            put(&all, (uint8_t[]){(uint8_t[]){0x40, 0x50, 0x62, 0x70}[dice(4)], 2, 0, (uint8_t)(1 + dice(5))}, 4);
    }
    say(client, &all);
}

static void act(struct client *client) {
    switch (dice(12)) {
    case 0: connect_anew(client); break;
    case 1: say_subscribe(client, 1 + dice(9), PICK(filters), dice(3)); break;
    case 2: say_unsubscribe(client, 1 + dice(9), PICK(filters)); break;
    case 3: say_hex(client, PICK(bytes)); break;
    case 4:
    case 5: say_several(client); break;
    case 6:
        for (unsigned i = 1; i <= 4; i++)
            say_ack(client, 4 + dice(4), i);
        break;
    case 7: say_ack(client, 4 + dice(4), 1 + dice(12)); break;
    default: write_some(client);
    }
}

/* The disk takes some of what was made, or all, or says that it fails. */
static void disk(bool all) {
    static uint64_t taken[8];
    static unsigned count;
    struct broker_journal journal;

    while ((all || dice(2)) && broker_take_journal(world.broker, &journal)) {
        free(journal.bytes);
        if (count < 8) taken[count++] = journal.last;
        taken[count - 1] = journal.last;
    }
    if (count > 0 && (all || dice(2))) {
        broker_durable(world.broker, world.now, taken[all ? count - 1 : 0]);
        memmove(taken, taken + 1, sizeof taken - sizeof taken[0]);
        count = all ? 0 : count - 1;
    }
}

static void behaves(struct client *good, unsigned turn) {
    char payload[16], expected[64];

    snprintf(payload, sizeof payload, "%u", turn);
    say_publish(good, &(struct publish){.topic = "own/t", .payload = payload, .qos = 1, .id = 1});
    snprintf(expected, sizeof expected, "publish q1 id=%u own/t '%u'", turn, turn);
    expect(good, expected);
    disk(true);
    expect(good, "puback 1");
    say_ack(good, 4, turn);
}

static void run(uint64_t seed) {
    struct client good;

    dice_state = seed;
    world = (struct world){.options.durable = true,
                           .options.limits = {.output_bytes_max = 2000,
                                              .inflight_max = 4,
                                              .queue_messages_max = 6,
                                              .journal_bytes_max = 20000,
                                              .sys_interval_s = 3}};
    world_begin(&world);
    broker_set_wall_offset(world.broker, 1700000000000);
    client_connect(&world, &good, 5, "good");
    client_subscribe(&good, "own/#", 1);
    for (unsigned i = 0; i < CLIENTS; i++)
        connect_anew(&clients[i]);
    for (unsigned step = 0, turn = 1; step < STEPS; step++) {
        struct client *client = &clients[dice(CLIENTS)];
        if (client->handle == 0 || broker_client_ended(world.broker, client->handle)) connect_anew(client);
        act(client);
        if (dice(3) == 0) disk(false);
        if (dice(50) == 0) broker_set_store_failing(world.broker, world.now, dice(2));
        if (dice(100) == 0) broker_set_memory_short(world.broker, world.now, dice(2));
        if (dice(20) == 0) pass(&world, 1 + dice(1500));
        if (dice(100) > 0) continue;
        broker_set_store_failing(world.broker, world.now, false);
        broker_set_memory_short(world.broker, world.now, false);
        disk(true);
        behaves(&good, turn++);
    }
    disk(true);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (clients[i].handle) client_cut(&clients[i]);
    client_cut(&good);
    world_end(&world);
}

static void whatever_clients_say_others_are_served(void **state) {
    const char *seeds = getenv("HOBNOB_SEEDS");
    uint64_t first = getenv("HOBNOB_SEED") != NULL ? strtoull(getenv("HOBNOB_SEED"), NULL, 10) : 1;
    (void)state;

    for (uint64_t seed = first; seed < first + (seeds != NULL ? strtoull(seeds, NULL, 10) : 20); seed++) {
        if (seeds != NULL) fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        run(seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_clients_say_others_are_served)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
