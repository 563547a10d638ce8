/* A broker that starts with what an earlier one left in the store. */
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

static void no_expiry_is_longer_than_an_interval_can_be_though_the_clock_goes_back(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    client_connect(&world, &client, 5, "c");
    say_publish(&client,
                &(struct publish){.topic = "a", .payload = "x", .retain = true, .properties = "02 ff ff ff ff"});
    disk(&world, &store);
    client_forget(&client);
    wall_offset_ms = 0; /* 1970 */
    restart(&world, &store, 0);
    client_connect(&world, &client, 5, "c");
    client_subscribe(&client, "a", 0);
    expect(&client, "publish retain q0 a 02=4294967295 'x'");
    client_cut(&client);
    model_free(&store);
    world_end(&world);
}

static void a_delete_is_forgotten_in_its_time_however_often_the_broker_starts(void **state) {
    const uint64_t day_ms = 24 * 3600 * 1000;
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    client_connect(&world, &client, 5, "c");
    say_publish(&client, &(struct publish){.topic = "a", .payload = "deleted", .retain = true});
    say_publish(&client, &(struct publish){.topic = "a", .payload = "", .retain = true});
    disk(&world, &store);
    client_forget(&client);
    for (int days = 0; days < 6; days += 2) {
        restart(&world, &store, 2 * day_ms);
        broker_tick(world.broker, world.now);
        disk(&world, &store);
        assert_int_equal(store.count, 1);
    }
    pass(&world, day_ms - 1);
    disk(&world, &store);
    assert_int_equal(store.count, 1);
    pass(&world, 1);
    disk(&world, &store);
    assert_int_equal(store.count, 0);
    model_free(&store);
    world_end(&world);
}

static void a_delete_of_an_earlier_run_is_newer_than_what_it_deleted(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    client_connect(&world, &client, 5, "c");
    say_publish(&client, &(struct publish){.topic = "a", .payload = "1", .retain = true});
    disk(&world, &store);
    client_forget(&client);
    /* The clock went back by a day: what comes now is the later all the same. */
    world.now -= 24 * 3600 * 1000;
    restart(&world, &store, 0);
    client_connect(&world, &client, 5, "c");
    say_publish(&client, &(struct publish){.topic = "a", .payload = "2", .retain = true});
    client_subscribe(&client, "a", 0);
    expect(&client, "publish retain q0 a '2'");
    client_cut(&client);
    model_free(&store);
    world_end(&world);
}

static void a_session_ends_when_it_would_have(void **state) {
    static const struct {
        uint64_t gone_ms, away_ms;
        bool present;
    } cases[] = {{1000, 3598000, true}, {1000, 3599001, false}, {0, 4000000, false}};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world;
        struct client client;
        struct model_store store = {0};
        world_durable(&world);
        connect_for(&world, &store, &client, &(struct connect){.id = "c", .resume = true, .properties = AN_HOUR},
                    "connack present=0 00*");
        client_cut(&client);
        disk(&world, &store);
        pass(&world, cases[i].gone_ms);
        restart(&world, &store, cases[i].away_ms);
        broker_tick(world.broker, world.now);
        connect_lasting(&world, &store, &client, "c",
                        cases[i].present ? "connack present=1 00*" : "connack present=0 00*");
        client_cut(&client);
        model_free(&store);
        world_end(&world);
    }
}

static void the_absence_of_who_was_connected_begins_with_the_start(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_for(&world, &store, &client, &(struct connect){.id = "c", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    client_forget(&client);
    restart(&world, &store, 100ull * 3600 * 1000);
    pass(&world, 3599000);
    assert_int_equal(counters(&world).sessions, 1);
    pass(&world, 1000);
    assert_int_equal(counters(&world).sessions, 0);
    disk(&world, &store);
    assert_int_equal(store.count, 0);
    model_free(&store);
    world_end(&world);
}

static void the_second_crash_does_not_prolong_an_absence(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_for(&world, &store, &client, &(struct connect){.id = "c", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    client_forget(&client);
    restart(&world, &store, 1000);
    disk(&world, &store);
    restart(&world, &store, 3599000);
    pass(&world, 999);
    assert_int_equal(counters(&world).sessions, 1);
    pass(&world, 1);
    assert_int_equal(counters(&world).sessions, 0);
    model_free(&store);
    world_end(&world);
}

static void a_lower_limit_of_session_expiry_holds_for_those_of_before(void **state) {
    static const char *const lives[] = {"11 ff ff ff ff", "11 00 01 51 80"}; /* for ever, a day */
    (void)state;

    for (unsigned i = 0; i < 4; i++) {
        struct world world;
        struct client client;
        struct model_store store = {0};
        world_durable(&world);
        broker_free(world.broker);
        world.options.limits.session_expiry_max_s = UINT32_MAX;
        world.broker = broker_new(&world.options, world.now);
        set_wall(&world, wall_offset_ms);
        connect_for(&world, &store, &client, &(struct connect){.id = "c", .resume = true, .properties = lives[i % 2]},
                    "connack *");
        if (i < 2) client_cut(&client); /* absent before the crash, or from it on */
        if (i >= 2) client_forget(&client);
        disk(&world, &store);
        world.options.limits.session_expiry_max_s = 100;
        restart(&world, &store, 1000);
        disk(&world, &store);
        pass(&world, 60000);
        assert_int_equal(counters(&world).sessions, 1);
        restart(&world, &store, 0); /* and another start does not prolong it */
        pass(&world, 39999);
        assert_int_equal(counters(&world).sessions, 1);
        pass(&world, 1);
        assert_int_equal(counters(&world).sessions, 0);
        model_free(&store);
        world_end(&world);
    }
}

static void wills_are_due_after_the_crash(void **state) {
    struct world world;
    struct client watcher, client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_for(&world, &store, &client,
                &(struct connect){.id = "c",
                                  .resume = true,
                                  .properties = AN_HOUR,
                                  .will_topic = "w",
                                  .will_payload = "gone",
                                  .will_properties = "18 00 00 00 05 26 0001 6b 0001 76"},
                "connack present=0 00*");
    client_forget(&client);
    restart(&world, &store, 1000000);
    disk(&world, &store);
    client_connect(&world, &watcher, 5, "watcher");
    client_subscribe(&watcher, "w", 0);
    pass(&world, 4999);
    expect_nothing(&watcher);
    pass(&world, 1);
    expect(&watcher, "publish q0 w 26=k:v 'gone'");
    disk(&world, &store);
    client_forget(&watcher);
    restart(&world, &store, 0); /* and not once more */
    client_connect(&world, &watcher, 5, "watcher");
    client_subscribe(&watcher, "w", 0);
    pass(&world, 10000);
    expect_nothing(&watcher);
    client_cut(&watcher);
    model_free(&store);
    world_end(&world);
}

static void a_client_that_comes_back_in_time_stops_its_will(void **state) {
    struct world world;
    struct client watcher, client;
    struct model_store store = {0};
    struct connect connect = {.id = "c",
                              .resume = true,
                              .properties = AN_HOUR,
                              .will_topic = "w",
                              .will_payload = "gone",
                              .will_properties = "18 00 00 00 05"};
    (void)state;

    world_durable(&world);
    connect_for(&world, &store, &client, &connect, "connack present=0 00*");
    client_forget(&client);
    restart(&world, &store, 1000000);
    client_connect(&world, &watcher, 5, "watcher");
    client_subscribe(&watcher, "w", 0);
    pass(&world, 4000);
    connect_for(&world, &store, &client, &connect, "connack present=1 00*");
    pass(&world, 20000);
    expect_nothing(&watcher);
    client_cut(&watcher);
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
    assert_string_equal(told, "sub in/+;sub both/#;pub out/kept;pub out/gone;");
    model_free(&store);
    world_end(&world);
}

/* A board without a battery starts in 1970, and learns of the time later. */
static void a_clock_that_is_set_ends_no_session(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    broker_set_wall_offset(world.broker, 1000 - (int64_t)world.now);
    connect_for(&world, &store, &client, &(struct connect){.id = "c", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    client_cut(&client);
    disk(&world, &store);
    broker_set_wall_offset(world.broker, 1700000000000);
    disk(&world, &store);
    restart(&world, &store, 1000);
    broker_tick(world.broker, world.now);
    connect_lasting(&world, &store, &client, "c", "connack present=1 00*");
    client_cut(&client);
    model_free(&store);
    world_end(&world);
}

static void nor_one_of_an_earlier_run_that_nothing_has_happened_to(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_for(&world, &store, &client, &(struct connect){.id = "c", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    client_cut(&client);
    disk(&world, &store);
    restart(&world, &store, 1000);
    set_wall(&world, wall_offset_ms + 2 * 3600 * 1000);
    disk(&world, &store);
    restart(&world, &store, 1000);
    broker_tick(world.broker, world.now);
    connect_lasting(&world, &store, &client, "c", "connack present=1 00*");
    client_cut(&client);
    model_free(&store);
    world_end(&world);
}

static void a_clock_that_goes_back_does_not_begin_an_absence_anew(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    connect_for(&world, &store, &client, &(struct connect){.id = "c", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    client_cut(&client);
    disk(&world, &store);
    wall_offset_ms -= 24 * 3600 * 1000; /* at the next start */
    for (int starts = 0; starts < 3; starts++) {
        restart(&world, &store, starts == 0 ? 0 : 1200 * 1000);
        disk(&world, &store);
    }
    broker_tick(world.broker, world.now);
    assert_int_equal(counters(&world).sessions, 1);
    pass(&world, 1200 * 1000);
    assert_int_equal(counters(&world).sessions, 0);
    model_free(&store);
    world_end(&world);
}

/* MQTT 5.0 section 3.1.2.5: "the Server MAY defer publication of Will Messages until a subsequent restart". */
static void an_orderly_end_defers_the_wills_of_sessions_that_last(void **state) {
    struct world world;
    struct client watcher, client, brief, other;
    struct model_store store = {0};
    struct connect connect = {.id = "c",
                              .resume = true,
                              .properties = AN_HOUR,
                              .will_topic = "w",
                              .will_payload = "gone",
                              .will_qos = 1,
                              .will_properties = "18 00 00 00 05"};
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &store, &watcher, "watcher", "connack present=0 00*");
    say_subscribe(&watcher, 1, "w", 1);
    disk(&world, &store);
    expect(&watcher, "suback 1 01");
    connect_for(&world, &store, &client, &connect, "connack present=0 00*");
    connect.id = connect.will_payload = "back";
    connect_for(&world, &store, &other, &connect, "connack present=0 00*");
    client_connect_with(&world, &brief, 5,
                        &(struct connect){.id = "brief", .will_topic = "w", .will_payload = "of nobody"});
    broker_stop(world.broker, world.now);
    disk(&world, &store);
    pass(&world, 6000); /* to end may take its time, and nothing comes due in it */
    disk(&world, &store);
    assert_int_equal(counters(&world).inflight_messages + counters(&world).queued_messages, 0);
    world.now -= 2000;
    client_forget(&watcher);
    client_forget(&client);
    client_forget(&other);
    client_forget(&brief);
    restart(&world, &store, 0);
    connect_for(&world, &store, &other, &connect, "connack present=1 00*"); /* a second before its will is due */
    pass(&world, 1000);
    connect_lasting(&world, &store, &watcher, "watcher", "connack present=1 00*");
    expect(&watcher, "publish q1 id=1 w 'gone'");
    expect_nothing(&watcher);
    pass(&world, 3594999);
    assert_int_equal(counters(&world).sessions, 3);
    pass(&world, 1);
    assert_int_equal(counters(&world).sessions, 2);
    client_cut(&watcher);
    client_cut(&other);
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
        cmocka_unit_test(no_expiry_is_longer_than_an_interval_can_be_though_the_clock_goes_back),
        cmocka_unit_test(a_delete_is_forgotten_in_its_time_however_often_the_broker_starts),
        cmocka_unit_test(a_delete_of_an_earlier_run_is_newer_than_what_it_deleted),
        cmocka_unit_test(a_session_ends_when_it_would_have),
        cmocka_unit_test(the_absence_of_who_was_connected_begins_with_the_start),
        cmocka_unit_test(the_second_crash_does_not_prolong_an_absence),
        cmocka_unit_test(a_lower_limit_of_session_expiry_holds_for_those_of_before),
        cmocka_unit_test(wills_are_due_after_the_crash),
        cmocka_unit_test(a_client_that_comes_back_in_time_stops_its_will),
        cmocka_unit_test(other_brokers_are_told_of_filters_and_retained_topics),
        cmocka_unit_test(a_clock_that_is_set_ends_no_session),
        cmocka_unit_test(nor_one_of_an_earlier_run_that_nothing_has_happened_to),
        cmocka_unit_test(a_clock_that_goes_back_does_not_begin_an_absence_anew),
        cmocka_unit_test(an_orderly_end_defers_the_wills_of_sessions_that_last),
        cmocka_unit_test(a_session_belongs_to_its_owner_as_before),
        cmocka_unit_test(records_that_cannot_be_are_left_out_and_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
