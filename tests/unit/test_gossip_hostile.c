/* Who has the gossip key and no token, and writes the ids of others into its headers, gets nothing and moves nothing.
 */
#include "gossip_forger.h"

#include "gossip/verbs.h"

static const struct gossip_address den = {.family = 4, .ip = {192, 0, 2, 66}, .port = 666};

static void ask_for_everything(struct forger *forger) {
    struct net *net = forger->net;
    uint8_t buckets[MESSAGE_BUCKET_COUNT * 8] = {1};
    struct message questions[] = {
        {.kind = MESSAGE_WANT, .version.id = net_id(net, 0)},
        {.kind = MESSAGE_WANT, .version.id = net_id(net, 2)},
        {.kind = MESSAGE_WHO, .version.id = net_id(net, 2)},
        {.kind = MESSAGE_DIGEST, .number = 5},
        {.kind = MESSAGE_BUCKETS, .bytes = buckets, .size = sizeof buckets},
        {.kind = MESSAGE_HAVE, .version = {.id = net_id(net, 2)}},
        {.kind = MESSAGE_WANT_CHUNK, .version = {.id = net_id(net, 0), .epoch = 1}},
        {.kind = MESSAGE_ROLL, .number = 32, .other = net_id(net, 2)},
    };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        forger_say(forger, &questions[i]);
}

static void the_id_of_a_member_does_not_open_the_registry(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 91);
    net_row(net, 0, "secret/0", true);
    net_row(net, 2, "secret/2", true);
    net_run(net, 1000);
    struct forger forger = forger_new(net, 0, 1, &den);
    ask_for_everything(&forger);
    net_run(net, 1000);
    forger_collect(&forger);
    ask_for_everything(&forger);
    assert_int_equal(forger.count[MESSAGE_ENTRY], 0);
    assert_int_equal(forger.count[MESSAGE_BUCKETS], 0);
    assert_int_equal(forger.count[MESSAGE_VERSIONS], 0);
    assert_int_equal(forger.count[MESSAGE_CHUNK], 0);
    assert_int_equal(forger.count[MESSAGE_TOKEN], 0);
    assert_true(forger.count[MESSAGE_PROVE] > 0); /* it was answered, and asked for a proof */
    net_free(net);
}

static void nor_does_it_turn_the_way_to_that_member(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 92);
    net_run(net, 1000);
    struct forger forger = forger_new(net, 0, 1, &den);
    struct message ping = {.kind = MESSAGE_PING, .number = 3};
    forger_say(&forger, &ping);
    memset(forger.count, 0, sizeof forger.count);
    assert_int_not_equal(gossip_row_put(net->nodes[0].gossip, net->now_ms, GOSSIP_NEWSUB, "secret/0", 8), 0);
    forger_collect(&forger);
    for (int i = 0; i < 100; i++) {
        net->now_ms += 20;
        gossip_tick(net->nodes[0].gossip, net->now_ms);
        forger_collect(&forger);
    }
    assert_int_equal(forger.count[MESSAGE_ENTRY], 0);
    assert_int_equal(forger.count[MESSAGE_PING], 0);
    net_run(net, 5000);
    assert_true(net_until(net, net_agreed, 5000));
    net_free(net);
}

static void a_forged_acknowledgement_does_not_count(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 93);
    net_run(net, 1000);
    net->cut[0][1] = net->cut[1][0] = true;
    uint64_t sequence = net_row(net, 0, "a/b", true);
    net_run(net, 50);
    struct forger forger = forger_new(net, 0, 1, &den);
    struct member_info self;
    assert_true(gossip_member_at(net->nodes[0].gossip, net->now_ms, 0, &self));
    forger.header.holds_epoch = 1;
    forger.header.holds_incarnation = 1;
    forger.header.holds_sequence = sequence;
    struct message ping = {.kind = MESSAGE_PING, .number = 3};
    forger_say(&forger, &ping);
    assert_true(net->nodes[0].knows[1] < sequence);
    assert_true(net->nodes[0].knows[2] >= sequence);
    net_free(net);
}

static bool edge_2_is_down(struct net *net) {
    return net->nodes[0].sees[1] == MEMBER_DOWN;
}

static void the_dead_are_not_revived_by_a_forger(void **state) {
    (void)state;
    for (int at_its_address = 0; at_its_address < 2; at_its_address++) {
        struct net *net = net_new_running(3, 94);
        net_run(net, 1000);
        struct gossip_address address = at_its_address ? net->nodes[1].address : den;
        net_kill(net, 1);
        assert_true(net_until(net, edge_2_is_down, 10000));
        struct forger forger = forger_new(net, 0, 1, &address);
        uint64_t end = net->now_ms + 5000;
        while (net->now_ms < end) {
            net_run(net, 50);
            forger_collect(&forger);
            struct message pong = {.kind = MESSAGE_PONG, .number = forger.ping};
            forger_say(&forger, &pong);
            assert_int_equal(net->nodes[0].sees[1], MEMBER_DOWN);
        }
        net->nodes[1].epoch = 2;
        net_start(net, 1);
        assert_true(net_until(net, net_agreed, 5000));
        net_free(net);
    }
}

/* Between two brokers: the cookie that one gave to an address of the forger's is signed by the other for nobody who is
 * not where he says. */
static void a_proof_is_not_to_be_had_for_another_address(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 95);
    net_run(net, 1000);
    struct forger as_1 = forger_new(net, 0, 1, &den); /* speaks to edge-1 as edge-2 */
    struct forger as_0 = forger_new(net, 1, 0, &den); /* and to edge-2 as edge-1 */
    memcpy(as_0.header.cookie, as_1.header.echo, 8);
    struct message who = {.kind = MESSAGE_WHO, .version.id = net_id(net, 1)};
    for (int i = 0; i < 20; i++) {
        net_run(net, 200);
        forger_say(&as_0, &who);
    }
    assert_true(as_0.count[MESSAGE_TOKEN] > 0);
    assert_int_equal(as_0.count[MESSAGE_PROOF], 0);
    net_free(net);
}

static void where_we_are_seen_is_believed_only_of_members(void **state) {
    (void)state;
    struct net *net = net_new(2, 96);
    for (int i = 0; i < 2; i++) {
        net->nodes[i].announce_nothing = true;
        net->nodes[i].bootstrap[0] = 1 - i;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 3000));
    net_run(net, 6000);
    struct forger forger = forger_new(net, 0, 1, &den);
    struct message seen = {.kind = MESSAGE_SEEN_AT, .address = den};
    for (int i = 0; i < 5; i++) {
        forger_say(&forger, &seen);
        net_run(net, 6000);
    }
    struct member_info self;
    assert_true(gossip_member_at(net->nodes[0].gossip, net->now_ms, 0, &self));
    assert_int_equal(self.address.port, 7100);
    net_free(net);
}

/* A signature costs a hundred times what a datagram does. */
static void a_flood_of_bad_signatures_is_mostly_not_looked_at(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 97);
    net_run(net, 1000);
    struct forger forger = forger_new(net, 0, 1, &den);
    uint8_t bytes[MESSAGE_BLOB_MAX];
    struct wire_out body;
    struct member_id id = net_id(net, 2);
    wire_out_init(&body, bytes, ENTRY_BODY_MAX);
    wire_put_array(&body, 4);
    wire_put_uint(&body, 'E');
    wire_put_id(&body, &id);
    wire_put_uint(&body, 1);
    wire_put_uint(&body, 1);
    memset(bytes + body.size, 0x33, GOSSIP_SIGNATURE_SIZE);
    struct message entry = {.kind = MESSAGE_ENTRY, .bytes = bytes, .size = body.size + GOSSIP_SIGNATURE_SIZE};
    for (int i = 0; i < 20000; i++)
        forger_say(&forger, &entry);
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_true(counters.bad_signature > 0);
    assert_true(counters.bad_signature <= 1000);
    net_row(net, 2, "still/heard", true); /* who has proved where it is has a count of its own */
    net_run(net, 100);
    assert_true(net_has_row(net, 0, 2, "still/heard"));
    net_free(net);
}

/* A datagram of ours, sent back to us by somebody who only saw it pass, must not make us believe for ever that the
 * address we dialled is our own. */
static void a_dial_replayed_to_us_does_not_stop_our_dialling(void **state) {
    (void)state;
    struct net *net = net_new(2, 98);
    net->nodes[1].bootstrap[0] = 0;
    net_start(net, 1);
    for (int i = 0; i < 10 && !net->packets; i++)
        net_step(net, net->now_ms + 100);
    struct net_packet *packet = net->packets;
    assert_non_null(packet);
    gossip_receive(net->nodes[1].gossip, net->now_ms, &den, packet->bytes, packet->size);
    net_run(net, 5000);
    net_start(net, 0);
    net->nodes[0].bootstrap_count = 0;
    assert_true(net_until(net, net_all_alive, 70000));
    net_free(net);
}

static void what_is_sent_again_by_a_listener_changes_nothing(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 99);
    net_run(net, 1000);
    uint64_t down = 0;
    for (int i = 0; i < 2000; i++) {
        net_step(net, net->now_ms + 100);
        if (i % 50 == 0) net_row(net, i % 3, "again/#", i % 100 == 0);
        struct net_packet *packet = net->packets;
        if (!packet) continue;
        for (int to = 0; to < 3; to++)
            net_put(net, packet->from, to, to == 0 ? &den : &packet->source, packet->bytes, packet->size);
        if (i > 1500) net->packets->at_ms += 1;
    }
    net_run(net, 5000);
    for (int i = 0; i < 3; i++)
        down += net->nodes[i].down_events;
    assert_int_equal(down, 0);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_CLONED], 0);
    assert_true(net_agreed(net));
    net_free(net);
}

/* Each would beget the next, and a network that doubles datagrams would make a storm of it (P20). */
static void heads_are_not_answered_with_heads_for_ever(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 97);
    struct forger forger = forger_new(net, 0, 1, &den);
    struct message head = {.kind = MESSAGE_HEAD};
    head.bytes = net->nodes[1].gossip->self->head;
    head.size = net->nodes[1].gossip->self->head_size;
    memset(forger.count, 0, sizeof forger.count);
    for (int i = 0; i < 200; i++) {
        net->now_ms += 1;
        forger_say(&forger, &head);
    }
    assert_in_range(forger.count[MESSAGE_HEAD], 1, 5);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_id_of_a_member_does_not_open_the_registry),
        cmocka_unit_test(nor_does_it_turn_the_way_to_that_member),
        cmocka_unit_test(a_forged_acknowledgement_does_not_count),
        cmocka_unit_test(the_dead_are_not_revived_by_a_forger),
        cmocka_unit_test(a_proof_is_not_to_be_had_for_another_address),
        cmocka_unit_test(where_we_are_seen_is_believed_only_of_members),
        cmocka_unit_test(a_flood_of_bad_signatures_is_mostly_not_looked_at),
        cmocka_unit_test(a_dial_replayed_to_us_does_not_stop_our_dialling),
        cmocka_unit_test(what_is_sent_again_by_a_listener_changes_nothing),
        cmocka_unit_test(heads_are_not_answered_with_heads_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
