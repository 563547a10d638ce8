#include "tools/simulate/memory.h"

#include "tools/complain.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define GROWS_BY (64 << 20)   /* bytes */
#define ALONE_FROM (32 << 10) /* bytes: larger arrays of the very many have mappings of their own */

_Noreturn void memory_is_short(void) {
    complain("simulate: memory is short; simulate fewer brokers (--brokers), or stop other programs");
    exit(EXIT_NO);
}

static void *must(void *memory) {
    if (!memory) memory_is_short();
    return memory;
}

void *memory_new(size_t count, size_t size) {
    return must(calloc(count > 0 ? count : 1, size));
}

void *memory_room(void *array, size_t *room, size_t wanted, size_t size) {
    if (wanted <= *room) return array;
    size_t next = *room > 0 ? *room * 2 : 16;
    while (next < wanted)
        next *= 2;
    if (next > (size_t)-1 / size) must(NULL);
    *room = next;
    return must(realloc(array, next * size));
}

void memory_without_holes(void) {
    mallopt(M_MMAP_THRESHOLD, ALONE_FROM);
}

void memory_in_large_pages(void **heap_end) {
    void *now = sbrk(0);
    if (*heap_end == NULL) mallopt(M_TOP_PAD, GROWS_BY);
    uintptr_t from = ((uintptr_t)*heap_end + PAGE - 1) / PAGE * PAGE, to = (uintptr_t)now / PAGE * PAGE;
    /* A kernel without them refuses, and all is as before. */
    if (*heap_end != NULL && to > from) madvise((void *)from, to - from, MADV_HUGEPAGE); /* NOLINT */
    *heap_end = now;
}
