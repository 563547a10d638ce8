/* A conversation, once for each allocation that fails: nothing crashes or leaks, nobody else is hurt, and once memory
 * is there again the broker serves as before. */
#include "broker/federation.h"
#include "conversation.h"
#include "oom.h"

static void a_new_broker_is_whole_or_none(void **state) {
    struct broker_options options = {.name = "edge-1", .epoch = 1};
    (void)state;

    for (long n = 0;; n++) {
        struct broker *broker;
        shortage_after(n);
        broker = broker_new(&options, 0);
        shortage_over();
        broker_free(broker);
        if (!shortage.failed) {
            assert_non_null(broker);
            assert_true(n > 5);
            return;
        }
    }
}

/* What the broker does while memory is short; what the test itself allocates comes before or after. */
static void talk(struct world *world, broker_handle *talker, const struct packet *all, size_t step) {
    *talker = broker_client_open(world->broker, world->now,
                                 &(struct broker_origin){.from_loopback = true, .address = "127.0.0.1:1"});
    for (size_t at = 0; at < all->size; at += step)
        broker_client_input(world->broker, world->now, *talker, all->bytes + at,
                            all->size - at < step ? all->size - at : step);
    broker_client_closed(world->broker, world->now, *talker);
    broker_tick(world->broker, world->now + 3000);
}

static void serves_as_before(struct world *world, struct client *watcher) {
    struct client fresh;
    char got[1024];

    client_connect(world, &fresh, 5, "fresh");
    client_subscribe(&fresh, "after", 1);
    say_publish(&fresh, &(struct publish){.topic = "after", .payload = "x", .qos = 1, .id = 1});
    expect(&fresh, "publish q1 id=1 after 'x'");
    expect(&fresh, "puback 1");
    client_cut(&fresh);
    /* The watcher may have been told that there was no memory for it. */
    client_read(watcher);
    if (broker_client_ended(world->broker, watcher->handle)) return;
    do {
        next_packet(watcher, got, sizeof got);
    } while (got[0] != '\0' && strstr(got, " after ") == NULL);
    assert_non_null(strstr(got, " after "));
}

static void each_allocation_of_a_conversation_may_fail(void **state) {
    (void)state;
    for (int version = 4; version <= 5; version++) {
        struct packet all = conversation(version);
        for (size_t step = 7; step < 5000; step *= 600) {
            for (long n = 0;; n++) {
                struct world world = {0};
                struct client watcher;
                broker_handle talker;
                world_begin(&world);
                client_connect(&world, &watcher, 5, "watcher");
                client_subscribe(&watcher, "#", 2);
                shortage_after(n);
                talk(&world, &talker, &all, step);
                shortage_over();
                world.now += 3000;
                serves_as_before(&world, &watcher);
                client_cut(&watcher);
                world_end(&world);
                if (!shortage.failed) {
                    assert_true(n > 30);
                    break;
                }
            }
        }
    }
}

static void the_first_session_may_fail(void **state) {
    struct packet hello = connect_packet(5, &(struct connect){.id = "first"});
    (void)state;

    for (long n = 0;; n++) {
        struct world world = {0};
        struct client fresh;
        broker_handle first;
        world_begin(&world);
        shortage_after(n);
        first = broker_client_open(world.broker, world.now,
                                   &(struct broker_origin){.from_loopback = true, .address = "127.0.0.1:1"});
        broker_client_input(world.broker, world.now, first, hello.bytes, hello.size);
        shortage_over();
        assert_int_equal(counters(&world).sessions, counters(&world).clients_connected);
        client_connect(&world, &fresh, 5, "first");
        client_cut(&fresh);
        world_end(&world);
        if (!shortage.failed) {
            assert_true(n > 4);
            return;
        }
    }
}

/* Who is let in has its will: without memory for it the CONNECT is refused (MQTT-3.1.2-7). */
static void nobody_is_let_in_without_its_will(void **state) {
    struct packet hello =
        connect_packet(4, &(struct connect){.id = "c", .will_topic = "will", .will_payload = "gone", .will_qos = 1});
    (void)state;

    for (long n = 0;; n++) {
        struct world world = {0};
        struct client watcher;
        broker_handle client;
        bool is_in;
        world_begin(&world);
        client_connect(&world, &watcher, 5, "watcher");
        client_subscribe(&watcher, "will", 0);
        shortage_after(n);
        client = broker_client_open(world.broker, world.now,
                                    &(struct broker_origin){.from_loopback = true, .address = "127.0.0.1:1"});
        broker_client_input(world.broker, world.now, client, hello.bytes, hello.size);
        shortage_over();
        is_in = counters(&world).clients_connected == 2;
        broker_client_closed(world.broker, world.now, client);
        expect(&watcher, is_in ? "publish q0 will 'gone'" : "");
        client_cut(&watcher);
        world_end(&world);
        if (!shortage.failed) {
            assert_true(is_in && n > 2);
            return;
        }
    }
}

static void ask_twice(void *context, const struct broker_applicant *applicant, struct broker_auth_step *step) {
    (void)context, (void)applicant;
    step->reason = step->state++ < 2 ? 0x18 : 0x00;
    step->answer_size = 1;
}

/* CONNECT with a method and more bytes than are small, two answers, and the same again while connected. */
static struct packet authentication(void) {
    struct packet all = {.size = 0}, packet;
    char large[5001];

    memset(large, 'w', 5000);
    large[5000] = '\0';
    packet = connect_packet(
        5, &(struct connect){.id = "talker", .properties = "15 0001 4d", .will_topic = "will", .will_payload = large});
    add(&all, &packet);
    put_hex(&all, "f0 06 18 04 15 0001 4d f0 06 18 04 15 0001 4d");
    put_hex(&all, "f0 06 19 04 15 0001 4d f0 06 18 04 15 0001 4d f0 06 18 04 15 0001 4d");
    put_hex(&all, "e0 01 04");
    return all;
}

static void each_allocation_of_an_authentication_may_fail(void **state) {
    struct packet all = authentication();
    (void)state;

    for (size_t step = 7; step < 10000; step *= 1000) {
        for (long n = 0;; n++) {
            struct world world = {.options.questions.authenticate = ask_twice};
            broker_handle talker;
            struct client watcher;
            world_begin(&world);
            client_connect(&world, &watcher, 5, "watcher");
            client_subscribe(&watcher, "#", 0);
            shortage_after(n);
            talk(&world, &talker, &all, step);
            shortage_over();
            serves_as_before(&world, &watcher);
            if (!shortage.failed) assert_int_equal(counters(&world).connects_accepted, 3);
            client_cut(&watcher);
            world_end(&world);
            if (shortage.failed) continue;
            assert_true(n > 5);
            break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_broker_is_whole_or_none),
        cmocka_unit_test(the_first_session_may_fail),
        cmocka_unit_test(nobody_is_let_in_without_its_will),
        cmocka_unit_test(each_allocation_of_a_conversation_may_fail),
        cmocka_unit_test(each_allocation_of_an_authentication_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
