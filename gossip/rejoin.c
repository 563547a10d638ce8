/* Joining, and joining again, for ever: bootstrap addresses where nobody alive answers, members that are down, and
 * those we only heard of. */
#include "gossip/state.h"

#include <string.h>

#define SELF_KEEP_MS 60000u
#define QUICK_MS 3000u /* after the start, or after new addresses, all are dialled at a tenth of the interval */

static uint64_t interval_ms(const struct gossip *gossip) {
    bool quick = gossip->now_ms < gossip->quick_until_ms;
    uint64_t interval = quick ? gossip->limits.rejoin_ms / 10 : gossip->limits.rejoin_ms;
    return interval > 0 ? interval : 1;
}

static bool is_answered(const struct gossip *gossip, const struct bootstrap *bootstrap) {
    if (gossip->now_ms < bootstrap->self_until_ms || address_equal(&bootstrap->address, &gossip->self->address))
        return true;
    for (size_t i = 0; i < gossip->members.count; i++) {
        const struct member *member = gossip->members.items[i];
        struct gossip_address route = member_route(member);
        if (!member_is_visible(member)) continue;
        if (address_equal(&route, &bootstrap->address) ||
            (bootstrap->answered && id_equal(&member->id, &bootstrap->member)))
            return true;
    }
    return false;
}

static void dial(struct gossip *gossip, struct bootstrap *bootstrap) {
    while (bootstrap->number == 0)
        bootstrap->number = chance_next(&gossip->chance);
    bootstrap->answered = false;
    struct packet packet;
    packet_begin(&packet, NULL, &bootstrap->address);
    packet.dial = true;
    struct message ping = {.kind = MESSAGE_PING, .number = bootstrap->number};
    packet_add(gossip, &packet, &ping);
    struct message head = evidence_head_of(gossip->self);
    packet_add(gossip, &packet, &head);
    packet_end(gossip, &packet, false);
}

void rejoin_on_pong(struct gossip *gossip, uint64_t number) {
    struct member *sender = gossip->sender;
    for (size_t i = 0; sender && number != 0 && i < gossip->bootstrap_count; i++) {
        struct bootstrap *bootstrap = &gossip->bootstrap[i];
        if (bootstrap->number != number) continue;
        bootstrap->number = 0;
        bootstrap->member = sender->id;
        bootstrap->answered = true;
        if (!gossip->authentic) continue;
        sender->heard_ms = gossip->now_ms;
        sender->fresh_epoch = gossip->header->epoch;
        evidence_consider(gossip, sender);
    }
}

/* Our own dial came back: that address is ours. The source need not be the address dialled, so the number tells. Not
 * for ever: somebody who saw the dial pass may have sent it back. */
void rejoin_on_own_packet(struct gossip *gossip, const uint8_t *plain, size_t size) {
    struct wire_in in;
    struct packet_header header;
    struct message message;
    wire_in_init(&in, plain, size);
    header_get(&in, &header);
    while (message_get(&in, &message))
        for (size_t i = 0; message.kind == MESSAGE_PING && i < gossip->bootstrap_count; i++)
            if (gossip->bootstrap[i].number == message.number)
                gossip->bootstrap[i].self_until_ms = gossip->now_ms + SELF_KEEP_MS;
}

static bool is_absent(const struct member *member) {
    bool absent = member->state == MEMBER_DOWN || (member->state == MEMBER_UNVERIFIED && !member->refused);
    return !member->self && absent && member_route(member).family != 0;
}

static void call(struct gossip *gossip, struct member *member) {
    if (!member->known) identity_ask(gossip, member);
    probe_member(gossip, member);
}

void rejoin_tick(struct gossip *gossip) {
    if (gossip->now_ms < gossip->next_rejoin_ms) return;
    bool quick = gossip->now_ms < gossip->quick_until_ms;
    gossip->next_rejoin_ms = gossip->now_ms + interval_ms(gossip);
    struct bootstrap *chosen = NULL;
    struct member *absent = NULL;
    uint32_t choices = 0;
    for (size_t i = 0; i < gossip->bootstrap_count; i++) {
        struct bootstrap *bootstrap = &gossip->bootstrap[i];
        if (is_answered(gossip, bootstrap)) continue;
        if (quick)
            dial(gossip, bootstrap);
        else if (chance_below(&gossip->chance, ++choices) == 0)
            chosen = bootstrap;
    }
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        if (is_absent(member) && chance_below(&gossip->chance, ++choices) == 0) {
            absent = member;
            chosen = NULL;
        }
    }
    if (chosen)
        dial(gossip, chosen);
    else if (absent)
        call(gossip, absent);
}

uint64_t rejoin_deadline_ms(const struct gossip *gossip) {
    return gossip->next_rejoin_ms;
}

void gossip_set_bootstrap(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *addresses,
                          size_t count) {
    struct bootstrap next[BOOTSTRAP_MAX] = {0};
    size_t used = 0;
    bool changed = false;
    for (size_t i = 0; i < count && used < BOOTSTRAP_MAX; i++) {
        if (addresses[i].family != 4 && addresses[i].family != 6) continue;
        size_t known = 0;
        while (known < gossip->bootstrap_count && !address_equal(&gossip->bootstrap[known].address, &addresses[i]))
            known++;
        changed = changed || known == gossip->bootstrap_count;
        if (known < gossip->bootstrap_count)
            next[used++] = gossip->bootstrap[known];
        else
            next[used++].address = addresses[i];
    }
    memcpy(gossip->bootstrap, next, sizeof next);
    gossip->bootstrap_count = used;
    if (!changed) return;
    gossip->now_ms = now_ms > gossip->now_ms ? now_ms : gossip->now_ms;
    gossip->quick_until_ms = gossip->now_ms + QUICK_MS;
    gossip->next_rejoin_ms = gossip->now_ms;
}
