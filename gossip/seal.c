#include "gossip/seal.h"

#include "gossip/wire.h"

#include <assert.h>
#include <string.h>

#define HEADER_SIZE 17u
#define TAG_SIZE 16u
_Static_assert(HEADER_SIZE + TAG_SIZE == SEAL_OVERHEAD, "the envelope as PROTOCOL.md draws it");

bool seal_init(struct seal *seal, const struct gossip_options *options, struct chance *chance) {
    memset(seal, 0, sizeof *seal);
    if (options->key_count < 1 || options->key_count > GOSSIP_KEYS_MAX || !options->federation) return false;
    seal->federation_size = strlen(options->federation);
    if (seal->federation_size > SEAL_FEDERATION_MAX) return false;
    memcpy(seal->federation, options->federation, seal->federation_size);
    seal_set_keys(seal, options->keys, options->key_count);
    /* Never 0, and far from the end: it grows when the counter wraps. */
    wire_store_u64(seal->prefix, (chance_next(chance) >> 1) | 1);
    return true;
}

void seal_set_keys(struct seal *seal, const struct gossip_key *keys, size_t count) {
    assert(count >= 1 && count <= GOSSIP_KEYS_MAX);
    memset(seal->keys, 0, sizeof seal->keys);
    memcpy(seal->keys, keys, count * sizeof *keys);
    seal->key_count = count;
}

static size_t associated_data(const struct seal *seal, const uint8_t *header, uint8_t out[5 + SEAL_FEDERATION_MAX]) {
    memcpy(out, header, 5);
    memcpy(out + 5, seal->federation, seal->federation_size);
    return 5 + seal->federation_size;
}

size_t seal_close(struct seal *seal, const struct gossip_crypto *crypto, const uint8_t *plain, size_t size,
                  uint8_t out[GOSSIP_DATAGRAM_MAX]) {
    assert(size <= SEAL_PLAIN_MAX);
    if (seal->counter == UINT32_MAX) {
        wire_store_u64(seal->prefix, wire_load_u64(seal->prefix) + 1);
        seal->counter = 0;
    }
    uint32_t counter = seal->counter++;
    out[0] = SEAL_VERSION;
    memcpy(out + 1, seal->keys[0].id, 4);
    memcpy(out + 5, seal->prefix, 8);
    for (int i = 0; i < 4; i++)
        out[13 + i] = (uint8_t)(counter >> (24 - 8 * i));
    uint8_t aad[5 + SEAL_FEDERATION_MAX];
    size_t aad_size = associated_data(seal, out, aad);
    if (!crypto->seal(crypto->context, seal->keys[0].key, out + 5, aad, aad_size, plain, size, out + HEADER_SIZE))
        return 0;
    return size + SEAL_OVERHEAD;
}

long seal_open(const struct seal *seal, const struct gossip_crypto *crypto, const uint8_t *bytes, size_t size,
               uint8_t out[SEAL_PLAIN_MAX], bool *own) {
    if (size < SEAL_OVERHEAD || size > GOSSIP_DATAGRAM_MAX || bytes[0] != SEAL_VERSION) return -1;
    uint8_t aad[5 + SEAL_FEDERATION_MAX];
    size_t aad_size = associated_data(seal, bytes, aad);
    for (size_t i = 0; i < seal->key_count; i++) {
        if (memcmp(seal->keys[i].id, bytes + 1, 4) != 0) continue;
        if (!crypto->open(crypto->context, seal->keys[i].key, bytes + 5, aad, aad_size, bytes + HEADER_SIZE,
                          size - HEADER_SIZE, out))
            continue;
        *own = memcmp(bytes + 5, seal->prefix, 8) == 0;
        return (long)(size - SEAL_OVERHEAD);
    }
    return -1;
}

void seal_place(const uint8_t *bytes, struct replay_place *place) {
    place->prefix = wire_load_u64(bytes + 5);
    place->counter = 0;
    for (int i = 0; i < 4; i++)
        place->counter = place->counter << 8 | bytes[13 + i];
}
