#include "broker/names.h"

#include "broker/hash.h"

#include <stdlib.h>
#include <string.h>

void names_init(struct names *names, uint64_t seed) {
    memset(names, 0, sizeof *names);
    names->seed = seed;
}

void names_deinit(struct names *names) {
    free(names->buckets);
    names_init(names, names->seed);
}

struct named *names_find(const struct names *names, const char *text, size_t size) {
    if (names->count == 0) return NULL;
    uint64_t hash = hash_bytes(names->seed, text, size);
    struct named *entry = names->buckets[hash & (names->bucket_count - 1)];
    while (entry && !(entry->hash == hash && entry->size == size && memcmp(entry->text, text, size) == 0))
        entry = entry->chain;
    return entry;
}

/* When there is no memory to grow, the chains get longer and nothing breaks. */
static int make_room(struct names *names) {
    if (names->buckets && names->count < names->bucket_count) return 0;
    size_t count = names->buckets ? names->bucket_count * 2 : 8;
    struct named **buckets = calloc(count, sizeof *buckets);
    if (!buckets) return names->buckets ? 0 : -1;
    for (struct named *entry = names->first; entry; entry = entry->next) {
        struct named **bucket = &buckets[entry->hash & (count - 1)];
        entry->chain = *bucket;
        *bucket = entry;
    }
    free(names->buckets);
    names->buckets = buckets;
    names->bucket_count = count;
    return 0;
}

static void link_last(struct names *names, struct named *entry) {
    entry->previous = names->last;
    entry->next = NULL;
    if (names->last)
        names->last->next = entry;
    else
        names->first = entry;
    names->last = entry;
}

static void unlink_entry(struct names *names, struct named *entry) {
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        names->first = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    else
        names->last = entry->previous;
}

int names_add(struct names *names, struct named *entry) {
    if (make_room(names)) return -1;
    entry->hash = hash_bytes(names->seed, entry->text, entry->size);
    struct named **bucket = &names->buckets[entry->hash & (names->bucket_count - 1)];
    entry->chain = *bucket;
    *bucket = entry;
    link_last(names, entry);
    names->count++;
    return 0;
}

void names_move_last(struct names *names, struct named *entry) {
    if (names->last == entry) return;
    unlink_entry(names, entry);
    link_last(names, entry);
}

void names_remove(struct names *names, struct named *entry) {
    struct named **at = &names->buckets[entry->hash & (names->bucket_count - 1)];
    while (*at != entry)
        at = &(*at)->chain;
    *at = entry->chain;
    unlink_entry(names, entry);
    names->count--;
}

void *named_new(size_t struct_size, const char *text, size_t size) {
    char *memory = calloc(1, struct_size + size);
    if (!memory) return NULL;
    memcpy(memory + struct_size, text, size);
    struct named *entry = (struct named *)(void *)memory;
    entry->text = memory + struct_size;
    entry->size = size;
    return memory;
}
