/* What every owner has said, kept by the simulator: its exact rows at each sequence, as a hash. It listens to what each
 * broker signs (standin.h) and reads it by itself, so that an error of the core in reading or applying entries cannot
 * hide in both.
 *
 * A state is named by (identity, epoch, sequence, chain): two lives of one key that used an epoch twice have different
 * chains, and both have said what they said.
 */
#ifndef SIMULATE_TRUTH_H
#define SIMULATE_TRUTH_H

#include "gossip/gossip.h"

struct truth;
struct author; /* one life of a broker, as its signatures tell it */

struct truth *truth_new(void);
void truth_free(struct truth *truth);

/* identity: number of the key. Authors belong to the truth. */
struct author *truth_begin(struct truth *truth, uint32_t identity);
void truth_end(struct truth *truth, struct author *author);
/* Everything that it signs: on_signed of standin.h. */
void truth_on_signed(void *author, const uint8_t *bytes, size_t size);

/* The hash of the rows that the owner had there; false: it never said so. Sequence 0 is empty. */
bool truth_find(const struct truth *truth, uint32_t identity, uint64_t epoch, uint64_t sequence, const uint8_t chain[8],
                uint64_t *rows_hash);
/* The owner had such rows at some time or other. Slow: for saying what is wrong. */
bool truth_had(const struct truth *truth, uint32_t identity, uint64_t rows_hash);
/* Two lives of this key signed in one epoch: until that is repaired a replica may hold entries of both. */
bool truth_is_ambiguous(const struct truth *truth, uint32_t identity);
/* The newest that this life has said. */
uint64_t author_epoch(const struct author *author);
uint64_t author_sequence(const struct author *author);
uint64_t author_rows_hash(const struct author *author);
uint64_t truth_states(const struct truth *truth);

/* Rows are added up: the hash of a set does not depend on order. */
uint64_t truth_row_hash(enum gossip_row_kind kind, const char *filter, size_t size);

#endif
