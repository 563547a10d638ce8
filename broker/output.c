#include "broker/output.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A chunk with its header fills one page. */
enum { CHUNK_ALLOCATION = 4096, POOL_MAX = 256 };

struct chunk {
    struct chunk *next;
    struct message *message; /* whose tail it is; NULL if the bytes are its own */
    const uint8_t *bytes;
    size_t written, filled, capacity;
    uint8_t room[];
};

#define CHUNK_ROOM (CHUNK_ALLOCATION - sizeof(struct chunk))

void chunk_pool_deinit(struct chunk_pool *pool) {
    while (pool->first != NULL) {
        struct chunk *chunk = pool->first;
        pool->first = chunk->next;
        free(chunk);
    }
    pool->count = 0;
}

static struct chunk *chunk_new(struct chunk_pool *pool, size_t capacity) {
    struct chunk *chunk;

    if (capacity == CHUNK_ROOM && pool->first != NULL) {
        chunk = pool->first;
        pool->first = chunk->next;
        pool->count--;
    } else {
        chunk = malloc(sizeof *chunk + capacity);
        if (chunk == NULL) return NULL;
    }
    *chunk = (struct chunk){.capacity = capacity};
    chunk->bytes = chunk->room;
    return chunk;
}

static void chunk_free(struct chunk_pool *pool, struct chunk *chunk) {
    message_unref(chunk->message);
    if (chunk->capacity == CHUNK_ROOM && pool->count < POOL_MAX) {
        chunk->next = pool->first;
        pool->first = chunk;
        pool->count++;
    } else {
        free(chunk);
    }
}

static void add_chunk(struct output *output, struct chunk *chunk) {
    *(output->last != NULL ? &output->last->next : &output->first) = chunk;
    output->last = chunk;
}

void output_deinit(struct output *output, struct chunk_pool *pool) {
    while (output->first != NULL) {
        struct chunk *chunk = output->first;
        output->first = chunk->next;
        chunk_free(pool, chunk);
    }
    *output = (struct output){0};
}

/* chunk_room: the least that a new chunk has, should the last one have no room. */
static uint8_t *reserve(struct output *output, struct chunk_pool *pool, size_t size, size_t chunk_room) {
    struct chunk *last = output->last;

    if (last == NULL || last->message != NULL || last->capacity - last->filled < size) {
        last = chunk_new(pool, size > chunk_room ? size : chunk_room);
        if (last == NULL) return NULL;
        add_chunk(output, last);
    }
    return last->room + last->filled;
}

uint8_t *output_reserve(struct output *output, struct chunk_pool *pool, size_t size) {
    return reserve(output, pool, size, CHUNK_ROOM);
}

void output_commit(struct output *output, size_t size) {
    output->last->filled += size;
    output->bytes += size;
    assert(output->last->filled <= output->last->capacity);
}

int output_append(struct output *output, struct chunk_pool *pool, const void *bytes, size_t size) {
    uint8_t *room = output_reserve(output, pool, size);

    if (room == NULL) return -1;
    memcpy(room, bytes, size);
    output_commit(output, size);
    return 0;
}

uint8_t *output_append_message(struct output *output, struct chunk_pool *pool, size_t head_size,
                               struct message *message, size_t tail_size) {
    struct message *held = message_ref(message);
    struct chunk *tail = held != NULL ? malloc(sizeof *tail) : NULL;
    /* No page for a head alone: of messages just too large to be copied, each would cost four times its bytes. */
    uint8_t *head = tail != NULL ? reserve(output, pool, head_size, 0) : NULL;

    if (head == NULL) {
        message_unref(held);
        free(tail);
        return NULL;
    }
    output_commit(output, head_size);
    *tail =
        (struct chunk){.message = held, .bytes = held->payload + held->payload_size - tail_size, .filled = tail_size};
    add_chunk(output, tail);
    output->bytes += tail_size;
    return head;
}

size_t output_spans(const struct output *output, struct broker_span *spans, size_t span_max) {
    size_t count = 0;

    for (const struct chunk *chunk = output->first; chunk != NULL && count < span_max; chunk = chunk->next)
        if (chunk->filled > chunk->written)
            spans[count++] = (struct broker_span){chunk->bytes + chunk->written, chunk->filled - chunk->written};
    return count;
}

void output_written(struct output *output, struct chunk_pool *pool, size_t size) {
    assert(size <= output->bytes);
    output->bytes -= size;
    while (output->first != NULL) {
        struct chunk *chunk = output->first;
        size_t left = chunk->filled - chunk->written;
        if (size < left) {
            chunk->written += size;
            return;
        }
        size -= left;
        output->first = chunk->next;
        if (output->first == NULL) output->last = NULL;
        chunk_free(pool, chunk);
    }
}
