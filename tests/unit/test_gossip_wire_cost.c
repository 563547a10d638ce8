/* What is said, counted by opening every datagram: rumours in two stages, one slot for each owner, comparisons of
 * constant size. */
#include "datagram_reader.h"

static void listen_for(struct net *net, uint64_t ms, struct said *said) {
    uint64_t end = net->now_ms + ms;
    memset(said, 0, sizeof *said);
    uint64_t next = net->order; /* the first datagram that was not looked at yet */
    while (net->now_ms < end) {
        net_step(net, end);
        uint64_t first = next;
        for (const struct net_packet *packet = net->packets; packet; packet = packet->next) {
            if (packet->order < first) continue;
            datagram_read(&net->nodes[0].key, packet->bytes, packet->size, said);
            if (packet->order >= next) next = packet->order + 1;
        }
    }
}

static struct net *settled(int count, uint64_t seed, uint32_t rumor_interval_ms) {
    struct net *net = net_new(count, seed);
    net->delay_min_ms = 2; /* so that every datagram is seen on its way */
    net->delay_max_ms = 4;
    for (int i = 0; i < count; i++) {
        net->nodes[i].limits.eager_members_max = 1;
        net->nodes[i].limits.rumor_interval_ms = rumor_interval_ms;
        net_start(net, i);
    }
    assert_true(net_until(net, net_agreed, 60000));
    net_run(net, 10000);
    return net;
}

/* P20: in full until two have said that they had it, then by name, and after 4 * ceil(log10(N + 1)) times not at all.
 */
static void what_everybody_has_is_soon_only_named_and_then_not_even_that(void **state) {
    (void)state;
    struct net *net = settled(24, 71, 200);
    struct said said, later;
    net_row(net, 3, "a/row", true);
    listen_for(net, 5000, &said);
    listen_for(net, 5000, &later);
    uint64_t full = said.count[MESSAGE_ENTRY], named = said.count[MESSAGE_HAVE];
    print_message("for 24 brokers: %d times in full, %d times by name\n", (int)full, (int)named);
    assert_in_range(full, 23, 24 * 5);
    assert_in_range(named, 24 * 2, 24 * 8);
    assert_in_range(full + named, 24 * 7, 24 * 9);
    assert_true(said.count[MESSAGE_HAD] > 0);
    assert_int_equal(later.count[MESSAGE_ENTRY] + later.count[MESSAGE_HAVE], 0);
    net_free(net);
}

/* P16: with a place for each change instead of one for each owner, all would be told eight times by everybody. */
static void an_entry_takes_the_place_of_the_one_before_it(void **state) {
    (void)state;
    struct net *net = settled(24, 72, 200);
    struct said said, rest;
    uint64_t full = 0;
    for (int i = 0; i < 50; i++) {
        char filter[16];
        snprintf(filter, sizeof filter, "b/%d", i);
        net_row(net, 3, filter, true);
        listen_for(net, 25, &said);
        full += said.count[MESSAGE_ENTRY];
    }
    listen_for(net, 10000, &rest);
    full += rest.count[MESSAGE_ENTRY];
    print_message("50 changes to 24 brokers: %d entries\n", (int)full);
    assert_true(net_agreed(net));
    assert_in_range(full, 50 * 22, 50 * 23 * 3 / 2); /* two changes may share an entry */
    net_free(net);
}

/* The round that told of one owner's entry does not hold up another's. */
static void news_of_one_waits_for_no_round_of_others(void **state) {
    (void)state;
    struct net *net = settled(24, 74, 200);
    uint64_t begun_ms, took_ms = 0;
    for (int i = 0; i < 20; i++) {
        char filter[16];
        snprintf(filter, sizeof filter, "d/%d", i);
        net_row(net, i, filter, true);
        net_run(net, 30);
        net_row(net, i + 1, filter, true);
        begun_ms = net->now_ms;
        assert_true(net_until(net, net_agreed, 3000));
        took_ms += net->now_ms - begun_ms;
        net_run(net, 5000);
    }
    print_message("24 brokers agree %d ms after the later of two changes\n", (int)took_ms / 20);
    assert_in_range(took_ms / 20, 1, 300);
    net_free(net);
}

/* Where a round goes to random members alone, two or three of these 8,000 tellings pass by somebody. */
static void no_rumour_passes_by_anybody(void **state) {
    (void)state;
    struct net *net = settled(40, 75, 200);
    uint64_t longest_ms = 0;
    for (int i = 0; i < 200; i++) {
        net_row(net, i % 40, "told/to/all", i / 40 % 2 == 0);
        uint64_t begun_ms = net->now_ms;
        assert_true(net_until(net, net_agreed, 5000));
        if (net->now_ms - begun_ms > longest_ms) longest_ms = net->now_ms - begun_ms;
        net_run(net, 1000);
    }
    print_message("40 brokers agree at most %d ms after a change\n", (int)longest_ms);
    assert_in_range(longest_ms, 1, 1000);
    net_free(net);
}

struct cost {
    uint64_t idle;       /* bytes of comparisons of each broker in 10 s when all are equal */
    uint64_t difference; /* bytes of one comparison that finds something */
};

static struct cost cost_of_comparing(int count) {
    struct net *net = settled(count, 73, 1000000000);
    net_run(net,
            120000); /* until all have met: to one whom we have not, the question is said before and after the proofs */
    struct said idle, found;
    listen_for(net, 10000, &idle);
    for (int i = 2; i < count; i++) /* only one other hears of it from its owner */
        net->cut[1][i] = true;
    net_row(net, 1, "c/row", true);
    listen_for(net, 10000, &found);
    memset(net->cut, 0, sizeof net->cut);
    assert_true(found.count[MESSAGE_BUCKETS] > 0);
    struct cost cost = {
        .idle =
            (idle.bytes[MESSAGE_DIGEST] + idle.bytes[MESSAGE_BUCKETS] + idle.bytes[MESSAGE_VERSIONS]) / (uint64_t)count,
        .difference = (found.bytes[MESSAGE_BUCKETS] + found.bytes[MESSAGE_VERSIONS]) / found.count[MESSAGE_BUCKETS],
    };
    assert_true(net_until(net, net_agreed, 60000));
    net_free(net);
    return cost;
}

/* P13 */
static void comparing_tables_costs_the_same_however_many_members_there_are(void **state) {
    (void)state;
    struct cost few = cost_of_comparing(5), many = cost_of_comparing(39);
    print_message("5 brokers: %d B idle, %d B for a difference; 39: %d B and %d B\n", (int)few.idle,
                  (int)few.difference, (int)many.idle, (int)many.difference);
    assert_in_range(many.idle, 1, few.idle * 3 / 2);
    assert_in_range(many.difference, 500, 1500);
    assert_in_range(few.difference, 500, 1500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_everybody_has_is_soon_only_named_and_then_not_even_that),
        cmocka_unit_test(an_entry_takes_the_place_of_the_one_before_it),
        cmocka_unit_test(news_of_one_waits_for_no_round_of_others),
        cmocka_unit_test(no_rumour_passes_by_anybody),
        cmocka_unit_test(comparing_tables_costs_the_same_however_many_members_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
