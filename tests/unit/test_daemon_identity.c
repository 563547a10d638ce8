#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/identity.h"

#define NOW_S 1800000000

/* A site as hobnob init makes it, in a folder of its own. */
struct site {
    char dir[64];
    struct auth_key *issuer, *other_issuer, *broker, *other_broker;
    struct config_faults faults;
    struct identity identity;
};
static struct site site;

static const char *at(const char *name) {
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", site.dir, name);
    return path;
}

static void put(const char *name, const char *text, mode_t mode) {
    FILE *file = fopen(at(name), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(at(name), mode), 0);
}

static struct auth_key *new_key(uint8_t seed) {
    uint8_t entropy[AUTH_ENTROPY_SIZE];
    struct auth_key *key = NULL;
    memset(entropy, seed, sizeof(entropy));
    assert_int_equal(auth_key_new(entropy, &key), AUTH_OK);
    return key;
}

static void put_key(const char *name, const struct auth_key *key, bool is_private) {
    char *pem = NULL;
    assert_int_equal(is_private ? auth_key_private_pem(key, &pem) : auth_key_public_pem(key, &pem), AUTH_OK);
    put(name, pem, is_private ? 0600 : 0644);
    free(pem);
}

static void put_token(const char *name, const char *subject, const struct auth_key *issuer,
                      const struct auth_key *bound_to, int64_t expires_at_s) {
    char *token = NULL;
    struct auth_claims claims = {.issuer = (char[]){"test"},
                                 .subject = NULL,
                                 .audience = (char[]){AUTH_AUDIENCE_BROKER},
                                 .issued_at_s = NOW_S - 100,
                                 .expires_at_s = expires_at_s,
                                 .key_bound = true};
    claims.subject = strdup(subject);
    auth_key_thumbprint(bound_to, claims.key_thumbprint);
    const uint8_t entropy[16] = {1};
    assert_int_equal(auth_token_mint(&claims, issuer, entropy, &token), AUTH_OK);
    char line[AUTH_BROKER_TOKEN_MAX + 8];
    snprintf(line, sizeof(line), "  %s\n\n", token);
    put(name, line, 0644);
    free(token);
    free(claims.subject);
}

static int make_site(void **state) {
    (void)state;
    char line[48];
    uint8_t key[32] = {7};
    memset(&site, 0, sizeof(site));
    strcpy(site.dir, "/tmp/hobnob-identity-XXXXXX");
    if (mkdtemp(site.dir) == NULL) return -1;
    site.issuer = new_key(1);
    site.other_issuer = new_key(2);
    site.broker = new_key(3);
    site.other_broker = new_key(4);
    put_key("issuer.pub", site.issuer, false);
    put_key("edge-1.key", site.broker, true);
    put_token("edge-1.jwt", "edge-1", site.issuer, site.broker, NOW_S + 1000);
    auth_ring_line(key, line);
    put("gossip.key", line, 0600);
    return 0;
}

static int remove_site(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", site.dir);
    identity_deinit(&site.identity);
    auth_key_free(site.issuer);
    auth_key_free(site.other_issuer);
    auth_key_free(site.broker);
    auth_key_free(site.other_broker);
    return system(command);
}

static void read_site(const char *text, bool token_is_error) {
    identity_deinit(&site.identity);
    site.faults = (struct config_faults){0};
    struct config *config = config_parse(text, strlen(text), site.dir, &site.faults);
    assert_non_null(config);
    identity_read(&site.identity, config, token_is_error, NOW_S, &site.faults);
    config_free(config);
}

static const char good[] = "name: edge-1\n"
                           "identity:\n"
                           "  token: edge-1.jwt\n"
                           "  key: edge-1.key\n"
                           "  issuers: [issuer.pub]\n"
                           "listen: {peers: 127.0.0.1:7100, mqtt: 127.0.0.1:1883}\n"
                           "federation: {gossip_key: gossip.key}\n";

/* The faults of a site, with its folder written as DIR. */
static void expect_faults(const char *expected) {
    static char all[65536];
    size_t used = 0;
    all[0] = '\0';
    for (size_t i = 0; i < site.faults.count; i++) {
        char line[CONFIG_FAULT_LINE_MAX];
        config_fault_format(&site.faults.items[i], "c.yaml", line, sizeof(line));
        for (char *found = strstr(line, site.dir); found != NULL; found = strstr(line, site.dir)) {
            memcpy(found, "DIR", 3);
            memmove(found + 3, found + strlen(site.dir), strlen(found + strlen(site.dir)) + 1);
        }
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s\n", line);
    }
    assert_string_equal(all, expected);
}

static void good_site_is_read(void **state) {
    (void)state;
    read_site(good, true);
    expect_faults("");
    assert_non_null(site.identity.key);
    assert_int_equal(site.identity.issuer_count, 1);
    assert_int_equal(site.identity.ring.count, 1);
    assert_int_equal(site.identity.ring.keys[0].key[0], 7);
    assert_int_equal(site.identity.token_size, strlen(site.identity.token));
    assert_null(strpbrk(site.identity.token, " \n"));
    assert_string_equal(site.identity.token_fault, "");
}

/* ---- signed key rings ---- */

static void put_ring(const char *name, uint64_t number, uint8_t key, const char *federation,
                     const struct auth_key *issuer) {
    struct auth_signed_ring ring = {.number = number, .count = 1};
    char text[AUTH_SIGNED_RING_MAX + 1];
    snprintf(ring.federation, sizeof(ring.federation), "%s", federation);
    memset(ring.keys[0].key, key, sizeof(ring.keys[0].key));
    ring.keys[0].stage = AUTH_KEY_SEND;
    assert_int_equal(auth_signed_ring_sign(&ring, issuer, text, NULL), AUTH_OK);
    put(name, text, 0600);
}

static void the_ring_in_data_dir_goes_before_the_keys_of_the_configuration(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("data"), 0700), 0);
    put_ring("data/gossip.ring", 3, 9, "default", site.issuer);
    read_site(good, true);
    expect_faults("");
    assert_int_equal(site.identity.ring.count, 1);
    assert_int_equal(site.identity.ring.keys[0].key[0], 9);
    assert_int_equal(site.identity.ring_number, 3);
    assert_true(site.identity.ring_is_kept);
    assert_non_null(strstr(site.identity.ring_text, "number 3\n"));
}

static void the_later_of_a_configured_and_a_kept_ring_is_used(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("data"), 0700), 0);
    put_ring("data/gossip.ring", 3, 9, "default", site.issuer);
    for (uint64_t number = 2; number <= 4; number += 2) {
        put_ring("gossip.key", number, 8, "default", site.issuer);
        read_site(good, true);
        expect_faults("");
        assert_int_equal(site.identity.ring_number, number == 2 ? 3 : 4);
        assert_int_equal(site.identity.ring.keys[0].key[0], number == 2 ? 9 : 8);
        assert_int_equal(site.identity.ring_is_kept, number == 2);
    }
}

static void a_configured_ring_of_a_stranger_is_a_fault(void **state) {
    (void)state;
    put_ring("gossip.key", 2, 8, "default", site.other_issuer);
    read_site(good, true);
    expect_faults("c.yaml:7: federation.gossip_key: DIR/gossip.key: ring 2 is signed by an issuer that is not in "
                  "identity.issuers: add its .pub there, or sign with one that is\n");
    put_ring("gossip.key", 2, 8, "elsewhere", site.issuer);
    read_site(good, true);
    expect_faults("c.yaml:7: federation.gossip_key: DIR/gossip.key: ring 2 is for federation elsewhere: make one with "
                  "hobnob key rotate --federation\n");
}

/* The others use its keys whatever became of the issuer. */
static void a_kept_ring_whose_issuer_is_gone_is_used_and_told(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("data"), 0700), 0);
    put_ring("data/gossip.ring", 3, 9, "default", site.other_issuer);
    read_site(good, true);
    expect_faults("c.yaml:7: warning: federation.gossip_key: the key ring in data_dir is used all the same: ring 3 is "
                  "signed by an issuer that is not in identity.issuers: add its .pub there, or sign with one that is; "
                  "sign it again (hobnob key rotate --again)\n");
    assert_int_equal(site.identity.ring_number, 3);
}

static void a_kept_ring_that_is_damaged_or_of_another_federation_is_not_used(void **state) {
    (void)state;
    assert_int_equal(mkdir(at("data"), 0700), 0);
    put("data/gossip.ring", "hobnob gossip ring 1\nfederation default\n", 0600);
    read_site(good, true);
    expect_faults("c.yaml:7: warning: federation.gossip_key: the key ring in data_dir is not used, and the keys of "
                  "this file are: DIR/data/gossip.ring is damaged; give this broker the present ring (hobnob key "
                  "push)\n");
    assert_int_equal(site.identity.ring.keys[0].key[0], 7);
    put_ring("data/gossip.ring", 3, 9, "elsewhere", site.issuer);
    read_site(good, true);
    expect_faults("c.yaml:7: warning: federation.gossip_key: the key ring in data_dir is of federation elsewhere and "
                  "not used; delete gossip.ring there if federation.name is right\n");
    assert_int_equal(site.identity.ring.keys[0].key[0], 7);
    assert_int_equal(site.identity.ring_number, 0);
}

static void missing_files_are_all_named(void **state) {
    (void)state;
    unlink(at("edge-1.jwt"));
    unlink(at("edge-1.key"));
    unlink(at("issuer.pub"));
    unlink(at("gossip.key"));
    read_site(good, true);
    expect_faults("c.yaml:3: identity.token: DIR/edge-1.jwt cannot be read: No such file or directory; write the path "
                  "of the broker's token (hobnob token mint makes one)\n"
                  "c.yaml:4: identity.key: DIR/edge-1.key cannot be read: No such file or directory; write the path of "
                  "the broker's private key (hobnob key new makes one)\n"
                  "c.yaml:5: identity.issuers: DIR/issuer.pub cannot be read: No such file or directory; write the "
                  "path of the issuer's public key (issuer.pub from hobnob init)\n"
                  "c.yaml:7: federation.gossip_key: DIR/gossip.key cannot be read: No such file or directory; write "
                  "the path of the gossip key that all brokers share (hobnob init makes one)\n");
}

static void folder_is_no_key(void **state) {
    (void)state;
    unlink(at("edge-1.key"));
    assert_int_equal(mkdir(at("edge-1.key"), 0700), 0);
    read_site(good, true);
    expect_faults("c.yaml:4: identity.key: DIR/edge-1.key cannot be read: Is a directory; write the path of the "
                  "broker's private key (hobnob key new makes one)\n");
}

static void files_of_the_wrong_kind_are_named(void **state) {
    (void)state;
    put("edge-1.key", "not a key\n", 0644); /* its mode is no matter then */
    put("issuer.pub", "not a key\n", 0644);
    put("gossip.key", "short\n", 0644);
    put("edge-1.jwt", " \n", 0644);
    read_site(good, true);
    expect_faults("c.yaml:3: identity.token: DIR/edge-1.jwt has 0 bytes; write the path of a broker's token, which has "
                  "1 to 900 (hobnob token mint makes one)\n"
                  "c.yaml:4: identity.key: DIR/edge-1.key is no P-256 private key in PEM; write the path of one "
                  "(hobnob key new makes one)\n"
                  "c.yaml:5: identity.issuers: DIR/issuer.pub is no P-256 public key in PEM; write the path of one "
                  "(issuer.pub from hobnob init)\n"
                  "c.yaml:7: federation.gossip_key: DIR/gossip.key holds no good keys; write 1 to 4 lines of 32 bytes "
                  "in base64 each\n");
}

static void public_key_where_the_private_belongs(void **state) {
    (void)state;
    put_key("edge-1.key", site.broker, false);
    chmod(at("edge-1.key"), 0600);
    read_site(good, true);
    expect_faults("c.yaml:4: identity.key: DIR/edge-1.key is a public key; write the path of the private one\n");
}

static void secrets_that_others_can_read_are_a_warning(void **state) {
    (void)state;
    chmod(at("edge-1.key"), 0644);
    chmod(at("gossip.key"), 0640);
    read_site(good, true);
    expect_faults(
        "c.yaml:4: warning: identity.key: DIR/edge-1.key can be read by others; write chmod 600 DIR/edge-1.key\n"
        "c.yaml:7: warning: federation.gossip_key: DIR/gossip.key can be read by others; write chmod 600 "
        "DIR/gossip.key\n");
    assert_int_equal(site.faults.errors, 0);
    assert_non_null(site.identity.key);
}

static void issuers_private_key_on_a_broker_is_a_warning(void **state) {
    (void)state;
    put_key("issuer.pub", site.issuer, true);
    read_site(good, true);
    assert_int_equal(site.faults.errors, 0);
    assert_int_equal(site.faults.count, 1);
    assert_non_null(strstr(site.faults.items[0].text, "is the issuer's private key, which belongs on no broker"));
}

/* What is wrong with the token is a fault for --check; a daemon keeps it for its log and starts. */
static void expect_token_fault(const char *part) {
    read_site(good, true);
    assert_int_equal(site.faults.errors, 1);
    assert_int_equal(site.faults.items[0].line, 3);
    assert_memory_equal(site.faults.items[0].text, "identity.token: ", 16);
    if (strstr(site.faults.items[0].text, part) == NULL) fail_msg("%s, without %s", site.faults.items[0].text, part);
    read_site(good, false);
    assert_int_equal(site.faults.count, 0);
    assert_non_null(strstr(site.identity.token_fault, part));
    assert_non_null(site.identity.token);
}

static void token_that_does_not_fit_is_named(void **state) {
    (void)state;
    put_token("edge-1.jwt", "edge-1", site.issuer, site.broker, NOW_S - 10);
    expect_token_fault("expired");
    put_token("edge-1.jwt", "edge-1", site.other_issuer, site.broker, NOW_S + 1000);
    expect_token_fault("issuer");
    put_token("edge-1.jwt", "edge-1", site.issuer, site.other_broker, NOW_S + 1000);
    expect_token_fault("bound to another key");
    put_token("edge-1.jwt", "edge-2", site.issuer, site.broker, NOW_S + 1000);
    expect_token_fault(
        "it is for edge-2 and this broker's name is edge-1: write name: edge-2, or mint a token for edge-1");
    put_token("edge-1.jwt", "edge-2", site.issuer, site.other_broker, NOW_S + 1000);
    expect_token_fault("it is for edge-2 and this broker's name is edge-1");
    put("edge-1.jwt", "eyJhbGciOiJub25lIn0.e30.\n", 0644);
    expect_token_fault("");
}

#define ON_SITE(test) cmocka_unit_test_setup_teardown(test, make_site, remove_site)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_SITE(good_site_is_read),
        ON_SITE(the_ring_in_data_dir_goes_before_the_keys_of_the_configuration),
        ON_SITE(the_later_of_a_configured_and_a_kept_ring_is_used),
        ON_SITE(a_configured_ring_of_a_stranger_is_a_fault),
        ON_SITE(a_kept_ring_whose_issuer_is_gone_is_used_and_told),
        ON_SITE(a_kept_ring_that_is_damaged_or_of_another_federation_is_not_used),
        ON_SITE(missing_files_are_all_named),
        ON_SITE(folder_is_no_key),
        ON_SITE(files_of_the_wrong_kind_are_named),
        ON_SITE(public_key_where_the_private_belongs),
        ON_SITE(secrets_that_others_can_read_are_a_warning),
        ON_SITE(issuers_private_key_on_a_broker_is_a_warning),
        ON_SITE(token_that_does_not_fit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
