/* The hybrid clock, seen through what is retained. */
#include "broker/federation.h"
#include "mqtt_client.h"

static struct world world;
static struct client client;

static int begin(void **state) {
    (void)state;
    world_begin(&world);
    client_connect(&world, &client, 5, "a");
    return 0;
}

static int end(void **state) {
    (void)state;
    client_cut(&client);
    world_end(&world);
    return 0;
}

static struct message *from_peer(const char *payload, uint64_t wall_ms, uint32_t count) {
    struct message template = {.retain = true,
                               .topic = "t",
                               .topic_size = 1,
                               .payload = (const uint8_t *)payload,
                               .payload_size = (uint32_t)strlen(payload),
                               .expires_at_ms = UINT64_MAX,
                               .stamp = {.wall_ms = wall_ms, .count = count, .origin = {0xFF}}};
    struct message *message = message_new(&template);

    assert_non_null(message);
    return message;
}

static void merge(const char *payload, uint64_t wall_ms, uint32_t count) {
    struct message *message = from_peer(payload, wall_ms, count);

    broker_merge_retained(world.broker, world.now, message);
    message_unref(message);
}

static void publish_here(const char *payload) {
    say_publish(&client, &(struct publish){.topic = "t", .payload = payload, .retain = true});
}

static void expect_retained(const char *payload) {
    char expected[64];

    say_subscribe(&client, 1, "t", 0);
    expect(&client, "suback 1 00");
    snprintf(expected, sizeof expected, "publish retain q0 t '%s'", payload);
    expect(&client, expected);
    say_unsubscribe(&client, 2, "t");
    expect(&client, "unsuback 2 00");
}

static void stamps_follow_the_wall_clock(void **state) {
    (void)state;
    broker_set_wall_offset(world.broker, 1000000);
    publish_here("here");
    merge("older", world.now + 1000000 - 1, 99);
    expect_retained("here");
    merge("newer", world.now + 1000000 + 1, 0);
    expect_retained("newer");
}

static void own_publication_is_later_than_a_live_one_that_was_seen(void **state) {
    struct message *message = from_peer("future", 1ull << 50, UINT32_MAX);
    (void)state;

    broker_deliver_from_peer(world.broker, world.now, message, NULL);
    message_unref(message);
    expect_retained("future");
    publish_here("here");
    expect_retained("here");
}

static void own_publication_is_later_than_a_snapshot_that_was_seen(void **state) {
    (void)state;
    merge("future", 1ull << 50, 7);
    publish_here("here");
    expect_retained("here");
}

static void a_clock_stepped_back_does_not_undo(void **state) {
    (void)state;
    broker_set_wall_offset(world.broker, 1000000);
    publish_here("1");
    broker_set_wall_offset(world.broker, -1000000);
    publish_here("2");
    expect_retained("2");
    publish_here("3");
    expect_retained("3");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(stamps_follow_the_wall_clock),
        TEST(own_publication_is_later_than_a_live_one_that_was_seen),
        TEST(own_publication_is_later_than_a_snapshot_that_was_seen),
        TEST(a_clock_stepped_back_does_not_undo),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
