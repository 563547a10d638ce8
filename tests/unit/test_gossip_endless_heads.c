/* A head is signed and told to all, and all fetch it: what a few small packets a second make honest brokers say of
 * themselves has a measure, whoever sends them and however many do, and yet a true suspicion is refuted in time. */
#include "gossip_court.h"

#include "gossip_forger.h"

#define COLLUDERS 10

static uint64_t sum_of_incarnations(const struct net *net, int count) {
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += net->nodes[i].gossip->self->incarnation;
    return sum;
}

static struct message accuse(const struct net *net, int about, uint64_t ahead, int by) {
    const struct member *self = net->nodes[about].gossip->self;
    return (struct message){.kind = MESSAGE_ACCUSE,
                            .version = {.id = self->id, .epoch = self->epoch, .incarnation = self->incarnation + ahead},
                            .other = net_id(net, by)};
}

static void accuse_all(struct traitor *traitor) {
    for (int to = 0; to < HONEST; to++)
        traitor_say_one(traitor, to, accuse(traitor->net, to, 0, traitor->as));
}

/* Each is told, by it alone and ten times a second, that it is dead: nobody else would believe it twice in 5 s. */
static void who_accuses_without_end_makes_nobody_sign_without_end(void **state) {
    (void)state;
    struct court court = court_new(902);
    struct net *net = court.net;
    uint64_t before = sum_of_incarnations(net, HONEST);
    for (int round = 0; round < 300; round++) {
        accuse_all(court.traitor);
        net_run(net, 100);
    }
    assert_in_range(sum_of_incarnations(net, HONEST) - before, 1, HONEST * 30 / 5 + HONEST);
    net_run(net, 30000);
    for (int round = 0; round < 600; round++) {
        accuse_all(court.traitor);
        net_run(net, 100);
    }
    for (int i = 0; i < HONEST; i++)
        assert_int_equal(trouble_at(net, i, HONEST), MEMBER_TROUBLE_ACCUSES);
    court_free(&court);
}

/* It says that ours of them is not as their owner has it, once a second: each signs a checkpoint, which all fetch. */
static void who_claims_a_mixture_without_end_makes_nobody_sign_without_end(void **state) {
    (void)state;
    struct court court = court_new(903);
    struct net *net = court.net;
    uint64_t before = sum_of_incarnations(net, HONEST);
    for (int round = 0; round < 300; round++) {
        for (int to = 0; to < HONEST; to++)
            traitor_claim_other(court.traitor, to, to);
        net_run(net, 1000);
    }
    assert_in_range(sum_of_incarnations(net, HONEST) - before, 1, HONEST * 10);
    court_free(&court);
}

/* Of a head that nobody has signed. It may know more of us than we do, after a disk was lost, but not each time. */
static void a_member_carries_our_numbers_away_once(void **state) {
    (void)state;
    struct court court = court_new(907);
    struct net *net = court.net;
    uint64_t before = net->nodes[0].gossip->self->incarnation;
    for (int round = 0; round < 40; round++) {
        traitor_say_one(court.traitor, 0, accuse(net, 0, 999999, HONEST));
        net_run(net, 15000);
    }
    assert_in_range(net->nodes[0].gossip->self->incarnation - before, 999999, 1100000);
    court_free(&court);
}

static struct forger stranger(struct net *net, int at) {
    struct forger forger = {.net = net, .at = at, .address = {.family = 4, .ip = {10, 9, 9, 9}, .port = 9}};
    forger.header = (struct packet_header){.id = net_id(net, 35), .epoch = 1, .incarnation = 1};
    return forger;
}

/* With no token at all. */
static void a_stranger_that_accuses_is_hardly_heard(void **state) {
    (void)state;
    struct court court = court_new(905);
    struct net *net = court.net;
    uint64_t before = sum_of_incarnations(net, HONEST);
    for (int round = 0; round < 60; round++) {
        for (int to = 0; to < HONEST; to++) {
            struct forger forger = stranger(net, to);
            struct message accusation = accuse(net, to, 0, 35);
            forger_say(&forger, &accusation);
        }
        net_run(net, 1000);
    }
    assert_in_range(sum_of_incarnations(net, HONEST) - before, 1, HONEST * 6);
    court_free(&court);
}

/* Nor does it carry anybody's numbers away; and with any number members sleep. */
static void a_stranger_that_accuses_keeps_nobody_awake(void **state) {
    (void)state;
    struct net *net = net_new_running(10, 904);
    net_run(net, 20000);
    for (int round = 0; round < 20; round++) {
        struct forger forger = stranger(net, 1);
        struct message accusation = accuse(net, 1, 999999, 35);
        forger_say(&forger, &accusation);
        net_run(net, 1010);
    }
    assert_in_range(net->nodes[1].gossip->self->incarnation, 1, 100);
    /* So many heads it may have signed itself, in half a year. */
    net->nodes[1].gossip->self->incarnation = (1u << 24) + 7;
    assert_true(own_sign_head(net->nodes[1].gossip));
    own_tell_head(net->nodes[1].gossip);
    net_run(net, 60000);
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < 60; i++) {
        net_run(net, 1000);
        uint32_t awake = net->nodes[1].gossip->members.awake_count;
        least = awake < least ? awake : least;
    }
    assert_in_range(least, 1, 8); /* it may be one, of ten */
    const struct gossip *gossip = net->nodes[1].gossip;
    for (size_t place = 0; place < gossip->members.count; place++) {
        struct member copy;
        const struct member *member = members_look(gossip, place, &copy);
        if (!member->self) assert_int_equal(member->known_incarnation, gossip->self->incarnation);
    }
    net_free(net);
}

/* ---- together ---- */

struct gang {
    struct net *net;
    struct traitor *traitors[COLLUDERS];
};

static struct gang gang_new(uint64_t seed) {
    struct gang gang = {.net = net_new(HONEST, seed)};
    for (int i = 0; i < HONEST; i++)
        net_start(gang.net, i);
    assert_true(net_until(gang.net, net_all_alive, 10000));
    for (int i = 0; i < COLLUDERS; i++) {
        gang.net->count++;
        gang.traitors[i] = traitor_new(gang.net);
    }
    return gang;
}

static void gang_accuse(const struct gang *gang) {
    for (int i = 0; i < COLLUDERS; i++)
        accuse_all(gang->traitors[i]);
}

static void gang_free(struct gang *gang) {
    for (int i = 0; i < COLLUDERS; i++)
        traitor_free(gang->traitors[i]);
    net_free(gang->net);
}

static void ten_who_accuse_have_one_measure(void **state) {
    (void)state;
    struct gang gang = gang_new(906);
    struct net *net = gang.net;
    uint64_t before = sum_of_incarnations(net, HONEST);
    for (int round = 0; round < 600; round++) {
        gang_accuse(&gang);
        net_run(net, 100);
    }
    uint64_t signed_heads = sum_of_incarnations(net, HONEST) - before;
    print_message("ten accuse five, 10 times a second for 60 s: %d heads\n", (int)signed_heads);
    assert_in_range(signed_heads, 1, HONEST * (60 / 2 + 6));
    assert_true(net_until(net, honest_alive, 5000));
    assert_int_equal(down_events(net), 0);
    gang_free(&gang);
}

static bool is_suspected(const struct net *net, int who) {
    bool suspected = false;
    for (int i = 0; i < HONEST; i++)
        suspected = suspected || net->nodes[i].sees[who] == MEMBER_SUSPECT;
    return suspected;
}

/* Edge-2 was out of reach for a while, and is suspected for it by the others, in a fifth of loss, while the ten use up
 * its measure. */
static void who_is_truly_suspected_says_in_time_that_it_lives(void **state) {
    (void)state;
    uint64_t longest = 0, suspicions = 0;
    for (uint64_t seed = 910; seed < 915; seed++) {
        struct gang gang = gang_new(seed);
        struct net *net = gang.net;
        net->loss_percent = 20;
        net_run(net, 10000);
        for (int time = 0; time < 5; time++) {
            for (int round = 0; round < 20; round++) { /* until its measure is used up */
                gang_accuse(&gang);
                net_run(net, 100);
            }
            for (int other = 0; other < HONEST; other++)
                net->cut[1][other] = net->cut[other][1] = other != 1;
            uint64_t alone = 0;
            for (; alone < 5000 && !is_suspected(net, 1); alone += 20) {
                gang_accuse(&gang);
                net_run(net, 20);
            }
            suspicions += is_suspected(net, 1);
            memset(net->cut, 0, sizeof net->cut);
            uint64_t since = net->now_ms;
            for (int round = 0; round < 2000 && !honest_alive(net); round++) {
                gang_accuse(&gang);
                net_run(net, 50);
            }
            if (net->now_ms - since > longest) longest = net->now_ms - since;
        }
        assert_int_equal(down_events(net), 0);
        gang_free(&gang);
    }
    print_message("suspected %d times, for %d ms at most\n", (int)suspicions, (int)longest);
    assert_true(suspicions >= 10);
    assert_true(longest <= 2500); /* the longest gap between heads, and twice there and back */
}

/* The log has one measure for all warnings of the gossip, so these would hide others. */
static void who_says_again_and_again_that_it_is_cloned_is_told_of_once(void **state) {
    (void)state;
    struct court court = court_new(972);
    struct net *net = court.net;
    uint64_t before = net->nodes[0].event_count[GOSSIP_WARNING];
    for (unsigned i = 0; i < 1000; i++) {
        uint8_t bytes[HEAD_SIZE_MAX];
        struct head head = traitor_own_head(court.traitor);
        head.incarnation = 10 + i;
        head.cloned = i % 2 == 1;
        size_t size = traitor_head(court.traitor, head, bytes);
        traitor_say_one(court.traitor, 0, (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
        net_run(net, 10);
    }
    assert_in_range(net->nodes[0].event_count[GOSSIP_WARNING] - before, 1, 2);
    court_free(&court);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_accuses_without_end_makes_nobody_sign_without_end),
        cmocka_unit_test(who_claims_a_mixture_without_end_makes_nobody_sign_without_end),
        cmocka_unit_test(a_member_carries_our_numbers_away_once),
        cmocka_unit_test(a_stranger_that_accuses_is_hardly_heard),
        cmocka_unit_test(a_stranger_that_accuses_keeps_nobody_awake),
        cmocka_unit_test(ten_who_accuse_have_one_measure),
        cmocka_unit_test(who_is_truly_suspected_says_in_time_that_it_lives),
        cmocka_unit_test(who_says_again_and_again_that_it_is_cloned_is_told_of_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
