/* Publications and memory: those of QoS 0 need none, and what finds none is refused as a whole. */
#include "mqtt_client.h"
#include "oom.h"

/* Takes what was written and forgets it, without an allocation of the test's own. */
static void written(struct world *world) {
    broker_handle handle;
    struct broker_span spans[16];
    size_t count;

    while (broker_next_client(world->broker, &handle)) {
        while ((count = broker_client_output(world->broker, handle, spans, 16)) > 0) {
            size_t size = 0;
            for (size_t i = 0; i < count; i++)
                size += spans[i].size;
            broker_client_written(world->broker, world->now, handle, size);
        }
    }
}

static void a_publication_of_qos_0_allocates_nothing(void **state) {
    (void)state;
    static const char *const filters[] = {"a/b", "a/+", "#"};
    for (int version = 4; version <= 5; version++) {
        struct world world = {0};
        struct client publisher, subscribers[6];
        struct packet packet = publish_packet(version, &(struct publish){.topic = "a/b", .payload = "twenty degrees"});
        unsigned long before = 0;
        world_begin(&world);
        for (unsigned i = 0; i < 6; i++) {
            char id[] = {(char)('a' + i), '\0'};
            client_connect(&world, &subscribers[i], 4 + (int)i % 2, id);
            client_subscribe(&subscribers[i], filters[i % 3], i % 3);
        }
        client_connect(&world, &publisher, version, "publisher");
        for (int i = 0; i < 1000; i++) {
            if (i == 100) before = shortage.allocations;
            broker_client_input(world.broker, world.now, publisher.handle, packet.bytes, packet.size);
            written(&world);
        }
        assert_int_equal(shortage.allocations, before);
        assert_true(counters(&world).publications_sent == 6000);
        client_cut(&publisher);
        for (unsigned i = 0; i < 6; i++)
            client_cut(&subscribers[i]);
        world_end(&world);
    }
}

static void what_is_acknowledged_is_queued_whatever_allocation_fails(void **state) {
    (void)state;
    for (unsigned qos = 1; qos <= 2; qos++) {
        struct packet packet =
            publish_packet(5, &(struct publish){.topic = "a/b", .payload = "x", .qos = qos, .id = 7});
        for (long n = 0;; n++) {
            struct world world = {0};
            struct client publisher, subscriber;
            char got[256];
            world_begin(&world);
            client_connect(&world, &subscriber, 5, "subscriber");
            client_subscribe(&subscriber, "a/b", 2);
            client_connect(&world, &publisher, 5, "publisher");
            shortage_after(n);
            broker_client_input(world.broker, world.now, publisher.handle, packet.bytes, packet.size);
            shortage_over();
            bool failed = shortage.failed;
            next_packet(&publisher, got, sizeof got);
            bool acknowledged = strncmp(got, qos == 1 ? "puback 7" : "pubrec 7", 8) == 0;
            assert_true(failed || acknowledged);
            if (acknowledged) {
                next_packet(&subscriber, got, sizeof got);
                /* One for whom there was no memory is told so, as he would miss it. */
                assert_true(strncmp(got, "publish", 7) == 0 || strncmp(got, "disconnect", 10) == 0);
            } else {
                assert_true(broker_client_ended(world.broker, publisher.handle));
            }
            client_cut(&publisher);
            client_cut(&subscriber);
            world_end(&world);
            if (!failed) break;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_publication_of_qos_0_allocates_nothing),
        cmocka_unit_test(what_is_acknowledged_is_queued_whatever_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
