/* Memory that runs short where the test says: for programs whose name ends in _oom, which are linked with --wrap for
 * malloc, calloc and realloc (tests/CMakeLists.txt). What the test itself must get it takes with __real_. */
#ifndef TESTS_UNIT_OOM_H
#define TESTS_UNIT_OOM_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* volatile: compilers take it that malloc changes nothing of the program's own. */
static volatile struct {
    bool armed;
    bool failed; /* an allocation was refused since the last shortage_after() */
    long left;   /* allocations until the one that fails */
    long every;  /* each so many fails, armed or not; 0 none */
    unsigned long allocations;
    unsigned long long bytes; /* asked for so far */
} shortage;

/* The nth allocation from now on fails (0 is the next), and only that one. */
static inline void shortage_after(long nth) {
    shortage.armed = true;
    shortage.failed = false;
    shortage.left = nth;
}

static inline void shortage_over(void) {
    shortage.armed = false;
}

static inline bool shortage_now(size_t size) {
    shortage.allocations++;
    shortage.bytes += size;
    bool fails = shortage.every > 0 && shortage.allocations % (unsigned long)shortage.every == 0;
    fails = fails || (shortage.armed && shortage.left-- == 0);
    shortage.failed = shortage.failed || fails;
    return fails;
}

void *__wrap_malloc(size_t size) {
    return shortage_now(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return shortage_now(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size) {
    return shortage_now(size) ? NULL : __real_realloc(memory, size);
}

#endif
