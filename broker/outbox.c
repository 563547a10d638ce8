#include "broker/outbox.h"

#include <stdlib.h>
#include <string.h>

void outbox_init(struct outbox *outbox) {
    memset(outbox, 0, sizeof *outbox);
    outbox->base = outbox->next = outbox->highest = outbox->end = 1;
}

static struct outbox_entry *entry_at(const struct outbox *outbox, uint64_t sequence) {
    return &outbox->ring[sequence & (outbox->capacity - 1)];
}

void outbox_give_up(struct outbox *outbox, struct outbox_entry *entry) {
    if (!entry->message) return;
    *(entry->snapshot ? &outbox->snapshot_bytes : &outbox->bytes) -= message_cost(entry->message);
    message_unref(entry->message);
    entry->message = NULL;
}

uint64_t outbox_clear(struct outbox *outbox) {
    uint64_t dropped = 0;
    for (uint64_t sequence = outbox->base; sequence < outbox->end; sequence++) {
        struct outbox_entry *entry = entry_at(outbox, sequence);
        if (entry->message) dropped++;
        outbox_give_up(outbox, entry);
    }
    free(outbox->ring);
    outbox->ring = NULL;
    outbox->capacity = 0;
    outbox->base = outbox->next = outbox->highest = outbox->end;
    return dropped;
}

void outbox_deinit(struct outbox *outbox) {
    outbox_clear(outbox);
}

static int make_room(struct outbox *outbox) {
    if (outbox_count(outbox) < outbox->capacity) return 0;
    size_t capacity = outbox->capacity ? outbox->capacity * 2 : 16;
    if (capacity > SIZE_MAX / sizeof *outbox->ring) return -1;
    struct outbox_entry *ring = malloc(capacity * sizeof *ring);
    if (!ring) return -1;
    for (uint64_t sequence = outbox->base; sequence < outbox->end; sequence++)
        ring[sequence & (capacity - 1)] = *entry_at(outbox, sequence);
    free(outbox->ring);
    outbox->ring = ring;
    outbox->capacity = capacity;
    return 0;
}

enum outbox_result outbox_put(struct outbox *outbox, struct message *message, bool snapshot, uint64_t bytes_max) {
    size_t cost = message_cost(message);
    if (!snapshot) {
        uint64_t limit = message->qos == 0 && !message->retain ? bytes_max : bytes_max * 2;
        if (outbox->bytes + cost > limit) return OUTBOX_FULL;
    }
    if (make_room(outbox)) return OUTBOX_NO_MEMORY;
    struct message *held = message_ref(message);
    if (!held) return OUTBOX_NO_MEMORY;
    *entry_at(outbox, outbox->end++) = (struct outbox_entry){.message = held, .snapshot = snapshot};
    *(snapshot ? &outbox->snapshot_bytes : &outbox->bytes) += cost;
    return OUTBOX_OK;
}

struct outbox_entry *outbox_peek(const struct outbox *outbox) {
    return outbox->next < outbox->end ? entry_at(outbox, outbox->next) : NULL;
}

void outbox_sent(struct outbox *outbox) {
    if (++outbox->next > outbox->highest) outbox->highest = outbox->next;
}

bool outbox_acknowledge(struct outbox *outbox, uint64_t expected) {
    if (expected > outbox->highest) return false;
    while (outbox->base < expected)
        outbox_give_up(outbox, entry_at(outbox, outbox->base++));
    if (outbox->next < outbox->base) outbox->next = outbox->base;
    return true;
}

void outbox_rewind(struct outbox *outbox) {
    outbox->next = outbox->base;
}

uint64_t outbox_forget_sent_qos0(struct outbox *outbox) {
    uint64_t forgotten = 0;
    for (uint64_t sequence = outbox->base; sequence < outbox->highest; sequence++) {
        struct outbox_entry *entry = entry_at(outbox, sequence);
        if (!entry->message || entry->message->qos > 0 || entry->message->retain) continue;
        forgotten++;
        outbox_give_up(outbox, entry);
    }
    return forgotten;
}

uint64_t outbox_prune(struct outbox *outbox, outbox_keeps *keeps, void *context) {
    uint64_t dropped = 0;
    for (uint64_t sequence = outbox->base; sequence < outbox->end; sequence++) {
        struct outbox_entry *entry = entry_at(outbox, sequence);
        if (!entry->message || keeps(context, entry)) continue;
        dropped += !entry->snapshot;
        outbox_give_up(outbox, entry);
    }
    return dropped;
}
