#include "broker/hash.h"

#include <string.h>

static uint64_t rotate(uint64_t x, unsigned by) {
    return (x << by) | (x >> (64 - by));
}

/* In the byte order of SipHash: brokers tell each other hashes (digest.h). */
static uint64_t little_endian(uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(word);
#else
    return word;
#endif
}

static void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size) {
    uint64_t second = (seed ^ 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u;
    uint64_t v[4] = {seed ^ 0x736F6D6570736575u, second ^ 0x646F72616E646F6Du, seed ^ 0x6C7967656E657261u,
                     second ^ 0x7465646279746573u};
    const unsigned char *at = bytes;
    uint64_t word;
    size_t left = size;

    for (; left >= 8; left -= 8, at += 8) {
        memcpy(&word, at, 8);
        word = little_endian(word);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)size << 56;
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)at[i] << (8 * i);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
