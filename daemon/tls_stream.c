#include "daemon/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/name.h"
#include "daemon/tls_inside.h"

/* A key update costs 10 us and 27 bytes, and a client needs one in 2^24 records. */
#define SILENT_RECORDS_MAX 64u

struct tls_stream {
    SSL *ssl;
    struct text *out;
    const uint8_t *in; /* borrowed: what OpenSSL has not read yet */
    size_t in_size;
    unsigned silent_records; /* without data, in what was given last */
    char *wrong;             /* once failed; NULL: memory was short even for that */
};

/* ---- how OpenSSL reads and writes ---- */

/* A memory BIO of OpenSSL's own would copy what comes in, and keep the largest buffer it ever had. */
static int on_bio_read(BIO *bio, char *out, size_t size, size_t *got) {
    struct tls_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *got = size < stream->in_size ? size : stream->in_size;
    if (*got == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(out, stream->in, *got);
    stream->in += *got;
    stream->in_size -= *got;
    return 1;
}

static int on_bio_write(BIO *bio, const char *bytes, size_t size, size_t *written) {
    struct tls_stream *stream = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    text_append(stream->out, bytes, size);
    *written = size;
    return stream->out->failed ? 0 : 1;
}

static long on_bio_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *tls_stream_memory_new(void) {
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hobnob");
    if (method != NULL && BIO_meth_set_read_ex(method, on_bio_read) == 1 &&
        BIO_meth_set_write_ex(method, on_bio_write) == 1 && BIO_meth_set_ctrl(method, on_bio_control) == 1)
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* ---- life ---- */

struct tls_stream *tls_stream_new(const struct tls_certificates *certificates, struct text *out) {
    struct tls_stream *stream = calloc(1, sizeof(*stream));
    BIO *bio = BIO_new(certificates->memory);
    if (stream != NULL) stream->ssl = SSL_new(certificates->context);
    if (stream == NULL || bio == NULL || stream->ssl == NULL) {
        BIO_free(bio);
        tls_stream_free(stream);
        ERR_clear_error();
        return NULL;
    }
    stream->out = out;
    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    SSL_set_bio(stream->ssl, bio, bio);
    SSL_set_accept_state(stream->ssl);
    return stream;
}

void tls_stream_free(struct tls_stream *stream) {
    if (stream == NULL) return;
    SSL_free(stream->ssl);
    free(stream->wrong);
    free(stream);
}

bool tls_stream_is_up(const struct tls_stream *stream) {
    return SSL_is_init_finished(stream->ssl);
}

/* ---- reading ---- */

void tls_stream_give(struct tls_stream *stream, const uint8_t *bytes, size_t size) {
    stream->in = bytes;
    stream->in_size = size;
    stream->silent_records = 0;
}

/* What the owner of a client, or of this broker, can do something about; the rest in OpenSSL's words. */
static const char *explain(unsigned long error) {
    switch (ERR_GET_REASON(error)) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "no client certificate was shown: give the client one, or write tls.require_client_cert: false";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW: return "the client speaks nothing newer than TLS 1.1: bring it to 1.2 or 1.3";
    case SSL_R_NO_SHARED_CIPHER:
        return "the client has no cipher that is secure enough: let it offer ECDHE with AES-GCM or ChaCha20, and a "
               "group "
               "of X25519, P-256 and P-384";
    case SSL_R_WRONG_CURVE:
        return "the key of the client's certificate is on a curve other than P-256 and P-384: make it on one of these, "
               "or "
               "let the client speak TLS 1.3";
    case SSL_R_EXCESSIVE_MESSAGE_SIZE:
        return "the client shows more certificates than fit in 100 kB: let it show those up to its authority's";
    case SSL_R_NO_SUITABLE_KEY_SHARE:
        return "the client has none of the groups X25519, P-256 and P-384: let it offer one";
    case SSL_R_HTTP_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
        return "the client does not speak TLS: switch it on there, or use a port of listen.mqtt or ws";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return "the client does not know who signed our certificate: give it that authority's (--cafile)";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return "the client says that our certificate has expired: renew tls.cert and send SIGHUP, or set its clock";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        return "the client does not accept our certificate: see that tls.cert names the host it connects to";
    default: return ERR_reason_error_string(error);
    }
}

static enum tls_result fail(struct tls_stream *stream) {
    const unsigned long error = ERR_peek_error();
    const char *why = error != 0 ? explain(error) : NULL;
    char text[256];
    if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        snprintf(text, sizeof(text),
                 "its certificate is not believed: %s; let tls.client_ca hold who has signed it, or give it a new one",
                 X509_verify_cert_error_string(SSL_get_verify_result(stream->ssl)));
        why = text;
    }
    if (stream->wrong == NULL) stream->wrong = strdup(why != NULL ? why : "memory is short: give the machine more");
    ERR_clear_error();
    return TLS_FAILED;
}

enum tls_result tls_stream_read(struct tls_stream *stream, uint8_t *plain, size_t size, size_t *got) {
    while (stream->wrong == NULL) {
        ERR_clear_error();
        if (SSL_read_ex(stream->ssl, plain, size, got) == 1) return TLS_BYTES;
        const int error = SSL_get_error(stream->ssl, 0);
        if (error == SSL_ERROR_ZERO_RETURN) return TLS_ENDED;
        if (error != SSL_ERROR_WANT_READ || stream->out->failed) return fail(stream);
        if (stream->in_size == 0) return TLS_MORE;
        if (++stream->silent_records > SILENT_RECORDS_MAX)
            stream->wrong = strdup("it changes its keys, or greets, again and again: ask for new keys less often");
        else
            continue;
        if (stream->wrong == NULL) return fail(stream);
    }
    return TLS_FAILED;
}

const char *tls_stream_wrong(const struct tls_stream *stream) {
    return stream->wrong != NULL ? stream->wrong : "memory is short: give the machine more";
}

enum tls_name tls_stream_name(const struct tls_stream *stream, char name[TLS_NAME_MAX + 1]) {
    const X509 *certificate = SSL_get0_peer_certificate(stream->ssl);
    if (certificate == NULL) return TLS_NAME_NO_CERTIFICATE;
    if (SSL_get_verify_result(stream->ssl) != X509_V_OK) return TLS_NAME_BAD;
    const X509_NAME *subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0 && X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return TLS_NAME_BAD; /* which one? */
    unsigned char *text = NULL;
    const int size =
        at < 0 ? -1 : ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    bool good = size > 0 && (unsigned)size <= TLS_NAME_MAX;
    good = good && name_is_plain(text, (size_t)size); /* a zero in it would cut the name short */
    if (good) {
        memcpy(name, text, (size_t)size);
        name[size] = '\0';
    }
    OPENSSL_free(text);
    ERR_clear_error();
    return good ? TLS_NAME_GOOD : TLS_NAME_BAD;
}

/* ---- writing ---- */

bool tls_stream_write(struct tls_stream *stream, const void *plain, size_t size) {
    size_t written = 0;
    ERR_clear_error();
    if (stream->wrong == NULL && SSL_write_ex(stream->ssl, plain, size, &written) == 1 && !stream->out->failed)
        return true;
    fail(stream);
    return false;
}

void tls_stream_end(struct tls_stream *stream) {
    if (stream->wrong == NULL && SSL_is_init_finished(stream->ssl)) SSL_shutdown(stream->ssl);
    ERR_clear_error();
}
