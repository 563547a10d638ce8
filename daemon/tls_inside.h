/* Inside daemon/tls*.c: what a connection needs of the certificates. Not a door. */
#ifndef DAEMON_TLS_INSIDE_H
#define DAEMON_TLS_INSIDE_H

#include <openssl/ssl.h>

struct tls_certificates {
    SSL_CTX *context;   /* of new connections; NULL until files were read. Older ones hold their own */
    BIO_METHOD *memory; /* by which OpenSSL reads and writes (tls_stream.c) */
};

/* NULL when memory is short. */
BIO_METHOD *tls_stream_memory_new(void);

#endif
