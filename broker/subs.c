#include "broker/subs.h"

#include "broker/tree.h"

#include <stdlib.h>

/* Above this many subscribers of one filter a chain of indexes finds one; below, looking through them is quicker. */
enum { INDEX_FROM = 16 };
#define NO_ENTRY UINT32_MAX

struct entry {
    struct subscriber *subscriber;
    struct subscription subscription;
    uint32_t chain; /* next entry of the same head, NO_ENTRY at the end */
};

/* The item of a tree node: everyone who subscribed to this filter. */
struct list {
    uint32_t count, capacity; /* capacity is a power of two */
    uint32_t *heads;          /* as many as capacity; NULL while capacity is below INDEX_FROM */
    struct entry *entries;
};

struct subs {
    struct tree tree;
    size_t count;
    uint64_t generation;
};

struct subs *subs_new(uint64_t seed) {
    struct subs *subs = calloc(1, sizeof *subs);

    if (subs == NULL || tree_init(&subs->tree, seed) != 0) {
        free(subs);
        return NULL;
    }
    return subs;
}

static void list_free(struct list *list) {
    if (list == NULL) return;
    free(list->heads);
    free(list->entries);
    free(list);
}

void subs_free(struct subs *subs) {
    if (subs == NULL) return;
    for (struct tree_node *node = subs->tree.root; node != NULL; node = tree_next(node))
        list_free(node->item);
    tree_deinit(&subs->tree);
    free(subs);
}

static uint32_t head_of(const struct list *list, const struct subscriber *subscriber) {
    uint64_t mixed = (uint64_t)(uintptr_t)subscriber * 0x9E3779B97F4A7C15u;
    return (uint32_t)(mixed >> 32) & (list->capacity - 1);
}

static uint32_t list_find(const struct list *list, const struct subscriber *subscriber) {
    uint32_t at;

    if (list->heads != NULL) {
        at = list->heads[head_of(list, subscriber)];
        while (at != NO_ENTRY && list->entries[at].subscriber != subscriber)
            at = list->entries[at].chain;
        return at;
    }
    for (at = 0; at < list->count; at++)
        if (list->entries[at].subscriber == subscriber) return at;
    return NO_ENTRY;
}

static void list_link(struct list *list, uint32_t at) {
    uint32_t *head;

    if (list->heads == NULL) return;
    head = &list->heads[head_of(list, list->entries[at].subscriber)];
    list->entries[at].chain = *head;
    *head = at;
}

static void list_unlink(struct list *list, uint32_t at) {
    uint32_t *place;

    if (list->heads == NULL) return;
    place = &list->heads[head_of(list, list->entries[at].subscriber)];
    while (*place != at)
        place = &list->entries[*place].chain;
    *place = list->entries[at].chain;
}

/* Makes capacity (a power of two) for at least count entries; -1 when memory is short and nothing changed. */
static int list_resize(struct list *list, uint32_t capacity) {
    uint32_t *heads = NULL;
    struct entry *entries;

    if (capacity >= INDEX_FROM) {
        heads = malloc(capacity * sizeof *heads);
        if (heads == NULL) return -1;
    }
    entries = realloc(list->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        free(heads);
        return -1;
    }
    free(list->heads);
    list->heads = heads;
    list->entries = entries;
    list->capacity = capacity;
    for (uint32_t i = 0; heads != NULL && i < capacity; i++)
        heads[i] = NO_ENTRY;
    for (uint32_t i = 0; i < list->count; i++)
        list_link(list, i);
    return 0;
}

static int list_add(struct list *list, struct subscriber *subscriber, const struct subscription *subscription) {
    if (list->count == list->capacity) {
        if (list->capacity > UINT32_MAX / 4 || list_resize(list, list->capacity ? list->capacity * 2 : 1) != 0)
            return -1;
    }
    list->entries[list->count] =
        (struct entry){.subscriber = subscriber, .subscription = *subscription, .chain = NO_ENTRY};
    list_link(list, list->count++);
    return 0;
}

static void list_remove(struct list *list, uint32_t at) {
    uint32_t last = list->count - 1;

    list_unlink(list, at);
    if (at != last) {
        list_unlink(list, last);
        list->entries[at] = list->entries[last];
        list_link(list, at);
    }
    list->count--;
    /* Shrinking may fail; then it is merely larger than needed. */
    if (list->count > 0 && list->count <= list->capacity / 4) list_resize(list, list->capacity / 2);
}

enum subs_result subs_add(struct subs *subs, const char *filter, size_t size, struct subscriber *subscriber,
                          const struct subscription *subscription) {
    struct tree_path path;
    struct tree_node *node;
    struct list *list;
    uint32_t at;

    tree_path_of(filter, size, &path);
    node = tree_make(&subs->tree, &path);
    if (node == NULL) return SUBS_NO_MEMORY;
    list = node->item;
    at = list != NULL ? list_find(list, subscriber) : NO_ENTRY;
    if (at != NO_ENTRY) {
        list->entries[at].subscription = *subscription;
        subs->generation++;
        return SUBS_REPLACED;
    }
    if (list == NULL) list = calloc(1, sizeof *list);
    if (list == NULL || list_add(list, subscriber, subscription) != 0) {
        if (node->item == NULL) list_free(list);
        tree_prune(&subs->tree, node);
        return SUBS_NO_MEMORY;
    }
    node->item = list;
    subs->count++;
    subs->generation++;
    return SUBS_OK;
}

enum subs_result subs_remove(struct subs *subs, const char *filter, size_t size, struct subscriber *subscriber) {
    struct tree_path path;
    struct tree_node *node;
    struct list *list;
    uint32_t at;

    tree_path_of(filter, size, &path);
    node = tree_find(&subs->tree, &path);
    list = node != NULL ? node->item : NULL;
    at = list != NULL ? list_find(list, subscriber) : NO_ENTRY;
    if (at == NO_ENTRY) return SUBS_NOT_FOUND;
    list_remove(list, at);
    if (list->count == 0) {
        list_free(list);
        node->item = NULL;
        tree_prune(&subs->tree, node);
    }
    subs->count--;
    subs->generation++;
    return SUBS_OK;
}

struct walk {
    subs_on_hit *on_hit;
    void *context;
};

static void hit_all(void *context, const struct tree_node *node) {
    const struct walk *walk = context;
    const struct list *list = node->item;

    for (uint32_t i = 0; i < list->count; i++)
        walk->on_hit(walk->context, list->entries[i].subscriber, &list->entries[i].subscription);
}

void subs_match(const struct subs *subs, const char *name, size_t size, subs_on_hit *on_hit, void *context) {
    struct walk walk = {.on_hit = on_hit, .context = context};

    tree_match(&subs->tree, name, size, hit_all, &walk);
}

static bool meet_all(void *context, const struct tree_node *node) {
    hit_all(context, node);
    return true;
}

void subs_meet(const struct subs *subs, const char *filter, size_t size, subs_on_hit *on_hit, void *context) {
    struct walk walk = {.on_hit = on_hit, .context = context};

    tree_meet(&subs->tree, filter, size, meet_all, &walk);
}

static bool meet_one(void *context, const struct tree_node *node) {
    (void)context;
    (void)node;
    return false;
}

bool subs_meets(const struct subs *subs, const char *filter, size_t size) {
    return !tree_meet(&subs->tree, filter, size, meet_one, NULL);
}

size_t subs_count(const struct subs *subs) {
    return subs->count;
}

uint64_t subs_generation(const struct subs *subs) {
    return subs->generation;
}

void subs_touch(struct subs *subs) {
    subs->generation++;
}
