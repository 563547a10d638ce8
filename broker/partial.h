/* Inside broker/: packets that have not arrived whole.
 *
 * What is kept grows with what has come, never with what was announced. Those above PARTIAL_SMALL bytes share
 * limits.partial_bytes_max: when it is reached, the client whose packet has been on its way for the longest time is
 * closed, so that many who begin and never end keep out nobody who does.
 */
#ifndef BROKER_PARTIAL_H
#define BROKER_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;
struct client;

enum { PARTIAL_SMALL = 4096 };

struct partial {
    struct partial *prev, *next; /* of broker.partials, once it is large */
    struct client *client;
    uint8_t *bytes;
    uint32_t size, capacity;
    bool is_large;
};

/* Appends to the client's, makes it if need be. packet_size is that of the whole packet, as far as it is known, else
 * UINT32_MAX. -1 when memory is short. The client may be doomed after it. */
int partial_append(struct broker *broker, struct client *client, const uint8_t *bytes, size_t size,
                   uint32_t packet_size);
/* A copy that waits in client->exchange->connect, with the same rules: partials_reduce() once it is there. NULL when
 * memory is short. */
struct partial *partial_keep(struct broker *broker, struct client *client, const uint8_t *bytes, size_t size);
/* Takes it from the client; it still counts, and can no longer close him. */
struct partial *partial_take(struct broker *broker, struct client *client);
void partial_free(struct broker *broker, struct partial *partial);
void partial_drop(struct broker *broker, struct client *client);
/* Gives packets up until the rest fits, and dooms their clients. */
void partials_reduce(struct broker *broker);

#endif
