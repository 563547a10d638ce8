#include "mqtt_client.h"

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

static void v311_client_connects(void **state) {
    struct client client;
    (void)state;

    client_open(&world, &client, 4);
    say_connect(&client, &(struct connect){.id = "a"});
    expect(&client, "connack present=0 00");
    say_hex(&client, "c0 00");
    expect(&client, "pingresp");
    assert_int_equal(counters(&world).clients_connected, 1);
    say_disconnect(&client);
    expect_end(&client);
    assert_int_equal(counters(&world).clients_connected, 0);
    assert_int_equal(counters(&world).sessions, 0);
}

static void v5_client_learns_the_capabilities_that_are_not_default(void **state) {
    struct client client;
    (void)state;

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a"});
    expect(&client, "connack present=0 00 21=100 27=16777216 22=32");
    say_disconnect(&client);
    expect_end(&client);
}

static void empty_client_id_is_assigned(void **state) {
    struct client client, second;
    char first[512], other[512];
    (void)state;

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = ""});
    next_packet(&client, first, sizeof first);
    assert_non_null(strstr(first, " 12=auto"));
    client_open(&world, &second, 5);
    say_connect(&second, &(struct connect){.id = "", .resume = true});
    next_packet(&second, other, sizeof other);
    assert_non_null(strstr(other, " 12=auto"));
    assert_string_not_equal(strstr(first, " 12="), strstr(other, " 12="));
    client_cut(&client);
    client_cut(&second);
}

static void refusals(void **state) {
    static const struct {
        const char *what;
        const char *hex;
        int version; /* of the answer */
        const char *answer;
    } rows[] = {
        {"3.1", "10 0f 0006 4d5149736470 03 02 0000 0001 61", 4, "connack present=0 01"},
        {"level 3 with the new name", "10 0d 0004 4d515454 03 02 0000 0001 61", 4, "connack present=0 01"},
        {"level 6", "10 0e 0004 4d515454 06 02 0000 00 0001 61", 5, "connack present=0 84"},
        {"3.1 of a bridge", "10 0d 0004 4d515454 83 02 0000 0001 61", 4, "connack present=0 01"},
        {"5.0 of a bridge", "10 0e 0004 4d515454 85 02 0000 00 0001 61", 5, "connack present=0 84"},
        {"another protocol", "10 0d 0004 4d515455 04 02 0000 0001 61", 4, ""},
        {"3.1.1 without id and not clean", "10 0c 0004 4d515454 04 00 0000 0000", 4, "connack present=0 02"},
        {"reserved flag, 3.1.1", "10 0d 0004 4d515454 04 03 0000 0001 61", 4, ""},
        {"reserved flag, 5.0", "10 0e 0004 4d515454 05 03 0000 00 0001 61", 5, "connack present=0 81"},
        {"will QoS 3", "10 0e 0004 4d515454 05 1e 0000 00 0001 61", 5, "connack present=0 81"},
        {"will QoS without will", "10 0e 0004 4d515454 05 0a 0000 00 0001 61", 5, "connack present=0 81"},
        {"password without user name, 3.1.1", "10 10 0004 4d515454 04 42 0000 0001 61 0001 62", 4, ""},
        {"rest after the payload", "10 0f 0004 4d515454 05 02 0000 00 0001 61 00", 5, "connack present=0 81"},
        {"cut short", "10 0c 0004 4d515454 05 02 0000 00 00", 5, "connack present=0 81"},
        {"U+0000 in the id", "10 0e 0004 4d515454 05 02 0000 00 0001 00", 5, "connack present=0 81"},
        {"unknown property", "10 10 0004 4d515454 05 02 0000 02 7f00 0001 61", 5, "connack present=0 81"},
        {"property of another packet", "10 10 0004 4d515454 05 02 0000 02 0100 0001 61", 5, "connack present=0 81"},
        {"receive maximum 0", "10 11 0004 4d515454 05 02 0000 03 210000 0001 61", 5, "connack present=0 82"},
        {"receive maximum twice", "10 14 0004 4d515454 05 02 0000 06 210001210001 0001 61", 5, "connack present=0 82"},
        {"authentication method", "10 13 0004 4d515454 05 02 0000 05 1500024142 0001 61", 5, "connack present=0 8c"},
        {"wildcard in the will topic", "10 14 0004 4d515454 05 06 0000 00 0001 61 00 0001 2b 0000", 5,
         "connack present=0 90"},
        {"header flags", "11 0d 0004 4d515454 04 02 0000 0001 61", 4, ""},
        {"not a CONNECT", "c0 00", 4, ""},
        {"padded length", "10 8d00 0004 4d515454 04 02 0000 0001 61", 4, ""},
        {"announced too large", "10 ffffff7f", 4, ""},
        {"announced larger than any CONNECT", "10 808040", 4, ""},
        {"length of five bytes", "10 ffffffff", 4, ""},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        client_open(&world, &client, rows[i].version);
        say_hex(&client, rows[i].hex);
        if (rows[i].answer[0] != '\0') expect(&client, rows[i].answer);
        client_read(&client);
        if (!broker_client_ended(world.broker, client.handle)) fail_msg("not refused: %s", rows[i].what);
        expect_end(&client);
    }
    assert_int_equal(counters(&world).connects_accepted, 0);
    assert_in_range(counters(&world).protocol_errors, 1, sizeof rows / sizeof rows[0]);
    assert_int_equal(counters(&world).sessions, 0);
}

static void second_connect_is_a_protocol_error(void **state) {
    struct client client;
    (void)state;

    client_connect(&world, &client, 5, "a");
    say_connect(&client, &(struct connect){.id = "a"});
    expect(&client, "disconnect 82");
    expect_end(&client);
    assert_int_equal(counters(&world).protocol_errors, 1);
    assert_int_equal(counters(&world).packets_sent, 2); /* CONNACK and DISCONNECT */
}

static void auth_without_method_is_refused(void **state) {
    struct client client;
    (void)state;

    client_connect(&world, &client, 5, "a");
    say_hex(&client, "f0 00");
    expect(&client, "disconnect 82");
    expect_end(&client);
}

static void no_connect_in_time_ends_the_connection(void **state) {
    struct client client;
    (void)state;

    client_open(&world, &client, 4);
    say_hex(&client, "10 20 00");
    pass(&world, 9999);
    client_read(&client);
    assert_false(broker_client_ended(world.broker, client.handle));
    pass(&world, 1);
    expect_end(&client);
    assert_int_equal(counters(&world).client_timeouts, 1);
}

static void handshakes_before_it_count_towards_the_time_for_connect(void **state) {
    struct client client;
    struct broker_origin origin = {.from_loopback = true, .address = "127.0.0.1:4711", .waited_ms = 9000};
    (void)state;

    client = (struct client){.world = &world, .version = 4};
    client.handle = broker_client_open(world.broker, world.now, &origin);
    pass(&world, 999);
    client_read(&client);
    assert_false(broker_client_ended(world.broker, client.handle));
    pass(&world, 1);
    expect_end(&client);
    client = (struct client){.world = &world, .version = 4};
    origin.waited_ms = UINT32_MAX;
    client.handle = broker_client_open(world.broker, world.now, &origin);
    pass(&world, 0);
    expect_end(&client);
}

static void silent_client_is_ended_after_one_and_a_half_keep_alive(void **state) {
    struct client client;
    (void)state;

    client_connect_with(&world, &client, 5, &(struct connect){.id = "a", .keep_alive = 10});
    pass(&world, 14000);
    say_hex(&client, "c0 00");
    expect(&client, "pingresp");
    pass(&world, 14999);
    expect_nothing(&client);
    pass(&world, 1);
    expect(&client, "disconnect 8d");
    expect_end(&client);
}

/* MQTT-3.1.2-22 speaks of packets; bytes that never become one keep nobody alive, a long packet on its way does. */
static void keep_alive_counts_packets(void **state) {
    struct client dripping, busy;
    uint8_t piece[1000] = {0};
    (void)state;

    client_connect_with(&world, &dripping, 5, &(struct connect){.id = "a", .keep_alive = 10});
    client_connect_with(&world, &busy, 5, &(struct connect){.id = "b", .keep_alive = 10});
    say_hex(&dripping, "30 30");
    say_hex(&busy, "30 a0 9c 01 00 01 74 00"); /* a publication of 20,000 bytes */
    for (int i = 0; i < 15; i++) {
        pass(&world, 1000);
        if (i < 14) say_hex(&dripping, "00");
        if (i < 14) broker_client_input(world.broker, world.now, busy.handle, piece, sizeof piece);
    }
    expect(&dripping, "disconnect 8d");
    expect_end(&dripping);
    expect_nothing(&busy);
    client_cut(&busy);
}

static void keep_alive_zero_is_never(void **state) {
    struct client client;
    (void)state;

    client_connect(&world, &client, 4, "a");
    assert_true(broker_deadline_ms(world.broker) == UINT64_MAX);
    pass(&world, 1000ull * 3600 * 24 * 365);
    say_hex(&client, "c0 00");
    expect(&client, "pingresp");
    client_cut(&client);
}

static void server_keep_alive_is_told_and_held(void **state) {
    struct client client;
    (void)state;

    world_end(&world);
    world.options.limits.keep_alive_max_s = 20;
    world_begin(&world);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a"});
    expect(&client, "connack present=0 00 21=100 27=16777216 22=32 13=20");
    pass(&world, 30000);
    expect(&client, "disconnect 8d");
    expect_end(&client);
    /* 3.1.1 has no way to tell: the client's own holds, and 0 is never. */
    for (unsigned keep_alive = 0; keep_alive <= 60; keep_alive += 60) {
        client_connect_with(&world, &client, 4, &(struct connect){.id = "a", .keep_alive = keep_alive});
        pass(&world, 89999);
        client_read(&client);
        assert_false(broker_client_ended(world.broker, client.handle));
        client_cut(&client);
    }
}

static uint8_t judge(void *context, const struct broker_applicant *applicant, const char **why) {
    assert_null(*why);
    assert_true(applicant->origin->from_loopback);
    assert_string_equal(context, "judge");
    assert_int_equal(applicant->client_id_size, 1);
    assert_memory_equal(applicant->client_id, "a", 1);
    *why = applicant->user_name == NULL ? "no name" : NULL;
    if (applicant->user_name == NULL) return 0x87;
    return applicant->user_name_size == 1 && applicant->user_name[0] == 'u' && applicant->password != NULL &&
                   applicant->password_size == 2 && memcmp(applicant->password, "pw", 2) == 0
               ? 0
               : 0x86;
}

static void credentials_are_asked_for(void **state) {
    static const struct {
        int version;
        const char *user, *password, *answer;
    } rows[] = {
        {4, "u", "pw", "connack present=0 00"},
        {4, "u", "px", "connack present=0 04"},
        {4, NULL, NULL, "connack present=0 05"},
        {5, "u", "pw", "connack present=0 00*"},
        {5, "u", NULL, "connack present=0 86 1f=user name or password are wrong"},
        {5, NULL, "pw", "connack present=0 87 1f=no name"},
    };
    (void)state;

    world_end(&world);
    world.options.questions.context = "judge";
    world.options.questions.may_connect = judge;
    world_begin(&world);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        client_open(&world, &client, rows[i].version);
        client.tells_reasons = true;
        say_connect(&client, &(struct connect){.id = "a", .user = rows[i].user, .password = rows[i].password});
        expect(&client, rows[i].answer);
        client_cut(&client);
    }
    assert_int_equal(counters(&world).connects_refused, 4);
}

static void handles_are_never_used_twice(void **state) {
    broker_handle seen[64];
    (void)state;

    for (size_t i = 0; i < 64; i++) {
        seen[i] =
            broker_client_open(world.broker, world.now, &(struct broker_origin){.from_loopback = false, .address = ""});
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
        assert_true(broker_client_place(seen[i]) <= i / 3 + 1); /* their places are */
        if (i % 3) broker_client_closed(world.broker, world.now, seen[i]);
    }
    /* A late event for one that is gone does nothing. */
    broker_client_input(world.broker, world.now, seen[1], (const uint8_t *)"\x10", 1);
    broker_client_written(world.broker, world.now, seen[1], 5);
    broker_client_closed(world.broker, world.now, seen[1]);
    assert_true(broker_client_ended(world.broker, seen[1]));
    assert_false(broker_client_ended(world.broker, seen[0]));
}

static void clients_max_is_held(void **state) {
    struct client first, second;
    (void)state;

    world_end(&world);
    world.options.limits.clients_max = 1;
    world_begin(&world);
    client_connect(&world, &first, 4, "a");
    assert_int_equal(
        broker_client_open(world.broker, world.now, &(struct broker_origin){.from_loopback = true, .address = ""}), 0);
    client_cut(&first);
    client_connect(&world, &second, 4, "b");
    client_cut(&second);
}

static void sessions_max_is_held(void **state) {
    struct client first, second;
    (void)state;

    world_end(&world);
    world.options.limits.sessions_max = 1;
    world_begin(&world);
    client_connect(&world, &first, 5, "a");
    client_open(&world, &second, 5);
    say_connect(&second, &(struct connect){.id = "b"});
    expect(&second, "connack present=0 97");
    expect_end(&second);
    client_open(&world, &second, 5);
    say_connect(&second, &(struct connect){.id = "a"});
    expect(&second, "connack present=0 00*");
    client_cut(&first);
    client_cut(&second);
}

static void stop_says_goodbye_without_wills(void **state) {
    struct client old, new, fresh;
    (void)state;

    client_connect_with(&world, &new, 5, &(struct connect){.id = "new", .will_topic = "w", .will_payload = "x"});
    client_connect(&world, &old, 4, "old");
    client_subscribe(&old, "#", 0);
    client_open(&world, &fresh, 4);
    broker_stop(world.broker, world.now);
    expect(&new, "disconnect 8b");
    expect_end(&new);
    expect_end(&old);
    expect_end(&fresh);
    assert_int_equal(
        broker_client_open(world.broker, world.now, &(struct broker_origin){.from_loopback = true, .address = ""}), 0);
}

static void ended_client_is_named_until_its_output_is_gone(void **state) {
    struct client client;
    struct broker_span span;
    broker_handle named;
    (void)state;

    client_connect(&world, &client, 5, "a");
    say_hex(&client, "00 00");
    assert_true(broker_next_client(world.broker, &named));
    assert_true(named == client.handle);
    assert_false(broker_next_client(world.broker, &named));
    assert_true(broker_client_ended(world.broker, client.handle));
    assert_int_equal(broker_client_output(world.broker, client.handle, &span, 1), 1);
    assert_memory_equal(span.bytes, "\xe0\x20\x81", 3);
    broker_client_written(world.broker, world.now, client.handle, span.size);
    assert_true(broker_next_client(world.broker, &named));
    assert_true(named == client.handle);
    assert_int_equal(broker_client_output(world.broker, client.handle, &span, 1), 0);
    client_forget(&client);
}

static void strangers_words_in_notes_are_harmless(void **state) {
    struct client client;
    struct broker_note note;
    (void)state;

    client_connect(&world, &client, 5, "a\nlevel=error\x7f\xc3\xa9");
    say_hex(&client, "00 00");
    assert_true(broker_next_note(world.broker, &note));
    for (const char *at = note.text; *at != '\0'; at++)
        assert_in_range(*at, 0x20, 0x7E);
    assert_false(broker_next_note(world.broker, &note));
    client_cut(&client);
}

static void notes_are_bounded_and_the_rest_is_counted(void **state) {
    struct broker_note note;
    size_t count = 0;
    (void)state;

    for (int i = 0; i < 300; i++) {
        struct client client;
        client_open(&world, &client, 4);
        say_hex(&client, "c0 00");
        expect_end(&client);
    }
    while (broker_next_note(world.broker, &note))
        count++;
    assert_int_equal(count, 128 + 1);
    assert_string_equal(note.text, "172 notes were dropped");
}

static void client_id_has_a_longest(void **state) {
    char id[1026];
    (void)state;

    memset(id, 'i', sizeof id);
    id[1025] = '\0';
    for (int version = 4; version <= 5; version++) {
        struct client client;
        client_open(&world, &client, version);
        say_connect(&client, &(struct connect){.id = id});
        expect(&client, version == 4 ? "connack present=0 02" : "connack present=0 85");
        expect_end(&client);
        client_open(&world, &client, version);
        say_connect(&client, &(struct connect){.id = id + 1});
        expect(&client, "connack present=0 00*");
        client_cut(&client);
    }
}

static void client_that_takes_no_connack_is_ended(void **state) {
    struct client client;
    (void)state;

    /* Nothing is sent: neither what is too large (MQTT-3.1.2-24) nor anything else before CONNACK (MQTT-3.2.0-1). */
    for (unsigned max = 1; max < 15; max++) {
        char properties[16];
        client_open(&world, &client, 5);
        snprintf(properties, sizeof properties, "27 %08x", max);
        say_connect(&client, &(struct connect){.id = "a", .properties = properties, .will_topic = "w"});
        expect_end(&client);
        client_forget(&client);
    }
    assert_int_equal(counters(&world).clients_connected, 0);
    assert_int_equal(counters(&world).publications_received, 0);
}

static void client_that_takes_no_connack_takes_nothing_over(void **state) {
    struct client client, other;
    (void)state;

    client_connect(&world, &client, 5, "a");
    client_open(&world, &other, 5);
    say_connect(&other, &(struct connect){.id = "a", .properties = "27 00000001"});
    expect_end(&other);
    client_forget(&other);
    say_hex(&client, "c000");
    expect(&client, "pingresp");
    client_cut(&client);
}

static void response_information_is_given_to_those_who_ask(void **state) {
    static const struct {
        const char *id, *properties, *found; /* NULL: none */
    } rows[] = {{"a", "19 01", " 1a=response/a/"},     {"a", "19 00", NULL},  {"a", "", NULL},
                {"x/y", "19 01", " 1a=response/x/y/"}, {"a+", "19 01", NULL}, {"", "19 01", " 1a=response/auto"}};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        char got[1024];
        client_open(&world, &client, 5);
        say_connect(&client, &(struct connect){.id = rows[i].id, .properties = rows[i].properties});
        next_packet(&client, got, sizeof got);
        if (rows[i].found != NULL)
            assert_non_null(strstr(got, rows[i].found));
        else
            assert_null(strstr(got, " 1a="));
        client_cut(&client);
    }
}

static void longest_client_id_has_response_information_too(void **state) {
    struct client client;
    char id[1025], got[4096];
    (void)state;

    memset(id, 'i', 1024);
    id[1024] = '\0';
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = id, .properties = "19 01"});
    next_packet(&client, got, sizeof got);
    assert_non_null(strstr(got, "iii/"));
    client_cut(&client);
}

static void reason_strings_help_those_who_want_them(void **state) {
    static const struct {
        const char *connect, *say, *answer;
    } rows[] = {
        {"", "00 00", "disconnect 81 1f=a packet is not well-formed"},
        {"17 01", "00 00", "disconnect 81 1f=a packet is not well-formed"},
        {"17 00", "00 00", "disconnect 81"},       /* MQTT-3.1.2-29 */
        {"27 0000001a", "00 00", "disconnect 81"}, /* MQTT-3.14.2-3 */
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        client_connect_with(&world, &client, 5, &(struct connect){.id = "a", .properties = rows[i].connect});
        client.tells_reasons = true;
        say_hex(&client, rows[i].say);
        expect(&client, rows[i].answer);
        expect_end(&client);
    }
}

static void refusal_says_why(void **state) {
    static const struct {
        const char *properties, *answer;
    } rows[] = {
        {"15 0001 78", "connack present=0 8c 1f=this authentication method is not known here"},
        {"15 0001 78 17 00", "connack present=0 8c"},
        {"15 0001 78 27 00000010", "connack present=0 8c"}, /* MQTT-3.2.2-19 */
        {"16 0001 78", "connack present=0 82 1f=a packet breaks the rules of MQTT"},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        client_open(&world, &client, 5);
        client.tells_reasons = true;
        say_connect(&client, &(struct connect){.id = "a", .properties = rows[i].properties});
        expect(&client, rows[i].answer);
        expect_end(&client);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(v311_client_connects),
        TEST(v5_client_learns_the_capabilities_that_are_not_default),
        TEST(empty_client_id_is_assigned),
        TEST(refusals),
        TEST(second_connect_is_a_protocol_error),
        TEST(auth_without_method_is_refused),
        TEST(no_connect_in_time_ends_the_connection),
        TEST(handshakes_before_it_count_towards_the_time_for_connect),
        TEST(silent_client_is_ended_after_one_and_a_half_keep_alive),
        TEST(keep_alive_counts_packets),
        TEST(keep_alive_zero_is_never),
        TEST(server_keep_alive_is_told_and_held),
        TEST(credentials_are_asked_for),
        TEST(handles_are_never_used_twice),
        TEST(clients_max_is_held),
        TEST(sessions_max_is_held),
        TEST(stop_says_goodbye_without_wills),
        TEST(ended_client_is_named_until_its_output_is_gone),
        TEST(strangers_words_in_notes_are_harmless),
        TEST(notes_are_bounded_and_the_rest_is_counted),
        TEST(client_id_has_a_longest),
        TEST(client_that_takes_no_connack_is_ended),
        TEST(client_that_takes_no_connack_takes_nothing_over),
        TEST(response_information_is_given_to_those_who_ask),
        TEST(longest_client_id_has_response_information_too),
        TEST(reason_strings_help_those_who_want_them),
        TEST(refusal_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
