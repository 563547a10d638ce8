/* A set of byte strings (topics, filters) with something hung on each. Entries are embedded in their owner's
 * allocation and linked in order of insertion, so that a walk is the same in every run. The hash is seeded:
 * strangers choose the strings.
 */
#ifndef BROKER_NAMES_H
#define BROKER_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct named {
    struct named *previous, *next; /* order of insertion */
    struct named *chain;           /* same bucket */
    uint64_t hash;
    const char *text; /* must live as long as the entry; no final zero */
    size_t size;
};

struct names {
    uint64_t seed;
    struct named **buckets; /* NULL until the first names_add */
    size_t bucket_count;
    size_t count;
    struct named *first, *last;
};

void names_init(struct names *names, uint64_t seed);
/* Frees the buckets; the entries are their owners'. */
void names_deinit(struct names *names);

/* NULL if it is not there. */
struct named *names_find(const struct names *names, const char *text, size_t size);
/* Adds an entry whose text and size are set and not there yet. 0, or -1 when memory is short. */
int names_add(struct names *names, struct named *entry);
/* Moves to the end of the walk. */
void names_move_last(struct names *names, struct named *entry);
void names_remove(struct names *names, struct named *entry);

/* A zeroed allocation of struct_size bytes that begins with a struct named, whose text is a copy behind the struct.
 * NULL when memory is short. free() ends it. */
void *named_new(size_t struct_size, const char *text, size_t size);

#endif
