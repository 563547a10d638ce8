#include "tests/sim/heap.h"

#include <assert.h>
#include <stdlib.h>

struct heap {
    struct event **events; /* a binary heap: the earliest is events[0] */
    size_t count, room;
    uint64_t now_us, pushed, fired;
};

struct heap *heap_new(void) {
    struct heap *heap = calloc(1, sizeof *heap);
    assert(heap != NULL);
    return heap;
}

void heap_free(struct heap *heap) {
    if (heap == NULL) return;
    for (size_t i = 0; i < heap->count; i++) {
        if (heap->events[i]->drop != NULL)
            heap->events[i]->drop(heap->events[i]);
        else
            free(heap->events[i]);
    }
    free(heap->events);
    free(heap);
}

uint64_t heap_now_us(const struct heap *heap) {
    return heap->now_us;
}

uint64_t heap_fired(const struct heap *heap) {
    return heap->fired;
}

static bool earlier(const struct event *a, const struct event *b) {
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->number < b->number;
}

static void swap(struct heap *heap, size_t a, size_t b) {
    struct event *event = heap->events[a];
    heap->events[a] = heap->events[b];
    heap->events[b] = event;
}

void heap_push(struct heap *heap, struct event *event, uint64_t delay_us) {
    if (heap->count == heap->room) {
        heap->room = heap->room == 0 ? 64 : heap->room * 2;
        heap->events = realloc(heap->events, heap->room * sizeof *heap->events);
        assert(heap->events != NULL);
    }
    event->at_us = heap->now_us + delay_us;
    event->number = heap->pushed++;
    size_t at = heap->count++;
    heap->events[at] = event;
    while (at > 0 && earlier(heap->events[at], heap->events[(at - 1) / 2])) {
        swap(heap, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static struct event *pop(struct heap *heap) {
    struct event *first = heap->events[0];
    heap->events[0] = heap->events[--heap->count];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap->count; child++) {
            if (earlier(heap->events[child], heap->events[least])) least = child;
        }
        if (least == at) return first;
        swap(heap, at, least);
        at = least;
    }
}

bool heap_step(struct heap *heap, uint64_t until_us) {
    if (heap->count == 0 || heap->events[0]->at_us > until_us) {
        if (heap->now_us < until_us) heap->now_us = until_us;
        return false;
    }
    struct event *event = pop(heap);
    heap->now_us = event->at_us;
    heap->fired++;
    event->fire(event);
    return true;
}
