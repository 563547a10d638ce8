/* A broker that starts with what an earlier one left in the store. What depends on how long it was away:
 * test_broker_restore_time.c. */
#include "durable_world.h"

#include "broker/peering.h"

static void sessions_subscriptions_and_queues_are_there(void **state) {
    struct world world;
    struct client sender, receiver;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &store, &receiver, "receiver", "connack present=0 00*");
    say_subscribe_with(&receiver, 1, "a/#", 2, "0b 07");
    disk(&world, &store);
    expect(&receiver, "suback 1 02");
    client_cut(&receiver);
    client_connect(&world, &sender, 5, "sender");
    for (unsigned i = 1; i <= 3; i++)
        say_publish(&sender, &(struct publish){.topic = "a/b",
                                               .payload = i == 1   ? "one"
                                                          : i == 2 ? "two"
                                                                   : "three",
                                               .qos = i == 2 ? 1 : 2,
                                               .id = i,
                                               .properties = "26 0001 6b 0001 76"});
    disk(&world, &store);
    client_forget(&sender);
    restart(&world, &store, 0);

    assert_int_equal(counters(&world).sessions, 1);
    assert_int_equal(counters(&world).subscriptions, 1);
    connect_lasting(&world, &store, &receiver, "receiver", "connack present=1 00*");
    disk(&world, &store);
    expect(&receiver, "publish q2 id=1 a/b 0b=7 26=k:v 'one'");
    expect(&receiver, "publish q1 id=2 a/b 0b=7 26=k:v 'two'");
    expect(&receiver, "publish q2 id=3 a/b 0b=7 26=k:v 'three'");
    client_connect(&world, &sender, 5, "sender");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "live"});
    expect(&receiver, "publish q0 a 0b=7 'live'");
    client_cut(&sender);
    client_cut(&receiver);
    model_free(&store);
    world_end(&world);
}

static void what_is_in_flight_keeps_its_packet_id(void **state) {
    struct world world;
    struct client sender, receiver;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &store, &receiver, "receiver", "connack present=0 00*");
    say_subscribe(&receiver, 1, "a", 2);
    disk(&world, &store);
    expect(&receiver, "suback 1 02");
    client_connect(&world, &sender, 5, "sender");
    for (unsigned i = 1; i <= 4; i++)
        say_publish(&sender, &(struct publish){.topic = "a", .payload = "x", .qos = i == 4 ? 1 : 2, .id = i});
    disk(&world, &store);
    expect(&receiver, "publish q2 id=1 a 'x'");
    expect(&receiver, "publish q2 id=2 a 'x'");
    expect(&receiver, "publish q2 id=3 a 'x'");
    expect(&receiver, "publish q1 id=4 a 'x'");
    say_ack(&receiver, 5, 1);
    say_ack(&receiver, 5, 2);
    disk(&world, &store);
    expect(&receiver, "pubrel 1");
    expect(&receiver, "pubrel 2");
    say_ack(&receiver, 7, 1);
    disk(&world, &store);
    client_forget(&sender);
    client_forget(&receiver);
    restart(&world, &store, 0);

    assert_int_equal(counters(&world).inflight_messages, 3);
    connect_lasting(&world, &store, &receiver, "receiver", "connack present=1 00*");
    expect(&receiver, "pubrel 2");
    expect(&receiver, "publish dup q2 id=3 a 'x'");
    expect(&receiver, "publish dup q1 id=4 a 'x'");
    expect_nothing(&receiver);
    client_cut(&receiver);
    model_free(&store);
    world_end(&world);
}

static void a_qos_2_publication_is_not_taken_twice(void **state) {
    struct world world;
    struct client sender, receiver;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &store, &sender, "sender", "connack present=0 00*");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "x", .qos = 2, .id = 9});
    disk(&world, &store);
    expect(&sender, "pubrec 9");
    client_forget(&sender);
    restart(&world, &store, 0);

    client_connect(&world, &receiver, 5, "receiver");
    client_subscribe(&receiver, "a", 0);
    connect_lasting(&world, &store, &sender, "sender", "connack present=1 00*");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "x", .qos = 2, .id = 9, .dup = true});
    expect(&sender, "pubrec 9");
    expect_nothing(&receiver);
    say_ack(&sender, 6, 9);
    disk(&world, &store);
    expect(&sender, "pubcomp 9");
    client_cut(&sender);
    client_cut(&receiver);
    model_free(&store);
    world_end(&world);
}

static void retained_messages_and_deletes_are_there(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    client_connect(&world, &client, 5, "c");
    say_publish(&client, &(struct publish){.topic = "a", .payload = "kept", .retain = true});
    say_publish(&client, &(struct publish){.topic = "b", .payload = "deleted", .retain = true});
    say_publish(&client, &(struct publish){.topic = "b", .payload = "", .retain = true});
    say_publish(&client,
                &(struct publish){.topic = "c", .payload = "late", .retain = true, .properties = "02 00 00 00 05"});
    say_publish(&client,
                &(struct publish){.topic = "d", .payload = "in time", .retain = true, .properties = "02 00 00 00 0a"});
    say_publish(&client, &(struct publish){.topic = "$SYS/x", .payload = "not ours", .retain = true});
    disk(&world, &store);
    client_forget(&client);
    restart(&world, &store, 6000);

    assert_int_equal(store.count, 4); /* with the tombstone, and what has expired since */
    client_connect(&world, &client, 5, "c");
    client_subscribe(&client, "a", 0);
    expect(&client, "publish retain q0 a 'kept'");
    client_subscribe(&client, "b", 0);
    client_subscribe(&client, "c", 0);
    client_subscribe(&client, "d", 0);
    expect(&client, "publish retain q0 d 02=4 'in time'");
    client_subscribe(&client, "$SYS/x", 0);
    expect_nothing(&client);
    pass(&world, 1);
    disk(&world, &store);
    assert_int_equal(store.count, 3);
    client_cut(&client);
    model_free(&store);
    world_end(&world);
}

/* Others find what was retained here, and send what is subscribed here, as if nothing had been. */
static void other_brokers_are_told_of_filters_and_retained_topics(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    struct broker_row_change change;
    char told[256] = "";
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &store, &client, "c", "connack present=0 00*");
    say_subscribe(&client, 1, "in/+", 1);
    say_subscribe(&client, 2, "$share/g/both/#", 1);
    say_publish(&client, &(struct publish){.topic = "out/kept", .payload = "1", .retain = true});
    say_publish(&client, &(struct publish){.topic = "out/gone", .payload = "1", .retain = true});
    say_publish(&client, &(struct publish){.topic = "out/gone", .payload = "", .retain = true});
    say_publish(&client, &(struct publish){.topic = "out/not", .payload = "1"});
    disk(&world, &store);
    client_forget(&client);
    restart(&world, &store, 0);
    while (broker_next_row(world.broker, &change))
        snprintf(told + strlen(told), sizeof told - strlen(told), "%s%s %.*s;", change.active ? "" : "no ",
                 change.kind == ROW_NEWPUB ? "pub" : "sub", (int)change.filter_size, change.filter);
    assert_string_equal(told, "sub in/+;sub $share/g/both/#;pub out/kept;pub out/gone;");
    model_free(&store);
    world_end(&world);
}

static void a_session_belongs_to_its_owner_as_before(void **state) {
    struct broker_origin origin = {.address = "127.0.0.1:4711", .certificate_name = "plant"};
    struct connect connect = {.id = "c", .resume = true, .properties = AN_HOUR};
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    client = (struct client){.world = &world, .version = 5};
    client.handle = broker_client_open(world.broker, world.now, &origin);
    say_connect(&client, &connect);
    disk(&world, &store);
    expect(&client, "connack present=0 00*");
    client_forget(&client);
    restart(&world, &store, 0);
    connect_for(&world, &store, &client, &connect, "connack present=0 87*");
    client_forget(&client);
    client = (struct client){.world = &world, .version = 5};
    client.handle = broker_client_open(world.broker, world.now, &origin);
    say_connect(&client, &connect);
    disk(&world, &store);
    expect(&client, "connack present=1 00*");
    client_cut(&client);
    model_free(&store);
    world_end(&world);
}

static void records_that_cannot_be_are_left_out_and_noted(void **state) {
    static const struct record_text a = {"a", 1}, bad = {"a/#/b", 5}, share = {"$share//a", 9};
    const struct record records[] = {
        {.type = RECORD_SESSION, .session = 1, .client_id = a, .expiry_s = 0},
        {.type = RECORD_SESSION, .session = 0, .client_id = a, .expiry_s = 1},
        {.type = RECORD_SESSION, .session = 1, .expiry_s = 1},
        {.type = RECORD_SESSION, .session = 2, .client_id = a, .expiry_s = 9}, /* this one is good */
        {.type = RECORD_SESSION, .session = 2, .client_id = bad, .expiry_s = 9},
        {.type = RECORD_SESSION, .session = 3, .client_id = a, .expiry_s = 9},
        {.type = RECORD_SESSION, .session = 3, .client_id = bad, .expiry_s = 9, .has_will = true},
        {.type = RECORD_SUBSCRIPTION, .session = 9, .filter = a},
        {.type = RECORD_SUBSCRIPTION, .session = 2, .filter = bad},
        {.type = RECORD_SUBSCRIPTION, .session = 2, .filter = share},
        {.type = RECORD_SUBSCRIPTION, .session = 2},
        {.type = RECORD_SUBSCRIPTION, .session = 2, .filter = a, .options = 3},
        {.type = RECORD_SUBSCRIPTION, .session = 2, .filter = a, .options = 0xFF},
        {.type = RECORD_MESSAGE, .message = 4, .publication = {.topic = bad}},
        {.type = RECORD_MESSAGE, .message = 4, .publication = {.topic = a, .qos = 3}},
        {.type = RECORD_MESSAGE, .message = 4, .publication = {.topic = a, .properties = {"\x7f", 1}}},
        {.type = RECORD_MESSAGE, .message = 0, .publication = {.topic = a}},
        {.type = RECORD_MESSAGE, .message = 5, .publication = {.topic = a}}, /* good, but nobody wants it */
        {.type = RECORD_MESSAGE, .message = 5, .publication = {.topic = a}},
        {.type = RECORD_QUEUED, .session = 9, .position = 6, .message = 5, .qos = 1},
        {.type = RECORD_QUEUED, .session = 2, .position = 6, .message = 7, .qos = 1},
        {.type = RECORD_QUEUED, .session = 2, .position = 0, .message = 5, .qos = 1},
        {.type = RECORD_QUEUED, .session = 2, .position = 6, .message = 5, .qos = 0},
        {.type = RECORD_QUEUED, .session = 2, .position = 6, .qos = 1, .released = true, .packet_id = 1},
        {.type = RECORD_QUEUED, .session = 2, .position = 6, .qos = 2, .released = true},
        {.type = RECORD_RECEIVED, .session = 9, .packet_id = 1},
        {.type = RECORD_RECEIVED, .session = 2},
        {.type = RECORD_RETAINED, .publication = {.topic = bad}},
        {.type = RECORD_DONE, .session = 2, .position = 6},
        {.type = RECORD_RESET},
    };
    struct world world;
    struct broker_note note;
    (void)state;

    world_durable(&world);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++)
        broker_restore(world.broker, world.now, &records[i]);
    assert_true(broker_restored(world.broker, world.now, 8));
    assert_int_equal(counters(&world).sessions, 1);
    assert_int_equal(counters(&world).subscriptions, 0);
    assert_true(broker_next_note(world.broker, &note));
    assert_non_null(strstr(note.text, "28 records"));
    world_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_subscriptions_and_queues_are_there),
        cmocka_unit_test(what_is_in_flight_keeps_its_packet_id),
        cmocka_unit_test(a_qos_2_publication_is_not_taken_twice),
        cmocka_unit_test(retained_messages_and_deletes_are_there),
        cmocka_unit_test(other_brokers_are_told_of_filters_and_retained_topics),
        cmocka_unit_test(a_session_belongs_to_its_owner_as_before),
        cmocka_unit_test(records_that_cannot_be_are_left_out_and_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
