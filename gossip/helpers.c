/* Probes made for others, and by others for us (SWIM section 4.1): there may be another way to who is out of reach. */
#include "gossip/verbs.h"

#include <string.h>

#define HELPERS 3u
#define RELAYS_OF_ONE_MAX (RELAYS_MAX / 4)
#define HELPED_PER_S 75u /* of two such seconds one of its own may see the pings */

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
    if (message->flag && witness_answered(gossip, member, message)) {
        carrier_answered_helper(gossip, member);
        probe_answered(gossip, member, member->epoch);
    } else if (member->probe.nacks < UINT8_MAX) {
        member->probe.nacks++;
    }
}

/* ---- for others ---- */

/* One that is free, unless the origin has its part of them already. */
static struct relay *free_relay(struct gossip *gossip, const struct member_id *origin) {
    struct relay *free = NULL;
    size_t its = 0;
    for (size_t i = 0; i < RELAYS_MAX; i++) {
        struct relay *relay = &gossip->relays[i];
        if (!relay->used) free = free ? free : relay;
        its += relay->used && id_equal(&relay->origin, origin);
    }
    return its < RELAYS_OF_ONE_MAX ? free : NULL;
}

static bool is_being_relayed(const struct gossip *gossip, const struct member_id *target) {
    for (size_t i = 0; i < RELAYS_MAX; i++)
        if (gossip->relays[i].used && id_equal(&gossip->relays[i].target, target)) return true;
    return false;
}

/* However many ask, it must not be us who flood it. Counted for all whose ids have that byte. */
static bool helped_has_room(struct gossip *gossip, const struct member_id *target) {
    struct helped *helped = &gossip->helped;
    if (gossip->now_ms >= helped->until_ms) {
        memset(helped->count, 0, sizeof helped->count);
        helped->until_ms = gossip->now_ms + 1000;
    }
    uint8_t *count = &helped->count[target->bytes[0]];
    if (*count >= HELPED_PER_S) return false;
    ++*count;
    return true;
}

/* An address that nobody has answered from yet may be anybody's: there it is one ping at a time, whoever asks. */
static bool may_relay(struct gossip *gossip, const struct member *target, const struct gossip_address *to) {
    if (to->family == 0) return false;
    bool proven = to->family == ADDRESS_LINK || (target->path_proven && address_equal(to, &target->path));
    if (!proven && is_being_relayed(gossip, &target->id)) return false;
    return helped_has_room(gossip, &target->id);
}

static bool asks_too_much(struct gossip *gossip) {
    if (receive_may(gossip, ALLOW_HELP, 1)) return false;
    conduct_note_sender(gossip, MISDEED_FLOODS);
    return true;
}

void helpers_on_request(struct gossip *gossip, const struct message *message) {
    struct member *origin = gossip->sender, *target = members_find(gossip, &message->version.id);
    if (!gossip->authentic) return;
    struct relay *relay = asks_too_much(gossip) ? NULL : free_relay(gossip, &origin->id);
    struct gossip_address to = {0};
    if (target && !target->self && target->known) to = member_route(target);
    if (!relay || !may_relay(gossip, target, &to)) {
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
    uint8_t asks[MESSAGE_FOR_SIZE];
    struct message ping = {.kind = MESSAGE_PING, .number = relay->number, .bytes = asks, .size = sizeof asks};
    memcpy(asks, origin->id.bytes, sizeof origin->id.bytes);
    wire_store_u64(asks + sizeof origin->id.bytes, message->number);
    packet_begin(&packet, target, &to);
    packet.dial = address_equal(&to, &target->address);
    packet_add(gossip, &packet, &ping);
    packet_end(gossip, &packet, false);
    gossip->counters.indirect_probes_sent++;
}

/* pong: what came back, NULL if nothing did in time. */
static void relay_answer(struct gossip *gossip, struct relay *relay, const struct message *pong) {
    struct member *origin = members_find(gossip, &relay->origin);
    struct message indirect = {.kind = MESSAGE_INDIRECT, .number = relay->origin_number, .flag = pong != NULL};
    if (pong) {
        indirect.bytes = pong->bytes;
        indirect.size = pong->size;
    }
    relay->used = false;
    gossip->relay_count--;
    if (origin) send_one(gossip, origin, &indirect);
}

void helpers_on_pong(struct gossip *gossip, const struct message *pong) {
    struct relay *relay = &gossip->relays[pong->number % RELAYS_MAX];
    if (relay->used && relay->number == pong->number && id_equal(&relay->target, &gossip->sender->id))
        relay_answer(gossip, relay, pong);
}

void helpers_tick(struct gossip *gossip) {
    for (size_t i = 0; i < RELAYS_MAX && gossip->relay_count > 0; i++)
        if (gossip->relays[i].used && gossip->now_ms >= gossip->relays[i].deadline_ms)
            relay_answer(gossip, &gossip->relays[i], NULL);
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
