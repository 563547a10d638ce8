/* What it costs that a link comes up again between brokers that hold many retained messages: bench_compare [TOPICS]
 *
 * Two brokers in one process, as in the unit tests. In each line the link was away for longer than joins outlive, and
 * some topics have changed; "all of it" is what a peer of an earlier version costs. Bytes are those of publications,
 * and of the frames that compare; time is of both brokers together, and the longest turn is from one frame to the next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COMPARE_TOPICS_MAX 1000000
#include "tests/unit/compare_world.h"

#include <time.h>

static double longest_ms, last_ms;

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static bool time_frame(struct world *world, int from, int to, const uint8_t *bytes, size_t size) {
    double at_ms = now_ms();
    if (last_ms > 0 && at_ms - last_ms > longest_ms) longest_ms = at_ms - last_ms;
    bool passes = count_crossing(world, from, to, bytes, size);
    last_ms = now_ms();
    return passes;
}

static void measure(struct flap *flap, const char *what, unsigned topics, unsigned changes) {
    struct world *world = flap->world;
    lose_link(world);
    world_run(world, OUTAGE_MS);
    for (unsigned i = 0; i < changes; i++)
        retain_at(flap, (unsigned)((uint64_t)i * topics / changes), "changed, of twenty-four");
    world_run(world, OUTAGE_MS); /* nothing is held for an invite any more */
    nothing_crossed();
    world->apart[A][B] = world->apart[B][A] = false;
    longest_ms = last_ms = 0;
    double before_ms = now_ms();
    world_run(world, 15000);
    printf("%-14s %8u %12llu %12llu %8u %8.1f %8.1f\n", what, (unsigned)crossing.publications,
           (unsigned long long)crossing.bytes, (unsigned long long)crossing.digest_bytes, crossing.digest_frames,
           now_ms() - before_ms, longest_ms);
    expect_agreement(world);
}

int main(int argc, char **argv) {
    unsigned topics = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
    if (topics == 0 || topics > TOPICS_MAX) {
        fprintf(stderr, "usage: bench_compare [TOPICS], 1 to %d\n", TOPICS_MAX);
        return 1;
    }
    struct flap flap = flap_with(topics, "t/#");
    flap.world->passes = time_frame;
    flap.hears->received_count = RECEIVED_MAX;
    printf("%-14s %8s %12s %12s %8s %8s %8s\n", "changed", "sent", "bytes", "compared", "frames", "ms", "longest");
    measure(&flap, "nothing", topics, 0);
    measure(&flap, "1", topics, 1);
    measure(&flap, "100", topics, 100);
    measure(&flap, "1 %", topics, topics / 100);
    measure(&flap, "10 %", topics, topics / 10);
    measure(&flap, "everything", topics, topics);
    crossing.older = true;
    measure(&flap, "all of it", topics, 0);
    end(flap.world);
    return 0;
}
