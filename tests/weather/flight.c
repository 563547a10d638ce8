#include "tests/weather/flight.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct flying *a, const struct flying *b) {
    return a->due_us < b->due_us || (a->due_us == b->due_us && a->order < b->order);
}

static bool has_room(struct flight *flight) {
    if (flight->count < flight->room) return true;
    size_t room = flight->room ? flight->room * 2 : 256;
    struct flying **heap = realloc(flight->heap, room * sizeof *heap);
    if (!heap) return false;
    flight->heap = heap;
    flight->room = room;
    return true;
}

bool flight_add(struct flight *flight, uint64_t due_us, size_t port, const uint8_t *bytes, size_t size) {
    if (flight->bytes + size > FLIGHT_BYTES_MAX || !has_room(flight)) return false;
    struct flying *flying = malloc(sizeof *flying + size);
    if (!flying) return false;
    flying->due_us = due_us;
    flying->order = flight->order++;
    flying->port = port;
    flying->size = size;
    memcpy(flying->bytes, bytes, size);
    size_t at = flight->count++;
    for (; at > 0 && before(flying, flight->heap[(at - 1) / 2]); at = (at - 1) / 2)
        flight->heap[at] = flight->heap[(at - 1) / 2];
    flight->heap[at] = flying;
    flight->bytes += size;
    return true;
}

struct flying *flight_take(struct flight *flight, uint64_t now_us) {
    if (flight->count == 0 || flight->heap[0]->due_us > now_us) return NULL;
    struct flying *taken = flight->heap[0], *last = flight->heap[--flight->count];
    flight->bytes -= taken->size;
    size_t at = 0;
    for (size_t child = 1; child < flight->count; at = child, child = 2 * at + 1) {
        if (child + 1 < flight->count && before(flight->heap[child + 1], flight->heap[child])) child++;
        if (!before(flight->heap[child], last)) break;
        flight->heap[at] = flight->heap[child];
    }
    if (flight->count > 0) flight->heap[at] = last;
    return taken;
}

uint64_t flight_next_us(const struct flight *flight) {
    return flight->count > 0 ? flight->heap[0]->due_us : UINT64_MAX;
}

void flight_free(struct flight *flight) {
    for (size_t i = 0; i < flight->count; i++)
        free(flight->heap[i]);
    free(flight->heap);
}
