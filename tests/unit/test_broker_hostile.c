/* What no client does unless it means harm, or is broken: it hurts itself, and nobody else. */
#include "mqtt_client.h"

#include "broker/federation.h"

#define FOR_EVER "11 ff ff ff ff"

static struct world world;

static int begin(void **state) {
    (void)state;
    world_begin(&world);
    return 0;
}

static int end(void **state) {
    (void)state;
    world_end(&world);
    return 0;
}

/* Begins anew with the limits in world.options. */
static void again(void) {
    struct broker_options options = world.options;

    world_end(&world);
    world.options = options;
    world_begin(&world);
    broker_set_wall_offset(world.broker, 1700000000000);
}

/* The records made so far reach the disk. */
static void disk(void) {
    struct broker_journal journal;

    while (broker_take_journal(world.broker, &journal)) {
        free(journal.bytes);
        broker_durable(world.broker, world.now, journal.last);
    }
}

/* ---- acknowledgements of what was never sent ---- */

static void packet_id_that_waits_for_the_store_cannot_be_acknowledged(void **state) {
    (void)state;
    world.options.durable = true;
    for (unsigned type = 4; type <= 7; type++) {
        struct client client, other;
        if (type == 6) continue;
        again();
        client_open(&world, &client, 5);
        say_connect(&client, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
        disk();
        expect(&client, "connack present=0 00*");
        client_connect(&world, &other, 5, "other");
        say_subscribe(&client, 9, "$share/g/t", 2);
        disk();
        expect(&client, "suback 9 02");
        client_subscribe(&other, "$share/g/t", 2);
        say_publish(&other, &(struct publish){.topic = "t", .payload = "1", .qos = 2, .id = 1});
        say_ack(&client, type, 1);
        expect_nothing(&client); /* PUBREL waits, too */
        disk();
        if (type == 5) expect(&client, "pubrel 1 92");
        expect(&client, "publish q2 id=1 t '1'");
        client_cut(&client);
        client_cut(&other);
    }
}

/* Writes what there is now, and not what that makes room for. */
static void write_once(const struct client *client) {
    struct broker_span spans[8];
    size_t count = broker_client_output(world.broker, client->handle, spans, 8), size = 0;

    for (size_t i = 0; i < count; i++)
        size += spans[i].size;
    broker_client_written(world.broker, world.now, client->handle, size);
}

static void packet_id_that_waits_for_output_cannot_be_acknowledged(void **state) {
    (void)state;
    world.options.limits.output_bytes_max = 6;
    again();
    for (unsigned qos = 1; qos <= 2; qos++) {
        struct client client, other;
        client_connect(&world, &client, 5, "c");
        client_connect(&world, &other, 5, "other");
        client_subscribe(&client, "t", qos);
        client.unread = true;
        say_publish(&other, &(struct publish){.topic = "t", .payload = "0"}); /* fills it */
        for (unsigned id = 1; id <= 3; id++) {
            say_publish(&other, &(struct publish){.topic = "t", .payload = "x", .qos = qos, .id = id});
            client_read(&other);
        }
        write_once(&client); /* all have their packet ids, and the first goes */
        say_ack(&client, qos == 1 ? 4 : 5, 3);
        client.unread = false;
        expect(&client, qos == 1 ? "publish q1 id=1 t 'x'" : "publish q2 id=1 t 'x'");
        if (qos == 2) expect(&client, "pubrel 3 92");
        expect(&client, qos == 1 ? "publish q1 id=2 t 'x'" : "publish q2 id=2 t 'x'");
        expect(&client, qos == 1 ? "publish q1 id=3 t 'x'" : "publish q2 id=3 t 'x'");
        client_cut(&client);
        client_cut(&other);
    }
}

static void subscribes_in_a_row_wait_for_the_store(void **state) {
    struct client client;
    (void)state;

    world.options.durable = true;
    again();
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
    disk();
    expect(&client, "connack present=0 00*");
    for (unsigned i = 1; i <= 1200; i++) {
        char filter[16];
        assert_int_equal(broker_client_paused(world.broker, client.handle), i > 1000);
        snprintf(filter, sizeof filter, "t/%u", i % 1000);
        say_subscribe(&client, i, filter, 1);
    }
    expect_nothing(&client);
    disk();
    assert_false(broker_client_paused(world.broker, client.handle));
    for (unsigned i = 1; i <= 1200; i++) {
        char expected[24];
        snprintf(expected, sizeof expected, "suback %u 01", i);
        expect(&client, expected);
    }
    client_cut(&client);
}

/* What another broker sends for a session that lasts waits there, as what a client here sends is refused. */
static void far_behind_the_store_what_lasts_is_not_taken_from_a_peer(void **state) {
    static char payload[8000];
    struct message *message = message_new(&(struct message){.qos = 1,
                                                            .topic = "t",
                                                            .topic_size = 1,
                                                            .payload = (const uint8_t *)payload,
                                                            .payload_size = sizeof payload,
                                                            .expires_at_ms = UINT64_MAX});
    struct client client;
    unsigned taken = 0;
    (void)state;

    world.options.durable = true;
    world.options.limits.journal_bytes_max = 100000;
    again();
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
    say_subscribe(&client, 1, "t", 1);
    disk();
    expect(&client, "connack present=0 00*");
    expect(&client, "suback 1 01");
    for (; taken < 100; taken++) {
        struct message *anew = message_new(message); /* each of its own */
        enum peer_taken answer = broker_deliver_from_peer(world.broker, world.now, anew, NULL);
        message_unref(anew);
        if (answer == PEER_TAKEN_LATER) break;
    }
    assert_in_range(taken, 12, 13);
    assert_false(broker_takes_from_peers(world.broker));
    message->qos = 0;
    assert_int_equal(broker_deliver_from_peer(world.broker, world.now, message, NULL), PEER_TAKEN);
    message->qos = 1;
    broker_set_store_failing(world.broker, world.now, true); /* it may be so for long */
    assert_true(broker_takes_from_peers(world.broker));
    assert_int_equal(broker_deliver_from_peer(world.broker, world.now, message, NULL), PEER_TAKEN);
    broker_set_store_failing(world.broker, world.now, false);
    disk();
    assert_true(broker_takes_from_peers(world.broker));
    assert_int_equal(counters(&world).at_limit[BROKER_AT_JOURNAL_BYTES_MAX], 1);
    message_unref(message);
    client_cut(&client);
}

/* ---- packet ids ---- */

enum { BATCH = 1000 };

/* So many publications at QoS 1 from one to the other; the packet ids with which they come. */
static void publish_batch(struct client *sender, struct client *client, uint16_t ids[BATCH]) {
    uint8_t bytes[BATCH * 8];

    for (unsigned i = 0; i < BATCH; i++)
        memcpy(bytes + 8 * i, (uint8_t[8]){0x32, 6, 0, 1, 't', 0, 1, 0},
               8); /* acknowledged at once, so the id is free */
    sender->got_at = sender->got_size = client->got_at = client->got_size = 0;
    say_bytes(sender, bytes, sizeof bytes);
    client_read(sender);
    client_read(client);
    assert_int_equal(client->got_size, sizeof bytes);
    for (unsigned i = 0; i < BATCH; i++)
        ids[i] = (uint16_t)(client->got[8 * i + 5] << 8 | client->got[8 * i + 6]);
}

static bool is_among(uint16_t id, const uint16_t *ids, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

/* MQTT-2.2.1-4. */
static void packet_id_in_flight_is_not_given_out_again(void **state) {
    static const uint16_t kept[] = {1, 3, 4, 7, 65533, 65535}; /* never acknowledged */
    struct client client, sender;
    unsigned held = 0;
    (void)state;

    world.options.limits.inflight_max = 2 * BATCH;
    again();
    client_connect(&world, &client, 5, "c");
    client_connect(&world, &sender, 5, "s");
    client_subscribe(&client, "t", 1);
    for (unsigned batch = 0; batch < 140; batch++) {
        uint16_t ids[BATCH];
        uint8_t acks[BATCH * 4];
        size_t size = 0;
        publish_batch(&sender, &client, ids);
        for (unsigned i = 0; i < BATCH; i++) {
            assert_int_not_equal(ids[i], 0);
            assert_false(is_among(ids[i], kept, held));
            if (held < sizeof kept / sizeof kept[0] && ids[i] == kept[held]) {
                held++;
                continue;
            }
            memcpy(acks + size, (uint8_t[4]){0x40, 2, (uint8_t)(ids[i] >> 8), (uint8_t)ids[i]}, 4);
            size += 4;
        }
        say_bytes(&client, acks, size);
    }
    assert_int_equal(held, sizeof kept / sizeof kept[0]);
    client_cut(&client);
    client_cut(&sender);
}

/* MQTT 5.0 section 4.9: the quota is that of a connection. */
static void what_a_client_forgot_to_release_costs_it_no_quota(void **state) {
    struct client client;
    (void)state;

    world.options.limits.inflight_max = 3;
    again();
    for (unsigned round = 0; round < 4; round++) {
        client_connect_with(&world, &client, 5, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
        for (unsigned i = 1; i <= 3; i++) {
            char expected[32];
            snprintf(expected, sizeof expected, "pubrec %u", round * 3 + i);
            say_publish(&client, &(struct publish){.topic = "t", .qos = 2, .id = round * 3 + i});
            expect(&client, expected);
        }
        if (round < 3) client_cut(&client);
    }
    say_publish(&client, &(struct publish){.topic = "t", .qos = 1, .id = 100});
    expect(&client, "disconnect 93");
    expect_end(&client);
}

/* ---- short of memory ---- */

static void short_of_memory_who_comes_back_brings_no_large_will(void **state) {
    static char payload[1500];
    struct client client;
    (void)state;

    memset(payload, 'x', sizeof payload - 1);
    client_connect_with(&world, &client, 5, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
    broker_set_memory_short(world.broker, world.now, true);
    for (int version = 4; version <= 5; version++) {
        struct client again;
        client_open(&world, &again, version);
        say_connect(&again, &(struct connect){.id = "c", .resume = true, .will_topic = "w", .will_payload = payload});
        expect(&again, version == 5 ? "connack present=0 97" : "connack present=0 03");
        expect_end(&again);
        expect_nothing(&client); /* nor does it take the connection over */
    }
    client_cut(&client);
    client_connect_with(&world, &client, 5,
                        &(struct connect){.id = "c", .resume = true, .will_topic = "w", .will_payload = "x"});
    client_cut(&client);
}

static void short_of_memory_less_may_be_unread(void **state) {
    struct client deaf;
    bool is_short = false;
    (void)state;

    world.options.limits.output_bytes_max = 16000;
    again();
    for (int round = 0; round < 2; round++) {
        client_connect(&world, &deaf, 5, "deaf");
        broker_set_memory_short(world.broker, world.now, is_short);
        deaf.unread = true;
        for (int i = 0; i < 2000; i++)
            say_hex(&deaf, "c0 00");
        assert_int_equal(broker_client_ended(world.broker, deaf.handle), is_short);
        client_cut(&deaf);
        broker_set_memory_short(world.broker, world.now, false);
        is_short = true;
    }
}

/* ---- what is remembered ---- */

/* Topics that were published to are told to other brokers, and forgotten an hour later. */
static void long_topics_are_not_all_remembered(void **state) {
    enum { SIZE = 60000, COUNT = 1500 };
    struct broker_row_change change;
    struct client client;
    uint8_t *packet = malloc(SIZE + 10);
    size_t adverts = 0;
    (void)state;

    memset(packet, 'x', SIZE + 10);
    client_connect(&world, &client, 4, "c");
    memcpy(packet,
           (uint8_t[]){0x30, (SIZE + 2) % 128 + 128, (SIZE + 2) / 128 % 128 + 128, (SIZE + 2) / 16384, SIZE >> 8,
                       SIZE & 255},
           6);
    for (int i = 0; i < COUNT; i++) {
        memcpy(packet + 6, (char[]){(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('a' + i / 676)}, 3);
        say_bytes(&client, packet, SIZE + 6);
    }
    assert_int_equal(counters(&world).publications_received, COUNT);
    while (broker_next_row(world.broker, &change))
        adverts += change.active;
    assert_in_range(adverts, 500, (64 << 20) / SIZE);
    free(packet);
    client_cut(&client);
}

/* A filter that nobody has any more is told to other brokers for some seconds yet. */
static void filters_that_come_and_go_are_not_all_remembered(void **state) {
    struct broker_row_change change;
    struct client client;
    unsigned told = 0, withdrawn = 0;
    (void)state;

    client_connect(&world, &client, 5, "c");
    for (unsigned i = 0; i < 12000; i++) {
        char filter[16];
        snprintf(filter, sizeof filter, "t/%u", i);
        say_subscribe(&client, 1, filter, 0);
        say_unsubscribe(&client, 1, i % 100 == 99 ? "none" : filter); /* some stay */
        client_read(&client);
        while (broker_next_row(world.broker, &change)) {
            *(change.active ? &told : &withdrawn) += 1;
            broker_row_sequenced(world.broker, world.now, change.ticket, 1);
        }
        pass(&world, 0); /* what is retained is looked for */
    }
    assert_int_equal(told, 12000);
    assert_int_equal(withdrawn, 12000 - 120 - 10000);
    pass(&world, 5000);
    while (broker_next_row(world.broker, &change))
        withdrawn += !change.active;
    assert_int_equal(withdrawn, 12000 - 120);
    client_cut(&client);
}

/* ---- lines for the log ---- */

static void those_who_break_the_rules_hide_no_warning(void **state) {
    struct client client;
    struct broker_note note;
    unsigned warnings = 0, others = 0;
    (void)state;

    for (int i = 0; i < 1000; i++) {
        client_connect(&world, &client, 5, "c");
        say_hex(&client, "00 00");
        client_cut(&client);
    }
    client_connect(&world, &client, 5, "c");
    say_hex(&client, "30 ff ff ff 7f");
    client_cut(&client);
    while (broker_next_note(world.broker, &note)) {
        if (strncmp(note.text, "limits.packet_size_max is reached", 33) == 0)
            warnings++;
        else
            others++;
    }
    assert_int_equal(warnings, 1);
    assert_in_range(others, 2, 200);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packet_id_that_waits_for_the_store_cannot_be_acknowledged, begin, end),
        cmocka_unit_test_setup_teardown(packet_id_that_waits_for_output_cannot_be_acknowledged, begin, end),
        cmocka_unit_test_setup_teardown(subscribes_in_a_row_wait_for_the_store, begin, end),
        cmocka_unit_test_setup_teardown(far_behind_the_store_what_lasts_is_not_taken_from_a_peer, begin, end),
        cmocka_unit_test_setup_teardown(packet_id_in_flight_is_not_given_out_again, begin, end),
        cmocka_unit_test_setup_teardown(what_a_client_forgot_to_release_costs_it_no_quota, begin, end),
        cmocka_unit_test_setup_teardown(short_of_memory_who_comes_back_brings_no_large_will, begin, end),
        cmocka_unit_test_setup_teardown(short_of_memory_less_may_be_unread, begin, end),
        cmocka_unit_test_setup_teardown(long_topics_are_not_all_remembered, begin, end),
        cmocka_unit_test_setup_teardown(filters_that_come_and_go_are_not_all_remembered, begin, end),
        cmocka_unit_test_setup_teardown(those_who_break_the_rules_hide_no_warning, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
