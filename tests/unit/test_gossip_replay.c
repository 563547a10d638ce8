/* Somebody on the way keeps datagrams and sends them again, with the source that they had. He has no key, and wants
 * what they ask for to go to the one whose address that is: that must not be worth the bytes. */
#include "gossip_traitor.h"

#include "gossip/replay.h"

#define KEPT_MAX 400

static struct {
    size_t count;
    struct net_packet packets[KEPT_MAX];
} wire;

/* What goes from one to the other while the net runs. */
static void listen(struct net *net, int from, int to, uint64_t ms) {
    uint64_t until = net->now_ms + ms, last = 0;
    wire.count = 0;
    while (net->now_ms < until) {
        for (struct net_packet *packet = net->packets; packet; packet = packet->next) {
            bool is_new =
                packet->kind == NET_DATAGRAM && packet->from == from && packet->to == to && packet->order > last;
            if (is_new && wire.count < KEPT_MAX) wire.packets[wire.count++] = *packet;
        }
        last = net->order - 1;
        net_step(net, until);
    }
}

struct bill {
    uint64_t in, out;
};

/* One datagram so often, and what it brings to where it seems to come from. */
static struct bill replay(struct net *net, const struct net_packet *packet, int times) {
    struct bill bill = {0};
    struct gossip_datagram answer;
    for (int i = 0; i < times; i++) {
        struct gossip *gossip = net->nodes[packet->to].gossip;
        gossip_receive(gossip, net->now_ms, &packet->source, packet->bytes, packet->size);
        bill.in += packet->size;
        while (gossip_next_datagram(gossip, &answer))
            if (net_address_equal(&answer.to, &packet->source)) bill.out += answer.size;
    }
    return bill;
}

static void add(struct bill *sum, struct bill bill) {
    sum->in += bill.in;
    sum->out += bill.out;
}

static struct bill replay_all(struct net *net, int times) {
    struct bill sum = {0};
    assert_true(wire.count > 0);
    for (size_t i = 0; i < wire.count; i++)
        add(&sum, replay(net, &wire.packets[i], times));
    return sum;
}

/* What may be sent in answer in a second is bounded too: so what is sent again must bring less than that. */
static void check(const char *what, struct bill bill) {
    print_message("%s: %d bytes sent again, %d in answer\n", what, (int)bill.in, (int)bill.out);
    assert_true(bill.out <= bill.in / 4);
}

static void a_want_that_is_sent_again_brings_nothing(void **state) {
    (void)state;
    struct net *net = net_new(3, 702);
    net_start(net, 0);
    net_start(net, 1);
    net_run(net, 3000);
    for (int i = 0; i < 40; i++) {
        char filter[400];
        snprintf(filter, sizeof filter, "a/%03d/%0350d", i, i);
        net_row(net, 0, filter, true);
        net_run(net, 50);
    }
    struct traitor *traitor = traitor_new(net);
    struct message want = {.kind = MESSAGE_WANT, .version = {.id = net_id(net, 0), .epoch = net->nodes[0].epoch}};
    uint64_t order = net->order;
    traitor_say_one(traitor, 0, want);
    struct net_packet *packet = net->packets;
    while (packet && packet->order != order)
        packet = packet->next;
    assert_non_null(packet);
    struct net_packet kept = *packet;
    struct bill first = replay(net, &kept, 1);
    assert_true(first.out > 3 * first.in); /* the member itself is answered in full */
    check("a WANT", replay(net, &kept, 100));
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_true(counters.replayed >= 100);
    traitor_free(traitor);
    net_free(net);
}

static void nor_does_anything_of_a_member(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 703);
    listen(net, 1, 0, 20000);
    check("all of a member", replay_all(net, 50));
    net_free(net);
}

/* Nothing is known of it yet when its first packets come. */
static void nor_what_it_said_when_it_joined(void **state) {
    (void)state;
    struct net *net = net_new(3, 704);
    net_start(net, 0);
    net_start(net, 1);
    listen(net, 1, 0, 3000);
    check("a join", replay_all(net, 50));
    net_free(net);
}

/* Its place is not proven any more, but its cookie is good. */
static void nor_when_it_is_away(void **state) {
    (void)state;
    struct net *net = net_new(3, 705);
    net_start(net, 0);
    net_start(net, 1);
    net_run(net, 3000);
    listen(net, 1, 0, 3000);
    net_kill(net, 1);
    net_run(net, 30000);
    assert_int_equal(net->nodes[0].sees[1], MEMBER_DOWN);
    check("one that is away", replay_all(net, 50));
    net_free(net);
}

/* It was in its earlier life that it said so. */
static void nor_when_it_has_started_anew(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 706);
    listen(net, 1, 0, 5000);
    net_kill(net, 1);
    net->nodes[1].epoch = 2;
    net_start(net, 1);
    net_run(net, 5000);
    struct bill bill = replay_all(net, 50);
    print_message("one that has started anew: %d bytes sent again, %d in answer\n", (int)bill.in, (int)bill.out);
    assert_true(bill.out <= bill.in);
    assert_true(net_until(net, net_agreed, 10000));
    net_free(net);
}

/* All but the highest number are forgotten of one that sleeps. */
static void nor_when_its_record_sleeps(void **state) {
    (void)state;
    struct net *net = net_new(8, 707);
    for (int i = 0; i < 8; i++) {
        net->nodes[i].limits.awake_max = 1;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    listen(net, 1, 0, 5000);
    struct bill sum = {0};
    for (int round = 0; round < 20; round++) {
        add(&sum, replay_all(net, 1));
        net_run(net, 3000);
    }
    check("one that sleeps now and then", sum);
    assert_true(net_until(net, net_agreed, 10000));
    net_free(net);
}

/* ---- the window ---- */

static enum replay_result take(struct replay *replay, uint64_t epoch, uint64_t prefix, uint32_t counter) {
    const struct replay_place place = {epoch, prefix, counter};
    return replay_take(replay, &place, 7000);
}

static void packets_may_overtake_one_another(void **state) {
    (void)state;
    struct replay replay = {0};
    const uint32_t order[] = {5, 900, 17, 0, 901, 16};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(take(&replay, 1, 9, order[i]), REPLAY_NEW);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(take(&replay, 1, 9, order[i]), REPLAY_AGAIN);
    for (uint32_t i = 0; i < REPLAY_WINDOW; i++)
        assert_int_equal(take(&replay, 1, 9, 1000 + i), REPLAY_NEW);
    assert_int_equal(take(&replay, 1, 9, 999), REPLAY_AGAIN);
}

static void a_life_that_is_over_is_no_longer_heard(void **state) {
    (void)state;
    struct replay replay = {0};
    assert_int_equal(take(&replay, 1, 9, 5), REPLAY_NEW);
    assert_int_equal(take(&replay, 2, 9, 6), REPLAY_NEW); /* the same process: it goes on counting */
    assert_int_equal(take(&replay, 2, 9, 5), REPLAY_AGAIN);
    assert_int_equal(take(&replay, 3, 70, 0), REPLAY_NEW);
    assert_int_equal(take(&replay, 2, 9, 7), REPLAY_OTHER);
    assert_int_equal(take(&replay, 3, 70, 1), REPLAY_NEW);
}

static void the_counter_may_begin_anew_awake_or_asleep(void **state) {
    (void)state;
    struct replay replay = {0};
    assert_int_equal(take(&replay, 1, 9, UINT32_MAX - 1), REPLAY_NEW);
    assert_int_equal(take(&replay, 1, 10, 0), REPLAY_NEW);
    assert_int_equal(take(&replay, 1, 10, 0), REPLAY_AGAIN);
    struct replay woken = {0};
    replay_wake(&woken, 1, 0, UINT32_MAX);
    assert_int_equal(take(&woken, 1, 9, UINT32_MAX - 1), REPLAY_AGAIN);
    assert_int_equal(take(&woken, 1, 10, 3), REPLAY_NEW);
    assert_int_equal(take(&woken, 1, 10, 3), REPLAY_AGAIN);
    assert_int_equal(take(&woken, 1, 10, 2), REPLAY_NEW);
}

static void two_lives_in_one_epoch_are_told_apart_now_and_then(void **state) {
    (void)state;
    struct replay replay = {0};
    const struct replay_place first = {1, UINT64_C(3) << 48, 40}, second = {1, UINT64_C(4) << 48, 2};
    assert_int_equal(replay_take(&replay, &first, 1000), REPLAY_NEW);
    assert_int_equal(replay_take(&replay, &second, 1100), REPLAY_NEW);
    assert_int_equal(replay_take(&replay, &second, 1100), REPLAY_AGAIN);
    assert_int_equal(replay_take(&replay, &first, 6099), REPLAY_OTHER);
    assert_int_equal(replay_take(&replay, &second, 6099), REPLAY_AGAIN);
    struct replay woken;
    replay_wake(&woken, 1, 3, 41);
    assert_int_equal(replay_take(&woken, &first, 1000), REPLAY_AGAIN);
    assert_int_equal(replay_take(&woken, &second, 1000), REPLAY_NEW);
}

static void who_wakes_has_heard_all_up_to_the_highest(void **state) {
    (void)state;
    struct replay replay = {0}, woken = {0};
    for (uint32_t i = 0; i < 100; i += 3)
        assert_int_equal(take(&replay, 4, 9, i), REPLAY_NEW);
    replay_wake(&woken, 4, replay.life, replay_newest(&replay));
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(take(&woken, 4, 9, i), REPLAY_AGAIN);
    assert_int_equal(take(&woken, 4, 9, 100), REPLAY_NEW);
}

/* Behind a router, where its owner does not say that it is. It goes on talking, and what the earlier life said is sent
 * again all the time: neither may keep it a stranger for ever. */
static void who_starts_anew_behind_a_router_is_heard_after_a_minute(void **state) {
    (void)state;
    struct net *net = net_new(1, 703);
    net_start(net, 0);
    struct gossip *gossip = net->nodes[0].gossip;
    const uint8_t cookie[8] = "cookie";
    const struct replay_place first = {1, UINT64_C(3) << 48, 40}, second = {2, UINT64_C(4) << 48, 2};
    gossip->now_ms = 100000;
    assert_true(strangers_take(gossip, cookie, &first));
    for (int s = 1; s < 60; s++) {
        gossip->now_ms += 1000;
        strangers_credit(gossip, cookie, 100);
        assert_false(strangers_take(gossip, cookie, &second));
        assert_false(strangers_take(gossip, cookie, &first));
    }
    gossip->now_ms += 1000;
    assert_true(strangers_take(gossip, cookie, &second));
    assert_false(strangers_take(gossip, cookie, &second));
    assert_false(strangers_take(gossip, cookie, &first));
    gossip->now_ms = net->now_ms;
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_want_that_is_sent_again_brings_nothing),
        cmocka_unit_test(nor_does_anything_of_a_member),
        cmocka_unit_test(nor_what_it_said_when_it_joined),
        cmocka_unit_test(nor_when_it_is_away),
        cmocka_unit_test(nor_when_it_has_started_anew),
        cmocka_unit_test(nor_when_its_record_sleeps),
        cmocka_unit_test(packets_may_overtake_one_another),
        cmocka_unit_test(a_life_that_is_over_is_no_longer_heard),
        cmocka_unit_test(the_counter_may_begin_anew_awake_or_asleep),
        cmocka_unit_test(two_lives_in_one_epoch_are_told_apart_now_and_then),
        cmocka_unit_test(who_starts_anew_behind_a_router_is_heard_after_a_minute),
        cmocka_unit_test(who_wakes_has_heard_all_up_to_the_highest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
