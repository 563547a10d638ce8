/* Shared subscriptions that outlive the broker. */
#include "durable_world.h"

static struct world world;
static struct model_store store;
static struct client publisher, a, b;

static int begin(void **state) {
    (void)state;
    store = (struct model_store){0};
    world_durable(&world);
    client_connect(&world, &publisher, 5, "publisher");
    return 0;
}

static int end(void **state) {
    (void)state;
    if (publisher.handle) client_cut(&publisher);
    if (a.handle) client_cut(&a);
    if (b.handle) client_cut(&b);
    model_free(&store);
    world_end(&world);
    return 0;
}

static void subscribe(struct client *client, const char *filter) {
    say_subscribe(client, 1, filter, 1);
    disk(&world, &store);
    expect(client, "suback 1 01");
}

static void publish_numbers(unsigned first, unsigned last) {
    for (unsigned n = first; n <= last; n++) {
        char payload[8];
        snprintf(payload, sizeof payload, "%u", n);
        say_publish(&publisher, &(struct publish){.topic = "t", .payload = payload, .qos = 1, .id = 1});
        disk(&world, &store);
        expect(&publisher, "puback 1*");
    }
}

/* What the journal made of the store is what the broker holds. */
static void expect_same_on_disk(void) {
    struct model_store whole;

    disk(&world, &store);
    whole = model_of(world.broker, world.now);
    assert_true(model_same(&store, &whole));
    model_free(&whole);
}

/* All connections are gone with the broker. */
static void broker_restarts(void) {
    client_forget(&publisher);
    client_forget(&a);
    client_forget(&b);
    restart(&world, &store, 0);
    client_connect(&world, &publisher, 5, "publisher");
}

static void a_group_comes_back_with_its_members(void **state) {
    (void)state;
    connect_lasting(&world, &store, &a, "a", "connack present=0 00*");
    connect_lasting(&world, &store, &b, "b", "connack present=0 00*");
    subscribe(&a, "$share/g/+");
    subscribe(&b, "$share/g/+");
    expect_same_on_disk();
    broker_restarts();
    assert_int_equal(counters(&world).subscriptions, 2);
    publish_numbers(1, 4);
    connect_lasting(&world, &store, &a, "a", "connack present=1 00*");
    connect_lasting(&world, &store, &b, "b", "connack present=1 00*");
    disk(&world, &store);
    {
        unsigned copies[2] = {0};
        struct client *const members[2] = {&a, &b};
        char packet[64];
        for (unsigned i = 0; i < 2; i++)
            while (strncmp(next_packet(members[i], packet, sizeof packet), "publish q1", 10) == 0)
                copies[i]++;
        assert_int_equal(copies[0], 2);
        assert_int_equal(copies[1], 2);
    }
}

static void what_is_passed_on_is_so_on_the_disk_too(void **state) {
    (void)state;
    connect_for(&world, &store, &a, &(struct connect){.id = "a", .resume = true, .properties = "21 0001 " FOR_EVER},
                "connack present=0 00*");
    subscribe(&a, "$share/g/t");
    publish_numbers(1, 3);
    expect(&a, "publish q1 id=1 t '1'");
    connect_lasting(&world, &store, &b, "b", "connack present=0 00*");
    subscribe(&b, "$share/g/t");
    client_cut(&a);
    disk(&world, &store);
    expect(&b, "publish q1 id=1 t '2'");
    expect(&b, "publish q1 id=2 t '3'");
    expect_same_on_disk();
    broker_restarts();
    connect_lasting(&world, &store, &b, "b", "connack present=1 00*");
    expect(&b, "publish dup q1 id=1 t '2'");
    expect(&b, "publish dup q1 id=2 t '3'");
    expect_nothing(&b);
    connect_lasting(&world, &store, &a, "a", "connack present=1 00*");
    expect(&a, "publish dup q1 id=1 t '1'");
    expect_nothing(&a);
}

static void restored_session_that_ends_passes_on_too(void **state) {
    (void)state;
    connect_for(&world, &store, &a, &(struct connect){.id = "a", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    subscribe(&a, "$share/g/t");
    publish_numbers(1, 2);
    expect(&a, "publish q1 id=1 t '1'");
    expect(&a, "publish q1 id=2 t '2'");
    say_ack(&a, 4, 1);
    disk(&world, &store);
    broker_restarts();
    connect_lasting(&world, &store, &b, "b", "connack present=0 00*");
    subscribe(&b, "$share/g/t");
    pass(&world, 3600000);
    disk(&world, &store);
    expect(&b, "publish q1 id=1 t '2'");
    expect_nothing(&b);
    expect_same_on_disk();
}

/* Of two copies of one message nobody can tell any more which is whose: they stay with the session. */
static void what_may_have_come_otherwise_is_not_passed_on(void **state) {
    (void)state;
    connect_for(&world, &store, &a, &(struct connect){.id = "a", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    subscribe(&a, "$share/g/t");
    subscribe(&a, "t");
    publish_numbers(1, 1);
    expect(&a, "publish q1 id=1 t '1'");
    expect(&a, "publish q1 id=2 t '1'");
    broker_restarts();
    connect_lasting(&world, &store, &b, "b", "connack present=0 00*");
    subscribe(&b, "$share/g/t");
    pass(&world, 3600000);
    expect_nothing(&b);
    expect_same_on_disk();
}

static void nor_is_what_came_through_two_groups(void **state) {
    (void)state;
    connect_for(&world, &store, &a, &(struct connect){.id = "a", .resume = true, .properties = AN_HOUR},
                "connack present=0 00*");
    subscribe(&a, "$share/g/t");
    subscribe(&a, "$share/h/t");
    publish_numbers(1, 1);
    expect(&a, "publish q1 id=1 t '1'");
    expect(&a, "publish q1 id=2 t '1'");
    broker_restarts();
    connect_lasting(&world, &store, &b, "b", "connack present=0 00*");
    subscribe(&b, "$share/g/t");
    subscribe(&b, "$share/h/t");
    pass(&world, 3600000);
    expect_nothing(&b);
    expect_same_on_disk();
}

static void session_that_ends_leaves_the_disk_with_what_others_got(void **state) {
    (void)state;
    connect_lasting(&world, &store, &a, "a", "connack present=0 00*");
    subscribe(&a, "$share/g/t");
    publish_numbers(1, 2);
    connect_lasting(&world, &store, &b, "b", "connack present=0 00*");
    subscribe(&b, "$share/g/t");
    say_hex(&a, "e0 07 00 05 11 00000000"); /* DISCONNECT, session expiry 0 */
    client_forget(&a);
    disk(&world, &store);
    expect(&b, "publish q1 id=1 t '1'");
    expect(&b, "publish q1 id=2 t '2'");
    expect_same_on_disk();
    broker_restarts();
    assert_int_equal(counters(&world).sessions, 2); /* b, publisher */
    connect_lasting(&world, &store, &b, "b", "connack present=1 00*");
    expect(&b, "publish dup q1 id=1 t '1'");
    expect(&b, "publish dup q1 id=2 t '2'");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_group_comes_back_with_its_members),      TEST(what_is_passed_on_is_so_on_the_disk_too),
        TEST(restored_session_that_ends_passes_on_too), TEST(what_may_have_come_otherwise_is_not_passed_on),
        TEST(nor_is_what_came_through_two_groups),      TEST(session_that_ends_leaves_the_disk_with_what_others_got),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
