/* What a process costs, as Linux counts it. */
#ifndef TOOLS_BENCH_PROCESS_H
#define TOOLS_BENCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bench_process {
    double cpu_s;           /* of all its threads, in user and system mode; /proc/PID/stat */
    uint64_t resident_size; /* bytes */
};
/* False if there is no such process. */
bool bench_process_read(pid_t pid, struct bench_process *process);

#endif
