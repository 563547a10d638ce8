#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auth/trust.h"
#include "token_fixture.h"

struct world {
    struct auth_key *issuer, *stranger, *own, *peer, *thief;
    const struct auth_key *issuers[1];
    struct auth_trust trust;
};

static int setup(void **state) {
    static struct world world;
    world.issuer = fixture_key(1);
    world.stranger = fixture_key(2);
    world.own = fixture_key(3);
    world.peer = fixture_key(4);
    world.thief = fixture_key(5);
    world.issuers[0] = world.issuer;
    world.trust = (struct auth_trust){world.own, world.issuers, 1, FIXTURE_NOW};
    *state = &world;
    return 0;
}

static int teardown(void **state) {
    struct world *world = *state;
    struct auth_key *keys[] = {world->issuer, world->stranger, world->own, world->peer, world->thief};
    for (size_t i = 0; i < 5; i++)
        auth_key_free(keys[i]);
    return 0;
}

/* Asks both ways, by thumbprint and by point: the answers must be the same. Frees the token. */
static struct auth_verdict ask(const struct auth_trust *trust, const struct auth_key *key, char *token) {
    struct auth_verdict by_thumbprint, by_point;
    uint8_t thumbprint[AUTH_THUMBPRINT_SIZE], point[AUTH_PUBLIC_KEY_SIZE];
    memset(&by_thumbprint, 0xEE, sizeof by_thumbprint);
    memset(&by_point, 0x77, sizeof by_point);
    auth_key_thumbprint(key, thumbprint);
    auth_key_point(key, point);
    auth_trust_check(trust, thumbprint, token, strlen(token), &by_thumbprint);
    auth_trust_check_point(trust, point, token, strlen(token), &by_point);
    assert_int_equal(by_thumbprint.allowed, by_point.allowed);
    assert_memory_equal(by_thumbprint.id, by_point.id, 16);
    assert_memory_equal(by_thumbprint.id, thumbprint, 16);
    assert_string_equal(by_thumbprint.name, by_point.name);
    assert_string_equal(by_thumbprint.reason, by_point.reason);
    assert_true(by_thumbprint.valid_for_ms == by_point.valid_for_ms);
    free(token);
    return by_thumbprint;
}

/* name: what the token says, with '?' where nobody vouches for it. */
static void assert_denied(const struct auth_verdict *verdict, const char *name, const char *words) {
    assert_false(verdict->allowed);
    assert_string_equal(verdict->name, name);
    assert_true(verdict->valid_for_ms == 0);
    if (strstr(verdict->reason, words) == NULL) fail_msg("%s", verdict->reason);
}

static void holder_of_the_bound_key_is_a_broker(void **state) {
    struct world *world = *state;
    struct auth_verdict verdict = ask(&world->trust, world->peer, fixture_minted(world->issuer, world->peer));
    assert_true(verdict.allowed);
    assert_string_equal(verdict.name, "edge-4");
    assert_string_equal(verdict.reason, "");
    assert_int_equal(verdict.valid_for_ms, 7200 * 1000);
}

static void stolen_token_without_its_key_is_useless(void **state) {
    struct world *world = *state;
    struct auth_verdict verdict = ask(&world->trust, world->thief, fixture_minted(world->issuer, world->peer));
    assert_denied(&verdict, "edge-4?", "token of edge-4 is bound to another key: ");
}

static void other_issuer_makes_no_broker(void **state) {
    struct world *world = *state;
    struct auth_verdict verdict = ask(&world->trust, world->peer, fixture_minted(world->stranger, world->peer));
    assert_denied(&verdict, "edge-4?", "not one of the 1 trusted here");
    /* Nor does a token that claims our issuer and is signed by a stranger. */
    char *claims = fixture_claims(world->issuer, world->peer, "");
    verdict = ask(&world->trust, world->peer, fixture_signed(FIXTURE_HEADER, claims, world->stranger));
    assert_denied(&verdict, "edge-4?", "changed after it was signed");
    free(claims);
}

static void broker_cannot_sign_a_token_for_itself(void **state) {
    struct world *world = *state;
    struct auth_verdict verdict = ask(&world->trust, world->peer, fixture_minted(world->peer, world->peer));
    assert_denied(&verdict, "edge-4?", "not one of the 1 trusted here");
}

static void right_ends_with_the_token(void **state) {
    struct world *world = *state;
    struct auth_trust later = world->trust;
    later.wall_s = FIXTURE_NOW + 7199;
    struct auth_verdict verdict = ask(&later, world->peer, fixture_minted(world->issuer, world->peer));
    assert_true(verdict.allowed);
    assert_int_equal(verdict.valid_for_ms, 1000);
    later.wall_s = FIXTURE_NOW + 2 * 7200;
    verdict = ask(&later, world->peer, fixture_minted(world->issuer, world->peer));
    assert_denied(&verdict, "edge-4", "token of edge-4 expired 2 h ago: mint a new one with hobnob token mint");
}

/* Who shows a token that is over names its holder only with the holder's key and under an issuer that we believe. */
static void name_of_a_token_that_is_over_is_vouched_for_only_if_all_else_is_good(void **state) {
    struct world *world = *state;
    struct auth_trust later = world->trust;
    later.wall_s = FIXTURE_NOW + 2 * 7200;
    struct auth_verdict verdict = ask(&later, world->thief, fixture_minted(world->issuer, world->peer));
    assert_denied(&verdict, "edge-4?", "expired");
    verdict = ask(&later, world->peer, fixture_minted(world->stranger, world->peer));
    assert_denied(&verdict, "edge-4?", "not one of the 1 trusted here");
    char *claims = fixture_claims(world->issuer, world->peer, "");
    verdict = ask(&later, world->peer, fixture_signed(FIXTURE_HEADER, claims, world->stranger));
    assert_denied(&verdict, "edge-4?", "changed after it was signed");
    free(claims);
}

static void client_token_makes_no_broker(void **state) {
    struct world *world = *state;
    char name[] = "phone", *token = NULL;
    static const char *const audiences[] = {AUTH_AUDIENCE_CLIENT, AUTH_AUDIENCE_ADMIN};
    static const uint8_t entropy[16];
    for (size_t i = 0; i < 2; i++) {
        char audience[32];
        snprintf(audience, sizeof audience, "%s", audiences[i]);
        struct auth_claims claims = {.subject = name,
                                     .audience = audience,
                                     .issued_at_s = 1,
                                     .expires_at_s = FIXTURE_NOW + 5,
                                     .key_bound = true};
        auth_key_thumbprint(world->peer, claims.key_thumbprint);
        assert_int_equal(auth_token_mint(&claims, world->issuer, entropy, &token), AUTH_OK);
        struct auth_verdict verdict = ask(&world->trust, world->peer, token);
        assert_denied(&verdict, "phone?", "is not for use as hobnob:broker");
    }
}

static void no_token_and_no_issuer_are_refused(void **state) {
    struct world *world = *state;
    struct auth_verdict verdict = ask(&world->trust, world->peer, calloc(1, 1));
    assert_denied(&verdict, "", "there is no token");
    struct auth_trust alone = world->trust;
    alone.issuer_count = 0;
    verdict = ask(&alone, world->peer, fixture_minted(world->issuer, world->peer));
    assert_denied(&verdict, "edge-4?", "not one of the 0 trusted here");
}

static void compressed_point_is_refused(void **state) {
    struct world *world = *state;
    uint8_t point[AUTH_PUBLIC_KEY_SIZE];
    char *token = fixture_minted(world->issuer, world->peer);
    struct auth_verdict verdict;
    auth_key_point(world->peer, point);
    point[0] = 2;
    auth_trust_check_point(&world->trust, point, token, strlen(token), &verdict);
    assert_denied(&verdict, "", "not an uncompressed point");
    free(token);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holder_of_the_bound_key_is_a_broker),
        cmocka_unit_test(stolen_token_without_its_key_is_useless),
        cmocka_unit_test(other_issuer_makes_no_broker),
        cmocka_unit_test(broker_cannot_sign_a_token_for_itself),
        cmocka_unit_test(right_ends_with_the_token),
        cmocka_unit_test(name_of_a_token_that_is_over_is_vouched_for_only_if_all_else_is_good),
        cmocka_unit_test(client_token_makes_no_broker),
        cmocka_unit_test(no_token_and_no_issuer_are_refused),
        cmocka_unit_test(compressed_point_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
