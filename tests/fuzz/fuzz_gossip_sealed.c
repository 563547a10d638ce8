/* Bytes from the network before opening, and through the envelope's own checks. Nothing of it is allocated. */
#include "gossip/seal.h"

#include <assert.h>
#include <string.h>

#include <sanitizer/allocator_interface.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool open_always(void *context, const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad,
                        size_t aad_size, const uint8_t *sealed, size_t size, uint8_t *out) {
    (void)context, (void)key, (void)nonce, (void)aad, (void)aad_size;
    memcpy(out, sealed, size - 16);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct gossip_key keys[2] = {{{1, 2, 3, 4}, {0}}, {{0, 0, 0, 0}, {1}}};
    struct gossip_options options = {.federation = "home", .keys = keys, .key_count = 2};
    struct gossip_crypto crypto = {.open = open_always};
    struct chance chance = {1};
    struct seal seal;
    uint8_t plain[SEAL_PLAIN_MAX];
    bool own;
    bool good = seal_init(&seal, &options, &chance);
    assert(good);
    size_t before = __sanitizer_get_current_allocated_bytes();
    long opened = seal_open(&seal, &crypto, data, size, plain, &own);
    assert(opened <= (long)SEAL_PLAIN_MAX);
    assert(__sanitizer_get_current_allocated_bytes() == before);
    return 0;
}
