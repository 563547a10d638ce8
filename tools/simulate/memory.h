/* Memory of the simulator itself. A run without memory is over: it says so and ends the process with status 1, as a
 * half-simulated federation proves nothing. */
#ifndef SIMULATE_MEMORY_H
#define SIMULATE_MEMORY_H

#include <stddef.h>

/* count objects of size bytes, zeroed. */
void *memory_new(size_t count, size_t size);
/* The array with room for at least wanted items, at least doubled when it grows. What is new is not set. */
void *memory_room(void *array, size_t *room, size_t wanted, size_t size);

/* Says that memory is short and ends the process. */
_Noreturn void memory_is_short(void);

/* Asks the kernel for large pages for what the heap has grown by since heap_end, and moves heap_end on: a thousand
 * brokers are a gigabyte that is visited at random, and a quarter of all time would go into finding its pages. To be
 * called now and then; the heap grows by large steps once this was called. NULL the first time. */
void memory_in_large_pages(void **heap_end);
/* From now on no large array leaves a hole in the heap when it grows: each is mapped for itself. That costs a little
 * time, and a tenth less memory where every broker has four such arrays. To be called before there is much. */
void memory_without_holes(void);

#endif
