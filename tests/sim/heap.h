/* Virtual time: the events of a simulated world, in the order in which they happen.
 *
 * Nothing else in the simulator knows what time it is. Events of the same microsecond happen in the order in
 * which they were pushed, so a run is a pure function of its seed.
 */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_MS 1000u /* microseconds of a millisecond */

struct heap;

/* The first member of an allocation that belongs to the heap from heap_push() until fire, which owns and frees it. An
 * event that never fires is given to drop instead (NULL: free() is enough). */
struct event {
    uint64_t at_us, number; /* set by heap_push */
    void (*fire)(struct event *event);
    void (*drop)(struct event *event);
};

struct heap *heap_new(void);
void heap_free(struct heap *heap);

uint64_t heap_now_us(const struct heap *heap);
uint64_t heap_fired(const struct heap *heap); /* events so far */

/* In delay_us from now. */
void heap_push(struct heap *heap, struct event *event, uint64_t delay_us);
/* Fires the earliest event if it is not later than until_us; else moves the clock to until_us and returns false. */
bool heap_step(struct heap *heap, uint64_t until_us);

#endif
