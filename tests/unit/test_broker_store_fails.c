/* A store that cannot write, or is too far behind: what is refused, what goes on, who is paused, and the way back. */
#include "model_store.h"

#define FOR_EVER "11 ff ff ff ff"

static void world_with(struct world *world, uint64_t journal_bytes_max) {
    *world = (struct world){.options.durable = true, .options.limits.journal_bytes_max = journal_bytes_max};
    world_begin(world);
    broker_set_wall_offset(world->broker, 1700000000000);
}

static void disk(struct world *world) {
    struct broker_journal journal;

    while (broker_take_journal(world->broker, &journal)) {
        free(journal.bytes);
        broker_durable(world->broker, world->now, journal.last);
    }
}

static void fails(struct world *world, bool failing) {
    broker_set_store_failing(world->broker, world->now, failing);
}

static void connect_lasting(struct world *world, struct client *client, int version, const char *id) {
    client_open(world, client, version);
    say_connect(client, &(struct connect){.id = id, .resume = true, .properties = FOR_EVER});
    disk(world);
    expect(client, "connack present=*");
}

static void subscribe_lasting(struct client *client, const char *filter, unsigned qos) {
    say_subscribe(client, 99, filter, qos);
    disk(client->world);
    expect(client, "suback 99 0*");
}

/* A lasting session subscribed to "kept" at QoS 2, and one that is not to "#". */
struct house {
    struct world world;
    struct client keeper, watcher;
};

static void house_begin(struct house *house, uint64_t journal_bytes_max) {
    world_with(&house->world, journal_bytes_max);
    connect_lasting(&house->world, &house->keeper, 5, "keeper");
    subscribe_lasting(&house->keeper, "kept", 2);
    client_connect(&house->world, &house->watcher, 5, "watcher");
    client_subscribe(&house->watcher, "#", 2);
}

static void house_end(struct house *house) {
    client_cut(&house->keeper);
    client_cut(&house->watcher);
    world_end(&house->world);
}

static void what_must_outlive_a_crash_is_refused_without_effect(void **state) {
    static const struct publish publications[] = {
        {.topic = "kept", .payload = "1", .qos = 1, .id = 1},
        {.topic = "kept", .payload = "1", .qos = 2, .id = 1},
        {.topic = "other", .payload = "1", .qos = 1, .id = 1, .retain = true},
        {.topic = "other", .payload = "1", .qos = 2, .id = 1, .retain = true},
    };
    (void)state;

    for (size_t i = 0; i < sizeof publications / sizeof publications[0]; i++) {
        struct house house;
        struct client sender, later;
        house_begin(&house, 0);
        client_connect(&house.world, &sender, 5, "sender");
        fails(&house.world, true);
        say_publish(&sender, &publications[i]);
        expect(&sender, publications[i].qos == 1 ? "puback 1 97*" : "pubrec 1 97*");
        expect_nothing(&house.watcher);
        expect_nothing(&house.keeper);
        assert_int_equal(counters(&house.world).publications_refused, 1);
        client_connect(&house.world, &later, 5, "later");
        client_subscribe(&later, "#", 0);
        expect_nothing(&later);
        fails(&house.world, false);
        disk(&house.world);
        say_publish(&sender, &publications[i]); /* its packet id is free again */
        disk(&house.world);
        expect(&sender, publications[i].qos == 1 ? "puback 1" : "pubrec 1");
        expect(&house.watcher, "publish *");
        client_cut(&sender);
        client_cut(&later);
        house_end(&house);
    }
}

static void a_3_1_1_client_is_closed(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 0);
    client_connect(&house.world, &sender, 4, "sender");
    fails(&house.world, true);
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "1", .qos = 1, .id = 1});
    expect_end(&sender);
    expect_nothing(&house.watcher);
    house_end(&house);
}

static void qos_2_of_a_lasting_session_is_refused(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 0);
    connect_lasting(&house.world, &sender, 5, "sender");
    fails(&house.world, true);
    say_publish(&sender, &(struct publish){.topic = "other", .payload = "1", .qos = 2, .id = 1});
    expect(&sender, "pubrec 1 97*");
    say_publish(&sender, &(struct publish){.topic = "other", .payload = "1", .qos = 1, .id = 1});
    expect(&sender, "puback 1");
    expect(&house.watcher, "publish q1 id=1 other '1'");
    client_cut(&sender);
    house_end(&house);
}

static void a_group_with_a_lasting_member_counts(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 0);
    subscribe_lasting(&house.keeper, "$share/g/shared", 1);
    client_connect(&house.world, &sender, 5, "sender");
    fails(&house.world, true);
    say_publish(&sender, &(struct publish){.topic = "shared", .payload = "1", .qos = 1, .id = 1});
    expect(&sender, "puback 1 97*");
    expect_nothing(&house.watcher);
    client_cut(&sender);
    house_end(&house);
}

static void everything_else_goes_on(void **state) {
    struct house house;
    struct client sender, other;
    (void)state;

    house_begin(&house, 0);
    client_connect(&house.world, &sender, 5, "sender");
    fails(&house.world, true);
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "0", .retain = true});
    expect(&house.watcher, "publish q0 kept '0'");
    expect(&house.keeper, "publish q0 kept '0'");
    say_publish(&sender, &(struct publish){.topic = "other", .payload = "1", .qos = 1, .id = 1});
    expect(&sender, "puback 1");
    expect(&house.watcher, "publish q1 id=1 other '1'");
    say_publish(&sender, &(struct publish){.topic = "other", .payload = "2", .qos = 2, .id = 2});
    expect(&sender, "pubrec 2");
    say_ack(&sender, 6, 2);
    expect(&sender, "pubcomp 2");
    /* Sessions that last are welcomed, and subscribe, though it is not sure that they do. */
    client_open(&house.world, &other, 5);
    say_connect(&other, &(struct connect){.id = "other", .resume = true, .properties = FOR_EVER});
    expect(&other, "connack present=0 00*");
    say_subscribe(&other, 1, "kept", 0);
    expect(&other, "suback 1 00");
    expect(&other, "publish retain q0 kept '0'");
    say_unsubscribe(&other, 2, "kept");
    expect(&other, "unsuback 2 00");
    client_cut(&sender);
    client_cut(&other);
    house_end(&house);
}

static void who_waited_to_get_in_waits_no_longer(void **state) {
    struct house house;
    struct client other;
    (void)state;

    house_begin(&house, 0);
    say_subscribe(&house.keeper, 1, "more", 1);
    say_unsubscribe(&house.keeper, 2, "kept");
    client_open(&house.world, &other, 5);
    say_connect(&other, &(struct connect){.id = "other", .resume = true, .properties = FOR_EVER});
    say_hex(&other, "c0 00");
    expect_nothing(&other);
    expect_nothing(&house.keeper);
    fails(&house.world, true);
    expect(&other, "connack present=0 00*");
    expect(&other, "pingresp");
    expect(&house.keeper, "unsuback 2 00");
    expect(&house.keeper, "suback 1 01");
    client_cut(&other);
    house_end(&house);
}

/* Both ends of a QoS 2 publication that is under way. */
static void what_is_on_its_way_waits(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 0);
    connect_lasting(&house.world, &sender, 5, "sender");
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "1", .qos = 2, .id = 1});
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "2", .qos = 2, .id = 2});
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "3", .qos = 1, .id = 3});
    fails(&house.world, true);
    expect_nothing(&sender);
    expect_nothing(&house.keeper);
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "4", .qos = 1, .id = 4});
    expect_nothing(&sender); /* its refusal keeps the order too */
    say_hex(&sender, "c0 00");
    expect(&sender, "pingresp");
    fails(&house.world, false);
    expect_nothing(&sender);
    disk(&house.world);
    expect(&sender, "pubrec 1");
    expect(&sender, "pubrec 2");
    expect(&sender, "puback 3");
    expect(&sender, "puback 4 97*");
    expect(&house.keeper, "publish q2 id=1 kept '1'");
    expect(&house.keeper, "publish q2 id=2 kept '2'");
    expect(&house.keeper, "publish q1 id=3 kept '3'");
    fails(&house.world, true);
    say_ack(&sender, 6, 1);
    say_ack(&house.keeper, 5, 1);
    expect_nothing(&sender);
    expect_nothing(&house.keeper);
    fails(&house.world, false);
    disk(&house.world);
    expect(&sender, "pubcomp 1");
    expect(&house.keeper, "pubrel 1");
    client_cut(&sender);
    house_end(&house);
}

static void a_repetition_waits_like_the_first(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 0);
    connect_lasting(&house.world, &sender, 5, "sender");
    say_publish(&sender, &(struct publish){.topic = "x", .payload = "1", .qos = 2, .id = 1});
    client_cut(&sender);
    fails(&house.world, true);
    client_open(&house.world, &sender, 5);
    say_connect(&sender, &(struct connect){.id = "sender", .resume = true, .properties = FOR_EVER});
    expect(&sender, "connack present=1 00*");
    say_publish(&sender, &(struct publish){.topic = "x", .payload = "1", .qos = 2, .id = 1, .dup = true});
    expect_nothing(&sender);
    fails(&house.world, false);
    disk(&house.world);
    expect(&sender, "pubrec 1");
    client_cut(&sender);
    house_end(&house);
}

static void without_durability_a_failing_store_is_nothing(void **state) {
    struct world world = {0};
    struct client client;
    (void)state;

    world_begin(&world);
    client_connect(&world, &client, 4, "c");
    broker_set_store_failing(world.broker, world.now, true);
    say_publish(&client, &(struct publish){.topic = "a", .payload = "1", .qos = 1, .id = 1, .retain = true});
    expect(&client, "puback 1");
    client_cut(&client);
    world_end(&world);
}

/* ---- a store that is far behind ---- */

/* Publications of about 1,000 bytes of records each. */
static void publish_large(struct client *client, unsigned id, const char *topic) {
    char payload[900];

    memset(payload, 'x', sizeof payload);
    payload[sizeof payload - 1] = '\0';
    say_publish(client, &(struct publish){.topic = topic, .payload = payload, .qos = 1, .id = id});
}

static void a_full_journal_refuses_as_a_failing_store_does(void **state) {
    struct house house;
    struct client sender;
    struct broker_journal taken;
    (void)state;

    house_begin(&house, 4100);
    house.keeper.unread = house.watcher.unread = true;
    client_connect(&house.world, &sender, 5, "sender");
    for (unsigned id = 1; id <= 5; id++)
        publish_large(&sender, id, "kept");
    assert_true(broker_take_journal(house.world.broker, &taken)); /* taken is not durable */
    publish_large(&sender, 6, "kept");
    publish_large(&sender, 7, "other");
    expect_nothing(&sender);
    broker_durable(house.world.broker, house.world.now, taken.last);
    free(taken.bytes);
    for (unsigned id = 1; id <= 5; id++) {
        char expected[16];
        snprintf(expected, sizeof expected, "puback %u", id);
        expect(&sender, expected);
    }
    expect(&sender, "puback 6 97*");
    expect(&sender, "puback 7");
    publish_large(&sender, 8, "kept");
    disk(&house.world);
    expect(&sender, "puback 8");
    assert_int_equal(counters(&house.world).publications_refused, 1);
    client_cut(&sender);
    house_end(&house);
}

static bool named(struct world *world, broker_handle handle) {
    broker_handle client;
    bool found = false;

    while (broker_next_client(world->broker, &client))
        found = found || client == handle;
    return found;
}

static void who_makes_records_is_paused_while_the_store_is_behind(void **state) {
    struct house house;
    struct client sender, quiet;
    (void)state;

    house_begin(&house, 4000);
    house.keeper.unread = house.watcher.unread = true;
    client_connect(&house.world, &sender, 5, "sender");
    client_connect_with(&house.world, &quiet, 5, &(struct connect){.id = "quiet", .keep_alive = 10});
    publish_large(&sender, 1, "kept");
    assert_false(broker_client_paused(house.world.broker, sender.handle));
    publish_large(&sender, 2, "kept");
    publish_large(&sender, 3, "kept");
    publish_large(&quiet, 1, "other");
    assert_true(broker_client_paused(house.world.broker, sender.handle));
    assert_false(broker_client_paused(house.world.broker, quiet.handle));
    named(&house.world, sender.handle);
    disk(&house.world);
    assert_true(named(&house.world, sender.handle));
    assert_false(broker_client_paused(house.world.broker, sender.handle));
    client_cut(&sender);
    client_cut(&quiet);
    house_end(&house);
}

static void who_is_paused_is_not_missed(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 2000);
    house.keeper.unread = house.watcher.unread = true;
    client_connect_with(&house.world, &sender, 5, &(struct connect){.id = "sender", .keep_alive = 10});
    publish_large(&sender, 1, "kept");
    publish_large(&sender, 2, "kept");
    assert_true(broker_client_paused(house.world.broker, sender.handle));
    pass(&house.world, 100000);
    assert_false(broker_client_ended(house.world.broker, sender.handle));
    disk(&house.world);
    expect(&sender, "puback 1");
    expect(&sender, "puback 2");
    pass(&house.world, 14999);
    assert_false(broker_client_ended(house.world.broker, sender.handle));
    pass(&house.world, 1);
    expect(&sender, "disconnect 8d*");
    client_cut(&sender);
    house_end(&house);
}

static void who_has_many_acknowledgements_held_is_paused(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 0);
    house.keeper.unread = house.watcher.unread = true;
    client_connect(&house.world, &sender, 4, "sender");
    for (unsigned id = 1; id <= 100; id++)
        say_publish(&sender, &(struct publish){.topic = "kept", .payload = "1", .qos = 1, .id = id});
    assert_false(broker_client_paused(house.world.broker, sender.handle));
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "1", .qos = 1, .id = 101});
    assert_true(broker_client_paused(house.world.broker, sender.handle));
    disk(&house.world);
    assert_false(broker_client_paused(house.world.broker, sender.handle));
    client_cut(&sender);
    assert_false(broker_client_paused(house.world.broker, sender.handle));
    house_end(&house);
}

static void a_failing_store_pauses_nobody_for_its_journal(void **state) {
    struct house house;
    struct client sender;
    (void)state;

    house_begin(&house, 2000);
    house.keeper.unread = house.watcher.unread = true;
    client_connect(&house.world, &sender, 5, "sender");
    publish_large(&sender, 1, "kept");
    publish_large(&sender, 2, "kept");
    assert_true(broker_client_paused(house.world.broker, sender.handle));
    named(&house.world, sender.handle);
    fails(&house.world, true);
    assert_true(named(&house.world, sender.handle));
    assert_false(broker_client_paused(house.world.broker, sender.handle));
    client_cut(&sender);
    house_end(&house);
}

/* ---- a journal that is lost ---- */

static void a_lost_journal_begins_anew_when_the_store_works(void **state) {
    struct house house;
    struct client sender;
    struct model_store store = {0};
    struct broker_journal journal;
    struct record record;
    uint64_t before;
    (void)state;

    house_begin(&house, 4000);
    client_connect(&house.world, &sender, 5, "sender");
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "held", .qos = 1, .id = 1});
    fails(&house.world, true);
    for (unsigned i = 0; i < 20; i++) { /* retained at QoS 0: records without end */
        char topic[16], payload[900];
        snprintf(topic, sizeof topic, "r/%u", i);
        memset(payload, 'x', sizeof payload);
        payload[sizeof payload - 1] = '\0';
        say_publish(&sender, &(struct publish){.topic = topic, .payload = payload, .retain = true});
    }
    assert_false(broker_take_journal(house.world.broker, &journal)); /* nothing with a gap is ever given */
    expect_nothing(&sender);
    fails(&house.world, false);
    assert_true(broker_take_journal(house.world.broker, &journal));
    assert_true(record_read(journal.bytes, journal.size, &record) > 0);
    assert_int_equal(record.type, RECORD_RESET);
    model_apply_journal(&store, &journal);
    assert_non_null(model_find(&store, RECORD_RETAINED, &(struct record){.publication.topic = {"r/19", 4}}));
    assert_non_null(model_find(&store, RECORD_RETAINED, &(struct record){.publication.topic = {"r/0", 3}}));
    before = journal.last;
    free(journal.bytes);
    expect_nothing(&sender);
    /* A whole state larger than the limit is not held against it. */
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "next", .qos = 1, .id = 2});
    broker_durable(house.world.broker, house.world.now, before);
    expect(&sender, "puback 1");
    disk(&house.world);
    expect(&sender, "puback 2");
    model_free(&store);
    client_cut(&sender);
    house_end(&house);
}

/* A slow store: what is taken does not become durable. */
static void a_journal_that_began_anew_goes_on_from_there(void **state) {
    struct house house;
    struct client sender;
    struct broker_journal journal;
    struct record record;
    unsigned begun_anew = 0;
    size_t bytes = 0;
    (void)state;

    house_begin(&house, 4000);
    client_connect(&house.world, &sender, 5, "sender");
    for (unsigned i = 0; i < 40; i++) {
        char topic[16], payload[900];
        uint64_t last = 0;
        snprintf(topic, sizeof topic, "r/%u", i % 4);
        memset(payload, 'x', sizeof payload);
        payload[sizeof payload - 1] = '\0';
        say_publish(&sender, &(struct publish){.topic = topic, .payload = payload, .retain = true});
        while (broker_take_journal(house.world.broker, &journal)) {
            assert_true(record_read(journal.bytes, journal.size, &record) > 0);
            begun_anew += record.type == RECORD_RESET;
            bytes += journal.size;
            assert_true(journal.last > last);
            last = journal.last;
            free(journal.bytes);
        }
    }
    /* Twice the limit is about 9 of them. */
    assert_in_range(begun_anew, 1, 5);
    assert_true(bytes < 80000);
    disk(&house.world);
    client_cut(&sender);
    house_end(&house);
}

static void a_store_that_lost_all_is_told_all(void **state) {
    struct house house;
    struct client sender;
    struct model_store before, after;
    (void)state;

    house_begin(&house, 0);
    house.keeper.unread = true;
    client_connect(&house.world, &sender, 5, "sender");
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "1", .qos = 2, .id = 1, .retain = true});
    say_publish(&sender, &(struct publish){.topic = "$SYS/not/ours", .payload = "1", .qos = 0, .retain = true});
    expect_nothing(&sender);
    before = model_of(house.world.broker, house.world.now);
    after = model_of(house.world.broker, house.world.now);
    assert_true(model_same(&before, &after));
    assert_int_equal(before.count, 5); /* session, subscription, message, queued, retained */
    disk(&house.world);
    expect_nothing(&sender); /* the takes of model_of() never reached a disk */
    say_publish(&sender, &(struct publish){.topic = "kept", .payload = "2", .qos = 1, .id = 2});
    disk(&house.world);
    expect(&sender, "pubrec 1");
    expect(&sender, "puback 2");
    model_free(&before);
    model_free(&after);
    client_cut(&sender);
    house_end(&house);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_must_outlive_a_crash_is_refused_without_effect),
        cmocka_unit_test(a_3_1_1_client_is_closed),
        cmocka_unit_test(qos_2_of_a_lasting_session_is_refused),
        cmocka_unit_test(a_group_with_a_lasting_member_counts),
        cmocka_unit_test(everything_else_goes_on),
        cmocka_unit_test(who_waited_to_get_in_waits_no_longer),
        cmocka_unit_test(what_is_on_its_way_waits),
        cmocka_unit_test(a_repetition_waits_like_the_first),
        cmocka_unit_test(without_durability_a_failing_store_is_nothing),
        cmocka_unit_test(a_full_journal_refuses_as_a_failing_store_does),
        cmocka_unit_test(who_makes_records_is_paused_while_the_store_is_behind),
        cmocka_unit_test(who_is_paused_is_not_missed),
        cmocka_unit_test(who_has_many_acknowledgements_held_is_paused),
        cmocka_unit_test(a_failing_store_pauses_nobody_for_its_journal),
        cmocka_unit_test(a_lost_journal_begins_anew_when_the_store_works),
        cmocka_unit_test(a_journal_that_began_anew_goes_on_from_there),
        cmocka_unit_test(a_store_that_lost_all_is_told_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
