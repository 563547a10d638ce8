/* A checkpoint: the rows at T, in chunks under one signed root.
 *
 * The root is that of a Merkle tree over the chunks (as RFC 9162 section 2.1, but with hashes of 16 bytes, and a last
 * one without a neighbour goes up as it is), so each chunk is checked when it comes, whoever brings it: chunks may come
 * from anybody, several at once, and one that is false costs nothing but itself.
 */
#ifndef GOSSIP_CHECKPOINT_H
#define GOSSIP_CHECKPOINT_H

#include "gossip/rowset.h"
#include "gossip/signed.h"

#include <assert.h>

#define CHECKPOINT_HASH_SIZE 16u
#define CHECKPOINT_DEPTH_MAX 20u
#define CHECKPOINT_SIZE_MAX ((uint64_t)MESSAGE_CHUNK_SIZE << CHECKPOINT_DEPTH_MAX)

static_assert(MESSAGE_PROOF_MAX == CHECKPOINT_DEPTH_MAX * CHECKPOINT_HASH_SIZE, "the longest proof fits its message");

/* Counted; nothing of it changes. */
struct checkpoint {
    uint32_t refs;
    uint64_t sequence; /* T */
    struct rowset rows;
    uint8_t chain[8]; /* at T */
    uint8_t root[32];
    uint8_t *hashes;             /* of the chunks, then of each level above them; NULL when it has no rows */
    uint8_t head[HEAD_SIZE_MAX]; /* a signed head that names it; size 0: none yet */
    size_t head_size;
};

/* The number of chunks of a checkpoint of so many bytes. */
uint64_t checkpoint_chunks(uint64_t size);
/* Bytes of one chunk; 0 past the end. */
size_t checkpoint_chunk_size(uint64_t size, uint64_t index);

/* The rows are shared, not copied. NULL when memory is short. */
struct checkpoint *checkpoint_new(const struct rowset *rows, uint64_t sequence, const uint8_t chain[8],
                                  const struct gossip_crypto *crypto);
void checkpoint_unref(struct checkpoint *checkpoint);
/* The root of one without rows, which is where every log begins. */
void checkpoint_empty_root(const struct gossip_crypto *crypto, uint8_t root[32]);
/* Writes T, size, root and chain into a head that is to be signed; NULL is the empty beginning. */
void checkpoint_name(const struct checkpoint *checkpoint, const struct gossip_crypto *crypto, struct head *head);
/* The first one given stays: one head is as good as another to prove it. */
void checkpoint_set_head(struct checkpoint *checkpoint, const uint8_t *bytes, size_t size);

/* Is this head, which names another one of the same epoch, a later word of the owner than the head that we have of it?
 * Nothing is earlier than NULL, or one without a head. */
bool checkpoint_is_outdated(const struct checkpoint *checkpoint, const struct head *head, const uint8_t *bytes,
                            size_t size);

/* A chunk and its proof; their sizes. The index must be below checkpoint_chunks(). */
struct checkpoint_chunk {
    uint8_t bytes[MESSAGE_CHUNK_SIZE];
    uint8_t proof[MESSAGE_PROOF_MAX];
    size_t size, proof_size;
};
void checkpoint_read(const struct checkpoint *checkpoint, uint64_t index, struct checkpoint_chunk *chunk);
/* Is this that chunk of the checkpoint with this size and root? */
bool checkpoint_proves(const struct head *head, uint64_t index, const struct message *chunk,
                       const struct gossip_crypto *crypto);

#endif
