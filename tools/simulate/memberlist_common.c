#include "tools/simulate/memberlist_inside.h"

#include "tools/simulate/memory.h"
#include "tools/simulate/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *memberlist_common_new(void) {
    return memory_new(1, sizeof(struct memberlist_common));
}

void memberlist_common_free(void *context) {
    struct memberlist_common *common = context;
    for (size_t i = 0; common && i < common->count; i++) {
        for (size_t j = 0; j < common->owners[i].op_count; j++)
            free((char *)common->owners[i].ops[j].filter);
        free(common->owners[i].ops);
    }
    if (common) free(common->owners);
    if (common) free(common->by_id);
    free(common);
}

static uint32_t *slot_of(struct memberlist_common *common, const struct member_id *id) {
    uint64_t hash;
    memcpy(&hash, id->bytes, sizeof hash);
    size_t slot = hash & (common->slots - 1);
    while (common->by_id[slot] != 0 && memcmp(&common->owners[common->by_id[slot] - 1].id, id, sizeof *id) != 0)
        slot = (slot + 1) & (common->slots - 1);
    return &common->by_id[slot];
}

static void grow(struct memberlist_common *common) {
    if (2 * (common->count + 1) <= common->slots) return;
    free(common->by_id);
    common->slots = common->slots ? 2 * common->slots : 64;
    common->by_id = memory_new(common->slots, sizeof *common->by_id);
    for (size_t i = 0; i < common->count; i++)
        *slot_of(common, &common->owners[i].id) = (uint32_t)i + 1;
}

uint32_t common_owner(struct memberlist_common *common, const struct gossip_options *options) {
    struct member_id id;
    options->crypto.id_of(options->crypto.context, options->public_key, &id);
    grow(common);
    uint32_t *slot = slot_of(common, &id);
    if (*slot == 0) {
        common->owners = memory_room(common->owners, &common->room, common->count + 1, sizeof *common->owners);
        common->owners[common->count] = (struct owner){.id = id};
        *slot = (uint32_t)++common->count;
    }
    struct owner *owner = &common->owners[*slot - 1];
    owner->address = options->advertise;
    snprintf(owner->name, sizeof owner->name, "%s", options->name);
    return *slot - 1;
}

uint32_t common_add_op(struct memberlist_common *common, uint32_t which, enum gossip_row_kind kind, const char *filter,
                       size_t size, bool put) {
    struct owner *owner = &common->owners[which];
    owner->ops = memory_room(owner->ops, &owner->op_room, owner->op_count + 1, sizeof *owner->ops);
    uint32_t number = (uint32_t)owner->op_count++;
    struct row_op *op = &owner->ops[number];
    char *copy = memory_new(1, size + 1);
    memcpy(copy, filter, size);
    *op = (struct row_op){.kind = kind, .put = put, .size = (uint16_t)size, .filter = copy};
    op->hash = truth_row_hash(kind, filter, size);
    uint32_t live = number > 0 ? owner->ops[number - 1].live_bytes : 0;
    bool was = false;
    for (uint32_t i = number; i-- > 0 && op->earlier == 0;) {
        if (owner->ops[i].hash != op->hash) continue;
        op->earlier = i + 1;
        owner->ops[i].later = number + 1;
        was = owner->ops[i].put;
    }
    uint32_t bytes = (uint32_t)size + 24; /* with its version and the frame of an entry */
    if (put && !was) live += bytes;
    if (!put && was) live -= bytes;
    op->live_bytes = live;
    return number;
}
