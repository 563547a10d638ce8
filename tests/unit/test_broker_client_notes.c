/* What the log is told of those who come, are refused, and go. */
#include "mqtt_client.h"

static struct world world;
static uint8_t answer; /* of may_connect */
static const char *words;

static uint8_t may_connect(void *context, const struct broker_applicant *applicant, const char **why) {
    (void)context, (void)applicant;
    *why = words;
    return answer;
}

static int begin(void **state) {
    (void)state;
    answer = 0;
    words = NULL;
    world.options.debug_notes = true;
    world.options.questions.may_connect = may_connect;
    world_begin(&world);
    return 0;
}

static int end(void **state) {
    (void)state;
    world_end(&world);
    return 0;
}

static void expect_note(enum broker_note_level level, const char *text) {
    struct broker_note note;

    assert_true(broker_next_note(world.broker, &note));
    assert_string_equal(note.text, text);
    assert_int_equal(note.level, level);
}

static void expect_silence(void) {
    struct broker_note note;

    assert_false(broker_next_note(world.broker, &note));
}

/* Begins anew with the options as they are. */
static void again(void) {
    struct broker_options options = world.options;

    world_end(&world);
    world.options = options;
    world_begin(&world);
}

static void who_comes_and_goes_is_named(void **state) {
    struct client client;
    (void)state;

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "meter", .user = "joe", .keep_alive = 30});
    expect_note(BROKER_NOTE_DEBUG, "client 'meter' at 127.0.0.1:4711 has connected: MQTT 5.0, keep alive 30 s, new "
                                   "session, user 'joe'");
    expect(&client, "connack*");
    say_hex(&client, "e0 00");
    expect_note(BROKER_NOTE_DEBUG, "client 'meter' at 127.0.0.1:4711 is gone: it has disconnected; its session ends");
    expect_silence();
    client_cut(&client);
    expect_silence();
}

static void a_line_that_breaks_and_a_takeover_are_told_apart(void **state) {
    struct client first, second, silent;
    (void)state;

    client_open(&world, &first, 4);
    say_connect(&first, &(struct connect){.id = "meter", .resume = true, .will_topic = "gone", .will_payload = "x"});
    expect_note(BROKER_NOTE_DEBUG,
                "client 'meter' at 127.0.0.1:4711 has connected: MQTT 3.1.1, keep alive 0 s, new session");
    client_open(&world, &second, 4);
    say_connect(&second, &(struct connect){.id = "meter", .resume = true});
    expect_note(BROKER_NOTE_DEBUG, "client 'meter' at 127.0.0.1:4711 is gone: another connection has come with this "
                                   "client id; its session stays, its will is due");
    expect_note(BROKER_NOTE_DEBUG,
                "client 'meter' at 127.0.0.1:4711 has connected: MQTT 3.1.1, keep alive 0 s, resumed session");
    client_cut(&second);
    expect_note(BROKER_NOTE_DEBUG,
                "client 'meter' at 127.0.0.1:4711 is gone: its connection has ended; its session stays");
    client_cut(&first);
    client_open(&world, &silent, 5);
    client_cut(&silent);
    expect_note(BROKER_NOTE_DEBUG,
                "client at 127.0.0.1:4711 is gone before it was connected: its connection has ended");
    expect_silence();
}

static void who_is_refused_is_named_at_any_level(void **state) {
    struct client client;
    (void)state;

    world.options.debug_notes = false;
    again();
    answer = 0x87;
    client_open(&world, &client, 4);
    say_connect(&client, &(struct connect){.id = "meter", .user = "joe"});
    expect_note(BROKER_NOTE_INFO,
                "CONNECT from 127.0.0.1:4711 refused: reason 0x87, not allowed; client 'meter', user 'joe'");
    expect_silence();
    client_cut(&client);
    words = "nobody is let in on Sundays: come tomorrow";
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "meter"});
    expect_note(BROKER_NOTE_INFO, "CONNECT from 127.0.0.1:4711 refused: reason 0x87, nobody is let in on Sundays: come "
                                  "tomorrow; client 'meter'");
    client_cut(&client);
    answer = 0;
    words = NULL;
    client_open(&world, &client, 4);
    say_connect(&client, &(struct connect){.id = "", .resume = true});
    expect_note(BROKER_NOTE_INFO, "CONNECT from 127.0.0.1:4711 refused: reason 0x85, a session that lasts needs a "
                                  "client id; client ''");
    client_cut(&client);
    expect_silence();
}

/* The limit has a line of its own, at most one in ten seconds. */
static void each_one_that_a_limit_refuses_is_named_for_debug_alone(void **state) {
    struct client client, more;
    (void)state;

    for (int debug = 0; debug < 2; debug++) {
        world.options.debug_notes = debug;
        world.options.limits.sessions_max = 1;
        again();
        client_connect(&world, &client, 5, "one");
        if (debug)
            expect_note(BROKER_NOTE_DEBUG, "client 'one' at 127.0.0.1:4711 has connected: MQTT 5.0, keep alive "
                                           "0 s, new session");
        client_open(&world, &more, 5);
        say_connect(&more, &(struct connect){.id = "two"});
        expect_note(BROKER_NOTE_WARNING, "limits.sessions_max is reached: CONNECT from 127.0.0.1:4711 refused");
        if (debug)
            expect_note(BROKER_NOTE_DEBUG, "CONNECT from 127.0.0.1:4711 refused: reason 0x97, no more sessions "
                                           "(limits.sessions_max); client 'two'");
        expect_silence();
        client_cut(&more);
        client_cut(&client);
    }
}

static void who_meets_a_limit_is_named(void **state) {
    struct client client;
    (void)state;

    world.options.debug_notes = false;
    world.options.limits.topic_levels_max = 2;
    world.options.limits.subscriptions_per_client = 1;
    again();
    client_connect(&world, &client, 5, "meter");
    say_subscribe(&client, 1, "a/b/c", 0);
    expect_note(BROKER_NOTE_WARNING, "limits.topic_levels_max is reached: a topic of 3 levels of client 'meter' at "
                                     "127.0.0.1:4711 refused");
    say_subscribe(&client, 2, "a", 0);
    say_subscribe(&client, 3, "b", 0);
    expect_note(BROKER_NOTE_WARNING, "limits.subscriptions_per_client is reached: a subscription of client 'meter' at "
                                     "127.0.0.1:4711 refused");
    expect_silence();
    client_cut(&client);
}

static void a_fault_is_told_once(void **state) {
    struct client client;
    (void)state;

    client_connect(&world, &client, 5, "meter");
    expect_note(BROKER_NOTE_DEBUG,
                "client 'meter' at 127.0.0.1:4711 has connected: MQTT 5.0, keep alive 0 s, new session");
    say_hex(&client, "00 00");
    expect_note(BROKER_NOTE_INFO, "client 'meter' at 127.0.0.1:4711: connection closed, reason 0x81, a packet is not "
                                  "well-formed");
    expect_silence();
    client_cut(&client);
    expect_silence();
}

static void a_storm_of_clients_leaves_room_for_what_matters(void **state) {
    struct broker_note note;
    struct client client;
    bool seen = false;
    (void)state;

    for (int i = 0; i < 300; i++) {
        client_open(&world, &client, 5);
        client_cut(&client);
    }
    client_open(&world, &client, 4);
    say_hex(&client, "c0 00");
    while (broker_next_note(world.broker, &note))
        seen |= note.level == BROKER_NOTE_INFO && strstr(note.text, "connection closed") != NULL;
    assert_true(seen);
    client_cut(&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(who_comes_and_goes_is_named),
        TEST(a_line_that_breaks_and_a_takeover_are_told_apart),
        TEST(who_is_refused_is_named_at_any_level),
        TEST(each_one_that_a_limit_refuses_is_named_for_debug_alone),
        TEST(who_meets_a_limit_is_named),
        TEST(a_fault_is_told_once),
        TEST(a_storm_of_clients_leaves_room_for_what_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
