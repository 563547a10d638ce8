#include "broker/federation.h"
#include "broker/peering.h"
#include "two_clients.h"

static void suback_has_a_code_for_each_filter(void **state) {
    (void)state;
    /* a QoS 0, $share without a filter, b/# QoS 2 */
    say_hex(&a, "82 19 0007 00 0001 61 00 0009 2473686172652f672f 01 0003 622f23 02");
    expect(&a, "suback 7 00 8f 02");
    say_hex(&b, "82 18 0007 0001 61 00 0009 2473686172652f672f 01 0003 622f23 02");
    expect(&b, "suback 7 00 80 02");
    assert_int_equal(counters(&world).subscriptions, 4);
}

static void unsuback_says_what_there_was(void **state) {
    (void)state;
    client_subscribe(&a, "x", 0);
    client_subscribe(&b, "x", 0);
    say_hex(&a, "a2 09 0008 00 0001 78 0001 79");
    expect(&a, "unsuback 8 00 11");
    say_unsubscribe(&b, 9, "x");
    expect(&b, "unsuback 9");
    say_publish(&a, &(struct publish){.topic = "x"});
    expect_nothing(&a);
    expect_nothing(&b);
    assert_int_equal(counters(&world).subscriptions, 0);
}

static void faulty_subscribe_ends_the_connection(void **state) {
    static const struct {
        const char *what, *hex, *reason;
    } rows[] = {
        {"no filter", "82 03 0001 00", "82"},
        {"no filter to unsubscribe", "a2 03 0001 00", "82"},
        {"packet id 0", "82 07 0000 00 0001 61 00", "82"},
        {"QoS 3", "82 07 0001 00 0001 61 03", "81"},
        {"reserved option", "82 07 0001 00 0001 61 40", "81"},
        {"retain handling 3", "82 07 0001 00 0001 61 30", "82"},
        {"flags", "80 07 0001 00 0001 61 00", "81"},
        {"no options", "82 06 0001 00 0001 61", "81"},
        {"empty filter", "82 06 0001 00 0000 00", "81"},
        {"misplaced #", "82 09 0001 00 0003 232f61 00", "81"},
        {"misplaced +", "82 08 0001 00 0002 612b 00", "81"},
        {"no UTF-8", "82 07 0001 00 0001 ff 00", "81"},
        {"no local on a shared subscription", "82 10 0001 00 000a 2473686172652f672f61 04", "82"},
        {"identifier 0", "82 09 0001 02 0b00 0001 61 00", "82"},
        {"identifier twice", "82 0b 0001 04 0b010b01 0001 61 00", "82"},
        {"empty filter to unsubscribe", "a2 08 0001 00 0001 61 0000", "81"},
        {"misplaced # to unsubscribe", "a2 0b 0001 00 0001 61 0003 232f61", "81"},
        {"misplaced + to unsubscribe", "a2 0a 0001 00 0001 61 0002 612b", "81"},
        {"no UTF-8 to unsubscribe", "a2 09 0001 00 0001 61 0001 ff", "81"},
        {"identifier in UNSUBSCRIBE", "a2 08 0001 02 0b01 0001 61", "81"},
    };
    (void)state;

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
    }
    assert_int_equal(counters(&world).subscriptions, 0);
    say_hex(&b, "82 06 0001 0001 61 04"); /* an option of 5.0 */
    expect_end(&b);
}

static void filter_deeper_than_we_take_is_refused_by_its_code(void **state) {
    char filter[201];
    (void)state;

    memset(filter, '/', 200);
    filter[200] = '\0';
    say_subscribe(&a, 1, filter, 0);
    expect(&a, "suback 1 8f");
    say_subscribe(&b, 1, filter, 0);
    expect(&b, "suback 1 80");
}

static void subscriptions_per_client_are_bounded(void **state) {
    struct client client;
    (void)state;

    client_cut(&a);
    client_cut(&b);
    world_end(&world);
    world.options.limits.subscriptions_per_client = 2;
    world_begin(&world);
    client_connect(&world, &client, 5, "a");
    client_subscribe(&client, "1", 0);
    client_subscribe(&client, "2", 0);
    say_subscribe(&client, 3, "3", 0);
    expect(&client, "suback 3 97");
    client_subscribe(&client, "2", 1);
    say_unsubscribe(&client, 4, "1");
    expect(&client, "unsuback 4 00");
    client_subscribe(&client, "3", 0);
    client_cut(&client);
}

/* A packet of 16 MiB could otherwise name millions of filters, at a hundred times the cost of their bytes. */
static void packet_with_more_filters_than_anyone_may_hold_is_refused(void **state) {
    (void)state;
    for (unsigned count = 65535; count <= 65536; count++) {
        struct client client;
        size_t rest = 3 + count * 3, at = 0;
        uint8_t *bytes = malloc(5 + rest);
        const uint8_t head[] = {0xA2, (uint8_t)(rest | 128), (uint8_t)(rest >> 7 | 128), (uint8_t)(rest >> 14), 0, 1,
                                0};
        memcpy(bytes, head, sizeof head);
        for (at = sizeof head; at < 4 + rest; at += 3)
            memcpy(bytes + at, "\0\1a", 3);
        client_connect(&world, &client, 5, "many");
        say_bytes(&client, bytes, at);
        if (count == 65535) {
            expect(&client, "unsuback 1 *");
            client_cut(&client);
        } else {
            expect(&client, "disconnect 97");
            expect_end(&client);
        }
        free(bytes);
    }
}

static void retain_numbered(unsigned count, unsigned qos) {
    char topic[16], payload[101];

    memset(payload, 'x', 100);
    payload[100] = '\0';
    for (unsigned n = 0; n < count; n++) {
        snprintf(topic, sizeof topic, "r/%u", n);
        say_publish(&a, &(struct publish){.topic = topic, .payload = payload, .retain = true, .qos = qos, .id = 1});
        if (qos > 0) expect(&a, "puback 1*");
    }
}

static void retained_messages_wait_for_a_client_that_reads_slowly(void **state) {
    (void)state;
    for (unsigned qos = 0; qos < 2; qos++) {
        struct client slow;
        unsigned got = 0;
        client_cut(&a);
        client_cut(&b);
        world_end(&world);
        world.options.limits = (struct broker_limits){.output_bytes_max = 2000, .queue_messages_max = 20};
        world_begin(&world);
        client_connect(&world, &a, 5, "a");
        client_connect(&world, &b, 4, "b");
        retain_numbered(200, qos);
        client_connect(&world, &slow, 5, "slow");
        say_subscribe(&slow, 1, "#", qos);
        expect(&slow, "suback 1 *");
        for (; got < 200; got++) { /* what is not taken yet is neither lost nor piled up */
            expect(&slow, qos == 0 ? "publish retain q0 *" : "publish retain q1 *");
            if (qos > 0) say_ack(&slow, 4, got + 1);
        }
        expect_nothing(&slow);
        assert_int_equal(counters(&world).dropped_qos0 + counters(&world).dropped_queue_full, 0);
        client_cut(&slow);
    }
}

static void large_store_is_searched_in_pieces(void **state) {
    (void)state;
    retain_numbered(5000, 0);
    /* Nothing of it matches, so the client's output does not end the search. */
    say_subscribe(&b, 1, "+/+/x", 0);
    expect(&b, "suback 1 00");
    assert_int_equal(broker_deadline_ms(world.broker), world.now);
    for (unsigned ticks = 0; broker_deadline_ms(world.broker) == world.now; ticks++) {
        assert_true(ticks < 5);
        broker_tick(world.broker, world.now);
    }
    say_subscribe(&b, 2, "r/+", 0);
    expect(&b, "suback 2 00");
    say_unsubscribe(&b, 3, "r/+"); /* what was not sent yet is not wanted any more */
    for (unsigned got = 0;; got++) {
        char packet[1024];
        next_packet(&b, packet, sizeof packet);
        if (strcmp(packet, "unsuback 3") == 0) break;
        assert_true(got < 4000);
    }
    pass(&world, 10);
    expect_nothing(&b);
    say_subscribe(&b, 4, "#", 0);
    client_cut(&b); /* in the midst of it */
}

static void more_subscribes_than_can_wait_end_the_client(void **state) {
    (void)state;
    client_cut(&a);
    client_cut(&b);
    world_end(&world);
    world.options.limits = (struct broker_limits){.subscriptions_per_client = 3};
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    retain_numbered(5000, 0);
    for (unsigned n = 0; n < 4; n++)
        say_subscribe(&a, 1, "+/+/x", 0);
    for (unsigned n = 0; n < 3; n++)
        expect(&a, "suback 1 00");
    a.tells_reasons = true;
    expect(&a, "disconnect 97 1f=more retained messages are asked for than are read");
    expect_end(&a);
    assert_int_equal(counters(&world).at_limit[BROKER_AT_SUBSCRIPTIONS], 1);
}

static void retained_message_comes_after_suback_with_its_flag(void **state) {
    (void)state;
    say_publish(
        &a,
        &(struct publish){
            .topic = "t/1", .payload = "one", .retain = true, .qos = 1, .id = 1, .properties = "26 0001 6b 0001 76"});
    expect(&a, "puback 1");
    say_subscribe_with(&a, 2, "t/#", 2, "0b 05");
    expect(&a, "suback 2 02");
    expect(&a, "publish retain q1 id=1 t/1 0b=5 26=k:v 'one'");
    say_subscribe(&b, 3, "+/1", 0);
    expect(&b, "suback 3 00");
    expect(&b, "publish retain q0 t/1 'one'");
    say_publish(&b, &(struct publish){.topic = "t/1", .payload = "two", .retain = true});
    expect(&b, "publish q0 t/1 'two'");
    expect(&a, "publish q0 t/1 0b=5 'two'");
    say_publish(&b, &(struct publish){.topic = "t/1", .payload = "", .retain = true});
    expect(&b, "publish q0 t/1 ''");
    say_subscribe(&b, 4, "t/1", 0);
    expect(&b, "suback 4 00");
    expect_nothing(&b);
    assert_int_equal(counters(&world).retained_messages, 0);
}

static void retain_handling_says_when_retained_messages_come(void **state) {
    (void)state;
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .retain = true});
    say_subscribe(&a, 1, "t", 0x20);
    expect(&a, "suback 1 00");
    expect_nothing(&a);
    say_subscribe(&a, 2, "t", 0x10);
    expect(&a, "suback 2 00");
    expect_nothing(&a);
    say_subscribe(&a, 3, "t", 0x00);
    expect(&a, "suback 3 00");
    expect(&a, "publish retain q0 t 'x'");
    say_unsubscribe(&a, 4, "t");
    expect(&a, "unsuback 4 00");
    say_subscribe(&a, 5, "t", 0x10);
    expect(&a, "suback 5 00");
    expect(&a, "publish retain q0 t 'x'");
}

static void expired_retained_message_is_not_sent(void **state) {
    (void)state;
    say_publish(&a, &(struct publish){.topic = "t", .payload = "x", .retain = true, .properties = "02 00000005"});
    pass(&world, 3000);
    say_subscribe(&a, 1, "t", 0);
    expect(&a, "suback 1 00");
    expect(&a, "publish retain q0 t 02=2 'x'");
    pass(&world, 2000);
    say_subscribe(&a, 2, "t", 0);
    expect(&a, "suback 2 00");
    expect_nothing(&a);
    assert_int_equal(counters(&world).retained_messages, 0);
}

static void retained_of_dollar_topics_is_hidden_from_wildcards(void **state) {
    (void)state;
    say_publish(&a, &(struct publish){.topic = "$x/t", .payload = "x", .retain = true});
    say_subscribe(&a, 1, "#", 0);
    expect(&a, "suback 1 00");
    expect_nothing(&a);
    say_subscribe(&a, 2, "$x/+", 0);
    expect(&a, "suback 2 00");
    expect(&a, "publish retain q0 $x/t 'x'");
}

static void no_local_holds_for_retained_messages_too(void **state) {
    (void)state;
    for (unsigned n = 0; n < 5; n++) { /* own ones at both ends, and between others, in whatever order they come */
        char topic[] = {'t', '/', (char)('a' + n), '\0'};
        say_publish(n % 2 ? &b : &a,
                    &(struct publish){.topic = topic, .payload = n % 2 ? "other" : "own", .retain = true});
    }
    say_subscribe(&a, 1, "t/+", 4);
    expect(&a, "suback 1 00");
    for (unsigned n = 0; n < 2; n++) {
        char got[64];
        assert_non_null(strstr(next_packet(&a, got, sizeof got), "'other'"));
    }
    expect_nothing(&a);
    say_subscribe(&a, 2, "t/b", 4); /* and that was all of it */
    expect(&a, "suback 2 00");
    expect(&a, "publish retain q0 t/b 'other'");
    expect_nothing(&a);
}

/* What the broker says of its interests to the registry: +filter or -filter. */
static void expect_row(const char *text) {
    struct broker_row_change change;
    char got[64] = "";

    if (broker_next_row(world.broker, &change)) {
        assert_int_equal(change.kind, ROW_NEWSUB);
        snprintf(got, sizeof got, "%c%.*s", change.active ? '+' : '-', (int)change.filter_size, change.filter);
        broker_row_sequenced(world.broker, world.now, change.ticket, 1);
    }
    assert_string_equal(got, text);
}

static void the_federation_hears_of_the_first_and_the_last_subscription(void **state) {
    struct client kept;
    (void)state;

    client_subscribe(&a, "t", 0);
    client_subscribe(&a, "t", 1);
    client_connect_with(&world, &kept, 5, &(struct connect){.id = "kept", .properties = "11 0000000a"});
    client_subscribe(&kept, "t", 0);
    client_subscribe(&kept, "u", 0);
    expect_row("+t");
    expect_row("+u");
    expect_row("");
    say_unsubscribe(&a, 2, "t");
    client_cut(&kept);
    pass(&world, 9999);
    expect_row("");
    pass(&world, 60000); /* the session expires, and the leave lingers */
    expect_row("-t");
    expect_row("-u");
    expect_row("");
}

/* Others choose among its members as one (G7). */
static void the_federation_hears_of_each_group(void **state) {
    (void)state;
    client_subscribe(&a, "$share/g/t/#", 0);
    client_subscribe(&a, "$share/h/t/#", 0);
    client_subscribe(&b, "$share/g/t/#", 0);
    expect_row("+$share/g/t/#");
    expect_row("+$share/h/t/#");
    say_unsubscribe(&a, 2, "$share/g/t/#");
    pass(&world, 60000);
    expect_row("");
    client_cut(&b);
    pass(&world, 60000);
    expect_row("-$share/g/t/#");
    expect_row("");
    client_cut(&a);
    pass(&world, 60000);
    expect_row("-$share/h/t/#");
    expect_row("");
}

/* ---- SUBACKs that wait for other brokers ---- */

static const struct peer_id peer = {{9, 9}};

/* A broker that publishes under t/# and does not answer. */
static void peer_appears(void) {
    broker_peer_alive(world.broker, world.now, &peer, "edge-2", 1);
    broker_peer_row(world.broker, world.now, &peer, ROW_NEWPUB, "t/#", 3, true);
}

static void suback_waits_while_other_packets_go_on(void **state) {
    (void)state;
    peer_appears();
    say_publish(&b, &(struct publish){.topic = "t/1", .payload = "old", .retain = true});
    say_subscribe(&a, 1, "t/1", 1);
    expect_nothing(&a);
    say_hex(&a, "c0 00");
    expect(&a, "pingresp");
    say_publish(&a, &(struct publish){.topic = "x", .qos = 1, .id = 2});
    expect(&a, "puback 2");
    /* Live publications come at once; the retained one follows the SUBACK as it then is. */
    say_publish(&b, &(struct publish){.topic = "t/1", .payload = "new", .retain = true});
    expect(&a, "publish q0 t/1 'new'");
    expect_nothing(&a);
    pass(&world, 299);
    expect_nothing(&a);
    pass(&world, 1);
    expect(&a, "suback 1 1f=not every other broker has answered yet 26=unconfirmed:edge-2 01");
    expect(&a, "publish retain q0 t/1 'new'");
    expect_nothing(&a);
}

static void reason_string_only_for_those_who_want_it(void **state) {
    struct client quiet;
    (void)state;

    peer_appears();
    client_connect_with(&world, &quiet, 5, &(struct connect){.id = "quiet", .properties = "17 00"});
    say_subscribe(&quiet, 1, "t/1", 1);
    say_subscribe(&b, 1, "t/1", 1);
    pass(&world, 300);
    expect(&quiet, "suback 1 01");
    expect(&b, "suback 1 01");
    client_cut(&quiet);
}

static void waiting_suback_is_forgotten_with_its_connection(void **state) {
    struct client client;
    (void)state;

    peer_appears();
    client_connect(&world, &client, 5, "c");
    say_subscribe(&client, 1, "t/1", 1);
    client_cut(&client);
    client_connect(&world, &client, 5, "c");
    pass(&world, 1000);
    expect_nothing(&client);
    client_cut(&client);
}

static void waiting_suback_sends_no_retained_message_of_what_was_unsubscribed(void **state) {
    (void)state;
    peer_appears();
    say_publish(&b, &(struct publish){.topic = "t/1", .payload = "old", .retain = true});
    say_subscribe(&a, 1, "t/1", 1);
    say_unsubscribe(&a, 2, "t/1");
    expect(&a, "unsuback 2 00");
    pass(&world, 300);
    expect(&a, "suback 1 *");
    expect_nothing(&a);
}

static void snapshot_does_not_reach_a_waiting_subscription_twice(void **state) {
    struct message template = {.retain = true,
                               .topic = "t/1",
                               .topic_size = 3,
                               .payload = (const uint8_t *)"x",
                               .payload_size = 1,
                               .expires_at_ms = UINT64_MAX,
                               .stamp = {.wall_ms = 5000}};
    struct message *message = message_new(&template);
    (void)state;

    client_subscribe(&b, "t/+", 0);
    peer_appears();
    say_subscribe(&a, 1, "t/1", 0);
    broker_merge_retained(world.broker, world.now, message);
    expect(&b, "publish q0 t/1 'x'");
    expect_nothing(&a);
    pass(&world, 300);
    expect(&a, "suback 1 *");
    expect(&a, "publish retain q0 t/1 'x'");
    expect_nothing(&a);
    message_unref(message);
}

static void a_snapshot_passes_over_those_that_wait_for_it_and_no_others(void **state) {
    struct message template = {.retain = true, .topic = "t/1", .topic_size = 3, .expires_at_ms = UINT64_MAX};
    struct client c, d;
    (void)state;

    client_connect(&world, &c, 5, "c");
    client_connect(&world, &d, 5, "d");
    client_subscribe(&c, "#", 0);
    peer_appears();
    say_subscribe(&c, 1, "t/2", 0);                             /* waits too, for something else */
    say_hex(&a, "82 0f 0001 00 0003 742f31 00 0003 742f31 00"); /* the same twice */
    say_subscribe(&b, 1, "#", 0);
    say_subscribe(&d, 1, "t/1", 0);
    for (unsigned n = 1; n <= 3; n++) {
        struct message *message;
        template.payload = (const uint8_t *)(n == 1 ? "1" : n == 2 ? "2" : "3");
        template.payload_size = 1;
        template.stamp.wall_ms = 5000 + n;
        message = message_new(&template);
        broker_merge_retained(world.broker, world.now, message);
        message_unref(message);
        expect(&c, n == 1 ? "publish q0 t/1 '1'" : n == 2 ? "publish q0 t/1 '2'" : "publish q0 t/1 '3'");
        expect_nothing(&a);
        expect_nothing(&b);
        if (n == 1) client_cut(&d); /* while it is marked */
    }
    pass(&world, 300);
    expect(&a, "suback 1 *");
    expect(&a, "publish retain q0 t/1 '3'");
    expect(&b, "suback 1 00");
    expect(&b, "publish retain q0 t/1 '3'");
    client_cut(&c);
}

static void waiting_subacks_of_several_are_kept_apart(void **state) {
    struct client c;
    (void)state;

    peer_appears();
    client_connect(&world, &c, 4, "c");
    say_subscribe(&a, 1, "t/1", 0);
    say_subscribe(&b, 2, "t/2", 1);
    pass(&world, 100);
    say_subscribe(&c, 3, "t/3", 0);
    client_cut(&a);
    pass(&world, 200);
    expect(&b, "suback 2 01");
    expect_nothing(&c);
    pass(&world, 100);
    expect(&c, "suback 3 00");
    say_subscribe(&c, 4, "t/4", 0); /* still waiting when the broker is freed */
    expect_nothing(&c);
    client_forget(&c);
}

/* Who sends one SUBSCRIBE after the other is read more slowly, and gets what it asks for. */
static void many_waiting_subscribes_pause_the_client(void **state) {
    char filter[16];
    (void)state;

    peer_appears();
    for (unsigned i = 1; i <= 1500; i++) { /* the last ones were read already */
        assert_int_equal(broker_client_paused(world.broker, a.handle), i > 1000);
        snprintf(filter, sizeof filter, "t/%u", i % 1000);
        say_subscribe(&a, i, filter, 0);
    }
    expect_nothing(&a);
    pass(&world, 300);
    assert_false(broker_client_paused(world.broker, a.handle));
    for (unsigned i = 1; i <= 1500; i++)
        expect(&a, "suback*");
    say_hex(&a, "c0 00");
    expect(&a, "pingresp");
}

static void waiting_subscribes_have_a_bound_in_bytes(void **state) {
    static char filter[8001];
    struct broker_note note;
    unsigned count = 0;
    bool told = false;
    (void)state;

    client_cut(&a);
    client_cut(&b);
    world_end(&world);
    world.options.limits = (struct broker_limits){.packet_size_max = 100000};
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    a.tells_reasons = true;
    peer_appears();
    memset(filter, 'f', 8000);
    for (; !broker_client_ended(world.broker, a.handle); count++) {
        assert_int_equal(broker_client_paused(world.broker, a.handle), count * 8000 > 100000);
        say_subscribe(&a, 1, filter, 0);
    }
    assert_in_range(count, 12, 14);
    expect(&a, "disconnect 97 1f=more filters at once than there is room for");
    expect_end(&a);
    while (broker_next_note(world.broker, &note))
        told = told || strncmp(note.text, "limits.packet_size_max is reached: client 'a' at ", 48) == 0;
    assert_true(told);
}

static void waiting_suback_leaves_out_a_reason_that_does_not_fit(void **state) {
    struct client small;
    (void)state;

    peer_appears();
    client_connect_with(&world, &small, 5, &(struct connect){.id = "small", .properties = "27 00000020"});
    say_subscribe(&small, 1, "t/1", 1);
    pass(&world, 300);
    expect(&small, "suback 1 01");
    client_cut(&small);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_a_b311, end)
    const struct CMUnitTest tests[] = {
        TEST(suback_has_a_code_for_each_filter),
        TEST(unsuback_says_what_there_was),
        TEST(faulty_subscribe_ends_the_connection),
        TEST(filter_deeper_than_we_take_is_refused_by_its_code),
        TEST(subscriptions_per_client_are_bounded),
        TEST(packet_with_more_filters_than_anyone_may_hold_is_refused),
        TEST(retained_messages_wait_for_a_client_that_reads_slowly),
        TEST(large_store_is_searched_in_pieces),
        TEST(more_subscribes_than_can_wait_end_the_client),
        TEST(retained_message_comes_after_suback_with_its_flag),
        TEST(retain_handling_says_when_retained_messages_come),
        TEST(expired_retained_message_is_not_sent),
        TEST(retained_of_dollar_topics_is_hidden_from_wildcards),
        TEST(no_local_holds_for_retained_messages_too),
        TEST(the_federation_hears_of_the_first_and_the_last_subscription),
        TEST(the_federation_hears_of_each_group),
        TEST(suback_waits_while_other_packets_go_on),
        TEST(reason_string_only_for_those_who_want_it),
        TEST(waiting_suback_is_forgotten_with_its_connection),
        TEST(waiting_suback_sends_no_retained_message_of_what_was_unsubscribed),
        TEST(snapshot_does_not_reach_a_waiting_subscription_twice),
        TEST(a_snapshot_passes_over_those_that_wait_for_it_and_no_others),
        TEST(waiting_subacks_of_several_are_kept_apart),
        TEST(many_waiting_subscribes_pause_the_client),
        TEST(waiting_subscribes_have_a_bound_in_bytes),
        TEST(waiting_suback_leaves_out_a_reason_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
