/* A broker that starts with what an earlier one left in the store, some time later: what expires and ends, which wills
 * are due, and what a clock that was set meanwhile must not change. */
#include "durable_world.h"

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

/* A board without a battery starts in 1970, and learns of the time later. */
/* A session that lasts an hour from now. */
static void goes_for_an_hour(struct world *world, struct model_store *store, struct client *client) {
    connect_for(world, store, client, &(struct connect){.id = "c", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    client_cut(client);
    disk(world, store);
}

static void is_there_and_all_ends(struct world *world, struct model_store *store, struct client *client) {
    broker_tick(world->broker, world->now);
    connect_lasting(world, store, client, "c", "connack present=1 00*");
    client_cut(client);
    model_free(store);
    world_end(world);
}

static void a_clock_that_is_set_ends_no_session(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    broker_set_wall_offset(world.broker, 1000 - (int64_t)world.now);
    goes_for_an_hour(&world, &store, &client);
    broker_set_wall_offset(world.broker, 1700000000000);
    disk(&world, &store);
    restart(&world, &store, 1000);
    is_there_and_all_ends(&world, &store, &client);
}

static void nor_one_of_an_earlier_run_that_nothing_has_happened_to(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    goes_for_an_hour(&world, &store, &client);
    restart(&world, &store, 1000);
    set_wall(&world, wall_offset_ms + 2 * 3600 * 1000);
    disk(&world, &store);
    restart(&world, &store, 1000);
    is_there_and_all_ends(&world, &store, &client);
}

static void a_clock_that_goes_back_does_not_begin_an_absence_anew(void **state) {
    struct world world;
    struct client client;
    struct model_store store = {0};
    (void)state;

    world_durable(&world);
    goes_for_an_hour(&world, &store, &client);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_expiry_is_longer_than_an_interval_can_be_though_the_clock_goes_back),
        cmocka_unit_test(a_delete_is_forgotten_in_its_time_however_often_the_broker_starts),
        cmocka_unit_test(a_delete_of_an_earlier_run_is_newer_than_what_it_deleted),
        cmocka_unit_test(a_session_ends_when_it_would_have),
        cmocka_unit_test(the_absence_of_who_was_connected_begins_with_the_start),
        cmocka_unit_test(the_second_crash_does_not_prolong_an_absence),
        cmocka_unit_test(a_lower_limit_of_session_expiry_holds_for_those_of_before),
        cmocka_unit_test(wills_are_due_after_the_crash),
        cmocka_unit_test(a_client_that_comes_back_in_time_stops_its_will),
        cmocka_unit_test(a_clock_that_is_set_ends_no_session),
        cmocka_unit_test(nor_one_of_an_earlier_run_that_nothing_has_happened_to),
        cmocka_unit_test(a_clock_that_goes_back_does_not_begin_an_absence_anew),
        cmocka_unit_test(an_orderly_end_defers_the_wills_of_sessions_that_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
