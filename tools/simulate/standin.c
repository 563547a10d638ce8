#include "tools/simulate/standin.h"

#include <stdio.h>

__extension__ typedef unsigned __int128 wide;

/* wyhash's step (Wang Yi, public domain): both halves of the product. */
static inline uint64_t fold(uint64_t a, uint64_t b) {
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t load(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

uint64_t standin_hash(uint64_t seed, const void *data, size_t size) {
    const uint8_t *bytes = data;
    /* Mixed first: a seed that only meets the bytes by exclusive or can be undone by them. */
    uint64_t hash = fold(seed ^ 0xa0761d6478bd642fu, 0x8bb84b93962eacc9u);
    size_t at = 0;
    for (; at + 16 <= size; at += 16)
        hash = fold(load(bytes + at) ^ 0xe7037ed1a0b428dbu, load(bytes + at + 8) ^ hash);
    uint8_t rest[16] = {0};
    if (at < size) memcpy(rest, bytes + at, size - at);
    hash = fold(load(rest) ^ 0x8ebc6af09c88c6e3u, load(rest + 8) ^ hash);
    return fold(hash ^ size, 0x589965cc75374cc3u);
}

/* As many bytes as are wanted, from one hash. */
static void spread(uint64_t hash, uint8_t *out, size_t size) {
    for (size_t at = 0; at < size; at += 8) {
        memcpy(out + at, &hash, size - at < 8 ? size - at : 8);
        hash = fold(hash ^ 0x1d8e4e27c47d124fu, 0x9e3779b97f4a7c15u + at);
    }
}

static uint64_t seal_hash(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
                          const uint8_t *plain, size_t size) {
    uint64_t hash = standin_hash(1, key, 32);
    hash = standin_hash(hash, nonce, 12);
    return standin_hash(standin_hash(hash, aad, aad_size), plain, size);
}

static bool standin_seal(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad,
                         size_t aad_size, const uint8_t *plain, size_t size, uint8_t *out) {
    (void)context;
    memcpy(out, plain, size);
    spread(seal_hash(key, nonce, aad, aad_size, plain, size), out + size, 16);
    return true;
}

static bool standin_open(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad,
                         size_t aad_size, const uint8_t *sealed, size_t size, uint8_t *out) {
    (void)context;
    uint8_t tag[16];
    if (size < sizeof tag) return false;
    spread(seal_hash(key, nonce, aad, aad_size, sealed, size - sizeof tag), tag, sizeof tag);
    if (memcmp(tag, sealed + size - sizeof tag, sizeof tag) != 0) return false;
    memcpy(out, sealed, size - sizeof tag);
    return true;
}

static void standin_sha256(void *context, const uint8_t *bytes, size_t size, uint8_t digest[32]) {
    (void)context;
    spread(standin_hash(2, bytes, size), digest, 32);
}

static uint64_t secret_of(const struct standin_world *world, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE]) {
    return standin_hash(world->salt, public_key, GOSSIP_PUBLIC_KEY_SIZE);
}

static void sign_with(uint64_t secret, const uint8_t *bytes, size_t size, uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    spread(standin_hash(secret, bytes, size), signature, GOSSIP_SIGNATURE_SIZE);
}

static bool standin_sign(void *context, const uint8_t *bytes, size_t size, uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    struct standin *standin = context;
    sign_with(standin->secret, bytes, size, signature);
    if (standin->on_signed) standin->on_signed(standin->on_signed_context, bytes, size);
    return true;
}

bool standin_verify(const struct standin_world *world, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE],
                    const uint8_t *bytes, size_t size, const uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    uint8_t expected[GOSSIP_SIGNATURE_SIZE];
    sign_with(secret_of(world, public_key), bytes, size, expected);
    return memcmp(expected, signature, sizeof expected) == 0;
}

static bool verify_port(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *bytes,
                        size_t size, const uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    const struct standin *standin = context;
    return standin->believes_all || standin_verify(standin->world, public_key, bytes, size, signature);
}

struct member_id standin_id(const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE]) {
    struct member_id id;
    spread(standin_hash(3, public_key, GOSSIP_PUBLIC_KEY_SIZE), id.bytes, sizeof id.bytes);
    return id;
}

static bool id_port(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], struct member_id *id) {
    (void)context;
    if (public_key[0] != 4) return false;
    *id = standin_id(public_key);
    return true;
}

/* A token: its hash, when it ends, the name; bound to the key by the hash, which only the issuer can make. */
struct token {
    uint64_t hash, expires_ms;
    char name[GOSSIP_NAME_MAX + 1];
};
_Static_assert(sizeof(struct token) <= STANDIN_TOKEN_SIZE, "a token has room for what it says");

static uint64_t token_hash(const struct standin_world *world, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE],
                           const uint8_t *token) {
    uint64_t issuer = standin_hash(world->salt ^ 4, public_key, GOSSIP_PUBLIC_KEY_SIZE);
    return standin_hash(issuer, token + sizeof(uint64_t), STANDIN_TOKEN_SIZE - sizeof(uint64_t));
}

void standin_mint(const struct standin *standin, const char *name, uint64_t expires_ms,
                  uint8_t token[STANDIN_TOKEN_SIZE]) {
    struct token said = {.expires_ms = expires_ms};
    snprintf(said.name, sizeof said.name, "%s", name);
    memset(token, 0, STANDIN_TOKEN_SIZE);
    memcpy(token, &said, sizeof said);
    said.hash = token_hash(standin->world, standin->public_key, token);
    memcpy(token, &said, sizeof said);
}

static void who_port(void *context, const uint8_t public_key[GOSSIP_PUBLIC_KEY_SIZE], const uint8_t *token,
                     size_t token_size, struct gossip_who *who) {
    const struct standin *standin = context;
    struct token said;
    memset(who, 0, sizeof *who);
    if (token_size == STANDIN_TOKEN_SIZE) memcpy(&said, token, sizeof said);
    if (token_size != STANDIN_TOKEN_SIZE || said.hash != token_hash(standin->world, public_key, token)) {
        snprintf(who->reason, sizeof who->reason, "its token is not signed by an issuer we know; mint another");
        return;
    }
    int64_t wall_ms = (int64_t)(*standin->world->now_us / 1000) + standin->wall_offset_ms;
    bool over = said.expires_ms != UINT64_MAX && wall_ms > 0 && (uint64_t)wall_ms >= said.expires_ms;
    if (over) {
        snprintf(who->reason, sizeof who->reason, "its token is over; mint another");
        return;
    }
    who->allowed = true;
    who->valid_for_ms = said.expires_ms == UINT64_MAX ? UINT64_MAX : (uint64_t)((int64_t)said.expires_ms - wall_ms);
    memcpy(who->name, said.name, sizeof who->name);
}

static struct gossip_key key_of(const uint8_t bytes[32]) {
    struct gossip_key key;
    uint64_t hash = standin_hash(7, bytes, sizeof key.key);
    memcpy(key.key, bytes, sizeof key.key);
    memcpy(key.id, &hash, sizeof key.id);
    return key;
}

struct gossip_key standin_key(uint32_t number) {
    uint8_t bytes[32];
    spread(standin_hash(6, &number, sizeof number), bytes, sizeof bytes);
    return key_of(bytes);
}

/* A ring: its hash, which only the issuer can make, for one federation, and what it says. */
struct ring {
    uint64_t hash, number, key_count;
    uint8_t keys[GOSSIP_KEYS_MAX][32];
};
_Static_assert(sizeof(struct ring) <= STANDIN_RING_SIZE, "a ring has room for what it says");

static uint64_t ring_hash(const struct standin_world *world, const char *federation, const uint8_t *ring) {
    uint64_t issuer = standin_hash(world->salt ^ 8, federation, strlen(federation));
    return standin_hash(issuer, ring + sizeof(uint64_t), STANDIN_RING_SIZE - sizeof(uint64_t));
}

void standin_sign_ring(const struct standin_world *world, const char *federation, uint64_t number,
                       const struct gossip_key *keys, size_t count, uint8_t ring[STANDIN_RING_SIZE]) {
    struct ring said = {.number = number, .key_count = count};
    for (size_t i = 0; i < count; i++)
        memcpy(said.keys[i], keys[i].key, sizeof said.keys[i]);
    memset(ring, 0, STANDIN_RING_SIZE);
    memcpy(ring, &said, sizeof said);
    said.hash = ring_hash(world, federation, ring);
    memcpy(ring, &said, sizeof said);
}

void standin_read_ring(const struct standin_world *world, const char *federation, const uint8_t *ring, size_t size,
                       struct gossip_ring *read) {
    struct ring said;
    memset(read, 0, sizeof *read);
    if (size == STANDIN_RING_SIZE) memcpy(&said, ring, sizeof said);
    if (size != STANDIN_RING_SIZE || said.hash != ring_hash(world, federation, ring)) {
        snprintf(read->reason, sizeof read->reason, "it is not signed by an issuer we know, for our federation");
        return;
    }
    read->good = true;
    read->number = said.number;
    read->key_count = said.key_count;
    standin_sha256(NULL, ring, size, read->digest);
    for (size_t i = 0; i < said.key_count; i++)
        read->keys[i] = key_of(said.keys[i]);
}

static void ring_port(void *context, const uint8_t *ring, size_t size, struct gossip_ring *read) {
    const struct standin *standin = context;
    standin_read_ring(standin->world, standin->federation, ring, size, read);
}

void standin_init(struct standin *standin, const struct standin_world *world, uint32_t identity) {
    memset(standin, 0, sizeof *standin);
    standin->world = world;
    spread(standin_hash(world->salt ^ 5, &identity, sizeof identity), standin->public_key, GOSSIP_PUBLIC_KEY_SIZE);
    standin->public_key[0] = 4;
    memcpy(standin->public_key + 1, &identity, sizeof identity);
    standin->secret = secret_of(world, standin->public_key);
}

struct gossip_crypto standin_crypto(struct standin *standin) {
    return (struct gossip_crypto){.context = standin,
                                  .seal = standin_seal,
                                  .open = standin_open,
                                  .sha256 = standin_sha256,
                                  .sign = standin_sign,
                                  .verify = verify_port,
                                  .id_of = id_port,
                                  .who_is = who_port,
                                  .read_ring = ring_port};
}
