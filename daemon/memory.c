#include "daemon/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/server.h"

#define KEPT_BYTES (16 * 1024 * 1024) /* of the heap's free end: the largest packet by default */
#define TRIM_EVERY_MS 1000u           /* giving memory back walks the whole heap */
#define SHORT_CHECK_MS 100u           /* while it is short, the loop wakes up to see whether it still is */

struct memory {
    struct server *server;
    int file; /* /proc/self/statm; -1: nothing is measured */
    uint64_t page_size;
    uint64_t resident, max;
    uint64_t next_ms, next_trim_ms;
    bool is_short;
    uv_timer_t timer; /* while it is short */
};

/* ---- what there is ---- */

uint64_t memory_parse_statm(const char *text, uint64_t page_size) {
    uint64_t total, resident;
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &total, &resident) != 2 || resident > UINT64_MAX / page_size) return 0;
    return resident * page_size;
}

/* The number in a file; UINT64_MAX if there is none ("max", or no such file). */
static uint64_t number_in(const char *path) {
    uint64_t number = UINT64_MAX;
    FILE *file = fopen(path, "re");
    if (file == NULL) return UINT64_MAX;
    if (fscanf(file, "%" SCNu64, &number) != 1) number = UINT64_MAX;
    fclose(file);
    return number;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* The limits of a group and of those above it; path is cut on the way. */
static uint64_t group_path_max(const char *root, const char *controller, const char *name, char *path) {
    char file[2 * PATH_MAX];
    uint64_t max = UINT64_MAX;
    for (;;) {
        snprintf(file, sizeof(file), "%s%s%s/%s", root, controller, path, name);
        max = least(max, number_in(file));
        char *slash = strrchr(path, '/');
        if (slash == NULL) return max;
        *slash = '\0';
    }
}

uint64_t memory_group_max(const char *text, const char *root) {
    uint64_t max = UINT64_MAX;
    for (const char *line = text; *line != '\0';) {
        const size_t size = strcspn(line, "\n");
        char copy[PATH_MAX] = "", *controllers, *path;
        snprintf(copy, sizeof(copy), "%.*s", (int)size, line);
        line += size + (line[size] == '\n');
        controllers = strchr(copy, ':');
        path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL) continue;
        *path++ = '\0';
        controllers++;
        if (controllers[0] == '\0') /* version 2 */
            max = least(max, group_path_max(root, "", "memory.max", path));
        else if (strcmp(controllers, "memory") == 0)
            max = least(max, group_path_max(root, "/memory", "memory.limit_in_bytes", path));
    }
    return max;
}

uint64_t memory_default_max(void) {
    char text[8192] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    }
    const uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return least(machine, memory_group_max(text, "/sys/fs/cgroup")) / 2;
}

void memory_keep_freed(void) {
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
}

/* ---- measuring ---- */

bool memory_is_short(uint64_t resident, uint64_t max, bool was_short) {
    return resident > (was_short ? max - max / 20 : max);
}

static uint64_t measure(const struct memory *memory) {
    char text[256];
    const ssize_t size = pread(memory->file, text, sizeof(text) - 1, 0);
    if (size <= 0) return 0;
    text[size] = '\0';
    return memory_parse_statm(text, memory->page_size);
}

/* What was freed but not given back is resident too. */
static void give_back(struct memory *memory, uint64_t now_ms) {
    if (now_ms < memory->next_trim_ms || mallinfo2().fordblks < memory->max / 32) return;
    memory->next_trim_ms = now_ms + TRIM_EVERY_MS;
    malloc_trim(0);
    memory->resident = measure(memory);
}

static void on_timer(uv_timer_t *timer) {
    (void)timer; /* the turn of the loop does it */
}

static void tell(struct memory *memory, bool is_short) {
    struct server *server = memory->server;
    memory->is_short = is_short;
    broker_set_memory_short(node_broker(server->node), server_now_ms(server), is_short);
    log_text(server->log, is_short ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "memory",
             is_short ? "%" PRIu64 " bytes in use, limits.memory_bytes_max is %" PRIu64
                        ": new sessions, subscriptions and publications are refused; delete retained messages, let "
                        "slow clients go, or write a larger limit"
                      : "%" PRIu64 " bytes in use, again below limits.memory_bytes_max of %" PRIu64
                        ": everything is taken",
             memory->resident, memory->max);
    if (is_short)
        uv_timer_start(&memory->timer, on_timer, SHORT_CHECK_MS, SHORT_CHECK_MS);
    else
        uv_timer_stop(&memory->timer);
}

void memory_turn(struct memory *memory) {
    const uint64_t now_ms = server_now_ms(memory->server);
    if (memory->file < 0 || now_ms < memory->next_ms) return;
    memory->next_ms = now_ms + MEMORY_EVERY_MS;
    memory->resident = measure(memory);
    if (memory_is_short(memory->resident, memory->max, memory->is_short)) give_back(memory, now_ms);
    broker_set_memory_used(node_broker(memory->server->node), memory->resident);
    const bool is_short = memory_is_short(memory->resident, memory->max, memory->is_short);
    if (is_short != memory->is_short) tell(memory, is_short);
}

struct memory_state memory_read(const struct memory *memory) {
    return (struct memory_state){.resident = memory->resident, .max = memory->max, .is_short = memory->is_short};
}

/* ---- its life ---- */

struct memory *memory_new(struct server *server, uint64_t max) {
    struct memory *memory = calloc(1, sizeof(*memory));
    if (memory == NULL) return NULL;
    memory->server = server;
    memory->max = max != 0 ? max : memory_default_max();
    memory->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
    memory->file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (memory->file < 0)
        log_text(server->log, LOG_LEVEL_WARNING, "memory",
                 "/proc/self/statm cannot be read: limits.memory_bytes_max is not held");
    uv_timer_init(server->loop, &memory->timer);
    memory->timer.data = memory;
    return memory;
}

static void on_closed(uv_handle_t *handle) {
    struct memory *memory = handle->data;
    if (memory->file >= 0) close(memory->file);
    free(memory);
}

void memory_close(struct memory *memory) {
    if (memory != NULL) uv_close((uv_handle_t *)&memory->timer, on_closed);
}
