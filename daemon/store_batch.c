/* What a batch need not write: what begins and ends within it. One batch is one transaction, so nobody can ever see the
 * moments between its records. */
#include "daemon/store_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum key { KEY_NONE, KEY_MESSAGE, KEY_QUEUED };

static enum key key_kind(enum record_type type) {
    switch (type) {
    case RECORD_MESSAGE:
    case RECORD_MESSAGE_END: return KEY_MESSAGE;
    case RECORD_QUEUED:
    case RECORD_SENT:
    case RECORD_RELEASED:
    case RECORD_DONE: return KEY_QUEUED;
    default: return KEY_NONE;
    }
}

static bool key_of(const struct record *record, uint64_t *number, bool *queued) {
    const enum key kind = key_kind(record->type);
    *queued = kind == KEY_QUEUED;
    *number = *queued ? record->position : record->message;
    return kind != KEY_NONE;
}

/* The entry of the key, or the free slot where it belongs. */
static struct store_plan_entry *slot(const struct store_plan *plan, uint64_t number, bool queued) {
    size_t at = (size_t)((number * 2 + queued) * 0x9e3779b97f4a7c15ull >> 20) & plan->mask;
    while (plan->entries[at].number != 0 && (plan->entries[at].number != number || plan->entries[at].queued != queued))
        at = (at + 1) & plan->mask;
    return &plan->entries[at];
}

const struct store_plan_entry *store_plan_find(const struct store_plan *plan, const struct record *record) {
    uint64_t number;
    bool queued;
    if (plan->entries == NULL || !key_of(record, &number, &queued) || number == 0) return NULL;
    const struct store_plan_entry *entry = slot(plan, number, queued);
    return entry->number != 0 ? entry : NULL;
}

static void note(struct store_plan *plan, const struct record *record) {
    uint64_t number;
    bool queued;
    if (plan->entries == NULL || !key_of(record, &number, &queued) || number == 0) return;
    struct store_plan_entry *entry = slot(plan, number, queued);
    entry->number = number;
    entry->queued = queued;
    switch (record->type) {
    case RECORD_MESSAGE:
    case RECORD_QUEUED: entry->begins = true; break;
    case RECORD_SENT: entry->packet_id = record->packet_id; break;
    case RECORD_RELEASED: entry->released = true; break;
    default: entry->ends = true; break;
    }
}

static struct store_plan_outbox *outbox_of(struct store_plan *plan, const struct record *record) {
    for (size_t i = 0; i < plan->outbox_count; i++)
        if (memcmp(plan->outboxes[i].peer, record->peer, sizeof(record->peer)) == 0) return &plan->outboxes[i];
    return NULL;
}

/* They end in their order, so that one range stands for all but a few that were given up. */
static void note_outbox(struct store_plan *plan, const struct record *record) {
    struct store_plan_outbox *outbox = outbox_of(plan, record);
    if (outbox == NULL && plan->outbox_count < STORE_PLAN_OUTBOXES) {
        outbox = &plan->outboxes[plan->outbox_count++];
        *outbox = (struct store_plan_outbox){.first = record->sequence, .below = record->below};
        memcpy(outbox->peer, record->peer, sizeof(outbox->peer));
    } else if (outbox != NULL && outbox->below == record->sequence) {
        outbox->below = record->below;
    }
}

static uint64_t largest(uint64_t highest, const struct record *record) {
    if (record->session > highest) highest = record->session;
    if (record->message > highest) highest = record->message;
    return record->position > highest ? record->position : highest;
}

/* Those that have a key. */
static size_t count_keys(const struct broker_span *batch, size_t count) {
    size_t keys = 0;
    for (size_t i = 0; i < count; i++) {
        enum record_type type;
        size_t size;
        for (size_t at = 0; at < batch[i].size; at += size) {
            size = record_peek(batch[i].bytes + at, batch[i].size - at, &type);
            if (size == 0) break;
            keys += key_kind(type) != KEY_NONE;
        }
    }
    return keys;
}

bool store_plan_make(struct store_plan *plan, const struct broker_span *batch, size_t count) {
    const size_t keys = count_keys(batch, count);
    size_t slots = 16;
    *plan = (struct store_plan){0};
    while (slots < keys * 2)
        slots *= 2;
    plan->entries = calloc(slots, sizeof(*plan->entries));
    plan->mask = slots - 1;
    for (size_t i = 0; i < count; i++) {
        struct record record;
        size_t size;
        for (size_t at = 0; at < batch[i].size; at += size) {
            size = record_read(batch[i].bytes + at, batch[i].size - at, &record);
            if (size == 0) return false;
            plan->records++;
            plan->highest = largest(plan->highest, &record);
            note(plan, &record);
            if (record.type == RECORD_OUTBOX_END) note_outbox(plan, &record);
        }
    }
    return true;
}

void store_plan_deinit(struct store_plan *plan) {
    free(plan->entries);
    plan->entries = NULL;
}

bool store_plan_saves(struct store_plan *plan, struct record *record) {
    if (record->type == RECORD_OUTBOX) {
        const struct store_plan_outbox *outbox = outbox_of(plan, record);
        return outbox != NULL && outbox->first <= record->sequence && record->sequence < outbox->below;
    }
    const struct store_plan_entry *entry = store_plan_find(plan, record);
    if (entry == NULL) return false;
    if (entry->begins && (entry->ends || (record->type != RECORD_QUEUED && record->type != RECORD_MESSAGE)))
        return true;
    if (record->type == RECORD_QUEUED && entry->packet_id != 0) record->packet_id = entry->packet_id;
    if (record->type == RECORD_QUEUED && entry->released) {
        record->released = true;
        record->message = 0;
    }
    return entry->ends && record->type != RECORD_MESSAGE_END && record->type != RECORD_DONE;
}

bool store_find_reset(const struct broker_span *batch, size_t count, size_t *span, size_t *offset) {
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        enum record_type type;
        size_t size;
        for (size_t at = 0; at < batch[i].size; at += size) {
            size = record_peek(batch[i].bytes + at, batch[i].size - at, &type);
            if (size == 0) return found;
            if (type != RECORD_RESET) continue;
            *span = i;
            *offset = at;
            found = true;
        }
    }
    return found;
}
