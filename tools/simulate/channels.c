#include "tools/simulate/channels.h"

#include "tools/simulate/memory.h"
#include "tools/simulate/world.h"

#include <stdlib.h>
#include <string.h>

#define OPEN_US (10 * AGENDA_S)    /* a channel lives this long without use */
#define AGAIN_US AGENDA_S          /* a path that is cut is tried again, */
#define GIVE_UP_US (10 * AGENDA_S) /* for so long */
#define LATELY 65536u              /* pairs remembered; who falls out only pays a round trip more */

struct frame {
    bool used, travels; /* travels: it arrives when its event comes */
    uint32_t from, to, next_free;
    uint64_t give_up_us;
    struct gossip_address source;
    size_t size;
    uint8_t *bytes;
};

struct lately {
    uint32_t low, high;
    uint64_t until_us, arrived_us[2]; /* arrived: the newest of each direction, for the order */
};

struct channels {
    struct frame *frames;
    size_t count, room;
    uint32_t free; /* the first + 1 */
    struct lately pairs[LATELY];
};

struct channels *channels_new(void) {
    return memory_new(1, sizeof(struct channels));
}

void channels_free(struct channels *channels) {
    if (!channels) return;
    for (size_t i = 0; i < channels->count; i++)
        free(channels->frames[i].bytes);
    free(channels->frames);
    free(channels);
}

static uint32_t take(struct channels *channels) {
    if (channels->free != 0) {
        uint32_t number = channels->free - 1;
        channels->free = channels->frames[number].next_free;
        return number;
    }
    channels->frames = memory_room(channels->frames, &channels->room, channels->count + 1, sizeof *channels->frames);
    return (uint32_t)channels->count++;
}

static void give(struct channels *channels, uint32_t number) {
    struct frame *frame = &channels->frames[number];
    free(frame->bytes);
    *frame = (struct frame){.next_free = channels->free};
    channels->free = number + 1;
}

static struct lately *pair_of(struct channels *channels, uint32_t a, uint32_t b) {
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    struct lately *pair = &channels->pairs[(low * 2654435761u ^ high * 40503u) % LATELY];
    if (pair->low != low || pair->high != high) *pair = (struct lately){.low = low, .high = high};
    return pair;
}

static void try_to_send(struct world *world, uint32_t number) {
    struct frame *frame = &world->channels->frames[number];
    uint64_t now = world_now_us(world), took;
    struct lately *pair = pair_of(world->channels, frame->from, frame->to);
    if (!network_stream(world->network, frame->from, frame->to, frame->size, now >= pair->until_us, &took)) {
        if (now >= frame->give_up_us)
            give(world->channels, number);
        else
            agenda_push(&world->agenda, now + AGAIN_US, EVENT_FRAME, number);
        return;
    }
    uint64_t at = now + took, *arrived = &pair->arrived_us[frame->from < frame->to];
    if (at < *arrived) at = *arrived;
    *arrived = at;
    pair->until_us = at + OPEN_US;
    frame->travels = true;
    agenda_push(&world->agenda, at + world->brokers[frame->to].slow_us, EVENT_FRAME, number);
}

void channels_send(struct world *world, struct broker *from, const struct strategy_frame *frame) {
    uint32_t to = network_host_at(world->network, &frame->to);
    if (to == NETWORK_NOBODY) return;
    uint32_t number = take(world->channels);
    uint8_t *copy = memory_new(1, frame->size);
    memcpy(copy, frame->bytes, frame->size);
    world->channels->frames[number] = (struct frame){.used = true,
                                                     .from = from->index,
                                                     .to = to,
                                                     .give_up_us = world_now_us(world) + GIVE_UP_US,
                                                     .source = network_address(world->network, from->index),
                                                     .size = frame->size,
                                                     .bytes = copy};
    try_to_send(world, number);
}

void channels_on_event(struct world *world, uint32_t number) {
    struct frame *frame = &world->channels->frames[number];
    if (!frame->travels) {
        try_to_send(world, number);
        return;
    }
    struct broker *broker = &world->brokers[frame->to];
    if (broker->frozen_us > world_now_us(world)) {
        agenda_push(&world->agenda, broker->frozen_us, EVENT_FRAME, number);
        return;
    }
    uint8_t *bytes = frame->bytes;
    struct gossip_address source = frame->source;
    size_t size = frame->size;
    frame->bytes = NULL; /* what it answers may need the room */
    give(world->channels, number);
    if (broker->node && broker->strategy->receive_frame) {
        broker->strategy->receive_frame(broker->node, broker_now_ms(world, broker), &source, bytes, size);
        broker_touched(world, broker);
    }
    free(bytes);
}
