/* Packets on their way: what is due first comes out first, and of those due at once what went in first. */
#ifndef WEATHER_FLIGHT_H
#define WEATHER_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLIGHT_BYTES_MAX (256u << 20) /* a second of the fastest sender, about */

struct flying {
    uint64_t due_us, order;
    size_t port; /* where it comes down */
    size_t size;
    uint8_t bytes[];
};

struct flight {
    struct flying **heap;
    size_t count, room, bytes;
    uint64_t order;
};

/* False if there are FLIGHT_BYTES_MAX in the air already, or memory is short. */
bool flight_add(struct flight *flight, uint64_t due_us, size_t port, const uint8_t *bytes, size_t size);
/* What is due at now_us, to be freed by the caller; NULL if nothing is. */
struct flying *flight_take(struct flight *flight, uint64_t now_us);
/* When the next is due; UINT64_MAX if nothing flies. */
uint64_t flight_next_us(const struct flight *flight);
void flight_free(struct flight *flight);

#endif
