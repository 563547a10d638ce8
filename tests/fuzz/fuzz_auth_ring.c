/* Bytes as a signed key ring, and as a file that holds one. What is read is spelt in one way only: signing it again
 * gives the same bytes but for the issuer and the signature. Nothing verifies: the issuer signs none here. */
#include <stdlib.h>
#include <string.h>

#include "auth/signed_ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct auth_key *issuer;

static void as_ring(const char *text, size_t size) {
    const struct auth_key *issuers[] = {issuer};
    struct auth_signed_ring ring, again;
    char written[AUTH_SIGNED_RING_MAX + 1], reason[160];
    memset(reason, 'x', sizeof reason);
    if (auth_signed_ring_verify(text, size, issuers, 1, "default", &ring, reason) == AUTH_OK) abort();
    if (memchr(reason, '\0', sizeof reason) == NULL) abort();
    if (auth_signed_ring_read(text, size, &ring, reason) != AUTH_OK) return;
    if (size > AUTH_SIGNED_RING_MAX || ring.count < 1 || ring.count > AUTH_RING_MAX || ring.number == 0) abort();
    if (auth_signed_ring_sign(&ring, issuer, written, reason) != AUTH_OK) abort();
    if (strlen(written) != size || auth_signed_ring_read(written, size, &again, reason) != AUTH_OK) abort();
    const char *signer = strstr(written, "\nissuer ");
    if (signer == NULL || memcmp(written, text, (size_t)(signer - written)) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const uint8_t entropy[AUTH_ENTROPY_SIZE] = {1};
    size_t ring_size = 0;
    if (issuer == NULL && auth_key_new(entropy, &issuer) != AUTH_OK) abort();
    as_ring((const char *)bytes, size);
    const char *ring = auth_signed_ring_in((const char *)bytes, size, &ring_size);
    if (ring == NULL) return 0;
    if (ring < (const char *)bytes || ring + ring_size != (const char *)bytes + size) abort();
    as_ring(ring, ring_size);
    return 0;
}
