#include "tools/simulate/issuer.h"

#include "auth/signed_ring.h"
#include "tools/simulate/memory.h"
#include "tools/simulate/world.h"

#include <stdlib.h>
#include <string.h>

struct issued {
    uint8_t bytes[STANDIN_RING_SIZE];
    struct gossip_ring read;
};

struct issuer {
    struct auth_signed_ring last; /* what the next one follows */
    struct issued *rings;
    size_t count, room;
    struct dice dice;
};

struct issuer *issuer_new(const struct world *world) {
    struct issuer *issuer = memory_new(1, sizeof *issuer);
    struct gossip_key key = standin_key(STANDIN_FIRST_KEY);
    issuer->last.count = 1;
    issuer->last.keys[0].stage = AUTH_KEY_SEND;
    memcpy(issuer->last.keys[0].key, key.key, sizeof key.key);
    dice_init(&issuer->dice, world->plan->seed, "issuer");
    return issuer;
}

void issuer_free(struct issuer *issuer) {
    if (!issuer) return;
    free(issuer->rings);
    free(issuer);
}

static uint32_t keep(struct world *world, const struct auth_signed_ring *ring) {
    struct issuer *issuer = world->issuer;
    issuer->rings = memory_room(issuer->rings, &issuer->room, issuer->count + 1, sizeof *issuer->rings);
    struct issued *issued = &issuer->rings[issuer->count];
    struct gossip_key keys[GOSSIP_KEYS_MAX];
    for (size_t i = 0; i < ring->count; i++)
        memcpy(keys[i].key, ring->keys[i].key, sizeof keys[i].key);
    standin_sign_ring(&world->crypto, WORLD_FEDERATION, ring->number, keys, ring->count, issued->bytes);
    standin_read_ring(&world->crypto, WORLD_FEDERATION, issued->bytes, sizeof issued->bytes, &issued->read);
    return (uint32_t)++issuer->count;
}

static struct auth_signed_ring next(struct issuer *issuer, enum issuer_act act) {
    struct auth_signed_ring ring = issuer->last;
    uint8_t fresh[32];
    for (size_t i = 0; i < sizeof fresh; i++)
        fresh[i] = (uint8_t)dice_next(&issuer->dice);
    enum auth_result result = act == ISSUER_BEGINS_ANEW
                                  ? auth_ring_replace(&ring, fresh, NULL)
                                  : auth_ring_advance(&ring, auth_ring_step_after(&ring), fresh, NULL);
    if (result != AUTH_OK) auth_ring_replace(&ring, fresh, NULL); /* no room: as the tool tells an admin to */
    return ring;
}

static void give(struct world *world, struct broker *broker, uint32_t ring) {
    const struct issued *issued = &world->issuer->rings[ring - 1];
    char reason[160] = "";
    struct gossip *core = broker->strategy->core(broker->node);
    world_trace(world, broker, "is given ring %llu", (unsigned long long)issued->read.number);
    if (gossip_take_ring(core, broker_now_ms(world, broker), issued->bytes, sizeof issued->bytes, reason) ==
        GOSSIP_RING_REFUSED)
        world_break(world, "P22: %s refuses a key ring of its issuer: %s", broker->name, reason);
    measure_ring_given(world, ring);
    broker_touched(world, broker);
}

void issuer_act(struct world *world, enum issuer_act act, struct broker *broker, struct broker *second) {
    struct issuer *issuer = world->issuer;
    struct auth_signed_ring ring = next(issuer, act), other = ring;
    uint32_t made = keep(world, &ring), made_too = 0;
    if (second) {
        other = next(issuer, act);
        made_too = keep(world, &other);
    }
    issuer->last = second && issuer_order(issuer, made_too, made) > 0 ? other : ring;
    give(world, broker, made);
    if (second && second->node) give(world, second, made_too);
}

void issuer_keys(const struct issuer *issuer, uint32_t ring, struct gossip_key keys[GOSSIP_KEYS_MAX], size_t *count) {
    *count = 1;
    keys[0] = standin_key(STANDIN_FIRST_KEY);
    if (ring == 0) return;
    const struct gossip_ring *read = &issuer->rings[ring - 1].read;
    *count = read->key_count;
    memcpy(keys, read->keys, read->key_count * sizeof *keys);
}

void issuer_fill(const struct issuer *issuer, uint32_t ring, struct gossip_options *options) {
    if (ring == 0) return;
    const struct issued *issued = &issuer->rings[ring - 1];
    options->ring = issued->bytes;
    options->ring_size = sizeof issued->bytes;
    options->ring_number = issued->read.number;
    memcpy(options->ring_digest, issued->read.digest, sizeof options->ring_digest);
}

uint32_t issuer_find(const struct issuer *issuer, const uint8_t *bytes, size_t size) {
    if (size == 0) return 0;
    for (size_t i = issuer->count; i > 0; i--) /* the newest are asked for most */
        if (size == sizeof issuer->rings[i - 1].bytes && memcmp(issuer->rings[i - 1].bytes, bytes, size) == 0)
            return (uint32_t)i;
    return UINT32_MAX;
}

int issuer_order(const struct issuer *issuer, uint32_t ring, uint32_t than) {
    uint64_t number = issuer_number(issuer, ring), other = issuer_number(issuer, than);
    if (number != other) return number < other ? -1 : 1;
    if (number == 0) return 0;
    return memcmp(issuer->rings[ring - 1].read.digest, issuer->rings[than - 1].read.digest, 8);
}

uint64_t issuer_number(const struct issuer *issuer, uint32_t ring) {
    return ring == 0 ? 0 : issuer->rings[ring - 1].read.number;
}

uint32_t issuer_count(const struct issuer *issuer) {
    return (uint32_t)issuer->count;
}
