#include "broker/rates.h"

#include "broker/engine.h"
#include "broker/hash.h"

#include <stdlib.h>
#include <string.h>

enum { SETS = 1024, WAYS = 8 }; /* 128 KiB */

struct rate {
    uint64_t key;
    uint64_t full_ns; /* see admission_rate(); before now: free */
};

struct rates {
    struct rate sets[SETS][WAYS];
};

struct rates *rates_new(void) {
    return calloc(1, sizeof(struct rates));
}

void rates_free(struct rates *rates) {
    free(rates);
}

uint64_t rates_find(const struct rates *rates, uint64_t now_ns, uint64_t key) {
    const struct rate *set = rates->sets[key % SETS];

    for (size_t i = 0; i < WAYS; i++)
        if (set[i].key == key && set[i].full_ns > now_ns) return set[i].full_ns;
    return 0;
}

void rates_keep(struct rates *rates, uint64_t now_ns, uint64_t key, uint64_t full_ns) {
    struct rate *set = rates->sets[key % SETS], *place = &set[0];

    if (full_ns <= now_ns) return;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].key == key) {
            place = &set[i];
            break;
        }
        if (set[i].full_ns < place->full_ns) place = &set[i];
    }
    if (place->full_ns < full_ns) *place = (struct rate){.key = key, .full_ns = full_ns};
}

static uint64_t key_of_id(const struct broker *broker, const struct client *client) {
    const struct session *session = client->session;

    return hash_bytes(broker->seed, session->client_id, session->client_id_size);
}

/* Of those who let us choose their id. */
static uint64_t key_of_origin(const struct broker *broker, const struct client *client) {
    const struct broker_origin *origin = &client->origin;
    const char *port = strrchr(origin->address, ':');

    if (origin->certificate_name != NULL)
        return hash_bytes(broker->seed + 1, origin->certificate_name, strlen(origin->certificate_name));
    return hash_bytes(broker->seed + 2, origin->address,
                      port != NULL ? (size_t)(port - origin->address) : strlen(origin->address));
}

void rates_resume(const struct broker *broker, uint64_t now_ms, struct client *client) {
    if (broker->rates == NULL) return;
    client->rate_full_ns =
        rates_find(broker->rates, now_ms * 1000000u,
                   client->has_assigned_id ? key_of_origin(broker, client) : key_of_id(broker, client));
}

void rates_remember(const struct broker *broker, uint64_t now_ms, const struct client *client) {
    if (broker->rates == NULL) return;
    rates_keep(broker->rates, now_ms * 1000000u, key_of_id(broker, client), client->rate_full_ns);
    if (client->has_assigned_id) /* it may come back under that id, or get another one */
        rates_keep(broker->rates, now_ms * 1000000u, key_of_origin(broker, client), client->rate_full_ns);
}
