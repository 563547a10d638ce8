/* A SUBACK that did not wait any longer says for whom it had waited. */
#include "mqtt_client.h"

#include "broker/peering.h"

#define REASON "1f=not every other broker has answered yet"

static struct world world;
static struct client client;

static int begin(void **state) {
    (void)state;
    world_begin(&world);
    return 0;
}

static int end(void **state) {
    (void)state;
    if (client.handle) client_cut(&client);
    world_end(&world);
    return 0;
}

static struct peer_id id_of(int number) {
    return (struct peer_id){{1, (uint8_t)number}};
}

/* It publishes under this filter, or nothing if that is NULL. */
static void peer_appears(int number, const char *filter) {
    struct peer_id id = id_of(number);
    char name[16];

    snprintf(name, sizeof name, "edge-%d", number);
    broker_peer_alive(world.broker, world.now, &id, name, 1);
    if (filter != NULL) broker_peer_row(world.broker, world.now, &id, ROW_NEWPUB, filter, strlen(filter), true);
}

static void connect_with(const char *properties) {
    client_connect_with(&world, &client, 5, &(struct connect){.id = "c", .properties = properties});
}

/* What the log has to say at this level, "" if nothing. */
static const char *noted(enum broker_note_level level, struct broker_note *note) {
    while (broker_next_note(world.broker, note))
        if (note->level == level && strstr(note->text, "not confirmed") != NULL) return note->text;
    return "";
}

/* Rows are known to nobody before this is called. */
static void all_know_the_rows(int peers) {
    struct broker_row_change change;

    while (broker_next_row(world.broker, &change))
        broker_row_sequenced(world.broker, world.now, change.ticket, 7);
    for (int i = 1; i <= peers; i++) {
        struct peer_id id = id_of(i);
        broker_peer_knows(world.broker, world.now, &id, 7);
    }
}

static uint64_t counted(int number) {
    struct peer_id id = id_of(number);
    struct link_info info;

    for (size_t i = 0; broker_link_at(world.broker, i, &info); i++)
        if (memcmp(&info.peer, &id, sizeof id) == 0) return info.subacks_unconfirmed;
    return 0;
}

static void those_whose_join_is_missing_are_named(void **state) {
    struct broker_note note;
    (void)state;

    peer_appears(1, "t/#");
    peer_appears(2, "other/#");
    peer_appears(3, "+/1");
    connect_with("");
    say_subscribe(&client, 1, "t/1", 1);
    all_know_the_rows(3);
    pass(&world, 300);
    expect(&client, "suback 1 " REASON " 26=unconfirmed:edge-1 26=unconfirmed:edge-3 01");
    assert_string_equal(noted(BROKER_NOTE_INFO, &note),
                        "a subscription was not confirmed within 300 ms by edge-1, edge-3");
    assert_int_equal(counted(1), 1);
    assert_int_equal(counted(2), 0);
    assert_int_equal(counted(3), 1);
}

static void those_who_do_not_know_of_it_are_named(void **state) {
    (void)state;
    peer_appears(1, NULL);
    peer_appears(2, NULL);
    connect_with("");
    say_subscribe(&client, 1, "t/1", 1);
    all_know_the_rows(1);
    pass(&world, 300);
    expect(&client, "suback 1 " REASON " 26=unconfirmed:edge-2 01");
}

static void each_is_named_once_however_much_is_missing(void **state) {
    (void)state;
    peer_appears(1, "#");
    connect_with("");
    say_hex(&client, "82 0f 0001 00 0001 61 00 0001 62 00 0001 63 00");
    pass(&world, 300);
    expect(&client, "suback 1 " REASON " 26=unconfirmed:edge-1 00 00 00");
    assert_int_equal(counted(1), 1);
}

static void of_many_some_are_named_and_the_rest_counted(void **state) {
    struct broker_note note;
    (void)state;

    for (int i = 1; i <= 8; i++)
        peer_appears(i, "t/#");
    connect_with("");
    say_subscribe(&client, 1, "t/1", 1);
    pass(&world, 300);
    expect(&client,
           "suback 1 " REASON " 26=unconfirmed:edge-1 26=unconfirmed:edge-2 26=unconfirmed:edge-3 26=unconfirmed:edge-4"
           " 26=unconfirmed:edge-5 26=unconfirmed-more:3 01");
    assert_string_equal(noted(BROKER_NOTE_INFO, &note), "a subscription was not confirmed within 300 ms by "
                                                        "edge-1, edge-2, edge-3, edge-4, edge-5 and 3 more");
    for (int i = 1; i <= 8; i++)
        assert_int_equal(counted(i), 1);
}

static void the_same_brokers_are_logged_once_a_minute(void **state) {
    struct broker_note note;
    (void)state;

    peer_appears(1, "t/#");
    connect_with("");
    for (int minute = 0; minute < 2; minute++) {
        say_subscribe(&client, 1, minute ? "t/1" : "t/2", 1);
        pass(&world, 300);
        assert_string_not_equal(noted(BROKER_NOTE_INFO, &note), "");
        say_subscribe(&client, 2, minute ? "t/3" : "t/4", 1);
        pass(&world, 300);
        assert_string_equal(noted(BROKER_NOTE_INFO, &note), "");
        pass(&world, 60000);
    }
}

static void who_wants_no_problem_information_gets_none(void **state) {
    (void)state;
    peer_appears(1, "t/#");
    connect_with("17 00");
    say_subscribe(&client, 1, "t/1", 1);
    pass(&world, 300);
    expect(&client, "suback 1 01");
}

static void what_does_not_fit_is_left_out(void **state) {
    static const struct {
        unsigned size_max;
        const char *suback;
    } rows[] = {
        {70, "suback 1 " REASON " 26=unconfirmed:edge-1 01"},
        {69, "suback 1 " REASON " 01"},
        {48, "suback 1 " REASON " 01"},
        {47, "suback 1 01"},
    };
    (void)state;

    peer_appears(1, "t/#");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char properties[32];
        snprintf(properties, sizeof properties, "27 %08x", rows[i].size_max);
        connect_with(properties);
        say_subscribe(&client, 1, "t/1", 1);
        pass(&world, 300);
        expect(&client, rows[i].suback);
        client_cut(&client);
        pass(&world, 6000); /* so that the filter is new again */
    }
}

static void one_that_is_gone_is_not_waited_for(void **state) {
    struct peer_id id = id_of(1);
    (void)state;

    peer_appears(1, "t/#");
    peer_appears(2, "t/#");
    connect_with("");
    say_subscribe(&client, 1, "t/1", 1);
    pass(&world, 200);
    broker_peer_gone(world.broker, world.now, &id);
    pass(&world, 100);
    expect(&client, "suback 1 " REASON " 26=unconfirmed:edge-2 01");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(those_whose_join_is_missing_are_named),
        TEST(those_who_do_not_know_of_it_are_named),
        TEST(each_is_named_once_however_much_is_missing),
        TEST(of_many_some_are_named_and_the_rest_counted),
        TEST(the_same_brokers_are_logged_once_a_minute),
        TEST(who_wants_no_problem_information_gets_none),
        TEST(what_does_not_fit_is_left_out),
        TEST(one_that_is_gone_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
