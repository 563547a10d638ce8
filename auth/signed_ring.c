#include "auth/signed_ring.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auth/pair.h"
#include "auth/reason.h"
#include "auth/token.h"

#define FIRST_LINE "hobnob gossip ring 1\n"
#define FIRST_LINE_SIZE (sizeof FIRST_LINE - 1)
#define KEY_LETTERS 44u /* 32 bytes in base64 with its padding */
#define THUMBPRINT_LETTERS 43u
#define SIGNATURE_LETTERS 86u

static const char *const stage_words[] = {
    [AUTH_KEY_ACCEPT] = "accept", [AUTH_KEY_SEND] = "send", [AUTH_KEY_OLD] = "old"};

/* ---- writing ---- */

/* All that is signed; 0 if it does not fit. */
static size_t write_body(const struct auth_signed_ring *ring, char text[AUTH_SIGNED_RING_MAX + 1]) {
    char issuer[THUMBPRINT_LETTERS + 1], line[48];
    int size = snprintf(text, AUTH_SIGNED_RING_MAX, FIRST_LINE "federation %s\nnumber %llu\n", ring->federation,
                        (unsigned long long)ring->number);
    for (size_t i = 0; i < ring->count && size > 0 && (size_t)size < AUTH_SIGNED_RING_MAX; i++) {
        auth_ring_line(ring->keys[i].key, line);
        size +=
            snprintf(text + size, AUTH_SIGNED_RING_MAX - (size_t)size, "%s %s", stage_words[ring->keys[i].stage], line);
    }
    OPENSSL_cleanse(line, sizeof line);
    if (size < 0 || (size_t)size >= AUTH_SIGNED_RING_MAX) return 0;
    auth_base64url_encode(ring->issuer, sizeof ring->issuer, issuer);
    size += snprintf(text + size, AUTH_SIGNED_RING_MAX - (size_t)size, "issuer %s\n", issuer);
    return size < 0 || (size_t)size >= AUTH_SIGNED_RING_MAX ? 0 : (size_t)size;
}

/* ---- reading ---- */

/* A cursor over lines that must each be there, in order. */
struct lines {
    const char *at;
    size_t left;
};

/* The rest of a line that begins with this word and a space; NULL if the next line does not. */
static const char *take(struct lines *lines, const char *word, size_t *size) {
    const size_t word_size = strlen(word);
    const char *end = memchr(lines->at, '\n', lines->left);
    if (end == NULL || (size_t)(end - lines->at) <= word_size || memcmp(lines->at, word, word_size) != 0 ||
        lines->at[word_size] != ' ')
        return NULL;
    const char *rest = lines->at + word_size + 1;
    *size = (size_t)(end - rest);
    lines->left -= (size_t)(end + 1 - lines->at);
    lines->at = end + 1;
    return rest;
}

static bool read_number(const char *text, size_t size, uint64_t *number) {
    uint64_t value = 0;
    if (text == NULL || size == 0 || size > 12 || text[0] == '0') return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *number = value;
    return true;
}

/* A key's line, if the next one is; *good says whether it can be read. */
static bool take_key(struct lines *lines, struct auth_signed_ring *ring, bool *good) {
    size_t stage = 0, size = 0;
    const char *letters = NULL;
    while (stage < sizeof stage_words / sizeof *stage_words &&
           (letters = take(lines, stage_words[stage], &size)) == NULL)
        stage++;
    if (letters == NULL) return false;
    struct auth_ring one;
    *good = ring->count < AUTH_RING_MAX && size == KEY_LETTERS && auth_ring_parse(letters, size, &one) == AUTH_OK;
    if (*good) {
        memcpy(ring->keys[ring->count].id, one.keys[0].id, sizeof one.keys[0].id);
        memcpy(ring->keys[ring->count].key, one.keys[0].key, sizeof one.keys[0].key);
        ring->keys[ring->count].stage = (enum auth_key_stage)stage;
        ring->count++;
    }
    OPENSSL_cleanse(&one, sizeof one);
    return true;
}

/* The one that seals is first, and no key is there twice. */
static bool keys_are_good(const struct auth_signed_ring *ring) {
    for (size_t i = 0; i < ring->count; i++) {
        if ((ring->keys[i].stage == AUTH_KEY_SEND) != (i == 0)) return false;
        for (size_t j = 0; j < i; j++)
            if (memcmp(ring->keys[i].key, ring->keys[j].key, sizeof ring->keys[i].key) == 0) return false;
    }
    return ring->count > 0;
}

static bool read_body(struct lines *lines, struct auth_signed_ring *ring) {
    size_t size = 0;
    const char *text = take(lines, "federation", &size);
    if (text == NULL || size > AUTH_FEDERATION_MAX || !auth_name_valid(text, size)) return false;
    memcpy(ring->federation, text, size);
    text = take(lines, "number", &size);
    if (!read_number(text, size, &ring->number)) return false;
    bool good = true;
    while (good && take_key(lines, ring, &good))
        continue;
    if (!good || !keys_are_good(ring)) return false;
    text = take(lines, "issuer", &size);
    return text != NULL && size == THUMBPRINT_LETTERS &&
           auth_base64url_decode(text, size, ring->issuer, sizeof ring->issuer) == sizeof ring->issuer;
}

static enum auth_result read_all(const char *text, size_t size, struct auth_signed_ring *ring, size_t *body_size,
                                 uint8_t signature[64], char reason[160]) {
    struct auth_signed_ring read = {0};
    struct lines lines = {text, size};
    char again[AUTH_SIGNED_RING_MAX + 1];
    enum auth_result result = AUTH_MALFORMED;
    auth_say(reason,
             "this is no key ring, or a damaged one: take the file that hobnob key rotate wrote, byte for byte");
    if (size > AUTH_SIGNED_RING_MAX || size < FIRST_LINE_SIZE || memcmp(text, FIRST_LINE, FIRST_LINE_SIZE) != 0)
        return AUTH_MALFORMED;
    lines.at += FIRST_LINE_SIZE;
    lines.left -= FIRST_LINE_SIZE;
    if (!read_body(&lines, &read)) goto end;
    *body_size = (size_t)(lines.at - text);
    size_t letters_size = 0;
    const char *letters = take(&lines, "signature", &letters_size);
    if (letters == NULL || lines.left != 0 || letters_size != SIGNATURE_LETTERS ||
        auth_base64url_decode(letters, letters_size, signature, 64) != 64)
        goto end;
    /* What means the same and is spelt otherwise is not what was signed. */
    if (write_body(&read, again) != *body_size || memcmp(again, text, *body_size) != 0) goto end;
    result = AUTH_NO_MEMORY;
    if (!auth_digest((const uint8_t *)text, *body_size, read.digest)) {
        auth_say(reason, "memory is short: try again");
        goto end;
    }
    *ring = read;
    result = AUTH_OK;
end:
    OPENSSL_cleanse(&read, sizeof read);
    OPENSSL_cleanse(again, sizeof again);
    return result;
}

enum auth_result auth_signed_ring_read(const char *text, size_t size, struct auth_signed_ring *ring, char reason[160]) {
    size_t body_size;
    uint8_t signature[64];
    return read_all(text, size, ring, &body_size, signature, reason);
}

static const struct auth_key *find_issuer(const struct auth_key *const *issuers, size_t count,
                                          const uint8_t thumbprint[AUTH_THUMBPRINT_SIZE]) {
    for (size_t i = 0; i < count; i++)
        if (memcmp(issuers[i]->thumbprint, thumbprint, AUTH_THUMBPRINT_SIZE) == 0) return issuers[i];
    return NULL;
}

enum auth_result auth_signed_ring_verify(const char *text, size_t size, const struct auth_key *const *issuers,
                                         size_t issuer_count, const char *federation, struct auth_signed_ring *ring,
                                         char reason[160]) {
    struct auth_signed_ring read;
    size_t body_size;
    uint8_t signature[64];
    enum auth_result result = read_all(text, size, &read, &body_size, signature, reason);
    if (result != AUTH_OK) return result;
    const struct auth_key *issuer = find_issuer(issuers, issuer_count, read.issuer);
    result = AUTH_REFUSED;
    if (issuer == NULL)
        auth_say(reason,
                 "ring %llu is signed by an issuer that is not in identity.issuers: add its .pub there, or sign "
                 "with one that is",
                 (unsigned long long)read.number);
    else if (!auth_verify(issuer, (const uint8_t *)text, body_size, signature))
        auth_say(reason, "ring %llu was changed after it was signed: take the file that hobnob key rotate wrote",
                 (unsigned long long)read.number);
    else if (strcmp(read.federation, federation) != 0)
        auth_say(reason, "ring %llu is for federation %s: make one with hobnob key rotate --federation",
                 (unsigned long long)read.number, read.federation);
    else
        result = AUTH_OK;
    if (result == AUTH_OK) *ring = read;
    OPENSSL_cleanse(&read, sizeof read);
    return result;
}

const char *auth_signed_ring_in(const char *text, size_t size, size_t *ring_size) {
    while (size > 0 && text[0] == '#') {
        const char *end = memchr(text, '\n', size);
        size_t line_size = end != NULL ? (size_t)(end - text) + 1 : size;
        text += line_size;
        size -= line_size;
    }
    if (size < FIRST_LINE_SIZE || memcmp(text, FIRST_LINE, FIRST_LINE_SIZE) != 0) return NULL;
    *ring_size = size;
    return text;
}

/* ---- signing ---- */

enum auth_result auth_signed_ring_sign(const struct auth_signed_ring *ring, const struct auth_key *issuer,
                                       char text[AUTH_SIGNED_RING_MAX + 1], char reason[160]) {
    struct auth_signed_ring signed_ring = *ring, again;
    uint8_t signature[64];
    char letters[SIGNATURE_LETTERS + 1];
    enum auth_result result = AUTH_NO_PRIVATE_KEY;
    auth_key_thumbprint(issuer, signed_ring.issuer);
    size_t size = ring->count <= AUTH_RING_MAX ? write_body(&signed_ring, text) : 0;
    if (size == 0) {
        auth_say(reason, "the ring has too many keys, or its federation's name is too long");
        return AUTH_MALFORMED;
    }
    if (!auth_key_is_private(issuer)) {
        auth_say(reason, "a public key cannot sign: name the issuer's .key file");
    } else if (!auth_sign(issuer, (const uint8_t *)text, size, signature)) {
        result = AUTH_NO_MEMORY;
        auth_say(reason, "memory is short: try again");
    } else {
        auth_base64url_encode(signature, sizeof signature, letters);
        size += (size_t)snprintf(text + size, AUTH_SIGNED_RING_MAX + 1 - size, "signature %s\n", letters);
        result = auth_signed_ring_read(text, size, &again, reason);
    }
    OPENSSL_cleanse(&signed_ring, sizeof signed_ring);
    OPENSSL_cleanse(&again, sizeof again);
    return result;
}
