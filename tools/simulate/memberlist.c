#include "tools/simulate/memberlist_inside.h"

#include "tools/simulate/memory.h"

#include <stdlib.h>
#include <string.h>

#define ENCRYPTION 29u /* version, nonce, tag */
#define COMPOUND 2u    /* bytes before the messages of a packet, and for the size of each */
#define STORED 15u     /* bytes that a message of the model takes in a packet */

struct known *ml_known(struct ml *ml, uint32_t who) {
    if (who >= ml->known_count) {
        size_t room = ml->common->room > who ? ml->common->room : (size_t)who + 1;
        struct known *known = realloc(ml->known, room * sizeof *known);
        if (!known) memory_is_short();
        memset(known + ml->known_count, 0, (room - ml->known_count) * sizeof *known);
        ml->known = known;
        ml->known_count = room;
    }
    return &ml->known[who];
}

size_t ml_pick(struct ml *ml, uint32_t *out, size_t want, uint32_t states, uint32_t but) {
    size_t count = 0;
    for (size_t tries = 0; tries < 3 * ml->order_count && count < want; tries++) {
        uint32_t who = ml->order[ml_below(ml, ml->order_count)];
        const struct known *known = ml_known(ml, who);
        bool dead_long = known->state == ML_DEAD && (uint32_t)ml->now_ms - known->changed_ms > GOSSIP_TO_THE_DEAD_MS;
        if (who == ml->self || who == but || !(states >> known->state & 1) || dead_long) continue;
        bool twice = false;
        for (size_t i = 0; i < count; i++)
            twice = twice || out[i] == who;
        if (!twice) out[count++] = who;
    }
    return count;
}

void ml_event(struct ml *ml, uint32_t who, enum member_state state) {
    const struct owner *owner = &ml->common->owners[who];
    ml->events = memory_room(ml->events, &ml->event_room, ml->event_count + 1, sizeof *ml->events);
    struct gossip_event *event = &ml->events[ml->event_count++];
    *event = (struct gossip_event){
        .kind = GOSSIP_MEMBER, .id = owner->id, .state = state, .epoch = ml_known(ml, who)->incarnation};
    memcpy(event->name, owner->name, sizeof event->name);
    event->address = owner->address;
}

/* ---- packets ---- */

/* As its encoding gives them: a type, and a map with the names of the fields. */
uint16_t message_size(const struct ml *ml, uint8_t type, uint32_t who, uint32_t number, uint32_t other) {
    size_t name = strlen(ml->common->owners[who].name), from = strlen(ml->common->owners[other].name);
    switch (type) {
    case ML_PING: return (uint16_t)(57 + name + from);
    case ML_INDIRECT: return (uint16_t)(85 + name + from);
    case ML_ACK: return 22;
    case ML_NACK: return STORED;
    case ML_MSG_ALIVE: return (uint16_t)(58 + name);
    case ML_MSG_ROW: return (uint16_t)(ml->common->owners[who].ops[number].size + name + 12);
    default: return (uint16_t)(27 + name + from);
    }
}

void packet_start(struct ml_packet *packet) {
    packet->datagram.bytes[0] = 0;
    packet->datagram.size = 1;
    packet->wire = ENCRYPTION + COMPOUND;
}

bool packet_fits(const struct ml_packet *packet, size_t size) {
    return packet->wire + size + COMPOUND <= GOSSIP_DATAGRAM_MAX &&
           packet->datagram.size + STORED <= GOSSIP_DATAGRAM_MAX;
}

void packet_put(struct ml_packet *packet, const struct message_of *message) {
    uint8_t *at = packet->datagram.bytes + packet->datagram.size;
    at[0] = message->type;
    memcpy(at + 1, &message->size, 2);
    memcpy(at + 3, &message->who, 4);
    memcpy(at + 7, &message->number, 4);
    memcpy(at + 11, &message->other, 4);
    packet->datagram.size += STORED;
    packet->datagram.bytes[0]++;
    packet->wire += message->size + COMPOUND;
}

void packet_send(struct ml *ml, struct ml_packet *packet, uint32_t to) {
    queue_fill(ml, &ml->members_queue, packet);
    queue_fill(ml, &ml->rows_queue, packet);
    if (packet->datagram.bytes[0] == 0) return;
    size_t size = packet->wire > packet->datagram.size ? packet->wire : packet->datagram.size;
    memset(packet->datagram.bytes + packet->datagram.size, 0, size - packet->datagram.size);
    packet->datagram.size = size;
    packet->datagram.to = ml->common->owners[to].address;
    ml->datagrams = memory_room(ml->datagrams, &ml->datagram_room, ml->datagram_count + 1, sizeof *ml->datagrams);
    ml->datagrams[ml->datagram_count++] = packet->datagram;
    ml->counters.datagrams_sent++;
    ml->counters.bytes_sent += size;
}

void send_message(struct ml *ml, uint32_t to, uint8_t type, uint32_t who, uint32_t number, uint32_t other) {
    struct message_of message = {.type = type, .who = who, .number = number, .other = other};
    struct ml_packet packet;
    message.size = message_size(ml, type, who, number, other);
    packet_start(&packet);
    packet_put(&packet, &message);
    packet_send(ml, &packet, to);
}

void ml_send_frame(struct ml *ml, const struct gossip_address *to, uint8_t *bytes, size_t size) {
    ml->frames = memory_room(ml->frames, &ml->frame_room, ml->frame_count + 1, sizeof *ml->frames);
    ml->frames[ml->frame_count++] = (struct out_frame){*to, bytes, size};
    ml->counters.bytes_sent += size;
}

/* ---- the seam ---- */

static struct ml *make(const struct gossip_options *options, void *common, uint64_t now_ms, bool joins_always) {
    struct ml *ml = memory_new(1, sizeof *ml);
    ml->common = common;
    ml->random = options->seed;
    ml->now_ms = now_ms;
    ml->joins_always = joins_always;
    ml->relay_ms = UINT64_MAX;
    ml->self = common_owner(common, options);
    ml->gossip_ms = now_ms + ml_below(ml, GOSSIP_INTERVAL_MS);
    ml->next_probe_ms = now_ms + ml_below(ml, PROBE_INTERVAL_MS);
    ml->next_sync_ms = now_ms + ml_below(ml, PUSH_PULL_INTERVAL_MS);
    state_alive(ml, ml->self, 1);
    return ml;
}

static void *create(const struct gossip_options *options, void *common, uint64_t now_ms) {
    return make(options, common, now_ms, false);
}

static void *create_joining(const struct gossip_options *options, void *common, uint64_t now_ms) {
    return make(options, common, now_ms, true);
}

static void destroy(void *node) {
    struct ml *ml = node;
    for (size_t i = ml->frame_taken; i < ml->frame_count; i++)
        free(ml->frames[i].bytes);
    queue_free(&ml->members_queue);
    queue_free(&ml->rows_queue);
    free(ml->frame_given);
    free(ml->frames);
    free(ml->datagrams);
    free(ml->events);
    free(ml->suspicions);
    free(ml->order);
    free(ml->known);
    free(ml);
}

static void set_bootstrap(void *node, uint64_t now_ms, const struct gossip_address *addresses, size_t count) {
    struct ml *ml = node;
    ml->now_ms = now_ms;
    if (ml->order_count > 1 && !ml->joins_always) return; /* Join is called until it has brought somebody */
    for (size_t i = 0; i < count; i++)
        if (memcmp(&addresses[i], &ml->common->owners[ml->self].address, sizeof addresses[i]) != 0)
            sync_with(ml, &addresses[i], ML_PUSH_PULL);
}

static void on_message(struct ml *ml, const struct message_of *message) {
    if (message->who >= ml->common->count) return;
    switch (message->type) {
    case ML_MSG_ALIVE: state_alive(ml, message->who, message->number); break;
    case ML_MSG_SUSPECT: state_suspect(ml, message->who, message->number, message->other); break;
    case ML_MSG_DEAD: state_dead(ml, message->who, message->number, message->other); break;
    case ML_MSG_ROW:
        if (message->number < ml->common->owners[message->who].op_count) rows_learn(ml, message->who, message->number);
        break;
    default: probe_on_message(ml, message);
    }
}

static void receive(void *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes, size_t size) {
    struct ml *ml = node;
    (void)from;
    ml->now_ms = now_ms;
    ml->counters.datagrams_received++;
    ml->counters.bytes_received += size;
    if (size < 1 || size < 1 + (size_t)bytes[0] * STORED) return;
    for (size_t i = 0; i < bytes[0]; i++) {
        const uint8_t *at = bytes + 1 + i * STORED;
        struct message_of message = {.type = at[0]};
        memcpy(&message.size, at + 1, 2);
        memcpy(&message.who, at + 3, 4);
        memcpy(&message.number, at + 7, 4);
        memcpy(&message.other, at + 11, 4);
        on_message(ml, &message);
    }
}

static bool has_to_tell(const struct ml *ml) {
    return ml->members_queue.count > 0 || ml->rows_queue.count > 0;
}

static uint64_t deadline_ms(const void *node) {
    const struct ml *ml = node;
    uint64_t deadline = ml_probe_deadline_ms(ml), suspicion = state_deadline_ms(ml);
    if (suspicion < deadline) deadline = suspicion;
    if (ml->next_sync_ms < deadline) deadline = ml->next_sync_ms;
    if (has_to_tell(ml) && ml->gossip_ms < deadline) deadline = ml->gossip_ms;
    if (ml->leaving && ml->leave_ms < deadline && ml->leave_ms > ml->now_ms) deadline = ml->leave_ms;
    return deadline;
}

static void gossip(struct ml *ml) {
    uint32_t some[GOSSIP_NODES];
    if (!has_to_tell(ml) || ml->now_ms < ml->gossip_ms) return;
    while (ml->gossip_ms <= ml->now_ms)
        ml->gossip_ms += GOSSIP_INTERVAL_MS;
    size_t count = ml_pick(ml, some, GOSSIP_NODES, 1u << ML_ALIVE | 1u << ML_SUSPECT | 1u << ML_DEAD, ml->self);
    for (size_t i = 0; i < count && has_to_tell(ml); i++) {
        struct ml_packet packet;
        packet_start(&packet);
        packet_send(ml, &packet, some[i]);
    }
}

static void tick(void *node, uint64_t now_ms) {
    struct ml *ml = node;
    ml->now_ms = now_ms;
    state_tick(ml);
    ml_probe_tick(ml);
    gossip(ml);
    sync_tick(ml);
}

static bool next_datagram(void *node, struct gossip_datagram *datagram) {
    struct ml *ml = node;
    if (ml->datagram_taken == ml->datagram_count) {
        ml->datagram_taken = ml->datagram_count = 0;
        return false;
    }
    *datagram = ml->datagrams[ml->datagram_taken++];
    return true;
}

static void receive_frame(void *node, uint64_t now_ms, const struct gossip_address *from, const uint8_t *bytes,
                          size_t size) {
    struct ml *ml = node;
    ml->now_ms = now_ms;
    ml->counters.bytes_received += size;
    sync_on_frame(ml, from, bytes, size);
}

static bool next_frame(void *node, struct strategy_frame *frame) {
    struct ml *ml = node;
    free(ml->frame_given);
    ml->frame_given = NULL;
    if (ml->frame_taken == ml->frame_count) {
        ml->frame_taken = ml->frame_count = 0;
        return false;
    }
    const struct out_frame *out = &ml->frames[ml->frame_taken++];
    ml->frame_given = out->bytes;
    *frame = (struct strategy_frame){out->to, out->bytes, out->size};
    return true;
}

static bool next_event(void *node, struct gossip_event *event) {
    struct ml *ml = node;
    if (ml->event_taken == ml->event_count) {
        ml->event_taken = ml->event_count = 0;
        return false;
    }
    *event = ml->events[ml->event_taken++];
    return true;
}

static void row(void *node, uint64_t now_ms, enum gossip_row_kind kind, const char *filter, size_t size, bool put) {
    struct ml *ml = node;
    ml->now_ms = now_ms;
    rows_learn_all(ml, ml->self, (uint32_t)ml->common->owners[ml->self].op_count, 0);
    rows_learn(ml, ml->self, common_add_op(ml->common, ml->self, kind, filter, size, put));
}

static void leave(void *node, uint64_t now_ms) {
    struct ml *ml = node;
    ml->now_ms = now_ms;
    if (ml->leaving) return;
    ml->leaving = true;
    ml->leave_ms = now_ms + LEAVE_MS;
    state_dead(ml, ml->self, ml_known(ml, ml->self)->incarnation, ml->self);
}

static bool left(const void *node) {
    const struct ml *ml = node;
    return ml->leaving && (ml->now_ms >= ml->leave_ms || ml->members_queue.count == 0 || ml->order_count == 1);
}

static uint64_t table_hash(const void *node) {
    const struct ml *ml = node;
    return ml->rows_hash;
}

static void read_counters(const void *node, struct gossip_counters *out) {
    const struct ml *ml = node;
    *out = ml->counters;
}

#define BY_THE_RULES                                                                                                   \
    .common_new = memberlist_common_new, .common_free = memberlist_common_free, .destroy = destroy,                    \
    .set_bootstrap = set_bootstrap, .receive = receive, .deadline_ms = deadline_ms, .tick = tick,                      \
    .next_datagram = next_datagram, .receive_frame = receive_frame, .next_frame = next_frame,                          \
    .next_event = next_event, .row = row, .leave = leave, .left = left, .table_hash = table_hash,                      \
    .read_counters = read_counters

const struct strategy strategy_memberlist = {
    .name = "memberlist",
    .about = "memberlist's published rules: blind retransmission, whole state over TCP each 30 s",
    .create = create,
    BY_THE_RULES,
};

/* As its users do who were hurt by partitions. */
const struct strategy strategy_memberlist_joining = {
    .name = "memberlist-join",
    .about = "the same, and Join called on the bootstrap brokers every 30 s",
    .create = create_joining,
    BY_THE_RULES,
};
