#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "auth/seal.h"

#define TEXT_MAX 64

static size_t hex(const char *text, uint8_t *out) {
    size_t size = strlen(text) / 2;
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
    return size;
}

/* Test cases 13 to 16 of "The Galois/Counter Mode of Operation (GCM)", McGrew and Viega, as submitted to NIST. */
static const struct vector {
    const char *key, *nonce, *aad, *plain, *sealed;
} vectors[] = {
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "", "",
     "530f8afbc74536b9a963b4f1c4cb738b"},
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000", "",
     "00000000000000000000000000000000", "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657b"
     "a637b391aafd255",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0ab"
     "cc9f662898015ad"
     "b094dac5d93471bdec1a502270e3cc6c"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657b"
     "a637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0ab"
     "cc9f662"
     "76fc6ece0f4e1768cddf8853bb2d551b"},
};

static void sealing_is_nists_aes_256_gcm(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint8_t key[32], nonce[12], aad[32], plain[TEXT_MAX], expected[TEXT_MAX + AUTH_TAG_SIZE],
            sealed[TEXT_MAX + AUTH_TAG_SIZE], opened[TEXT_MAX];
        hex(vectors[i].key, key);
        hex(vectors[i].nonce, nonce);
        size_t aad_size = hex(vectors[i].aad, aad), size = hex(vectors[i].plain, plain);
        assert_int_equal(hex(vectors[i].sealed, expected), size + AUTH_TAG_SIZE);
        assert_true(auth_seal(key, nonce, aad, aad_size, plain, size, sealed));
        assert_memory_equal(sealed, expected, size + AUTH_TAG_SIZE);
        assert_true(auth_open(key, nonce, aad, aad_size, sealed, size + AUTH_TAG_SIZE, opened));
        assert_memory_equal(opened, plain, size);
    }
}

static void any_changed_bit_keeps_it_closed(void **state) {
    (void)state;
    const struct vector *vector = &vectors[3];
    uint8_t key[32], nonce[12], aad[32], sealed[TEXT_MAX + AUTH_TAG_SIZE], opened[TEXT_MAX], zero[TEXT_MAX] = {0};
    hex(vector->key, key);
    hex(vector->nonce, nonce);
    size_t aad_size = hex(vector->aad, aad), size = hex(vector->sealed, sealed);
    struct {
        uint8_t *bytes;
        size_t size;
    } parts[] = {{key, 32}, {nonce, 12}, {aad, aad_size}, {sealed, size}};
    for (size_t part = 0; part < 4; part++) {
        for (size_t bit = 0; bit < 8 * parts[part].size; bit++) {
            parts[part].bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            memset(opened, 0xAA, sizeof opened);
            assert_false(auth_open(key, nonce, aad, aad_size, sealed, size, opened));
            assert_memory_equal(opened, zero, size - AUTH_TAG_SIZE); /* nothing unproved is left for use */
            parts[part].bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    for (size_t shorter = 0; shorter < size; shorter++)
        assert_false(auth_open(key, nonce, aad, aad_size, sealed, shorter, opened));
    assert_false(auth_open(key, nonce, aad, aad_size - 1, sealed, size, opened));
    assert_true(auth_open(key, nonce, aad, aad_size, sealed, size, opened));
}

static void digest_is_that_of_fips_180_4(void **state) {
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t digest[32], expected[32];
        hex(cases[i].digest, expected);
        auth_sha256((const uint8_t *)cases[i].text, strlen(cases[i].text), digest);
        assert_memory_equal(digest, expected, 32);
    }
    uint8_t digest[32], expected[32];
    hex(cases[0].digest, expected);
    auth_sha256(NULL, 0, digest);
    assert_memory_equal(digest, expected, 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealing_is_nists_aes_256_gcm),
        cmocka_unit_test(any_changed_bit_keeps_it_closed),
        cmocka_unit_test(digest_is_that_of_fips_180_4),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
