/* A client that takes topic aliases, while any one allocation fails: what it gets has the right topic, and no aliases
 * are better than no connection. */
#include "alias_reader.h"
#include "oom.h"

enum { TOPICS = 5, PUBLICATIONS = 30 };

static struct world world;
static struct client publisher;

static void publish(unsigned number) {
    char topic[32], payload[8];
    struct packet packet;

    snprintf(topic, sizeof topic, "room/number/%u", number % TOPICS);
    snprintf(payload, sizeof payload, "%u", number % TOPICS);
    packet = publish_packet(4, &(struct publish){.topic = topic, .payload = payload});
    broker_client_input(world.broker, world.now, publisher.handle, packet.bytes, packet.size);
}

static void any_allocation_may_fail(void **state) {
    bool failed = true;
    unsigned survived = 0;
    (void)state;

    for (long nth = 0; failed; nth++) {
        struct alias_reader reader = {.alias_max = 3};
        world.options.limits.topic_alias_out_max = 3;
        world_begin(&world);
        client_connect(&world, &publisher, 4, "publisher");
        client_connect_with(&world, &reader.client, 5, &(struct connect){.id = "reader", .properties = "22 0003"});
        client_subscribe(&reader.client, "#", 0);
        shortage_after(nth);
        for (unsigned number = 0; number < PUBLICATIONS; number++)
            publish(number * number / 3);
        shortage_over();
        failed = shortage.failed;
        if (!broker_client_ended(world.broker, publisher.handle) &&
            !broker_client_ended(world.broker, reader.client.handle)) {
            struct publication got;
            unsigned count = 0;
            for (; reader_next(&reader, &got); count++)
                assert_int_equal(got.topic[strlen(got.topic) - 1], got.payload[0]);
            assert_int_equal(count, PUBLICATIONS);
            survived++;
        }
        reader_cut(&reader);
        client_cut(&publisher);
        world_end(&world);
    }
    assert_true(survived > 5); /* the one without shortage, and those in which an alias was not to be had */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
