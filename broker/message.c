#include "broker/message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int stamp_compare(const struct stamp *a, const struct stamp *b) {
    if (a->wall_ms != b->wall_ms) return a->wall_ms < b->wall_ms ? -1 : 1;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    return memcmp(a->origin, b->origin, sizeof a->origin);
}

size_t message_cost(const struct message *message) {
    return sizeof *message + (size_t)message->topic_size + message->payload_size + message->properties_size;
}

/* memcpy from NULL is undefined even for nothing. */
static uint8_t *append(uint8_t *at, const void *bytes, size_t size) {
    if (size > 0) memcpy(at, bytes, size);
    return at + size;
}

struct message *message_new(const struct message *template) {
    struct message *message = malloc(message_cost(template));
    uint8_t *at;

    if (message == NULL) return NULL;
    *message = *template;
    message->references = 1;
    message->copy = NULL;
    at = (uint8_t *)(message + 1);
    message->topic = (const char *)at;
    at = append(at, template->topic, template->topic_size);
    message->properties = at;
    at = append(at, template->properties, template->properties_size);
    message->payload = at;
    append(at, template->payload, template->payload_size);
    return message;
}

bool message_keep(struct message *message) {
    if (message->references == 0 && message->copy == NULL) message->copy = message_new(message);
    return message->references > 0 || message->copy != NULL;
}

struct message *message_ref(struct message *message) {
    if (!message_keep(message)) return NULL;
    if (message->references == 0) message = message->copy;
    assert(message->references < UINT32_MAX);
    message->references++;
    return message;
}

void message_unref(struct message *message) {
    if (message == NULL) return;
    assert(message->references > 0);
    if (--message->references == 0) free(message);
}

void message_return(struct message *message) {
    assert(message->references == 0);
    message_unref(message->copy);
    message->copy = NULL;
}

uint64_t message_expiry_left_s(const struct message *message, uint64_t now_ms) {
    uint64_t left_s;

    if (message->expires_at_ms == UINT64_MAX) return MESSAGE_NO_EXPIRY;
    if (message->expires_at_ms <= now_ms) return 0;
    left_s = (message->expires_at_ms - now_ms + 999) / 1000;
    return left_s < UINT32_MAX ? left_s : UINT32_MAX; /* more than any interval where the clock has gone back */
}

uint64_t message_expires_at_ms(uint64_t now_ms, uint64_t expiry_s) {
    return expiry_s != MESSAGE_NO_EXPIRY ? now_ms + expiry_s * 1000 : UINT64_MAX;
}
