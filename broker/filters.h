/* The filters that one session is subscribed to.
 *
 * An array, with a hash index behind it in the same allocation once they are many, so that neither a client with one
 * filter pays for an index nor one with thousands for a search through all.
 */
#ifndef BROKER_FILTERS_H
#define BROKER_FILTERS_H

#include <stddef.h>
#include <stdint.h>

struct filter {
    char *text; /* no final zero */
    uint32_t size;
    uint32_t hash;
    uint32_t identifier; /* of the subscription, and its options byte: the session's to set */
    uint8_t options;
};

/* Zero-initialised. */
struct filters {
    struct filter *items; /* in no particular order */
    uint32_t count, capacity;
};

void filters_deinit(struct filters *filters);
/* Position of the filter; count if it is not there. The seed is always the same. */
uint32_t filters_find(const struct filters *filters, uint64_t seed, const char *text, size_t size);
/* Adds a copy of one that is not there, at the end. 0, or -1 when memory is short and nothing changed. */
int filters_add(struct filters *filters, uint64_t seed, const char *text, size_t size);
/* The last one takes its place. Never fails. */
void filters_remove(struct filters *filters, uint32_t position);

#endif
