/* What a CONNECT must look like, field by field, and what becomes of one that does not. */
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

/* The fields that the flags announce must be there, in their order, and no others (MQTT-3.1.2-9 to -21, MQTT-3.1.3-1):
 * 3.1.1 closes without a word, 5.0 says malformed. */
static void fields_are_those_the_flags_announce(void **state) {
    static const struct {
        const char *what;
        unsigned flags;
        const char *payload, *payload_5; /* NULL: the same */
        bool good;
    } rows[] = {
        {"client id alone", 0x02, "0001 61", NULL, true},
        {"no client id", 0x02, "", NULL, false},
        {"client id cut short", 0x02, "0005 61", NULL, false},
        {"client id of invalid UTF-8", 0x02, "0001 ff", NULL, false},
        {"client id with a surrogate", 0x02, "0003 eda080", NULL, false},
        {"will", 0x06, "0001 61 0001 77 0001 78", "0001 61 00 0001 77 0001 78", true},
        {"will with an empty payload", 0x06, "0001 61 0001 77 0000", "0001 61 00 0001 77 0000", true},
        {"will without topic and payload", 0x06, "0001 61", NULL, false},
        {"will without payload", 0x06, "0001 61 0001 77", "0001 61 00 0001 77", false},
        {"will topic of invalid UTF-8", 0x06, "0001 61 0001 c0 0001 78", "0001 61 00 0001 c0 0001 78", false},
        {"will topic with U+0000", 0x06, "0001 61 0001 00 0001 78", "0001 61 00 0001 00 0001 78", false},
        {"will that no flag announces", 0x02, "0001 61 0001 77 0001 78", "0001 61 00 0001 77 0001 78", false},
        {"will QoS 3", 0x1e, "0001 61 0001 77 0001 78", "0001 61 00 0001 77 0001 78", false},
        {"will QoS 1 without will", 0x0a, "0001 61", NULL, false},
        {"will QoS 2 without will", 0x12, "0001 61", NULL, false},
        {"will retain without will", 0x22, "0001 61", NULL, false},
        {"user name", 0x82, "0001 61 0001 75", NULL, true},
        {"no user name", 0x82, "0001 61", NULL, false},
        {"user name that no flag announces", 0x02, "0001 61 0001 75", NULL, false},
        {"user name of invalid UTF-8", 0x82, "0001 61 0002 c3 28", NULL, false},
        {"user name with U+0000", 0x82, "0001 61 0001 00", NULL, false},
        {"user name and password", 0xc2, "0001 61 0001 75 0002 00ff", NULL, true},
        {"no password", 0xc2, "0001 61 0001 75", NULL, false},
        {"password cut short", 0xc2, "0001 61 0001 75 0005 70", NULL, false},
        {"password that no flag announces", 0x82, "0001 61 0001 75 0001 70", NULL, false},
        {"all of it", 0xf6, "0001 61 0001 77 0001 78 0001 75 0001 70", "0001 61 00 0001 77 0001 78 0001 75 0001 70",
         true},
        {"reserved flag", 0x03, "0001 61", NULL, false},
    };
    (void)state;

    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        int version = i % 2 ? 5 : 4;
        const char *payload = version == 5 && rows[i / 2].payload_5 ? rows[i / 2].payload_5 : rows[i / 2].payload;
        struct packet body = {.size = 0}, packet;
        struct client client;
        char got[256];
        put_text(&body, "MQTT");
        put8(&body, (unsigned)version);
        put8(&body, rows[i / 2].flags);
        put16(&body, 0);
        put_properties(&body, version, NULL);
        put_hex(&body, payload);
        packet = packet_of(0x10, &body);
        client_open(&world, &client, version);
        say(&client, &packet);
        next_packet(&client, got, sizeof got);
        if (strncmp(got,
                    rows[i / 2].good ? "connack present=0 00"
                    : version == 5   ? "connack present=0 81"
                                     : "",
                    20) != 0 ||
            broker_client_ended(world.broker, client.handle) == rows[i / 2].good)
            fail_msg("MQTT level %d, %s: '%s'", version, rows[i / 2].what, got);
        client_cut(&client);
    }
    assert_int_equal(counters(&world).sessions, 0);
}

/* MQTT 5.0 needs no user name for a password (section 3.1.2.9), 3.1.1 does (MQTT-3.1.2-22). */
static void password_without_user_name_is_for_v5_only(void **state) {
    struct client client;
    (void)state;

    client_connect_with(&world, &client, 5, &(struct connect){.id = "a", .password = "p"});
    client_cut(&client);
    client_open(&world, &client, 4);
    say_connect(&client, &(struct connect){.id = "a", .password = "p"});
    expect_end(&client);
}

/* MQTT-3.1.3-5. */
static void client_ids_that_every_server_must_take(void **state) {
    static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    (void)state;

    for (size_t size = 1; size <= 23; size++) {
        for (size_t first = 0; first + size < sizeof letters; first += size) {
            char id[24] = "";
            struct client client;
            memcpy(id, letters + first, size);
            client_connect(&world, &client, 4 + (int)(first % 2), id);
            client_cut(&client);
        }
    }
}

/* MQTT-3.1.3-7: the session is that of the assigned id. */
static void assigned_client_id_names_the_session(void **state) {
    struct client client;
    char connack[512], id[64];
    (void)state;

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "", .properties = "11 00000064"});
    next_packet(&client, connack, sizeof connack);
    assert_int_equal(sscanf(strstr(connack, " 12="), " 12=%63s", id), 1);
    client_cut(&client);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = id, .resume = true});
    next_packet(&client, connack, sizeof connack);
    assert_memory_equal(connack, "connack present=1 00", 20);
    assert_null(strstr(connack, " 12=")); /* nothing was assigned this time */
    client_cut(&client);
}

/* MQTT-3.1.4-5 of 3.1.1, MQTT-3.1.4-6 of 5.0. */
static void what_follows_a_refused_connect_is_not_heard(void **state) {
    static const char *const refused[] = {
        "10 0c 0004 4d515454 04 00 0000 0000",                 /* 3.1.1 without id and not clean */
        "10 0e 0004 4d515454 05 03 0000 00 0001 61",           /* reserved flag */
        "10 0e 0004 4d515454 06 02 0000 00 0001 61",           /* level 6 */
        "10 13 0004 4d515454 05 02 0000 05 1500024142 0001 61" /* unknown authentication method */
    };
    struct client watcher;
    (void)state;

    client_connect(&world, &watcher, 4, "watcher");
    client_subscribe(&watcher, "#", 0);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct client client;
        struct packet packet = {.size = 0};
        char got[256];
        put_hex(&packet, refused[i]);
        put_hex(&packet, "30 04 0001 74 00"); /* a publication, in 3.1.1 as in 5.0 */
        put_hex(&packet, "c0 00");
        client_open(&world, &client, i == 0 ? 4 : 5);
        say(&client, &packet);
        next_packet(&client, got, sizeof got);
        assert_memory_equal(got, "connack present=0 ", 18);
        expect_end(&client);
        expect_nothing(&watcher);
    }
    client_cut(&watcher);
}

/* MQTT-3.2.2-6; 3.1.1: MQTT-3.2.2-4. */
static void refusal_says_nothing_of_the_session(void **state) {
    struct client client;
    (void)state;

    client_connect_with(&world, &client, 5, &(struct connect){.id = "a", .properties = "11 00000064"});
    client_cut(&client);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .resume = true, .properties = "21 0000"});
    expect(&client, "connack present=0 82");
    expect_end(&client);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .resume = true});
    expect(&client, "connack present=1 00*");
    client_cut(&client);
}

/* Absent, 0 and its change: without an expiry the session of 5.0 ends with its connection, whatever Clean Start said.
 */
static void session_without_expiry_ends_with_its_connection(void **state) {
    static const char *const properties[] = {NULL, "11 00000000"};
    (void)state;

    for (size_t i = 0; i < 2; i++) {
        struct client client;
        client_open(&world, &client, 5);
        say_connect(&client, &(struct connect){.id = "a", .resume = true, .properties = properties[i]});
        expect(&client, "connack present=0 00*");
        client_cut(&client);
        assert_int_equal(counters(&world).sessions, 0);
    }
}

/* MQTT-3.14.0-1: whatever goes wrong before it. */
static void no_disconnect_comes_before_connack(void **state) {
    static const char *const rows[] = {"e0 00", "e0 01 04",   "f0 00", "30 04 0001 74 00",
                                       "00 00", "10 02 0000", "82 00"};
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        client_open(&world, &client, 5);
        say_hex(&client, rows[i]);
        expect_end(&client);
    }
}

/* MQTT 3.1.1, MQTT-3.1.2-12, whatever the connection ends with. */
static void no_will_is_published_that_was_not_given(void **state) {
    struct client watcher;
    (void)state;

    client_connect(&world, &watcher, 4, "watcher");
    client_subscribe(&watcher, "#", 0);
    for (int i = 0; i < 6; i++) {
        struct client client;
        client_connect_with(&world, &client, 4 + i % 2, &(struct connect){.id = "a", .keep_alive = 10});
        if (i / 2 == 1) say_hex(&client, "00 00");
        if (i / 2 == 2) pass(&world, 15000);
        client_cut(&client);
        expect_nothing(&watcher);
    }
    client_cut(&watcher);
}

/* MQTT 3.1.1, MQTT-3.1.3-6: an id that nobody is told of, and that is nobody else's. */
static void empty_client_id_of_311_is_welcome_when_clean(void **state) {
    struct client first, second;
    (void)state;

    client_connect(&world, &first, 4, "");
    client_connect(&world, &second, 4, "");
    assert_int_equal(counters(&world).sessions, 2);
    say_hex(&first, "c0 00");
    expect(&first, "pingresp");
    client_cut(&first);
    client_cut(&second);
    assert_int_equal(counters(&world).sessions, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(fields_are_those_the_flags_announce),
        TEST(password_without_user_name_is_for_v5_only),
        TEST(client_ids_that_every_server_must_take),
        TEST(assigned_client_id_names_the_session),
        TEST(what_follows_a_refused_connect_is_not_heard),
        TEST(refusal_says_nothing_of_the_session),
        TEST(session_without_expiry_ends_with_its_connection),
        TEST(no_disconnect_comes_before_connack),
        TEST(no_will_is_published_that_was_not_given),
        TEST(empty_client_id_of_311_is_welcome_when_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
