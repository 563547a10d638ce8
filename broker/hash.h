/* A seeded hash for tables whose keys come from strangers: SipHash-1-3 (Aumasson, Bernstein 2012), so that nobody who
 * does not know the seed can aim at one bucket. */
#ifndef BROKER_HASH_H
#define BROKER_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size);

#endif
