#include "tools/simulate/memory.h"

#include "tools/complain.h"

#include <stdlib.h>

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
