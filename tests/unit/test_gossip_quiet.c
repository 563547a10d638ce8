/* Members with whom nothing is going on take little memory, and are as good as the others. */
#include "gossip_net.h"

#include "gossip/inspect.h"

enum { NODES = 40, LAZY = 1 }; /* at every second node members sleep whenever they can */

static size_t sleepers(const struct gossip *gossip, bool with_a_rumor) {
    const struct members *members = &gossip->members;
    size_t count = 0;
    for (size_t place = 0; place < members->count; place++) {
        const struct quiet *quiet = quiet_of(members, members->places[place]);
        count += !quiet->is_awake && (quiet->told_at > 0 || !with_a_rumor);
    }
    return count;
}

/* Ten thousand brokers that know one another keep a hundred million of these. */
static void who_sleeps_takes_forty_bytes(void **state) {
    (void)state;
    assert_in_range(sizeof(struct quiet), 1, 40);
    assert_in_range(sizeof(struct member), 1, 896);
    struct net *net = net_new_running(NODES, 3);
    net_run(net, 10000);
    assert_in_range(sleepers(net->nodes[LAZY].gossip, false), NODES / 2, NODES);
    net_free(net);
}

/* Or else all who hear of many at once would keep a large record of each. */
static void who_is_to_be_told_of_sleeps_and_is_told_of(void **state) {
    (void)state;
    struct net *net = net_new(NODES, 5);
    for (int i = 0; i < NODES; i++)
        net_start(net, i);
    struct gossip *gossip = net->nodes[LAZY].gossip;
    size_t most = 0;
    for (int step = 0; step < 300; step++) {
        net_run(net, 20);
        size_t now = sleepers(gossip, true);
        most = now > most ? now : most;
        assert_null(members_fault(gossip));
    }
    print_message("%d asleep with a rumour\n", (int)most);
    assert_in_range(most, 3, NODES);
    assert_true(net_until(net, net_all_alive, 10000));
    net_run(net, 10000);
    assert_int_equal(members_told_count(gossip), 0); /* it was told often enough */
    net_free(net);
}

/* In a new epoch nobody holds anything of ours, those who sleep neither; and it wakes none of them. */
static void a_raised_epoch_is_unknown_to_sleepers_too(void **state) {
    (void)state;
    struct net *net = net_new_running(NODES, 5);
    net_row(net, LAZY, "a/b", true);
    net_run(net, 20000);
    struct gossip *gossip = net->nodes[LAZY].gossip;
    struct members *members = &gossip->members;
    size_t asleep = sleepers(gossip, false), knew = 0;
    for (size_t place = 0; place < members->count; place++) {
        const struct quiet *quiet = quiet_of(members, members->places[place]);
        knew += !quiet->is_awake && quiet->known_sequence > 0;
    }
    assert_in_range(knew, 2, NODES);
    own_raise_epoch(gossip, gossip->self->epoch, &net->nodes[0].address);
    assert_in_range(sleepers(gossip, false), asleep - 2, asleep);
    for (size_t place = 0; place < members->count; place++) {
        const struct quiet *quiet = quiet_of(members, members->places[place]);
        assert_int_equal(quiet->is_awake ? quiet->awake->known_sequence : quiet->known_sequence, 0);
        assert_int_equal(quiet->is_awake ? quiet->awake->known_incarnation : quiet->known_incarnation, 0);
    }
    net_touched(net, LAZY);
    assert_true(net_until(net, net_agreed, 20000));
    net_free(net);
}

/* Or it could accuse as many again each time that it was forgotten whom it has accused. */
static void who_has_accused_sleeps_when_that_counts_no_more(void **state) {
    (void)state;
    for (size_t slot = 0; slot < ACCUSED_MAX; slot += ACCUSED_MAX - 1) {
        struct net *net = net_new_running(NODES, 3);
        struct gossip *gossip = net->nodes[LAZY].gossip;
        struct member_id id = net_id(net, LAZY + 2);
        struct member *accuser = members_find(gossip, &id);
        uint32_t number = accuser->number;
        uint64_t until_ms = net->now_ms + 60000;
        accuser->trouble = calloc(1, sizeof *accuser->trouble);
        assert_non_null(accuser->trouble);
        accuser->trouble->accused[slot].until_ms = until_ms;
        while (net->now_ms < until_ms) {
            const struct quiet *quiet = quiet_of(&gossip->members, number);
            assert_true(quiet->is_awake && quiet->awake->trouble);
            net_run(net, 1000);
        }
        for (int second = 0; second < 30 && quiet_of(&gossip->members, number)->is_awake; second++)
            net_run(net, 1000);
        assert_false(quiet_of(&gossip->members, number)->is_awake);
        net_free(net);
    }
}

static void portraits_are_shared_by_what_they_are_made_of(void **state) {
    (void)state;
    struct gossip_shared *pool = gossip_shared_new();
    struct member_id id = {{1}};
    uint8_t key[GOSSIP_PUBLIC_KEY_SIZE] = {2}, bytes[80] = {3};
    const struct gossip_crypto crypto = {.sha256 = net_sha256};
    struct head head = {.epoch = 7};
    struct portrait *portraits[3];
    for (uint8_t i = 0; i < 3; i++) {
        bytes[0] = i > 1 ? 4 : 3;
        struct who *who = who_new(pool, &id, key, "edge-1", key, sizeof key);
        portraits[i] = portrait_take(pool, who, statement_new(pool, &crypto, &head, bytes, sizeof bytes), NULL);
        assert_int_equal(portraits[i]->said->bytes[0], bytes[0]);
    }
    assert_ptr_equal(portraits[0], portraits[1]);
    assert_ptr_not_equal(portraits[0], portraits[2]);
    struct who *who;
    struct statement *said;
    struct registry *registry;
    for (size_t i = 0; i < 2; i++) { /* shared with another, then alone */
        portrait_give(portraits[i], &who, &said, &registry);
        assert_memory_equal(&who->id, &id, sizeof id);
        assert_int_equal(said->epoch, 7);
        assert_null(registry);
        who_unref(who);
        statement_unref(said);
    }
    portrait_unref(portraits[2]);
    gossip_shared_free(pool); /* asserts that nothing is left */
}

/* Of members awake and asleep, of itself and of nobody. */
static void what_is_asked_of_memory_in_time_changes_nothing(void **state) {
    (void)state;
    struct net *net = net_new_running(NODES, 5);
    for (int node = 0; node < 2; node++) {
        struct gossip *gossip = net->nodes[node].gossip;
        uint32_t awake = gossip->members.awake_count;
        uint64_t hash = gossip_table_hash(gossip), deadline_ms = gossip_deadline_ms(gossip);
        for (unsigned step = 0; step < GOSSIP_EXPECT_STEPS; step++) {
            struct member_id least = {{0}}, most;
            memset(&most, 0xff, sizeof most);
            gossip_inspect_expect(gossip, NULL, step);
            gossip_inspect_expect(gossip, &least, step);
            gossip_inspect_expect(gossip, &most, step);
            for (int of = 0; of < NODES; of++)
                gossip_inspect_expect(gossip, &net->nodes[of].gossip->self->id, step);
        }
        assert_int_equal(gossip->members.awake_count, awake);
        assert_int_equal(gossip_table_hash(gossip), hash);
        assert_int_equal(gossip_deadline_ms(gossip), deadline_ms);
        assert_null(members_fault(gossip));
    }
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sleeps_takes_forty_bytes),
        cmocka_unit_test(who_is_to_be_told_of_sleeps_and_is_told_of),
        cmocka_unit_test(a_raised_epoch_is_unknown_to_sleepers_too),
        cmocka_unit_test(who_has_accused_sleeps_when_that_counts_no_more),
        cmocka_unit_test(what_is_asked_of_memory_in_time_changes_nothing),
        cmocka_unit_test(portraits_are_shared_by_what_they_are_made_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
