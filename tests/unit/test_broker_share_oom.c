/* Shared subscriptions while memory is short: a group is joined wholly or not at all, and what cannot be passed on is
 * lost for that one member alone. */
#include "broker/record.h"
#include "mqtt_client.h"
#include "oom.h"

static struct packet subscribe_packet(const char *filter) {
    struct packet body = {.size = 0};

    put16(&body, 7);
    put_properties(&body, 5, NULL);
    put_text(&body, filter);
    put8(&body, 1);
    return packet_of(0x82, &body);
}

static void publish(struct client *publisher, const char *payload) {
    say_publish(publisher, &(struct publish){.topic = "t", .payload = payload, .qos = 1, .id = 1});
    expect(publisher, "puback 1*");
}

/* others: members that are there already. */
static bool join_with_a_failure(long n, unsigned others) {
    struct world world = {0};
    struct client publisher, a, other;
    struct packet packet = subscribe_packet("$share/g/t");
    char got[64];
    bool joined;

    world_begin(&world);
    client_connect(&world, &publisher, 5, "publisher");
    client_connect(&world, &a, 5, "a");
    client_connect(&world, &other, 5, "other");
    if (others > 0) client_subscribe(&other, "$share/g/t", 1);
    shortage_after(n);
    broker_client_input(world.broker, world.now, a.handle, packet.bytes, packet.size);
    shortage_over();
    next_packet(&a, got, sizeof got);
    joined = strcmp(got, "suback 7 01") == 0;
    if (!joined && strcmp(got, "suback 7 97") != 0 && strcmp(got, "disconnect 97") != 0) fail_msg("%s", got);
    if (strncmp(got, "suback", 6) == 0) {
        assert_int_equal(counters(&world).subscriptions, others + joined);
        publish(&publisher, "1");
        publish(&publisher, "2");
        if (joined || others > 0) {
            expect(others > 0 ? &other : &a, "publish q1 id=1 t '1'");
            expect(joined ? &a : &other, "publish q1 *");
        }
        if (!joined) client_subscribe(&a, "$share/g/t", 1);
    }
    client_cut(&a);
    client_cut(&other);
    client_cut(&publisher);
    world_end(&world);
    return shortage.failed;
}

static void a_group_is_joined_wholly_or_not_at_all(void **state) {
    (void)state;
    for (unsigned others = 0; others < 2; others++) {
        long n = 0;
        while (join_with_a_failure(n, others))
            n++;
        assert_true(n > 5);
    }
}

static bool pass_on_with_a_failure(long n) {
    struct world world = {0};
    struct client publisher, a, b, fresh;
    char got[64];
    unsigned count = 0;

    world_begin(&world);
    client_connect(&world, &publisher, 5, "publisher");
    client_connect_with(&world, &a, 5, &(struct connect){.id = "a", .properties = "21 0001"});
    client_subscribe(&a, "$share/g/t", 1);
    publish(&publisher, "1");
    publish(&publisher, "2");
    publish(&publisher, "3");
    expect(&a, "publish q1 id=1 t '1'");
    client_connect(&world, &b, 5, "b");
    client_subscribe(&b, "$share/g/t", 1);
    shortage_after(n);
    broker_client_closed(world.broker, world.now, a.handle);
    shortage_over();
    client_forget(&a);
    while (strncmp(next_packet(&b, got, sizeof got), "publish q1", 10) == 0)
        count++;
    if (shortage.failed)
        assert_string_equal(got, "disconnect 97");
    else
        assert_int_equal(count, 3);
    client_connect(&world, &fresh, 5, "fresh");
    client_subscribe(&fresh, "$share/g/t", 1);
    client_cut(&b);
    publish(&publisher, "4");
    do {
        next_packet(&fresh, got, sizeof got);
    } while (got[0] != '\0' && strstr(got, "'4'") == NULL);
    assert_non_null(strstr(got, "'4'"));
    client_cut(&fresh);
    client_cut(&publisher);
    world_end(&world);
    return shortage.failed;
}

static void what_cannot_be_passed_on_costs_one_connection(void **state) {
    long n = 0;
    (void)state;

    while (pass_on_with_a_failure(n))
        n++;
    assert_true(n >= 3);
}

static void restore(struct world *world, const struct record *record) {
    broker_restore(world->broker, world->now, record);
}

/* What came through a group is put back with its member, or the restore says that memory was short. */
static bool put_back_with_a_failure(long n) {
    struct world world = {.now = 1000000000, .options.durable = true};
    const struct record_text topic = {"t/1", 3};
    bool failed;

    world_begin(&world);
    restore(&world, &(struct record){.type = RECORD_SESSION, .session = 1, .client_id = {"a", 1}, .expiry_s = 3600});
    for (unsigned i = 0; i < 20; i++) {
        char filter[32];
        snprintf(filter, sizeof filter, "$share/g/%s%u", i ? "other/" : "+/", i + 1);
        restore(&world,
                &(struct record){
                    .type = RECORD_SUBSCRIPTION, .session = 1, .filter = {filter, strlen(filter)}, .options = 1});
    }
    restore(&world, &(struct record){.type = RECORD_MESSAGE, .message = 2, .publication = {.topic = topic, .qos = 1}});
    shortage_after(n);
    restore(&world, &(struct record){.type = RECORD_QUEUED, .session = 1, .message = 2, .position = 1, .qos = 1});
    shortage_over();
    failed = shortage.failed;
    assert_int_equal(broker_restored(world.broker, world.now, 3), !failed);
    world_end(&world);
    return failed;
}

static void a_restore_without_memory_for_a_group_says_so(void **state) {
    long n = 0;
    (void)state;

    while (put_back_with_a_failure(n))
        n++;
    assert_true(n >= 20); /* the filters, too */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restore_without_memory_for_a_group_says_so),
        cmocka_unit_test(a_group_is_joined_wholly_or_not_at_all),
        cmocka_unit_test(what_cannot_be_passed_on_costs_one_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
