/* A broker whose limits a test sets, and what it counts and says at them: include it in one file of a program. */
#ifndef TESTS_UNIT_LIMITS_FIXTURE_H
#define TESTS_UNIT_LIMITS_FIXTURE_H

#include "mqtt_client.h"

static struct world world;

HELPER int begin(void **state) {
    (void)state;
    world_begin(&world);
    return 0;
}

HELPER int end(void **state) {
    (void)state;
    world_end(&world);
    return 0;
}

/* Begins anew with the limits in world.options. */
HELPER void again(void) {
    struct broker_options options = world.options;

    world_end(&world);
    world.options = options;
    world_begin(&world);
}

HELPER uint64_t at_limit(enum broker_at limit) {
    return counters(&world).at_limit[limit];
}

HELPER void expect_note(const char *text) {
    struct broker_note note;

    assert_true(broker_next_note(world.broker, &note));
    assert_string_equal(note.text, text);
}

#endif
