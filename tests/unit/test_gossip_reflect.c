/* A head may announce any address: what can its owner make others send there? They ask there as they ask every member,
 * and whom they hold dead ever more rarely, whatever is said of it and by whom. */
#include "gossip_traitor.h"

#define HONEST 5
#define VICTIM HONEST /* its address belongs to no broker */

struct mirror {
    struct net *net;
    struct traitor *traitor;
};

static struct mirror mirror_new(uint64_t seed, uint32_t eager_members_max) {
    struct mirror mirror = {.net = net_new(HONEST + 2, seed)};
    for (int i = 0; i < HONEST; i++) {
        mirror.net->nodes[i].limits.eager_members_max = eager_members_max;
        net_start(mirror.net, i);
    }
    net_run(mirror.net, 3000);
    mirror.traitor = traitor_new(mirror.net);
    net_run(mirror.net, 1000);
    mirror.traitor->says_at = mirror.net->nodes[VICTIM].address;
    return mirror;
}

static void mirror_free(struct mirror *mirror) {
    for (int i = 0; i < HONEST; i++)
        for (int j = 0; j < HONEST; j++)
            if (i != j) assert_int_equal(mirror->net->nodes[i].sees[j], MEMBER_ALIVE);
    traitor_free(mirror->traitor);
    net_free(mirror->net);
}

static uint64_t sent_to_victim(const struct mirror *mirror) {
    return mirror->net->to[VICTIM];
}

/* Ten minutes of heads, each newer than the last. */
static uint64_t heads(struct mirror *mirror, bool answers) {
    uint64_t before = sent_to_victim(mirror);
    mirror->traitor->hides = true;
    for (int i = 0; i < 6000; i++) {
        mirror->traitor->header.incarnation++;
        mirror->traitor->talks_to = answers ? i / 600 % HONEST : -1;
        for (int to = 0; to < HONEST; to++)
            if (!answers || to == mirror->traitor->talks_to) traitor_tell_head(mirror->traitor, to);
        net_run(mirror->net, 100);
    }
    return sent_to_victim(mirror) - before;
}

static void heads_without_end_make_others_ask_as_they_ask_a_suspect(void **state) {
    (void)state;
    struct mirror mirror = mirror_new(501, 0);
    uint64_t sent = heads(&mirror, false);
    print_message("30,000 heads in 10 min: %d datagrams to the address they announce\n", (int)sent);
    assert_true(sent > 0);
    /* A newer head ends each suspicion, so it is asked as long as heads come: once a second by each. */
    assert_true(sent < HONEST * (32 + 600 + 30));
    mirror_free(&mirror);
}

/* It answers one of them, and that one vouches for it to the others, where words count (more members than are told at
 * once). */
static void nor_does_it_help_that_others_vouch_for_it(void **state) {
    (void)state;
    struct mirror mirror = mirror_new(502, 1);
    uint64_t sent = heads(&mirror, true);
    print_message("and vouched for: %d datagrams\n", (int)sent);
    assert_true(sent < HONEST * 600 * 4);
    mirror_free(&mirror);
}

/* Another identity, whose token and head the traitor brings: it has two. */
static void tell_accomplice(const struct mirror *mirror, int to) {
    const struct net_node *node = &mirror->net->nodes[VICTIM];
    struct gossip_crypto crypto = {.context = (void *)&node->identity, .sign = net_sign};
    struct head head = {.id = net_id(mirror->net, VICTIM), .epoch = 1, .incarnation = 1, .address = node->address};
    uint8_t bytes[HEAD_SIZE_MAX];
    size_t size = head_sign(&head, &crypto, bytes);
    struct message messages[] = {{.kind = MESSAGE_TOKEN,
                                  .key = node->identity.public_key,
                                  .bytes = (const uint8_t *)node->token,
                                  .size = strlen(node->token)},
                                 {.kind = MESSAGE_HEAD, .bytes = bytes, .size = size}};
    traitor_say(mirror->traitor, to, messages, 2);
}

static void who_asks_helpers_for_it_gets_one_ping_at_a_time(void **state) {
    (void)state;
    struct mirror mirror = mirror_new(503, 0);
    for (int to = 0; to < HONEST; to++)
        tell_accomplice(&mirror, to);
    net_run(mirror.net, 50);
    uint64_t before = sent_to_victim(&mirror), asked = 0;
    for (int i = 0; i < 200; i++) { /* a second */
        struct message requests[20];
        for (size_t k = 0; k < 20; k++)
            requests[k] =
                (struct message){.kind = MESSAGE_PING_REQ, .number = ++asked, .version.id = net_id(mirror.net, VICTIM)};
        for (int to = 0; to < HONEST; to++)
            traitor_say(mirror.traitor, to, requests, 20);
        net_run(mirror.net, 5);
    }
    uint64_t sent = sent_to_victim(&mirror) - before;
    print_message("%d requests in a second: %d datagrams\n", (int)asked * HONEST, (int)sent);
    assert_true(sent > 0);
    assert_true(sent <= HONEST * 25);
    mirror_free(&mirror);
}

/* Helpers are there for all. */
static void who_asks_helpers_without_end_leaves_some_for_others(void **state) {
    (void)state;
    struct mirror mirror = mirror_new(504, 0);
    mirror.traitor->says_at.family = 0;
    struct net *net = mirror.net;
    net_kill(net, 4);
    net->cut[0][1] = net->cut[1][0] = true;
    for (int i = 0; i < 6000; i++) {
        struct message requests[20];
        for (size_t k = 0; k < 20; k++)
            requests[k] = (struct message){
                .kind = MESSAGE_PING_REQ, .number = (uint64_t)(i * 20) + k + 1, .version.id = net_id(net, 4)};
        for (int to = 2; to < 4; to++)
            traitor_say(mirror.traitor, to, requests, 20);
        net_run(net, 5);
    }
    struct gossip_counters counters;
    gossip_read_counters(net->nodes[0].gossip, &counters);
    assert_int_equal(counters.suspicions, 1); /* of the one that is dead */
    net->nodes[4].epoch = 2;
    net_start(net, 4);
    net_run(net, 10000);
    mirror_free(&mirror);
}

/* One whom they hold dead: each head, and each word for it, may be followed by a ping, of each of them. */
static void heads_of_the_dead_are_followed_ever_more_rarely(void **state) {
    (void)state;
    struct mirror mirror = mirror_new(505, 1);
    mirror.traitor->hides = true;
    mirror.traitor->talks_to = -1;
    net_run(mirror.net, 20000);
    for (int to = 0; to < HONEST; to++)
        assert_int_equal(mirror.net->nodes[to].sees[mirror.traitor->as], MEMBER_DOWN);
    uint64_t before = sent_to_victim(&mirror);
    for (int i = 0; i < 1000; i++) {
        struct message vouch = {.kind = MESSAGE_VOUCH, .version = {.id = mirror.traitor->header.id, .epoch = 1}};
        mirror.traitor->header.incarnation += 1;
        for (int to = 0; to < HONEST; to++) {
            traitor_say_one(mirror.traitor, to, vouch);
            traitor_tell_head(mirror.traitor, to);
        }
        net_run(mirror.net, 60);
    }
    uint64_t sent = sent_to_victim(&mirror) - before;
    print_message("5,000 heads of one that is held dead in a minute: %d datagrams\n", (int)sent);
    assert_true(sent < HONEST * 60 * 6);
    mirror_free(&mirror);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_without_end_make_others_ask_as_they_ask_a_suspect),
        cmocka_unit_test(heads_of_the_dead_are_followed_ever_more_rarely),
        cmocka_unit_test(nor_does_it_help_that_others_vouch_for_it),
        cmocka_unit_test(who_asks_helpers_for_it_gets_one_ping_at_a_time),
        cmocka_unit_test(who_asks_helpers_without_end_leaves_some_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
