/* A broker's storage thread on a virtual disk: what is given gathers while a transaction runs. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

static void begin(struct world_node *node);

static void append(struct record_buffer *to, const uint8_t *bytes, size_t size) {
    to->bytes = realloc(to->bytes, to->size + size);
    assert(to->bytes != NULL);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static void clear(struct record_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct record_buffer){0};
}

static void on_committed(struct event *event) {
    struct world_node *node = world_take(event);
    if (node == NULL) return;
    const uint64_t last = node->saving_last;
    disk_commit(node->disk, node->saving.bytes, node->saving.size);
    clear(&node->saving);
    trace_line(&node->world->trace, heap_now_us(node->world->heap), node->name, "commits up to %" PRIu64, last);
    begin(node);
    node_durable(node->node, world_node_now_ms(node), last);
    world_flush(node);
}

static void begin(struct world_node *node) {
    struct world *world = node->world;
    if (node->saving.size > 0 || node->unsaved.size == 0) return;
    node->saving = node->unsaved;
    node->saving_last = node->unsaved_last;
    node->unsaved = (struct record_buffer){0};
    world_push(node, 1 + dice_below(&world->disk_dice, world->options.commit_us_max), on_committed);
}

void world_disk_give(void *context, const struct broker_journal *journal) {
    struct world_node *node = context;
    append(&node->unsaved, journal->bytes, journal->size);
    node->unsaved_last = journal->last;
    free(journal->bytes);
}

void world_disk_turn(struct world_node *node) {
    node_store(node->node);
    begin(node);
}

void world_disk_flush(struct world_node *node) {
    node_store(node->node);
    disk_commit(node->disk, node->saving.bytes, node->saving.size);
    disk_commit(node->disk, node->unsaved.bytes, node->unsaved.size);
    clear(&node->saving);
    clear(&node->unsaved);
}

void world_disk_crash(struct world_node *node) {
    const bool done = dice_below(&node->world->disk_dice, 2) == 0;
    if (done) disk_commit(node->disk, node->saving.bytes, node->saving.size);
    clear(&node->saving);
    clear(&node->unsaved);
}

static void on_record(void *context, const struct record *record) {
    struct world_node *node = context;
    broker_restore(node_broker(node->node), world_node_now_ms(node), record);
}

void world_disk_restore(struct world_node *node) {
    const uint64_t first_number = disk_read(node->disk, on_record, node);
    const bool good = broker_restored(node_broker(node->node), world_node_now_ms(node), first_number);
    assert(good);
}

void world_disk_free(struct world_node *node) {
    disk_free(node->disk);
    clear(&node->saving);
    clear(&node->unsaved);
}
