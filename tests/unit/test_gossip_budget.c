/* What is said in a second, and who gets how much of it (P15, P16). */
#include "gossip_net.h"

#include "gossip/budget.h"
#include "gossip/verbs.h"

static void add(struct budget *budget, enum budget_class class, size_t size) {
    struct queued_datagram *datagram = calloc(1, sizeof *datagram + size);
    assert_non_null(datagram);
    datagram->size = size;
    datagram->bytes[0] = (uint8_t) class;
    budget_add(budget, class, datagram);
}

static size_t take(struct budget *budget, uint64_t now_ms, size_t bytes[BUDGET_CLASSES]) {
    size_t count = 0;
    for (struct queued_datagram *taken; (taken = budget_take(budget, now_ms)); count++) {
        bytes[taken->bytes[0]] += taken->size;
        free(taken);
    }
    return count;
}

static void empty(struct budget *budget) {
    for (struct queued_datagram *left; (left = budget_take_back(budget));)
        free(left);
    assert_int_equal(budget->count, 0);
}

static void what_is_said_in_a_second_has_a_bound(void **state) {
    (void)state;
    struct budget budget;
    size_t bytes[BUDGET_CLASSES] = {0};
    budget_init(&budget, 100000, 1000);
    for (int i = 0; i < 1000; i++)
        add(&budget, BUDGET_REPAIR, 1000);
    take(&budget, 1000, bytes);
    assert_int_equal(bytes[BUDGET_REPAIR], 25000); /* a quarter of a second at once */
    uint64_t now_ms = 1000;
    while (now_ms < 6000) {
        uint64_t next_ms = budget_deadline_ms(&budget, now_ms);
        assert_true(next_ms > now_ms && next_ms <= now_ms + 13);
        now_ms = next_ms;
        assert_true(take(&budget, now_ms, bytes) > 0);
    }
    assert_in_range(bytes[BUDGET_REPAIR], 520000, 530000);
    take(&budget, 100000, bytes); /* silence does not add up */
    assert_in_range(bytes[BUDGET_REPAIR], 540000, 555000);
    empty(&budget);
}

static void time_that_runs_backwards_gives_nothing(void **state) {
    (void)state;
    struct budget budget;
    size_t bytes[BUDGET_CLASSES] = {0};
    budget_init(&budget, 16384, 5000);
    for (int i = 0; i < 50; i++)
        add(&budget, BUDGET_OWN, 1000);
    size_t first = take(&budget, 5000, bytes);
    assert_int_equal(take(&budget, 1000, bytes), 0);
    assert_int_equal(take(&budget, 5000, bytes), 0);
    assert_true(first > 0 && first < 50);
    empty(&budget);
}

static void each_class_gets_its_share_whoever_has_most(void **state) {
    (void)state;
    struct budget budget;
    size_t bytes[BUDGET_CLASSES] = {0};
    budget_init(&budget, 1000000, 0);
    for (int i = 0; i < 20000; i++)
        for (int class = 0; class < (int)BUDGET_CLASSES; class ++)
            if (i % 10 == 0 || class == BUDGET_MEMBERS) /* ten times as much of it */
                add(&budget, (enum budget_class) class, 200 + (size_t)(i * 7 + class * 131) % 1000);
    for (uint64_t now_ms = 0; now_ms < 1000; now_ms += 5)
        take(&budget, now_ms, bytes);
    size_t all = 0;
    for (size_t i = 0; i < BUDGET_CLASSES; i++)
        all += bytes[i];
    static const size_t part[BUDGET_CLASSES] = {10, 3, 2, 3, 2, 5};
    for (size_t i = 0; i < BUDGET_CLASSES; i++)
        assert_in_range(bytes[i], all * part[i] / 25 * 95 / 100, all * part[i] / 25 * 105 / 100);
    empty(&budget);
}

static void a_share_that_is_not_used_goes_to_the_others(void **state) {
    (void)state;
    struct budget budget;
    size_t bytes[BUDGET_CLASSES] = {0};
    budget_init(&budget, 100000, 0);
    for (int i = 0; i < 300; i++)
        add(&budget, BUDGET_MEMBERS, 1000);
    for (uint64_t now_ms = 0; now_ms <= 1000; now_ms += 10)
        take(&budget, now_ms, bytes);
    assert_in_range(bytes[BUDGET_MEMBERS], 120000, 126000);
    /* A probe that comes now is not behind all of them. */
    add(&budget, BUDGET_PROBES, 100);
    take(&budget, 1030, bytes);
    assert_int_equal(bytes[BUDGET_PROBES], 100);
    assert_true(bytes[BUDGET_MEMBERS] < 130000);
    empty(&budget);
}

static void the_fullest_class_makes_room(void **state) {
    (void)state;
    struct budget budget;
    budget_init(&budget, 100000, 0);
    for (int i = 0; i < 5; i++)
        add(&budget, BUDGET_PROBES, 100);
    for (int i = 0; i < 50; i++)
        add(&budget, BUDGET_REPAIR, 100);
    for (int i = 0; i < 45; i++) {
        struct queued_datagram *dropped = budget_take_back(&budget);
        assert_int_equal(dropped->bytes[0], BUDGET_REPAIR);
        free(dropped);
    }
    assert_int_equal(budget_waiting(&budget, BUDGET_REPAIR), 500);
    empty(&budget);
}

/* Whoever asked has given up, or has asked again: answered in time are those who ask now. */
static void an_answer_that_waited_too_long_is_not_sent(void **state) {
    (void)state;
    struct budget budget;
    budget_init(&budget, 100000, 0);
    for (int class = 0; class < (int)BUDGET_CLASSES; class ++)
        add(&budget, (enum budget_class) class, 100);
    assert_null(budget_take_stale(&budget, 1000));
    size_t stale[BUDGET_CLASSES] = {0};
    for (struct queued_datagram *taken; (taken = budget_take_stale(&budget, 3500));) {
        stale[taken->bytes[0]]++;
        free(taken);
    }
    static const size_t expected[BUDGET_CLASSES] = {[BUDGET_PROBES] = 1, [BUDGET_REPAIR] = 1, [BUDGET_NEWCOMERS] = 1};
    assert_memory_equal(stale, expected, sizeof stale);
    empty(&budget);
}

/* ---- in a federation ---- */

static struct net *net_on_a_thin_wire(int count, uint64_t seed, uint32_t bytes_per_s) {
    struct net *net = net_new(count, seed);
    for (int i = 0; i < count; i++) {
        net->nodes[i].limits.datagram_bytes_per_s = bytes_per_s;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 20000));
    return net;
}

/* P15: the rows of one broker change without end; all still know one another, the rows of the others arrive, and the
 * one keeps its bound: it gathers changes until they can be told. */
static void a_flood_of_its_own_rows_starves_nobody(void **state) {
    (void)state;
    struct net *net = net_on_a_thin_wire(8, 71, 32768);
    struct gossip_counters before, after;
    net_run(net, 5000);
    gossip_read_counters(net->nodes[0].gossip, &before);
    uint64_t worst = 0;
    size_t waiting = 0;
    for (int i = 0; i < 3000; i++) {
        char filter[400];
        size_t now = net->nodes[0].gossip->budget.count;
        waiting = now > waiting ? now : waiting;
        snprintf(filter, sizeof filter, "flood/%0300d", i % 100);
        net_row(net, 0, filter, i / 100 % 2 == 0);
        if (i % 300 == 150) {
            snprintf(filter, sizeof filter, "calm/%d", i);
            net_row(net, 7, filter, true);
            uint64_t start = net->now_ms;
            while (!net_has_row(net, 1, 7, filter) && net->now_ms < start + 5000)
                net_run(net, 10);
            worst = net->now_ms - start > worst ? net->now_ms - start : worst;
        }
        net_run(net, 10);
    }
    gossip_read_counters(net->nodes[0].gossip, &after);
    print_message(
        "30 s of a flood of rows: %llu bytes a second, %llu entries, another's row known after %llu ms at the latest\n",
        (unsigned long long)(after.bytes_sent - before.bytes_sent) / 30,
        (unsigned long long)(after.entries_sent - before.entries_sent), (unsigned long long)worst);
    assert_true(after.bytes_sent - before.bytes_sent < 31u * 32768);
    print_message("%zu datagrams waited at most, %llu waited too long\n", waiting,
                  (unsigned long long)(after.queue_dropped - before.queue_dropped));
    assert_in_range(waiting, 1, 1024); /* of 4,096: what was dropped is what came to nothing, not what found no room */
    assert_true(worst <= 1000);
    uint64_t downs = 0;
    for (int i = 0; i < 8; i++)
        downs += net->nodes[i].down_events;
    assert_int_equal(downs, 0);
    assert_true(net_until(net, net_agreed, 5000));
    net_free(net);
}

/* P16: after a second of them, those who asked have asked again. */
static void of_too_many_answers_the_newest_are_sent(void **state) {
    (void)state;
    struct net *net = net_on_a_thin_wire(2, 72, 16384);
    struct gossip *gossip = net->nodes[0].gossip;
    struct gossip_counters before, after;
    net_run(net, 5000);
    gossip_read_counters(gossip, &before);
    for (uint64_t i = 1; i <= 600; i++) {
        struct message pong = {.kind = MESSAGE_PONG, .number = i};
        send_one(gossip, members_visible(gossip, 0), &pong);
    }
    size_t waiting = budget_waiting(&gossip->budget, BUDGET_PROBES);
    net_run(net, 2000);
    gossip_read_counters(gossip, &after);
    assert_in_range(waiting, 3 * 16384, 8 * 16384);
    assert_in_range(after.bytes_sent - before.bytes_sent, 16384, 3 * 16384);
    assert_in_range(after.queue_dropped - before.queue_dropped, 200, 500);
    assert_int_equal(budget_waiting(&gossip->budget, BUDGET_PROBES), 0);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_in_a_second_has_a_bound),
        cmocka_unit_test(time_that_runs_backwards_gives_nothing),
        cmocka_unit_test(each_class_gets_its_share_whoever_has_most),
        cmocka_unit_test(a_share_that_is_not_used_goes_to_the_others),
        cmocka_unit_test(the_fullest_class_makes_room),
        cmocka_unit_test(an_answer_that_waited_too_long_is_not_sent),
        cmocka_unit_test(a_flood_of_its_own_rows_starves_nobody),
        cmocka_unit_test(of_too_many_answers_the_newest_are_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
