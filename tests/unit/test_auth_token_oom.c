/* Every allocation of auth/ fails once, and those of jansson and OpenSSL where libjwt does not stand between: its own
 * go through malloc in its library and are not reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <openssl/crypto.h>

#include "auth/seal.h"
#include "auth/signed_ring.h"
#include "auth/trust.h"
#include "oom.h"
#include "token_fixture.h"

static bool openssl_fails, jansson_fails; /* too, not only our own */

static void *openssl_malloc(size_t size, const char *file, int line) {
    (void)file, (void)line;
    return openssl_fails ? __wrap_malloc(size) : __real_malloc(size);
}
static void *openssl_realloc(void *old, size_t size, const char *file, int line) {
    (void)file, (void)line;
    return openssl_fails ? __wrap_realloc(old, size) : __real_realloc(old, size);
}
static void openssl_free(void *old, const char *file, int line) {
    (void)file, (void)line;
    free(old);
}

static void *jansson_malloc(size_t size) {
    return jansson_fails ? __wrap_malloc(size) : __real_malloc(size);
}

static struct auth_key *issuer, *holder;
static char *token;

static int setup(void **state) {
    (void)state;
    issuer = fixture_key(1);
    holder = fixture_key(2);
    char *claims = fixture_claims(
        issuer, holder, ",\"claims\":{\"blocked_publish_topics\":[\"a/#\",\"b\"],\"blocked_brokers\":[\"x\"]}");
    token = fixture_signed(FIXTURE_HEADER, claims, issuer);
    free(claims);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    auth_key_free(issuer);
    auth_key_free(holder);
    free(token);
    return 0;
}

/* Runs work with the nth allocation failing, for n = 0, 1, 2 ... until none fails. work returns whether it succeeded;
 * it may do so in spite of a failure. */
static void fail_each(bool (*work)(void)) {
    assert_true(work()); /* once, so that what libraries keep is there */
    unsigned refused = 0;
    for (long n = 0;; n++) {
        shortage_after(n);
        bool good = work();
        shortage_over();
        if (!shortage.failed) {
            assert_true(good);
            break;
        }
        if (!good) refused++;
        assert_true(n < 100000);
    }
    assert_true(refused > 0);
    assert_true(work());
}

static bool decode(void) {
    struct auth_claims claims;
    char reason[160];
    enum auth_result result = auth_token_decode(token, strlen(token), &claims, reason);
    if (result == AUTH_OK) auth_claims_deinit(&claims);
    return result == AUTH_OK;
}

static bool verify(void) {
    const struct auth_key *issuers[] = {issuer};
    struct auth_trust trust = {holder, issuers, 1, FIXTURE_NOW};
    struct auth_verdict verdict;
    uint8_t point[AUTH_PUBLIC_KEY_SIZE];
    auth_key_point(holder, point);
    auth_trust_check_point(&trust, point, token, strlen(token), &verdict);
    /* Whatever runs out, nobody is let in without a name, and nobody is refused without a reason. */
    assert_int_equal(verdict.allowed, strcmp(verdict.name, "edge-4") == 0);
    assert_int_equal(verdict.allowed, verdict.reason[0] == '\0');
    return verdict.allowed;
}

static bool make_key(void) {
    uint8_t entropy[AUTH_ENTROPY_SIZE] = {1};
    struct auth_key *key = NULL;
    enum auth_result result = auth_key_new(entropy, &key);
    assert_int_equal(result == AUTH_OK, key != NULL);
    auth_key_free(key);
    return result == AUTH_OK;
}

static bool print_and_parse_key(void) {
    char *pem = NULL;
    struct auth_key *key = NULL;
    bool good = auth_key_private_pem(issuer, &pem) == AUTH_OK && auth_key_parse(pem, strlen(pem), &key) == AUTH_OK;
    auth_key_free(key);
    free(pem);
    return good;
}

static bool sign_and_verify(void) {
    uint8_t signature[64];
    return auth_sign(issuer, (const uint8_t *)"x", 1, signature) &&
           auth_verify(issuer, (const uint8_t *)"x", 1, signature);
}

static bool certify(void) {
    uint8_t *der = NULL;
    size_t size;
    bool good = auth_key_certificate(issuer, "edge-1", &der, &size) == AUTH_OK;
    free(der);
    return good;
}

static bool seal_and_open(void) {
    static const uint8_t key[32], nonce[12];
    uint8_t sealed[21], opened[5];
    return auth_seal(key, nonce, NULL, 0, (const uint8_t *)"hello", 5, sealed) &&
           auth_open(key, nonce, NULL, 0, sealed, 21, opened);
}

static bool sign_and_verify_ring(void) {
    const struct auth_key *issuers[] = {issuer};
    struct auth_signed_ring ring = {.number = 1, .federation = "home", .count = 1}, read = {0};
    char text[AUTH_SIGNED_RING_MAX + 1], reason[160] = "";
    ring.keys[0].stage = AUTH_KEY_SEND;
    bool good = auth_signed_ring_sign(&ring, issuer, text, reason) == AUTH_OK &&
                auth_signed_ring_verify(text, strlen(text), issuers, 1, "home", &read, reason) == AUTH_OK;
    assert_int_equal(good,
                     read.number == 1); /* whatever runs out, none is taken in part, nor refused without a reason */
    assert_true(good || reason[0] != '\0');
    return good;
}

static bool mint(void) {
    char subject[] = "edge-4", audience[] = AUTH_AUDIENCE_BROKER, filter[] = "a/#", *made = NULL;
    static const uint8_t entropy[16];
    struct auth_claims claims = {.subject = subject,
                                 .audience = audience,
                                 .issued_at_s = 1,
                                 .expires_at_s = 2,
                                 .key_bound = true,
                                 .blocked_publish_topics = {1, {filter}}};
    enum auth_result result = auth_token_mint(&claims, issuer, entropy, &made);
    free(made);
    return result == AUTH_OK;
}

static void fail_each_with(bool openssl, bool jansson, bool (*work)(void)) {
    openssl_fails = openssl;
    jansson_fails = jansson;
    fail_each(work);
    openssl_fails = jansson_fails = false;
}

static void decoding_survives(void **state) {
    (void)state;
    fail_each_with(false, true, decode);
}
static void new_key_survives(void **state) {
    (void)state;
    fail_each_with(true, false, make_key);
}
static void signature_survives(void **state) {
    (void)state;
    fail_each_with(true, false, sign_and_verify);
}
static void ring_survives(void **state) {
    (void)state;
    fail_each_with(true, false, sign_and_verify_ring);
}
static void certificate_survives(void **state) {
    (void)state;
    fail_each_with(true, false, certify);
}
static void seal_survives(void **state) {
    (void)state;
    fail_each_with(true, false, seal_and_open);
}
/* Thousands of allocations are in OpenSSL's PEM reader: only our own. */
static void key_text_survives(void **state) {
    (void)state;
    fail_each_with(false, false, print_and_parse_key);
}
/* libjwt 1.10 leaks a signature when OpenSSL has no memory while it verifies, and crashes when jansson has none while
 * it signs. */
static void verdict_survives(void **state) {
    (void)state;
    fail_each_with(false, true, verify);
}
static void minting_survives(void **state) {
    (void)state;
    fail_each_with(false, false, mint);
}

int main(void) {
    /* Before either library allocates anything. */
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1) return 1;
    json_set_alloc_funcs(jansson_malloc, free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_survives),  cmocka_unit_test(new_key_survives),
        cmocka_unit_test(signature_survives), cmocka_unit_test(certificate_survives),
        cmocka_unit_test(seal_survives),      cmocka_unit_test(key_text_survives),
        cmocka_unit_test(verdict_survives),   cmocka_unit_test(minting_survives),
        cmocka_unit_test(ring_survives),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
