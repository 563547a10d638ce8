/* The crypto of a network of gossips in memory: a plain mixing hash. Honest (a wrong key, a changed byte, another's
 * signature are refused), quick, and of no worth against anybody who looks. */
#ifndef TESTS_UNIT_GOSSIP_NET_CRYPTO_H
#define TESTS_UNIT_GOSSIP_NET_CRYPTO_H

#include "gossip/gossip.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t net_mix(uint64_t hash, const uint8_t *bytes, size_t size) {
    size_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    for (; at < size; at++) {
        hash = (hash ^ bytes[at]) * 0xbf58476d1ce4e5b9u;
        hash ^= hash >> 31;
    }
    hash = (hash ^ size) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 32);
}

static inline void net_digest(uint64_t seed, const uint8_t *bytes, size_t size, uint8_t *out, size_t out_size) {
    uint64_t hash = net_mix(seed * 0x9e3779b97f4a7c15u + 1, bytes, size);
    for (size_t i = 0; i < out_size; i += 8) {
        uint64_t lane = net_mix(hash, (const uint8_t *)&i, sizeof i);
        memcpy(out + i, &lane, out_size - i < 8 ? out_size - i : 8);
    }
}

struct net_identity {
    uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE];
    /* Answers of who_is. */
    bool (*allow)(const char *token);
    uint64_t valid_for_ms;
    bool reads_no_ring;
    uint64_t questions;
};

static inline void net_keystream(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *in, size_t size,
                                 uint8_t *out) {
    uint8_t start[44];
    memcpy(start, key, 32);
    memcpy(start + 32, nonce, 12);
    uint64_t state = net_mix(7, start, sizeof start);
    for (size_t i = 0; i < size; i++) {
        if (i % 8 == 0) state = state * 6364136223846793005u + 1442695040888963407u;
        out[i] = in[i] ^ (uint8_t)(state >> (8 * (i % 8)));
    }
}

static inline void net_tag(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
                           const uint8_t *sealed, size_t size, uint8_t tag[16]) {
    uint64_t hash = net_mix(net_mix(net_mix(net_mix(3, key, 32), nonce, 12), aad, aad_size), sealed, size);
    net_digest(hash, nonce, 12, tag, 16);
}

static inline bool net_seal(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad,
                            size_t aad_size, const uint8_t *plain, size_t size, uint8_t *out) {
    (void)context;
    net_keystream(key, nonce, plain, size, out);
    net_tag(key, nonce, aad, aad_size, out, size, out + size);
    return true;
}

static inline bool net_open(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad,
                            size_t aad_size, const uint8_t *sealed, size_t size, uint8_t *out) {
    (void)context;
    uint8_t tag[16];
    if (size < 16) return false;
    net_tag(key, nonce, aad, aad_size, sealed, size - 16, tag);
    if (memcmp(tag, sealed + size - 16, 16) != 0) return false;
    net_keystream(key, nonce, sealed, size - 16, out);
    return true;
}

static inline void net_sha256(void *context, const uint8_t *bytes, size_t size, uint8_t digest[32]) {
    (void)context;
    net_digest(11, bytes, size, digest, 32);
}

static inline void net_sign_as(const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *bytes, size_t size,
                               uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    net_digest(net_mix(5, public_key, GOSSIP_PUBLIC_KEY_SIZE), bytes, size, signature, GOSSIP_SIGNATURE_SIZE);
}

static inline bool net_sign(void *context, const uint8_t *bytes, size_t size,
                            uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    const struct net_identity *identity = context;
    net_sign_as(identity->public_key, bytes, size, signature);
    return true;
}

static inline bool net_verify(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *bytes,
                              size_t size, const uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    (void)context;
    uint8_t expected[GOSSIP_SIGNATURE_SIZE];
    net_sign_as(public_key, bytes, size, expected);
    return memcmp(expected, signature, sizeof expected) == 0;
}

static inline bool net_id_of(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], struct member_id *id) {
    (void)context;
    if (public_key[0] != 4) return false;
    net_digest(13, public_key, GOSSIP_PUBLIC_KEY_SIZE, id->bytes, 16);
    return true;
}

/* A token is the name of its broker and, behind a slash, the number of its key; one that begins with "bad" is refused
 * by everybody. */
static inline void net_who_is(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *token,
                              size_t token_size, struct gossip_who *who) {
    struct net_identity *identity = context;
    char text[901] = {0};
    memcpy(text, token, token_size < 900 ? token_size : 900);
    memset(who, 0, sizeof *who);
    identity->questions++;
    char *slash = strchr(text, '/');
    bool bound = slash && atoi(slash + 1) == public_key[1];
    if (!bound || strncmp(text, "bad", 3) == 0 || (identity->allow && !identity->allow(text))) {
        snprintf(who->reason, sizeof who->reason, "the token of %.40s is not good here; mint another", text);
        snprintf(who->name, sizeof who->name, "%.*s?", slash && slash < text + 62 ? (int)(slash - text) : 0, text);
        return;
    }
    *slash = '\0';
    who->allowed = true;
    who->valid_for_ms = identity->valid_for_ms ? identity->valid_for_ms : UINT64_MAX;
    snprintf(who->name, sizeof who->name, "%.63s", text);
}

/* A signed ring is "ring", its number, and a byte for each key, of which all 32 bytes of the key are. One that does not
 * end in '.' is forged. */
static inline size_t net_ring(uint8_t number, const char *keys, uint8_t out[16]) {
    return (size_t)snprintf((char *)out, 16, "ring%c%s.", number, keys);
}

static inline struct gossip_key net_key(char fill) {
    struct gossip_key key;
    memset(key.key, fill, sizeof key.key);
    memset(key.id, fill, sizeof key.id);
    if (fill == 0x5a) memcpy(key.id, "key1", 4);
    return key;
}

static inline void net_read_ring(void *context, const uint8_t *bytes, size_t size, struct gossip_ring *ring) {
    const struct net_identity *identity = context;
    memset(ring, 0, sizeof *ring);
    if ((identity && identity->reads_no_ring) || size < 7 || size - 6 > GOSSIP_KEYS_MAX ||
        memcmp(bytes, "ring", 4) != 0 || bytes[size - 1] != '.') {
        snprintf(ring->reason, sizeof ring->reason, "no ring of ours; sign one");
        return;
    }
    ring->good = true;
    ring->number = bytes[4];
    net_digest(17, bytes, size, ring->digest, sizeof ring->digest);
    for (size_t i = 5; i + 1 < size; i++)
        ring->keys[ring->key_count++] = net_key((char)bytes[i]);
}

#endif
