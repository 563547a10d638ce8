/* A sorted set of rows: what an owner shows at some sequence. */
#ifndef GOSSIP_ROWS_H
#define GOSSIP_ROWS_H

#include "gossip/gossip.h"

struct row {
    uint8_t kind;
    uint16_t size;
    char filter[]; /* size bytes, no final zero */
};

struct rows {
    struct row **items; /* by kind, then bytes */
    size_t count, room;
    size_t bytes; /* of all filters */
};

void rows_free(struct rows *rows);
/* Index of the row, or where it would be. */
bool rows_find(const struct rows *rows, enum gossip_row_kind kind, const char *filter, size_t size, size_t *index);
enum rows_result { ROWS_CHANGED, ROWS_SAME, ROWS_NO_MEMORY };
enum rows_result rows_put(struct rows *rows, enum gossip_row_kind kind, const char *filter, size_t size);
/* For changes that must not fail half way: rows made beforehand, and room for them. put_made takes the row. */
struct row *row_new(enum gossip_row_kind kind, const char *filter, size_t size);
bool rows_reserve(struct rows *rows, size_t more);
bool rows_put_made(struct rows *rows, struct row *row);
bool rows_delete(struct rows *rows, enum gossip_row_kind kind, const char *filter, size_t size);
bool rows_copy(const struct rows *from, struct rows *to);

/* The checkpoint: rows in order, each its kind (1 byte), size (2 bytes, big-endian) and bytes. One state has one
 * encoding. */
size_t rows_encoded_size(const struct rows *rows);
void rows_encode(const struct rows *rows, uint8_t *out);
enum rows_decoded { ROWS_DECODED, ROWS_MALFORMED, ROWS_DECODE_NO_MEMORY };
enum rows_decoded rows_decode(const uint8_t *bytes, size_t size, size_t rows_max, struct rows *rows);

#endif
