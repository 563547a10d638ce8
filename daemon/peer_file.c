/* The file of the peer cache. */
#include "daemon/peer_cache.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD_LINE "hobnob peers 1\n"
#define END_LINE "end\n"
#define LINE_MAX_SIZE 64u
#define FILE_SIZE_MAX (LINE_MAX_SIZE * (PEER_CACHE_MAX + 2))

static size_t write_line(const struct gossip_address *address, char out[LINE_MAX_SIZE]) {
    char ip[INET6_ADDRSTRLEN];
    const bool v6 = address->family == 6;
    if (inet_ntop(v6 ? AF_INET6 : AF_INET, address->ip, ip, sizeof(ip)) == NULL) return 0;
    return (size_t)snprintf(out, LINE_MAX_SIZE, v6 ? "[%s]:%u\n" : "%s:%u\n", ip, address->port);
}

static bool read_port(const char *text, uint16_t *port) {
    unsigned number = 0;
    if (*text == '\0') return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        number = number * 10 + (unsigned)(*text - '0');
        if (number > 65535) return false;
    }
    *port = (uint16_t)number;
    return number > 0;
}

/* line is cut up. */
static bool read_line(char *line, struct gossip_address *address) {
    char *colon = strrchr(line, ':');
    *address = (struct gossip_address){.family = line[0] == '[' ? 6 : 4};
    if (colon == NULL || colon == line || !read_port(colon + 1, &address->port)) return false;
    if (address->family == 4) {
        *colon = '\0';
        return inet_pton(AF_INET, line, address->ip) == 1;
    }
    if (colon[-1] != ']') return false;
    colon[-1] = '\0';
    return inet_pton(AF_INET6, line + 1, address->ip) == 1;
}

static enum peer_cache_result parse(char *text, struct gossip_address addresses[PEER_CACHE_MAX], size_t *count) {
    size_t taken = 0;
    if (strncmp(text, HEAD_LINE, strlen(HEAD_LINE)) != 0) return PEER_CACHE_DAMAGED;
    text += strlen(HEAD_LINE);
    while (strcmp(text, END_LINE) != 0) {
        char *end = strchr(text, '\n');
        if (end == NULL || taken == PEER_CACHE_MAX) return PEER_CACHE_DAMAGED;
        *end = '\0';
        if (!read_line(text, &addresses[taken++])) return PEER_CACHE_DAMAGED;
        text = end + 1;
    }
    *count = taken;
    return PEER_CACHE_OK;
}

enum peer_cache_result peer_cache_load(const char *path, struct gossip_address addresses[PEER_CACHE_MAX],
                                       size_t *count) {
    char text[FILE_SIZE_MAX + 1];
    *count = 0;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return errno == ENOENT ? PEER_CACHE_NO_FILE : PEER_CACHE_ERROR;
    const size_t size = fread(text, 1, sizeof(text), file);
    const int error = ferror(file) ? errno : 0;
    fclose(file);
    errno = error;
    if (error != 0) return PEER_CACHE_ERROR;
    if (size == sizeof(text) || memchr(text, '\0', size) != NULL) return PEER_CACHE_DAMAGED;
    text[size] = '\0';
    return parse(text, addresses, count);
}

static bool write_all(int file, const char *text, size_t size) {
    while (size > 0) {
        const ssize_t written = write(file, text, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

/* The old file stays whole until the new one is on the disk. */
static bool replace(const char *path, const char *beside, const char *text, size_t size) {
    const int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return false;
    const bool written = write_all(file, text, size) && fsync(file) == 0;
    const int error = errno;
    close(file);
    errno = error;
    return written && rename(beside, path) == 0;
}

enum peer_cache_result peer_cache_save(const char *path, const struct gossip_address *addresses, size_t count) {
    char text[FILE_SIZE_MAX] = HEAD_LINE, beside[PATH_MAX];
    size_t size = strlen(HEAD_LINE);
    for (size_t i = 0; i < count && i < PEER_CACHE_MAX; i++)
        size += write_line(&addresses[i], text + size);
    memcpy(text + size, END_LINE, strlen(END_LINE));
    size += strlen(END_LINE);
    if ((size_t)snprintf(beside, sizeof(beside), "%s.new", path) >= sizeof(beside)) {
        errno = ENAMETOOLONG;
        return PEER_CACHE_ERROR;
    }
    if (replace(path, beside, text, size)) return PEER_CACHE_OK;
    const int error = errno;
    unlink(beside);
    errno = error;
    return PEER_CACHE_ERROR;
}

static bool same(const struct gossip_address *a, const struct gossip_address *b) {
    return a->family == b->family && a->port == b->port && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

static bool holds(const struct gossip_address *list, size_t count, const struct gossip_address *address) {
    for (size_t i = 0; i < count; i++)
        if (same(&list[i], address)) return true;
    return false;
}

bool peer_cache_merge(struct gossip_address list[PEER_CACHE_MAX], size_t *count, const struct gossip_address *good,
                      size_t good_count) {
    struct gossip_address merged[PEER_CACHE_MAX];
    size_t kept = 0;
    for (size_t i = 0; i < good_count && kept < PEER_CACHE_MAX; i++)
        if (!holds(merged, kept, &good[i])) merged[kept++] = good[i];
    for (size_t i = 0; i < *count && kept < PEER_CACHE_MAX; i++)
        if (!holds(merged, kept, &list[i])) merged[kept++] = list[i];
    bool changed = kept != *count;
    for (size_t i = 0; i < kept; i++) {
        changed = changed || !same(&list[i], &merged[i]);
        list[i] = merged[i];
    }
    *count = kept;
    return changed;
}
