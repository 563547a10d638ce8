#include "broker/federation.h"

#include <stdlib.h>

struct federation {
    struct federation_options options;
};

struct federation *federation_new(const struct federation_options *options, uint64_t now_ms)
{
    (void)now_ms;
    struct federation *federation = calloc(1, sizeof *federation);
    if (federation)
        federation->options = *options;
    return federation;
}

void federation_free(struct federation *federation)
{
    free(federation);
}

uint64_t federation_deadline_ms(const struct federation *federation)
{
    (void)federation;
    return UINT64_MAX;
}

void federation_tick(struct federation *federation, uint64_t now_ms)
{
    (void)federation, (void)now_ms;
}

void federation_hit(struct federation *federation, uint64_t now_ms, struct subscriber *peer, struct message *message)
{
    (void)federation, (void)now_ms, (void)peer, (void)message;
}

void federation_published(struct federation *federation, uint64_t now_ms, struct message *message)
{
    (void)federation, (void)now_ms, (void)message;
}

void federation_subscribed(struct federation *federation, uint64_t now_ms, const char *filter, size_t size)
{
    (void)federation, (void)now_ms, (void)filter, (void)size;
}

void federation_unsubscribed(struct federation *federation, uint64_t now_ms, const char *filter, size_t size)
{
    (void)federation, (void)now_ms, (void)filter, (void)size;
}

uint64_t federation_barrier(struct federation *federation, uint64_t now_ms, const char *const *filters, const size_t *sizes, size_t count)
{
    (void)federation, (void)now_ms, (void)filters, (void)sizes, (void)count;
    return 0;
}

bool federation_next_released(struct federation *federation, uint64_t *barrier, bool *timed_out)
{
    (void)federation, (void)barrier, (void)timed_out;
    return false;
}

bool federation_private(const struct federation *federation, const char *topic, size_t size)
{
    (void)federation, (void)topic, (void)size;
    return false;
}
