#include "auth/keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "auth/pair.h"

#define PEM_MAX 65536u
#define CURVE "prime256v1"
#define COORDINATE_SIZE 32

enum auth_result auth_openssl_failure(void) {
    bool memory = ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE;
    ERR_clear_error();
    return memory ? AUTH_NO_MEMORY : AUTH_MALFORMED;
}

bool auth_point_thumbprint(const uint8_t point[AUTH_PUBLIC_KEY_SIZE], uint8_t thumbprint[AUTH_THUMBPRINT_SIZE]) {
    /* RFC 7638 section 3.2: the required members in lexical order, without white space. */
    char x[44], y[44], jwk[160];
    auth_base64url_encode(point + 1, COORDINATE_SIZE, x);
    auth_base64url_encode(point + 1 + COORDINATE_SIZE, COORDINATE_SIZE, y);
    int size = snprintf(jwk, sizeof jwk, "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"%s\",\"y\":\"%s\"}", x, y);
    return auth_digest((const uint8_t *)jwk, (size_t)size, thumbprint);
}

static EVP_PKEY *pkey_from_parts(const uint8_t point[AUTH_PUBLIC_KEY_SIZE], const BIGNUM *scalar) {
    EVP_PKEY *pkey = NULL;
    OSSL_PARAM *params = NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    bool good = build != NULL && context != NULL &&
                OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, CURVE, 0) == 1 &&
                OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, AUTH_PUBLIC_KEY_SIZE) == 1 &&
                (scalar == NULL || OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, scalar) == 1) &&
                (params = OSSL_PARAM_BLD_to_param(build)) != NULL && EVP_PKEY_fromdata_init(context) == 1;
    if (good) EVP_PKEY_fromdata(context, &pkey, scalar != NULL ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    EVP_PKEY_CTX_free(context);
    return pkey;
}

static enum auth_result key_from_parts(const uint8_t point[AUTH_PUBLIC_KEY_SIZE], const BIGNUM *scalar,
                                       struct auth_key **key) {
    struct auth_key *made = calloc(1, sizeof *made);
    if (made == NULL) return AUTH_NO_MEMORY;
    memcpy(made->point, point, sizeof made->point);
    made->is_private = scalar != NULL;
    made->pkey = pkey_from_parts(point, scalar);
    if (made->pkey == NULL) {
        auth_key_free(made);
        return auth_openssl_failure();
    }
    if (!auth_point_thumbprint(point, made->thumbprint)) {
        auth_key_free(made);
        return AUTH_NO_MEMORY;
    }
    *key = made;
    return AUTH_OK;
}

/* The pair of a scalar in 1 .. n-1. The point is always computed, so a file whose halves disagree cannot make an
 * inconsistent pair. */
static enum auth_result key_from_scalar(const EC_GROUP *group, const BIGNUM *scalar, BN_CTX *numbers,
                                        struct auth_key **key) {
    if (BN_is_zero(scalar) || BN_is_negative(scalar) || BN_cmp(scalar, EC_GROUP_get0_order(group)) >= 0)
        return AUTH_MALFORMED;
    uint8_t bytes[AUTH_PUBLIC_KEY_SIZE];
    EC_POINT *point = EC_POINT_new(group);
    bool good =
        point != NULL && EC_POINT_mul(group, point, scalar, NULL, NULL, numbers) == 1 &&
        EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, bytes, sizeof bytes, numbers) == sizeof bytes;
    EC_POINT_free(point);
    return good ? key_from_parts(bytes, scalar, key) : auth_openssl_failure();
}

enum auth_result auth_key_new(const uint8_t entropy[AUTH_ENTROPY_SIZE], struct auth_key **key) {
    enum auth_result result = AUTH_NO_MEMORY;
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BN_CTX *numbers = BN_CTX_secure_new();
    BIGNUM *scalar = BN_bin2bn(entropy, AUTH_ENTROPY_SIZE, NULL), *below = BN_new();
    if (group != NULL && numbers != NULL && scalar != NULL && below != NULL &&
        BN_sub(below, EC_GROUP_get0_order(group), BN_value_one()) == 1 &&
        BN_nnmod(scalar, scalar, below, numbers) == 1 && BN_add_word(scalar, 1) == 1) {
        BN_set_flags(scalar, BN_FLG_CONSTTIME);
        result = key_from_scalar(group, scalar, numbers, key);
    }
    BN_clear_free(scalar);
    BN_free(below);
    BN_CTX_free(numbers);
    EC_GROUP_free(group);
    if (result != AUTH_OK) ERR_clear_error();
    return result;
}

/* An encrypted key is refused rather than asked for on a terminal. */
static int no_password(char *buffer, int size, int writing, void *context) {
    (void)buffer, (void)size, (void)writing, (void)context;
    return -1;
}

static EVP_PKEY *pem_read(const char *pem, size_t size, bool *is_private) {
    BIO *bio = BIO_new_mem_buf(pem, (int)size);
    if (bio == NULL) return NULL;
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    *is_private = pkey != NULL;
    if (pkey == NULL && ERR_GET_REASON(ERR_peek_last_error()) != ERR_R_MALLOC_FAILURE) {
        ERR_clear_error();
        BIO_reset(bio);
        pkey = PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL);
    }
    BIO_free(bio);
    return pkey;
}

static bool on_our_curve(const EVP_PKEY *pkey) {
    char name[32];
    size_t size = 0;
    return EVP_PKEY_get_base_id(pkey) == EVP_PKEY_EC && EVP_PKEY_get_group_name(pkey, name, sizeof name, &size) == 1 &&
           strcmp(name, CURVE) == 0;
}

static enum auth_result pair_of(const EVP_PKEY *pkey, struct auth_key **key) {
    enum auth_result result = AUTH_NO_MEMORY;
    BIGNUM *scalar = NULL;
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    BN_CTX *numbers = BN_CTX_secure_new();
    if (group != NULL && numbers != NULL) {
        result = EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_PRIV_KEY, &scalar) == 1
                     ? key_from_scalar(group, scalar, numbers, key)
                     : auth_openssl_failure();
    }
    BN_clear_free(scalar);
    BN_CTX_free(numbers);
    EC_GROUP_free(group);
    return result;
}

static enum auth_result public_of(const EVP_PKEY *pkey, struct auth_key **key) {
    uint8_t point[AUTH_PUBLIC_KEY_SIZE] = {4};
    BIGNUM *x = NULL, *y = NULL;
    enum auth_result result;
    /* Coordinates, not the encoded point: a file may hold a compressed one. */
    if (EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_EC_PUB_X, &x) == 1 &&
        EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_EC_PUB_Y, &y) == 1 &&
        BN_bn2binpad(x, point + 1, COORDINATE_SIZE) == COORDINATE_SIZE &&
        BN_bn2binpad(y, point + 1 + COORDINATE_SIZE, COORDINATE_SIZE) == COORDINATE_SIZE)
        result = key_from_parts(point, NULL, key);
    else
        result = auth_openssl_failure();
    BN_free(x);
    BN_free(y);
    return result;
}

enum auth_result auth_key_parse(const char *pem, size_t size, struct auth_key **key) {
    if (size == 0 || size > PEM_MAX) return AUTH_MALFORMED;
    bool is_private = false;
    EVP_PKEY *pkey = pem_read(pem, size, &is_private);
    if (pkey == NULL) return auth_openssl_failure();
    enum auth_result result = !on_our_curve(pkey) ? AUTH_MALFORMED
                              : is_private        ? pair_of(pkey, key)
                                                  : public_of(pkey, key);
    EVP_PKEY_free(pkey);
    ERR_clear_error();
    return result;
}

enum auth_result auth_key_from_point(const uint8_t point[AUTH_PUBLIC_KEY_SIZE], struct auth_key **key) {
    if (point[0] != 4) return AUTH_MALFORMED;
    return key_from_parts(point, NULL, key);
}

void auth_key_free(struct auth_key *key) {
    if (key == NULL) return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

bool auth_key_is_private(const struct auth_key *key) {
    return key->is_private;
}

void auth_key_point(const struct auth_key *key, uint8_t point[AUTH_PUBLIC_KEY_SIZE]) {
    memcpy(point, key->point, sizeof key->point);
}

void auth_key_thumbprint(const struct auth_key *key, uint8_t thumbprint[AUTH_THUMBPRINT_SIZE]) {
    memcpy(thumbprint, key->thumbprint, sizeof key->thumbprint);
}

static enum auth_result bio_take_text(BIO *bio, bool written, char **text) {
    char *bytes = NULL, *copy = NULL;
    long size = written ? BIO_get_mem_data(bio, &bytes) : 0;
    if (size > 0) copy = malloc((size_t)size + 1);
    if (copy == NULL) {
        ERR_clear_error();
        return AUTH_NO_MEMORY;
    }
    memcpy(copy, bytes, (size_t)size);
    copy[size] = '\0';
    *text = copy;
    return AUTH_OK;
}

enum auth_result auth_key_public_pem(const struct auth_key *key, char **pem) {
    BIO *bio = BIO_new(BIO_s_mem());
    enum auth_result result = bio_take_text(bio, bio != NULL && PEM_write_bio_PUBKEY(bio, key->pkey) == 1, pem);
    BIO_free(bio);
    return result;
}

enum auth_result auth_key_private_pem(const struct auth_key *key, char **pem) {
    if (!key->is_private) return AUTH_NO_PRIVATE_KEY;
    BIO *bio = BIO_new(BIO_s_secmem());
    enum auth_result result = bio_take_text(
        bio, bio != NULL && PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL) == 1, pem);
    BIO_free(bio);
    return result;
}
