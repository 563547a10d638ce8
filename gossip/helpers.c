/* Probes made for others, and by others for us (SWIM section 4.1): there may be another way to who is out of reach. */
#include "gossip/verbs.h"

#define HELPERS 3u

/* Only we know it, and it says where we keep what it is about. */
static uint64_t numbered(struct gossip *gossip, size_t place, size_t places) {
    uint64_t number = 0;
    while (number < places)
        number = chance_next(&gossip->chance) / places * places + place;
    return number;
}

unsigned helpers_ask(struct gossip *gossip, struct member *member) {
    struct member *helpers[HELPERS];
    size_t count = members_pick(gossip, helpers, HELPERS, member), place = gossip->asked_next++ % ASKED_MAX;
    struct asked *asked = &gossip->asked[place];
    *asked = (struct asked){numbered(gossip, place, ASKED_MAX), member->probe.number, member->id};
    for (size_t i = 0; i < count; i++) {
        struct message request = {.kind = MESSAGE_PING_REQ, .number = asked->number, .version.id = member->id};
        send_one(gossip, helpers[i], &request);
    }
    return (unsigned)count;
}

void helpers_on_indirect(struct gossip *gossip, const struct message *message) {
    if (message->number == 0 || !gossip->authentic) return;
    struct asked *asked = &gossip->asked[message->number % ASKED_MAX];
    if (asked->number != message->number) return;
    struct member *member = members_find(gossip, &asked->member);
    if (!member || member->probe.number != asked->probe_number) return;
    if (message->flag) {
        carrier_answered_helper(gossip, member);
        probe_answered(gossip, member, member->epoch);
    } else {
        member->probe.nacks++;
    }
}

/* ---- for others ---- */

static struct relay *free_relay(struct gossip *gossip) {
    if (gossip->relay_count == RELAYS_MAX) return NULL;
    size_t at = 0;
    while (gossip->relays[at].used)
        at++;
    return &gossip->relays[at];
}

void helpers_on_request(struct gossip *gossip, const struct message *message) {
    struct member *origin = gossip->sender, *target = members_find(gossip, &message->version.id);
    if (!gossip->authentic) return;
    struct relay *relay = free_relay(gossip);
    struct gossip_address to = {0};
    if (target && !target->self && target->known) to = member_route(target);
    if (!relay || to.family == 0) {
        struct message nack = {.kind = MESSAGE_INDIRECT, .number = message->number};
        reply_add(gossip, &nack);
        return;
    }
    *relay = (struct relay){.used = true,
                            .number = numbered(gossip, (size_t)(relay - gossip->relays), RELAYS_MAX),
                            .origin_number = message->number,
                            .deadline_ms = gossip->now_ms + probe_answer_ms(gossip, target),
                            .origin = origin->id,
                            .target = target->id};
    gossip->relay_count++;
    struct packet packet;
    struct message ping = {.kind = MESSAGE_PING, .number = relay->number};
    packet_begin(&packet, target, &to);
    packet.dial = address_equal(&to, &target->address);
    packet_add(gossip, &packet, &ping);
    packet_end(gossip, &packet, false);
    gossip->counters.indirect_probes_sent++;
}

static void relay_answer(struct gossip *gossip, struct relay *relay, bool answered) {
    struct member *origin = members_find(gossip, &relay->origin);
    struct message indirect = {.kind = MESSAGE_INDIRECT, .number = relay->origin_number, .flag = answered};
    relay->used = false;
    gossip->relay_count--;
    if (origin) send_one(gossip, origin, &indirect);
}

void helpers_on_pong(struct gossip *gossip, uint64_t number) {
    struct relay *relay = &gossip->relays[number % RELAYS_MAX];
    if (relay->used && relay->number == number && id_equal(&relay->target, &gossip->sender->id))
        relay_answer(gossip, relay, true);
}

void helpers_tick(struct gossip *gossip) {
    for (size_t i = 0; i < RELAYS_MAX && gossip->relay_count > 0; i++)
        if (gossip->relays[i].used && gossip->now_ms >= gossip->relays[i].deadline_ms)
            relay_answer(gossip, &gossip->relays[i], false);
}

uint64_t helpers_deadline_ms(const struct gossip *gossip) {
    uint64_t deadline = NEVER;
    for (size_t i = 0, left = gossip->relay_count; left > 0; i++) {
        if (!gossip->relays[i].used) continue;
        deadline = earlier(deadline, gossip->relays[i].deadline_ms);
        left--;
    }
    return deadline;
}
