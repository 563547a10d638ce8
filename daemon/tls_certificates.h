/* The certificates that clients see over TLS, and whose certificates of theirs are believed: `tls` in the
 * configuration, read into memory. */
#ifndef DAEMON_TLS_CERTIFICATES_H
#define DAEMON_TLS_CERTIFICATES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"

struct tls_certificates;

/* Empty; NULL when memory is short. */
struct tls_certificates *tls_certificates_new(void);
void tls_certificates_free(struct tls_certificates *certificates);

/* Reads the files that config.tls names, adding a fault for each that is missing, unreadable or wrong, in the lines
 * that name them. Without errors, connections made from now on use them; with any, or when config names none,
 * everything stays as it was. wall_s: seconds since 1970, for warnings of what has expired. */
void tls_certificates_read(struct tls_certificates *certificates, const struct config *config, int64_t wall_s,
                           struct config_faults *faults);

/* The dates of our own, seconds since 1970; 0 if there is none. */
void tls_certificates_dates(const struct tls_certificates *certificates, int64_t *from_s, int64_t *to_s);

#endif
