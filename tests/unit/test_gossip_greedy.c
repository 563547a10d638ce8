/* A member, or a stranger, that wants more of a broker than its part: work, answers, or a judge for its tokens (G12).
 */
#include "gossip_forger.h"
#include "gossip_traitor.h"

#define HONEST 2
#define ROWS 20

struct greed {
    struct net *net;
    struct traitor *traitor;
};

/* One more node than run: who joins later. */
static struct greed greed_new(uint64_t seed) {
    struct greed greed = {.net = net_new(HONEST + 2, seed)};
    for (int i = 0; i < HONEST; i++)
        net_start(greed.net, i);
    net_run(greed.net, 3000);
    greed.traitor = traitor_new(greed.net);
    net_run(greed.net, 1000);
    return greed;
}

static void greed_free(struct greed *greed) {
    traitor_free(greed->traitor);
    net_free(greed->net);
}

static void say_head(struct greed *greed, bool leaving) {
    uint8_t bytes[HEAD_SIZE_MAX];
    greed->traitor->header.incarnation++;
    struct head head = traitor_own_head(greed->traitor);
    head.leaving = leaving;
    size_t size = traitor_head(greed->traitor, head, bytes);
    traitor_say_one(greed->traitor, 0, (struct message){.kind = MESSAGE_HEAD, .bytes = bytes, .size = size});
}

static void who_leaves_has_said_its_last_word_in_that_epoch(void **state) {
    (void)state;
    struct greed greed = greed_new(801);
    struct net *net = greed.net;
    struct traitor *traitor = greed.traitor;
    for (uint64_t i = 1; i <= ROWS; i++) {
        uint8_t bytes[MESSAGE_BLOB_MAX];
        char filter[16];
        snprintf(filter, sizeof filter, "row/%d", (int)i);
        traitor->header.sequence = i;
        size_t size = traitor_entry(traitor, traitor->as, 1, i, filter, false, bytes);
        traitor_say_one(traitor, 0, (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
        net_run(net, 20);
    }
    assert_int_equal(net->nodes[0].event_count[GOSSIP_ROW], ROWS);
    for (int i = 0; i < 50; i++) {
        say_head(&greed, true);
        net_run(net, 100);
        say_head(&greed, false);
        net_run(net, 400);
    }
    print_message("50 times away and back: %d rows shown\n", (int)net->nodes[0].event_count[GOSSIP_ROW]);
    assert_int_equal(net->nodes[0].sees[traitor->as], MEMBER_LEFT);
    assert_in_range(net->nodes[0].event_count[GOSSIP_ROW], ROWS, 2 * ROWS);
    uint64_t shown = net->nodes[0].event_count[GOSSIP_ROW];
    traitor->header.epoch = 2; /* a new life, which has no rows yet */
    traitor->header.sequence = 0;
    say_head(&greed, false);
    net_run(net, 2000);
    assert_int_equal(net->nodes[0].sees[traitor->as], MEMBER_ALIVE);
    assert_int_equal(net->nodes[0].event_count[GOSSIP_ROW], shown);
    greed_free(&greed);
}

/* It has lost its disk after it left: what others remember of its last word tells it to begin a new epoch. */
static void an_honest_one_that_left_and_lost_its_disk_is_soon_back(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) {
        struct net *net = net_new_running(3, 802);
        net_row(net, 1, "before/#", true);
        net_run(net, 1000);
        gossip_leave(net->nodes[1].gossip, net->now_ms);
        net_drain(net, 1);
        net_run(net, 1000);
        assert_int_equal(net->nodes[0].sees[1], MEMBER_LEFT);
        net_kill(net, 1);
        net->cut[0][1] = net->cut[1][0] = net->cut[2][1] = net->cut[1][2] = true;
        net_start(net, 1);
        for (int i = 0; i < 200 * more; i++) { /* it signs heads higher than the last of its first life */
            net_row(net, 1, i % 2 ? "after/1" : "after/2", true);
            net_row(net, 1, i % 2 ? "after/2" : "after/1", false);
            net_run(net, 50);
        }
        net_row(net, 1, "now/#", true);
        memset(net->cut, 0, sizeof net->cut);
        if (!net_until(net, net_agreed, 15000)) fail_msg("more %d: not back", more);
        assert_true(net_has_row(net, 0, 1, "now/#"));
        assert_false(net_has_row(net, 0, 1, "before/#"));
        net_free(net);
    }
}

/* Keys that nobody has, each with a token that is no good. */
static struct message bad_token(uint32_t number, uint8_t key[GOSSIP_PUBLIC_KEY_SIZE]) {
    memset(key, 7, GOSSIP_PUBLIC_KEY_SIZE);
    key[0] = 4;
    memcpy(key + 8, &number, sizeof number);
    return (struct message){.kind = MESSAGE_TOKEN, .key = key, .bytes = (const uint8_t *)"bad", .size = 3};
}

static bool newcomer_is_seen(struct net *net) {
    return net->nodes[0].sees[HONEST] == MEMBER_ALIVE;
}

static uint64_t judged(const struct net *net) {
    return net->nodes[0].identity.questions;
}

static void a_member_with_bad_tokens_leaves_a_judge_for_others(void **state) {
    (void)state;
    struct greed greed = greed_new(803);
    struct net *net = greed.net;
    uint64_t before = judged(net);
    uint32_t number = 0;
    for (int i = 0; i < 400; i++) { /* two seconds: 8,000 */
        uint8_t keys[20][GOSSIP_PUBLIC_KEY_SIZE];
        struct message messages[10];
        for (int half = 0; half < 2; half++) {
            for (size_t k = 0; k < 10; k++)
                messages[k] = bad_token(++number, keys[k]);
            traitor_say(greed.traitor, 0, messages, 10);
        }
        net_run(net, 5);
    }
    print_message("%d tokens of a member: %d judged\n", (int)number, (int)(judged(net) - before));
    assert_in_range(judged(net) - before, 20, 3 * 20 + 10);
    greed_free(&greed);
}

static void strangers_of_one_host_leave_a_judge_for_those_of_another(void **state) {
    (void)state;
    struct net *net = net_new(HONEST + 2, 804);
    net_start(net, 0);
    net_start(net, 1);
    net_run(net, 3000);
    uint64_t before = judged(net);
    uint32_t number = 0;
    bool started = false;
    for (uint16_t port = 1; port <= 300; port++) { /* three seconds */
        const struct gossip_address host = {.family = 4, .ip = {10, 9, 9, 9}, .port = port};
        struct forger forger = forger_new(net, 0, HONEST + 1, &host);
        for (int i = 0; i < 8; i++) {
            uint8_t key[GOSSIP_PUBLIC_KEY_SIZE];
            struct message token = bad_token(++number, key);
            forger_say(&forger, &token);
        }
        net_run(net, 10);
        if (port == 100) net_start(net, HONEST);
        started = started || newcomer_is_seen(net);
    }
    print_message("%d tokens of strangers of one host: %d judged\n", (int)number, (int)(judged(net) - before));
    assert_in_range(judged(net) - before, 50, 4 * 50 + 10);
    assert_true(started);
    net_free(net);
}

static void who_asks_the_same_sixty_times_in_a_packet_is_told_once(void **state) {
    (void)state;
    struct greed greed = greed_new(805);
    struct message who[45];
    for (size_t i = 0; i < 45; i++)
        who[i] = (struct message){.kind = MESSAGE_WHO, .version.id = net_id(greed.net, 0)};
    uint64_t before = greed.traitor->count[MESSAGE_TOKEN];
    traitor_say(greed.traitor, 0, who, 45);
    net_run(greed.net, 50);
    assert_int_equal(greed.traitor->count[MESSAGE_TOKEN] - before, 1);
    greed_free(&greed);
}

/* All of it is legal; there is too little room for so much. */
static void who_publishes_much_leaves_room_for_the_rows_of_others(void **state) {
    (void)state;
    struct net *net = net_new(HONEST + 2, 806);
    for (int i = 0; i < HONEST; i++) {
        net->nodes[i].limits.registry_bytes_max = 400000;
        net_start(net, i);
    }
    net_run(net, 3000);
    struct greed greed = {net, traitor_new(net)};
    for (uint64_t sequence = 1; sequence <= 1000; sequence++) {
        uint8_t bytes[MESSAGE_BLOB_MAX];
        char filter[600];
        snprintf(filter, sizeof filter, "much/%0500d", (int)sequence);
        size_t size = traitor_entry(greed.traitor, greed.traitor->as, 1, sequence, filter, false, bytes);
        greed.traitor->header.sequence = sequence;
        traitor_say_one(greed.traitor, 0, (struct message){.kind = MESSAGE_ENTRY, .bytes = bytes, .size = size});
        net_run(net, 10);
    }
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_in_range(counters.registry_bytes, 280000, 400000); /* or it was not greedy enough */
    net_row(net, 1, "honest/#", true);
    net_run(net, 2000);
    assert_true(net_has_row(net, 0, 1, "honest/#"));
    assert_non_null(strstr(net->nodes[0].last_text, "more than its part"));
    greed_free(&greed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_leaves_has_said_its_last_word_in_that_epoch),
        cmocka_unit_test(an_honest_one_that_left_and_lost_its_disk_is_soon_back),
        cmocka_unit_test(a_member_with_bad_tokens_leaves_a_judge_for_others),
        cmocka_unit_test(strangers_of_one_host_leave_a_judge_for_those_of_another),
        cmocka_unit_test(who_publishes_much_leaves_room_for_the_rows_of_others),
        cmocka_unit_test(who_asks_the_same_sixty_times_in_a_packet_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
