/* TLS of peer links: encryption and proof of a key, nothing else. Who the holder of a key is, its token says in the
 * hello. */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/web_inside.h"

/* Every broker has these, and they are cheap: OpenSSL would also take ffdhe8192, by which a stranger who sends the same
 * 1,200 bytes again and again makes us compute for 50 ms each time (CVE-2002-20001). */
#define LINK_GROUPS "X25519:P-256"

/* Replaces the whole path building: names, dates and issuers of a link's certificate mean nothing. */
static int accept_certificate(X509_STORE_CTX *store, void *unused) {
    (void)unused;
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
}

static bool use_key(SSL_CTX *tls, const struct auth_key *key) {
    char *pem = NULL;
    if (auth_key_private_pem(key, &pem) != AUTH_OK) return false;
    size_t size = strlen(pem);
    BIO *bio = BIO_new_mem_buf(pem, (int)size);
    EVP_PKEY *pkey = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    bool good = pkey != NULL && SSL_CTX_use_PrivateKey(tls, pkey) == 1;
    EVP_PKEY_free(pkey);
    BIO_free(bio);
    OPENSSL_cleanse(pem, size);
    free(pem);
    return good;
}

static bool use_certificate(SSL_CTX *tls, const struct auth_key *key, const char *name) {
    uint8_t *der = NULL;
    size_t size = 0;
    if (auth_key_certificate(key, name, &der, &size) != AUTH_OK) return false;
    bool good = SSL_CTX_use_certificate_ASN1(tls, (int)size, der) == 1;
    free(der);
    return good;
}

bool web_tls_set_up(SSL_CTX *tls, const struct auth_key *key, const char *name) {
    bool good = SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set1_groups_list(tls, LINK_GROUPS) == 1 && use_certificate(tls, key, name) &&
                use_key(tls, key) && SSL_CTX_check_private_key(tls) == 1;
    if (good) {
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        SSL_CTX_set_cert_verify_callback(tls, accept_certificate, NULL);
        /* Each handshake proves the keys anew; a ticket would carry an old proof on. */
        SSL_CTX_set_num_tickets(tls, 0);
        SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(tls, SSL_OP_NO_TICKET);
        SSL_CTX_set_mode(tls, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
        /* libwebsockets would choose another vhost by the name the far end asks for. */
        SSL_CTX_set_tlsext_servername_callback(tls, NULL);
    }
    ERR_clear_error();
    return good;
}

bool web_tls_peer_thumbprint(SSL *ssl, uint8_t thumbprint[AUTH_THUMBPRINT_SIZE]) {
    const X509 *certificate = ssl == NULL ? NULL : SSL_get0_peer_certificate(ssl);
    const EVP_PKEY *pkey = certificate == NULL ? NULL : X509_get0_pubkey(certificate);
    char group[32] = "";
    uint8_t point[AUTH_PUBLIC_KEY_SIZE];
    size_t point_size = 0;
    struct auth_key *key = NULL;
    bool good = pkey != NULL && EVP_PKEY_is_a(pkey, "EC") &&
                EVP_PKEY_get_group_name(pkey, group, sizeof group, NULL) == 1 &&
                strcmp(group, SN_X9_62_prime256v1) == 0 &&
                EVP_PKEY_get_octet_string_param(pkey, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point, &point_size) == 1 &&
                point_size == sizeof point && auth_key_from_point(point, &key) == AUTH_OK;
    if (good) auth_key_thumbprint(key, thumbprint);
    auth_key_free(key);
    ERR_clear_error();
    return good;
}
