/* What is to be written to one client: a list of chunks, so that spans stay where they are until they are written.
 *
 * Small packets are encoded straight into the last chunk; what is large of a
 * publication is referenced where it lies, in its counted
 * message. Nothing is held while there is nothing to write.
 */
#ifndef BROKER_OUTPUT_H
#define BROKER_OUTPUT_H

#include "broker/broker.h"
#include "broker/message.h"

struct chunk;

/* Empty chunks of all clients, kept for the next one. Zero-initialised. */
struct chunk_pool {
    struct chunk *first;
    size_t count;
};
void chunk_pool_deinit(struct chunk_pool *pool);

struct output {
    struct chunk *first, *last;
    uint64_t bytes; /* not yet written */
};
void output_deinit(struct output *output, struct chunk_pool *pool);

/* Contiguous room for size bytes at the end; NULL when memory is short. They count once output_commit() says how many
 * are there. */
uint8_t *output_reserve(struct output *output, struct chunk_pool *pool, size_t size);
void output_commit(struct output *output, size_t size);
/* 0, or -1 when memory is short. */
int output_append(struct output *output, struct chunk_pool *pool, const void *bytes, size_t size);
/* Appends room for a head, which the caller fills, and the last tail_size bytes of the message by reference: its
 * payload, or properties and payload. NULL when memory is short and nothing changed. */
uint8_t *output_append_message(struct output *output, struct chunk_pool *pool, size_t head_size,
                               struct message *message, size_t tail_size);

size_t output_spans(const struct output *output, struct broker_span *spans, size_t span_max);
/* size is at most output->bytes. */
void output_written(struct output *output, struct chunk_pool *pool, size_t size);

#endif
