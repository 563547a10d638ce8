#include "daemon/tls_certificates.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/tls_inside.h"

#define FILE_SIZE_MAX (1024u * 1024u)               /* bytes of a file: a bundle of authorities is large */
#define CHAIN_MAX 32u                               /* certificates sent after our own */
#define CIPHERS_TLS12 "ECDHE+AESGCM:ECDHE+CHACHA20" /* forward secret and authenticated; those of TLS 1.3 all are */
/* The first two cost us 0.1 ms, P-384 1.5 ms (of which clients' certificates are made). Those that are left out cost up
 * to 50 ms, which who sends the same greeting again and again would spend for us and not for himself
 * (CVE-2002-20001). */
#define GROUPS "X25519:P-256:P-384"

struct reading {
    const struct config *config;
    struct config_faults *faults;
    int64_t wall_s;
    SSL_CTX *context;
};

static void fault(const struct reading *reading, const struct config_path *file, const char *key, const char *what,
                  const char *write) {
    config_fault_add(reading->faults, false, file->line, "tls.%s: %s %s; write %s", key, file->path, what, write);
}

/* -1 and errno unless it is a file: a pipe would keep everybody waiting for its writer. */
static int open_plain(const char *path) {
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) return file;
    const int error = S_ISDIR(status.st_mode)                 ? EISDIR
                      : !S_ISREG(status.st_mode)              ? EINVAL
                      : status.st_size > (off_t)FILE_SIZE_MAX ? EFBIG
                                                              : 0;
    if (error == 0) return file;
    close(file);
    errno = error;
    return -1;
}

/* The whole file for OpenSSL to read from, or NULL and a fault. */
static BIO *open_file(const struct reading *reading, const struct config_path *file, const char *key,
                      const char *write) {
    const int number = open_plain(file->path);
    FILE *stream = number >= 0 ? fdopen(number, "rb") : NULL;
    BIO *bio = stream != NULL ? BIO_new_fp(stream, BIO_CLOSE) : NULL;
    if (bio != NULL) return bio;
    const int error = number >= 0 ? ENOMEM : errno;
    char what[128];
    snprintf(what, sizeof(what), "cannot be read: %s", error == EINVAL ? "it is no file" : strerror(error));
    fault(reading, file, key, what,
          error == EACCES ? "a file that the user who runs hobnobd may read (chown, chmod)" : write);
    if (stream != NULL)
        fclose(stream);
    else if (number >= 0)
        close(number);
    return NULL;
}

/* OpenSSL's latest reason, for what cannot be said better. */
static const char *reason(void) {
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "memory is short";
}

/* ---- our certificate ---- */

static void check_dates(const struct reading *reading, X509 *certificate) {
    const struct config_path *file = &reading->config->tls.cert;
    time_t now = (time_t)reading->wall_s;
    if (X509_cmp_time(X509_get0_notAfter(certificate), &now) < 0)
        config_fault_add(reading->faults, true, file->line,
                         "tls.cert: %s has expired, and clients will refuse it; renew it, then send hobnobd a SIGHUP",
                         file->path);
    if (X509_cmp_time(X509_get0_notBefore(certificate), &now) > 0)
        config_fault_add(
            reading->faults, true, file->line,
            "tls.cert: %s is not valid yet, and clients will refuse it; set this host's clock, or renew it",
            file->path);
}

/* The certificate and those that lead from it to an authority, as in certbot's fullchain.pem. */
static void read_certificate(const struct reading *reading) {
    static const char write[] = "the path of a certificate in PEM, such as fullchain.pem";
    const struct config_path *file = &reading->config->tls.cert;
    BIO *bio = open_file(reading, file, "cert", write);
    if (bio == NULL) return;
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    char what[160];
    if (certificate == NULL) {
        fault(reading, file, "cert", "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)", write);
    } else if (SSL_CTX_use_certificate(reading->context, certificate) != 1) {
        snprintf(what, sizeof(what), "cannot be used: %.100s", reason());
        fault(reading, file, "cert", what, "a certificate on a key of 2,048 bits RSA or 256 bits EC, or more");
    } else {
        check_dates(reading, certificate);
    }
    X509_free(certificate);
    X509 *next = NULL;
    for (unsigned i = 0; i < CHAIN_MAX && (next = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL; i++)
        if (SSL_CTX_add0_chain_cert(reading->context, next) != 1) X509_free(next);
    BIO_free(bio);
    ERR_clear_error();
}

/* A daemon has nobody to ask for a passphrase. */
static int no_passphrase(char *out, int size, int writing, void *asked) {
    (void)out;
    (void)size;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

static void read_key(const struct reading *reading) {
    static const char write[] = "the path of the certificate's private key in PEM, such as privkey.pem";
    const struct config_path *file = &reading->config->tls.key;
    BIO *bio = open_file(reading, file, "key", write);
    bool encrypted = false;
    struct stat status;
    if (bio == NULL) return;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &encrypted);
    const bool has_certificate = SSL_CTX_get0_certificate(reading->context) != NULL;
    if (encrypted)
        fault(reading, file, "key", "is protected by a passphrase, and nobody can be asked for it",
              "the path of the key without one (openssl pkey -in KEY -out NEW)");
    else if (key == NULL)
        fault(reading, file, "key", "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)", write);
    else if (has_certificate &&
             (SSL_CTX_use_PrivateKey(reading->context, key) != 1 || SSL_CTX_check_private_key(reading->context) != 1))
        fault(reading, file, "key", "does not belong to the certificate in tls.cert",
              "the path of the private key that it was made with");
    else if (stat(file->path, &status) == 0 && (status.st_mode & S_IROTH) != 0)
        config_fault_add(reading->faults, true, file->line,
                         "tls.key: %s can be read by every user of this host; allow only its owner (chmod 600)",
                         file->path);
    EVP_PKEY_free(key);
    BIO_free(bio);
    ERR_clear_error();
}

/* ---- theirs ---- */

/* Every certificate in the file is an authority; their names are told to the client, which chooses by them. */
static unsigned add_authorities(const struct reading *reading, BIO *bio) {
    X509_STORE *store = SSL_CTX_get_cert_store(reading->context);
    X509 *authority = NULL;
    unsigned count = 0;
    while ((authority = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        if (X509_STORE_add_cert(store, authority) == 1 && SSL_CTX_add_client_CA(reading->context, authority) == 1)
            count++;
        X509_free(authority);
    }
    return count;
}

static void read_authorities(const struct reading *reading) {
    static const char write[] = "the path of the certificates, in PEM, of who signs the clients' certificates";
    const struct config_path *file = &reading->config->tls.client_ca;
    if (file->path == NULL) return;
    BIO *bio = open_file(reading, file, "client_ca", write);
    if (bio == NULL) return;
    if (add_authorities(reading, bio) == 0)
        fault(reading, file, "client_ca", "holds no certificate in PEM (-----BEGIN CERTIFICATE-----)", write);
    const bool required = reading->config->tls.require_client_cert;
    SSL_CTX_set_verify(reading->context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    BIO_free(bio);
    ERR_clear_error();
}

/* ---- all together ---- */

/* A ticket holds the client's certificate, and each connection gets a new one: without this, who has connected once
 * could come back for ever, whatever the certificate says. */
static SSL_TICKET_RETURN on_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *key, size_t key_size,
                                   SSL_TICKET_STATUS status, void *unused) {
    (void)ssl;
    (void)key;
    (void)key_size;
    (void)unused;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_IGNORE_RENEW;
    const X509 *certificate = SSL_SESSION_get0_peer(session);
    if (certificate != NULL && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

static SSL_CTX *new_context(void) {
    static const unsigned char id[] = "hobnob"; /* without one, a session with a client's certificate is not resumed */
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (context == NULL) return NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); /* an idle connection needs none */
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);    /* records without data are counted (tls_stream.c) */
    SSL_CTX_set_session_ticket_cb(context, NULL, on_ticket, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets carry sessions, and cost us nothing */
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_session_id_context(context, id, sizeof(id) - 1);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
        SSL_CTX_set_cipher_list(context, CIPHERS_TLS12) == 1 && SSL_CTX_set1_groups_list(context, GROUPS) == 1)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

void tls_certificates_read(struct tls_certificates *certificates, const struct config *config, int64_t wall_s,
                           struct config_faults *faults) {
    if (config->tls.cert.path == NULL || config->tls.key.path == NULL) return;
    const size_t errors_before = faults->errors;
    if (certificates->memory == NULL) certificates->memory = tls_stream_memory_new();
    const struct reading reading = {.config = config, .faults = faults, .wall_s = wall_s, .context = new_context()};
    if (reading.context == NULL || certificates->memory == NULL) {
        SSL_CTX_free(reading.context);
        config_fault_add(faults, false, config->tls.cert.line, "memory is short for TLS; give the machine more");
        ERR_clear_error();
        return;
    }
    read_certificate(&reading);
    read_key(&reading);
    read_authorities(&reading);
    if (faults->errors > errors_before) {
        SSL_CTX_free(reading.context);
        return;
    }
    SSL_CTX_free(certificates->context);
    certificates->context = reading.context;
}

static int64_t seconds_of(const ASN1_TIME *moment) {
    struct tm tm;
    return ASN1_TIME_to_tm(moment, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

void tls_certificates_dates(const struct tls_certificates *certificates, int64_t *from_s, int64_t *to_s) {
    const X509 *own = certificates->context != NULL ? SSL_CTX_get0_certificate(certificates->context) : NULL;
    *from_s = own != NULL ? seconds_of(X509_get0_notBefore(own)) : 0;
    *to_s = own != NULL ? seconds_of(X509_get0_notAfter(own)) : 0;
}

struct tls_certificates *tls_certificates_new(void) {
    return calloc(1, sizeof(struct tls_certificates));
}

void tls_certificates_free(struct tls_certificates *certificates) {
    if (certificates == NULL) return;
    SSL_CTX_free(certificates->context);
    BIO_meth_free(certificates->memory);
    free(certificates);
}
