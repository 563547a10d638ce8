/* The signed gossip key ring: its one spelling, whose signature counts, and which ring follows which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/signed_ring.h"

static struct auth_key *issuer_new(uint8_t which) {
    uint8_t entropy[AUTH_ENTROPY_SIZE];
    struct auth_key *key = NULL;
    memset(entropy, which, sizeof entropy);
    assert_int_equal(auth_key_new(entropy, &key), AUTH_OK);
    return key;
}

/* The ring of a key file with one key. */
static struct auth_signed_ring ring_of_file(void) {
    struct auth_signed_ring ring = {.federation = "home", .count = 1};
    memset(ring.keys[0].key, 1, 32);
    ring.keys[0].stage = AUTH_KEY_SEND;
    return ring;
}

static void advance(struct auth_signed_ring *ring, uint8_t fill) {
    uint8_t fresh[32];
    char reason[160] = "";
    memset(fresh, fill, sizeof fresh);
    if (auth_ring_advance(ring, auth_ring_step_after(ring), fresh, reason) != AUTH_OK) fail_msg("%s", reason);
}

static size_t sign(const struct auth_signed_ring *ring, const struct auth_key *issuer, char *text) {
    char reason[160] = "";
    if (auth_signed_ring_sign(ring, issuer, text, reason) != AUTH_OK) fail_msg("%s", reason);
    return strlen(text);
}

static void what_is_signed_is_read_and_verified(void **state) {
    (void)state;
    struct auth_key *issuer = issuer_new(1), *other = issuer_new(2);
    const struct auth_key *issuers[] = {other, issuer};
    struct auth_signed_ring ring = ring_of_file(), read;
    char text[AUTH_SIGNED_RING_MAX + 1], reason[160];
    advance(&ring, 2);
    size_t size = sign(&ring, issuer, text);
    assert_true(size < AUTH_SIGNED_RING_MAX);
    assert_int_equal(auth_signed_ring_verify(text, size, issuers, 2, "home", &read, reason), AUTH_OK);
    assert_int_equal(read.number, 1);
    assert_string_equal(read.federation, "home");
    assert_int_equal(read.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_memory_equal(read.keys[i].key, ring.keys[i].key, 32);
        assert_int_equal(read.keys[i].stage, i == 0 ? AUTH_KEY_SEND : AUTH_KEY_ACCEPT);
    }
    /* Ids are those of a key file. */
    struct auth_ring plain;
    char line[48];
    auth_ring_line(ring.keys[1].key, line);
    assert_int_equal(auth_ring_parse(line, strlen(line), &plain), AUTH_OK);
    assert_memory_equal(read.keys[1].id, plain.keys[0].id, 4);
    auth_key_free(issuer);
    auth_key_free(other);
}

static void another_issuer_another_federation_and_a_forged_signature_are_refused(void **state) {
    (void)state;
    struct auth_key *issuer = issuer_new(1), *other = issuer_new(2);
    const struct auth_key *right[] = {issuer}, *wrong[] = {other};
    struct auth_signed_ring ring = ring_of_file(), read;
    char text[AUTH_SIGNED_RING_MAX + 1], mixed[AUTH_SIGNED_RING_MAX + 1], reason[160];
    advance(&ring, 2);
    size_t size = sign(&ring, issuer, text);
    assert_int_equal(auth_signed_ring_verify(text, size, wrong, 1, "home", &read, reason), AUTH_REFUSED);
    assert_non_null(strstr(reason, "identity.issuers"));
    assert_int_equal(auth_signed_ring_verify(text, size, right, 1, "away", &read, reason), AUTH_REFUSED);
    assert_non_null(strstr(reason, "federation home"));
    assert_int_equal(auth_signed_ring_verify(text, size, right, 0, "home", &read, reason), AUTH_REFUSED);
    /* The signature of ring 1 under ring 2. */
    advance(&ring, 2);
    size_t second = sign(&ring, issuer, mixed);
    memcpy(mixed + second - 97, text + size - 97, 97);
    assert_int_equal(auth_signed_ring_read(mixed, second, &read, reason), AUTH_OK);
    assert_int_equal(auth_signed_ring_verify(mixed, second, right, 1, "home", &read, reason), AUTH_REFUSED);
    assert_non_null(strstr(reason, "changed"));
    auth_key_free(issuer);
    auth_key_free(other);
}

static void every_byte_counts_and_no_part_is_enough(void **state) {
    (void)state;
    struct auth_key *issuer = issuer_new(1);
    const struct auth_key *issuers[] = {issuer};
    struct auth_signed_ring ring = ring_of_file(), read;
    char text[AUTH_SIGNED_RING_MAX + 1], reason[160];
    advance(&ring, 2);
    size_t size = sign(&ring, issuer, text);
    for (size_t i = 0; i < size; i++) {
        text[i] ^= 1;
        assert_int_not_equal(auth_signed_ring_verify(text, size, issuers, 1, "home", &read, reason), AUTH_OK);
        text[i] ^= 1;
        assert_int_not_equal(auth_signed_ring_verify(text, i, issuers, 1, "home", &read, reason), AUTH_OK);
    }
    assert_int_equal(auth_signed_ring_verify(text, size, issuers, 1, "home", &read, reason), AUTH_OK);
    text[size] = '\n';
    assert_int_not_equal(auth_signed_ring_read(text, size + 1, &read, reason), AUTH_OK);
    auth_key_free(issuer);
}

/* What means the same must not be spelt in two ways: rings are compared by their bytes. */
static void other_spellings_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *was, *is;
    } cases[] = {
        {"number 1\n", "number 01\n"},
        {"number 1\n", "number +1\n"},
        {"number 1\n", "number 1 \n"},
        {"number 1\n", "number 1\r\n"},
        {"number 1\n", "number 0\n"},
        {"number 1\n", "number \n"},
        {"number 1\n", "number 1234567890123\n"},
        {"number 1\n", ""},
        {"number 1\n", "number 1\nnumber 1\n"},
        {"federation home\n", "federation \n"},
        {"federation home\n", "federation ho me\n"},
        {"federation home\n", "federation  home\n"},
        {"send ", "sent "},
        {"send ", "old "},
        {"accept ", "send "},
        {"send AQEB", "send  AQEB"},
        {"=\naccept", "\naccept"},    /* without the padding */
        {"AQEBAQE=\n", "AQEBAQF=\n"}, /* bits that no byte has */
        {"accept AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=",
         "accept AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}, /* the same key twice */
        {"ring 1\n", "ring 2\n"},
        {"hobnob gossip", "# \nhobnob gossip"},
        {"signature ", "signature  "},
        {"issuer ", "issuer A"},
    };
    struct auth_key *issuer = issuer_new(1);
    struct auth_signed_ring ring = ring_of_file(), read;
    char text[AUTH_SIGNED_RING_MAX + 1], other[2 * AUTH_SIGNED_RING_MAX], reason[160];
    advance(&ring, 2);
    sign(&ring, issuer, text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *at = strstr(text, cases[i].was);
        assert_non_null(at);
        snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, cases[i].is, at + strlen(cases[i].was));
        if (auth_signed_ring_read(other, strlen(other), &read, reason) == AUTH_OK) fail_msg("%s is read", cases[i].is);
        assert_non_null(strstr(reason, "hobnob key rotate"));
    }
    auth_key_free(issuer);
}

static void comments_before_a_ring_are_passed_over_and_a_plain_key_file_is_told_apart(void **state) {
    (void)state;
    static const char file[] = "# secret\n# ring\nhobnob gossip ring 1\nrest", plain[] = "# key\nAAAA\n", none[] = "#";
    size_t size = 0;
    const char *ring = auth_signed_ring_in(file, strlen(file), &size);
    assert_ptr_equal(ring, file + 16);
    assert_int_equal(size, strlen(file) - 16);
    assert_null(auth_signed_ring_in(plain, strlen(plain), &size));
    assert_null(auth_signed_ring_in(none, 1, &size));
    assert_null(auth_signed_ring_in("", 0, &size));
}

static void a_key_comes_in_three_steps_and_at_each_all_open_what_anybody_seals(void **state) {
    (void)state;
    struct auth_signed_ring rings[8] = {ring_of_file()};
    for (size_t i = 1; i < 8; i++) {
        rings[i] = rings[i - 1];
        advance(&rings[i], (uint8_t)(10 + i));
        assert_int_equal(rings[i].number, i);
        assert_int_equal(rings[i].keys[0].stage, AUTH_KEY_SEND);
        /* Whoever is one step behind or ahead opens what is sealed here. */
        for (size_t other = i - 1; other <= i; other++) {
            bool opens = false, is_opened = false;
            for (size_t key = 0; key < rings[other].count; key++)
                opens |= memcmp(rings[other].keys[key].key, rings[i].keys[0].key, 32) == 0;
            for (size_t key = 0; key < rings[i].count; key++)
                is_opened |= memcmp(rings[i].keys[key].key, rings[other].keys[0].key, 32) == 0;
            assert_true(opens && is_opened);
        }
    }
    assert_int_equal(rings[1].count, 2);
    assert_int_equal(rings[2].count, 2);
    assert_int_equal(rings[3].count, 1);
    assert_memory_equal(rings[3].keys[0].key, rings[1].keys[1].key, 32);
    assert_memory_not_equal(rings[6].keys[0].key, rings[3].keys[0].key, 32);
}

static void a_full_ring_and_the_last_number_are_refused_with_a_reason(void **state) {
    (void)state;
    struct auth_signed_ring ring = ring_of_file();
    uint8_t fresh[32] = {9};
    char reason[160] = "";
    for (uint8_t i = 0; i < 3; i++) { /* a key file with all keys there can be */
        ring.keys[ring.count].stage = AUTH_KEY_OLD;
        memset(ring.keys[ring.count++].key, 20 + i, 32);
    }
    assert_int_equal(auth_ring_step_after(&ring), AUTH_STEP_ACCEPT);
    assert_int_equal(auth_ring_advance(&ring, AUTH_STEP_ACCEPT, fresh, reason), AUTH_REFUSED);
    assert_non_null(strstr(reason, "take out"));
    assert_int_equal(ring.number, 0);
    ring.number = AUTH_RING_NUMBER_MAX;
    assert_int_equal(auth_ring_advance(&ring, AUTH_STEP_DROP, fresh, reason), AUTH_REFUSED);
    assert_int_equal(auth_ring_replace(&ring, fresh, reason), AUTH_REFUSED);
}

static void a_replaced_ring_has_the_new_key_alone(void **state) {
    (void)state;
    struct auth_signed_ring ring = ring_of_file();
    uint8_t fresh[32] = {9};
    advance(&ring, 2);
    assert_int_equal(auth_ring_replace(&ring, fresh, NULL), AUTH_OK);
    assert_int_equal(ring.number, 2);
    assert_int_equal(ring.count, 1);
    assert_int_equal(ring.keys[0].stage, AUTH_KEY_SEND);
    assert_memory_equal(ring.keys[0].key, fresh, 32);
}

static void the_largest_ring_fits_and_what_nobody_would_read_is_not_signed(void **state) {
    (void)state;
    struct auth_key *issuer = issuer_new(1);
    struct auth_signed_ring ring = {.number = AUTH_RING_NUMBER_MAX, .count = AUTH_RING_MAX};
    char text[AUTH_SIGNED_RING_MAX + 1], reason[160];
    memset(ring.federation, 'f', AUTH_FEDERATION_MAX);
    for (size_t i = 0; i < AUTH_RING_MAX; i++) {
        memset(ring.keys[i].key, 0xff - (int)i, 32);
        ring.keys[i].stage = i == 0 ? AUTH_KEY_SEND : AUTH_KEY_ACCEPT;
    }
    assert_true(sign(&ring, issuer, text) <= AUTH_SIGNED_RING_MAX);
    ring.keys[1].stage = AUTH_KEY_SEND;
    assert_int_equal(auth_signed_ring_sign(&ring, issuer, text, reason), AUTH_MALFORMED);
    ring.keys[1].stage = AUTH_KEY_OLD;
    ring.number = 0;
    assert_int_equal(auth_signed_ring_sign(&ring, issuer, text, reason), AUTH_MALFORMED);
    ring.number = 1;
    memcpy(ring.federation, "a b", 4);
    assert_int_equal(auth_signed_ring_sign(&ring, issuer, text, reason), AUTH_MALFORMED);
    /* And a public key signs nothing. */
    uint8_t point[AUTH_PUBLIC_KEY_SIZE];
    struct auth_key *public_half = NULL;
    auth_key_point(issuer, point);
    assert_int_equal(auth_key_from_point(point, &public_half), AUTH_OK);
    memcpy(ring.federation, "ab", 3);
    assert_int_equal(auth_signed_ring_sign(&ring, public_half, text, reason), AUTH_NO_PRIVATE_KEY);
    auth_key_free(public_half);
    auth_key_free(issuer);
}

static void the_digest_is_of_what_is_signed_and_not_of_the_signature(void **state) {
    (void)state;
    struct auth_key *issuer = issuer_new(1);
    struct auth_signed_ring ring = ring_of_file(), first, second;
    char text[AUTH_SIGNED_RING_MAX + 1], again[AUTH_SIGNED_RING_MAX + 1];
    advance(&ring, 2);
    sign(&ring, issuer, text);
    sign(&ring, issuer, again); /* ECDSA is not repeatable */
    assert_string_not_equal(text, again);
    assert_int_equal(auth_signed_ring_read(text, strlen(text), &first, NULL), AUTH_OK);
    assert_int_equal(auth_signed_ring_read(again, strlen(again), &second, NULL), AUTH_OK);
    assert_memory_equal(first.digest, second.digest, 32);
    ring.keys[1].key[0] ^= 1;
    sign(&ring, issuer, again);
    assert_int_equal(auth_signed_ring_read(again, strlen(again), &second, NULL), AUTH_OK);
    assert_memory_not_equal(first.digest, second.digest, 32);
    auth_key_free(issuer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_signed_is_read_and_verified),
        cmocka_unit_test(another_issuer_another_federation_and_a_forged_signature_are_refused),
        cmocka_unit_test(every_byte_counts_and_no_part_is_enough),
        cmocka_unit_test(other_spellings_are_refused),
        cmocka_unit_test(comments_before_a_ring_are_passed_over_and_a_plain_key_file_is_told_apart),
        cmocka_unit_test(a_key_comes_in_three_steps_and_at_each_all_open_what_anybody_seals),
        cmocka_unit_test(a_full_ring_and_the_last_number_are_refused_with_a_reason),
        cmocka_unit_test(a_replaced_ring_has_the_new_key_alone),
        cmocka_unit_test(the_largest_ring_fits_and_what_nobody_would_read_is_not_signed),
        cmocka_unit_test(the_digest_is_of_what_is_signed_and_not_of_the_signature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
