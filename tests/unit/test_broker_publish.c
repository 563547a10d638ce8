#include "broker/federation.h"
#include "two_clients.h"

static void publication_reaches_at_the_lower_qos(void **state) {
    (void)state;
    for (unsigned published = 0; published <= 2; published++) {
        for (unsigned subscribed = 0; subscribed <= 2; subscribed++) {
            unsigned qos = published < subscribed ? published : subscribed;
            char expected[64];
            client_subscribe(&b, "t", subscribed);
            say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = published, .id = 5});
            if (published == 1) expect(&a, "puback 5");
            if (published == 2) {
                expect(&a, "pubrec 5");
                say_ack(&a, 6, 5);
                expect(&a, "pubcomp 5");
            }
            expect_nothing(&a);
            if (qos == 0) {
                expect(&b, "publish q0 t 'x'");
                continue;
            }
            next_packet(&b, expected, sizeof expected);
            unsigned id = 0;
            assert_int_equal(sscanf(expected, qos == 1 ? "publish q1 id=%u t 'x'" : "publish q2 id=%u t 'x'", &id), 1);
            if (qos == 1) {
                say_ack(&b, 4, id);
            } else {
                say_ack(&b, 5, id);
                snprintf(expected, sizeof expected, "pubrel %u", id);
                expect(&b, expected);
                say_ack(&b, 7, id);
            }
            expect_nothing(&b);
        }
    }
}

static void properties_pass_unchanged_and_in_order(void **state) {
    (void)state;
    client_subscribe(&b, "t", 0);
    /* user property k:1, payload format, content type, response topic, correlation data, user property k:2; alias and
     * expiry in between */
    say_publish(
        &a,
        &(struct publish){
            .topic = "t",
            .payload = "x",
            .properties =
                "26 0001 6b 0001 31 01 01 23 0001 03 0001 63 02 0000000a 08 0001 72 09 0001 64 26 0001 6b 0001 32"});
    expect(&b, "publish q0 t 02=10 26=k:1 01=1 03=c 08=r 09=d 26=k:2 'x'");
}

static void v311_receiver_gets_no_properties(void **state) {
    struct client old;
    (void)state;

    client_connect(&world, &old, 4, "old");
    client_subscribe(&old, "t", 0);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .properties = "0101 26 0001 6b 0001 31"});
    expect(&old, "publish q0 t 'x'");
    client_cut(&old);
}

static void repeated_qos2_packet_is_routed_once(void **state) {
    (void)state;
    client_subscribe(&b, "t", 0);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 2, .id = 9});
    expect(&a, "pubrec 9");
    expect(&b, "publish q0 t 'x'");
    for (int dup = 0; dup < 2; dup++) { /* whatever it says of itself, and whatever it has in it */
        say_publish(&a, &(struct publish){.topic = dup ? "t" : "u", .payload = "x", .qos = 2, .id = 9, .dup = dup});
        expect(&a, "pubrec 9");
        expect_nothing(&b);
    }
    say_ack(&a, 6, 9);
    expect(&a, "pubcomp 9");
    say_ack(&a, 6, 9);
    expect(&a, "pubcomp 9 92");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "y", .qos = 2, .id = 9});
    expect(&a, "pubrec 9");
    expect(&b, "publish q0 t 'y'");
}

static void overlapping_subscriptions_give_one_copy_with_all_identifiers(void **state) {
    char got[256];
    (void)state;

    say_subscribe_with(&b, 1, "t/#", 0, "0b 07");
    expect(&b, "suback 1 00");
    say_subscribe_with(&b, 2, "t/+", 2, "0b 8001");
    expect(&b, "suback 2 02");
    say_subscribe_with(&b, 3, "t/x", 1, NULL);
    expect(&b, "suback 3 01");
    say_publish(&a, &(struct publish){.topic = "t/x", .payload = "x", .qos = 2, .id = 1});
    next_packet(&b, got, sizeof got);
    assert_memory_equal(got, "publish q2 id=1 t/x ", 20);
    assert_non_null(strstr(got, " 0b=7"));
    assert_non_null(strstr(got, " 0b=128"));
    expect_nothing(&b);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x"});
    expect(&b, "publish q0 t 0b=7 'x'");
}

static void no_local_keeps_a_clients_own_publications_away(void **state) {
    (void)state;
    client_subscribe(&a, "t", 4);
    client_subscribe(&b, "t", 4);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x"});
    expect(&b, "publish q0 t 'x'");
    expect_nothing(&a);
    client_subscribe(&a, "#", 0);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "y"});
    expect(&a, "publish q0 t 'y'");
    expect_nothing(&a);
}

/* Packets are encoded once and copied for others of their kind: each must be of the right kind. */
static void everybody_gets_his_own_kind_of_packet(void **state) {
    static const struct {
        int version;
        unsigned options;
        const char *identifier, *limit; /* subscription identifier and maximum packet size, as properties */
        const char *expected;
    } kinds[] = {
        {4, 0, NULL, NULL, "publish q0 a/b 'payload'"},
        {5, 0, NULL, NULL, "publish q0 a/b 02=9 09=tag 'payload'"},
        {5, 8, NULL, NULL, "publish retain q0 a/b 02=9 09=tag 'payload'"},
        {5, 0, "0b 05", NULL, "publish q0 a/b 0b=5 02=9 09=tag 'payload'"},
        {5, 8, "0b 06", NULL, "publish retain q0 a/b 0b=6 02=9 09=tag 'payload'"},
        {5, 1, NULL, NULL, "publish q0 a/b 02=9 09=tag 'payload'"},
        {5, 0, NULL, "27 00 00 00 14", ""},
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    struct client clients[2 * KINDS];
    (void)state;

    for (unsigned i = 0; i < 2 * KINDS; i++) {
        char id[] = {(char)('A' + i), '\0'};
        client_connect_with(&world, &clients[i], kinds[i % KINDS].version,
                            &(struct connect){.id = id, .properties = kinds[i % KINDS].limit});
        say_subscribe_with(&clients[i], 1, "a/+", kinds[i % KINDS].options, kinds[i % KINDS].identifier);
        expect(&clients[i], "suback 1 *");
    }
    for (int round = 0; round < 4; round++) {
        say_publish(&a, &(struct publish){.topic = "a/b",
                                          .payload = "payload",
                                          .retain = true,
                                          .properties = "02 00 00 00 09 09 00 03 74 61 67"});
        for (unsigned i = 0; i < 2 * KINDS; i++) {
            char got[256];
            next_packet(&clients[i], got, sizeof got);
            assert_string_equal(got, kinds[i % KINDS].expected);
        }
    }
    for (unsigned i = 0; i < 2 * KINDS; i++)
        client_cut(&clients[i]);
}

static void retain_flag_is_as_published_only_if_asked_for(void **state) {
    struct client old;
    (void)state;

    client_connect(&world, &old, 4, "old");
    client_subscribe(&old, "t", 0);
    client_subscribe(&a, "t", 0);
    client_subscribe(&b, "t", 8);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .retain = true});
    expect(&a, "publish q0 t 'x'");
    expect(&b, "publish retain q0 t 'x'");
    expect(&old, "publish q0 t 'x'");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "y"});
    expect(&b, "publish q0 t 'y'");
    client_cut(&old);
}

static void topic_alias_stands_for_its_topic(void **state) {
    (void)state;
    client_subscribe(&b, "#", 0);
    say_publish(&a, &(struct publish){.topic = "t/1", .payload = "1", .properties = "23 0001"});
    say_publish(&a, &(struct publish){.topic = "", .payload = "2", .properties = "23 0001"});
    say_publish(&a, &(struct publish){.topic = "t/2", .payload = "3", .properties = "23 0001"});
    say_publish(&a, &(struct publish){.topic = "", .payload = "4", .properties = "23 0001"});
    expect(&b, "publish q0 t/1 '1'");
    expect(&b, "publish q0 t/1 '2'");
    expect(&b, "publish q0 t/2 '3'");
    expect(&b, "publish q0 t/2 '4'");
}

static void faulty_publish_ends_its_sender_and_nobody_else(void **state) {
    static const struct {
        const char *what, *hex, *reason;
    } rows[] = {
        {"alias above the maximum", "30 07 0001 74 03 230021", "94"},
        {"alias 0", "30 07 0001 74 03 230000", "94"},
        {"unknown alias", "30 06 0000 03 230002", "82"},
        {"no topic and no alias", "30 03 0000 00", "82"},
        {"wildcard in the topic", "30 04 0001 23 00", "90"},
        {"QoS 3", "36 06 0001 74 0001 00", "81"},
        {"DUP with QoS 0", "38 04 0001 74 00", "81"},
        {"packet id 0", "32 06 0001 74 0000 00", "82"},
        {"subscription identifier", "30 06 0001 74 02 0b01", "82"},
        {"wildcard in the response topic", "30 08 0001 74 04 0800012b", "82"},
        {"payload format 2", "30 06 0001 74 02 0102", "82"},
        {"properties longer than the packet", "30 05 0001 74 7f 00", "81"},
        {"topic longer than the packet", "30 04 0010 74 00", "81"},
        {"topic is no UTF-8", "30 04 0001 ff 00", "81"},
        {"content type is no UTF-8", "30 08 0001 74 04 030001ff", "81"},
        {"PUBACK with flags", "41 02 0001", "81"},
        {"PUBREL without its flag", "60 02 0001", "81"},
        {"PUBACK id 0", "40 02 0000", "82"},
        {"PUBACK with a reason of another packet", "40 03 0001 8e", "82"},
        {"PUBACK too short", "40 01 00", "81"},
        {"server's packet", "d0 00", "82"},
        {"PINGREQ with a body", "c0 01 00", "81"},
        {"reserved type", "00 00", "81"},
    };
    (void)state;

    client_subscribe(&b, "t", 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct client bad;
        char expected[32];
        client_connect(&world, &bad, 5, "bad");
        say_hex(&bad, rows[i].hex);
        snprintf(expected, sizeof expected, "disconnect %s", rows[i].reason);
        client_read(&bad);
        if (!broker_client_ended(world.broker, bad.handle)) fail_msg("accepted: %s", rows[i].what);
        expect(&bad, expected);
        expect_end(&bad);
        say_publish(&a, &(struct publish){.topic = "t", .payload = "x"});
        expect(&b, "publish q0 t 'x'");
    }
    assert_int_equal(counters(&world).protocol_errors, sizeof rows / sizeof rows[0]);
}

static void too_many_open_qos2_publications_are_refused(void **state) {
    (void)state;
    for (unsigned id = 1; id <= 100; id++) {
        say_publish(&a, &(struct publish){.topic = "t", .qos = 2, .id = id});
        expect(&a, "pubrec *");
    }
    /* What is at QoS 0, or no new one, is no more than there may be. */
    client_subscribe(&b, "t", 0);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "zero"});
    expect(&b, "publish q0 t 'zero'");
    say_publish(&a, &(struct publish){.topic = "t", .qos = 2, .id = 7, .dup = true});
    expect(&a, "pubrec 7");
    say_ack(&a, 6, 7);
    expect(&a, "pubcomp 7");
    say_publish(&a, &(struct publish){.topic = "t", .qos = 2, .id = 7});
    expect(&a, "pubrec 7");
    say_publish(&a, &(struct publish){.topic = "t", .qos = 2, .id = 101});
    expect(&a, "disconnect 93");
    expect_end(&a);
}

static void packet_larger_than_we_take_is_refused(void **state) {
    struct client client;
    (void)state;

    client_cut(&a);
    client_cut(&b);
    world_end(&world);
    world.options.limits.packet_size_max = 100;
    world_begin(&world);
    client_connect(&world, &client, 5, "a");
    say_hex(&client, "30 62 0001 74 00");
    expect_nothing(&client);
    client_cut(&client);
    client_connect(&world, &client, 5, "a");
    say_hex(&client, "30 63");
    expect(&client, "disconnect 95");
    expect_end(&client);
}

static void publication_too_large_for_one_client_is_dropped_for_it_alone(void **state) {
    struct client small;
    (void)state;

    client_connect_with(&world, &small, 5, &(struct connect){.id = "small", .properties = "27 00000028"});
    client_subscribe(&small, "t", 1);
    client_subscribe(&b, "t", 1);
    say_publish(
        &a, &(struct publish){.topic = "t", .payload = "0123456789012345678901234567890123456789", .qos = 1, .id = 1});
    expect(&a, "puback 1");
    expect(&b, "publish q1 id=1 t '0123456789012345678901234567890123456789'");
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 1, .id = 2});
    expect(&small, "publish q1 id=2 t 'x'");
    expect_nothing(&small);
    client_cut(&small);
}

static void receive_maximum_of_the_client_is_held(void **state) {
    struct client slow;
    (void)state;

    client_connect_with(&world, &slow, 5, &(struct connect){.id = "slow", .properties = "21 0002"});
    client_subscribe(&slow, "t", 2);
    for (unsigned i = 1; i <= 4; i++)
        say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 2, .id = i});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "zero"});
    expect(&slow, "publish q2 id=1 t 'x'");
    expect(&slow, "publish q2 id=2 t 'x'");
    expect(&slow, "publish q0 t 'zero'");
    expect_nothing(&slow);
    say_ack(&slow, 5, 1);
    expect(&slow, "pubrel 1");
    expect_nothing(&slow);
    say_ack(&slow, 7, 1);
    expect(&slow, "publish q2 id=3 t 'x'");
    expect_nothing(&slow);
    /* Refused with PUBREC: that is the end of it. */
    say_hex(&slow, "50 03 0002 97");
    expect(&slow, "publish q2 id=4 t 'x'");
    client_cut(&slow);
}

static void acknowledgements_out_of_the_blue_are_answered_by_the_letter(void **state) {
    (void)state;
    say_ack(&b, 4, 77);
    say_ack(&b, 7, 77);
    expect_nothing(&b);
    say_ack(&b, 5, 77);
    expect(&b, "pubrel 77 92");
    client_subscribe(&b, "t", 2);
    say_publish(&a, &(struct publish){.topic = "t", .qos = 2, .id = 1});
    expect(&b, "publish q2 id=1 t ''");
    say_ack(&b, 4, 1);
    expect(&b, "disconnect 82");
    expect_end(&b);
}

static void packet_ids_go_round_and_skip_those_in_use(void **state) {
    (void)state;
    client_subscribe(&b, "t", 1);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "kept", .qos = 1, .id = 1});
    expect(&a, "puback 1");
    expect(&b, "publish q1 id=1 t 'kept'");
    for (unsigned i = 2; i <= 65536; i++) {
        say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 1, .id = 1});
        say_ack(&b, 4, i <= 65535 ? i : 2);
        if (i % 1000 == 0 || i > 65534) {
            client_read(&a);
            client_read(&b);
            a.got_at = a.got_size;
            b.got_at = b.got_size;
        }
    }
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .qos = 1, .id = 1});
    expect(&b, "publish q1 id=3 t 'x'");
    assert_int_equal(counters(&world).protocol_errors, 0);
}

/* Whoever is there gets it at once, whatever the QoS; nobody gets it later. */
static void expiry_of_0_is_for_those_who_are_there(void **state) {
    struct client away;
    (void)state;

    client_connect_with(&world, &away, 5, &(struct connect){.id = "away", .properties = "11 00000064"});
    client_subscribe(&away, "t", 2);
    client_cut(&away);
    client_subscribe(&b, "t", 2);
    for (unsigned qos = 0; qos < 3; qos++) {
        static const char *const expected[] = {"publish q0 t 02=0 'x'", "publish q1 id=1 t 02=0 'x'",
                                               "publish q2 id=2 t 02=0 'x'"};
        say_publish(
            &a, &(struct publish){
                    .topic = "t", .payload = "x", .qos = qos, .id = qos, .retain = true, .properties = "02 00000000"});
        expect(&b, expected[qos]);
    }
    pass(&world, 1);
    client_connect_with(&world, &away, 5, &(struct connect){.id = "away", .resume = true});
    expect_nothing(&away);
    say_subscribe(&away, 1, "t", 0);
    expect(&away, "suback 1 00");
    expect_nothing(&away);
    client_cut(&away);
}

static void expired_while_queued_is_dropped_and_time_left_is_sent_on(void **state) {
    struct client slow;
    (void)state;

    client_connect_with(&world, &slow, 5, &(struct connect){.id = "slow", .properties = "21 0001"});
    client_subscribe(&slow, "t", 1);
    say_publish(&a, &(struct publish){.topic = "t", .payload = "1", .qos = 1, .id = 1, .properties = "02 0000000a"});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "2", .qos = 1, .id = 2, .properties = "02 00000005"});
    say_publish(&a, &(struct publish){.topic = "t", .payload = "3", .qos = 1, .id = 3, .properties = "02 0000000a"});
    expect(&slow, "publish q1 id=1 t 02=10 '1'");
    pass(&world, 5001);
    say_ack(&slow, 4, 1);
    expect(&slow, "publish q1 id=2 t 02=5 '3'");
    client_cut(&slow);
}

/* MQTT-3.3.2-6: every number of 32 bits is an interval, and the largest no "never". */
static void longest_expiry_is_sent_on_like_any_other(void **state) {
    static const char *const expected[] = {"publish q0 t 02=4294967295 'x'", "publish q1 id=1 t 02=4294967295 'x'",
                                           "publish q2 id=2 t 02=4294967295 'x'"};
    (void)state;

    client_subscribe(&b, "t", 2);
    for (unsigned qos = 0; qos < 3; qos++) {
        say_publish(
            &a, &(struct publish){
                    .topic = "t", .payload = "x", .qos = qos, .id = qos, .retain = true, .properties = "02 ffffffff"});
        expect(&b, expected[qos]);
    }
    pass(&world, 2000);
    say_unsubscribe(&b, 1, "t");
    expect(&b, "unsuback 1 00");
    say_subscribe(&b, 1, "t", 0);
    expect(&b, "suback 1 00");
    expect(&b, "publish retain q0 t 02=4294967293 'x'");
}

static void qos0_is_dropped_and_counted_when_a_client_does_not_read(void **state) {
    char payload[4001];
    (void)state;

    memset(payload, 'x', 4000);
    payload[4000] = '\0';
    client_subscribe(&b, "t", 1);
    b.unread = true;
    for (int i = 0; i < 1200; i++)
        say_publish(&a, &(struct publish){.topic = "t", .payload = payload});
    assert_in_range(counters(&world).dropped_qos0, 100, 200);
    /* QoS 1 waits instead. */
    say_publish(&a, &(struct publish){.topic = "t", .payload = "kept", .qos = 1, .id = 1});
    assert_int_equal(counters(&world).dropped_queue_full, 0);
    b.unread = false;
    for (uint64_t i = counters(&world).dropped_qos0; i < 1200; i++)
        expect(&b, "publish q0 t 'xxxxxxxxxx...4000'");
    expect(&b, "publish q1 id=1 t 'kept'");
}

static void client_that_asks_and_never_reads_is_ended(void **state) {
    struct packet pings = {.size = 0};
    (void)state;

    client_cut(&a);
    client_cut(&b);
    world_end(&world);
    world.options.limits.output_bytes_max = 10000;
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    a.unread = true;
    for (int i = 0; i < 4000; i++)
        put_hex(&pings, "c000");
    for (int i = 0; i < 4; i++)
        say(&a, &pings);
    assert_true(broker_client_ended(world.broker, a.handle));
    client_forget(&a);
}

static void publication_from_a_peer_goes_to_sessions_and_is_retained_by_its_stamp(void **state) {
    struct message template = {.qos = 1,
                               .retain = true,
                               .topic = "t",
                               .topic_size = 1,
                               .payload = (const uint8_t *)"x",
                               .payload_size = 1,
                               .expires_at_ms = UINT64_MAX,
                               .stamp = {.wall_ms = 5000}};
    struct message *message = message_new(&template);
    struct message *older;
    (void)state;

    client_subscribe(&b, "t", 1);
    broker_deliver_from_peer(world.broker, world.now, message, NULL);
    expect(&b, "publish q1 id=1 t 'x'");
    template.payload = (const uint8_t *)"o";
    template.stamp.wall_ms = 4000;
    older = message_new(&template);
    broker_deliver_from_peer(world.broker, world.now, older, NULL);
    expect(&b, "publish q1 id=2 t 'o'");
    say_subscribe(&a, 1, "t", 0);
    expect(&a, "suback 1 00");
    expect(&a, "publish retain q0 t 'x'");
    /* A snapshot's message is news only if it is newer. */
    broker_merge_retained(world.broker, world.now, older);
    expect_nothing(&b);
    template.payload = (const uint8_t *)"n";
    template.stamp.wall_ms = 6000;
    message_unref(older);
    older = message_new(&template);
    broker_merge_retained(world.broker, world.now, older);
    expect(&b, "publish q1 id=3 t 'n'");
    /* What is retained here from now on is newer than what was seen. */
    say_publish(&a, &(struct publish){.topic = "t", .payload = "here", .retain = true});
    broker_merge_retained(world.broker, world.now, older);
    say_subscribe(&b, 1, "t", 0);
    expect(&b, "publish q0 t 'here'");
    expect(&b, "suback 1 00");
    expect(&b, "publish retain q0 t 'here'");
    message_unref(message);
    message_unref(older);
}

static void full_retained_store_is_noted_and_the_publication_delivered(void **state) {
    struct broker_note note;
    (void)state;

    client_cut(&a);
    client_cut(&b);
    world_end(&world);
    world.options.limits.retained_messages_max = 1;
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    client_connect(&world, &b, 5, "b");
    client_subscribe(&b, "#", 0);
    say_publish(&a, &(struct publish){.topic = "1", .payload = "x", .retain = true});
    say_publish(&a, &(struct publish){.topic = "2", .payload = "x", .retain = true});
    expect(&b, "publish q0 1 'x'");
    expect(&b, "publish q0 2 'x'");
    assert_int_equal(counters(&world).retained_messages, 1);
    assert_true(broker_next_note(world.broker, &note));
    assert_string_equal(note.text, "limits.retained_messages_max is reached: not retained: topic '2'");
    assert_int_equal(note.level, BROKER_NOTE_WARNING);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_a_b, end)
    const struct CMUnitTest tests[] = {
        TEST(publication_reaches_at_the_lower_qos),
        TEST(properties_pass_unchanged_and_in_order),
        TEST(v311_receiver_gets_no_properties),
        TEST(repeated_qos2_packet_is_routed_once),
        TEST(overlapping_subscriptions_give_one_copy_with_all_identifiers),
        TEST(no_local_keeps_a_clients_own_publications_away),
        TEST(everybody_gets_his_own_kind_of_packet),
        TEST(retain_flag_is_as_published_only_if_asked_for),
        TEST(topic_alias_stands_for_its_topic),
        TEST(faulty_publish_ends_its_sender_and_nobody_else),
        TEST(too_many_open_qos2_publications_are_refused),
        TEST(packet_larger_than_we_take_is_refused),
        TEST(publication_too_large_for_one_client_is_dropped_for_it_alone),
        TEST(receive_maximum_of_the_client_is_held),
        TEST(acknowledgements_out_of_the_blue_are_answered_by_the_letter),
        TEST(packet_ids_go_round_and_skip_those_in_use),
        TEST(expiry_of_0_is_for_those_who_are_there),
        TEST(expired_while_queued_is_dropped_and_time_left_is_sent_on),
        TEST(longest_expiry_is_sent_on_like_any_other),
        TEST(qos0_is_dropped_and_counted_when_a_client_does_not_read),
        TEST(client_that_asks_and_never_reads_is_ended),
        TEST(full_retained_store_is_noted_and_the_publication_delivered),
        TEST(publication_from_a_peer_goes_to_sessions_and_is_retained_by_its_stamp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
