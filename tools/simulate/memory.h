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

#endif
