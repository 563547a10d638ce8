#include "daemon/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t descriptors_max(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

uint64_t descriptors_for_clients(void) {
    const uint64_t max = descriptors_max();
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (next < 0) return 0;
    close(next);
    const uint64_t used = (uint64_t)next + DESCRIPTORS_LEFT_BY_CLIENTS;
    return max > used ? max - used : 0;
}
