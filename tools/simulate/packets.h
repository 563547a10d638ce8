/* Datagrams on their way: slots of two sizes, kept in blocks that are never given back, so that nothing is allocated
 * for each. */
#ifndef SIMULATE_PACKETS_H
#define SIMULATE_PACKETS_H

#include "gossip/gossip.h"

#define PACKET_SMALL 208u /* most of gossip: a ping, its answer, an entry */

struct packet_slot {
    struct gossip_address from;
    uint32_t to, flags, next;
    uint16_t size;
    uint8_t bytes[];
};

struct packet_class {
    size_t slot_size;
    uint8_t **blocks;
    size_t block_count, block_room;
    uint32_t free, used; /* free: the first slot + 1 */
};

struct packets {
    struct packet_class small, large;
};

void packets_init(struct packets *packets);
void packets_deinit(struct packets *packets);
/* A number for a packet of this size. */
uint32_t packets_take(struct packets *packets, size_t size);
struct packet_slot *packets_at(const struct packets *packets, uint32_t number);
void packets_give(struct packets *packets, uint32_t number);

#endif
