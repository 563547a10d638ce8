/* Who says of others that it holds something else of them makes the honest go through its log, and keeps nobody from
 * going through those that do differ. */
#include "gossip_court.h"

#include "gossip_registry_fixture.h"

static bool same_rows_of_the_traitor(struct net *net) {
    struct member_id id = net_id(net, HONEST);
    const struct member *first = members_find(net->nodes[0].gossip, &id);
    for (int i = 1; i < HONEST; i++) {
        const struct member *held = members_find(net->nodes[i].gossip, &id);
        if (!fixture_same_rows(registry_rows(first->registry), registry_rows(held->registry))) return false;
    }
    return true;
}

static void set_cut(struct net *net, bool apart) {
    for (int i = 0; i < HONEST; i++)
        for (int j = 0; j < HONEST; j++)
            net->cut[i][j] = apart && i % 2 != j % 2;
}

static void tell_entry(struct court *court, int to, unsigned sequence, int tale) {
    uint8_t bytes[MESSAGE_BLOB_MAX];
    char filter[32];
    snprintf(filter, sizeof filter, "tale/%u/%d", sequence, tale);
    size_t size = traitor_entry(court->traitor, HONEST, 1, sequence, filter, false, bytes);
    traitor_say_one(court->traitor, to, (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
}

static void claims_do_not_put_off_that_two_tales_are_found(void **state) {
    (void)state;
    struct court court = court_new(911);
    struct net *net = court.net;
    set_cut(net, true);
    for (unsigned sequence = 1; sequence <= 20; sequence++) {
        for (int to = 0; to < HONEST; to++)
            tell_entry(&court, to, sequence, to % 2);
        net_run(net, 20);
    }
    net_run(net, 600);
    set_cut(net, false);
    assert_false(same_rows_of_the_traitor(net));
    bool agreed = false;
    for (int round = 0; round < 3333 && !agreed; round++) { /* 10 s */
        for (int to = 0; to < HONEST; to++)
            traitor_claim_other(court.traitor, to, (to + 1) % HONEST);
        net_run(net, 3);
        agreed = same_rows_of_the_traitor(net);
    }
    assert_true(agreed);
    court_free(&court);
}

static void who_claims_in_vain_is_asked_for_its_log_a_few_times_in_ten_seconds(void **state) {
    (void)state;
    struct court court = court_new(912);
    uint64_t before = court.traitor->count[MESSAGE_WANT];
    for (int round = 0; round < 3000; round++) { /* 30 s */
        traitor_claim_other(court.traitor, 0, 1 + round % (HONEST - 1));
        net_run(court.net, 10);
    }
    /* Four times, then it is not believed for 10 s. */
    assert_in_range(court.traitor->count[MESSAGE_WANT] - before, 8, 12);
    court_free(&court);
}

/* A claim takes one of four places for 1.2 s; others' are free. */
static void one_that_claims_takes_one_place(void **state) {
    (void)state;
    struct court court = court_new(913);
    for (int about = 1; about < HONEST; about++)
        traitor_claim_other(court.traitor, 0, about);
    net_run(court.net, 20);
    const struct sweeps *sweeps = &court.net->nodes[0].gossip->sweeps;
    size_t busy = 0;
    for (size_t i = 0; i < SWEEPS; i++)
        busy += sweeps->of[i].tries > 0;
    assert_int_equal(busy, 1);
    net_run(court.net, 2000);
    for (size_t i = 0; i < SWEEPS; i++)
        assert_int_equal(sweeps->of[i].tries, 0);
    court_free(&court);
}

/* An entry now and then keeps it up, but for no longer than that. */
static void a_slow_log_is_not_gone_through_for_ever(void **state) {
    (void)state;
    struct court court = court_new(914);
    struct net *net = court.net;
    const struct sweeps *sweeps = &net->nodes[0].gossip->sweeps;
    for (unsigned i = 0; i < 20; i++) {
        char filter[32];
        snprintf(filter, sizeof filter, "slow/%u", i);
        net_row(net, 1, filter, true);
        net_run(net, 500);
    }
    struct member_id id = net_id(net, 1);
    const struct registry *registry = members_find(net->nodes[0].gossip, &id)->registry;
    traitor_claim_other(court.traitor, 0, 1);
    net_run(net, 20);
    for (uint64_t step = 0; step < 15; step++) {
        assert_int_equal(sweeps->of[0].tries > 0, step * 800 < 10000);
        const struct log_entry *entry = registry_entry(registry, registry_base_sequence(registry) + 1 + step);
        traitor_say_one(court.traitor, 0,
                        (struct message){.kind = MESSAGE_ENTRY, .bytes = entry->bytes, .size = entry->size});
        net_run(net, 800);
    }
    court_free(&court);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_do_not_put_off_that_two_tales_are_found),
        cmocka_unit_test(who_claims_in_vain_is_asked_for_its_log_a_few_times_in_ten_seconds),
        cmocka_unit_test(one_that_claims_takes_one_place),
        cmocka_unit_test(a_slow_log_is_not_gone_through_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
