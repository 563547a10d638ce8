/* A broker and two clients of it, a and b, for tests that need no more: include it in one file of a program, and let
 * each test begin with one of the functions here and end with end(). */
#ifndef TESTS_UNIT_TWO_CLIENTS_H
#define TESTS_UNIT_TWO_CLIENTS_H

#include "mqtt_client.h"

static struct world world;
static struct client a, b;

/* a is connected in MQTT 5.0; whether and how b is, the test says. */
HELPER int begin_a(void **state) {
    (void)state;
    world_begin(&world);
    client_connect(&world, &a, 5, "a");
    return 0;
}

HELPER int begin_a_b(void **state) {
    begin_a(state);
    client_connect(&world, &b, 5, "b");
    return 0;
}

HELPER int begin_a_b311(void **state) {
    begin_a(state);
    client_connect(&world, &b, 4, "b");
    return 0;
}

/* Either may have been cut by the test, or never connected. */
HELPER int end(void **state) {
    (void)state;
    if (a.handle) client_cut(&a);
    if (b.handle) client_cut(&b);
    world_end(&world);
    return 0;
}

#endif
