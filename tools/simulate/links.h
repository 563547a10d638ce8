/* Links between brokers, as the daemon keeps them for gossip: dialled when the core wishes it, up after the handshakes,
 * reliable and in order, down when a broker ends, when the path stays cut, or when nobody has used it for long. */
#ifndef SIMULATE_LINKS_H
#define SIMULATE_LINKS_H

#include <stdint.h>

struct links;
struct world;
struct broker;

struct links *links_new(void);
void links_free(struct links *links);
/* What the broker's core wants sent over links, and which links it wants. */
void links_fetch(struct world *world, struct broker *broker);
/* The broker has ended: the far ends learn of it. */
void links_end(struct world *world, struct broker *broker);
/* EVENT_LINK has come. */
void links_on_event(struct world *world, uint32_t number);
void links_poll(struct world *world);

#endif
