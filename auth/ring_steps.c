/* Which ring follows which. */
#include <string.h>

#include "auth/reason.h"
#include "auth/signed_ring.h"

static bool has(const struct auth_signed_ring *ring, enum auth_key_stage stage) {
    for (size_t i = 0; i < ring->count; i++)
        if (ring->keys[i].stage == stage) return true;
    return false;
}

enum auth_ring_step auth_ring_step_after(const struct auth_signed_ring *ring) {
    if (has(ring, AUTH_KEY_ACCEPT)) return AUTH_STEP_SEND;
    /* Number 0 are the keys of a file, where nobody says which are on their way out: those go with the one that seals.
     */
    return ring->number > 0 && has(ring, AUTH_KEY_OLD) ? AUTH_STEP_DROP : AUTH_STEP_ACCEPT;
}

static void remove_key(struct auth_signed_ring *ring, size_t index) {
    ring->count--;
    memmove(&ring->keys[index], &ring->keys[index + 1], (ring->count - index) * sizeof ring->keys[0]);
}

static void add_key(struct auth_signed_ring *ring, const uint8_t fresh[32], enum auth_key_stage stage) {
    memcpy(ring->keys[ring->count].key, fresh, 32);
    ring->keys[ring->count].stage = stage;
    ring->count++;
}

/* The first key that was accepted seals; it goes to the front. */
static void promote(struct auth_signed_ring *ring) {
    size_t index = 0;
    while (index < ring->count && ring->keys[index].stage != AUTH_KEY_ACCEPT)
        index++;
    if (index == ring->count) return;
    uint8_t key[32];
    memcpy(key, ring->keys[index].key, sizeof key);
    remove_key(ring, index);
    for (size_t i = 0; i < ring->count; i++)
        if (ring->keys[i].stage == AUTH_KEY_SEND) ring->keys[i].stage = AUTH_KEY_OLD;
    memmove(&ring->keys[1], &ring->keys[0], ring->count * sizeof ring->keys[0]);
    memcpy(ring->keys[0].key, key, sizeof key);
    ring->keys[0].stage = AUTH_KEY_SEND;
    ring->count++;
}

static void drop_old(struct auth_signed_ring *ring) {
    for (size_t i = ring->count; i-- > 0;)
        if (ring->keys[i].stage == AUTH_KEY_OLD) remove_key(ring, i);
}

enum auth_result auth_ring_repeat(struct auth_signed_ring *ring, char reason[160]) {
    if (ring->number >= AUTH_RING_NUMBER_MAX) {
        auth_say(reason, "the number of the ring has come to its end");
        return AUTH_REFUSED;
    }
    ring->number++;
    return AUTH_OK;
}

enum auth_result auth_ring_advance(struct auth_signed_ring *ring, enum auth_ring_step step, const uint8_t fresh[32],
                                   char reason[160]) {
    if (step == AUTH_STEP_ACCEPT && ring->count >= AUTH_RING_MAX) {
        auth_say(reason, "the ring has %u keys already, and no more fit: take out one that no broker seals with",
                 AUTH_RING_MAX);
        return AUTH_REFUSED;
    }
    enum auth_result result = auth_ring_repeat(ring, reason);
    if (result != AUTH_OK) return result;
    switch (step) {
    case AUTH_STEP_ACCEPT: add_key(ring, fresh, AUTH_KEY_ACCEPT); break;
    case AUTH_STEP_SEND: promote(ring); break;
    case AUTH_STEP_DROP: drop_old(ring); break;
    }
    return AUTH_OK;
}

enum auth_result auth_ring_replace(struct auth_signed_ring *ring, const uint8_t fresh[32], char reason[160]) {
    enum auth_result result = auth_ring_repeat(ring, reason);
    if (result != AUTH_OK) return result;
    ring->count = 0;
    add_key(ring, fresh, AUTH_KEY_SEND);
    return AUTH_OK;
}
