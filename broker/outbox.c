#include "broker/outbox.h"

#include <stdlib.h>
#include <string.h>

/* Places that a restart may leave empty between two that are not. */
enum { GAP_MAX = 1 << 20 };

void outbox_init(struct outbox *outbox, uint64_t *sum, outbox_on_done *on_done, void *context) {
    memset(outbox, 0, sizeof *outbox);
    outbox->sum = sum;
    outbox->on_done = on_done;
    outbox->context = context;
    outbox->base = outbox->next = outbox->highest = outbox->end = 1;
}

struct outbox_entry *outbox_entry(const struct outbox *outbox, uint64_t sequence) {
    return &outbox->ring[sequence & (outbox->capacity - 1)];
}

static void unaim(struct outbox *outbox, struct outbox_entry *entry) {
    outbox->aimed -= entry->aims != NULL;
    free(entry->aims);
    entry->aims = NULL;
}

static void empty(struct outbox *outbox, struct outbox_entry *entry) {
    if (!entry->message) return;
    size_t cost = message_cost(entry->message);
    *(entry->snapshot ? &outbox->snapshot_bytes : &outbox->bytes) -= cost;
    if (!entry->snapshot) *outbox->sum -= cost;
    message_unref(entry->message);
    entry->message = NULL;
    outbox->messages--;
    unaim(outbox, entry);
}

void outbox_give_up(struct outbox *outbox, uint64_t sequence) {
    outbox->on_done(outbox->context, sequence, sequence + 1);
    empty(outbox, outbox_entry(outbox, sequence));
}

uint64_t outbox_clear(struct outbox *outbox) {
    uint64_t dropped = 0;
    outbox->on_done(outbox->context, outbox->base, outbox->end);
    for (uint64_t sequence = outbox->base; sequence < outbox->end; sequence++) {
        struct outbox_entry *entry = outbox_entry(outbox, sequence);
        if (entry->message) dropped++;
        empty(outbox, entry);
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
        ring[sequence & (capacity - 1)] = *outbox_entry(outbox, sequence);
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
    *outbox_entry(outbox, outbox->end++) = (struct outbox_entry){.message = held, .snapshot = snapshot};
    *(snapshot ? &outbox->snapshot_bytes : &outbox->bytes) += cost;
    if (!snapshot) *outbox->sum += cost;
    outbox->messages++;
    return OUTBOX_OK;
}

void outbox_aim(struct outbox *outbox, struct aims *aims) {
    outbox_entry(outbox, outbox->end - 1)->aims = aims;
    outbox->aimed++;
}

void outbox_unaim(struct outbox *outbox, uint64_t sequence) {
    unaim(outbox, outbox_entry(outbox, sequence));
}

int outbox_skip_to(struct outbox *outbox, uint64_t sequence) {
    if (sequence <= outbox->end) return 0;
    if (outbox_count(outbox) == 0) {
        outbox->base = outbox->next = outbox->highest = outbox->end = sequence;
        return 0;
    }
    if (sequence - outbox->end > GAP_MAX) return 1;
    while (outbox->end < sequence) {
        if (make_room(outbox)) return -1;
        *outbox_entry(outbox, outbox->end++) = (struct outbox_entry){0};
    }
    outbox->highest = outbox->end;
    return 0;
}

enum outbox_result outbox_put_back(struct outbox *outbox, struct message *message, uint64_t sequence) {
    int result = sequence < outbox->end ? 1 : outbox_skip_to(outbox, sequence);
    if (result != 0) return result < 0 ? OUTBOX_NO_MEMORY : OUTBOX_FULL;
    enum outbox_result put = outbox_put(outbox, message, false, UINT64_MAX / 2);
    outbox->highest = outbox->end;
    return put;
}

struct outbox_entry *outbox_peek(const struct outbox *outbox) {
    return outbox->next < outbox->end ? outbox_entry(outbox, outbox->next) : NULL;
}

void outbox_sent(struct outbox *outbox) {
    if (++outbox->next > outbox->highest) outbox->highest = outbox->next;
}

bool outbox_acknowledge(struct outbox *outbox, uint64_t expected) {
    if (expected > outbox->highest) return false;
    if (expected > outbox->base) outbox->on_done(outbox->context, outbox->base, expected);
    while (outbox->base < expected)
        empty(outbox, outbox_entry(outbox, outbox->base++));
    if (outbox->next < outbox->base) outbox->next = outbox->base;
    return true;
}

void outbox_rewind(struct outbox *outbox) {
    outbox->next = outbox->base;
}

uint64_t outbox_forget_sent_qos0(struct outbox *outbox) {
    uint64_t forgotten = 0;
    for (uint64_t sequence = outbox->base; sequence < outbox->highest; sequence++) {
        struct outbox_entry *entry = outbox_entry(outbox, sequence);
        if (!entry->message || entry->message->qos > 0 || entry->message->retain) continue;
        forgotten++;
        empty(outbox, entry);
    }
    return forgotten;
}

uint64_t outbox_prune(struct outbox *outbox, outbox_keeps *keeps, void *context) {
    uint64_t dropped = 0;
    for (uint64_t sequence = outbox->base; sequence < outbox->end; sequence++) {
        struct outbox_entry *entry = outbox_entry(outbox, sequence);
        if (!entry->message || keeps(context, entry)) continue;
        dropped += !entry->snapshot;
        outbox_give_up(outbox, sequence);
    }
    return dropped;
}
