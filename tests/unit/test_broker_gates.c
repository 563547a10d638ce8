/* What waits for the disk before it goes to a client, and what does not. */
#include "mqtt_client.h"

/* Session expiry for ever, in the properties of CONNECT. */
#define FOR_EVER "11 ff ff ff ff"

static void world_durable(struct world *world) {
    *world = (struct world){.options.durable = true};
    world_begin(world);
    broker_set_wall_offset(world->broker, 1700000000000);
}

/* The records made so far reach the disk. */
static void disk(struct world *world) {
    struct broker_journal journal;

    while (broker_take_journal(world->broker, &journal)) {
        free(journal.bytes);
        broker_durable(world->broker, world->now, journal.last);
    }
}

static void connect_lasting(struct world *world, struct client *client, const char *id) {
    client_open(world, client, 5);
    say_connect(client, &(struct connect){.id = id, .resume = true, .properties = FOR_EVER});
    disk(world);
    expect(client, "connack present=*");
}

static void subscribe_lasting(struct client *client, const char *filter, unsigned qos) {
    say_subscribe(client, 99, filter, qos);
    disk(client->world);
    expect(client, "suback 99 0*");
}

static void nothing_waits_where_nothing_lasts(void **state) {
    struct world world;
    struct client sender, receiver;
    (void)state;

    world_durable(&world);
    client_connect(&world, &sender, 5, "sender");
    client_connect(&world, &receiver, 4, "receiver");
    client_subscribe(&receiver, "a", 2);
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 1, .id = 1});
    expect(&sender, "puback 1");
    expect(&receiver, "publish q1 id=1 a '1'");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "2", .qos = 2, .id = 2});
    expect(&sender, "pubrec 2");
    expect(&receiver, "publish q2 id=2 a '2'");
    say_ack(&receiver, 5, 2);
    expect(&receiver, "pubrel 2");
    say_ack(&sender, 6, 2);
    expect(&sender, "pubcomp 2");
    say_unsubscribe(&receiver, 7, "a");
    expect(&receiver, "unsuback 7");
    assert_false(broker_take_journal(world.broker, &(struct broker_journal){0}));
    client_cut(&sender);
    client_cut(&receiver);
    world_end(&world);
}

static void connack_of_a_lasting_session_waits(void **state) {
    struct world world;
    struct client client;
    (void)state;

    world_durable(&world);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
    expect_nothing(&client);
    disk(&world);
    expect(&client, "connack present=0 00*");
    client_cut(&client);
    world_end(&world);
}

static void nothing_goes_before_connack(void **state) {
    struct world world;
    struct client client, other;
    (void)state;

    world_durable(&world);
    client_connect(&world, &other, 5, "other");
    connect_lasting(&world, &client, "c");
    subscribe_lasting(&client, "a/#", 2);
    client_cut(&client);
    say_publish(&other, &(struct publish){.topic = "a/1", .payload = "queued", .qos = 1, .id = 1});
    disk(&world);
    expect(&other, "puback 1");

    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
    say_hex(&client, "c0 00");
    say_publish(&client, &(struct publish){.topic = "b", .payload = "own", .qos = 1, .id = 7});
    say_subscribe(&client, 8, "b", 0);
    say_publish(&other, &(struct publish){.topic = "a/1", .payload = "live, lost", .qos = 0});
    say_publish(&other, &(struct publish){.topic = "a/1", .payload = "live", .qos = 1, .id = 2});
    expect_nothing(&client);
    disk(&world);
    expect(&client, "connack present=1 00*");
    expect(&client, "pingresp");
    expect(&client, "puback 7*");
    expect(&client, "publish q1 id=1 a/1 'queued'");
    expect(&client, "publish q1 id=2 a/1 'live'");
    expect(&client, "suback 8 00");
    expect_nothing(&client);
    client_cut(&client);
    client_cut(&other);
    world_end(&world);
}

static void a_connection_that_ends_before_its_connack_hears_nothing(void **state) {
    struct world world;
    struct client client, next;
    (void)state;

    world_durable(&world);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
    client_open(&world, &next, 5);
    say_connect(&next, &(struct connect){.id = "c", .resume = true, .properties = FOR_EVER});
    expect_end(&client);
    disk(&world);
    expect(&next, "connack present=1 00*");
    client_cut(&next);
    world_end(&world);
}

static void acknowledgements_of_what_a_lasting_session_gets_wait(void **state) {
    struct world world;
    struct client sender, receiver;
    (void)state;

    world_durable(&world);
    client_connect(&world, &sender, 5, "sender");
    connect_lasting(&world, &receiver, "receiver");
    subscribe_lasting(&receiver, "a", 1);
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 1, .id = 1});
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "2", .qos = 2, .id = 2});
    expect(&receiver, "publish q1 id=1 a '1'"); /* QoS 1 goes at once */
    expect(&receiver, "publish q1 id=2 a '2'");
    expect_nothing(&sender);
    disk(&world);
    expect(&sender, "puback 1");
    expect(&sender, "pubrec 2");
    client_cut(&sender);
    client_cut(&receiver);
    world_end(&world);
}

static void retained_messages_are_on_the_disk_before_they_are_acknowledged(void **state) {
    struct world world;
    struct client sender;
    (void)state;

    world_durable(&world);
    client_connect(&world, &sender, 4, "sender");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 1, .id = 1, .retain = true});
    say_publish(&sender, &(struct publish){.topic = "b", .payload = "1", .qos = 1, .id = 2});
    expect_nothing(&sender); /* the second does not overtake the first (MQTT-4.6.0-2) */
    disk(&world);
    expect(&sender, "puback 1");
    expect(&sender, "puback 2");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "", .qos = 1, .id = 3, .retain = true});
    expect_nothing(&sender); /* nor is a delete forgotten */
    disk(&world);
    expect(&sender, "puback 3");
    client_cut(&sender);
    world_end(&world);
}

static void pings_and_deliveries_overtake_what_waits(void **state) {
    struct world world;
    struct client sender, other;
    (void)state;

    world_durable(&world);
    client_connect(&world, &sender, 4, "sender");
    client_connect(&world, &other, 4, "other");
    client_subscribe(&sender, "x", 1);
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 1, .id = 1, .retain = true});
    say_hex(&sender, "c0 00");
    say_publish(&other, &(struct publish){.topic = "x", .payload = "0", .qos = 0});
    say_publish(&other, &(struct publish){.topic = "x", .payload = "1", .qos = 1, .id = 1});
    expect(&sender, "pingresp");
    expect(&sender, "publish q0 x '0'");
    expect(&sender, "publish q1 id=1 x '1'");
    expect_nothing(&sender);
    disk(&world);
    expect(&sender, "puback 1");
    client_cut(&sender);
    client_cut(&other);
    world_end(&world);
}

/* Both sides of a QoS 2 publication, with sessions that last. */
static void each_step_of_qos_2_waits(void **state) {
    struct world world;
    struct client sender, receiver;
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &sender, "sender");
    connect_lasting(&world, &receiver, "receiver");
    subscribe_lasting(&receiver, "a", 2);
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 2, .id = 5});
    expect_nothing(&sender);
    expect_nothing(&receiver);
    disk(&world);
    expect(&sender, "pubrec 5");
    expect(&receiver, "publish q2 id=1 a '1'");
    say_ack(&sender, 6, 5);
    say_ack(&receiver, 5, 1);
    expect_nothing(&sender);
    expect_nothing(&receiver);
    disk(&world);
    expect(&sender, "pubcomp 5");
    expect(&receiver, "pubrel 1");
    say_ack(&receiver, 7, 1);
    disk(&world);
    expect_nothing(&sender);
    expect_nothing(&receiver);
    client_cut(&sender);
    client_cut(&receiver);
    world_end(&world);
}

static void a_repetition_is_not_acknowledged_before_the_first_is_durable(void **state) {
    struct world world;
    struct client sender;
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &sender, "sender");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 2, .id = 5});
    client_cut(&sender);
    client_open(&world, &sender, 5);
    say_connect(&sender, &(struct connect){.id = "sender", .resume = true, .properties = FOR_EVER});
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 2, .id = 5, .dup = true});
    expect_nothing(&sender);
    disk(&world);
    expect(&sender, "connack present=1 00*");
    expect(&sender, "pubrec 5");
    client_cut(&sender);
    world_end(&world);
}

static void subscribing_and_unsubscribing_wait(void **state) {
    struct world world;
    struct client client;
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &client, "c");
    say_subscribe(&client, 1, "a", 1);
    expect_nothing(&client);
    disk(&world);
    expect(&client, "suback 1 01");
    say_unsubscribe(&client, 2, "a");
    expect_nothing(&client);
    disk(&world);
    expect(&client, "unsuback 2 00");
    client_cut(&client);
    world_end(&world);
}

static void retained_messages_follow_the_suback(void **state) {
    struct world world;
    struct client client;
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &client, "c");
    say_publish(&client, &(struct publish){.topic = "a", .payload = "r", .retain = true});
    say_subscribe(&client, 1, "a", 1);
    expect_nothing(&client);
    disk(&world);
    expect(&client, "suback 1 01");
    expect(&client, "publish retain q0 a 'r'");
    client_cut(&client);
    world_end(&world);
}

static void a_session_given_up_is_gone_before_the_next_is_welcomed(void **state) {
    struct world world;
    struct client client;
    (void)state;

    world_durable(&world);
    connect_lasting(&world, &client, "c");
    client_cut(&client);
    disk(&world);
    client_open(&world, &client, 5);
    say_connect(&client, &(struct connect){.id = "c"});
    expect_nothing(&client);
    disk(&world);
    expect(&client, "connack present=0 00*");
    client_cut(&client);
    world_end(&world);
}

/* Only the records up to the number given are there. */
static void each_waits_for_its_own_record(void **state) {
    struct world world;
    struct client sender;
    struct broker_journal first, second;
    (void)state;

    world_durable(&world);
    client_connect(&world, &sender, 4, "sender");
    say_publish(&sender, &(struct publish){.topic = "a", .payload = "1", .qos = 1, .id = 1, .retain = true});
    assert_true(broker_take_journal(world.broker, &first));
    say_publish(&sender, &(struct publish){.topic = "b", .payload = "1", .qos = 1, .id = 2, .retain = true});
    assert_true(broker_take_journal(world.broker, &second));
    assert_int_equal(first.last, 1);
    assert_int_equal(second.last, 2);
    broker_durable(world.broker, world.now, 1);
    expect(&sender, "puback 1");
    expect_nothing(&sender);
    broker_durable(world.broker, world.now, 1000); /* none that was ever made */
    expect_nothing(&sender);
    broker_durable(world.broker, world.now, 2);
    expect(&sender, "puback 2");
    free(first.bytes);
    free(second.bytes);
    client_cut(&sender);
    world_end(&world);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waits_where_nothing_lasts),
        cmocka_unit_test(connack_of_a_lasting_session_waits),
        cmocka_unit_test(nothing_goes_before_connack),
        cmocka_unit_test(a_connection_that_ends_before_its_connack_hears_nothing),
        cmocka_unit_test(acknowledgements_of_what_a_lasting_session_gets_wait),
        cmocka_unit_test(retained_messages_are_on_the_disk_before_they_are_acknowledged),
        cmocka_unit_test(pings_and_deliveries_overtake_what_waits),
        cmocka_unit_test(each_step_of_qos_2_waits),
        cmocka_unit_test(a_repetition_is_not_acknowledged_before_the_first_is_durable),
        cmocka_unit_test(subscribing_and_unsubscribing_wait),
        cmocka_unit_test(retained_messages_follow_the_suback),
        cmocka_unit_test(a_session_given_up_is_gone_before_the_next_is_welcomed),
        cmocka_unit_test(each_waits_for_its_own_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
