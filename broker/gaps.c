#include "broker/gaps.h"

#include <string.h>

static void drop(struct gaps *gaps, size_t index) {
    gaps->count--;
    memmove(&gaps->gaps[index], &gaps->gaps[index + 1], (gaps->count - index) * sizeof gaps->gaps[0]);
}

void gaps_add(struct gaps *gaps, uint64_t stream, uint64_t first, uint64_t end) {
    if (gaps->stream != stream) *gaps = (struct gaps){.stream = stream};
    if (first >= end) return;
    if (gaps->count == GAPS_MAX) drop(gaps, 0);
    gaps->gaps[gaps->count++] = (struct gap){first, end};
}

bool gaps_take(struct gaps *gaps, uint64_t stream, uint64_t sequence) {
    if (gaps->stream != stream) return false;
    for (size_t i = 0; i < gaps->count; i++) {
        struct gap gap = gaps->gaps[i];
        if (sequence < gap.first || sequence >= gap.end) continue;
        drop(gaps, i);
        gaps_add(gaps, stream, gap.first, sequence);
        gaps_add(gaps, stream, sequence + 1, gap.end);
        return true;
    }
    return false;
}
