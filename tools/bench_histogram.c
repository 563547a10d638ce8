#include "bench_histogram.h"

/* Values below 64 have a bucket each; every doubling above that has 64. */
static uint32_t bucket_of(uint32_t value) {
    if (value < BENCH_BUCKETS_PER_OCTAVE) return value;
    uint32_t octave = 31u - (uint32_t)__builtin_clz(value) - 6u;
    return octave * BENCH_BUCKETS_PER_OCTAVE + (value >> octave);
}

static uint32_t largest_in(uint32_t bucket) {
    if (bucket < 2 * BENCH_BUCKETS_PER_OCTAVE) return bucket;
    uint32_t octave = bucket / BENCH_BUCKETS_PER_OCTAVE - 1;
    uint64_t next = (uint64_t)(bucket - octave * BENCH_BUCKETS_PER_OCTAVE + 1) << octave;
    return (uint32_t)(next - 1);
}

void bench_histogram_add(struct bench_histogram *histogram, uint32_t value) {
    histogram->counts[bucket_of(value)]++;
    histogram->total++;
    if (value > histogram->max) histogram->max = value;
}

uint32_t bench_histogram_at(const struct bench_histogram *histogram, double share) {
    uint64_t wanted = (uint64_t)(share * (double)histogram->total), seen = 0;
    if ((double)wanted < share * (double)histogram->total) wanted++;
    if (histogram->total == 0) return 0;
    for (uint32_t bucket = 0; bucket < BENCH_BUCKETS; bucket++) {
        seen += histogram->counts[bucket];
        if (seen < wanted || seen == 0) continue;
        uint32_t value = largest_in(bucket);
        return value < histogram->max ? value : histogram->max;
    }
    return histogram->max;
}
