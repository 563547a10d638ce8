#include <openssl/crypto.h>
#include <string.h>

#include "auth/keys.h"
#include "auth/pair.h"

#define LINE_LETTERS 43u /* 32 bytes in base64, without the padding */

/* A line holds a key in plain base64 with or without its "="; base64url is read as well. */
static bool line_decode(const char *line, size_t size, uint8_t key[32]) {
    if (size == LINE_LETTERS + 1 && line[LINE_LETTERS] == '=') size--;
    if (size != LINE_LETTERS) return false;
    char letters[LINE_LETTERS];
    for (size_t i = 0; i < LINE_LETTERS; i++)
        letters[i] = line[i] == '+' ? '-' : line[i] == '/' ? '_' : line[i];
    bool good = auth_base64url_decode(letters, LINE_LETTERS, key, 32) == 32;
    OPENSSL_cleanse(letters, sizeof letters);
    return good;
}

static bool blank(char letter) {
    return letter == ' ' || letter == '\t' || letter == '\r';
}

enum auth_result auth_ring_parse(const char *text, size_t size, struct auth_ring *ring) {
    struct auth_ring read = {0};
    enum auth_result result = AUTH_MALFORMED;
    for (size_t at = 0; at < size;) {
        const char *line = text + at, *end = memchr(line, '\n', size - at);
        size_t line_size = end != NULL ? (size_t)(end - line) : size - at;
        at += line_size + 1;
        while (line_size > 0 && blank(*line))
            line++, line_size--;
        const char *comment = line_size > 0 ? memchr(line, '#', line_size) : NULL;
        if (comment != NULL) line_size = (size_t)(comment - line);
        while (line_size > 0 && blank(line[line_size - 1]))
            line_size--;
        if (line_size == 0) continue;

        uint8_t digest[32];
        if (read.count == AUTH_RING_MAX || !line_decode(line, line_size, read.keys[read.count].key)) goto end;
        if (!auth_digest(read.keys[read.count].key, 32, digest)) {
            result = AUTH_NO_MEMORY;
            goto end;
        }
        memcpy(read.keys[read.count].id, digest, 4);
        read.count++;
    }
    if (read.count > 0) {
        *ring = read;
        result = AUTH_OK;
    }
end:
    OPENSSL_cleanse(&read, sizeof read);
    return result;
}

void auth_ring_line(const uint8_t key[32], char line[48]) {
    size_t size = auth_base64url_encode(key, 32, line);
    for (size_t i = 0; i < size; i++)
        line[i] = line[i] == '-' ? '+' : line[i] == '_' ? '/' : line[i];
    memcpy(line + size, "=\n", 3);
}
