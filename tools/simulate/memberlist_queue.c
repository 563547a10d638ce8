#include "tools/simulate/memberlist_inside.h"

#include "tools/simulate/memory.h"

#include <math.h>
#include <stdlib.h>

static uint32_t transmits(const struct ml *ml) {
    uint32_t limit = RETRANSMIT_MULT * (uint32_t)ceil(log10((double)ml->order_count + 1));
    return limit < TIERS_MAX ? limit : TIERS_MAX;
}

static void push(struct tier *tier, const struct broadcast *broadcast) {
    tier->items = memory_room(tier->items, &tier->room, tier->count + 1, sizeof *tier->items);
    tier->items[tier->count++] = *broadcast;
}

void queue_add(struct ml *ml, struct queue *queue, uint8_t type, uint32_t who, uint32_t number, uint32_t from) {
    struct broadcast broadcast = {type, who, number, from};
    if (queue->count == 0 && ml->members_queue.count == 0 && ml->rows_queue.count == 0)
        while (ml->gossip_ms <= ml->now_ms) /* the ticker has run all the time */
            ml->gossip_ms += GOSSIP_INTERVAL_MS;
    push(&queue->tiers[0], &broadcast);
    queue->count++;
}

/* A newer message about the same member takes the place of the older. */
static bool is_stale(struct ml *ml, const struct broadcast *broadcast) {
    static const uint8_t states[] = {[ML_MSG_ALIVE] = ML_ALIVE, [ML_MSG_SUSPECT] = ML_SUSPECT, [ML_MSG_DEAD] = ML_DEAD};
    if (broadcast->type == ML_MSG_ROW) return false;
    const struct known *known = ml_known(ml, broadcast->who);
    uint8_t state = known->state == ML_LEFT ? ML_DEAD : known->state;
    return known->incarnation != broadcast->number || (state != ML_UNKNOWN && state != states[broadcast->type]);
}

/* The least sent first, among them the newest. */
void queue_fill(struct ml *ml, struct queue *queue, struct ml_packet *packet) {
    struct broadcast taken[64];
    uint32_t limit = transmits(ml), from_tier[64];
    size_t count = 0;
    bool full = false;
    for (uint32_t t = 0; t < TIERS_MAX && !full && queue->count > 0; t++) {
        struct tier *tier = &queue->tiers[t];
        while (tier->count > 0 && count < 64) {
            struct broadcast *broadcast = &tier->items[tier->count - 1];
            if (is_stale(ml, broadcast)) {
                tier->count--;
                queue->count--;
                continue;
            }
            struct message_of message = {
                .type = broadcast->type, .who = broadcast->who, .number = broadcast->number, .other = broadcast->from};
            message.size = message_size(ml, broadcast->type, broadcast->who, broadcast->number, broadcast->from);
            full = !packet_fits(packet, message.size);
            if (full) break;
            packet_put(packet, &message);
            taken[count] = *broadcast;
            from_tier[count++] = t;
            tier->count--;
        }
    }
    while (count-- > 0) {
        if (from_tier[count] + 1 < limit)
            push(&queue->tiers[from_tier[count] + 1], &taken[count]);
        else
            queue->count--;
    }
}

void queue_free(struct queue *queue) {
    for (size_t i = 0; i < TIERS_MAX; i++)
        free(queue->tiers[i].items);
}
