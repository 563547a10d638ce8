/* The cores' pure questions, answered by auth/: sealing, hashing, signing, and who somebody is. */
#include "daemon/node_inside.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "auth/seal.h"

static_assert(AUTH_PUBLIC_KEY_SIZE == GOSSIP_PUBLIC_KEY_SIZE, "one kind of key");
static_assert(AUTH_RING_MAX == GOSSIP_KEYS_MAX && AUTH_SIGNED_RING_MAX == GOSSIP_RING_SIZE_MAX, "one kind of ring");
static_assert(sizeof(((struct auth_verdict *)0)->name) == GOSSIP_NAME_MAX + 1, "one size of name");

static bool seal(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
                 const uint8_t *plain, size_t size, uint8_t *out) {
    (void)context;
    return auth_seal(key, nonce, aad, aad_size, plain, size, out);
}

static bool open_sealed(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad,
                        size_t aad_size, const uint8_t *sealed, size_t size, uint8_t *out) {
    (void)context;
    return auth_open(key, nonce, aad, aad_size, sealed, size, out);
}

static void sha256(void *context, const uint8_t *bytes, size_t size, uint8_t digest[32]) {
    (void)context;
    auth_sha256(bytes, size, digest);
}

static bool sign(void *context, const uint8_t *bytes, size_t size, uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    const struct node *node = context;
    return auth_sign(node->trust.key, bytes, size, signature);
}

static bool verify(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *bytes, size_t size,
                   const uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    (void)context;
    struct auth_key *key = NULL;
    if (auth_key_from_point(public_key, &key) != AUTH_OK) return false;
    const bool good = auth_verify(key, bytes, size, signature);
    auth_key_free(key);
    return good;
}

static bool id_of(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], struct member_id *id) {
    (void)context;
    struct auth_key *key = NULL;
    if (auth_key_from_point(public_key, &key) != AUTH_OK) return false;
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
    auth_key_thumbprint(key, thumbprint);
    auth_key_free(key);
    memcpy(id->bytes, thumbprint, sizeof(id->bytes));
    return true;
}

/* Gossip brings a whole public key, a link the thumbprint that its TLS certificate proved: the same question twice. */
static void gossip_who_is(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *token,
                          size_t token_size, struct gossip_who *who) {
    const struct node *node = context;
    struct auth_verdict verdict;
    auth_trust_check_point(&node->trust, public_key, (const char *)token, token_size, &verdict);
    *who = (struct gossip_who){.allowed = verdict.allowed, .valid_for_ms = verdict.valid_for_ms};
    snprintf(who->name, sizeof(who->name), "%s", verdict.name);
    snprintf(who->reason, sizeof(who->reason), "%s", verdict.reason);
}

static void read_ring(void *context, const uint8_t *bytes, size_t size, struct gossip_ring *ring) {
    const struct node *node = context;
    struct auth_signed_ring read;
    *ring = (struct gossip_ring){0};
    ring->good = auth_signed_ring_verify((const char *)bytes, size, node->trust.issuers, node->trust.issuer_count,
                                         node->federation, &read, ring->reason) == AUTH_OK;
    if (!ring->good) return;
    ring->number = read.number;
    memcpy(ring->digest, read.digest, sizeof(ring->digest));
    ring->key_count = read.count;
    for (size_t i = 0; i < read.count; i++) {
        memcpy(ring->keys[i].id, read.keys[i].id, sizeof(ring->keys[i].id));
        memcpy(ring->keys[i].key, read.keys[i].key, sizeof(ring->keys[i].key));
    }
    explicit_bzero(&read, sizeof(read));
}

static void link_who_is(void *context, const uint8_t key_thumbprint[32], const uint8_t *token, size_t token_size,
                        struct peer_answer *answer) {
    const struct node *node = context;
    struct auth_verdict verdict;
    auth_trust_check(&node->trust, key_thumbprint, (const char *)token, token_size, &verdict);
    *answer = (struct peer_answer){.allowed = verdict.allowed, .valid_for_ms = verdict.valid_for_ms};
    memcpy(answer->id.bytes, verdict.id, sizeof(answer->id.bytes));
    if (answer->allowed) snprintf(answer->name, sizeof(answer->name), "%s", verdict.name);
    if (answer->allowed && node->gossip != NULL) {
        struct member_id id;
        memcpy(id.bytes, verdict.id, sizeof(id.bytes));
        answer->allowed = gossip_name_is_free(node->gossip, &id, verdict.name, verdict.reason);
    }
    snprintf(answer->reason, sizeof(answer->reason), "%s", verdict.reason);
}

struct gossip_crypto node_gossip_crypto(struct node *node) {
    return (struct gossip_crypto){
        .context = node,
        .seal = seal,
        .open = open_sealed,
        .sha256 = sha256,
        .sign = sign,
        .verify = verify,
        .id_of = id_of,
        .who_is = gossip_who_is,
        .read_ring = read_ring,
    };
}

struct peer_questions node_peer_questions(struct node *node) {
    return (struct peer_questions){.context = node, .who_is = link_who_is};
}
