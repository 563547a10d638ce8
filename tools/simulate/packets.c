#include "tools/simulate/packets.h"

#include "tools/simulate/memory.h"

#include <stdlib.h>

#define BLOCK 512u            /* slots */
#define LARGE_BIT 0x80000000u /* of a packet's number */

void packets_init(struct packets *packets) {
    *packets = (struct packets){0};
    packets->small.slot_size = sizeof(struct packet_slot) + PACKET_SMALL;
    packets->large.slot_size = (sizeof(struct packet_slot) + GOSSIP_DATAGRAM_MAX + 15) / 16 * 16;
}

static void deinit(struct packet_class *class) {
    for (size_t i = 0; i < class->block_count; i++)
        free(class->blocks[i]);
    free(class->blocks);
}

void packets_deinit(struct packets *packets) {
    deinit(&packets->small);
    deinit(&packets->large);
}

static struct packet_slot *slot_at(const struct packet_class *class, uint32_t index) {
    return (struct packet_slot *)(void *)(class->blocks[index / BLOCK] + class->slot_size * (index % BLOCK));
}

static uint32_t take(struct packet_class *class) {
    if (class->free != 0) {
        uint32_t index = class->free - 1;
        class->free = slot_at(class, index)->next;
        return index;
    }
    if (class->used == class->block_count * BLOCK) {
        class->blocks = memory_room(class->blocks, &class->block_room, class->block_count + 1, sizeof *class->blocks);
        class->blocks[class->block_count++] = memory_new(BLOCK, class->slot_size);
    }
    return class->used++;
}

uint32_t packets_take(struct packets *packets, size_t size) {
    return size <= PACKET_SMALL ? take(&packets->small) : take(&packets->large) | LARGE_BIT;
}

struct packet_slot *packets_at(const struct packets *packets, uint32_t number) {
    return slot_at(number & LARGE_BIT ? &packets->large : &packets->small, number & ~LARGE_BIT);
}

void packets_give(struct packets *packets, uint32_t number) {
    struct packet_class *class = number & LARGE_BIT ? &packets->large : &packets->small;
    struct packet_slot *slot = slot_at(class, number & ~LARGE_BIT);
    slot->next = class->free;
    class->free = (number & ~LARGE_BIT) + 1;
}
