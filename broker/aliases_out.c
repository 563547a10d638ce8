#include "broker/aliases_out.h"

#include "broker/hash.h"

#include <stdlib.h>
#include <string.h>

/* An alias is a property of 3 bytes: below this it saves next to nothing. All topics of a client together have at most
 * BYTES_MAX bytes. */
enum { TOPIC_SIZE_MIN = 8, BYTES_MAX = 128 * 1024 };

struct entry {
    char *topic; /* owned; NULL if the alias is free */
    uint32_t size, hash;
    uint16_t next; /* in its bucket; 0 at the end */
    uint16_t newer, older;
};

/* By alias; entries[0] is the head of the list by use, newer than the newest and older than the oldest. Free aliases
 * that were in use are its oldest. */
struct aliases_out {
    uint16_t max, begun; /* begun: the aliases above it were never in use */
    uint32_t bytes;      /* of all topics */
    uint32_t bucket_mask;
    uint32_t *seen; /* SEEN_PER_ALIAS * max: hash of the last topic of this place that had no alias */
    uint16_t *buckets;
    struct entry entries[];
};

/* Of n topics in turn, more than there are aliases, those that have their place for themselves get one: at most
 * places / e, which is less than the aliases, so that in the end they all keep theirs. */
enum { SEEN_PER_ALIAS = 2 };

/* A power of two: 1 to 2 for each alias. */
static uint32_t bucket_count(uint16_t alias_max) {
    uint32_t count = 1;

    while (count < alias_max)
        count *= 2;
    return count;
}

static struct aliases_out *aliases_new(uint16_t alias_max) {
    size_t entries_size = (alias_max + 1u) * sizeof(struct entry);
    size_t seen_count = SEEN_PER_ALIAS * (size_t)alias_max, buckets = bucket_count(alias_max);
    struct aliases_out *aliases = calloc(1, sizeof *aliases + entries_size + seen_count * sizeof *aliases->seen +
                                                buckets * sizeof *aliases->buckets);

    if (aliases == NULL) return NULL;
    aliases->max = alias_max;
    aliases->bucket_mask = (uint32_t)buckets - 1;
    aliases->seen = (uint32_t *)(void *)((uint8_t *)aliases->entries + entries_size);
    aliases->buckets = (uint16_t *)(void *)(aliases->seen + seen_count);
    return aliases;
}

void aliases_out_free(struct aliases_out *aliases) {
    for (uint32_t i = 1; aliases != NULL && i <= aliases->begun; i++)
        free(aliases->entries[i].topic);
    free(aliases);
}

static bool is_of(const struct entry *entry, struct mqtt_view topic) {
    return entry->size == topic.size && entry->topic != NULL && memcmp(entry->topic, topic.bytes, topic.size) == 0;
}

static uint16_t find(const struct aliases_out *aliases, uint64_t hash, struct mqtt_view topic) {
    uint16_t at = aliases->buckets[hash & aliases->bucket_mask];

    while (at != 0 && (aliases->entries[at].hash != (uint32_t)hash || !is_of(&aliases->entries[at], topic)))
        at = aliases->entries[at].next;
    return at;
}

static void list_remove(struct aliases_out *aliases, uint16_t alias) {
    const struct entry *entry = &aliases->entries[alias];

    aliases->entries[entry->newer].older = entry->older;
    aliases->entries[entry->older].newer = entry->newer;
}

/* Between older and what was newer than that. */
static void list_insert(struct aliases_out *aliases, uint16_t alias, uint16_t older) {
    struct entry *entries = aliases->entries;

    entries[alias].older = older;
    entries[alias].newer = entries[older].newer;
    entries[entries[older].newer].older = alias;
    entries[older].newer = alias;
}

/* entries[0].older is the newest, entries[0].newer the oldest. */
static void make_newest(struct aliases_out *aliases, uint16_t alias) {
    list_remove(aliases, alias);
    list_insert(aliases, alias, aliases->entries[0].older);
}

/* The alias stands for nothing now, and is the first to be taken. */
static void forget(struct aliases_out *aliases, uint16_t alias) {
    struct entry *entry = &aliases->entries[alias];
    uint16_t *place = &aliases->buckets[entry->hash & aliases->bucket_mask];

    if (entry->topic == NULL) return;
    while (*place != alias)
        place = &aliases->entries[*place].next;
    *place = entry->next;
    aliases->bytes -= entry->size;
    free(entry->topic);
    entry->topic = NULL;
    list_remove(aliases, alias);
    list_insert(aliases, alias, 0);
}

/* An alias that stands for nothing; 0 if there is none. */
static uint16_t free_alias(const struct aliases_out *aliases) {
    uint16_t oldest = aliases->entries[0].newer;

    if (oldest != 0 && aliases->entries[oldest].topic == NULL) return oldest;
    return aliases->begun < aliases->max ? (uint16_t)(aliases->begun + 1) : 0;
}

/* Whether this topic, which has no alias, was the last such of its place. If so it gets one, and begins anew when that
 * is taken from it. */
static bool comes_again(struct aliases_out *aliases, uint64_t hash) {
    uint32_t *place = &aliases->seen[(hash >> 32) % (SEEN_PER_ALIAS * (uint32_t)aliases->max)];
    bool again = *place == (uint32_t)hash;

    *place = again ? 0 : (uint32_t)hash;
    return again;
}

/* For a topic that has none. */
static uint16_t propose(struct aliases_out *aliases, uint64_t hash, struct mqtt_view topic) {
    uint16_t alias = free_alias(aliases);

    if (alias != 0 && aliases->bytes + topic.size <= BYTES_MAX) return alias;
    if (!comes_again(aliases, hash)) return 0;
    return alias != 0 ? alias : aliases->entries[0].newer;
}

struct alias_use aliases_out_use(struct aliases_out **aliases, uint16_t alias_max, uint64_t seed, bool may_set,
                                 struct mqtt_view topic) {
    struct alias_use use = {0};
    uint16_t newest;

    if (topic.size < TOPIC_SIZE_MIN) return use;
    if (*aliases == NULL && may_set) *aliases = aliases_new(alias_max);
    if (*aliases == NULL) return use;
    newest = (*aliases)->entries[0].older;
    if (is_of(&(*aliases)->entries[newest], topic)) return (struct alias_use){.alias = newest, .is_known = true};
    use.hash = hash_bytes(seed, topic.bytes, topic.size);
    use.alias = find(*aliases, use.hash, topic);
    use.is_known = use.alias != 0;
    if (use.is_known)
        make_newest(*aliases, use.alias);
    else if (may_set)
        use.alias = propose(*aliases, use.hash, topic);
    return use;
}

/* Room for the bytes of one more topic, at the cost of the least recently used. */
static void make_room(struct aliases_out *aliases, uint32_t size) {
    uint16_t alias = aliases->entries[0].newer;

    while (aliases->bytes + size > BYTES_MAX) {
        uint16_t newer = aliases->entries[alias].newer;
        forget(aliases, alias);
        alias = newer;
    }
}

void aliases_out_sent(struct aliases_out *aliases, const struct alias_use *use, struct mqtt_view topic) {
    struct entry *entry = &aliases->entries[use->alias];
    uint16_t *bucket = &aliases->buckets[use->hash & aliases->bucket_mask];

    if (use->alias > aliases->begun)
        list_insert(aliases, aliases->begun = use->alias, 0);
    else
        forget(aliases, use->alias);
    make_room(aliases, topic.size);
    entry->topic = malloc(topic.size);
    if (entry->topic == NULL) return;
    memcpy(entry->topic, topic.bytes, topic.size);
    entry->size = topic.size;
    entry->hash = (uint32_t)use->hash;
    entry->next = *bucket;
    *bucket = use->alias;
    aliases->bytes += topic.size;
    make_newest(aliases, use->alias);
}
