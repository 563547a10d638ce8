#include "tools/simulate/memberlist_inside.h"

#include "tools/simulate/memory.h"

#include <math.h>
#include <string.h>

/* What a frame holds of a member; on the wire it is larger. */
struct entry_of {
    uint32_t who, incarnation, ops, window, state;
};

#define HEADER 16u
#define STATE_SIZE 70u /* of a member, with the names of the fields, without its own */

static size_t wire_size(struct ml *ml) {
    size_t size = 40;
    for (size_t i = 0; i < ml->order_count; i++) {
        const struct owner *owner = &ml->common->owners[ml->order[i]];
        const struct known *known = ml_known(ml, ml->order[i]);
        size += STATE_SIZE + strlen(owner->name);
        if (known->ops > 0) size += owner->ops[known->ops - 1].live_bytes;
    }
    return size;
}

void sync_with(struct ml *ml, const struct gossip_address *to, uint8_t type) {
    size_t content = HEADER + ml->order_count * sizeof(struct entry_of), size = wire_size(ml);
    if (size < content) size = content;
    uint8_t *bytes = memory_new(1, size);
    uint32_t count = (uint32_t)ml->order_count;
    bytes[0] = type;
    memcpy(bytes + 4, &count, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        const struct known *known = ml_known(ml, ml->order[i]);
        struct entry_of entry = {ml->order[i], known->incarnation, known->ops, known->window, known->state};
        memcpy(bytes + HEADER + i * sizeof entry, &entry, sizeof entry);
    }
    ml_send_frame(ml, to, bytes, size);
}

static void merge(struct ml *ml, const uint8_t *bytes) {
    uint32_t count;
    memcpy(&count, bytes + 4, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        struct entry_of entry;
        memcpy(&entry, bytes + HEADER + i * sizeof entry, sizeof entry);
        switch (entry.state) {
        case ML_ALIVE: state_alive(ml, entry.who, entry.incarnation); break;
        case ML_LEFT: state_dead(ml, entry.who, entry.incarnation, entry.who); break;
        default:
            state_suspect(ml, entry.who, entry.incarnation, ml->self); /* a death of others is not believed at once */
        }
        rows_learn_all(ml, entry.who, entry.ops, entry.window);
    }
}

void sync_on_frame(struct ml *ml, const struct gossip_address *from, const uint8_t *bytes, size_t size) {
    if (size < HEADER) return;
    uint32_t number;
    switch (bytes[0]) {
    case ML_PUSH_PULL:
        sync_with(ml, from, ML_PULL);
        merge(ml, bytes);
        break;
    case ML_PULL: merge(ml, bytes); break;
    case ML_TCP_PING: {
        uint8_t *answer = memory_new(1, size);
        memcpy(answer, bytes, size);
        answer[0] = ML_TCP_ACK;
        ml_send_frame(ml, from, answer, size);
        break;
    }
    case ML_TCP_ACK:
        memcpy(&number, bytes + 1, sizeof number);
        probe_on_tcp_ack(ml, number);
        break;
    default: break;
    }
}

static uint64_t interval_ms(const struct ml *ml) {
    if (ml->order_count <= PUSH_PULL_SCALE_FROM) return PUSH_PULL_INTERVAL_MS;
    double times = ceil(log2((double)ml->order_count) - log2(PUSH_PULL_SCALE_FROM)) + 1;
    return (uint64_t)times * PUSH_PULL_INTERVAL_MS;
}

void sync_tick(struct ml *ml) {
    if (ml->now_ms < ml->next_sync_ms) return;
    ml->next_sync_ms = ml->now_ms + interval_ms(ml);
    uint32_t one;
    if (ml_pick(ml, &one, 1, 1u << ML_ALIVE, ml->self) == 1)
        sync_with(ml, &ml->common->owners[one].address, ML_PUSH_PULL);
}
