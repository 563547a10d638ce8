#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>

#include "auth/keys.h"
#include "auth/pair.h"

#define DER_MAX 80 /* of an ECDSA signature on P-256: 72 */
#define HALF 32

static bool halves_of(const uint8_t *der, size_t size, uint8_t signature[64]) {
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)size);
    bool good = pair != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(pair), signature, HALF) == HALF &&
                BN_bn2binpad(ECDSA_SIG_get0_s(pair), signature + HALF, HALF) == HALF;
    ECDSA_SIG_free(pair);
    return good;
}

bool auth_sign(const struct auth_key *key, const uint8_t *bytes, size_t size, uint8_t signature[64]) {
    if (!key->is_private) return false;
    uint8_t der[DER_MAX];
    size_t der_size = sizeof der;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context != NULL && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
                EVP_DigestSign(context, der, &der_size, bytes, size) == 1 && halves_of(der, der_size, signature);
    EVP_MD_CTX_free(context);
    if (!good) ERR_clear_error();
    return good;
}

static int der_of(const uint8_t signature[64], uint8_t der[DER_MAX]) {
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, HALF, NULL), *s = BN_bin2bn(signature + HALF, HALF, NULL);
    int size = -1;
    if (pair != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL; /* the pair owns them now */
        size = i2d_ECDSA_SIG(pair, &der);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(pair);
    return size;
}

bool auth_verify(const struct auth_key *key, const uint8_t *bytes, size_t size, const uint8_t signature[64]) {
    uint8_t der[DER_MAX];
    int der_size = der_of(signature, der);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = der_size > 0 && context != NULL &&
                EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
                EVP_DigestVerify(context, der, (size_t)der_size, bytes, size) == 1;
    EVP_MD_CTX_free(context);
    if (!good) ERR_clear_error();
    return good;
}
