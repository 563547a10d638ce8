/* The roll and who vouches for whom, with messages made by hand. */
#include "gossip_forger.h"

#include "datagram_reader.h"

#include "gossip/verbs.h"

#define MANY 36 /* more than eager_members_max: a member's word is enough */

static const struct gossip_address den = {.family = 4, .ip = {192, 0, 2, 66}, .port = 666};

static struct net *many_running(uint64_t seed) {
    struct net *net = net_new_running(MANY, seed);
    net_run(net, 3000);
    return net;
}

/* As member 1, in all that can be seen. */
static struct forger member_one(struct net *net) {
    net_kill(net, 1); /* its own answers would come between */
    return forger_new(net, 0, 1, &net->nodes[1].address);
}

static unsigned told(struct forger *forger, struct message question) {
    unsigned before = forger->count[MESSAGE_TOKEN];
    question.kind = MESSAGE_ROLL;
    forger_say(forger, &question);
    return forger->count[MESSAGE_TOKEN] - before;
}

static struct member_id after(struct member_id id, int change) {
    for (size_t i = sizeof id.bytes; i-- > 0;) {
        id.bytes[i] = (uint8_t)(id.bytes[i] + change);
        if (id.bytes[i] != (change > 0 ? 0 : 0xff)) break;
    }
    return id;
}

static const struct member_id first = {{0}},
                              last = {{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}};

/* P25: what is known already is not sent, and no answer is longer than a page. */
static void only_who_is_not_named_is_told_and_a_page_at_a_time(void **state) {
    (void)state;
    struct net *net = many_running(1);
    struct forger forger = member_one(net);
    uint8_t names[4 * MANY];
    size_t size = 0;
    assert_in_range(told(&forger, (struct message){.number = 100, .other = last}), 20, 32);
    net_run(net, 200);
    assert_int_equal(told(&forger, (struct message){.number = 5, .other = last}), 5);
    struct gossip *gossip = net->nodes[0].gossip;
    struct member_id at = first;
    for (struct member *member; (member = members_after(gossip, &at)); at = member->id) {
        int node = net_node_of(net, &member->id);
        if (node == 7 || node == 1) continue;
        memcpy(names + size, member->id.bytes, 4);
        size += 4;
    }
    assert_int_equal(told(&forger, (struct message){.number = 32, .other = last, .bytes = names, .size = size}), 1);
    net_free(net);
}

static void a_question_about_a_range_is_answered_with_that_range(void **state) {
    (void)state;
    struct net *net = many_running(2);
    struct forger forger = member_one(net);
    struct member_id id = net_id(net, 20);
    struct message exact = {.number = 32, .version.id = after(id, -1), .other = id};
    assert_int_equal(told(&forger, exact), 1);
    struct message behind = {.number = 32, .version.id = id, .other = after(id, 1)};
    assert_int_equal(told(&forger, behind), 0);
    struct message inverted = {.number = 32, .version.id = id, .other = after(id, -1)};
    assert_int_equal(told(&forger, inverted), 0);
    net_free(net);
}

/* P25: whoever asks on and on gets so many a second, and is told to wait. */
static void the_roll_is_told_at_a_bounded_rate(void **state) {
    (void)state;
    struct net *net = many_running(3);
    struct forger forger = member_one(net);
    unsigned members = 0;
    for (int i = 0; i < 100; i++) {
        members += told(&forger, (struct message){.number = 32, .other = last});
        net_run(net, 10);
    }
    assert_in_range(members, 200, 280); /* half of limits.datagram_bytes_per_s */
    net_free(net);
}

/* P25: those who are put off do not all come back at once; and who comes when it was told to is served. */
static void each_who_is_put_off_is_given_a_time_of_its_own(void **state) {
    (void)state;
    struct net *net = many_running(9);
    struct forger forger = member_one(net);
    const struct message all = {.number = 32, .other = last};
    assert_in_range(told(&forger, all), 20, 32);
    assert_in_range(told(&forger, all), 0, 12);
    uint64_t before = 0, first_ms = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(told(&forger, all), 0);
        first_ms = i == 0 ? forger.again_ms : first_ms;
        assert_true(i == 0 || forger.again_ms == before + 100);
        before = forger.again_ms;
    }
    assert_in_range(first_ms, 1, 200);
    net_run(net, first_ms);
    assert_in_range(told(&forger, all), 20, 32);
    for (int i = 0; i < 100; i++)
        told(&forger, all);
    assert_int_equal(forger.again_ms, 2000); /* nobody makes others wait for longer */
    net_run(net, 150);
    assert_in_range(told(&forger, all), 20, 32);
    net_free(net);
}

static void names_of_broken_size_are_not_looked_at(void **state) {
    (void)state;
    struct net *net = many_running(4);
    struct forger forger = member_one(net);
    uint8_t names[7] = {0};
    for (size_t size = 1; size < sizeof names; size++)
        if (size % 4 != 0)
            assert_int_equal(told(&forger, (struct message){.number = 32, .other = last, .bytes = names, .size = size}),
                             0);
    net_free(net);
}

/* P25, G11: who has not proved where it is is put off, and learns nothing; it is told how. */
static void who_has_not_proved_its_address_is_put_off(void **state) {
    (void)state;
    struct net *net = many_running(5);
    struct forger forger = forger_new(net, 0, 1, &den);
    net_run(net, 200);
    assert_int_equal(told(&forger, (struct message){.number = 32, .other = last}), 0);
    assert_true(forger.count[MESSAGE_ROLL] > 0 && forger.count[MESSAGE_PROVE] > 0);
    net_free(net);
}

/* An answer that nobody waits for moves nothing, whatever it says. */
static void answers_that_were_not_asked_for_change_nothing(void **state) {
    (void)state;
    struct net *net = many_running(6);
    struct forger forger = member_one(net);
    struct gossip *gossip = net->nodes[0].gossip;
    for (int i = 0; i < 3; i++) {
        struct message answer = {
            .kind = MESSAGE_ROLL, .flag = true, .number = i == 2 ? UINT64_MAX : (uint64_t)i, .other = last};
        forger_say(&forger, &answer);
        assert_false(roll_is_called(gossip));
    }
    assert_true(roll_start(gossip, 1) || gossip->roll.again_ms > net->now_ms);
    net_free(net);
}

/* ---- vouching ---- */

static bool vouched_alive(struct net *net, struct forger *forger, int about, uint64_t epoch) {
    struct message vouch = {.kind = MESSAGE_VOUCH, .version = {.id = net_id(net, about), .epoch = epoch}};
    forger_say(forger, &vouch);
    return net->nodes[0].sees[about] == MEMBER_ALIVE;
}

/* P9: whom we held dead at this head no word revives; a newer head does. */
static void no_word_revives_the_dead(void **state) {
    (void)state;
    struct net *net = many_running(7);
    net_kill(net, 9);
    net_run(net, 15000);
    assert_int_equal(net->nodes[0].sees[9], MEMBER_DOWN);
    struct forger forger = member_one(net);
    assert_false(vouched_alive(net, &forger, 9, 1));
    assert_false(vouched_alive(net, &forger, 9, 2));
    net_run(net, 100);
    assert_int_equal(net->nodes[0].sees[9], MEMBER_DOWN);
    net_free(net);
}

/* P9: in a small federation each is pinged before it is shown, whatever anybody says. */
static void in_a_small_federation_a_word_is_not_enough(void **state) {
    (void)state;
    struct net *net = net_new_running(4, 8);
    net_run(net, 1000);
    for (int i = 0; i < 4; i++)
        net->cut[3][i] = net->cut[i][3] = true;
    net_run(net, 15000);
    net_kill(net, 3);
    net->nodes[3].epoch = 2;
    net_start(net, 3); /* it has a new head, and nobody reaches it */
    struct forger forger = member_one(net);
    struct message head = evidence_head_of(net->nodes[3].gossip->self);
    assert_false(vouched_alive(net, &forger, 3, 2));
    forger_say(&forger, &head);
    assert_false(vouched_alive(net, &forger, 3, 2));
    net_free(net);
}

static void in_a_large_one_it_is_if_who_gives_it_has_proved_its_address(void **state) {
    (void)state;
    for (int proved = 0; proved < 2; proved++) {
        struct net *net = many_running(9);
        for (int i = 0; i < MANY; i++)
            net->cut[30][i] = net->cut[i][30] = true;
        net_run(net, 15000);
        assert_int_equal(net->nodes[0].sees[30], MEMBER_DOWN);
        net_kill(net, 30);
        net->nodes[30].epoch = 2;
        net_start(net, 30);
        struct message head = evidence_head_of(net->nodes[30].gossip->self);
        struct forger forger = proved ? member_one(net) : forger_new(net, 0, 1, &den);
        forger_say(&forger, &head);
        assert_int_equal(vouched_alive(net, &forger, 30, 2), proved);
        net_free(net);
    }
}

/* Their heads came, and the word that they live was lost: asked one at a time it would take half a minute. */
static void who_has_heard_of_many_and_sees_few_calls_it_too(void **state) {
    (void)state;
    struct net *net = many_running(71);
    struct gossip *gossip = net->nodes[0].gossip;
    net_run(net, 30000);
    for (int i = 3; i < MANY; i++) {
        struct member_id id = net_id(net, i);
        struct member *member = members_find(gossip, &id);
        member->fresh_epoch = 0;
        evidence_set_state(gossip, member, MEMBER_UNVERIFIED);
        member->follow_ms = net->now_ms + 60000;
    }
    assert_false(roll_is_called(gossip));
    uint64_t begun_ms = net->now_ms;
    while (!roll_is_called(gossip) && net->now_ms < begun_ms + 4000)
        net_step(net, begun_ms + 4000);
    assert_true(roll_is_called(gossip));
    net_free(net);
}

static uint64_t suspicions_of(const struct net *net, int node) {
    return net->nodes[node].gossip->counters.suspicions;
}

/* P25: of a thousand that start at once nobody answers in time, and nobody is dead. */
static void who_begins_and_calls_it_accuses_nobody(void **state) {
    (void)state;
    struct net *net = many_running(72);
    struct gossip *gossip = net->nodes[0].gossip;
    net_run(net, 30000);
    gossip->self->made_ms = net->now_ms;
    net_kill(net, 1);
    uint64_t before = suspicions_of(net, 0), end_ms = net->now_ms + 20000;
    while (net->now_ms < end_ms) {
        gossip->roll.next_ms = net->now_ms + 1000; /* it is called, and never ends */
        net_run(net, 100);
    }
    assert_int_equal(suspicions_of(net, 0), before);
    gossip->self->made_ms = 0;
    gossip->roll.next_ms = net->now_ms + 10000;
    net_run(net, 8000);
    assert_true(suspicions_of(net, 0) > before); /* at another time the roll is no reason */
    net_free(net);
}

static bool listen(struct net *net, int from, int to, const struct gossip_datagram *datagram) {
    struct said *said = net->loses_context; /* to whom joins, and of it */
    if (to == 0) datagram_read(&net->nodes[0].key, datagram->bytes, datagram->size, &said[0]);
    if (from == 0) datagram_read(&net->nodes[0].key, datagram->bytes, datagram->size, &said[1]);
    return false;
}

/* Of the datagrams of an answer each may overtake the one before it, and a head its token: nothing is to be said again
 * for that, and nobody asked whether he lives. */
static void what_answers_may_come_in_any_order(void **state) {
    (void)state;
    enum { MEMBERS = 40 };
    struct net *net = net_new(MEMBERS, 9);
    struct said said[2] = {0};
    for (int i = 1; i < MEMBERS; i++) {
        net->nodes[i].bootstrap[0] = 1;
        net_start(net, i);
    }
    net_run(net, 60000);
    net->nodes[0].bootstrap[0] = 1;
    net->nodes[0].bootstrap_count = 1;
    net->delay_max_ms = 3;
    net->loses = listen;
    net->loses_context = said;
    net_start(net, 0);
    assert_true(net_until(net, net_all_alive, 20000));
    print_message("%d tokens, %d heads came, %d pings went\n", (int)said[0].count[MESSAGE_TOKEN],
                  (int)said[0].count[MESSAGE_HEAD], (int)said[1].count[MESSAGE_PING]);
    assert_int_equal(said[0].count[MESSAGE_TOKEN], MEMBERS - 1);
    net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_answers_may_come_in_any_order),
        cmocka_unit_test(only_who_is_not_named_is_told_and_a_page_at_a_time),
        cmocka_unit_test(a_question_about_a_range_is_answered_with_that_range),
        cmocka_unit_test(the_roll_is_told_at_a_bounded_rate),
        cmocka_unit_test(each_who_is_put_off_is_given_a_time_of_its_own),
        cmocka_unit_test(names_of_broken_size_are_not_looked_at),
        cmocka_unit_test(who_has_not_proved_its_address_is_put_off),
        cmocka_unit_test(answers_that_were_not_asked_for_change_nothing),
        cmocka_unit_test(no_word_revives_the_dead),
        cmocka_unit_test(in_a_small_federation_a_word_is_not_enough),
        cmocka_unit_test(in_a_large_one_it_is_if_who_gives_it_has_proved_its_address),
        cmocka_unit_test(who_has_heard_of_many_and_sees_few_calls_it_too),
        cmocka_unit_test(who_begins_and_calls_it_accuses_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
