/* The server's side of TLS as bytes, with OpenSSL's client at the other end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "daemon/tls_certificates.h"
#include "daemon/tls_stream.h"

/* A server with a certificate of its own, and a client that believes anybody. */
struct pair {
    struct tls_certificates *certificates;
    struct tls_stream *server;
    struct text from_server;
    SSL_CTX *context;
    SSL *client;
    BIO *to_client, *from_client;
    char folder[32], cert[48], key[48];
};

static void write_files(struct pair *pair) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    assert_non_null(key);
    assert_non_null(certificate);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    snprintf(pair->folder, sizeof(pair->folder), "/tmp/hobnob-tls-XXXXXX");
    assert_non_null(mkdtemp(pair->folder));
    snprintf(pair->cert, sizeof(pair->cert), "%s/cert", pair->folder);
    snprintf(pair->key, sizeof(pair->key), "%s/key", pair->folder);
    FILE *file = fopen(pair->cert, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    file = fopen(pair->key, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* What the client has written reaches the server, in one piece. Returns the last result; *got counts all plain text. */
static enum tls_result to_server(struct pair *pair, size_t *got) {
    static uint8_t wire[1024 * 1024], plain[TLS_RECORD_MAX];
    const int size = BIO_read(pair->from_client, wire, sizeof(wire));
    enum tls_result result = TLS_BYTES;
    size_t part = 0;
    *got = 0;
    tls_stream_give(pair->server, wire, size > 0 ? (size_t)size : 0);
    while ((result = tls_stream_read(pair->server, plain, sizeof(plain), &part)) == TLS_BYTES)
        *got += part;
    return result;
}

static void to_client(struct pair *pair) {
    if (pair->from_server.size > 0)
        assert_true(BIO_write(pair->to_client, pair->from_server.bytes, (int)pair->from_server.size) > 0);
    pair->from_server.size = 0;
}

static int set_up(void **state) {
    struct pair *pair = calloc(1, sizeof(*pair));
    struct config_faults faults = {0};
    assert_non_null(pair);
    write_files(pair);
    struct config config = {.tls = {.cert = {.path = pair->cert}, .key = {.path = pair->key}}};
    pair->certificates = tls_certificates_new();
    assert_non_null(pair->certificates);
    tls_certificates_read(pair->certificates, &config, 0, &faults);
    assert_int_equal(faults.errors, 0);
    pair->server = tls_stream_new(pair->certificates, &pair->from_server);
    pair->context = SSL_CTX_new(TLS_client_method());
    pair->client = SSL_new(pair->context);
    pair->to_client = BIO_new(BIO_s_mem());
    pair->from_client = BIO_new(BIO_s_mem());
    assert_non_null(pair->server);
    assert_non_null(pair->client);
    SSL_set_bio(pair->client, pair->to_client, pair->from_client);
    size_t got;
    for (int turns = 0; SSL_connect(pair->client) != 1 && turns < 10; turns++) {
        assert_int_equal(to_server(pair, &got), TLS_MORE);
        to_client(pair);
    }
    assert_int_equal(to_server(pair, &got), TLS_MORE);
    assert_true(tls_stream_is_up(pair->server));
    *state = pair;
    return 0;
}

static int tear_down(void **state) {
    struct pair *pair = *state;
    tls_stream_free(pair->server);
    tls_certificates_free(pair->certificates);
    text_deinit(&pair->from_server);
    SSL_free(pair->client);
    SSL_CTX_free(pair->context);
    unlink(pair->cert);
    unlink(pair->key);
    rmdir(pair->folder);
    free(pair);
    return 0;
}

static void update_keys(struct pair *pair, unsigned count, int kind) {
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(SSL_key_update(pair->client, kind), 1);
        assert_int_equal(SSL_do_handshake(pair->client), 1);
    }
}

static void keys_may_be_updated(void **state) {
    struct pair *pair = *state;
    size_t got = 0;
    char back[8];
    for (int i = 0; i < 200; i++) {
        update_keys(pair, 1, i % 2 == 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        assert_int_equal(SSL_write(pair->client, "ping", 4), 4);
        assert_int_equal(to_server(pair, &got), TLS_MORE);
        assert_int_equal(got, 4);
        assert_true(tls_stream_write(pair->server, "pong", 4));
        to_client(pair);
        assert_int_equal(SSL_read(pair->client, back, sizeof(back)), 4);
    }
}

static void who_updates_them_all_the_time_is_refused(void **state) {
    struct pair *pair = *state;
    size_t got = 0;
    update_keys(pair, 1000, SSL_KEY_UPDATE_NOT_REQUESTED);
    assert_int_equal(to_server(pair, &got), TLS_FAILED);
    assert_non_null(strstr(tls_stream_wrong(pair->server), "changes its keys"));
}

static void data_in_between_does_not_help(void **state) {
    struct pair *pair = *state;
    size_t got = 0;
    for (int i = 0; i < 1000; i++) {
        update_keys(pair, 1, SSL_KEY_UPDATE_NOT_REQUESTED);
        assert_int_equal(SSL_write(pair->client, "x", 1), 1);
    }
    assert_int_equal(to_server(pair, &got), TLS_FAILED);
    assert_true(got < 100);
}

static void records_of_one_byte_are_read(void **state) {
    struct pair *pair = *state;
    size_t got = 0;
    for (int i = 0; i < 5000; i++)
        assert_int_equal(SSL_write(pair->client, "x", 1), 1);
    assert_int_equal(to_server(pair, &got), TLS_MORE);
    assert_int_equal(got, 5000);
}

static void what_follows_the_end_is_not_read(void **state) {
    struct pair *pair = *state;
    size_t got = 0;
    assert_int_equal(SSL_write(pair->client, "last", 4), 4);
    SSL_shutdown(pair->client);
    assert_true(BIO_write(pair->from_client, "\x17\x03\x03\x00\x05nosuch", 10) == 10);
    assert_int_equal(to_server(pair, &got), TLS_ENDED);
    assert_int_equal(got, 4);
}

static void record_that_is_larger_than_may_be_is_refused(void **state) {
    struct pair *pair = *state;
    static const char head[5] = "\x17\x03\x03\xff\xff";
    static char body[65535];
    size_t got = 0;
    BIO_write(pair->from_client, head, sizeof(head));
    BIO_write(pair->from_client, body, sizeof(body));
    assert_int_equal(to_server(pair, &got), TLS_FAILED);
    assert_int_equal(got, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(keys_may_be_updated),
        TEST(who_updates_them_all_the_time_is_refused),
        TEST(data_in_between_does_not_help),
        TEST(records_of_one_byte_are_read),
        TEST(what_follows_the_end_is_not_read),
        TEST(record_that_is_larger_than_may_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
