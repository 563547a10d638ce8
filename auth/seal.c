#include "auth/seal.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

#include "auth/pair.h"

bool auth_digest(const uint8_t *bytes, size_t size, uint8_t digest[32]) {
    if (EVP_Digest(size > 0 ? bytes : (const uint8_t *)"", size, digest, NULL, EVP_sha256(), NULL) == 1) return true;
    ERR_clear_error();
    return false;
}

void auth_sha256(const uint8_t *bytes, size_t size, uint8_t digest[32]) {
    if (!auth_digest(bytes, size, digest)) memset(digest, 0, 32);
}

bool auth_seal(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
               const uint8_t *plain, size_t size, uint8_t *out) {
    if (size > INT_MAX - AUTH_TAG_SIZE || aad_size > INT_MAX) return false;
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int written = 0;
    bool good = context != NULL && EVP_EncryptInit_ex2(context, EVP_aes_256_gcm(), key, nonce, NULL) == 1 &&
                (aad_size == 0 || EVP_EncryptUpdate(context, NULL, &written, aad, (int)aad_size) == 1) &&
                (size == 0 || EVP_EncryptUpdate(context, out, &written, plain, (int)size) == 1) &&
                EVP_EncryptFinal_ex(context, out + size, &written) == 1 &&
                EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, AUTH_TAG_SIZE, out + size) == 1;
    EVP_CIPHER_CTX_free(context);
    if (!good) ERR_clear_error();
    return good;
}

bool auth_open(const uint8_t key[32], const uint8_t nonce[12], const uint8_t *aad, size_t aad_size,
               const uint8_t *sealed, size_t size, uint8_t *out) {
    if (size < AUTH_TAG_SIZE || size > INT_MAX || aad_size > INT_MAX) return false;
    size_t plain_size = size - AUTH_TAG_SIZE;
    uint8_t tag[AUTH_TAG_SIZE], none[1];
    memcpy(tag, sealed + plain_size, sizeof tag);
    if (plain_size == 0) out = none;

    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    int written = 0;
    bool good = context != NULL && EVP_DecryptInit_ex2(context, EVP_aes_256_gcm(), key, nonce, NULL) == 1 &&
                (aad_size == 0 || EVP_DecryptUpdate(context, NULL, &written, aad, (int)aad_size) == 1) &&
                (plain_size == 0 || EVP_DecryptUpdate(context, out, &written, sealed, (int)plain_size) == 1) &&
                EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, AUTH_TAG_SIZE, tag) == 1 &&
                EVP_DecryptFinal_ex(context, out + plain_size, &written) == 1;
    EVP_CIPHER_CTX_free(context);
    if (!good) {
        /* Text that was not proved must not be usable by a caller who forgets to look at the result. */
        memset(out, 0, plain_size);
        ERR_clear_error();
    }
    return good;
}
