#include "tools/simulate/tally.h"

/* Below TALLY_STEPS each value has a bucket; above, each doubling has TALLY_STEPS. */
static uint32_t bucket_of(uint64_t value) {
    uint32_t shift = 0;
    while ((value >> shift) >= 2 * TALLY_STEPS)
        shift++;
    uint64_t bucket = shift * TALLY_STEPS + (value >> shift);
    return bucket < TALLY_BUCKETS ? (uint32_t)bucket : TALLY_BUCKETS - 1;
}

static uint64_t highest_of(uint32_t bucket) {
    if (bucket < 2 * TALLY_STEPS) return bucket;
    uint32_t shift = bucket / TALLY_STEPS - 1;
    uint64_t top = bucket - shift * TALLY_STEPS;
    return ((top + 1) << shift) - 1;
}

void tally_add(struct tally *tally, uint64_t value) {
    tally->count++;
    tally->sum += value;
    if (value > tally->max) tally->max = value;
    tally->buckets[bucket_of(value)]++;
}

uint64_t tally_at(const struct tally *tally, double share) {
    uint64_t passed = 0, wanted = (uint64_t)(share * (double)tally->count + 0.999999);
    if (tally->count == 0) return 0;
    if (wanted < 1) wanted = 1;
    for (uint32_t i = 0; i < TALLY_BUCKETS; i++) {
        passed += tally->buckets[i];
        if (passed < wanted) continue;
        uint64_t value = highest_of(i);
        return value < tally->max ? value : tally->max;
    }
    return tally->max;
}
