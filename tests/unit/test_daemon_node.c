/* node_pump() and what is around it: the cores as one broker, and brokers as a federation. */
#include "node_world.h"

static void node_alone_serves_its_clients(void **state) {
    (void)state;
    start_alone(0);
    assert_null(node_gossip(world->sites[0].node));
    struct client *subscriber = connect_client(0, 's'), *publisher = connect_client(0, 'p');
    subscribe(subscriber, "a/#");
    publish(publisher, "a/b", "hello");
    assert_int_equal(count_in(subscriber, "a/bhello"), 1);
    assert_int_equal(world->datagram_count + world->pipe_count, 0);
}

static void nodes_find_each_other_from_one_address(void **state) {
    (void)state;
    for (size_t i = 0; i < 3; i++)
        start(i, 1);
    run_ms(3000);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            if (i != j) assert_true(sees(i, j, MEMBER_ALIVE));
}

static void first_message_crosses(void **state) {
    (void)state;
    start(0, 1);
    start(1, 1);
    run_ms(2000);
    struct client *subscriber = connect_client(1, 's'), *publisher = connect_client(0, 'p');
    subscribe(subscriber, "a/+");
    run_ms(1000);
    publish(publisher, "a/b", "hello");
    run_ms(1000);
    assert_int_equal(count_in(subscriber, "a/bhello"), 1);
    publish(publisher, "a/c", "again");
    run_ms(100);
    assert_int_equal(count_in(subscriber, "a/cagain"), 1);
    assert_true(has_link_up(0) && has_link_up(1));
}

static void each_node_gets_one_copy(void **state) {
    (void)state;
    struct client *subscribers[3];
    for (size_t i = 0; i < 3; i++)
        start(i, 1);
    run_ms(3000);
    for (size_t i = 0; i < 3; i++) {
        subscribers[i] = connect_client(i, 's');
        subscribe(subscribers[i], "#");
    }
    struct client *publisher = connect_client(1, 'p');
    run_ms(2000);
    for (int i = 0; i < 3; i++)
        publish(publisher, "t", i == 0 ? "one" : i == 1 ? "two" : "three");
    run_ms(2000);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(count_in(subscribers[i], "tone"), 1);
        assert_int_equal(count_in(subscribers[i], "ttwo"), 1);
        assert_int_equal(count_in(subscribers[i], "tthree"), 1);
    }
}

static void node_without_interest_gets_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < 3; i++)
        start(i, 1);
    run_ms(3000);
    struct client *subscriber = connect_client(1, 's'), *publisher = connect_client(0, 'p');
    subscribe(subscriber, "a/#");
    run_ms(1000);
    publish(publisher, "a/b", "hello");
    run_ms(2000);
    assert_int_equal(count_in(subscriber, "hello"), 1);
    struct link_info info;
    for (size_t i = 0; broker_link_at(node_broker(world->sites[2].node), i, &info); i++)
        assert_int_equal(info.publications_received, 0);
}

static void node_that_leaves_says_so(void **state) {
    (void)state;
    for (size_t i = 0; i < 3; i++)
        start(i, 1);
    run_ms(3000);
    struct client *client = connect_client(2, 'c');
    node_leave(world->sites[2].node, world->now_ms);
    assert_false(node_left(world->sites[2].node));
    run_ms(1500); /* sooner than a silent death would be noticed */
    assert_true(node_left(world->sites[2].node));
    assert_true(broker_client_ended(node_broker(world->sites[2].node), client->handle));
    assert_true(sees(0, 2, MEMBER_LEFT) && sees(1, 2, MEMBER_LEFT));
    assert_non_null(strstr(world->sites[0].log, "edge-3 "));
    assert_non_null(strstr(world->sites[0].log, "it left in order"));
}

static void node_that_dies_is_noticed_and_comes_back(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++)
        start(i, 1);
    run_ms(2000);
    struct client *subscriber = connect_client(0, 's');
    subscribe(subscriber, "#");
    world->sites[1].is_up = false;
    node_free(world->sites[1].node);
    world->sites[1].node = NULL;
    run_ms(3500);
    assert_false(sees(0, 1, MEMBER_ALIVE));
    start(1, 2);
    run_ms(3000);
    assert_true(sees(0, 1, MEMBER_ALIVE));
    publish(connect_client(1, 'p'), "t", "back");
    run_ms(1000);
    assert_int_equal(count_in(subscriber, "tback"), 1);
}

/* Links are an event of their own, with an allowance of their own: a client that breaks rules cannot hide them. */
static void cut_link_is_a_line_that_clients_cannot_hide(void **state) {
    (void)state;
    start(0, 1);
    start(1, 1);
    run_ms(2000);
    subscribe(connect_client(1, 's'), "a");
    run_ms(1000);
    publish(connect_client(0, 'p'), "a", "x");
    run_ms(1000);
    assert_non_null(strstr(world->sites[0].log, "info link link "));
    for (size_t i = 0; i < world->pipe_count; i++)
        if (world->pipes[i].is_open) pipe_close(&world->pipes[i]);
    run_ms(10);
    assert_non_null(strstr(world->sites[0].log, "with edge-2: lost: its connection has ended"));
    assert_null(strstr(world->sites[0].log, "broker link "));
    client_send(connect_client(0, 'q'), (const uint8_t *)"\xf0\x00", 2);
    run_ms(10);
    assert_non_null(strstr(world->sites[0].log, " client_closed client 'q'"));
}

static void epoch_that_others_remember_is_saved(void **state) {
    (void)state;
    start(0, 1);
    start(1, 7);
    run_ms(2000);
    world->sites[1].is_up = false;
    node_free(world->sites[1].node);
    start(1, 1); /* its disk was lost */
    run_ms(3000);
    assert_true(world->sites[1].saved_epoch > 7);
    assert_true(sees(0, 1, MEMBER_ALIVE));
    struct client *subscriber = connect_client(0, 's'), *other = connect_client(1, 's');
    subscribe(subscriber, "#");
    subscribe(other, "#");
    run_ms(1000);
    publish(connect_client(1, 'p'), "t", "from two");
    publish(connect_client(0, 'p'), "t", "from one");
    run_ms(1000);
    assert_int_equal(count_in(subscriber, "tfrom two"), 1);
    assert_int_equal(count_in(other, "tfrom one"), 1);
}

/* No rows, no link, and a line at both ends; the one with the bad token goes on serving its own clients. */
static void expect_refused(char *token, const char *part) {
    free(world->sites[1].token);
    world->sites[1].token = token;
    start(0, 1);
    start(2, 1);
    run_ms(1000);
    publish(connect_client(0, 'p'), "u", "theirs"); /* its advert is a reason to dial, if it gets through */
    run_ms(1000);
    start(1, 1);
    struct client *subscriber = connect_client(0, 's'), *local = connect_client(1, 's'),
                  *publisher = connect_client(1, 'p');
    subscribe(subscriber, "#");
    subscribe(local, "#");
    run_ms(5000);
    publish(publisher, "t", "mine");
    run_ms(2000);
    assert_false(sees(0, 1, MEMBER_ALIVE));
    assert_int_equal(count_in(subscriber, "mine"), 0);
    assert_int_equal(count_in(local, "mine"), 1);
    assert_int_equal(count_in(local, "theirs"), 0);
    assert_false(has_link_up(0) || has_link_up(1));
    assert_non_null(strstr(world->sites[0].log, "warning refused "));
    assert_non_null(strstr(world->sites[1].log, "error refused_us "));
    if (strstr(world->sites[0].log, part) == NULL) fail_msg("%s in %s", part, world->sites[0].log);
    if (strstr(world->sites[1].log, part) == NULL) fail_msg("%s in %s", part, world->sites[1].log);
    assert_true(world->datagrams_sent < 1500); /* neither floods the other */
    assert_int_equal(world->pipe_count, 0);    /* nor is a link dialled that would be refused */
}

static void expired_token_gets_nothing(void **state) {
    (void)state;
    expect_refused(new_token("edge-2", world->issuer, world->sites[1].key, WALL_S - 1), "expired");
}

static void token_of_another_issuer_gets_nothing(void **state) {
    (void)state;
    expect_refused(new_token("edge-2", world->stranger, world->sites[1].key, WALL_S + 1000), "issuer");
}

static void token_bound_to_another_key_gets_nothing(void **state) {
    (void)state;
    expect_refused(new_token("edge-2", world->issuer, world->stranger, WALL_S + 1000), "bound to another key");
}

static void believe(void *context, const uint8_t key_thumbprint[32], const uint8_t *token, size_t token_size,
                    struct peer_answer *answer) {
    (void)context, (void)token, (void)token_size;
    *answer = (struct peer_answer){.allowed = true, .name = "edge-1", .valid_for_ms = 1000000};
    memcpy(answer->id.bytes, key_thumbprint, sizeof(answer->id.bytes));
}

static void renewed_token_is_believed_again(void **state) {
    (void)state;
    struct site *site = &world->sites[1];
    free(site->token);
    site->token = new_token("edge-2", world->issuer, site->key, WALL_S - 1);
    start(0, 1);
    start(1, 1);
    struct client *subscriber = connect_client(0, 's'), *publisher = connect_client(1, 'p');
    subscribe(subscriber, "#");
    run_ms(3000);
    assert_non_null(strstr(site->log, "error refused_us "));
    char *token = new_token("edge-2", world->issuer, site->key, WALL_S + 1000);
    const struct peer_questions questions = {.who_is = believe};
    assert_int_equal(gossip_set_token(node_gossip(site->node), world->now_ms, (const uint8_t *)token, strlen(token)),
                     0);
    assert_int_equal(broker_set_identity(node_broker(site->node), (const uint8_t *)token, strlen(token), &questions),
                     0);
    free(token);
    run_ms(5000);
    assert_true(sees(0, 1, MEMBER_ALIVE));
    publish(publisher, "t", "found");
    run_ms(1000);
    assert_int_equal(count_in(subscriber, "tfound"), 1);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, make_world, free_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_WORLD(node_alone_serves_its_clients),
        IN_WORLD(nodes_find_each_other_from_one_address),
        IN_WORLD(first_message_crosses),
        IN_WORLD(each_node_gets_one_copy),
        IN_WORLD(node_without_interest_gets_nothing),
        IN_WORLD(node_that_leaves_says_so),
        IN_WORLD(node_that_dies_is_noticed_and_comes_back),
        IN_WORLD(cut_link_is_a_line_that_clients_cannot_hide),
        IN_WORLD(epoch_that_others_remember_is_saved),
        IN_WORLD(expired_token_gets_nothing),
        IN_WORLD(token_of_another_issuer_gets_nothing),
        IN_WORLD(token_bound_to_another_key_gets_nothing),
        IN_WORLD(renewed_token_is_believed_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
