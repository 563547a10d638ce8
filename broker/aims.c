#include "broker/aims.h"

#include <stdlib.h>
#include <string.h>

int aims_add(struct aims **aims, const char *group, size_t size) {
    size_t before = *aims ? (*aims)->size : 0;
    if (before + size + 1 > AIMS_GROUPS_MAX) return -1;
    struct aims *larger = realloc(*aims, sizeof *larger + before + size + 1);
    if (!larger) return -1;
    if (!*aims) larger->what = 0;
    memcpy(larger->groups + before, group, size);
    larger->groups[before + size] = '\0';
    larger->size = (uint32_t)(before + size + 1);
    *aims = larger;
    return 0;
}

const char *aims_at(const struct aims *aims, size_t at, size_t *size) {
    if (at >= aims->size) return NULL;
    *size = strlen(aims->groups + at);
    return aims->groups + at;
}

/* Its place; aims->size if it is not there. */
static size_t find(const struct aims *aims, const char *group, size_t size) {
    const char *there;
    size_t at = 0;
    for (size_t length; (there = aims_at(aims, at, &length)) != NULL; at += length + 1)
        if (length == size && memcmp(there, group, size) == 0) break;
    return at;
}

bool aims_have(const struct aims *aims, const char *group, size_t size) {
    return aims && find(aims, group, size) < aims->size;
}

void aims_remove(struct aims *aims, const char *group, size_t size) {
    size_t at = find(aims, group, size), behind = at + size + 1;
    if (at == aims->size) return;
    memmove(aims->groups + at, aims->groups + behind, aims->size - behind);
    aims->size -= (uint32_t)(size + 1);
}

const void *aims_bytes(const struct aims *aims, size_t *size) {
    *size = sizeof aims->what + aims->size;
    return (const char *)aims + offsetof(struct aims, what);
}

int aims_read(struct aims **aims, const void *bytes, size_t size) {
    const uint8_t *all = bytes;
    if (size < 2 || size - 1 > AIMS_GROUPS_MAX || all[size - 1] != 0 ||
        all[0] > (AIMS_OTHERS | AIMS_RETURNED | AIMS_AGAIN))
        return 1;
    *aims = malloc(sizeof **aims + size - 1);
    if (!*aims) return -1;
    (*aims)->size = (uint32_t)(size - 1);
    memcpy((char *)*aims + offsetof(struct aims, what), all, size);
    return 0;
}
