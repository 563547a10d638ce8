/* Failure detection: SWIM section 4 with Lifeguard's local health. Each interval one member of a shuffled round is
 * pinged, and also our successor in the order of ids, so that every member has one broker that asks it each interval,
 * however many there are. */
#include "gossip/verbs.h"

#include <string.h>

#define ASK_AGAIN_MS 50u
#define HELPERS 3u
#define AWARENESS_MAX 7u
#define SUSPECT_ASKED_BY 64u
#define PARTITION_MAX_MS 60000u /* how long many suspects at once put off their eviction */
#define YOUNG_MS 5000u          /* a member just heard of is asked again soon */
#define PATIENCE_MAX 10u        /* an answer may take so many times the limit */

static uint64_t patience(const struct gossip *gossip, uint64_t ms) {
    return ms * (gossip->awareness + 1);
}

/* How long an answer of this member may take on the network that we know it by: RFC 6298's estimate, and never less
 * than the limit, so that a quick network is judged as before. */
static uint64_t answer_ms(const struct gossip *gossip, const struct member *member) {
    uint64_t least = gossip->limits.probe_timeout_ms, most = PATIENCE_MAX * least;
    uint64_t ms = (uint64_t)member->probe.rtt_ms + 4u * member->probe.rtt_varies_ms;
    return ms < least ? least : ms < most ? ms : most;
}

uint64_t probe_extra_ms(const struct gossip *gossip, const struct member *member) {
    return answer_ms(gossip, member) - gossip->limits.probe_timeout_ms;
}

static void note_round_trip(struct probe *probe, uint64_t ms) {
    uint32_t rtt = ms < UINT16_MAX ? (uint32_t)ms : UINT16_MAX;
    if (probe->rtt_ms == 0) {
        probe->rtt_ms = (uint16_t)rtt;
        probe->rtt_varies_ms = (uint16_t)(rtt / 2);
        return;
    }
    uint32_t off = rtt > probe->rtt_ms ? rtt - probe->rtt_ms : probe->rtt_ms - rtt;
    probe->rtt_varies_ms = (uint16_t)((3u * probe->rtt_varies_ms + off) / 4);
    probe->rtt_ms = (uint16_t)((7u * probe->rtt_ms + rtt) / 8);
}

void probe_look_well(struct gossip *gossip, bool well) {
    if (well && gossip->awareness > 0) gossip->awareness--;
    if (!well && gossip->awareness < AWARENESS_MAX) gossip->awareness++;
}

static void write_ping(struct gossip *gossip, struct member *member, struct packet *packet) {
    struct message ping = {.kind = MESSAGE_PING, .number = member->probe.number | member->probe.again};
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

/* An unanswered number stays good, so that an answer slower than our patience still counts. It is even; with its last
 * bit set it says that it was sent before, so that the answer to the first tells how long it took (Karn's problem). */
static void draw_number(struct gossip *gossip, struct member *member) {
    member->probe.again = member->probe.number != 0;
    if (!member->probe.again) member->probe.first_ms = gossip->now_ms;
    while (member->probe.number == 0)
        member->probe.number = chance_next(&gossip->chance) & ~UINT64_C(1);
    member->probe.sent_ms = gossip->now_ms;
}

/* more, which may be NULL, goes in the same packet. */
static void ping_by(struct gossip *gossip, struct member *member, const struct gossip_address *to,
                    const struct message *more) {
    if (to->family == 0) return;
    draw_number(gossip, member);
    if (to->family != ADDRESS_LINK) carrier_asked(member);
    struct packet packet;
    packet_begin(&packet, member, to);
    packet.dial = member->known && address_equal(to, &member->address); /* signed by its owner */
    write_ping(gossip, member, &packet);
    if (more) packet_add(gossip, &packet, more);
    packet_end(gossip, &packet, false);
    gossip->counters.probes_sent++;
}

/* A suspect by both ways: one answer is enough. */
static void ping(struct gossip *gossip, struct member *member, const struct message *more) {
    struct gossip_address to = member_route(member), link = carrier_address(&member->id);
    ping_by(gossip, member, &to, more);
    if (member->way.link && member->state == MEMBER_SUSPECT && to.family != ADDRESS_LINK)
        ping_by(gossip, member, &link, NULL);
}

static void start(struct gossip *gossip, struct member *member) {
    member->probe.stage = 1;
    member->probe.helpers = member->probe.nacks = 0;
    member->probe.deadline_ms =
        gossip->now_ms + patience(gossip, answer_ms(gossip, member)) + carrier_patience_ms(gossip, member);
    members_changed(gossip, member);
}

void probe_by(struct gossip *gossip, struct member *member, const struct gossip_address *to) {
    ping_by(gossip, member, to, NULL);
    if (member->probe.deadline_ms == NEVER) start(gossip, member);
}

static void probe_with(struct gossip *gossip, struct member *member, const struct message *more) {
    if (member->self) return;
    ping(gossip, member, more);
    if (member->probe.deadline_ms == NEVER) start(gossip, member);
}

void probe_member(struct gossip *gossip, struct member *member) {
    probe_with(gossip, member, NULL);
}

void probe_add_to_reply(struct gossip *gossip, struct member *member) {
    bool outstanding = member->probe.deadline_ms != NEVER;
    /* Also when it has just answered: what keeps it from being visible may be there to stay. */
    if (member->probe.sent_ms > 0 && gossip->now_ms < member->probe.sent_ms + ASK_AGAIN_MS) return;
    draw_number(gossip, member);
    struct message ping_message = {.kind = MESSAGE_PING, .number = member->probe.number | member->probe.again};
    reply_add(gossip, &ping_message);
    gossip->counters.probes_sent++;
    if (!outstanding) start(gossip, member);
}

static void succeed(struct gossip *gossip, struct member *member, uint64_t epoch) {
    member->heard_ms = gossip->now_ms;
    member->fresh_epoch = epoch;
    member->probe.number = 0;
    member->probe.deadline_ms = NEVER;
    probe_look_well(gossip, true);
    evidence_consider(gossip, member);
    members_changed(gossip, member);
}

static void relay_answer(struct gossip *gossip, struct relay *relay, bool answered) {
    struct member *origin = members_find(gossip, &relay->origin);
    struct message indirect = {.kind = MESSAGE_INDIRECT, .number = relay->origin_number, .flag = answered};
    relay->used = false;
    gossip->relay_count--;
    if (origin) send_one(gossip, origin, &indirect);
}

void probe_on_pong(struct gossip *gossip, uint64_t number) {
    struct member *sender = gossip->sender;
    bool is_first = sender && number != 0 && number == sender->probe.number;
    if (sender && number == (sender->probe.number | 1)) number = sender->probe.number;
    if (sender && number == sender->probe.number) carrier_heard(gossip);
    if (!sender || number == 0 || !gossip->authentic) return;
    carrier_answered(gossip, sender, number);
    struct relay *relay = &gossip->relays[number % RELAYS_MAX];
    if (relay->used && relay->number == number && id_equal(&relay->target, &sender->id))
        relay_answer(gossip, relay, true);
    if (sender->probe.number != number) return;
    if (is_first && !gossip->over_link) note_round_trip(&sender->probe, gossip->now_ms - sender->probe.first_ms);
    succeed(gossip, sender, gossip->header->epoch);
    bool buried = sender->known && !member_is_visible(sender) && sender->down_epoch == sender->epoch &&
                  sender->down_incarnation >= sender->incarnation;
    if (buried) {
        struct message accusation = evidence_accusation_of(sender);
        reply_add(gossip, &accusation);
    }
}

static struct relay *free_relay(struct gossip *gossip) {
    if (gossip->relay_count == RELAYS_MAX) return NULL;
    size_t at = 0;
    while (gossip->relays[at].used)
        at++;
    return &gossip->relays[at];
}

/* Only we know it, and it says where we keep what it is about. */
static uint64_t numbered(struct gossip *gossip, size_t place, size_t places) {
    uint64_t number = 0;
    while (number < places)
        number = chance_next(&gossip->chance) / places * places + place;
    return number;
}

void probe_on_request(struct gossip *gossip, const struct message *message) {
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
                            .deadline_ms = gossip->now_ms + answer_ms(gossip, target),
                            .origin = origin->id,
                            .target = target->id};
    gossip->relay_count++;
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
    struct asked *asked = &gossip->asked[message->number % ASKED_MAX];
    if (asked->number != message->number) return;
    struct member *member = members_find(gossip, &asked->member);
    if (!member || member->probe.number != asked->probe_number) return;
    if (message->flag) {
        carrier_answered_helper(gossip, member);
        succeed(gossip, member, member->epoch);
    } else {
        member->probe.nacks++;
    }
}

static void ask_helpers(struct gossip *gossip, struct member *member) {
    struct member *helpers[HELPERS];
    size_t count = members_pick(gossip, helpers, HELPERS, member), place = gossip->asked_next++ % ASKED_MAX;
    struct asked *asked = &gossip->asked[place];
    *asked = (struct asked){numbered(gossip, place, ASKED_MAX), member->probe.number, member->id};
    for (size_t i = 0; i < count; i++) {
        struct message request = {.kind = MESSAGE_PING_REQ, .number = asked->number, .version.id = member->id};
        send_one(gossip, helpers[i], &request);
    }
    carrier_unanswered(gossip, member);
    member->probe.helpers = (uint8_t)count;
    member->probe.stage = 2;
    /* By a helper it is two ways. */
    member->probe.deadline_ms =
        gossip->now_ms + patience(gossip, (uint64_t)gossip->limits.probe_timeout_ms +
                                              gossip->limits.probe_timeout_ms / 2 + 2 * probe_extra_ms(gossip, member));
    members_changed(gossip, member);
    ping(gossip, member, NULL);
}

static void fail(struct gossip *gossip, struct member *member) {
    member->probe.deadline_ms = NEVER;
    members_changed(gossip, member);
    gossip->counters.probes_failed++;
    /* Not even the helpers spoke: perhaps it is us who are slow or cut off. */
    if (member->probe.helpers > 0 && member->probe.nacks == 0) probe_look_well(gossip, false);
    if (member_is_visible(member)) {
        carrier_want(gossip, member, CARRIER_NEED_MS);
        evidence_suspect(gossip, member, &gossip->self->id);
        gossip->next_probe_ms = gossip->now_ms; /* who is behind it in the ring has lost who asks it */
    } else if (member->known && member->state == MEMBER_UNVERIFIED && gossip->now_ms < member->made_ms + YOUNG_MS)
        probe_member(gossip, member);
}

/* Somebody is suspect. Is it alone, or is it us or a cable? That must be known before anybody is evicted. */
void probe_all(struct gossip *gossip) {
    if (members_visible_count(gossip) - 1 > gossip->limits.eager_members_max) return;
    struct member *member;
    for (size_t i = 0; (member = members_visible(gossip, i)); i++)
        if (member->state == MEMBER_ALIVE && member->probe.deadline_ms == NEVER) probe_member(gossip, member);
}

bool probe_next(struct gossip *gossip, const struct message *more) {
    struct member *turn = members_next_to_ask(gossip);
    if (!turn || turn->probe.deadline_ms != NEVER) return false;
    bool told = more && carrier_reaches(gossip, turn);
    probe_with(gossip, turn, told ? more : NULL);
    return told;
}

static void probe_in_turn(struct gossip *gossip) {
    if (!members_are_many(gossip)) probe_next(gossip, NULL); /* else with a digest (repair.c) */
    struct member *next = members_successor(gossip);
    if (next && next->probe.deadline_ms == NEVER) probe_member(gossip, next);
    watch_turn(gossip);
    gossip->next_probe_ms = gossip->now_ms + patience(gossip, gossip->limits.probe_interval_ms);
}

/* A suspect is asked again and again: it lives if one answer comes through, and each question tells it what it is
 * suspected of. By so many at a time, however many there are: the answers to a thousand would be what it fails at. */
static void probe_suspects(struct gossip *gossip) {
    struct member *suspect;
    gossip->next_hard_probe_ms = NEVER;
    for (size_t i = 0; (suspect = members_suspect(gossip, i)); i++) {
        if (chance_below(&gossip->chance, members_visible_count(gossip)) < SUSPECT_ASKED_BY)
            probe_member(gossip, suspect);
        gossip->next_hard_probe_ms = gossip->now_ms + gossip->limits.probe_interval_ms / 3 + 1;
    }
}

bool probe_in_partition(struct gossip *gossip) {
    uint32_t suspects = members_suspect_count(gossip);
    if (suspects < 3 || suspects * 4 <= members_visible_count(gossip)) {
        gossip->partition_since_ms = NEVER;
        return false;
    }
    if (gossip->partition_since_ms == NEVER) gossip->partition_since_ms = gossip->now_ms;
    return gossip->now_ms < gossip->partition_since_ms + PARTITION_MAX_MS;
}

void probe_tick_member(struct gossip *gossip, struct member *member) {
    if (gossip->now_ms < member->probe.deadline_ms) return;
    if (member->probe.stage == 1)
        ask_helpers(gossip, member);
    else
        fail(gossip, member);
}

void probe_tick(struct gossip *gossip) {
    for (size_t i = 0; i < RELAYS_MAX && gossip->relay_count > 0; i++)
        if (gossip->relays[i].used && gossip->now_ms >= gossip->relays[i].deadline_ms)
            relay_answer(gossip, &gossip->relays[i], false);
    if (gossip->now_ms >= gossip->next_hard_probe_ms) probe_suspects(gossip);
    if (gossip->now_ms >= gossip->next_probe_ms) probe_in_turn(gossip);
    watch_tick(gossip);
}

uint64_t probe_deadline_ms(const struct gossip *gossip) {
    uint64_t deadline = earlier(earlier(gossip->next_probe_ms, gossip->next_hard_probe_ms), gossip->watch.due_ms);
    for (size_t i = 0, left = gossip->relay_count; left > 0; i++) {
        if (!gossip->relays[i].used) continue;
        deadline = earlier(deadline, gossip->relays[i].deadline_ms);
        left--;
    }
    return deadline;
}

void probe_delay(struct gossip *gossip, uint64_t ms) {
    for (size_t i = 0; i < gossip->members.awake_count; i++) {
        struct member *member = members_awake(gossip, i);
        if (member->probe.deadline_ms == NEVER) continue;
        member->probe.deadline_ms += ms;
        timers_set(&gossip->timers, &member->timer, member_deadline_ms(gossip, member));
    }
}

void probe_forget(struct gossip *gossip) {
    for (size_t i = 0; i < gossip->members.awake_count; i++) {
        struct member *member = members_awake(gossip, i);
        if (member->probe.deadline_ms == NEVER) continue;
        member->probe.deadline_ms = NEVER;
        timers_set(&gossip->timers, &member->timer, member_deadline_ms(gossip, member));
    }
}
