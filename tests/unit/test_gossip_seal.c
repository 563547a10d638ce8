#include "gossip_net.h"

#include "gossip/seal.h"

static const struct gossip_crypto crypto = {.seal = net_seal, .open = net_open};

static struct seal make(const char *federation, uint8_t first_key, uint8_t second_key, uint64_t seed) {
    struct gossip_key keys[2];
    for (int i = 0; i < 2; i++) {
        memset(&keys[i], i == 0 ? first_key : second_key, sizeof keys[i]);
    }
    struct gossip_options options = {.federation = federation, .keys = keys, .key_count = second_key ? 2 : 1};
    struct chance chance = {seed};
    struct seal seal;
    assert_true(seal_init(&seal, &options, &chance));
    return seal;
}

static long pass(struct seal *from, const struct seal *to, bool *own) {
    uint8_t sealed[GOSSIP_DATAGRAM_MAX], plain[SEAL_PLAIN_MAX];
    size_t size = seal_close(from, &crypto, (const uint8_t *)"hello", 5, sealed);
    assert_int_equal(size, 5 + SEAL_OVERHEAD);
    long opened = seal_open(to, &crypto, sealed, size, plain, own);
    if (opened == 5) assert_memory_equal(plain, "hello", 5);
    return opened;
}

static void the_first_key_seals_and_all_open(void **unused) {
    (void)unused;
    struct seal old = make("home", 1, 0, 1), rotating = make("home", 2, 1, 2), done = make("home", 2, 0, 3);
    bool own;
    assert_int_equal(pass(&old, &rotating, &own), 5);
    assert_false(own);
    assert_int_equal(pass(&rotating, &done, &own), 5);
    assert_int_equal(pass(&rotating, &old, &own), -1);
    assert_int_equal(pass(&old, &done, &own), -1);
    assert_int_equal(pass(&old, &old, &own), 5);
    assert_true(own);
}

static void another_federation_does_not_open(void **unused) {
    (void)unused;
    struct seal here = make("home", 1, 0, 1), there = make("homer", 1, 0, 2);
    bool own;
    assert_int_equal(pass(&here, &there, &own), -1);
}

static void every_byte_counts(void **unused) {
    (void)unused;
    struct seal seal = make("home", 1, 0, 1);
    uint8_t sealed[GOSSIP_DATAGRAM_MAX], plain[SEAL_PLAIN_MAX];
    bool own;
    size_t size = seal_close(&seal, &crypto, (const uint8_t *)"hello", 5, sealed);
    for (size_t i = 0; i < size; i++) {
        sealed[i] ^= 1;
        assert_int_equal(seal_open(&seal, &crypto, sealed, size, plain, &own), -1);
        sealed[i] ^= 1;
        assert_int_equal(seal_open(&seal, &crypto, sealed, i, plain, &own), -1);
    }
    assert_int_equal(seal_open(&seal, &crypto, sealed, size, plain, &own), 5);
}

static void no_nonce_is_used_twice_even_when_the_counter_ends(void **unused) {
    (void)unused;
    struct seal seal = make("home", 1, 0, 1);
    uint8_t nonces[40][12], sealed[GOSSIP_DATAGRAM_MAX];
    uint8_t prefix[8];
    memcpy(prefix, seal.prefix, 8);
    for (int i = 0; i < 40; i++) {
        if (i == 20) seal.counter = UINT32_MAX - 3;
        assert_true(seal_close(&seal, &crypto, (const uint8_t *)"x", 1, sealed) > 0);
        memcpy(nonces[i], sealed + 5, 12);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(nonces[i], nonces[j], 12);
    }
    assert_memory_not_equal(prefix, seal.prefix, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_key_seals_and_all_open),
        cmocka_unit_test(another_federation_does_not_open),
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(no_nonce_is_used_twice_even_when_the_counter_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
