#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "auth/keys.h"
#include "auth/pair.h"

#define VERSION_3 2 /* X.509 counts from zero */

static bool certificate_fill(X509 *certificate, const struct auth_key *key, const char *common_name) {
    X509_NAME *name = X509_get_subject_name(certificate);
    BIGNUM *serial = BN_bin2bn(key->thumbprint, 16, NULL);
    /* RFC 5280 section 4.1.2.2 wants a positive number of at most 20 bytes. */
    bool good = serial != NULL && BN_add_word(serial, 1) == 1 &&
                BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate)) != NULL;
    BN_free(serial);
    /* Dates without a clock: always valid ("99991231235959Z" is RFC 5280's word for no end). What ends is the token. */
    return good && X509_set_version(certificate, VERSION_3) == 1 &&
           ASN1_TIME_set_string(X509_getm_notBefore(certificate), "20000101000000Z") == 1 &&
           ASN1_TIME_set_string(X509_getm_notAfter(certificate), "99991231235959Z") == 1 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name, -1, -1, 0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key->pkey) == 1 &&
           X509_sign(certificate, key->pkey, EVP_sha256()) > 0;
}

enum auth_result auth_key_certificate(const struct auth_key *key, const char *common_name, uint8_t **der,
                                      size_t *size) {
    if (!key->is_private) return AUTH_NO_PRIVATE_KEY;
    enum auth_result result = AUTH_OK;
    uint8_t *encoded = NULL, *copy = NULL;
    X509 *certificate = X509_new();
    int encoded_size =
        certificate != NULL && certificate_fill(certificate, key, common_name) ? i2d_X509(certificate, &encoded) : -1;
    if (encoded_size <= 0) {
        result = certificate == NULL ? AUTH_NO_MEMORY : auth_openssl_failure();
    } else if ((copy = malloc((size_t)encoded_size)) == NULL) {
        result = AUTH_NO_MEMORY;
    } else {
        memcpy(copy, encoded, (size_t)encoded_size);
        *der = copy;
        *size = (size_t)encoded_size;
    }
    OPENSSL_free(encoded);
    X509_free(certificate);
    if (result != AUTH_OK) ERR_clear_error();
    return result;
}
