#include "bench_process.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool bench_process_read(pid_t pid, struct bench_process *process) {
    char path[64], line[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    size_t size = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[size] = '\0';
    /* The name may contain anything, also parentheses; the fields after it are counted from its end (proc(5)). */
    const char *after = strrchr(line, ')');
    unsigned long user, system;
    long pages;
    if (after == NULL ||
        sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %*u %*u %ld",
               &user, &system, &pages) != 3)
        return false;
    process->cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    process->resident_size = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}
