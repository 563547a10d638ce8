/* Durations counted in buckets no wider than 1/64 of their value, so that a percentile is as near as anybody reads it
 * and counting one costs a few instructions. */
#ifndef TOOLS_BENCH_HISTOGRAM_H
#define TOOLS_BENCH_HISTOGRAM_H

#include <stdint.h>

#define BENCH_BUCKETS_PER_OCTAVE 64u
#define BENCH_BUCKETS (27u * BENCH_BUCKETS_PER_OCTAVE)

struct bench_histogram {
    uint64_t counts[BENCH_BUCKETS];
    uint64_t total;
    uint32_t max;
};

void bench_histogram_add(struct bench_histogram *histogram, uint32_t value);
/* The value that this share (0 to 1) of all does not exceed, at most 1/64 too large; 0 if there are none. */
uint32_t bench_histogram_at(const struct bench_histogram *histogram, double share);

#endif
