#ifndef TESTS_PATIENT_CLOCK_H
#define TESTS_PATIENT_CLOCK_H

/* The clock of tests that need real time, for their deadlines and bounds. */

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Nanoseconds in which this thread could have run and had no processor. */
static inline uint64_t held_up_ns(void) {
    unsigned long long ran_ns = 0, waited_ns = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu %llu", &ran_ns, &waited_ns) != 2) waited_ns = 0;
    fclose(file);
    return waited_ns;
}

/* Milliseconds, those apart: a busy machine breaks no bound. */
static inline uint64_t patient_clock_ms(void) {
    struct timespec now;
    uint64_t before_ns;
    do { /* both of the same moment, so that this clock never goes back */
        before_ns = held_up_ns();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (held_up_ns() != before_ns);
    return ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - before_ns) / 1000000;
}

#endif
