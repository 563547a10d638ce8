#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "token_fixture.h"

struct world {
    struct auth_key *issuer, *other_issuer, *holder;
    const struct auth_key *issuers[2];
};

static int setup(void **state) {
    static struct world world;
    world.issuer = fixture_key(1);
    world.other_issuer = fixture_key(2);
    world.holder = fixture_key(3);
    world.issuers[0] = world.issuer;
    world.issuers[1] = world.other_issuer;
    *state = &world;
    return 0;
}

static int teardown(void **state) {
    struct world *world = *state;
    auth_key_free(world->issuer);
    auth_key_free(world->other_issuer);
    auth_key_free(world->holder);
    return 0;
}

/* Verifies as a broker that trusts the first issuer only, from a copy of the exact size so that any read past it is
 * noticed. */
static enum auth_result verify_sized(const struct world *world, const char *token, size_t size, char reason[160]) {
    struct auth_claims claims;
    memset(&claims, 0xEE, sizeof claims);
    char *exact = malloc(size > 0 ? size : 1);
    memcpy(exact, token, size);
    enum auth_result result =
        auth_token_verify(exact, size, world->issuers, 1, AUTH_AUDIENCE_BROKER, FIXTURE_NOW, &claims, reason);
    free(exact);
    if (result == AUTH_OK)
        auth_claims_deinit(&claims);
    else
        for (size_t i = 0; i < sizeof claims; i++)
            assert_int_equal(((unsigned char *)&claims)[i], 0xEE); /* untouched on failure */
    return result;
}

static enum auth_result verify(const struct world *world, const char *token, char reason[160]) {
    return verify_sized(world, token, strlen(token), reason);
}

/* Frees the token. words must be in the reason, which must also name a remedy after a colon. */
static void assert_refused(const struct world *world, char *token, enum auth_result expected, const char *words) {
    char reason[160] = "";
    enum auth_result result = verify(world, token, reason);
    if (result != expected || strstr(reason, words) == NULL)
        print_error("result %d, reason \"%s\", expected %d and \"%s\"\n", result, reason, expected, words);
    assert_int_equal(result, expected);
    assert_non_null(strstr(reason, words));
    assert_non_null(strstr(reason, ": "));
    free(token);
}

static void minted_token_verifies_with_its_claims(void **state) {
    struct world *world = *state;
    char subject[] = "edge-4", audience[] = AUTH_AUDIENCE_BROKER, a[] = "a/#", b[] = "+/b", c[] = "edge-1",
         d[] = "c/%c/d", e[] = "e", *token = NULL, reason[160], text[44];
    uint8_t entropy[16];
    memset(entropy, 9, sizeof entropy);
    struct auth_claims claims = {.subject = subject,
                                 .audience = audience,
                                 .issued_at_s = FIXTURE_NOW - 5,
                                 .not_before_s = FIXTURE_NOW - 3,
                                 .expires_at_s = FIXTURE_NOW + 60,
                                 .key_bound = true,
                                 .blocked_publish_topics = {2, {a, b}},
                                 .blocked_brokers = {1, {c}},
                                 .allowed_publish_topics = {1, {d}},
                                 .allowed_subscribe_topics = {1, {e}},
                                 .blocked_subscribe_topics = {1, {b}}};
    auth_key_thumbprint(world->holder, claims.key_thumbprint);
    assert_int_equal(auth_token_mint(&claims, world->issuer, entropy, &token), AUTH_OK);

    struct auth_claims read;
    assert_int_equal(
        auth_token_verify(token, strlen(token), world->issuers, 1, AUTH_AUDIENCE_BROKER, FIXTURE_NOW, &read, reason),
        AUTH_OK);
    fixture_thumbprint(world->issuer, text);
    assert_string_equal(read.issuer, text);
    assert_string_equal(read.subject, "edge-4");
    assert_string_equal(read.audience, "hobnob:broker");
    assert_string_equal(read.token_id, "CQkJCQkJCQkJCQkJCQkJCQ");
    assert_int_equal(read.issued_at_s, FIXTURE_NOW - 5);
    assert_int_equal(read.not_before_s, FIXTURE_NOW - 3);
    assert_int_equal(read.expires_at_s, FIXTURE_NOW + 60);
    assert_true(read.key_bound);
    assert_memory_equal(read.key_thumbprint, claims.key_thumbprint, AUTH_THUMBPRINT_SIZE);
    assert_int_equal(read.blocked_publish_topics.count, 2);
    assert_string_equal(read.blocked_publish_topics.items[0], "a/#");
    assert_string_equal(read.blocked_publish_topics.items[1], "+/b");
    assert_string_equal(read.blocked_subscribe_topics.items[0], "+/b");
    assert_string_equal(read.blocked_brokers.items[0], "edge-1");
    assert_string_equal(read.allowed_publish_topics.items[0], "c/%c/d");
    assert_string_equal(read.allowed_subscribe_topics.items[0], "e");
    auth_claims_deinit(&read);

    assert_int_equal(auth_token_decode(token, strlen(token), &read, NULL), AUTH_OK);
    assert_string_equal(read.subject, "edge-4");
    auth_claims_deinit(&read);
    free(token);
}

static void handmade_good_token_verifies(void **state) {
    /* So that the refusals below are for the reason they name, and not because the fixture is wrong. */
    struct world *world = *state;
    char reason[160], *claims = fixture_claims(world->issuer, world->holder,
                                               ",\"unknown\":[1,{}],\"claims\":{\"blocked_brokers\":[]}");
    static const char *const headers[] = {FIXTURE_HEADER, "{\"alg\":\"ES256\"}",
                                          "{\"typ\":\"jwt\",\"kid\":\"7\",\"alg\":\"ES256\"}"};
    for (size_t i = 0; i < 3; i++) {
        char *token = fixture_signed(headers[i], claims, world->issuer);
        assert_int_equal(verify(world, token, reason), AUTH_OK);
        free(token);
    }
    free(claims);
}

static void any_of_the_issuers_is_believed(void **state) {
    struct world *world = *state;
    char *token = fixture_minted(world->other_issuer, world->holder), reason[160];
    struct auth_claims claims;
    assert_int_equal(
        auth_token_verify(token, strlen(token), world->issuers, 2, AUTH_AUDIENCE_BROKER, FIXTURE_NOW, &claims, reason),
        AUTH_OK);
    auth_claims_deinit(&claims);
    assert_int_equal(
        auth_token_verify(token, strlen(token), world->issuers, 0, AUTH_AUDIENCE_BROKER, FIXTURE_NOW, &claims, reason),
        AUTH_REFUSED);
    assert_refused(world, token, AUTH_REFUSED, "not one of the 1 trusted here");
}

/* A true signature by the issuer under a header that says something else. */
static void only_es256_is_believed(void **state) {
    struct world *world = *state;
    static const struct {
        const char *header;
        enum auth_result result;
        const char *words;
    } cases[] = {
        {"{\"alg\":\"none\",\"typ\":\"JWT\"}", AUTH_REFUSED, "none"},
        {"{\"alg\":\"None\"}", AUTH_REFUSED, "none"},
        {"{\"alg\":\"HS256\"}", AUTH_REFUSED, "HS256"},
        {"{\"alg\":\"RS256\"}", AUTH_REFUSED, "RS256"},
        {"{\"alg\":\"ES384\"}", AUTH_REFUSED, "ES384"},
        {"{\"alg\":\"es256\"}", AUTH_REFUSED, "misspelt"},
        {"{\"alg\":\"ES256 \"}", AUTH_REFUSED, "unknown algorithm"},
        {"{\"alg\":\"ES256\\u0000\"}", AUTH_MALFORMED, "not JSON"},
        {"{\"alg\":\"\"}", AUTH_REFUSED, "unknown algorithm"},
        {"{\"alg\":null}", AUTH_MALFORMED, "names no algorithm"},
        {"{\"alg\":[\"ES256\"]}", AUTH_MALFORMED, "names no algorithm"},
        {"{\"alg\":256}", AUTH_MALFORMED, "names no algorithm"},
        {"{}", AUTH_MALFORMED, "names no algorithm"},
        {"{\"ALG\":\"ES256\"}", AUTH_REFUSED, "letter case"},
        {"{\"alg\":\"ES256\",\"Alg\":\"none\"}", AUTH_REFUSED, "letter case"},
        {"{\"alg\":\"ES256\",\"alg\":\"none\"}", AUTH_MALFORMED, "twice"},
        {"{\"alg\":\"none\",\"alg\":\"ES256\"}", AUTH_MALFORMED, "twice"},
        {"{\"alg\":\"ES256\",\"a\\u006cg\":\"ES256\"}", AUTH_MALFORMED, "twice"},
        {"{\"alg\":\"ES256\",\"crit\":[\"exp\"]}", AUTH_REFUSED, "crit"},
        {"{\"alg\":\"ES256\",\"crit\":null}", AUTH_REFUSED, "crit"},
        {"{\"alg\":\"ES256\",\"Crit\":[]}", AUTH_REFUSED, "letter case"},
        {"{\"alg\":\"ES256\",\"typ\":\"JWE\"}", AUTH_REFUSED, "typ"},
        {"{\"alg\":\"ES256\",\"typ\":1}", AUTH_REFUSED, "typ"},
        {"[\"ES256\"]", AUTH_MALFORMED, "not a JSON object"},
        {"{\"alg\":\"ES256\"", AUTH_MALFORMED, "not JSON"},
        {"{\"alg\":\"ES256\"}x", AUTH_MALFORMED, "not JSON"},
    };
    char *claims = fixture_claims(world->issuer, world->holder, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(world, fixture_signed(cases[i].header, claims, world->issuer), cases[i].result, cases[i].words);
    free(claims);
}

/* The classic: anyone who has issuer.pub makes an HMAC with it, and a library that takes the algorithm from the token
 * believes it. */
static void hmac_with_the_public_key_as_secret_is_refused(void **state) {
    struct world *world = *state;
    static const char *const headers[] = {"{\"alg\":\"HS256\",\"typ\":\"JWT\"}", FIXTURE_HEADER};
    char *claims = fixture_claims(world->issuer, world->holder, ""), *pem = NULL;
    assert_int_equal(auth_key_public_pem(world->issuer, &pem), AUTH_OK);
    for (size_t i = 0; i < 2; i++) {
        uint8_t mac[32];
        unsigned size = 0;
        char *token = fixture_unsigned(headers[i], claims);
        assert_non_null(
            HMAC(EVP_sha256(), pem, (int)strlen(pem), (const unsigned char *)token, strlen(token), mac, &size));
        assert_refused(world, fixture_append(token, mac, size), i == 0 ? AUTH_REFUSED : AUTH_MALFORMED,
                       i == 0 ? "HS256" : "signature");
    }
    free(pem);
    free(claims);
}

static void unsigned_token_is_refused(void **state) {
    struct world *world = *state;
    char *claims = fixture_claims(world->issuer, world->holder, "");
    char *token = fixture_unsigned("{\"alg\":\"none\"}", claims);
    strcat(token, ".");
    assert_refused(world, token, AUTH_MALFORMED, "three parts");
    assert_refused(world, fixture_unsigned("{\"alg\":\"none\"}", claims), AUTH_MALFORMED, "2 of 3 parts");
    static const uint8_t zero[64];
    assert_refused(world, fixture_append(fixture_unsigned(FIXTURE_HEADER, claims), zero, 64), AUTH_REFUSED,
                   "changed after it was signed");
    free(claims);
}

static void claims_are_read_strictly(void **state) {
    struct world *world = *state;
    static const struct {
        const char *find, *replace; /* in the good claims */
        enum auth_result result;
        const char *words;
    } cases[] = {
        {"\"iss\":", "\"x\":", AUTH_MALFORMED, "iss of the token is missing"},
        {"\"sub\":\"edge-4\"", "\"sub\":4", AUTH_MALFORMED, "sub"},
        {"\"sub\":\"edge-4\"", "\"sub\":\"\"", AUTH_MALFORMED, "sub"},
        {"\"sub\":\"edge-4\"", "\"sub\":\"a\\nb\"", AUTH_MALFORMED, "sub"},
        {"\"sub\":\"edge-4\"", "\"sub\":\"../x\"", AUTH_MALFORMED, "name"},
        {"\"sub\":\"edge-4\"", "\"sub\":\".x\"", AUTH_MALFORMED, "name"},
        {"\"sub\":\"edge-4\"", "\"sub\":\"edge\\u0000-4\"", AUTH_MALFORMED, "not JSON"},
        {"\"sub\":\"edge-4\"", "\"sub\":\"a\",\"sub\":\"b\"", AUTH_MALFORMED, "twice"},
        {"\"sub\":\"edge-4\"", "\"sub\":\"a234567890123456789012345678901234567890123456789012345678901234\"",
         AUTH_MALFORMED, "name"},
        {"\"aud\":\"hobnob:broker\"", "\"aud\":[\"hobnob:broker\"]", AUTH_MALFORMED, "aud"},
        {"\"aud\":\"hobnob:broker\"", "\"aud\":\"hobnob:client\"", AUTH_REFUSED, "not for use as hobnob:broker"},
        {"\"aud\":\"hobnob:broker\"", "\"aud\":\"hobnob:broker2\"", AUTH_REFUSED, "not for use as hobnob:broker"},
        {"\"aud\":\"hobnob:broker\"", "\"aud\":\"HOBNOB:BROKER\"", AUTH_REFUSED, "not for use as hobnob:broker"},
        {"\"jti\":\"x\"", "\"jti\":null", AUTH_MALFORMED, "jti"},
        {"\"iat\":", "\"iat\":-", AUTH_MALFORMED, "iat"},
        {"\"exp\":", "\"x\":", AUTH_MALFORMED, "exp of the token is missing"},
        {"\"exp\":", "\"exp\":1e9,\"x\":", AUTH_MALFORMED, "exp"},
        {"\"exp\":", "\"exp\":\"1900000000\",\"x\":", AUTH_MALFORMED, "exp"},
        {"\"exp\":", "\"exp\":9223372036854775807,\"x\":", AUTH_MALFORMED, "exp"},
        {"\"exp\":", "\"exp\":99999999999999999999,\"x\":", AUTH_MALFORMED, "not JSON"},
        {"\"exp\":", "\"exp\":true,\"x\":", AUTH_MALFORMED, "exp"},
        {"\"exp\":", "\"nbf\":\"0\",\"exp\":", AUTH_MALFORMED, "nbf"},
        {"\"exp\":", "\"nbf\":1900000000,\"exp\":", AUTH_MALFORMED, "ends before it begins"},
        {"\"exp\":", "\"exp\":1,\"x\":", AUTH_MALFORMED, "ends before it begins"},
        {"\"cnf\":", "\"x\":", AUTH_REFUSED, "bound to no key"},
        {"\"cnf\":{", "\"cnf\":[],\"x\":{", AUTH_MALFORMED, "cnf"},
        {"\"cnf\":{", "\"cnf\":{},\"x\":{", AUTH_MALFORMED, "cnf"},
        {"\"jkt\":\"", "\"jkt\":\"A", AUTH_MALFORMED, "cnf"},
        {"\"jkt\":\"", "\"jkt\":null,\"x\":\"", AUTH_MALFORMED, "cnf"},
        {"\"cnf\"", "\"claims\":[],\"cnf\"", AUTH_MALFORMED, "not an object"},
        {"\"cnf\"", "\"claims\":{\"blocked_publish_topic\":[\"a\"]},\"cnf\"", AUTH_REFUSED, "not known here"},
        {"\"cnf\"", "\"claims\":{\"blocked_publish_topics\":\"a\"},\"cnf\"", AUTH_MALFORMED, "not a list"},
        {"\"cnf\"", "\"claims\":{\"blocked_publish_topics\":[1]},\"cnf\"", AUTH_MALFORMED, "entry 1"},
        {"\"cnf\"", "\"claims\":{\"blocked_publish_topics\":[\"a\",\"a/#/b\"]},\"cnf\"", AUTH_MALFORMED, "entry 2"},
        {"\"cnf\"", "\"claims\":{\"allowed_subscribe_topics\":[\"\"]},\"cnf\"", AUTH_MALFORMED, "entry 1"},
        {"\"cnf\"", "\"claims\":{\"allowed_subscribe_topics\":[]},\"cnf\"", AUTH_MALFORMED, "is empty"},
        {"\"cnf\"", "\"claims\":{\"blocked_brokers\":[\"a/b\"]},\"cnf\"", AUTH_MALFORMED, "broker's name"},
        {"\"cnf\"", "\"claims\":{\"blocked_brokers\":[\"a\"],\"blocked_brokers\":[]},\"cnf\"", AUTH_MALFORMED, "twice"},
        {"{\"iss\"", "[{\"iss\"", AUTH_MALFORMED, "not JSON"},
        {"{\"iss\"", " {\"iss\"", AUTH_OK, NULL}, /* white space is JSON's own */
    };
    char *good = fixture_claims(world->issuer, world->holder, "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char claims[1024], reason[160];
        const char *at = strstr(good, cases[i].find);
        assert_non_null(at);
        snprintf(claims, sizeof claims, "%.*s%s%s", (int)(at - good), good, cases[i].replace,
                 at + strlen(cases[i].find));
        char *token = fixture_signed(FIXTURE_HEADER, claims, world->issuer);
        if (cases[i].result == AUTH_OK) {
            assert_int_equal(verify(world, token, reason), AUTH_OK);
            free(token);
        } else {
            assert_refused(world, token, cases[i].result, cases[i].words);
        }
    }
    free(good);
    assert_refused(world, fixture_signed(FIXTURE_HEADER, "[]", world->issuer), AUTH_MALFORMED, "not a JSON object");
    assert_refused(world, fixture_signed(FIXTURE_HEADER, "\"text\"", world->issuer), AUTH_MALFORMED, "claims");
}

static char *with_list(const struct world *world, const char *name, size_t count) {
    char extra[4096];
    size_t at = (size_t)sprintf(extra, ",\"claims\":{\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        at += (size_t)sprintf(extra + at, "%s\"t%zu\"", i > 0 ? "," : "", i);
    strcpy(extra + at, "]}");
    char *claims = fixture_claims(world->issuer, world->holder, extra),
         *token = fixture_signed(FIXTURE_HEADER, claims, world->issuer);
    free(claims);
    return token;
}

static void lists_have_an_end(void **state) {
    struct world *world = *state;
    struct auth_claims claims;
    char *token = with_list(world, "blocked_brokers", AUTH_FILTERS_MAX);
    assert_int_equal(auth_token_decode(token, strlen(token), &claims, NULL), AUTH_OK);
    assert_int_equal(claims.blocked_brokers.count, AUTH_FILTERS_MAX);
    assert_string_equal(claims.blocked_brokers.items[63], "t63");
    auth_claims_deinit(&claims);
    free(token);
    assert_refused(world, with_list(world, "blocked_brokers", AUTH_FILTERS_MAX + 1), AUTH_MALFORMED,
                   "more than 64 entries");
    assert_refused(world, with_list(world, "blocked_publish_topics", 400), AUTH_MALFORMED, "more than 64 entries");
    /* 64 would be few enough, but not in a broker's token. */
    assert_refused(world, with_list(world, "blocked_publish_topics", AUTH_FILTERS_MAX), AUTH_REFUSED,
                   "a broker's may have 900");
}

static void times_are_checked_at_the_second(void **state) {
    struct world *world = *state;
    static const struct {
        int64_t now, issued, not_before, expires;
        const char *words; /* NULL: good */
    } cases[] = {
        {1000, 500, 0, 1001, NULL},
        {1000, 500, 0, 1000, "edge-4 expired 0 s ago"},
        {1000, 500, 0, 999, "edge-4 expired 1 s ago"},
        {10000, 500, 0, 2800, "edge-4 expired 2 h ago: mint a new one with hobnob token mint"},
        {1000000, 500, 0, 1000, "edge-4 expired 11 d ago"},
        {1000, 500, 1000 + AUTH_LEEWAY_S, 5000, NULL},
        {1000, 500, 1001 + AUTH_LEEWAY_S, 5000, "begins to be valid in 61 s"},
        {1000, 2000, 0, 5000, NULL}, /* the issuer's clock was ahead: harmless */
        {INT64_MIN / 2, 500, 600, 5000, "begins to be valid"},
        {INT64_MAX, 500, 600, 5000, "expired"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char subject[] = "edge-4", audience[] = AUTH_AUDIENCE_BROKER, *token = NULL, reason[160] = "";
        static const uint8_t entropy[16];
        struct auth_claims read, claims = {.subject = subject,
                                           .audience = audience,
                                           .issued_at_s = cases[i].issued,
                                           .not_before_s = cases[i].not_before,
                                           .expires_at_s = cases[i].expires,
                                           .key_bound = true};
        assert_int_equal(auth_token_mint(&claims, world->issuer, entropy, &token), AUTH_OK);
        enum auth_result result = auth_token_verify(token, strlen(token), world->issuers, 1, AUTH_AUDIENCE_BROKER,
                                                    cases[i].now, &read, reason);
        assert_int_equal(result, cases[i].words == NULL ? AUTH_OK : AUTH_REFUSED);
        if (result == AUTH_OK)
            auth_claims_deinit(&read);
        else if (strstr(reason, cases[i].words) == NULL)
            fail_msg("%s", reason);
        free(token);
    }
}

static void shape_is_checked_first(void **state) {
    struct world *world = *state;
    char *token = fixture_minted(world->issuer, world->holder), reason[160];
    size_t size = strlen(token);
    for (size_t cut = 0; cut < size; cut++)
        assert_int_not_equal(verify_sized(world, token, cut, reason), AUTH_OK);
    char text[2048];
    static const char *const patterns[] = {"%s.", ".%s", "%s.x", "%s..", " %s",   "%s\n",
                                           "%s=", "%s ", "%sA",  "x%s",  "%s\xff"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        sprintf(text, "%s", patterns[i]);
        char *mark = strstr(text, "%s"), after[16];
        strcpy(after, mark + 2);
        sprintf(mark, "%s%s", token, after);
        assert_int_not_equal(verify(world, text, reason), AUTH_OK);
    }
    sprintf(text, "%s", token);
    text[size / 2] = '\0'; /* a zero inside */
    assert_int_equal(verify_sized(world, text, size, reason), AUTH_MALFORMED);
    assert_int_equal(verify_sized(world, ".", 1, reason), AUTH_MALFORMED);
    assert_int_equal(verify_sized(world, "..", 2, reason), AUTH_MALFORMED);
    assert_int_equal(verify_sized(world, "a.b.c", 5, reason), AUTH_MALFORMED);
    char *large = malloc(AUTH_TOKEN_MAX + 1);
    memset(large, 'A', AUTH_TOKEN_MAX + 1);
    assert_int_equal(verify_sized(world, large, AUTH_TOKEN_MAX + 1, reason), AUTH_MALFORMED);
    assert_non_null(strstr(reason, "8193 bytes"));
    for (size_t i = 1; i < AUTH_TOKEN_MAX; i += 2)
        large[i] = '.';
    assert_int_equal(verify_sized(world, large, AUTH_TOKEN_MAX, reason), AUTH_MALFORMED);
    free(large);
    free(token);
}

static void deep_json_is_refused_not_recursed(void **state) {
    struct world *world = *state;
    char *claims = malloc(6000);
    memset(claims, '[', 5999);
    claims[5999] = '\0';
    assert_refused(world, fixture_signed(FIXTURE_HEADER, claims, world->issuer), AUTH_MALFORMED, "not JSON");
    free(claims);
}

static void stranger_text_stays_out_of_reasons(void **state) {
    struct world *world = *state;
    char reason[160] = "", *claims = fixture_claims(world->other_issuer, world->holder, "");
    char text[1024];
    snprintf(text, sizeof text, "{\"iss\":\"<b>evil\",\"sub\":\"<script>\",\"aud\":\"hobnob:client\",%s",
             strstr(claims, "\"jti\""));
    char *token = fixture_signed(FIXTURE_HEADER, text, world->other_issuer);
    assert_int_equal(verify(world, token, reason), AUTH_REFUSED);
    assert_null(strchr(reason, '<'));
    free(token);
    free(claims);
}

static void mint_refuses_what_no_verifier_would_read(void **state) {
    struct world *world = *state;
    static const uint8_t entropy[16];
    char name[] = "edge-4", bad_name[] = "-x", audience[] = AUTH_AUDIENCE_BROKER, client[] = AUTH_AUDIENCE_CLIENT,
         bad[] = "a/#/b", latin[] = "caf\xe9", good[] = "a/b";
    const struct auth_claims base = {
        .subject = name, .audience = audience, .issued_at_s = 1000, .expires_at_s = 2000, .key_bound = true};
    struct auth_claims cases[9];
    for (size_t i = 0; i < 9; i++)
        cases[i] = base;
    cases[0].subject = NULL;
    cases[1].subject = bad_name;
    cases[2].expires_at_s = 1000;
    cases[3].key_bound = false;
    cases[4].blocked_publish_topics = (struct auth_filters){1, {bad}};
    cases[5].audience = client, cases[5].subject = latin;
    cases[6].blocked_publish_topics.count = AUTH_FILTERS_MAX;
    for (size_t i = 0; i < AUTH_FILTERS_MAX; i++)
        cases[6].blocked_publish_topics.items[i] = good; /* too large for a broker */
    cases[7].blocked_publish_topics.count = AUTH_FILTERS_MAX + 1;
    cases[8].issued_at_s = -1;
    for (size_t i = 0; i < 9; i++) {
        char *token = (char *)(uintptr_t)8, reason[160] = "";
        enum auth_result result = auth_token_mint_saying(&cases[i], world->issuer, entropy, &token, reason);
        assert_true(result == AUTH_MALFORMED || result == AUTH_REFUSED);
        assert_int_not_equal(strlen(reason), 0);
        assert_ptr_equal(token, (void *)(uintptr_t)8);
    }
    struct auth_key *half = NULL;
    uint8_t point[AUTH_PUBLIC_KEY_SIZE];
    char *token = NULL;
    auth_key_point(world->issuer, point);
    assert_int_equal(auth_key_from_point(point, &half), AUTH_OK);
    assert_int_equal(auth_token_mint(&base, half, entropy, &token), AUTH_NO_PRIVATE_KEY);
    auth_key_free(half);
    cases[6].audience = client;
    assert_int_equal(auth_token_mint(&cases[6], world->issuer, entropy, &token), AUTH_OK);
    assert_true(strlen(token) > AUTH_BROKER_TOKEN_MAX);
    free(token);
}

static void token_of_exactly_900_bytes_is_the_largest(void **state) {
    struct world *world = *state;
    static const uint8_t entropy[16];
    char name[] = "edge-4", audience[] = AUTH_AUDIENCE_BROKER, filter[600];
    size_t largest = 0;
    for (size_t size = 250; size < 400; size++) {
        char *token = NULL;
        memset(filter, 'f', size);
        filter[size] = '\0';
        struct auth_claims claims = {.subject = name,
                                     .audience = audience,
                                     .issued_at_s = 1000,
                                     .expires_at_s = 2000,
                                     .key_bound = true,
                                     .blocked_publish_topics = {1, {filter}}};
        enum auth_result result = auth_token_mint(&claims, world->issuer, entropy, &token);
        if (result != AUTH_OK) {
            assert_int_equal(result, AUTH_REFUSED);
            break;
        }
        largest = strlen(token);
        free(token);
    }
    assert_in_range(largest, AUTH_BROKER_TOKEN_MAX - 1, AUTH_BROKER_TOKEN_MAX);
}

static void signature_has_one_spelling(void **state) {
    /* The last letter of 64 bytes in base64 holds 4 bits that nobody needs: 15 other letters would decode to the same
     * bytes. */
    struct world *world = *state;
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char *token = fixture_minted(world->issuer, world->holder), reason[160], *last = token + strlen(token) - 1,
         kept = *last;
    for (size_t i = 0; i < 64; i++) {
        *last = letters[i];
        assert_int_equal(verify(world, token, reason) == AUTH_OK, letters[i] == kept);
    }
    free(token);
}

static uint64_t next(uint64_t *random) {
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return *random;
}

/* Changes, repeats, drops or inserts letters; returns the new size. text holds size + 64. */
static size_t mutate(char *text, size_t size, uint64_t *random) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_..=\0\n";
    size_t at = (size_t)(next(random) % size), run = 1 + (size_t)(next(random) % 8);
    switch (next(random) % 6) {
    case 0: text[at] = letters[next(random) % (sizeof letters - 1)]; return size;
    case 1: text[at] = (char)next(random); return size;
    case 2: text[at] = (char)(text[at] ^ (1 << next(random) % 8)); return size;
    case 3:
        if (at + run >= size) return at > 0 ? at : size;
        memmove(text + at, text + at + run, size - at - run);
        return size - run;
    case 4:
        memmove(text + at + run, text + at, size - at);
        for (size_t i = 0; i < run; i++)
            text[at + i] = letters[next(random) % 64];
        return size + run;
    default: {
        size_t other = (size_t)(next(random) % size);
        char kept = text[at];
        text[at] = text[other];
        text[other] = kept;
        return size;
    }
    }
}

static void no_mutated_token_verifies(void **state) {
    struct world *world = *state;
    char *token = fixture_minted(world->issuer, world->holder), text[2048], reason[160];
    size_t token_size = strlen(token);
    uint64_t random = 0x2545F4914F6CDD1Du;
    for (unsigned round = 0; round < 6000; round++) {
        size_t size = token_size;
        memcpy(text, token, size);
        for (unsigned i = 0; i < 1 + round % 3; i++)
            size = mutate(text, size, &random);
        if (size == token_size && memcmp(text, token, size) == 0) continue;
        if (verify_sized(world, text, size, reason) == AUTH_OK) fail_msg("round %u: %.*s", round, (int)size, text);
    }
    free(token);
}

/* The JSON under the base64 is mutated, so that the parsers of header and claims see more than noise. */
static void mutated_json_is_read_or_refused(void **state) {
    struct world *world = *state;
    char *claims = fixture_claims(
             world->issuer, world->holder,
             ",\"nbf\":5,\"claims\":{\"blocked_publish_topics\":[\"a/#\",\"+/b\"],\"blocked_brokers\":[\"x\"]}"),
         reason[160];
    uint64_t random = 0x9E3779B97F4A7C15u;
    unsigned good = 0;
    for (unsigned round = 0; round < 100000; round++) {
        char header[256] = FIXTURE_HEADER, payload[1400];
        size_t header_size = strlen(header), payload_size = strlen(claims);
        memcpy(payload, claims, payload_size);
        if (round % 8 == 0)
            header_size = mutate(header, header_size, &random);
        else
            for (unsigned i = 0; i < 1 + round % 3; i++)
                payload_size = mutate(payload, payload_size, &random);
        char text[2400];
        size_t size = auth_base64url_encode((const uint8_t *)header, header_size, text);
        text[size++] = '.';
        size += auth_base64url_encode((const uint8_t *)payload, payload_size, text + size);
        memcpy(text + size, ".AAAA", 5);
        struct auth_claims read;
        enum auth_result result = auth_token_decode(text, size + 5, &read, reason);
        assert_true(result == AUTH_OK || result == AUTH_MALFORMED || result == AUTH_REFUSED);
        if (result != AUTH_OK) continue;
        good++;
        assert_true(read.blocked_publish_topics.count <= AUTH_FILTERS_MAX);
        auth_claims_deinit(&read);
    }
    assert_true(good > 1000); /* else the mutator only makes noise */
    free(claims);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(minted_token_verifies_with_its_claims),
        cmocka_unit_test(handmade_good_token_verifies),
        cmocka_unit_test(any_of_the_issuers_is_believed),
        cmocka_unit_test(only_es256_is_believed),
        cmocka_unit_test(hmac_with_the_public_key_as_secret_is_refused),
        cmocka_unit_test(unsigned_token_is_refused),
        cmocka_unit_test(claims_are_read_strictly),
        cmocka_unit_test(lists_have_an_end),
        cmocka_unit_test(times_are_checked_at_the_second),
        cmocka_unit_test(shape_is_checked_first),
        cmocka_unit_test(deep_json_is_refused_not_recursed),
        cmocka_unit_test(stranger_text_stays_out_of_reasons),
        cmocka_unit_test(mint_refuses_what_no_verifier_would_read),
        cmocka_unit_test(token_of_exactly_900_bytes_is_the_largest),
        cmocka_unit_test(signature_has_one_spelling),
        cmocka_unit_test(no_mutated_token_verifies),
        cmocka_unit_test(mutated_json_is_read_or_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
