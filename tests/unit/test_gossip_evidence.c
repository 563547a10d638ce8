/* Which evidence counts, what it takes to undo it, and who is told of it. */
#include "gossip_entry.h"
#include "gossip_forger.h"

#include "gossip/inspect.h"

static struct gossip_inspected held(struct net *net, int at, int of) {
    struct member_id id = net_id(net, of);
    struct gossip_inspected found = {0};
    assert_true(gossip_inspect_find(net->nodes[at].gossip, &id, &found));
    return found;
}

static void cut_off(struct net *net, int which, bool off) {
    for (int i = 0; i < net->count; i++)
        net->cut[i][which] = net->cut[which][i] = off && i != which;
}

static void run_until(struct net *net, int at, int of, enum member_state state, uint64_t ms) {
    uint64_t end = net->now_ms + ms;
    while (net->nodes[at].sees[of] != state && net->now_ms < end)
        net_step(net, end);
    assert_int_equal(net->nodes[at].sees[of], state);
}

/* P7: the accusation is kept, and only what is newer undoes it: an answer alone does not. */
static void a_suspect_is_cleared_by_newer_evidence_only(void **state) {
    (void)state;
    for (uint64_t seed = 400; seed < 410; seed++) {
        struct net *net = net_new_running(3, seed);
        net_run(net, 1000);
        cut_off(net, 2, true);
        run_until(net, 0, 2, MEMBER_SUSPECT, 3000);
        struct gossip_inspected accused = held(net, 0, 2);
        assert_int_equal(accused.accused_epoch, accused.epoch);
        assert_int_equal(accused.accused_incarnation, accused.incarnation);
        cut_off(net, 2, false);
        run_until(net, 0, 2, MEMBER_ALIVE, 1000);
        assert_true(held(net, 0, 2).incarnation > accused.accused_incarnation);
        net_free(net);
    }
}

/* P7, P9: the death is kept too. The same head, by an answer or from anybody, is not enough to come back with. */
static void who_was_declared_dead_comes_back_with_newer_evidence_only(void **state) {
    (void)state;
    for (uint64_t seed = 410; seed < 420; seed++) {
        struct net *net = net_new_running(3, seed);
        net_run(net, 1000);
        cut_off(net, 2, true);
        run_until(net, 0, 2, MEMBER_DOWN, 10000);
        struct gossip_inspected dead = held(net, 0, 2);
        assert_int_equal(dead.down_epoch, dead.epoch);
        assert_int_equal(dead.down_incarnation, dead.incarnation);
        cut_off(net, 2, false);
        run_until(net, 0, 2, MEMBER_ALIVE, 20000);
        assert_true(held(net, 0, 2).incarnation > dead.down_incarnation);
        assert_int_equal(held(net, 0, 2).epoch, dead.epoch); /* and it need not begin a new life for it */
        net_free(net);
    }
}

/* P7: nobody heard the accusation when it was made, nor while it was told. The next question says it again. */
static void what_a_member_is_accused_of_comes_with_every_question(void **state) {
    (void)state;
    for (uint64_t seed = 420; seed < 430; seed++) {
        struct net *net = net_new_running(2, seed);
        net->nodes[0].limits.suspicion_min_ms = 60000;
        net_kill(net, 0);
        net->nodes[0].epoch++;
        net_start(net, 0);
        assert_true(net_until(net, net_all_alive, 3000));
        net_run(net, 1000);
        cut_off(net, 1, true);
        run_until(net, 0, 1, MEMBER_SUSPECT, 3000);
        net_run(net, 10000);
        cut_off(net, 1, false);
        run_until(net, 0, 1, MEMBER_ALIVE, 2000);
        net_free(net);
    }
}

/* P9: the others still believe in a member that has just died. Whoever joins them then hears of it, and does not. */
static void hearsay_makes_nobody_alive(void **state) {
    (void)state;
    for (uint64_t seed = 430; seed < 440; seed++) {
        struct net *net = net_new(4, seed);
        for (int i = 0; i < 3; i++)
            net_start(net, i);
        assert_true(net_until(net, net_all_alive, 10000));
        net_row(net, 1, "of/the/dead", true);
        net_run(net, 1000);
        net_kill(net, 1);
        net_start(net, 3);
        for (int i = 0; i < 1000; i++) {
            net_run(net, 10);
            assert_int_not_equal(net->nodes[3].sees[1], MEMBER_ALIVE);
            assert_false(net_has_row(net, 3, 1, "of/the/dead"));
        }
        assert_int_equal(net->nodes[3].sees[0], MEMBER_ALIVE);
        net_free(net);
    }
}

/* P6: whoever speaks in an older life is answered with the newer one, in the answer itself: nothing else need happen
 * between the two, now or later. */
static void who_is_older_than_what_we_hold_is_told_so_in_the_answer(void **state) {
    (void)state;
    struct net *net = net_new(2, 440);
    for (int i = 0; i < 2; i++) {
        net->nodes[i].epoch = 5;
        net_start(net, i);
    }
    assert_true(net_until(net, net_all_alive, 3000));
    net_run(net, 1000);
    net_kill(net, 1);
    struct forger forger = forger_new(net, 0, 1, &net->nodes[1].address);
    forger_say(&forger, &(struct message){.kind = MESSAGE_PING, .number = 2});
    net_run(net, 200);
    forger.header.epoch = 4;
    assert_int_equal(forger.told, 0);
    forger_say(&forger, &(struct message){.kind = MESSAGE_PING, .number = 4});
    assert_int_equal(forger.told, 1);
    /* P20: but not as often as it asks. */
    forger.told = forger.count[MESSAGE_PONG] = 0;
    for (uint64_t i = 0; i < 50; i++)
        forger_say(&forger, &(struct message){.kind = MESSAGE_PING, .number = 6 + 2 * i});
    assert_int_equal(forger.count[MESSAGE_PONG], 50);
    assert_in_range(forger.told, 0, 1);
    net_free(net);
}

/* P7: one that holds more rows of the dead is told too, as it may be the only one that can tell the dead: where two
 * routers lie between the accuser and the accused. */
static void who_shows_that_the_dead_goes_on_is_told_of_its_death(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 445);
    net_run(net, 1000);
    net_kill(net, 1);
    run_until(net, 0, 1, MEMBER_DOWN, 10000);
    struct gossip_inspected dead = held(net, 0, 1);
    net_kill(net, 2);
    struct forger forger = forger_new(net, 0, 2, &net->nodes[2].address);
    struct version version = {.id = net_id(net, 1), .epoch = dead.epoch, .incarnation = dead.incarnation};
    struct message list = {.kind = MESSAGE_VERSIONS, .number = digest_bucket_of(&version.id)};
    memset(list.other.bytes, 0xff, sizeof list.other.bytes);
    uint8_t record[MESSAGE_VERSION_SIZE];
    list.bytes = record;
    list.size = sizeof record;
    for (unsigned told = 0; told < 3; told++) {
        assert_int_equal(forger.count[MESSAGE_ACCUSE], told);
        version.sequence = dead.sequence + 5 * told;
        version.incarnation = dead.incarnation + told / 2; /* a newer head refutes it */
        version_store(record, &version);
        forger_say(&forger, &list);
    }
    assert_int_equal(forger.count[MESSAGE_ACCUSE], 2);
    net_free(net);
}

static void say_head(struct forger *forger, int of, uint64_t incarnation, uint64_t sequence, uint64_t checkpoint) {
    struct net *net = forger->net;
    struct gossip_crypto crypto = {.context = &net->nodes[of].identity, .sha256 = net_sha256, .sign = net_sign};
    struct head head = {.id = forger->header.id,
                        .epoch = forger->header.epoch,
                        .incarnation = incarnation,
                        .sequence = sequence,
                        .checkpoint_sequence = checkpoint,
                        .checkpoint_size = checkpoint ? 400 : 0,
                        .address = net->nodes[of].address};
    if (!checkpoint) checkpoint_empty_root(&crypto, head.checkpoint_root);
    memcpy(head.name, net->nodes[of].name, strlen(net->nodes[of].name));
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size = head_sign(&head, &crypto, bytes);
    forger_say(forger, &(struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
}

/* P6: it lost its disk, and began again in the same epoch. Somebody still holds the head of a checkpoint that it had
 * made before, and that nobody has. */
static void a_checkpoint_of_a_life_that_was_lost_takes_nothing_back(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 442);
    net_kill(net, 1);
    struct forger forger = forger_new(net, 0, 1, &net->nodes[1].address);
    forger.header.epoch = 2;
    say_head(&forger, 1, 10, 0, 0);
    say_head(&forger, 1, 5, 2, 2);
    for (uint64_t sequence = 1; sequence <= 2; sequence++) {
        uint8_t bytes[MESSAGE_BLOB_MAX];
        size_t size = entry_body(&forger.header.id, 2, sequence, sequence == 1 ? "now/1" : "now/2", false, bytes);
        net_sign_as(net->nodes[1].identity.public_key, bytes, size, bytes + size);
        forger_say(&forger,
                   &(struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size + GOSSIP_SIGNATURE_SIZE});
    }
    assert_true(net_has_row(net, 0, 1, "now/1"));
    assert_true(net_has_row(net, 0, 1, "now/2"));
    net_free(net);
}

/* P24: a clock that jumps back, or one call with another's time: what is planned is planned from the latest time that
 * was ever seen. */
static void time_that_runs_backwards_changes_nothing(void **state) {
    (void)state;
    struct net *net = net_new_running(3, 441);
    net_run(net, 100000);
    struct gossip *gossip = net->nodes[0].gossip;
    for (int i = 0; i < 50; i++) {
        char filter[16];
        snprintf(filter, sizeof filter, "a/%d", i);
        assert_int_not_equal(gossip_row_put(gossip, net->now_ms - 90000, GOSSIP_NEWSUB, filter, strlen(filter)), 0);
        gossip_tick(gossip, net->now_ms - 90000);
        assert_true(gossip_deadline_ms(gossip) + 1000 >= net->now_ms);
        net_drain(net, 0);
        net_run(net, 200);
    }
    net_run(net, 1000);
    assert_true(net_agreed(net));
    for (int i = 0; i < 3; i++)
        assert_int_equal(net->nodes[i].down_events, 0);
    struct gossip_counters counters;
    gossip_read_counters(gossip, &counters);
    assert_int_equal(counters.suspicions, 0);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_suspect_is_cleared_by_newer_evidence_only),
        cmocka_unit_test(who_was_declared_dead_comes_back_with_newer_evidence_only),
        cmocka_unit_test(who_shows_that_the_dead_goes_on_is_told_of_its_death),
        cmocka_unit_test(what_a_member_is_accused_of_comes_with_every_question),
        cmocka_unit_test(hearsay_makes_nobody_alive),
        cmocka_unit_test(who_is_older_than_what_we_hold_is_told_so_in_the_answer),
        cmocka_unit_test(a_checkpoint_of_a_life_that_was_lost_takes_nothing_back),
        cmocka_unit_test(time_that_runs_backwards_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
