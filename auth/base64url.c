#include "auth/keys.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t auth_base64url_encode(const uint8_t *bytes, size_t size, char *out) {
    size_t at = 0;
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (left > 1) group |= (uint32_t)bytes[i + 1] << 8;
        if (left > 2) group |= bytes[i + 2];
        out[at++] = alphabet[group >> 18];
        out[at++] = alphabet[group >> 12 & 63];
        if (left > 1) out[at++] = alphabet[group >> 6 & 63];
        if (left > 2) out[at++] = alphabet[group & 63];
    }
    out[at] = '\0';
    return at;
}

static int sextet(char letter) {
    if (letter >= 'A' && letter <= 'Z') return letter - 'A';
    if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
    if (letter >= '0' && letter <= '9') return letter - '0' + 52;
    if (letter == '-') return 62;
    if (letter == '_') return 63;
    return -1;
}

long auth_base64url_decode(const char *text, size_t size, uint8_t *out, size_t out_max) {
    size_t needed = size / 4 * 3 + (size % 4 > 0 ? size % 4 - 1 : 0);
    if (size % 4 == 1 || needed > out_max) return -1;
    uint32_t bits = 0;
    unsigned held = 0;
    size_t at = 0;
    for (size_t i = 0; i < size; i++) {
        int value = sextet(text[i]);
        if (value < 0) return -1;
        bits = (bits << 6 | (uint32_t)value) & 0xFFFFu;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out[at++] = (uint8_t)(bits >> held);
    }
    /* Left-over bits must be zero, or one value would have several spellings (RFC 4648 section 3.5). */
    if ((bits & ((1u << held) - 1)) != 0) return -1;
    return (long)at;
}
