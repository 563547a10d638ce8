/* Transfers that never end or whose owner begins anew, and strangers without number. */
#include "gossip_court.h"

#include "gossip/inspect.h"

#define ROWS 400

static void fill(struct net *net, int at) {
    for (int i = 0; i < ROWS; i++) {
        char filter[200];
        snprintf(filter, sizeof filter, "row/%d/%0150d", i, i);
        net_row(net, at, filter, true);
    }
}

static uint64_t rows_at(const struct net *net, int at) {
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[at].gossip, &counters);
    return counters.rows_others;
}

/* What was on its way is of a life that is over: nothing of it is ever shown, and nothing of it stays. */
static void an_owner_may_raise_its_epoch_in_the_middle_of_a_transfer(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct net *net = net_new(3, seed);
        net_start(net, 0);
        net_start(net, 1);
        net_run(net, 3000);
        fill(net, 0);
        net_run(net, 10000);
        assert_int_equal(rows_at(net, 1), ROWS);
        net_start(net, 2);
        struct member_id id = net_id(net, 0);
        for (int ms = 0; gossip_inspect_staged(net->nodes[2].gossip, &id) < 5000; ms++) {
            assert_true(ms < 5000);
            net_run(net, 1);
        }
        assert_int_equal(rows_at(net, 2), 0);
        net_kill(net, 0);
        net->nodes[0].epoch = 2;
        net_start(net, 0);
        net_row(net, 0, "of/the/new/life", true);
        for (int i = 0; i < 1000; i++) {
            net_run(net, 10);
            assert_in_range(rows_at(net, 2), 0, 1);
        }
        assert_true(net_agreed(net));
        assert_true(net_has_row(net, 2, 0, "of/the/new/life"));
        assert_int_equal(rows_at(net, 1), 1);
        assert_int_equal(gossip_inspect_staged(net->nodes[2].gossip, &id), 0);
        net_free(net);
    }
}

/* A checkpoint that is promised, never given, and promised anew before it could be missed. */
static void a_transfer_without_end_costs_little_and_holds_up_nobody(void **state) {
    (void)state;
    struct court court = court_new(330);
    struct net *net = court.net;
    uint8_t bytes[HEAD_SIZE_MAX], chunk[MESSAGE_CHUNK_SIZE] = {0};
    uint64_t sent = SUM(net, bytes_sent), asked = court.traitor->count[MESSAGE_WANT_CHUNK];
    const int rounds = 600;
    for (int round = 0; round < rounds; round++) {
        struct head head = traitor_own_head(court.traitor);
        head.incarnation = ++court.traitor->header.incarnation;
        head.checkpoint_sequence = head.sequence = court.traitor->header.sequence = 10 + (uint64_t)round;
        head.checkpoint_size = 1 << 20;
        for (size_t i = 0; i < sizeof head.checkpoint_root; i++)
            head.checkpoint_root[i] = (uint8_t)net_random(net);
        size_t size = traitor_head(court.traitor, head, bytes);
        for (int to = 0; to < HONEST; to++) {
            traitor_say_one(court.traitor, to, (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
            traitor_say_one(court.traitor, to,
                            (struct message){.kind = MESSAGE_CHUNK,
                                             .version = {head.id, 1, 1, head.checkpoint_sequence, {0}},
                                             .number = 0,
                                             .bytes = chunk,
                                             .size = sizeof chunk});
        }
        if (round == 100) fill(net, 0);
        net_run(net, 50);
        for (int i = 0; i < HONEST; i++)
            assert_int_equal(gossip_inspect_staged(net->nodes[i].gossip, &head.id), 0);
    }
    for (int i = 1; i < HONEST; i++)
        assert_true(rows_at(net, i) >= ROWS); /* they came meanwhile */
    sent = SUM(net, bytes_sent) - sent;
    asked = court.traitor->count[MESSAGE_WANT_CHUNK] - asked;
    print_message("600 checkpoints in 30 s that never come: %llu B/s of each, %llu chunks asked of the owner\n",
                  (unsigned long long)sent / HONEST / 30, (unsigned long long)asked);
    assert_true(asked > 0);
    assert_true(sent / HONEST / 30 < 40000);
    court_free(&court);
}

/* ---- strangers ---- */

#define STRANGERS 400

struct account {
    uint64_t said, heard;
};

static struct gossip_address stranger_address(int which) {
    return (struct gossip_address){.family = 4, .ip = {198, 18, (uint8_t)(which / 256), (uint8_t)which}, .port = 9};
}

static void collect(struct net *net, struct account *accounts) {
    struct gossip_datagram datagram;
    while (gossip_next_datagram(net->nodes[0].gossip, &datagram))
        if (datagram.to.ip[0] == 198) accounts[datagram.to.ip[2] * 256 + datagram.to.ip[3]].heard += datagram.size;
    net_drain(net, 0);
}

static void say(struct net *net, int which, struct account *accounts, const struct message *message) {
    static uint32_t nonce = 5000;
    struct chance chance = {11};
    struct seal seal;
    struct gossip_options options = {.federation = "home", .keys = &net->nodes[0].key, .key_count = 1};
    struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};
    assert_true(seal_init(&seal, &options, &chance));
    seal.counter = nonce++;
    uint8_t plain[SEAL_PLAIN_MAX], sealed[GOSSIP_DATAGRAM_MAX];
    struct wire_out out;
    struct gossip_address from = stranger_address(which);
    struct packet_header header = {.epoch = 1, .incarnation = 1};
    memcpy(header.id.bytes, &(int){which + 1}, sizeof(int));
    if (which % 4 == 3) header.id = net_id(net, 1); /* or as a member */
    wire_out_init(&out, plain, sizeof plain);
    header_put(&out, &header);
    message_put(&out, message);
    size_t size = seal_close(&seal, &crypto, plain, out.size, sealed);
    accounts[which].said += size;
    gossip_receive(net->nodes[0].gossip, net->now_ms, &from, sealed, size);
    collect(net, accounts);
}

/* P23: however many there are, and more than we keep an account of, none is sent more than three times what it sent, by
 * answers or later. */
static void no_stranger_among_many_is_sent_more_than_three_times_what_it_sent(void **state) {
    (void)state;
    struct net *net = net_new_running(4, 340);
    static struct account accounts[STRANGERS];
    struct member_id self = net_id(net, 0);
    uint64_t heard = 0;
    for (int round = 0; round < 30; round++) {
        for (int which = 0; which < STRANGERS; which++) {
            struct message messages[] = {{.kind = MESSAGE_WHO, .version.id = self},
                                         {.kind = MESSAGE_PING, .number = 2 + (uint64_t)round},
                                         {.kind = MESSAGE_PROVE},
                                         {.kind = MESSAGE_ROLL, .number = 32, .other = {{255}}},
                                         {.kind = MESSAGE_WHO, .version.id = net_id(net, 2)}};
            say(net, which, accounts, &messages[(round + which) % 5]);
            assert_true(accounts[which].heard <= 3 * accounts[which].said);
        }
        uint64_t end = net->now_ms + 300;
        while (net->now_ms < end) {
            collect(net, accounts);
            net_step(net, end);
        }
        collect(net, accounts);
    }
    for (int which = 0; which < STRANGERS; which++) {
        assert_true(accounts[which].heard <= 3 * accounts[which].said);
        heard += accounts[which].heard;
    }
    assert_true(heard > 0);
    assert_true(net_all_alive(net));
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_may_raise_its_epoch_in_the_middle_of_a_transfer),
        cmocka_unit_test(a_transfer_without_end_costs_little_and_holds_up_nobody),
        cmocka_unit_test(no_stranger_among_many_is_sent_more_than_three_times_what_it_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
