/* Repeatable randomness: the same seed gives the same choices. Never a source of secrets beyond what its seed holds. */
#ifndef GOSSIP_CHANCE_H
#define GOSSIP_CHANCE_H

#include <stdint.h>

struct chance {
    uint64_t state;
};

/* Steele, Lea, Flood 2014 (splitmix64). */
static inline uint64_t chance_next(struct chance *chance) {
    uint64_t z = chance->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* 0 to bound - 1; bound over 0. */
static inline uint32_t chance_below(struct chance *chance, uint32_t bound) {
    return (uint32_t)(((chance_next(chance) >> 32) * bound) >> 32);
}

#endif
