/* TLS of one client's connection (RFC 8446, RFC 5246) as bytes alone: what came from the socket goes in, what is to be
 * sent comes out. Nothing is kept of either but a record that is not whole. */
#ifndef DAEMON_TLS_STREAM_H
#define DAEMON_TLS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/text.h"
#include "daemon/tls_certificates.h"

#define TLS_RECORD_MAX 16384u /* bytes of plain text in one record */

struct tls_stream;

/* What is to be sent is appended to out, which outlives the stream; when out has failed, so has the stream. NULL when
 * memory is short. */
struct tls_stream *tls_stream_new(const struct tls_certificates *certificates, struct text *out);
void tls_stream_free(struct tls_stream *stream);

/* The next bytes from the socket; borrowed until tls_stream_read() has said TLS_MORE. */
void tls_stream_give(struct tls_stream *stream, const uint8_t *bytes, size_t size);

enum tls_result {
    TLS_BYTES,  /* *got bytes of plain text */
    TLS_MORE,   /* all that was given is used up */
    TLS_ENDED,  /* the far end has said that nothing follows (close_notify) */
    TLS_FAILED, /* tls_stream_wrong() says why; an alert may be in out */
};
enum tls_result tls_stream_read(struct tls_stream *stream, uint8_t *plain, size_t size, size_t *got);
/* True once the handshake is done: plain text may be written, and the name asked for. */
bool tls_stream_is_up(const struct tls_stream *stream);

/* One line, for the log: why it failed. */
const char *tls_stream_wrong(const struct tls_stream *stream);

#define TLS_NAME_MAX 256u
enum tls_name { TLS_NAME_GOOD, TLS_NAME_NO_CERTIFICATE, TLS_NAME_BAD };
/* The subject's common name in the client's certificate, which was verified. TLS_NAME_BAD: it has none that can be a
 * user name, or several. */
enum tls_name tls_stream_name(const struct tls_stream *stream, char name[TLS_NAME_MAX + 1]);

/* Encrypts into out; size is 1 to TLS_RECORD_MAX. False when memory is short or the stream has failed. */
bool tls_stream_write(struct tls_stream *stream, const void *plain, size_t size);
/* Says that nothing follows (close_notify). */
void tls_stream_end(struct tls_stream *stream);

#endif
