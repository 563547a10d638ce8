#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/keys.h"

/* One pair in the forms that openssl writes. */
static const char sec1_pem[] = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
                               "-----BEGIN EC PRIVATE KEY-----\n"
                               "MHcCAQEEIPqeRkrlIEri2gNJWouiasV992gKzIJVFBS+KF7CJHOpoAoGCCqGSM49\n"
                               "AwEHoUQDQgAEhm3yTQ5TffSMkwGrY/C4cfwPxnRuI3JOMSToX+IGX712xIiI+F4q\n"
                               "pYMby0NkFj3E2vspU2AisaR76b2jK5O4Zg==\n-----END EC PRIVATE KEY-----\n";
static const char pkcs8_pem[] = "-----BEGIN PRIVATE KEY-----\n"
                                "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+p5GSuUgSuLaA0la\n"
                                "i6JqxX33aArMglUUFL4oXsIkc6mhRANCAASGbfJNDlN99IyTAatj8Lhx/A/GdG4j\n"
                                "ck4xJOhf4gZfvXbEiIj4XiqlgxvLQ2QWPcTa+ylTYCKxpHvpvaMrk7hm\n-----END PRIVATE KEY-----\n";
static const char public_pem[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEhm3yTQ5TffSMkwGrY/C4cfwPxnRu\n"
    "I3JOMSToX+IGX712xIiI+F4qpYMby0NkFj3E2vspU2AisaR76b2jK5O4Zg==\n-----END PUBLIC KEY-----\n";
static const char compressed_pem[] =
    "-----BEGIN PUBLIC KEY-----\n"
    "MDkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDIgAChm3yTQ5TffSMkwGrY/C4cfwPxnRu\nI3JOMSToX+IGX70=\n-----END PUBLIC KEY-----\n";

static void hex(const char *text, uint8_t *out, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
}

static struct auth_key *parse(const char *pem) {
    struct auth_key *key = NULL;
    assert_int_equal(auth_key_parse(pem, strlen(pem), &key), AUTH_OK);
    return key;
}

static void thumbprint_is_that_of_rfc_9449(void **state) {
    (void)state;
    /* The key of RFC 9449 figure 2 and the jkt that section 6.1 computes of it. */
    uint8_t point[AUTH_PUBLIC_KEY_SIZE] = {4}, thumbprint[AUTH_THUMBPRINT_SIZE];
    assert_int_equal(auth_base64url_decode("l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs", 43, point + 1, 32), 32);
    assert_int_equal(auth_base64url_decode("9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA", 43, point + 33, 32), 32);
    struct auth_key *key;
    assert_int_equal(auth_key_from_point(point, &key), AUTH_OK);
    char text[44];
    auth_key_thumbprint(key, thumbprint);
    auth_base64url_encode(thumbprint, 32, text);
    assert_string_equal(text, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
    auth_key_free(key);
}

/* Expected values computed with plain curve arithmetic elsewhere: d = (c mod (n - 1)) + 1. */
static void entropy_gives_the_pair_of_fips_186_5(void **state) {
    (void)state;
    static const struct {
        const char *entropy, *point, *thumbprint;
    } cases[] = {
        {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f",
         "043306be3e4aad764674da3e995b0417c0d7c4a93cd7727988f8e8edf75f7c298f4ac85b7d5d2bbea4cfad3cc2ba8bdf5cece54aa9d6b"
         "d2c4dc76b57645520064d",
         "3qmUQnl9Fva7_oovmJaCLyTfmakPalb6mBk5tkJZ8jI"},
        {"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", /* d = 1:
                                                                                                                the
                                                                                                                generator
                                                                                                              */
         "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b3"
         "15ececbb6406837bf51f5",
         "xx0BcA-wMohw8atYDJOe6peGModklG2wRHBlXHMvl0M"},
        {"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
         "044b0bac526bd810f3663527e929ee8e2188d5070146396d862fb139cbf107568cefa020c62d211153424929ffea5d1ad19fc3ea0fe3f"
         "0399039cdb5bcb434e195",
         "zNPIXLacw68GEL82wWEmK383E71EwmNyMOpzpTTsbBc"},
        {"00000000000000000000000000000000ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550", /* n - 1: d
                                                                                                                = 1
                                                                                                                again */
         "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b3"
         "15ececbb6406837bf51f5",
         "xx0BcA-wMohw8atYDJOe6peGModklG2wRHBlXHMvl0M"},
        {"00000000000000000000000000000000ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63254f", /* n - 2:
                                                                                                                the
                                                                                                                largest
                                                                                                                d */
         "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296b01cbd1c01e58065711814b583f061e9d431cca994c"
         "ea1313449bf97c840ae0a",
         "WUvr_3qhO1HgZwQzcjEwvNYMQct45rClzuRw4DNhrAA"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t entropy[AUTH_ENTROPY_SIZE], expected[AUTH_PUBLIC_KEY_SIZE], point[AUTH_PUBLIC_KEY_SIZE],
            thumbprint[AUTH_THUMBPRINT_SIZE];
        char text[44];
        struct auth_key *key;
        hex(cases[i].entropy, entropy, sizeof entropy);
        hex(cases[i].point, expected, sizeof expected);
        assert_int_equal(auth_key_new(entropy, &key), AUTH_OK);
        assert_true(auth_key_is_private(key));
        auth_key_point(key, point);
        assert_memory_equal(point, expected, sizeof point);
        auth_key_thumbprint(key, thumbprint);
        auth_base64url_encode(thumbprint, 32, text);
        assert_string_equal(text, cases[i].thumbprint);
        auth_key_free(key);
    }
}

static void same_entropy_gives_the_same_private_key(void **state) {
    (void)state;
    uint8_t entropy[AUTH_ENTROPY_SIZE];
    struct auth_key *a, *b, *c;
    char *a_pem, *b_pem, *c_pem;
    memset(entropy, 0x5A, sizeof entropy);
    assert_int_equal(auth_key_new(entropy, &a), AUTH_OK);
    assert_int_equal(auth_key_new(entropy, &b), AUTH_OK);
    entropy[AUTH_ENTROPY_SIZE - 1] ^= 1;
    assert_int_equal(auth_key_new(entropy, &c), AUTH_OK);
    assert_int_equal(auth_key_private_pem(a, &a_pem), AUTH_OK);
    assert_int_equal(auth_key_private_pem(b, &b_pem), AUTH_OK);
    assert_int_equal(auth_key_private_pem(c, &c_pem), AUTH_OK);
    assert_string_equal(a_pem, b_pem);
    assert_string_not_equal(a_pem, c_pem);
    free(a_pem), free(b_pem), free(c_pem);
    auth_key_free(a), auth_key_free(b), auth_key_free(c);
}

static void every_spelling_of_a_pair_is_the_same_key(void **state) {
    (void)state;
    static const struct {
        const char *pem;
        bool is_private;
    } cases[] = {{sec1_pem, true}, {pkcs8_pem, true}, {public_pem, false}, {compressed_pem, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct auth_key *key = parse(cases[i].pem);
        char *pem = NULL;
        assert_int_equal(auth_key_is_private(key), cases[i].is_private);
        assert_int_equal(auth_key_public_pem(key, &pem), AUTH_OK);
        assert_string_equal(pem, public_pem);
        free(pem);
        pem = NULL;
        assert_int_equal(auth_key_private_pem(key, &pem), cases[i].is_private ? AUTH_OK : AUTH_NO_PRIVATE_KEY);
        if (cases[i].is_private) assert_string_equal(pem, pkcs8_pem);
        free(pem);
        auth_key_free(key);
    }
}

static void text_need_not_end_in_zero(void **state) {
    (void)state;
    size_t size = strlen(public_pem);
    char *exact = malloc(size); /* so that a read past it is noticed */
    struct auth_key *key;
    memcpy(exact, public_pem, size);
    assert_int_equal(auth_key_parse(exact, size, &key), AUTH_OK);
    auth_key_free(key);
    free(exact);
}

static void what_is_no_p256_key_is_malformed(void **state) {
    (void)state;
    static const char *const cases[] = {
        "x",
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n",
        /* P-384 */
        "-----BEGIN PRIVATE KEY-----\n"
        "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDA7+"
        "aELnlna4fM7jRG8\nxh1BzaEhc7gPyPt1ohVO0F3BTPhsIldp0yE53VpEd5xkcJuhZANiAAS8CGnXWz2U\n"
        "Hv+B6s35wiUDEmQk0psJKtPtCtsu9KtQ8lffMq7ntZ3Bcx0lizYtU+n4oM/"
        "VJ0k2\nSZiYDiq9XavIODL8fjMV+xVjBruteUsa+3czpSC2bzxg/WG8UZl9HXo=\n"
        "-----END PRIVATE KEY-----\n",
        /* Ed25519 */
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIPM9ox8HoaxbT1G7JLsxb2Ydfo29w/Woj/Dlk76uqtTY\n-----END "
        "PRIVATE KEY-----\n",
        /* with a password, which must not be asked for */
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: "
        "AES-256-CBC,F01C37890C5CAC64F3712BBB820B813B\n\n"
        "P8yd5Jk4VA5kJ8x6Kdz9E0FAEn6sHs/K3158qWjbZVI/"
        "ZZ0C1YRmn2AXjyBM9Xa5\nBkcnv4khgl1UhBkgldt1wZgeAiFmsEYSyKvSdNce9SSweXfsvk0qCcKc1dzgc3tg\n"
        "GFWOhFbrnKkItBKVlP7DsBTZW2tPyNdh7BvSgE7F3nY=\n-----END EC PRIVATE KEY-----\n",
    };
    struct auth_key *key = (struct auth_key *)(uintptr_t)8;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(auth_key_parse(cases[i], strlen(cases[i]), &key), AUTH_MALFORMED);
        assert_ptr_equal(key, (void *)(uintptr_t)8); /* untouched on failure */
    }
    assert_int_equal(auth_key_parse("", 0, &key), AUTH_MALFORMED);
    for (size_t size = 0; size + 30 < strlen(pkcs8_pem); size += 7)
        assert_int_equal(auth_key_parse(pkcs8_pem, size, &key), AUTH_MALFORMED);
}

static void point_off_the_curve_is_malformed(void **state) {
    (void)state;
    struct auth_key *key = parse(public_pem), *other;
    uint8_t point[AUTH_PUBLIC_KEY_SIZE];
    auth_key_point(key, point);
    point[64] ^= 1;
    assert_int_equal(auth_key_from_point(point, &other), AUTH_MALFORMED);
    point[64] ^= 1;
    for (unsigned first = 0; first < 256; first++) {
        if (first == 4) continue;
        point[0] = (uint8_t)first;
        assert_int_equal(auth_key_from_point(point, &other), AUTH_MALFORMED);
    }
    auth_key_free(key);
}

static void signature_of_rfc_6979_verifies(void **state) {
    (void)state;
    /* RFC 6979 section A.2.5, SHA-256, message "sample". */
    uint8_t point[AUTH_PUBLIC_KEY_SIZE], signature[64];
    struct auth_key *key;
    hex("0460FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB67903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E"
        "9F5177A3C294D4462299",
        point, sizeof point);
    hex("EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4"
        "064DC4AB2F843ACDA8",
        signature, 64);
    assert_int_equal(auth_key_from_point(point, &key), AUTH_OK);
    assert_true(auth_verify(key, (const uint8_t *)"sample", 6, signature));
    assert_false(auth_verify(key, (const uint8_t *)"Sample", 6, signature));
    assert_false(auth_verify(key, (const uint8_t *)"sample", 5, signature));
    for (size_t bit = 0; bit < 512; bit += 5) {
        signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(auth_verify(key, (const uint8_t *)"sample", 6, signature));
        signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(signature, 0, sizeof signature);
    assert_false(auth_verify(key, (const uint8_t *)"sample", 6, signature));
    memset(signature, 0xFF, sizeof signature);
    assert_false(auth_verify(key, (const uint8_t *)"sample", 6, signature));
    auth_key_free(key);
}

static void only_a_private_key_signs(void **state) {
    (void)state;
    struct auth_key *pair = parse(pkcs8_pem), *half = parse(public_pem);
    uint8_t signature[64];
    for (size_t size = 0; size < 200; size += 33) {
        uint8_t bytes[200];
        memset(bytes, 'x', sizeof bytes);
        assert_true(auth_sign(pair, bytes, size, signature));
        assert_true(auth_verify(half, bytes, size, signature));
        bytes[0] ^= 1;
        if (size > 0) assert_false(auth_verify(half, bytes, size, signature));
    }
    assert_false(auth_sign(half, (const uint8_t *)"a", 1, signature));
    auth_key_free(pair);
    auth_key_free(half);
}

static void certificate_carries_the_key_and_signs_itself(void **state) {
    (void)state;
    struct auth_key *pair = parse(pkcs8_pem), *half = parse(public_pem);
    uint8_t *der = NULL, point[AUTH_PUBLIC_KEY_SIZE], in_certificate[AUTH_PUBLIC_KEY_SIZE];
    size_t size = 0, point_size = 0;
    assert_int_equal(auth_key_certificate(half, "edge-1", &der, &size), AUTH_NO_PRIVATE_KEY);
    assert_int_equal(auth_key_certificate(pair, "edge-1", &der, &size), AUTH_OK);
    const uint8_t *at = der;
    X509 *certificate = d2i_X509(NULL, &at, (long)size);
    assert_non_null(certificate);
    assert_ptr_equal(at, der + size);
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    assert_int_equal(X509_verify(certificate, key), 1);
    assert_int_equal(EVP_PKEY_get_octet_string_param(key, "pub", in_certificate, sizeof in_certificate, &point_size),
                     1);
    auth_key_point(pair, point);
    assert_memory_equal(in_certificate, point, sizeof point);
    assert_int_equal(X509_cmp_current_time(X509_get0_notBefore(certificate)), -1);
    assert_int_equal(X509_cmp_current_time(X509_get0_notAfter(certificate)), 1);
    assert_true(X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) == 0);
    X509_free(certificate);
    free(der);
    auth_key_free(pair);
    auth_key_free(half);
}

#define KEY_A "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" /* 00 01 .. 1f */
#define KEY_B "+/++++++++++++++++++++++++++++++++++++++++8="

static void ring_reads_keys_in_order(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t count; /* 0: malformed */
    } cases[] = {
        {KEY_A, 1},
        {KEY_A "\n", 1},
        {"# comment\n\n  " KEY_A " # the new one\r\n\t" KEY_B "\r\n", 2},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n-_----------------------------------------8\n",
         2}, /* no padding; base64url */
        {KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A, 4},
        {KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A "\n" KEY_A, 0}, /* more than AUTH_RING_MAX */
        {"", 0},
        {"# nothing\n", 0},
        {KEY_A "\nrubbish\n", 0},
        {KEY_A KEY_A, 0},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8==\n", 0},
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=\n", 0}, /* left-over bits */
        {"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==\n", 0}, /* 31 bytes */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct auth_ring ring = {0};
        enum auth_result result = auth_ring_parse(cases[i].text, strlen(cases[i].text), &ring);
        assert_int_equal(result, cases[i].count > 0 ? AUTH_OK : AUTH_MALFORMED);
        assert_int_equal(ring.count, cases[i].count);
        if (ring.count == 0) continue;
        static const uint8_t id[] = {0x63, 0x0d, 0xcd, 0x29}; /* SHA-256 of 00 01 .. 1f begins so */
        for (uint8_t b = 0; b < 32; b++)
            assert_int_equal(ring.keys[0].key[b], b);
        assert_memory_equal(ring.keys[0].id, id, 4);
        if (ring.count == 2) assert_memory_not_equal(ring.keys[1].key, ring.keys[0].key, 32);
    }
}

static void ring_line_reads_back(void **state) {
    (void)state;
    uint8_t key[32];
    char line[48];
    struct auth_ring ring;
    for (unsigned i = 0; i < 32; i++)
        key[i] = (uint8_t)(251 * i + 62);
    auth_ring_line(key, line);
    assert_int_equal(strlen(line), 45);
    assert_int_equal(auth_ring_parse(line, strlen(line), &ring), AUTH_OK);
    assert_memory_equal(ring.keys[0].key, key, 32);
}

static void base64url_is_that_of_rfc_4648(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *text;
    } cases[] = {{"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
                 {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "-_-_"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[16];
        uint8_t bytes[16];
        size_t size = strlen(cases[i].bytes);
        assert_int_equal(auth_base64url_encode((const uint8_t *)cases[i].bytes, size, text), strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
        assert_int_equal(auth_base64url_decode(cases[i].text, strlen(cases[i].text), bytes, size), size);
        assert_memory_equal(bytes, cases[i].bytes, size);
        if (size > 0)
            assert_int_equal(auth_base64url_decode(cases[i].text, strlen(cases[i].text), bytes, size - 1), -1);
    }
    static const char *const bad[] = {"Z", "Zm9vY", "Zg==", "Zh", "Zm9", "Zm+v", "Zm/v", "Zm v", "Zm9v\n", "Zm\x80v"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t bytes[16];
        assert_int_equal(auth_base64url_decode(bad[i], strlen(bad[i]), bytes, sizeof bytes), -1);
    }
}

/* Whatever is done to a PEM text, it is a good P-256 key or it is refused; the sanitizers watch. */
static void damaged_pem_is_a_key_or_refused(void **state) {
    (void)state;
    uint64_t random = 0x9E3779B97F4A7C15u;
    for (unsigned round = 0; round < 1000; round++) {
        const char *from = round % 2 == 0 ? pkcs8_pem : public_pem;
        char text[512];
        size_t size = strlen(from);
        memcpy(text, from, size);
        for (unsigned i = 0; i < 1 + round % 3; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            text[random % size] = (char)(random >> 32);
        }
        struct auth_key *key = NULL;
        enum auth_result result = auth_key_parse(text, size - random % 5, &key);
        assert_true(result == AUTH_OK || result == AUTH_MALFORMED);
        assert_int_equal(result == AUTH_OK, key != NULL);
        auth_key_free(key);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thumbprint_is_that_of_rfc_9449),
        cmocka_unit_test(entropy_gives_the_pair_of_fips_186_5),
        cmocka_unit_test(same_entropy_gives_the_same_private_key),
        cmocka_unit_test(every_spelling_of_a_pair_is_the_same_key),
        cmocka_unit_test(text_need_not_end_in_zero),
        cmocka_unit_test(what_is_no_p256_key_is_malformed),
        cmocka_unit_test(point_off_the_curve_is_malformed),
        cmocka_unit_test(signature_of_rfc_6979_verifies),
        cmocka_unit_test(only_a_private_key_signs),
        cmocka_unit_test(certificate_carries_the_key_and_signs_itself),
        cmocka_unit_test(ring_reads_keys_in_order),
        cmocka_unit_test(ring_line_reads_back),
        cmocka_unit_test(base64url_is_that_of_rfc_4648),
        cmocka_unit_test(damaged_pem_is_a_key_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
