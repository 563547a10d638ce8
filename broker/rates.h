/* Inside broker/: what clients that are gone had used of limits.publish_rate_max, so that coming back brings nothing
 * new.
 *
 * A client is known by the client id that it brings, and one that lets us choose it by the name in its certificate, or
 * else by its host. Nothing need be remembered for longer than a second, as by then the bucket is empty again. The
 * table has a fixed size, and where it is crowded, who had used the least is forgotten.
 */
#ifndef BROKER_RATES_H
#define BROKER_RATES_H

#include <stddef.h>
#include <stdint.h>

struct broker;
struct client;
struct rates;

/* NULL when memory is short. */
struct rates *rates_new(void);
void rates_free(struct rates *rates);

/* The time kept under this key (a seeded hash); 0 if there is none, or it is before now. */
uint64_t rates_find(const struct rates *rates, uint64_t now_ns, uint64_t key);
/* Keeps the later of this time and the one that is there. */
void rates_keep(struct rates *rates, uint64_t now_ns, uint64_t key, uint64_t full_ns);

/* The client has its session: its bucket is as full as it was when it left. */
void rates_resume(const struct broker *broker, uint64_t now_ms, struct client *client);
/* The client is about to lose its session. */
void rates_remember(const struct broker *broker, uint64_t now_ms, const struct client *client);

#endif
