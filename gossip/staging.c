#include "gossip/staging.h"

#include <stdlib.h>
#include <string.h>

static void drop_early(struct staging *staging) {
    for (size_t i = 0; i < STAGING_WINDOW; i++)
        free(staging->early[i]);
    memset(staging->early, 0, sizeof staging->early);
}

void staging_free(struct staging *staging) {
    drop_early(staging);
    free(staging->bytes);
    memset(staging, 0, sizeof *staging);
}

uint64_t staging_chunks(const struct staging *staging) {
    return checkpoint_chunks(staging->head.checkpoint_size);
}

uint64_t staging_next(const struct staging *staging) {
    return checkpoint_chunks(staging->size);
}

bool staging_complete(const struct staging *staging) {
    return staging->size == staging->head.checkpoint_size;
}

static size_t chunk_size(const struct staging *staging, uint64_t index) {
    return checkpoint_chunk_size(staging->head.checkpoint_size, index);
}

static bool append(struct staging *staging, const uint8_t *bytes, size_t size) {
    if (staging->size + size > staging->room) {
        size_t room = staging->room ? staging->room * 2 : 4 * MESSAGE_CHUNK_SIZE;
        uint8_t *grown = realloc(staging->bytes, room);
        if (!grown) return false;
        staging->bytes = grown;
        staging->room = room;
    }
    memcpy(staging->bytes + staging->size, bytes, size);
    staging->size += size;
    return true;
}

bool staging_wants(const struct staging *staging, uint64_t index) {
    uint64_t next = staging_next(staging);
    if (index < next || index >= staging_chunks(staging) || index > next + STAGING_WINDOW) return false;
    return index == next || !staging->early[index % STAGING_WINDOW];
}

enum staging_result staging_add(struct staging *staging, uint64_t index, const uint8_t *bytes, size_t size) {
    uint64_t next = staging_next(staging);
    if (!staging_wants(staging, index) || size != chunk_size(staging, index)) return STAGING_USELESS;
    if (index > next) {
        uint8_t **slot = &staging->early[index % STAGING_WINDOW];
        *slot = malloc(size);
        if (!*slot) return STAGING_NO_MEMORY;
        memcpy(*slot, bytes, size);
        return STAGING_TAKEN;
    }
    if (!append(staging, bytes, size)) return STAGING_NO_MEMORY;
    for (next = index + 1; next < staging_chunks(staging); next++) {
        uint8_t **slot = &staging->early[next % STAGING_WINDOW];
        if (!*slot || !append(staging, *slot, chunk_size(staging, next))) break;
        free(*slot);
        *slot = NULL;
    }
    return STAGING_TAKEN;
}
