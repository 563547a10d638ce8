/* Groups of shared subscriptions with members at several brokers (G7): each publication goes to one of all members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policies.h"
#include "with_disk.h"

#define GROUP "$share/g/t/#"

static struct client *member_at(struct world *world, int site) {
    struct client *client = client_connect(world, site);
    client_subscribe(world, client, GROUP, 2);
    return client;
}

/* Three brokers that know of each other's groups, and of the topic. */
static struct world *warmed(struct client **says, struct client *members[], const int *sites, int count) {
    struct world *world = started(3);
    *says = client_connect(world, 0);
    for (int i = 0; i < count; i++)
        members[i] = member_at(world, sites[i]);
    world_run(world, 1000);
    client_publish(world, *says, "t/1", "warm", 0, false);
    world_run(world, 1000);
    for (int i = 0; i < count; i++)
        members[i]->received_count = 0;
    return world;
}

static void publish_many(struct world *world, struct client *says, int count, int qos) {
    char text[16];
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%d", i);
        client_publish(world, says, "t/1", text, qos == 3 ? i % 3 : qos, false);
    }
    world_run(world, 1000);
}

/* Each of the publications came once to all of them together. */
static void assert_each_once(struct client *const members[], int count, int published) {
    char text[16];
    for (int number = 0; number < published; number++) {
        int copies = 0;
        snprintf(text, sizeof text, "%d", number);
        for (int i = 0; i < count; i++)
            copies += client_got(members[i], text);
        if (copies != 1) fail_msg("publication %d came %d times", number, copies);
    }
}

static void one_member_of_all_brokers_gets_each(void **state) {
    (void)state;
    struct client *says, *members[3];
    struct world *world = warmed(&says, members, (const int[]){0, 1, 2}, 3);
    publish_many(world, says, 60, 3);
    assert_each_once(members, 3, 60);
    for (int i = 0; i < 3; i++)
        assert_int_equal(members[i]->received_count, 20);
    end(world);
}

static void the_first_to_a_topic_goes_to_one_member_too(void **state) {
    (void)state;
    for (int muted = 0; muted < 2; muted++) { /* by a join that a row asks for, or by an invite */
        struct world *world = started(3);
        struct client *says = client_connect(world, 0), *members[2] = {member_at(world, 1), member_at(world, 2)};
        world_run(world, 1000);
        world->sites[0].mute = muted;
        publish_many(world, says, 3, 1);
        assert_each_once(members, 2, 3);
        publish_many(world, says, 3, 1);
        assert_int_equal(members[0]->received_count + members[1]->received_count, 6);
        end(world);
    }
}

/* A member here has got it when those of another broker join. */
static void who_joins_late_does_not_get_what_another_got(void **state) {
    (void)state;
    struct world *world = started(2);
    struct client *says = client_connect(world, 0), *members[2] = {member_at(world, 0), member_at(world, 1)};
    world_run(world, 1000);
    publish_many(world, says, 9, 2);
    assert_each_once(members, 2, 9);
    assert_int_equal(members[0]->received_count, 9); /* the others were on their way */
    publish_many(world, says, 10, 2);
    assert_int_equal(members[1]->received_count, 5);
    end(world);
}

/* An ordinary subscriber and a member at the same broker: one publication crosses, for both. */
static void what_is_for_both_crosses_once(void **state) {
    (void)state;
    struct client *says, *members[1];
    struct world *world = warmed(&says, members, (const int[]){1}, 1);
    struct client *plain = client_connect(world, 1);
    client_subscribe(world, plain, "t/1", 1);
    client_subscribe(world, members[0], "$share/other/+/1", 1);
    world_run(world, 1000);
    uint64_t before = world_link(world, 0, 1).publications_sent;
    publish_many(world, says, 5, 1);
    assert_int_equal(plain->received_count, 5);
    assert_int_equal(members[0]->received_count, 10); /* in both groups */
    assert_int_equal(world_link(world, 0, 1).publications_sent - before, 5);
    end(world);
}

/* A group's member does not get what is not for its group, and the other way round. */
static void the_plain_and_the_group_do_not_mix(void **state) {
    (void)state;
    struct client *says, *members[2];
    struct world *world = warmed(&says, members, (const int[]){1, 2}, 2);
    struct client *plain = client_connect(world, 1);
    client_subscribe(world, plain, "t/1", 1);
    world_run(world, 1000);
    publish_many(world, says, 10, 1);
    assert_each_once(members, 2, 10);
    assert_int_equal(plain->received_count, 10);
    client_unsubscribe(world, plain, "t/1");
    world_run(world, 10000); /* past the linger */
    publish_many(world, says, 10, 1);
    assert_int_equal(plain->received_count, 10);
    assert_int_equal(members[0]->received_count + members[1]->received_count, 20);
    end(world);
}

static void brokers_with_more_members_get_more(void **state) {
    (void)state;
    struct client *says, *members[4];
    struct world *world = warmed(&says, members, (const int[]){1, 1, 1, 2}, 4);
    publish_many(world, says, 40, 1);
    assert_each_once(members, 4, 40);
    for (int i = 0; i < 4; i++)
        assert_int_equal(members[i]->received_count, 10);
    end(world);
}

static struct client *sleeper_at(struct world *world, int site, char letter) {
    struct client *client = client_connect_as(world, site, letter, false);
    client_subscribe(world, client, GROUP, 1);
    return client;
}

static void drop(struct world *world, struct client *client) {
    broker_client_closed(world->sites[client->site].broker, world->now_ms, client->handle);
    world_settle(world);
}

static void members_with_a_connection_come_first(void **state) {
    (void)state;
    struct client *says, *members[1];
    struct world *world = warmed(&says, members, (const int[]){2}, 1);
    struct client *sleeper = sleeper_at(world, 1, 'z');
    world_run(world, 1000);
    drop(world, sleeper);
    world_run(world, 1000);
    publish_many(world, says, 10, 1);
    assert_int_equal(members[0]->received_count, 10);
    drop(world, members[0]); /* and ends */
    world_run(world, 1000);
    publish_many(world, says, 5, 1);
    struct client *back = client_connect_as(world, 1, 'z', false);
    world_run(world, 1000);
    assert_int_equal(back->received_count, 5);
    end(world);
}

/* It is not sent before the link breaks. */
static void what_was_not_sent_goes_elsewhere(void **state) {
    (void)state;
    struct client *says, *members[2];
    struct world *world = warmed(&says, members, (const int[]){1, 2}, 2);
    for (int qos = 0; qos < 3; qos++) {
        members[1]->received_count = 0;
        world->apart[0][1] = world->apart[1][0] = true;
        char text[16];
        for (int i = 0; i < 8; i++) { /* the links are not asked for frames between */
            snprintf(text, sizeof text, "%d", i);
            size_t size = strlen(text);
            uint8_t body[16] = {0, 3, 't', '/', '1', 0, (uint8_t)(100 + i)};
            memcpy(body + (qos ? 7 : 5), text, size);
            client_packet(world, says, (uint8_t)(0x30 | qos << 1), body, (qos ? 7 : 5) + size);
        }
        world_cut(world, 0, 1);
        world_run(world, 1000);
        assert_int_equal(members[1]->received_count, 8);
        world->apart[0][1] = world->apart[1][0] = false;
        world_run(world, 60000);
        assert_int_equal(members[0]->received_count, 0);
        client_packet(world, says, 0xc0, NULL, 0);
    }
    assert_int_equal(world_link(world, 0, 1).given_up[GIVEN_UP_REASSIGNED], 12);
    end(world);
}

/* What is on its way may have come: QoS 1 may come twice, QoS 2 waits for the broker it was sent to. */
static void what_was_sent_goes_elsewhere_if_it_may_come_twice(void **state) {
    (void)state;
    for (int qos = 1; qos < 3; qos++) {
        struct client *says, *members[2];
        struct world *world = warmed(&says, members, (const int[]){1, 2}, 2);
        struct wire *wire = NULL;
        for (int i = 0; i < WIRES_MAX; i++)
            if (world->wires[i].used && world->wires[i].ends[0].open &&
                world->wires[i].ends[0].site + world->wires[i].ends[1].site == 1)
                wire = &world->wires[i];
        assert_non_null(wire);
        wire->held = true;
        publish_many(world, says, 8, qos);
        assert_int_equal(members[0]->received_count, 0);
        assert_int_equal(members[1]->received_count, 4);
        world->apart[0][1] = world->apart[1][0] = true;
        wire->held = false;
        world_cut(world, 0, 1);
        world_run(world, 1000);
        assert_int_equal(members[1]->received_count, 4); /* it may be back at once */
        broker_peer_gone(world->sites[0].broker, world->now_ms, &world->sites[1].id);
        world_run(world, 1000);
        assert_int_equal(members[1]->received_count, qos == 1 ? 8 : 4);
        world->apart[0][1] = world->apart[1][0] = false;
        world_meet(world);
        world_run(world, 60000);
        if (qos == 2) assert_each_once(members, 2, 8);
        end(world);
    }
}

/* The last member goes while publications are on their way to it. */
static void what_nobody_is_left_for_comes_back(void **state) {
    (void)state;
    struct client *says, *members[2];
    struct world *world = warmed(&says, members, (const int[]){1, 2}, 2);
    world->hold_frames = true;
    publish_many(world, says, 12, 2);
    client_unsubscribe(world, members[0], GROUP);
    world_settle(world);
    world->hold_frames = false;
    world_run(world, 2000);
    assert_each_once(members, 2, 12);
    assert_int_equal(members[1]->received_count, 12);
    assert_int_equal(says->pubcomps, 12);
    end(world);
}

/* A session ends with what waits in its queue. */
static void what_waits_for_a_session_that_ends_goes_to_others(void **state) {
    (void)state;
    struct client *says, *members[1];
    struct world *world = warmed(&says, members, (const int[]){1}, 1);
    struct client *sleeper = sleeper_at(world, 2, 'z');
    client_unsubscribe(world, members[0], GROUP);
    world_run(world, 1000);
    drop(world, sleeper);
    publish_many(world, says, 6, 1);
    client_subscribe(world, members[0], GROUP, 1);
    world_run(world, 1000);
    assert_int_equal(members[0]->received_count, 0);
    client_connect_as(world, 2, 'z', true); /* clean: its session ends */
    world_run(world, 2000);
    assert_each_once(members, 1, 6);
    end(world);
}

/* Only a member here and one there; the policy keeps the topic here. */
static void what_may_not_leave_stays(void **state) {
    (void)state;
    struct client *says, *members[2];
    struct world *world = warmed(&says, members, (const int[]){0, 1}, 2);
    struct policy *policy = POLICY({"", POLICY_EXPORT, NULL});
    broker_set_policy(world->sites[0].broker, world->now_ms, policy);
    world_run(world, 1000);
    publish_many(world, says, 6, 1);
    assert_int_equal(members[0]->received_count, 6);
    assert_int_equal(members[1]->received_count, 0);
    end(world);
    policy_free(policy);
}

/* A broker joins as a whole what it imports in part. */
static void what_a_broker_may_not_import_goes_to_another(void **state) {
    (void)state;
    struct client *says, *members[2];
    struct policy *policy = POLICY({"", POLICY_IMPORT, "t/2"});
    struct world *world = warmed(&says, members, (const int[]){1, 2}, 2);
    client_publish(world, says, "t/2", "warm", 1, false);
    world_run(world, 1000);
    broker_set_policy(world->sites[1].broker, world->now_ms, policy);
    world_run(world, 1000);
    members[1]->received_count = 0;
    publish_many(world, says, 10, 2); /* to t/1 */
    assert_each_once(&members[1], 1, 10);
    broker_set_policy(world->sites[2].broker, world->now_ms, policy);
    world_run(world, 1000);
    publish_many(world, says, 4, 2); /* nobody may have them: they are not sent for ever */
    world_run(world, 60000);
    assert_int_equal(members[1]->received_count, 10);
    assert_true(world_link(world, 0, 2).publications_sent < 100);
    end(world);
    policy_free(policy);
}

/* What a crash finds in the outbox is still for the group, and only for it. */
static void the_group_is_known_after_a_crash(void **state) {
    (void)state;
    struct pair pair = pair_with(true, 0);
    struct client *member = client_connect_as(pair.world, B, 'z', false), *plain = client_connect(pair.world, B);
    client_subscribe(pair.world, member, GROUP, 2);
    client_subscribe(pair.world, plain, "t/2", 2);
    run(&pair, 1000);
    client_publish(pair.world, pair.says, "t/1", "warm", 2, false);
    client_publish(pair.world, pair.says, "t/2", "warm", 2, false);
    run(&pair, 1000);
    run(&pair, 1000);
    assert_int_equal(client_got(member, "warm"), 2);
    part(&pair);
    client_publish(pair.world, pair.says, "t/1", "1", 2, false);
    client_publish(pair.world, pair.says, "t/2", "2", 1, false);
    run(&pair, 100);
    assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), 2);
    die_at(&pair, A);
    assert_true(site_start(pair.world, A));
    meet(&pair);
    assert_int_equal(client_got(member, "1"), 1);
    assert_int_equal(client_got(member, "2"), 1);
    assert_int_equal(client_got(plain, "2"), 1);
    assert_int_equal(disk_count(pair.disks[A], RECORD_OUTBOX), 0);
    pair_end(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_member_of_all_brokers_gets_each),
        cmocka_unit_test(the_first_to_a_topic_goes_to_one_member_too),
        cmocka_unit_test(who_joins_late_does_not_get_what_another_got),
        cmocka_unit_test(what_is_for_both_crosses_once),
        cmocka_unit_test(the_plain_and_the_group_do_not_mix),
        cmocka_unit_test(brokers_with_more_members_get_more),
        cmocka_unit_test(members_with_a_connection_come_first),
        cmocka_unit_test(what_was_not_sent_goes_elsewhere),
        cmocka_unit_test(what_was_sent_goes_elsewhere_if_it_may_come_twice),
        cmocka_unit_test(what_nobody_is_left_for_comes_back),
        cmocka_unit_test(what_waits_for_a_session_that_ends_goes_to_others),
        cmocka_unit_test(what_may_not_leave_stays),
        cmocka_unit_test(what_a_broker_may_not_import_goes_to_another),
        cmocka_unit_test(the_group_is_known_after_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
