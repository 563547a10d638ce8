/* Checks of what honest brokers hold of one that is not. */
#include <inttypes.h>
#include <malloc.h>
#include <string.h>

#include "tests/sim/checks.h"

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

size_t checks_memory(void) {
    if (__sanitizer_get_current_allocated_bytes) return __sanitizer_get_current_allocated_bytes();
    return mallinfo2().uordblks;
}

static const struct world_node *holder_of(const struct world *world, const struct member_id *id) {
    for (size_t i = 0; i < world->node_count; i++) {
        uint8_t thumbprint[AUTH_THUMBPRINT_SIZE];
        auth_key_thumbprint(world->nodes[i]->key, thumbprint);
        if (memcmp(id->bytes, thumbprint, sizeof id->bytes) == 0) return world->nodes[i];
    }
    return NULL;
}

bool checks_conduct(const struct world *world, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *viewer = world->nodes[i];
        struct member_info info;
        if (viewer->node == NULL || viewer->hostility != NULL) continue;
        for (size_t at = 0; gossip_member_at(node_gossip(viewer->node), world_node_now_ms(viewer), at, &info); at++) {
            const struct world_node *holder = holder_of(world, &info.id);
            bool accuses = info.trouble == MEMBER_TROUBLE_ACCUSES;
            if (info.trouble == MEMBER_TROUBLE_NONE || accuses || holder == NULL || holder->hostility != NULL) continue;
            const struct world_log *log = world_log_of(viewer, "conduct");
            snprintf(why, CHECKS_WHY, "%s names %s, which is honest (trouble %d): %.200s", viewer->name, holder->name,
                     (int)info.trouble, log == NULL ? "" : log->last);
            return false;
        }
    }
    return true;
}

bool checks_bounded(const struct world *world, char why[CHECKS_WHY]) {
    for (size_t i = 0; i < world->node_count; i++) {
        const struct world_node *viewer = world->nodes[i];
        struct gossip_counters counters;
        struct member_info info;
        size_t strangers = 0;
        if (viewer->node == NULL || viewer->hostility != NULL) continue;
        gossip_read_counters(node_gossip(viewer->node), &counters);
        for (size_t at = 0; gossip_member_at(node_gossip(viewer->node), world_node_now_ms(viewer), at, &info); at++)
            strangers += holder_of(world, &info.id) == NULL && info.state != MEMBER_UNVERIFIED;
        uint64_t bytes_max = world->node_count * (uint64_t)CHECKS_OWNER_BYTES_MAX;
        if (strangers == 0 && counters.registry_bytes <= bytes_max) continue;
        snprintf(why, CHECKS_WHY, "%s holds %" PRIu64 " bytes of the registry, and %zu members that never were",
                 viewer->name, counters.registry_bytes, strangers);
        return false;
    }
    return true;
}
