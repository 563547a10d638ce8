/* Bytes from the network before opening, and through the envelope's own checks. Nothing of it is allocated. */
#include "gossip/seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/allocator_interface.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of this thread alone: libFuzzer has one of its own, which allocates while it begins. */
static _Thread_local uint64_t allocations;

static void count_allocation(const volatile void *memory, size_t size) {
    (void)memory, (void)size;
    allocations++;
}
static void ignore_free(const volatile void *memory) {
    (void)memory;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    int installed = __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free);
    assert(installed != 0);
    void *volatile memory = malloc(1);
    free(memory);
    assert(allocations > 0);
    return 0;
}

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
    uint64_t before = allocations;
    long opened = seal_open(&seal, &crypto, data, size, plain, &own);
    assert(opened <= (long)SEAL_PLAIN_MAX);
    assert(allocations == before);
    return 0;
}
