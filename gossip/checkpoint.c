#include "gossip/checkpoint.h"

#include <stdlib.h>
#include <string.h>

/* What is hashed begins with what it is, so that none passes for another. */
enum { LEAF = 0, INNER = 1, ROOT = 2 };

uint64_t checkpoint_chunks(uint64_t size) {
    return size / MESSAGE_CHUNK_SIZE + (size % MESSAGE_CHUNK_SIZE != 0);
}

size_t checkpoint_chunk_size(uint64_t size, uint64_t index) {
    if (index >= checkpoint_chunks(size)) return 0;
    uint64_t left = size - index * MESSAGE_CHUNK_SIZE;
    return left < MESSAGE_CHUNK_SIZE ? (size_t)left : MESSAGE_CHUNK_SIZE;
}

static void hash_leaf(const struct gossip_crypto *crypto, const uint8_t *bytes, size_t size,
                      uint8_t out[CHECKPOINT_HASH_SIZE]) {
    uint8_t input[1 + MESSAGE_CHUNK_SIZE] = {LEAF}, digest[32];
    memcpy(input + 1, bytes, size);
    crypto->sha256(crypto->context, input, 1 + size, digest);
    memcpy(out, digest, CHECKPOINT_HASH_SIZE);
}

static void hash_inner(const struct gossip_crypto *crypto, const uint8_t *left, const uint8_t *right,
                       uint8_t out[CHECKPOINT_HASH_SIZE]) {
    uint8_t input[1 + 2 * CHECKPOINT_HASH_SIZE] = {INNER}, digest[32];
    memcpy(input + 1, left, CHECKPOINT_HASH_SIZE);
    memcpy(input + 1 + CHECKPOINT_HASH_SIZE, right, CHECKPOINT_HASH_SIZE);
    crypto->sha256(crypto->context, input, sizeof input, digest);
    memcpy(out, digest, CHECKPOINT_HASH_SIZE);
}

static void hash_root(const struct gossip_crypto *crypto, uint64_t size, const uint8_t top[CHECKPOINT_HASH_SIZE],
                      uint8_t root[32]) {
    uint8_t input[1 + 8 + CHECKPOINT_HASH_SIZE] = {ROOT};
    wire_store_u64(input + 1, size);
    memcpy(input + 9, top, CHECKPOINT_HASH_SIZE);
    crypto->sha256(crypto->context, input, sizeof input, root);
}

void checkpoint_empty_root(const struct gossip_crypto *crypto, uint8_t root[32]) {
    const uint8_t nothing[CHECKPOINT_HASH_SIZE] = {0};
    hash_root(crypto, 0, nothing, root);
}

/* One level's hashes become the next one's; a last one without a neighbour goes up as it is. */
static size_t hash_level(const struct gossip_crypto *crypto, const uint8_t *level, size_t count, uint8_t *above) {
    for (size_t i = 0; i + 1 < count; i += 2)
        hash_inner(crypto, level + i * CHECKPOINT_HASH_SIZE, level + (i + 1) * CHECKPOINT_HASH_SIZE,
                   above + i / 2 * CHECKPOINT_HASH_SIZE);
    if (count % 2 != 0)
        memcpy(above + count / 2 * CHECKPOINT_HASH_SIZE, level + (count - 1) * CHECKPOINT_HASH_SIZE,
               CHECKPOINT_HASH_SIZE);
    return (count + 1) / 2;
}

static size_t hashes_of(size_t chunks) {
    size_t all = chunks;
    for (size_t count = chunks; count > 1; all += count)
        count = (count + 1) / 2;
    return all;
}

/* All levels, the lowest first. */
static void hash_levels(const struct gossip_crypto *crypto, const struct rowset *rows, size_t size, size_t count,
                        uint8_t *level, uint8_t root[32]) {
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[MESSAGE_CHUNK_SIZE];
        size_t chunk_size = checkpoint_chunk_size(size, i);
        rowset_encode(rows, i * MESSAGE_CHUNK_SIZE, chunk_size, bytes);
        hash_leaf(crypto, bytes, chunk_size, level + i * CHECKPOINT_HASH_SIZE);
    }
    while (count > 1) {
        uint8_t *above = level + count * CHECKPOINT_HASH_SIZE;
        count = hash_level(crypto, level, count, above);
        level = above;
    }
    hash_root(crypto, size, level, root);
}

struct checkpoint *checkpoint_new(const struct rowset *rows, uint64_t sequence, const uint8_t chain[8],
                                  const struct gossip_crypto *crypto) {
    size_t size = rowset_encoded_size(rows), count = (size_t)checkpoint_chunks(size);
    struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    uint8_t *hashes = checkpoint && count > 0 ? malloc(hashes_of(count) * CHECKPOINT_HASH_SIZE) : NULL;
    if (!checkpoint || (count > 0 && !hashes)) {
        free(checkpoint);
        return NULL;
    }
    checkpoint->refs = 1;
    checkpoint->sequence = sequence;
    memcpy(checkpoint->chain, chain, sizeof checkpoint->chain);
    checkpoint->hashes = hashes;
    checkpoint->rows = rowset_share(rows);
    if (count > 0)
        hash_levels(crypto, rows, size, count, hashes, checkpoint->root);
    else
        checkpoint_empty_root(crypto, checkpoint->root);
    return checkpoint;
}

void checkpoint_unref(struct checkpoint *checkpoint) {
    if (!checkpoint || --checkpoint->refs > 0) return;
    rowset_free(&checkpoint->rows);
    free(checkpoint->hashes);
    free(checkpoint);
}

void checkpoint_name(const struct checkpoint *checkpoint, const struct gossip_crypto *crypto, struct head *head) {
    if (!checkpoint) {
        checkpoint_empty_root(crypto, head->checkpoint_root);
        return;
    }
    head->checkpoint_sequence = checkpoint->sequence;
    head->checkpoint_size = rowset_encoded_size(&checkpoint->rows);
    memcpy(head->checkpoint_root, checkpoint->root, sizeof head->checkpoint_root);
    memcpy(head->checkpoint_chain, checkpoint->chain, sizeof head->checkpoint_chain);
}

void checkpoint_set_head(struct checkpoint *checkpoint, const uint8_t *bytes, size_t size) {
    assert(size <= HEAD_SIZE_MAX);
    if (checkpoint->head_size > 0) return;
    memcpy(checkpoint->head, bytes, size);
    checkpoint->head_size = size;
}

bool checkpoint_is_outdated(const struct checkpoint *checkpoint, const struct head *head, const uint8_t *bytes,
                            size_t size) {
    struct head named;
    if (!checkpoint || !head_read(checkpoint->head, checkpoint->head_size, &named)) return true;
    if (head->incarnation != named.incarnation) return head->incarnation > named.incarnation;
    return signed_compare(bytes, size, checkpoint->head, checkpoint->head_size) > 0;
}

void checkpoint_read(const struct checkpoint *checkpoint, uint64_t index, struct checkpoint_chunk *chunk) {
    size_t size = rowset_encoded_size(&checkpoint->rows), count = (size_t)checkpoint_chunks(size);
    const uint8_t *level = checkpoint->hashes;
    chunk->size = checkpoint_chunk_size(size, index);
    chunk->proof_size = 0;
    rowset_encode(&checkpoint->rows, (size_t)index * MESSAGE_CHUNK_SIZE, chunk->size, chunk->bytes);
    for (size_t at = (size_t)index; count > 1; at /= 2) {
        size_t neighbour = at ^ 1;
        if (neighbour < count) {
            memcpy(chunk->proof + chunk->proof_size, level + neighbour * CHECKPOINT_HASH_SIZE, CHECKPOINT_HASH_SIZE);
            chunk->proof_size += CHECKPOINT_HASH_SIZE;
        }
        level += count * CHECKPOINT_HASH_SIZE;
        count = (count + 1) / 2;
    }
}

bool checkpoint_proves(const struct head *head, uint64_t index, const struct message *chunk,
                       const struct gossip_crypto *crypto) {
    uint64_t count = checkpoint_chunks(head->checkpoint_size);
    uint8_t hash[CHECKPOINT_HASH_SIZE], root[32];
    const uint8_t *proof = chunk->proof, *end = chunk->proof + chunk->proof_size;
    if (index >= count || chunk->size != checkpoint_chunk_size(head->checkpoint_size, index)) return false;
    hash_leaf(crypto, chunk->bytes, chunk->size, hash);
    for (uint64_t at = index; count > 1; at /= 2, count = (count + 1) / 2) {
        if ((at ^ 1) >= count) continue;
        if (end - proof < (ptrdiff_t)CHECKPOINT_HASH_SIZE) return false;
        hash_inner(crypto, at % 2 ? proof : hash, at % 2 ? hash : proof, hash);
        proof += CHECKPOINT_HASH_SIZE;
    }
    hash_root(crypto, head->checkpoint_size, hash, root);
    return proof == end && memcmp(root, head->checkpoint_root, sizeof root) == 0;
}
