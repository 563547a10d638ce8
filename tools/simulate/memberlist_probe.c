#include "tools/simulate/memberlist_inside.h"

#include "tools/simulate/memory.h"

#include <string.h>

static void next_round(struct ml *ml) {
    size_t kept = 0;
    for (size_t i = 0; i < ml->order_count; i++) {
        struct known *known = ml_known(ml, ml->order[i]);
        bool dead = known->state == ML_DEAD || known->state == ML_LEFT;
        if (dead && (uint32_t)ml->now_ms - known->changed_ms > GOSSIP_TO_THE_DEAD_MS)
            known->state = ML_UNKNOWN; /* forgotten: only Join brings it back */
        else
            ml->order[kept++] = ml->order[i];
    }
    ml->order_count = kept;
    for (size_t i = kept; i > 1; i--) {
        uint32_t other = ml_below(ml, i), which = ml->order[i - 1];
        ml->order[i - 1] = ml->order[other];
        ml->order[other] = which;
    }
    ml->probe_at = 0;
}

static bool next_target(struct ml *ml, uint32_t *who) {
    for (size_t tried = 0; tried < ml->order_count + 1; tried++) {
        if (ml->probe_at >= ml->order_count) next_round(ml);
        if (ml->order_count == 0) return false;
        *who = ml->order[ml->probe_at++];
        uint8_t state = ml_known(ml, *who)->state;
        if (*who != ml->self && (state == ML_ALIVE || state == ML_SUSPECT)) return true;
    }
    return false;
}

static void begin(struct ml *ml) {
    uint32_t who;
    if (!next_target(ml, &who)) return;
    memset(&ml->probe, 0, sizeof ml->probe);
    ml->probe.active = true;
    ml->probe.who = who;
    ml->probe.number = ++ml->sequence;
    ml->probe.timeout_ms = ml->now_ms + PROBE_TIMEOUT_MS;
    ml->probe.deadline_ms = ml->now_ms + PROBE_INTERVAL_MS * (uint64_t)(ml->awareness + 1);
    ml->counters.probes_sent++;
    struct ml_packet packet;
    packet_start(&packet);
    struct message_of ping = {.type = ML_PING, .who = who, .number = ml->probe.number, .other = ml->self};
    ping.size = message_size(ml, ML_PING, who, 0, ml->self);
    packet_put(&packet, &ping);
    const struct known *known = ml_known(ml, who);
    if (known->state == ML_SUSPECT) { /* so that it can refute at once */
        struct message_of suspect = {
            .type = ML_MSG_SUSPECT, .who = who, .number = known->incarnation, .other = ml->self};
        suspect.size = message_size(ml, ML_MSG_SUSPECT, who, 0, ml->self);
        packet_put(&packet, &suspect);
    }
    packet_send(ml, &packet, who);
}

static void tcp_message(struct ml *ml, const struct gossip_address *to, uint8_t type, uint32_t number) {
    enum { SIZE = 90 };
    uint8_t *bytes = memory_new(1, SIZE);
    bytes[0] = type;
    memcpy(bytes + 1, &number, sizeof number);
    ml_send_frame(ml, to, bytes, SIZE);
}

static void ask_others(struct ml *ml) {
    uint32_t helpers[INDIRECT_CHECKS];
    size_t count = ml_pick(ml, helpers, INDIRECT_CHECKS, 1u << ML_ALIVE, ml->probe.who);
    ml->probe.indirect = true;
    ml->probe.expected_nacks = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        send_message(ml, helpers[i], ML_INDIRECT, ml->probe.who, ml->probe.number, ml->self);
    ml->counters.indirect_probes_sent += count;
    tcp_message(ml, &ml->common->owners[ml->probe.who].address, ML_TCP_PING, ml->probe.number);
}

static void fail(struct ml *ml) {
    ml->probe.active = false;
    ml->counters.probes_failed++;
    if (ml->probe.expected_nacks > 0) {
        if (ml->probe.nacks < ml->probe.expected_nacks)
            awareness_add(ml, (int)(ml->probe.expected_nacks - ml->probe.nacks));
    } else {
        awareness_add(ml, 1);
    }
    if (ml->probe.contacted) return; /* TCP reaches it: UDP is at fault */
    state_suspect(ml, ml->probe.who, ml_known(ml, ml->probe.who)->incarnation, ml->self);
}

static void relay(struct ml *ml, uint32_t origin, const struct message_of *message) {
    struct relay_of *relay = &ml->relays[ml->next_relay++ % RELAYS];
    *relay = (struct relay_of){++ml->sequence, origin, message->number, ml->now_ms + PROBE_TIMEOUT_MS};
    if (relay->nack_ms < ml->relay_ms) ml->relay_ms = relay->nack_ms;
    send_message(ml, message->who, ML_PING, message->who, relay->number, ml->self);
}

static void on_ack(struct ml *ml, uint32_t number) {
    if (ml->probe.active && number == ml->probe.number) {
        ml->probe.active = false;
        awareness_add(ml, -1);
        return;
    }
    for (uint32_t i = 0; i < RELAYS; i++) {
        struct relay_of *relay = &ml->relays[i];
        if (relay->number != number || number == 0) continue;
        send_message(ml, relay->origin, ML_ACK, relay->origin, relay->origin_number, ml->self);
        relay->number = 0;
        relay->nack_ms = UINT64_MAX;
    }
}

void probe_on_message(struct ml *ml, const struct message_of *message) {
    switch (message->type) {
    case ML_PING:
        if (message->who == ml->self)
            send_message(ml, message->other, ML_ACK, message->other, message->number, ml->self);
        break;
    case ML_INDIRECT: relay(ml, message->other, message); break;
    case ML_ACK: on_ack(ml, message->number); break;
    default:
        if (ml->probe.active && message->number == ml->probe.number) ml->probe.nacks++;
    }
}

void probe_on_tcp_ack(struct ml *ml, uint32_t number) {
    if (ml->probe.active && number == ml->probe.number) ml->probe.contacted = true;
}

static void say_nacks(struct ml *ml) {
    ml->relay_ms = UINT64_MAX;
    for (uint32_t i = 0; i < RELAYS; i++) {
        struct relay_of *relay = &ml->relays[i];
        if (relay->number == 0 || relay->nack_ms == UINT64_MAX) continue;
        if (relay->nack_ms > ml->now_ms) {
            if (relay->nack_ms < ml->relay_ms) ml->relay_ms = relay->nack_ms;
            continue;
        }
        relay->nack_ms = UINT64_MAX;
        send_message(ml, relay->origin, ML_NACK, relay->origin, relay->origin_number, ml->self);
    }
}

void ml_probe_tick(struct ml *ml) {
    if (ml->relay_ms <= ml->now_ms) say_nacks(ml);
    if (ml->probe.active && !ml->probe.indirect && ml->now_ms >= ml->probe.timeout_ms) ask_others(ml);
    if (ml->probe.active && ml->now_ms >= ml->probe.deadline_ms) fail(ml);
    if (ml->now_ms < ml->next_probe_ms) return;
    while (ml->next_probe_ms <= ml->now_ms)
        ml->next_probe_ms += PROBE_INTERVAL_MS;
    if (!ml->probe.active) begin(ml);
}

uint64_t ml_probe_deadline_ms(const struct ml *ml) {
    uint64_t deadline = ml->next_probe_ms < ml->relay_ms ? ml->next_probe_ms : ml->relay_ms;
    if (!ml->probe.active) return deadline;
    uint64_t own = ml->probe.indirect ? ml->probe.deadline_ms : ml->probe.timeout_ms;
    return own < deadline ? own : deadline;
}
