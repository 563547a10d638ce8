/* Our own slowness is not another's death (P17, P24); leaving (P21); and silence when all has been said (P20). */
#include "gossip_net.h"

static uint64_t suspicions_at(struct net *net, int node) {
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[node].gossip, &counters);
    return counters.suspicions;
}

#define SOCKET_PACKETS_MAX 250u /* about what Linux keeps at its default net.core.rmem_max; what comes then is lost */

struct backlog {
    struct net_packet *first, **last;
    size_t count;
};

static void keep_packet(void *context, const struct net_packet *packet) {
    struct backlog *backlog = context;
    if (backlog->count++ >= SOCKET_PACKETS_MAX) return;
    struct net_packet *copy = malloc(sizeof *copy);
    assert_non_null(copy);
    *copy = *packet;
    copy->next = NULL;
    *backlog->last = copy;
    backlog->last = &copy->next;
}

/* The node's loop stands still: what comes waits in its socket. Then its timers run first, as those of a loop do, and
 * it reads after them. */
static void stall(struct net *net, int index, uint64_t ms) {
    struct net_node *node = &net->nodes[index];
    struct gossip *gossip = node->gossip;
    struct backlog backlog = {.last = &backlog.first};
    node->gossip = NULL;
    node->puppet = keep_packet;
    node->puppet_context = &backlog;
    net_run(net, ms);
    node->gossip = gossip;
    node->puppet = NULL;
    gossip_tick(gossip, net->now_ms);
    net_drain(net, index);
    while (backlog.first) {
        struct net_packet *packet = backlog.first;
        backlog.first = packet->next;
        gossip_receive(gossip, net->now_ms, &packet->source, packet->bytes, packet->size);
        net_drain(net, index);
        free(packet);
    }
}

/* P17 */
static void answers_that_wait_in_our_own_socket_are_read_before_anybody_is_suspected(void **state) {
    (void)state;
    struct net *net = net_new_running(5, 41);
    net->delay_min_ms = net->delay_max_ms = 120; /* so that helpers are asked, too, and their time can run out */
    net_run(net, 3000);
    uint64_t before = suspicions_at(net, 0);
    for (uint64_t i = 0; i < 200; i++) {
        stall(net, 0, 100 + i * 37 % 900);
        net_run(net, 20 + i * 13 % 300);
    }
    assert_int_equal(suspicions_at(net, 0) - before, 0);
    assert_true(net_until(net, net_all_alive, 3000));
    net_free(net);
}

/* P17: the question was out, a second one too, and then we slept: that nobody answered in time is our doing. */
static void a_question_that_was_slept_through_accuses_nobody(void **state) {
    (void)state;
    size_t slept = 0;
    for (uint64_t offset_ms = 0; offset_ms < 3000; offset_ms += 30) {
        struct net *net = net_new_running(2, 200 + offset_ms);
        net_run(net, 1000);
        net->cut[0][1] = net->cut[1][0] = true;
        net_run(net, offset_ms);
        net->cut[0][1] = net->cut[1][0] = false;
        if (net->nodes[0].sees[1] == MEMBER_ALIVE) {
            stall(net, 0, 5000);
            net_run(net, 3000);
            assert_int_equal(suspicions_at(net, 0), 0);
            slept++;
        }
        net_free(net);
    }
    assert_true(slept > 10);
}

static bool others_bury_the_first(struct net *net) {
    for (int i = 1; i < net->count; i++)
        if (net->nodes[i].sees[0] != MEMBER_DOWN) return false;
    return true;
}

/* P24: SIGSTOP, or a virtual machine that was frozen. The others hold it dead by then. */
static void who_was_stopped_accuses_nobody_and_is_back_within_a_second(void **state) {
    (void)state;
    static const uint64_t pauses[] = {1500, 10000, 600000};
    for (size_t p = 0; p < 3; p++)
        for (uint64_t seed = 50; seed < 60; seed++) {
            struct net *net = net_new_running(3 + (int)seed % 4, seed);
            net_run(net, seed * 31);
            uint64_t before = suspicions_at(net, 0), downs = net->nodes[0].down_events;
            stall(net, 0, pauses[p]);
            assert_true(pauses[p] < 5000 || others_bury_the_first(net));
            assert_true(net_until(net, net_all_alive, 1000));
            assert_int_equal(suspicions_at(net, 0), before);
            assert_int_equal(net->nodes[0].down_events, downs);
            net_free(net);
        }
}

/* P24: a machine that was suspended: its monotonic clock stood still, and only the caller knows. */
static void who_was_suspended_is_back_within_a_second(void **state) {
    (void)state;
    for (uint64_t seed = 60; seed < 70; seed++) {
        struct net *net = net_new_running(4, seed);
        net_run(net, 2000);
        struct net_node *node = &net->nodes[0];
        struct gossip *gossip = node->gossip;
        node->gossip = NULL;
        net_run(net, 20000);
        assert_true(others_bury_the_first(net));
        node->gossip = gossip;
        gossip_note_lag(gossip, net->now_ms, 20000);
        net_drain(net, 0);
        assert_true(net_until(net, net_all_alive, 1000));
        assert_int_equal(node->down_events, 0);
        net_free(net);
    }
}

/* ---- leaving ---- */

/* P21 */
static void leaving_is_known_to_three_before_it_ends_at_20_percent_loss(void **state) {
    (void)state;
    uint64_t slowest = 0, forced = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct net *net = net_new_running(6, seed);
        net->loss_percent = 20;
        net->delay_min_ms = net->delay_max_ms = 200;
        net_run(net, 1000);
        uint64_t start = net->now_ms;
        gossip_leave(net->nodes[5].gossip, net->now_ms);
        net_drain(net, 5);
        while (!gossip_left(net->nodes[5].gossip))
            net_run(net, 10);
        int told = 0;
        for (int i = 0; i < 5; i++)
            told += net->nodes[i].sees[5] == MEMBER_LEFT;
        if (told < 3 || net->now_ms - start >= 5000) forced++;
        slowest = net->now_ms - start > slowest ? net->now_ms - start : slowest;
        net_kill(net, 5);
        net_run(net, 10000);
        for (int i = 0; i < 5; i++)
            assert_int_equal(net->nodes[i].sees[5], MEMBER_LEFT); /* nobody takes it for dead */
        net_free(net);
    }
    print_message("left after %llu ms at the latest\n", (unsigned long long)slowest);
    assert_int_equal(forced, 0);
}

/* P21: and when nobody can hear it any more, it goes all the same. */
static void who_leaves_unheard_goes_after_5_s(void **state) {
    (void)state;
    struct net *net = net_new_running(4, 101);
    net_run(net, 1000);
    for (int i = 0; i < 3; i++)
        net->cut[i][3] = net->cut[3][i] = true;
    gossip_leave(net->nodes[3].gossip, net->now_ms);
    net_drain(net, 3);
    net_run(net, 4900);
    assert_false(gossip_left(net->nodes[3].gossip));
    net_run(net, 200);
    assert_true(gossip_left(net->nodes[3].gossip));
    net_free(net);
}

static bool refuse_the_last = false;
static bool is_allowed(const char *token) {
    return !refuse_the_last || strncmp(token, "edge-4", 6) != 0;
}

/* P21 */
static void who_is_refused_by_all_leaves_at_once(void **state) {
    (void)state;
    refuse_the_last = false;
    struct net *net = net_new(4, 81);
    for (int i = 0; i < 4; i++) {
        net->nodes[i].identity.allow = is_allowed;
        net->nodes[i].identity.valid_for_ms = 60000;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 10000));
    refuse_the_last = true;
    for (int i = 0; i < 3; i++) { /* they begin anew, with an issuer that it does not know */
        net_kill(net, i);
        net->nodes[i].epoch++;
        net_start(net, i);
    }
    net_run(net, 3000);
    assert_int_equal(net->nodes[3].sees[0], MEMBER_ALIVE);
    assert_int_not_equal(net->nodes[0].sees[3], MEMBER_ALIVE);
    assert_true(net->nodes[3].event_count[GOSSIP_REFUSED_US] > 0);
    gossip_leave(net->nodes[3].gossip, net->now_ms);
    net_drain(net, 3);
    net_run(net, 500);
    assert_true(gossip_left(net->nodes[3].gossip));
    net_free(net);
}

static void who_is_alone_leaves_at_once(void **state) {
    (void)state;
    struct net *net = net_new(1, 82);
    net_start(net, 0);
    net_run(net, 1000);
    gossip_leave(net->nodes[0].gossip, net->now_ms);
    assert_true(gossip_left(net->nodes[0].gossip));
    net_free(net);
}

/* ---- storms ---- */

static uint64_t sent_in(struct net *net, uint64_t ms) {
    uint64_t before = net->sent;
    net_run(net, ms);
    return net->sent - before;
}

/* P20: after the last change all is as quiet as it was before the first, whatever the change was. */
static void after_the_last_change_it_is_as_quiet_as_before(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct net *net = net_new_running(10, seed);
        net_run(net, 20000);
        uint64_t quiet = sent_in(net, 20000);
        for (int i = 0; i < 10; i++)
            net_row(net, i, "a/b", true);
        for (int i = 0; i < 10; i++)
            for (int j = 0; j < 10; j++)
                net->cut[i][j] = (i < 3) != (j < 3);
        net_run(net, 30000);
        memset(net->cut, 0, sizeof net->cut);
        net_run(net, 5000);
        gossip_leave(net->nodes[9].gossip, net->now_ms);
        net_drain(net, 9);
        net_run(net, 1000);
        net_kill(net, 9);
        net->nodes[9].epoch = 2;
        net_start(net, 9);
        net_kill(net, 8);
        net_run(net, 30000);
        net->nodes[8].epoch = 2;
        net_start(net, 8);
        assert_true(net_until(net, net_agreed, 10000));
        net_run(net, 10000);
        uint64_t after = sent_in(net, 20000);
        print_message("datagrams in 20 s, before and after: %llu, %llu\n", (unsigned long long)quiet,
                      (unsigned long long)after);
        assert_true(after <= quiet + quiet / 10);
        net_free(net);
    }
}

/* P18: beyond a quarter of all nobody is evicted for a while; but those who are dead end as such. */
static void a_real_death_of_many_ends(void **state) {
    (void)state;
    struct net *net = net_new_running(12, 91);
    net_run(net, 2000);
    for (int i = 6; i < 12; i++)
        net_kill(net, i);
    net_run(net, 20000);
    for (int i = 0; i < 6; i++)
        for (int j = 6; j < 12; j++)
            assert_int_equal(net->nodes[i].sees[j], MEMBER_SUSPECT);
    net_run(net, 60000);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 12; j++)
            if (i != j) assert_int_equal(net->nodes[i].sees[j], j < 6 ? MEMBER_ALIVE : MEMBER_DOWN);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_that_wait_in_our_own_socket_are_read_before_anybody_is_suspected),
        cmocka_unit_test(a_question_that_was_slept_through_accuses_nobody),
        cmocka_unit_test(who_was_stopped_accuses_nobody_and_is_back_within_a_second),
        cmocka_unit_test(who_was_suspended_is_back_within_a_second),
        cmocka_unit_test(leaving_is_known_to_three_before_it_ends_at_20_percent_loss),
        cmocka_unit_test(who_leaves_unheard_goes_after_5_s),
        cmocka_unit_test(who_is_refused_by_all_leaves_at_once),
        cmocka_unit_test(who_is_alone_leaves_at_once),
        cmocka_unit_test(after_the_last_change_it_is_as_quiet_as_before),
        cmocka_unit_test(a_real_death_of_many_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
