/* Enhanced authentication (MQTT 5.0 section 4.12) and whose session it is.
 *
 * The method of these tests, COUNT, asks for numbers: the client must answer each with the next one, `steps` times.
 * Data is text. */
#include "mqtt_client.h"

static struct world world;

static struct {
    int steps;          /* questions before the client is believed; the first word may already come with CONNECT */
    bool ends_silently; /* no data with the last word */
    char saw[512];      /* what the method was told of the applicant, last */
    int calls;
} method;

static void authenticate(void *context, const struct broker_applicant *applicant, struct broker_auth_step *step) {
    char said[32] = "";
    (void)context;

    method.calls++;
    snprintf(method.saw, sizeof method.saw, "id=%.*s user=%.*s from=%s again=%d data=%.*s",
             (int)applicant->client_id_size, applicant->client_id ? applicant->client_id : "",
             (int)applicant->user_name_size, applicant->user_name ? applicant->user_name : "",
             applicant->origin->address, step->again, (int)step->data_size, step->data ? (const char *)step->data : "");
    if (step->method_size != 5 || memcmp(step->method, "COUNT", 5) != 0) {
        step->reason = 0x8C;
        return;
    }
    snprintf(said, sizeof said, "%.*s", (int)step->data_size, step->data ? (const char *)step->data : "");
    if (step->state > 0 && strtoull(said, NULL, 10) != step->state) {
        step->reason = strcmp(said, "9") == 0 ? 0x86 : 0x80;
        return;
    }
    if (step->state == (uint64_t)method.steps) {
        step->reason = 0x00;
        if (!method.ends_silently) step->answer_size = (size_t)sprintf((char *)step->answer, "well done");
        return;
    }
    step->state++;
    step->reason = 0x18;
    step->answer_size = (size_t)sprintf((char *)step->answer, "%d", (int)step->state - 1);
}

static int begin(void **state) {
    (void)state;
    memset(&method, 0, sizeof method);
    method.steps = 2;
    world.options.questions.authenticate = authenticate;
    world_begin(&world);
    return 0;
}

static int end(void **state) {
    (void)state;
    world_end(&world);
    return 0;
}

/* AUTH with this reason and these properties in hex. */
static void say_auth(struct client *client, unsigned reason, const char *properties) {
    struct packet body = {.size = 0}, packet;

    put8(&body, reason);
    put_properties(&body, 5, properties);
    packet = packet_of(0xF0, &body);
    say(client, &packet);
}

#define COUNT "15 0005 434f554e54"
#define ONE " 16 0001 31"
#define TWO " 16 0001 32"
#define NINE " 16 0001 39"

static void begin_exchange(struct client *client) {
    client_open(&world, client, 5);
    say_connect(client, &(struct connect){.id = "a", .user = "me", .properties = COUNT});
    expect(client, "auth 18 15=COUNT 16=0");
}

static void let_in(struct client *client) {
    begin_exchange(client);
    say_auth(client, 0x18, COUNT ONE);
    expect(client, "auth 18 15=COUNT 16=1");
    say_auth(client, 0x18, COUNT TWO);
    expect(client, "connack present=0 00 21=100*");
}

static void without_a_method_of_ours_it_is_refused(void **state) {
    struct client client;
    (void)state;

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .properties = "15 0003 4a5754"});
    expect(&client, "connack present=0 8c");
    expect_end(&client);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .properties = "15 0000"});
    expect(&client, "connack present=0 8c");
    expect_end(&client);
    assert_int_equal(counters(&world).connects_refused, 2);
}

static void broker_without_any_method_refuses_all(void **state) {
    struct client client;
    struct broker_options options = world.options;
    (void)state;

    world_end(&world);
    world.options = options;
    world.options.questions.authenticate = NULL;
    world_begin(&world);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .properties = COUNT});
    expect(&client, "connack present=0 8c");
    expect_end(&client);
}

static void method_longer_than_any_is_refused(void **state) {
    struct client client;
    char properties[1024] = "15 0100";
    (void)state;

    for (int i = 0; i < 256; i++)
        strcat(properties, "41");
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .properties = properties});
    expect(&client, "connack present=0 8c");
    expect_end(&client);
    assert_int_equal(method.calls, 0);
}

static void exchange_of_several_steps_lets_in(void **state) {
    struct client client;
    char got[512];
    (void)state;

    begin_exchange(&client);
    assert_string_equal(method.saw, "id=a user=me from=127.0.0.1:4711 again=0 data=");
    assert_int_equal(counters(&world).clients_connected, 0);
    say_auth(&client, 0x18, COUNT ONE);
    assert_string_equal(method.saw, "id=a user=me from=127.0.0.1:4711 again=0 data=1");
    expect(&client, "auth 18 15=COUNT 16=1");
    say_auth(&client, 0x18, TWO COUNT); /* properties in any order */
    next_packet(&client, got, sizeof got);
    assert_memory_equal(got, "connack present=0 00", 20);
    assert_non_null(strstr(got, " 15=COUNT 16=well done"));
    say_hex(&client, "c000");
    expect(&client, "pingresp");
    assert_int_equal(counters(&world).clients_connected, 1);
    client_cut(&client);
}

static void one_step_is_enough_if_the_method_says_so(void **state) {
    struct client client;
    char got[512];
    (void)state;

    method.steps = 0;
    method.ends_silently = true;
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "", .properties = COUNT ONE});
    next_packet(&client, got, sizeof got);
    assert_memory_equal(got, "connack present=0 00", 20);
    assert_non_null(strstr(got, " 15=COUNT")); /* MQTT-4.12.0-5 */
    assert_null(strstr(got, " 16="));
    assert_non_null(strstr(got, " 12=auto"));
    client_cut(&client);
}

static void wrong_answer_is_refused_with_the_reason_of_the_method(void **state) {
    struct client client;
    (void)state;

    begin_exchange(&client);
    say_auth(&client, 0x18, COUNT NINE);
    expect(&client, "connack present=0 86");
    expect_end(&client);
    assert_int_equal(counters(&world).sessions, 0);
}

/* MQTT-3.1.2-30, MQTT-4.12.0-3, MQTT-4.12.0-5; section 3.15. */
static void what_is_not_in_place_ends_the_exchange(void **state) {
    static const struct {
        const char *what, *hex, *answer;
    } rows[] = {
        {"PINGREQ", "c0 00", "connack present=0 82"},
        {"PUBLISH", "30 04 0001 74 00", "connack present=0 82"},
        {"CONNECT", "10 0e 0004 4d515454 05 02 0000 00 0001 61", "connack present=0 82"},
        {"AUTH of success", "f0 0a 00 08 " COUNT, "connack present=0 82"},
        {"AUTH of re-authentication", "f0 0a 19 08 " COUNT, "connack present=0 82"},
        {"AUTH without method", "f0 02 18 00", "connack present=0 82"},
        {"AUTH without anything", "f0 00", "connack present=0 82"},
        {"AUTH with another method", "f0 08 18 06 15 0003 4a5754", "connack present=0 8c"},
        {"AUTH with flags", "f1 0a 18 08 " COUNT, "connack present=0 81"},
        {"AUTH with two methods", "f0 12 18 10 " COUNT COUNT, "connack present=0 82"},
        {"AUTH with a property of others", "f0 0c 18 0a " COUNT " 01 01", "connack present=0 81"},
        {"AUTH with more behind", "f0 0b 18 08 " COUNT "00", "connack present=0 81"},
        {"AUTH with an unknown reason", "f0 0a 17 08 " COUNT, "connack present=0 82"},
        {"DISCONNECT", "e0 00", ""},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        begin_exchange(&client);
        say_hex(&client, rows[i].hex);
        if (rows[i].answer[0] != '\0') expect(&client, rows[i].answer);
        client_read(&client);
        if (!broker_client_ended(world.broker, client.handle)) fail_msg("not ended: %s", rows[i].what);
        expect_end(&client);
    }
    assert_int_equal(counters(&world).connects_accepted, 0);
    assert_int_equal(counters(&world).sessions, 0);
}

static void exchange_that_takes_too_long_is_closed(void **state) {
    struct client client;
    (void)state;

    begin_exchange(&client);
    pass(&world, 6000);
    say_auth(&client, 0x18, COUNT ONE); /* no step gives more time */
    expect(&client, "auth 18 15=COUNT 16=1");
    pass(&world, 3999);
    expect_nothing(&client);
    pass(&world, 1);
    expect_end(&client);
}

static void client_that_goes_in_the_midst_leaves_nothing(void **state) {
    struct client client;
    (void)state;

    begin_exchange(&client);
    client_cut(&client);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "w", .will_topic = "t", .will_payload = "x", .properties = COUNT});
    expect(&client, "auth 18 15=COUNT 16=0");
    client_cut(&client);
    assert_int_equal(counters(&world).sessions, 0);
    assert_int_equal(counters(&world).publications_received, 0);
}

static void what_connect_said_holds_after_the_exchange(void **state) {
    struct client client, watcher;
    (void)state;

    client_connect(&world, &watcher, 4, "watcher");
    client_subscribe(&watcher, "will/#", 0);
    client_open(&world, &client, 5);
    say_connect(
        &client,
        &(struct connect){
            .id = "w", .keep_alive = 10, .will_topic = "will/w", .will_payload = "gone", .properties = COUNT " 17 00"});
    expect(&client, "auth 18 15=COUNT 16=0");
    say_auth(&client, 0x18, COUNT ONE);
    expect(&client, "auth 18*");
    say_auth(&client, 0x18, COUNT TWO);
    expect(&client, "connack present=0 00*");
    pass(&world, 15000);
    client.tells_reasons = true;
    expect(&client, "disconnect 8d");
    expect_end(&client);
    expect(&watcher, "publish q0 will/w 'gone'");
    client_cut(&watcher);
}

static void client_that_cannot_take_the_question_is_refused(void **state) {
    struct client client;
    (void)state;

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .properties = COUNT " 27 0000000a"});
    expect(&client, "connack present=0 95");
    expect_end(&client);
}

static void connects_that_wait_for_their_exchange_share_the_room_for_partial_packets(void **state) {
    struct client clients[3];
    char password[6001];
    (void)state;

    memset(password, 'p', 6000);
    password[6000] = '\0';
    world_end(&world);
    world.options.questions.authenticate = authenticate;
    world.options.limits.partial_bytes_max = 15000;
    world_begin(&world);
    for (int i = 0; i < 3; i++) {
        const char id[] = {(char)('a' + i), '\0'};
        client_open(&world, &clients[i], 5);
        say_connect(&clients[i], &(struct connect){.id = id, .password = password, .properties = COUNT});
        expect(&clients[i], "auth 18 15=COUNT 16=0");
    }
    expect_end(&clients[0]); /* it has waited longest */
    say_auth(&clients[2], 0x18, COUNT ONE);
    expect(&clients[2], "auth 18 15=COUNT 16=1");
    assert_int_equal(counters(&world).at_limit[BROKER_AT_PARTIAL_BYTES_MAX], 1);
    client_cut(&clients[1]);
    client_cut(&clients[2]);
}

static void a_connect_that_has_no_room_to_wait_is_closed(void **state) {
    struct client client;
    char password[6001];
    (void)state;

    memset(password, 'p', 6000);
    password[6000] = '\0';
    world_end(&world);
    world.options.questions.authenticate = authenticate;
    world.options.limits.partial_bytes_max = 1;
    world_begin(&world);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "a", .password = password, .properties = COUNT});
    expect_end(&client);
    assert_int_equal(method.calls, 0);
}

static void two_exchanges_at_once_are_apart(void **state) {
    struct client one, two;
    (void)state;

    begin_exchange(&one);
    client_open(&world, &two, 5);
    say_connect(&two, &(struct connect){.id = "b", .properties = COUNT});
    expect(&two, "auth 18 15=COUNT 16=0");
    say_auth(&one, 0x18, COUNT ONE);
    say_auth(&two, 0x18, COUNT ONE);
    say_auth(&one, 0x18, COUNT TWO);
    say_auth(&two, 0x18, COUNT NINE);
    expect(&one, "auth 18 15=COUNT 16=1");
    expect(&two, "auth 18 15=COUNT 16=1");
    expect(&one, "connack present=0 00*");
    expect(&two, "connack present=0 86");
    expect_end(&two);
    client_cut(&one);
}

/* ---- again, while connected ---- */

static void client_authenticates_again_and_goes_on_meanwhile(void **state) {
    struct client client;
    (void)state;

    let_in(&client);
    client_subscribe(&client, "t", 0);
    for (int i = 0; i < 2; i++) {
        say_auth(&client, 0x19, COUNT);
        assert_string_equal(method.saw, "id=a user= from=127.0.0.1:4711 again=1 data=");
        expect(&client, "auth 18 15=COUNT 16=0");
        say_publish(&client, &(struct publish){.topic = "t", .payload = "x"}); /* section 4.12.1 */
        expect(&client, "publish q0 t 'x'");
        say_auth(&client, 0x18, COUNT ONE);
        expect(&client, "auth 18 15=COUNT 16=1");
        say_auth(&client, 0x18, COUNT TWO);
        expect(&client, "auth 00 15=COUNT 16=well done");
    }
    pass(&world, 1000000);
    say_hex(&client, "c000");
    expect(&client, "pingresp");
    client_cut(&client);
}

static void failed_again_is_disconnected(void **state) {
    struct client client;
    (void)state;

    let_in(&client);
    client.tells_reasons = true;
    say_auth(&client, 0x19, COUNT);
    expect(&client, "auth 18*");
    say_auth(&client, 0x18, COUNT NINE);
    expect(&client, "disconnect 86 1f=re-authentication has failed"); /* section 4.12.1 */
    expect_end(&client);
    let_in(&client);
    say_auth(&client, 0x19, COUNT);
    expect(&client, "auth 18*");
    say_auth(&client, 0x18, COUNT TWO);
    expect(&client, "disconnect 80"); /* the first of the reasons that refuse */
    expect_end(&client);
    assert_int_equal(counters(&world).reauthentications_refused, 2);
}

static void again_too_slow_is_disconnected(void **state) {
    (void)state;
    for (unsigned keep_alive = 0; keep_alive < 100; keep_alive += 60) {
        struct client client;
        client_open(&world, &client, 5);
        say_connect(&client, &(struct connect){.id = "a", .keep_alive = keep_alive, .properties = COUNT});
        say_auth(&client, 0x18, COUNT ONE);
        say_auth(&client, 0x18, COUNT TWO);
        expect(&client, "auth 18*");
        expect(&client, "auth 18*");
        expect(&client, "connack*");
        pass(&world, 5000);
        say_auth(&client, 0x19, COUNT);
        expect(&client, "auth 18*");
        pass(&world, 9999);
        expect_nothing(&client);
        pass(&world, 1);
        expect(&client, "disconnect 87");
        expect_end(&client);
    }
}

static void faults_while_connected(void **state) {
    static const struct {
        const char *hex, *answer;
    } rows[] = {
        {"f0 0a 18 08 " COUNT, "disconnect 82"},         /* nothing was asked */
        {"f0 0a 00 08 " COUNT, "disconnect 82"},         /* a client confirms nothing */
        {"f0 08 19 06 15 0003 4a5754", "disconnect 8c"}, /* MQTT-4.12.1-1 */
        {"f0 02 19 00", "disconnect 82"},
        {"f1 0a 19 08 " COUNT, "disconnect 81"},
        {"f0 0a 19 08 " COUNT "f0 0a 19 08 " COUNT, "auth 18*"}, /* begun twice */
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client client;
        let_in(&client);
        say_hex(&client, rows[i].hex);
        expect(&client, rows[i].answer);
        if (strncmp(rows[i].answer, "auth", 4) == 0) expect(&client, "disconnect 82");
        expect_end(&client);
    }
}

static void auth_of_one_without_method_is_a_fault(void **state) {
    struct client client;
    (void)state;

    client_connect(&world, &client, 5, "a");
    say_auth(&client, 0x19, COUNT); /* MQTT-4.12.0-6 */
    expect(&client, "disconnect 82");
    expect_end(&client);
    client_connect(&world, &client, 4, "a");
    say_auth(&client, 0x19, COUNT);
    expect_end(&client);
    assert_int_equal(method.calls, 0);
}

/* ---- whose session it is ---- */

static void open_as(struct client *client, const char *certificate_name) {
    struct broker_origin origin = {.address = "192.0.2.1:1", .certificate_name = certificate_name};

    *client = (struct client){.world = &world, .version = 5};
    client->handle = broker_client_open(world.broker, world.now, &origin);
    assert_int_not_equal(client->handle, 0);
}

static void session_belongs_to_the_name_in_the_certificate(void **state) {
    static const struct {
        const char *name, *answer;
    } rows[] = {{"pump-2", "connack present=0 87 1f=this client id belongs to somebody else"},
                {"pump-", "connack present=0 87*"},
                {"pump-11", "connack present=0 87*"},
                {NULL, "connack present=0 87*"},
                {"pump-1", "connack present=1 00*"}};
    struct client owner, other;
    (void)state;

    open_as(&owner, "pump-1");
    say_connect(&owner, &(struct connect){.id = "a", .properties = "11 00000064"});
    expect(&owner, "connack present=0 00*");
    client_subscribe(&owner, "t", 1);
    for (int connected = 1; connected >= 0; connected--) {
        for (size_t i = 0; i < 4 + (connected == 0); i++) {
            for (int resume = 1; resume >= 0; resume--) {
                if (i == 4 && !resume) continue;
                open_as(&other, rows[i].name);
                other.tells_reasons = true;
                say_connect(&other, &(struct connect){.id = "a", .resume = resume});
                expect(&other, rows[i].answer);
                client_cut(&other);
            }
        }
        if (!connected) continue;
        say_hex(&owner, "c000");
        expect(&owner, "pingresp");
        client_cut(&owner);
    }
}

static void holder_of_a_certificate_takes_an_id_from_nobody_but_not_his_subscriptions(void **state) {
    struct client nobody, owner;
    (void)state;

    client_connect_with(&world, &nobody, 5, &(struct connect){.id = "a", .properties = "11 00000064"});
    client_subscribe(&nobody, "t", 1);
    open_as(&owner, "pump-1");
    say_connect(&owner, &(struct connect){.id = "a", .resume = true, .properties = "11 00000064"});
    expect(&owner, "connack present=0 00*");
    expect(&nobody, "disconnect 8e");
    expect_end(&nobody);
    say_publish(&owner, &(struct publish){.topic = "t"});
    expect_nothing(&owner);
    client_cut(&owner);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(without_a_method_of_ours_it_is_refused),
        TEST(broker_without_any_method_refuses_all),
        TEST(method_longer_than_any_is_refused),
        TEST(exchange_of_several_steps_lets_in),
        TEST(one_step_is_enough_if_the_method_says_so),
        TEST(wrong_answer_is_refused_with_the_reason_of_the_method),
        TEST(what_is_not_in_place_ends_the_exchange),
        TEST(exchange_that_takes_too_long_is_closed),
        TEST(client_that_goes_in_the_midst_leaves_nothing),
        TEST(what_connect_said_holds_after_the_exchange),
        TEST(client_that_cannot_take_the_question_is_refused),
        TEST(connects_that_wait_for_their_exchange_share_the_room_for_partial_packets),
        TEST(a_connect_that_has_no_room_to_wait_is_closed),
        TEST(two_exchanges_at_once_are_apart),
        TEST(client_authenticates_again_and_goes_on_meanwhile),
        TEST(failed_again_is_disconnected),
        TEST(again_too_slow_is_disconnected),
        TEST(faults_while_connected),
        TEST(auth_of_one_without_method_is_a_fault),
        TEST(session_belongs_to_the_name_in_the_certificate),
        TEST(holder_of_a_certificate_takes_an_id_from_nobody_but_not_his_subscriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
