#include "gossip/portrait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only to find it: equal compares all of it. The ends of tokens and heads are signatures. */
static uint64_t hash_of_end(const uint8_t *bytes, size_t size) {
    uint64_t hash = size;
    if (size >= sizeof hash) memcpy(&hash, bytes + size - sizeof hash, sizeof hash);
    for (size_t i = size >= 64 ? size - 64 : 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* FNV-1a. Names are those of tokens, which an issuer chose. */
uint32_t name_hash(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash ? hash : 1;
}

struct wanted_who {
    const struct member_id *id;
    const uint8_t *public_key, *token;
    const char *name;
    size_t token_size;
};

static bool is_who(const struct shared *shared, const void *wanted) {
    const struct who *who = (const struct who *)shared;
    const struct wanted_who *want = wanted;
    return memcmp(&who->id, want->id, sizeof who->id) == 0 && who->token_size == want->token_size &&
           memcmp(who->public_key, want->public_key, sizeof who->public_key) == 0 &&
           strcmp(who->name, want->name) == 0 && memcmp(who->token, want->token, want->token_size) == 0;
}

struct who *who_new(struct gossip_shared *pool, const struct member_id *id,
                    const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const char *name, const uint8_t *token,
                    size_t token_size) {
    struct wanted_who want = {id, public_key, token, name, token_size};
    uint64_t hash = hash_of_end(token, token_size) ^ hash_of_end(id->bytes, sizeof id->bytes);
    struct who *who = (struct who *)shared_find(pool, SHARED_IDENTITY, hash, is_who, &want);
    if (who) return who;
    who = calloc(1, sizeof *who + token_size);
    if (!who) return NULL;
    shared_init(&who->shared, SHARED_IDENTITY, hash);
    who->id = *id;
    memcpy(who->public_key, public_key, sizeof who->public_key);
    snprintf(who->name, sizeof who->name, "%s", name);
    who->name_hash = name_hash(who->name);
    who->token_size = token_size;
    memcpy(who->token, token, token_size);
    shared_offer(pool, &who->shared);
    return who;
}

void who_unref(struct who *who) {
    if (who && shared_unref(&who->shared)) free(who);
}

struct wanted_statement {
    const uint8_t *bytes;
    size_t size;
};

static bool is_statement(const struct shared *shared, const void *wanted) {
    const struct statement *said = (const struct statement *)shared;
    const struct wanted_statement *want = wanted;
    return said->size == want->size && memcmp(said->bytes, want->bytes, want->size) == 0;
}

struct statement *statement_new(struct gossip_shared *pool, const struct gossip_crypto *crypto, const struct head *head,
                                const uint8_t *bytes, size_t size) {
    struct wanted_statement want = {bytes, size};
    uint64_t hash = hash_of_end(bytes, size);
    struct statement *said = (struct statement *)shared_find(pool, SHARED_HEAD, hash, is_statement, &want);
    if (said) return said;
    said = malloc(sizeof *said + size);
    if (!said) return NULL;
    *said = (struct statement){.epoch = head->epoch,
                               .incarnation = head->incarnation,
                               .address = head->address,
                               .leaving = head->leaving,
                               .ring = head->ring,
                               .size = size};
    shared_init(&said->shared, SHARED_HEAD, hash);
    memcpy(said->ring_mark, head->ring_mark, sizeof said->ring_mark);
    signed_mark(bytes, size, crypto, said->mark);
    memcpy(said->bytes, bytes, size);
    shared_offer(pool, &said->shared);
    return said;
}

void statement_unref(struct statement *said) {
    if (said && shared_unref(&said->shared)) free(said);
}

static uint64_t hash_of_parts(const struct portrait *want) {
    uint64_t hash = 0, parts[] = {(uintptr_t)want->who, (uintptr_t)want->said, (uintptr_t)want->registry};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32; /* neighbours in memory, and multiples of 16 */
    }
    return hash;
}

static bool is_portrait(const struct shared *shared, const void *wanted) {
    const struct portrait *portrait = (const struct portrait *)shared, *want = wanted;
    return portrait->who == want->who && portrait->said == want->said && portrait->registry == want->registry;
}

static void let_go_of_parts(struct who *who, struct statement *said, struct registry *registry) {
    who_unref(who);
    statement_unref(said);
    registry_unref(registry);
}

struct portrait *portrait_take(struct gossip_shared *pool, struct who *who, struct statement *said,
                               struct registry *registry) {
    struct portrait want = {.id = who->id, .who = who, .said = said, .registry = registry};
    uint64_t hash = hash_of_parts(&want);
    struct portrait *portrait = (struct portrait *)shared_find(pool, SHARED_PORTRAIT, hash, is_portrait, &want);
    if (portrait) {
        let_go_of_parts(who, said, registry);
        return portrait;
    }
    portrait = malloc(sizeof *portrait);
    if (!portrait) return NULL;
    *portrait = want;
    shared_init(&portrait->shared, SHARED_PORTRAIT, hash);
    shared_offer(pool, &portrait->shared);
    return portrait;
}

void portrait_give(struct portrait *portrait, struct who **who, struct statement **said, struct registry **registry) {
    *who = portrait->who;
    *said = portrait->said;
    *registry = portrait->registry;
    if (shared_unref(&portrait->shared)) {
        free(portrait);
        return;
    }
    shared_ref(&portrait->who->shared);
    shared_ref(&portrait->said->shared);
    if (portrait->registry) shared_ref(&portrait->registry->shared);
}

void portrait_unref(struct portrait *portrait) {
    if (!shared_unref(&portrait->shared)) return;
    let_go_of_parts(portrait->who, portrait->said, portrait->registry);
    free(portrait);
}
