/* What an owner shows at some sequence: a set of rows that costs nothing to copy.
 *
 * An AVL tree whose nodes are counted (Driscoll, Sarnak, Sleator, Tarjan 1989, path copying): a copy shares all of it,
 * and a change copies only the way down to it, and only as far as somebody else holds it too. So an entry is applied to
 * a copy, which then takes the place of the old set or is dropped: wholly or not at all.
 */
#ifndef GOSSIP_ROWSET_H
#define GOSSIP_ROWSET_H

#include "gossip/gossip.h"

#define ROWSET_HEIGHT_MAX 64u /* of an AVL tree with more rows than fit in memory */

struct rowset_node;
struct rowset {
    struct rowset_node *root;
    size_t count;
    size_t bytes; /* of all filters */
};

void rowset_free(struct rowset *set);
/* Another holder of the same rows. */
struct rowset rowset_share(const struct rowset *set);

bool rowset_has(const struct rowset *set, enum gossip_row_kind kind, const char *filter, size_t size);
/* After NO_MEMORY the set is only good for rowset_free; copies of it are unharmed. */
enum rowset_result { ROWSET_CHANGED, ROWSET_SAME, ROWSET_NO_MEMORY };
enum rowset_result rowset_put(struct rowset *set, enum gossip_row_kind kind, const char *filter, size_t size);
enum rowset_result rowset_delete(struct rowset *set, enum gossip_row_kind kind, const char *filter, size_t size);

/* In order of kind, then bytes. The set must not change meanwhile. */
struct rowset_walk {
    const struct rowset_node *next[ROWSET_HEIGHT_MAX];
    size_t depth;
};
struct rowset_row {
    enum gossip_row_kind kind;
    const char *filter; /* no final zero; lives as long as the set holds the row */
    size_t size;
};
void rowset_begin(const struct rowset *set, struct rowset_walk *walk);
bool rowset_next(struct rowset_walk *walk, struct rowset_row *row);

/* The encoding: rows in order, each its kind (1 byte), size (2 bytes, big-endian) and bytes. One state has one
 * encoding, and any part of it is read without making the rest. */
size_t rowset_encoded_size(const struct rowset *set);
void rowset_encode(const struct rowset *set, size_t from, size_t size, uint8_t *out);
enum rowset_decoded { ROWSET_DECODED, ROWSET_MALFORMED, ROWSET_DECODE_NO_MEMORY };
enum rowset_decoded rowset_decode(const uint8_t *bytes, size_t size, size_t rows_max, struct rowset *set);

#endif
