/* Shared subscriptions whose members cannot take what another one leaves behind. */
#include <time.h>

#include "mqtt_client.h"

#define SMALL_PACKETS "27 0000001e" /* Maximum Packet Size 30 */

enum { OTHERS_MAX = 100 };

static struct world world;
static struct client publisher, leaver, others[OTHERS_MAX];
static unsigned other_count;

static int begin(void **state) {
    (void)state;
    world_begin(&world);
    client_connect(&world, &publisher, 5, "publisher");
    return 0;
}

static int end(void **state) {
    (void)state;
    for (; other_count > 0; other_count--)
        client_cut(&others[other_count - 1]);
    if (leaver.handle) client_cut(&leaver);
    client_cut(&publisher);
    world_end(&world);
    return 0;
}

/* Takes one publication and never acknowledges it: all others wait for it. */
static void leaver_comes(bool resume) {
    client_connect_with(&world, &leaver, 5,
                        &(struct connect){.id = "leaver", .resume = resume, .properties = "21 0001 11 ffffffff"});
}

static void other_comes(const char *properties) {
    char id[24];

    snprintf(id, sizeof id, "other-%u", other_count);
    client_connect_with(&world, &others[other_count], 5, &(struct connect){.id = id, .properties = properties});
    client_subscribe(&others[other_count++], "$share/g/t", 1);
}

static void publish(unsigned count, const char *payload) {
    for (unsigned i = 0; i < count; i++) {
        say_publish(&publisher, &(struct publish){.topic = "t", .payload = payload, .qos = 1, .id = 1});
        expect(&publisher, "puback 1*");
    }
}

static const char large[] = "as long as two of the packets that the others take";

/* A reader that is slow or gone has left 5,000 behind, which it keeps: so the same can be asked for again. */
static clock_t cost_of_a_detachment(void) {
    clock_t least = 0;

    for (int round = 0; round < 5; round++) {
        clock_t start = clock(), took;
        client_cut(&leaver);
        took = clock() - start;
        if (round == 0 || took < least) least = took;
        leaver_comes(true);
    }
    return least;
}

static void a_group_that_can_take_nothing_is_not_asked_for_each(void **state) {
    clock_t alone, among_many;
    (void)state;

    leaver_comes(false);
    client_subscribe(&leaver, "$share/g/t", 1);
    publish(5000, large);
    other_comes(SMALL_PACKETS);
    alone = cost_of_a_detachment();
    while (other_count < 32)
        other_comes(SMALL_PACKETS);
    among_many = cost_of_a_detachment();
    assert_true(among_many < 4 * alone + CLOCKS_PER_SEC / 2000);
}

static void the_only_one_with_room_in_a_crowd_is_found(void **state) {
    (void)state;
    leaver_comes(false);
    client_subscribe(&leaver, "$share/g/t", 1);
    publish(11, large); /* the first is sent */
    while (other_count < OTHERS_MAX - 1)
        other_comes(SMALL_PACKETS);
    other_comes(NULL);
    client_cut(&leaver);
    for (unsigned i = 0; i < 2; i++) /* its turn comes with every fourth, as no more than 32 are asked for one */
        expect(&others[OTHERS_MAX - 1], "publish q1*");
    expect_nothing(&others[OTHERS_MAX - 1]);
}

static void what_is_small_enough_goes_after_what_is_not(void **state) {
    (void)state;
    leaver_comes(false);
    client_subscribe(&leaver, "$share/g/t", 1);
    publish(20, large);
    publish(3, "small");
    other_comes(SMALL_PACKETS);
    client_cut(&leaver);
    expect(&others[0], "publish q1 id=1 t 'small'");
    expect(&others[0], "publish q1 id=2 t 'small'");
    expect(&others[0], "publish q1 id=3 t 'small'");
    expect_nothing(&others[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_that_can_take_nothing_is_not_asked_for_each, begin, end),
        cmocka_unit_test_setup_teardown(the_only_one_with_room_in_a_crowd_is_found, begin, end),
        cmocka_unit_test_setup_teardown(what_is_small_enough_goes_after_what_is_not, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
