/* A broker with a publisher, and members of shared subscriptions as a test wants them: include it in one file of a
 * program. */
#ifndef TESTS_UNIT_SHARE_FIXTURE_H
#define TESTS_UNIT_SHARE_FIXTURE_H

#include "mqtt_client.h"

static struct world world;
static struct client publisher, a, b, c;

HELPER int begin(void **state) {
    (void)state;
    world_begin(&world);
    client_connect(&world, &publisher, 5, "publisher");
    return 0;
}

HELPER int end(void **state) {
    struct client *const clients[] = {&publisher, &a, &b, &c};
    (void)state;

    for (size_t i = 0; i < 4; i++)
        if (clients[i]->handle) client_cut(clients[i]);
    world_end(&world);
    return 0;
}

HELPER void begin_with(struct broker_limits limits) {
    client_cut(&publisher);
    world_end(&world);
    world.options.limits = limits;
    begin(NULL);
}

/* A member with a session of its own life: of 60 s, or as long as its connection. */
HELPER void member(struct client *client, const char *id, bool durable, const char *filter, unsigned options) {
    client_connect_with(&world, client, 5, &(struct connect){.id = id, .properties = durable ? "11 0000003c" : NULL});
    client_subscribe(client, filter, options);
}

HELPER void comes_back(struct client *client, const char *id) {
    client_connect_with(&world, client, 5, &(struct connect){.id = id, .resume = true, .properties = "11 0000003c"});
}

/* The same with room for so many unacknowledged publications. */
HELPER void member_with_window(struct client *client, const char *id, bool durable, unsigned window,
                               const char *filter) {
    char properties[32];

    snprintf(properties, sizeof properties, "21 %04x %s", window, durable ? "11 0000003c" : "");
    client_connect_with(&world, client, 5, &(struct connect){.id = id, .properties = properties});
    client_subscribe(client, filter, 2);
}

HELPER void publish(unsigned qos, const char *topic, const char *payload) {
    say_publish(&publisher, &(struct publish){.topic = topic, .payload = payload, .qos = qos, .id = 1});
    if (qos == 0) return;
    expect(&publisher, qos == 1 ? "puback 1*" : "pubrec 1*");
    if (qos < 2) return;
    say_ack(&publisher, 6, 1);
    expect(&publisher, "pubcomp 1");
}

/* Publishes the payloads "1" to "count". */
HELPER void publish_numbers(unsigned qos, const char *topic, unsigned first, unsigned last) {
    for (unsigned n = first; n <= last; n++) {
        char payload[8];
        snprintf(payload, sizeof payload, "%u", n);
        publish(qos, topic, payload);
    }
}

#endif
