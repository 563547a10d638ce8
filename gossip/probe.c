/* Failure detection: SWIM section 4 with Lifeguard's local health. Each interval one member of a shuffled round is
 * pinged, and also our successor in the order of ids, so that every member has one broker that asks it each interval,
 * however many there are. */
#include "gossip/state.h"

#include <stdlib.h>
#include <string.h>

#define ASK_AGAIN_MS 50u
#define HELPERS 3u
#define AWARENESS_MAX 7u
#define PARTITION_MAX_MS 60000u /* how long many suspects at once put off their eviction */
#define YOUNG_MS 5000u          /* a member just heard of is asked again soon */

static uint64_t patience(const struct gossip *gossip, uint32_t ms) {
    return (uint64_t)ms * (gossip->awareness + 1);
}

static void write_ping(struct gossip *gossip, struct member *member, struct packet *packet) {
    struct message ping = {.kind = MESSAGE_PING, .number = member->probe.number};
    packet_add(gossip, packet, &ping);
    bool accused = member->accused_epoch == member->epoch && member->accused_incarnation >= member->incarnation &&
                   member->accused_epoch > 0;
    if (accused) {
        struct message accusation = evidence_accusation_of(member);
        packet_add(gossip, packet, &accusation);
    }
    if (member->known_incarnation < gossip->self->incarnation) {
        struct message head = evidence_head_of(gossip->self);
        packet_add(gossip, packet, &head);
    }
}

static void draw_number(struct gossip *gossip, struct member *member) {
    /* An unanswered number stays good, so that an answer slower than our patience still counts. */
    while (member->probe.number == 0)
        member->probe.number = chance_next(&gossip->chance);
    member->probe.sent_ms = gossip->now_ms;
}

static void ping_by(struct gossip *gossip, struct member *member, const struct gossip_address *to) {
    if (to->family == 0) return;
    draw_number(gossip, member);
    if (to->family != ADDRESS_LINK) carrier_asked(member);
    struct packet packet;
    packet_begin(&packet, member, to);
    packet.dial = member->known && address_equal(to, &member->address); /* signed by its owner */
    write_ping(gossip, member, &packet);
    packet_end(gossip, &packet, false);
    gossip->counters.probes_sent++;
}

/* A suspect by both ways: one answer is enough. */
static void ping(struct gossip *gossip, struct member *member) {
    struct gossip_address to = member_route(member), link = carrier_address(&member->id);
    ping_by(gossip, member, &to);
    if (member->way.link && member->state == MEMBER_SUSPECT && to.family != ADDRESS_LINK)
        ping_by(gossip, member, &link);
}

static void start(struct gossip *gossip, struct member *member) {
    member->probe.stage = 1;
    member->probe.helpers = member->probe.nacks = 0;
    member->probe.deadline_ms = gossip->now_ms + patience(gossip, gossip->limits.probe_timeout_ms);
    if (carrier_reaches(gossip, member)) return;
    carrier_want(gossip, member, CARRIER_NEED_MS);
    member->probe.deadline_ms += CARRIER_PATIENCE_MS;
}

void probe_by(struct gossip *gossip, struct member *member, const struct gossip_address *to) {
    ping_by(gossip, member, to);
    if (member->probe.deadline_ms == NEVER) start(gossip, member);
}

void probe_member(struct gossip *gossip, struct member *member) {
    if (member->self) return;
    ping(gossip, member);
    if (member->probe.deadline_ms == NEVER) start(gossip, member);
}

void probe_add_to_reply(struct gossip *gossip, struct member *member) {
    bool outstanding = member->probe.deadline_ms != NEVER;
    /* Also when it has just answered: what keeps it from being visible may be there to stay. */
    if (member->probe.sent_ms > 0 && gossip->now_ms < member->probe.sent_ms + ASK_AGAIN_MS) return;
    draw_number(gossip, member);
    struct message ping_message = {.kind = MESSAGE_PING, .number = member->probe.number};
    reply_add(gossip, &ping_message);
    gossip->counters.probes_sent++;
    if (!outstanding) start(gossip, member);
}

static void succeed(struct gossip *gossip, struct member *member, uint64_t epoch) {
    member->heard_ms = gossip->now_ms;
    member->fresh_epoch = epoch;
    member->probe.number = 0;
    member->probe.deadline_ms = NEVER;
    if (gossip->awareness > 0) gossip->awareness--;
    evidence_consider(gossip, member);
}

static void relay_answer(struct gossip *gossip, struct relay *relay, bool answered) {
    struct member *origin = members_find(gossip, &relay->origin);
    struct message indirect = {.kind = MESSAGE_INDIRECT, .number = relay->origin_number, .flag = answered};
    relay->used = false;
    if (origin) send_one(gossip, origin, &indirect);
}

void probe_on_pong(struct gossip *gossip, uint64_t number) {
    struct member *sender = gossip->sender;
    if (!sender || number == 0 || !gossip->authentic) return;
    carrier_answered(gossip, sender, number);
    for (size_t i = 0; i < RELAYS_MAX; i++)
        if (gossip->relays[i].used && gossip->relays[i].number == number &&
            id_equal(&gossip->relays[i].target, &sender->id))
            relay_answer(gossip, &gossip->relays[i], true);
    if (sender->probe.number != number) return;
    succeed(gossip, sender, gossip->header->epoch);
    bool buried = sender->known && !member_is_visible(sender) && sender->down_epoch == sender->epoch &&
                  sender->down_incarnation >= sender->incarnation;
    if (buried) {
        struct message accusation = evidence_accusation_of(sender);
        reply_add(gossip, &accusation);
    }
}

void probe_on_request(struct gossip *gossip, const struct message *message) {
    struct member *origin = gossip->sender, *target = members_find(gossip, &message->version.id);
    if (!gossip->authentic) return;
    struct relay *relay = NULL;
    for (size_t i = 0; i < RELAYS_MAX && !relay; i++)
        if (!gossip->relays[i].used) relay = &gossip->relays[i];
    struct gossip_address to = {0};
    if (target && !target->self && target->known) to = member_route(target);
    if (!relay || to.family == 0) {
        struct message nack = {.kind = MESSAGE_INDIRECT, .number = message->number};
        reply_add(gossip, &nack);
        return;
    }
    *relay = (struct relay){.used = true,
                            .number = chance_next(&gossip->chance),
                            .origin_number = message->number,
                            .deadline_ms = gossip->now_ms + gossip->limits.probe_timeout_ms,
                            .origin = origin->id,
                            .target = target->id};
    struct packet packet;
    struct message ping_message = {.kind = MESSAGE_PING, .number = relay->number};
    packet_begin(&packet, target, &to);
    packet.dial = address_equal(&to, &target->address);
    packet_add(gossip, &packet, &ping_message);
    packet_end(gossip, &packet, false);
    gossip->counters.indirect_probes_sent++;
}

void probe_on_indirect(struct gossip *gossip, const struct message *message) {
    if (message->number == 0 || !gossip->authentic) return;
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        if (member->probe.number != message->number) continue;
        if (message->flag) {
            carrier_answered_helper(gossip, member);
            succeed(gossip, member, member->epoch);
        } else {
            member->probe.nacks++;
        }
        return;
    }
}

static void ask_helpers(struct gossip *gossip, struct member *member) {
    struct member *helpers[HELPERS];
    size_t count = members_pick(gossip, helpers, HELPERS, member);
    for (size_t i = 0; i < count; i++) {
        struct message request = {.kind = MESSAGE_PING_REQ, .number = member->probe.number, .version.id = member->id};
        send_one(gossip, helpers[i], &request);
    }
    carrier_unanswered(gossip, member);
    member->probe.helpers = (uint8_t)count;
    member->probe.stage = 2;
    member->probe.deadline_ms =
        gossip->now_ms + patience(gossip, gossip->limits.probe_timeout_ms + gossip->limits.probe_timeout_ms / 2);
    ping(gossip, member);
}

static void fail(struct gossip *gossip, struct member *member) {
    member->probe.deadline_ms = NEVER;
    gossip->counters.probes_failed++;
    /* Not even the helpers spoke: perhaps it is us who are slow or cut off. */
    if (member->probe.helpers > 0 && member->probe.nacks == 0 && gossip->awareness < AWARENESS_MAX) gossip->awareness++;
    if (member_is_visible(member)) {
        carrier_want(gossip, member, CARRIER_NEED_MS);
        evidence_suspect(gossip, member, &gossip->self->id);
    } else if (member->known && member->state == MEMBER_UNVERIFIED && gossip->now_ms < member->made_ms + YOUNG_MS)
        probe_member(gossip, member);
}

/* Somebody is suspect. Is it alone, or is it us or a cable? That must be known before anybody is evicted. */
void probe_all(struct gossip *gossip) {
    if (members_visible_count(gossip) - 1 > gossip->limits.eager_members_max) return;
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        if (member->state == MEMBER_ALIVE && member->known && member->probe.deadline_ms == NEVER)
            probe_member(gossip, member);
    }
}

static struct member *successor(const struct gossip *gossip) {
    struct member *first = NULL;
    bool passed = false;
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        passed = passed || member->self;
        if (!member_is_visible(member)) continue;
        if (passed) return member;
        first = first ? first : member;
    }
    return first;
}

static void refill_round(struct gossip *gossip) {
    gossip->round_count = 0;
    if (gossip->round_room < gossip->members.count) {
        struct member_id *round = realloc(gossip->round, gossip->members.count * sizeof *round);
        if (!round) return;
        gossip->round = round;
        gossip->round_room = gossip->members.count;
    }
    for (size_t i = 0; i < gossip->members.count; i++) {
        if (!member_is_visible(gossip->members.items[i])) continue;
        uint32_t slot = chance_below(&gossip->chance, (uint32_t)gossip->round_count + 1);
        gossip->round[gossip->round_count++] = gossip->round[slot];
        gossip->round[slot] = gossip->members.items[i]->id;
    }
}

static struct member *next_in_round(struct gossip *gossip) {
    if (gossip->round_count == 0) refill_round(gossip);
    while (gossip->round_count > 0) {
        struct member *member = members_find(gossip, &gossip->round[--gossip->round_count]);
        if (member && member_is_visible(member)) return member;
    }
    return NULL;
}

static void probe_in_turn(struct gossip *gossip) {
    struct member *turn = next_in_round(gossip), *next = successor(gossip);
    if (turn && turn->probe.deadline_ms == NEVER) probe_member(gossip, turn);
    if (next && next != turn && next->probe.deadline_ms == NEVER) probe_member(gossip, next);
    gossip->next_probe_ms = gossip->now_ms + patience(gossip, gossip->limits.probe_interval_ms);
}

/* A suspect is asked again and again: it lives if one answer comes through, and each question tells it what it is
 * suspected of. */
static void probe_suspects(struct gossip *gossip) {
    gossip->next_hard_probe_ms = NEVER;
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        if (member->state != MEMBER_SUSPECT) continue;
        probe_member(gossip, member);
        gossip->next_hard_probe_ms = gossip->now_ms + gossip->limits.probe_interval_ms / 3 + 1;
    }
}

bool probe_in_partition(struct gossip *gossip) {
    uint32_t suspects = 0;
    for (size_t i = 0; i < gossip->members.count; i++)
        suspects += gossip->members.items[i]->state == MEMBER_SUSPECT;
    if (suspects < 3 || suspects * 4 <= members_visible_count(gossip)) {
        gossip->partition_since_ms = NEVER;
        return false;
    }
    if (gossip->partition_since_ms == NEVER) gossip->partition_since_ms = gossip->now_ms;
    return gossip->now_ms < gossip->partition_since_ms + PARTITION_MAX_MS;
}

void probe_tick(struct gossip *gossip) {
    for (size_t i = 0; i < gossip->members.count; i++) {
        struct member *member = gossip->members.items[i];
        if (gossip->now_ms < member->probe.deadline_ms) continue;
        if (member->probe.stage == 1)
            ask_helpers(gossip, member);
        else
            fail(gossip, member);
    }
    for (size_t i = 0; i < RELAYS_MAX; i++)
        if (gossip->relays[i].used && gossip->now_ms >= gossip->relays[i].deadline_ms)
            relay_answer(gossip, &gossip->relays[i], false);
    if (gossip->now_ms >= gossip->next_hard_probe_ms) probe_suspects(gossip);
    if (gossip->now_ms >= gossip->next_probe_ms) probe_in_turn(gossip);
}

uint64_t probe_deadline_ms(const struct gossip *gossip) {
    uint64_t deadline = earlier(gossip->next_probe_ms, gossip->next_hard_probe_ms);
    for (size_t i = 0; i < gossip->members.count; i++)
        deadline = earlier(deadline, gossip->members.items[i]->probe.deadline_ms);
    for (size_t i = 0; i < RELAYS_MAX; i++)
        if (gossip->relays[i].used) deadline = earlier(deadline, gossip->relays[i].deadline_ms);
    return deadline;
}

void probe_forget(struct gossip *gossip) {
    for (size_t i = 0; i < gossip->members.count; i++)
        gossip->members.items[i]->probe.deadline_ms = NEVER;
}
