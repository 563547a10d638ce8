/* The key ring: which one is used, and how it changes under brokers that run. P22. */
#include "gossip_forger.h"

static enum gossip_ring_verdict give_saying(struct net *net, int node, uint8_t number, const char *keys,
                                            char reason[160]) {
    uint8_t ring[16];
    size_t size = net_ring(number, keys, ring);
    enum gossip_ring_verdict verdict = gossip_take_ring(net->nodes[node].gossip, net->now_ms, ring, size, reason);
    net_drain(net, node);
    return verdict;
}

static enum gossip_ring_verdict give(struct net *net, int node, uint8_t number, const char *keys) {
    return give_saying(net, node, number, keys, NULL);
}

static struct member_info seen(struct net *net, int by, int whom) {
    struct member_info info = {0};
    struct member_id id = net_id(net, whom);
    assert_true(gossip_member_find(net->nodes[by].gossip, net->now_ms, &id, &info));
    return info;
}

static uint64_t unsealed(struct net *net) {
    uint64_t sum = 0;
    for (int i = 0; i < net->count; i++) {
        struct gossip_counters counters;
        if (!net->nodes[i].gossip) continue;
        gossip_read_counters(net->nodes[i].gossip, &counters);
        sum += counters.unsealed;
    }
    return sum;
}

static bool all_use_the_same(struct net *net) {
    for (int i = 0; i < net->count; i++)
        for (int j = 0; j < net->count; j++)
            if (seen(net, i, j).ring != seen(net, 0, 0).ring || seen(net, i, j).ring_differs) return false;
    return true;
}

/* P22 */
static void three_steps_change_the_key_and_nobody_misses_a_datagram(void **state) {
    (void)state;
    static const char *const steps[] = {"Zn", "nZ", "n"}; /* Z is 0x5a, the key of the configuration */
    struct net *net = net_new_running(4, 201);
    for (uint8_t step = 0; step < 3; step++) {
        for (int i = 0; i < 4; i++) {
            assert_int_equal(give(net, i, (uint8_t)(step + 1), steps[step]), GOSSIP_RING_TAKEN);
            net_run(net, 1500); /* others are a step behind for a while */
        }
        assert_true(net_until(net, all_use_the_same, 5000));
        assert_int_equal(seen(net, 0, 3).ring, step + 1);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(net->nodes[i].down_events, 0);
        assert_int_equal(net->nodes[i].event_count[GOSSIP_RING], 3);
        assert_int_equal(net->nodes[i].event_count[GOSSIP_WARNING], 0);
    }
    assert_int_equal(unsealed(net), 0);
    /* And the old key opens nothing any more. */
    struct message ping = {.kind = MESSAGE_PING, .number = 1};
    struct forger forger = {.net = net, .at = 0, .address = {.family = 4, .ip = {10, 9, 9, 9}, .port = 1}};
    forger.header.id = net_id(net, 30);
    forger_say(&forger, &ping);
    assert_int_equal(unsealed(net), 1);
    net_free(net);
}

static void an_older_ring_and_a_forged_one_are_refused_with_a_reason(void **state) {
    (void)state;
    struct net *net = net_new_running(2, 202);
    char reason[160] = "";
    assert_int_equal(give(net, 0, 5, "Zn"), GOSSIP_RING_TAKEN);
    assert_int_equal(give(net, 0, 5, "Zn"), GOSSIP_RING_HELD);
    assert_int_equal(give_saying(net, 0, 4, "Zo", reason), GOSSIP_RING_OLDER);
    assert_non_null(strstr(reason, "ring 4 is older than ring 5"));
    static const uint8_t forged[] = "ring\x09Zn!";
    assert_int_equal(gossip_take_ring(net->nodes[0].gossip, net->now_ms, forged, 8, reason), GOSSIP_RING_REFUSED);
    assert_non_null(strstr(reason, "sign one"));
    assert_int_equal(gossip_take_ring(net->nodes[0].gossip, net->now_ms, forged, 0, reason), GOSSIP_RING_REFUSED);
    uint8_t long_one[GOSSIP_RING_SIZE_MAX + 1] = {0};
    assert_int_equal(gossip_take_ring(net->nodes[0].gossip, net->now_ms, long_one, sizeof long_one, reason),
                     GOSSIP_RING_REFUSED);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_RING], 1);
    assert_int_equal(seen(net, 0, 0).ring, 5);
    net_run(net, 2000);
    assert_int_equal(seen(net, 1, 0).ring, 5);
    assert_int_equal(seen(net, 0, 1).ring, 0);
    net_free(net);
}

/* Two admins at once: whichever comes first where, all end with the same one, and all say so. */
static void of_two_rings_with_one_number_all_take_the_same(void **state) {
    (void)state;
    for (int swap = 0; swap < 2; swap++) {
        struct net *net = net_new_running(2, 203);
        assert_int_equal(give(net, 0, 1, swap ? "Za" : "Zb"), GOSSIP_RING_TAKEN);
        assert_int_equal(give(net, 1, 1, swap ? "Zb" : "Za"), GOSSIP_RING_TAKEN);
        net_run(net, 2000);
        assert_true(seen(net, 0, 1).ring_differs);
        for (int i = 0; i < 2; i++) { /* from the head of the other */
            assert_int_equal(net->nodes[i].event_count[GOSSIP_WARNING], 1);
            assert_non_null(strstr(net->nodes[i].last_text, "two key rings have the number 1"));
        }
        enum gossip_ring_verdict first = give(net, 0, 1, swap ? "Zb" : "Za");
        enum gossip_ring_verdict second = give(net, 1, 1, swap ? "Za" : "Zb");
        assert_true((first == GOSSIP_RING_TAKEN && second == GOSSIP_RING_OUTDONE) ||
                    (first == GOSSIP_RING_OUTDONE && second == GOSSIP_RING_TAKEN));
        assert_true(net_until(net, all_use_the_same, 5000));
        net_run(net, 10000);
        for (int i = 0; i < 2; i++)
            assert_int_equal(net->nodes[i].event_count[GOSSIP_WARNING], 1); /* not again and again */
        assert_int_equal(net->nodes[0].down_events + net->nodes[1].down_events, 0);
        net_free(net);
    }
}

static void a_ring_that_was_kept_is_used_after_a_restart(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 204);
    for (uint8_t step = 1; step <= 3; step++)
        for (int i = 0; i < 3; i++) {
            assert_int_equal(give(net, i, step, step == 1 ? "Zn" : step == 2 ? "nZ" : "n"), GOSSIP_RING_TAKEN);
            net_run(net, 200);
        }
    net_kill(net, 1);
    net_run(net, 1000);
    net->nodes[1].epoch++;
    net_start(net, 1); /* its configuration still has the old key */
    assert_true(net_until(net, net_agreed, 5000));
    assert_int_equal(seen(net, 0, 1).ring, 3);
    assert_int_equal(seen(net, 1, 1).ring, 3);
    char reason[160] = "";
    assert_int_equal(give_saying(net, 1, 2, "nZ", reason), GOSSIP_RING_OLDER);
    net_free(net);
}

/* Who stole the old key must neither read the new one nor put one of his own in. */
static void a_ring_in_a_datagram_is_not_looked_at(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 205);
    net_run(net, 1000);
    uint8_t ring[16];
    struct forger forger = forger_new(net, 0, 1, &net->nodes[1].address);
    struct message message = {.kind = MESSAGE_RING, .bytes = ring, .size = net_ring(7, "n", ring)};
    forger_say(&forger, &message);
    assert_int_equal(seen(net, 0, 0).ring, 0);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_RING], 0);
    /* Nor does anybody put one into a datagram, whoever has an older one. */
    assert_int_equal(give(net, 0, 1, "Zn"), GOSSIP_RING_TAKEN);
    unsigned before = forger.count[MESSAGE_RING];
    for (int i = 0; i < 100; i++) {
        struct message ping = {.kind = MESSAGE_PING, .number = 1};
        forger_say(&forger, &ping);
        net_run(net, 100);
    }
    assert_int_equal(forger.count[MESSAGE_RING], before);
    net_free(net);
}

static void a_ring_that_was_kept_and_does_not_fit_is_refused_at_the_start(void **state) {
    (void)state;
    struct net *net = net_new(1, 206);
    struct net_node *node = &net->nodes[0];
    uint8_t ring[GOSSIP_RING_SIZE_MAX + 1] = {0};
    struct gossip_options options = {
        .name = node->name,
        .federation = "home",
        .epoch = 1,
        .public_key = node->identity.public_key,
        .token = (const uint8_t *)node->token,
        .token_size = strlen(node->token),
        .keys = &node->key,
        .key_count = 1,
        .ring = ring,
        .ring_size = sizeof ring,
        .ring_number = 1,
        .crypto = {&node->identity, net_seal, net_open, net_sha256, net_sign, net_verify, net_id_of, net_who_is, NULL},
    };
    assert_null(gossip_new(&options, 0));
    options.ring_size = 8;
    options.ring_number = 0;
    assert_null(gossip_new(&options, 0));
    options.ring_number = 1;
    struct gossip *gossip = gossip_new(&options, 0);
    assert_non_null(gossip);
    /* Without a judge none is good. */
    assert_int_equal(gossip_take_ring(gossip, 0, (const uint8_t *)"ring\x02n.", 7, NULL), GOSSIP_RING_REFUSED);
    gossip_free(gossip);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_steps_change_the_key_and_nobody_misses_a_datagram),
        cmocka_unit_test(an_older_ring_and_a_forged_one_are_refused_with_a_reason),
        cmocka_unit_test(of_two_rings_with_one_number_all_take_the_same),
        cmocka_unit_test(a_ring_that_was_kept_is_used_after_a_restart),
        cmocka_unit_test(a_ring_in_a_datagram_is_not_looked_at),
        cmocka_unit_test(a_ring_that_was_kept_and_does_not_fit_is_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
