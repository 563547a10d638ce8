/* Failure detection: SWIM section 4 with Lifeguard's local health. Each interval one member of a shuffled round is
 * pinged, and also our successor in the order of ids, so that every member has one broker that asks it each interval,
 * however many there are. Who does not answer is asked again until silence says enough (doubt.h). */
#include "gossip/verbs.h"

#include <string.h>

#define ASK_AGAIN_MS 50u
#define AWARENESS_MAX 7u
#define SUSPECT_ASKED_BY 64u    /* about so many ask a suspect from the beginning, all others before they give it up */
#define PARTITION_MAX_MS 60000u /* how long many suspects at once put off their eviction */
#define YOUNG_MS 5000u          /* a member just heard of is asked again soon */
#define PATIENCE_MAX 10u        /* an answer may take so many times the limit */
#define LOSS_OF_ALL 5u          /* slowness of the mean of all members' lost pings, */
#define LOSS_OF_ONE 4u          /* and of one member's */
#define LOST_MAX 7u             /* tries of one probe that count as lost, */
#define ABSENCE 4u              /* if they are no older than so many intervals */
#define LOSS_SLOWS_MAX 57344u   /* seven eighths: probes are never rarer than by eight times for loss */
#define HELP_IDLE_MS 20000u     /* helpers are asked so seldom for one of whom much is said and nothing is heard */

static uint64_t patience(const struct gossip *gossip, uint64_t ms) {
    return ms * (gossip->awareness + 1);
}

/* ---- what is known of the way to a member ---- */

/* How long an answer of this member may take on the network that we know it by: RFC 6298's estimate, and never less
 * than the limit, so that a quick network is judged as before. */
uint64_t probe_answer_ms(const struct gossip *gossip, const struct member *member) {
    uint64_t least = gossip->limits.probe_timeout_ms, most = PATIENCE_MAX * least;
    uint64_t ms = (uint64_t)member->probe.rtt_ms + 4u * member->probe.rtt_varies_ms;
    return ms < least ? least : ms < most ? ms : most;
}

uint64_t probe_extra_ms(const struct gossip *gossip, const struct member *member) {
    return probe_answer_ms(gossip, member) - gossip->limits.probe_timeout_ms;
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

static void note_try(struct gossip *gossip, struct probe *probe, bool lost) {
    probe->loss = doubt_note_loss(probe->loss, lost, LOSS_OF_ONE);
    gossip->loss = doubt_note_loss(gossip->loss, lost, LOSS_OF_ALL);
}

/* An answer shows how many of its tries were lost. Not the first one of a life, and none after long silence: that was
 * no loss, but an absence. */
static void note_tries(struct gossip *gossip, struct member *member, bool first_answered) {
    struct probe *probe = &member->probe;
    unsigned lost = first_answered ? 0 : probe->tries < LOST_MAX ? probe->tries - 1u : LOST_MAX;
    if (member->fresh_epoch != gossip->header->epoch ||
        gossip->now_ms > probe->first_ms + ABSENCE * (uint64_t)gossip->limits.probe_interval_ms)
        return;
    while (lost-- > 0)
        note_try(gossip, probe, true);
    note_try(gossip, probe, false);
}

void probe_note_refutation(struct member *member) {
    for (unsigned i = 0; i < 2; i++)
        member->probe.loss = doubt_note_loss(member->probe.loss, true, LOSS_OF_ONE);
}

static unsigned ping_doubt(const struct gossip *gossip, const struct member *member) {
    uint16_t loss = member->probe.loss, all = member->state == MEMBER_SUSPECT ? silence_loss(gossip) : gossip->loss;
    return doubt_of_ping(loss > all ? loss : all);
}

void probe_look_well(struct gossip *gossip, bool well) {
    if (well && gossip->awareness > 0) gossip->awareness--;
    if (!well && gossip->awareness < AWARENESS_MAX) gossip->awareness++;
}

/* ---- pings ---- */

/* Nothing that it answers counts before it has proved where it is: asked with each ping, one that passes is enough. */
static bool must_prove(const struct member *member, const struct packet *packet) {
    static const uint8_t none[sizeof member->echo];
    return member->known && !member->path_proven && packet->to.family != ADDRESS_LINK &&
           memcmp(member->echo, none, sizeof none) != 0;
}

static void write_ping(struct gossip *gossip, struct member *member, struct packet *packet) {
    struct message ping = {.kind = MESSAGE_PING, .number = member->probe.number | (member->probe.tries > 1)};
    packet_add(gossip, packet, &ping);
    if (must_prove(member, packet)) {
        struct message prove = {.kind = MESSAGE_PROVE};
        packet_add(gossip, packet, &prove);
    }
    if (accusation_stands(member)) {
        struct message accusation = accusation_of(member);
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
    struct probe *probe = &member->probe;
    if (probe->number == 0) {
        probe->tries = 0;
        probe->first_ms = gossip->now_ms;
    }
    if (probe->tries < UINT8_MAX) probe->tries++;
    while (probe->number == 0)
        probe->number = chance_next(&gossip->chance) & ~UINT64_C(1);
    probe->sent_ms = gossip->now_ms;
}

/* more, which may be NULL, goes in the same packet. */
static void ping_by(struct gossip *gossip, struct member *member, const struct gossip_address *to,
                    const struct message *more) {
    draw_number(gossip, member);
    if (to->family == 0) return; /* its helpers may know a way */
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

bool probe_may(struct gossip *gossip, uint32_t datagrams) {
    return effort_take(&gossip->effort, gossip->now_ms, gossip->limits.probe_interval_ms, datagrams);
}

/* ---- a probe ---- */

void probe_stop(struct member *member) {
    member->probe.deadline_ms = member->probe.enough_ms = member->probe.sure_ms = NEVER;
}

static void start(struct gossip *gossip, struct member *member) {
    struct probe *probe = &member->probe;
    probe->doubt = (uint16_t)ping_doubt(gossip, member);
    probe->helpers = probe->nacks = 0;
    probe->helped = probe->judged = probe->greeted = false;
    probe->deadline_ms =
        gossip->now_ms + patience(gossip, probe_answer_ms(gossip, member)) + carrier_patience_ms(gossip, member);
    members_timed(gossip, member);
}

void probe_by(struct gossip *gossip, struct member *member, const struct gossip_address *to) {
    ping_by(gossip, member, to, NULL);
    if (member->probe.deadline_ms == NEVER) start(gossip, member);
}

/* What its address may be sent is used up: that it does not answer says nothing. */
static bool may_dial(struct gossip *gossip, const struct member *member) {
    const struct gossip_address to = member_route(member);
    uint8_t cookie[8];
    if (member->path_proven || to.family == 0 || to.family == ADDRESS_LINK) return true;
    cookie_for(gossip, &to, cookie);
    return strangers_dial(gossip, cookie, false);
}

static void probe_with(struct gossip *gossip, struct member *member, const struct message *more) {
    if (member->self || !may_dial(gossip, member)) return;
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
    struct message ping_message = {.kind = MESSAGE_PING, .number = member->probe.number | (member->probe.tries > 1)};
    reply_add(gossip, &ping_message);
    gossip->counters.probes_sent++;
    if (!outstanding) start(gossip, member);
}

/* From now on what it does not answer counts for its eviction. */
static void ask_suspect_from(struct gossip *gossip, struct member *member, uint64_t from_ms) {
    probe_stop(member);
    member->probe.doubt = 0;
    member->probe.helped = member->probe.judged = false;
    member->probe.deadline_ms = from_ms;
    members_timed(gossip, member);
}

/* Of many not all at once: the answers to a thousand would be what it fails at. */
void probe_suspect(struct gossip *gossip, struct member *member) {
    bool early = chance_below(&gossip->chance, members_visible_count(gossip)) < SUSPECT_ASKED_BY;
    ask_suspect_from(gossip, member, gossip->now_ms + (early ? 0 : gossip->limits.suspicion_min_ms / 4));
}

void probe_suspect_anew(struct gossip *gossip, struct member *member) {
    ask_suspect_from(gossip, member, gossip->now_ms);
}

/* A suspect that answers is told what it is suspected of until it refutes. */
void probe_answered(struct gossip *gossip, struct member *member, uint64_t epoch) {
    member->heard_ms = gossip->now_ms;
    member->fresh_epoch = epoch;
    member->follow_ms = member->follow_gap_ms = 0;
    member->probe.number = 0;
    probe_stop(member);
    probe_look_well(gossip, true);
    evidence_consider(gossip, member);
    if (member->state == MEMBER_SUSPECT)
        ask_suspect_from(gossip, member, gossip->now_ms + gossip->limits.probe_interval_ms / 3 + 1);
    members_timed(gossip, member);
}

/* For whom it is, if a helper asks: who waits there must not have to believe the helper. */
static bool sign_for(struct gossip *gossip, const struct message *ping, uint8_t signature[GOSSIP_SIGNATURE_SIZE]) {
    struct member_id asks;
    if (ping->size != MESSAGE_FOR_SIZE || !proof_may_check(gossip)) return false; /* it costs less than a check */
    memcpy(asks.bytes, ping->bytes, sizeof asks.bytes);
    return witness_answer(gossip, &asks, wire_load_u64(ping->bytes + sizeof asks.bytes), signature);
}

void probe_on_ping(struct gossip *gossip, const struct message *message) {
    uint8_t signature[GOSSIP_SIGNATURE_SIZE];
    struct message pong = {.kind = MESSAGE_PONG, .number = message->number, .bytes = signature};
    bool brought = message->size == MESSAGE_FOR_SIZE;
    if (!receive_may(gossip, brought ? ALLOW_BROUGHT : ALLOW_PINGS, 1)) { /* our own would wait behind the answers */
        if (!brought) conduct_note_sender(gossip, MISDEED_FLOODS);        /* it is another who makes it ask so much */
        return;
    }
    if (sign_for(gossip, message, signature)) pong.size = sizeof signature;
    reply_add(gossip, &pong);
    watch_heard(gossip);
    if (gossip->sender && !gossip->over_link && !address_equal(&gossip->sender->address, &gossip->source)) {
        struct message seen = {.kind = MESSAGE_SEEN_AT, .address = gossip->source};
        reply_add(gossip, &seen);
    }
}

static void on_answer(struct gossip *gossip, uint64_t number, bool is_first) {
    struct member *sender = gossip->sender;
    carrier_answered(gossip, sender, number);
    if (sender->probe.number != number) return;
    if (is_first && !gossip->over_link) note_round_trip(&sender->probe, gossip->now_ms - sender->probe.first_ms);
    note_tries(gossip, sender, is_first);
    silence_note_answered(gossip, sender);
    probe_answered(gossip, sender, gossip->header->epoch);
    two_states_answered(gossip, sender);
    bool buried = sender->known && !member_is_visible(sender) && sender->down_epoch == sender->epoch &&
                  sender->down_incarnation >= sender->incarnation;
    if (buried) {
        struct message accusation = accusation_of(sender);
        reply_add(gossip, &accusation);
    }
}

/* Whoever is there has seen our question, and has yet to prove who it is. Until now no answer could have counted: the
 * silence begins anew, once. */
static void on_unproven(struct gossip *gossip, struct member *member, const struct message *pong) {
    struct probe *probe = &member->probe;
    gossip->unproven_pong = pong->number;
    if (probe->greeted || (pong->number | 1) != (probe->number | 1) || member->state == MEMBER_SUSPECT) return;
    probe_stop(member);
    start(gossip, member);
    probe->greeted = true;
}

void probe_on_pong(struct gossip *gossip, const struct message *message) {
    struct member *sender = gossip->sender;
    uint64_t number = message->number;
    bool is_first = sender && number != 0 && number == sender->probe.number;
    if (sender && number == (sender->probe.number | 1)) number = sender->probe.number;
    if (sender && number == sender->probe.number) carrier_heard(gossip);
    if (!sender || number == 0) return;
    helpers_on_pong(gossip, message);
    if (gossip->authentic)
        on_answer(gossip, number, is_first);
    else
        on_unproven(gossip, sender, message);
}

void probe_proved(struct gossip *gossip) {
    const uint64_t pong = gossip->unproven_pong, number = gossip->sender->probe.number;
    /* Who is not visible yet has more to be asked than whether it is there. */
    if (pong != 0 && (pong | 1) == (number | 1) && member_is_visible(gossip->sender))
        on_answer(gossip, number, pong == number);
}

/* ---- silence ---- */

/* By a helper it is two ways. */
static uint64_t answers_ms(const struct gossip *gossip, const struct member *member) {
    uint64_t limit = gossip->limits.probe_timeout_ms, extra = probe_extra_ms(gossip, member);
    return patience(gossip, member->probe.helped ? limit + limit / 2 + 2 * extra : limit + extra);
}

static void ask_helpers(struct gossip *gossip, struct member *member) {
    struct probe *probe = &member->probe;
    unsigned count = helpers_ask(gossip, member);
    probe->helpers = (uint8_t)count;
    probe->helped = true;
    probe->helped_ms = gossip->now_ms;
    probe->doubt = (uint16_t)(probe->doubt + count * doubt_of_helper(silence_loss(gossip)));
    carrier_unanswered(gossip, member);
}

/* Two behind routers of their own meet only when a third one tells both: so not never, and not by chance, which now and
 * then lets it wait for minutes. */
static bool helps_in_vain(const struct gossip *gossip, const struct member *member) {
    const uint64_t helped_ms = member->probe.helped_ms;
    return evidence_is_idle_talk(member) && helped_ms > 0 && gossip->now_ms < helped_ms + HELP_IDLE_MS;
}

static bool wants_helpers(const struct gossip *gossip, const struct member *member) {
    const struct probe *probe = &member->probe;
    if (helps_in_vain(gossip, member)) return false;
    if (probe->helped && member->state != MEMBER_SUSPECT) return false;
    if (probe->helped && gossip->now_ms < probe->helped_ms + gossip->limits.probe_interval_ms) return false;
    return !member_is_visible(member) || probe->doubt >= DOUBT_HELPERS;
}

/* Who is away is asked twice: it is called again. */
static unsigned doubt_enough(const struct member *member) {
    return member_is_visible(member) || member->state == MEMBER_UNVERIFIED ? DOUBT_SUSPECT : 1;
}

/* A few times while an answer would take, but not before it could be here. Of a suspect so that after half of the time
 * until it may be evicted silence says enough for our own word, which others wait for, and in the end for that. */
static uint64_t gap_ms(const struct gossip *gossip, const struct member *member) {
    uint64_t answer = probe_answer_ms(gossip, member), gap = answer / 4;
    if (member->probe.rtt_ms > gap && member->probe.rtt_ms < answer) gap = member->probe.rtt_ms;
    if (member->state != MEMBER_SUSPECT) return patience(gossip, gap) + 1;
    uint64_t slow = gossip->limits.probe_interval_ms / 3 + 1, doubt = member->probe.doubt;
    if (doubt >= DOUBT_DOWN) return slow;
    bool early = doubt < DOUBT_SUSPECT;
    uint64_t due = member_trouble(member)->suspicion.started_ms + gossip->limits.suspicion_min_ms / (early ? 2 : 1);
    uint64_t last = gossip->now_ms + answers_ms(gossip, member), left = due > last ? due - last : 0;
    uint64_t even = left * ping_doubt(gossip, member) / ((early ? DOUBT_SUSPECT : DOUBT_DOWN) - doubt);
    return even < gap ? gap : even < slow ? even : slow;
}

/* So that all suspects together ask no more than may be. */
static uint64_t later_ms(const struct gossip *gossip) {
    uint64_t interval = gossip->limits.probe_interval_ms;
    return gossip->now_ms + interval + members_suspect_count(gossip) * interval / EFFORT_PER_INTERVAL;
}

static void ask_again(struct gossip *gossip, struct member *member) {
    struct probe *probe = &member->probe;
    bool helped = wants_helpers(gossip, member);
    /* Pings that helpers alone could answer must not take what they need. */
    bool together = helped && member->state == MEMBER_SUSPECT;
    if (!may_dial(gossip, member) || !probe_may(gossip, together ? 4 : 1)) {
        probe->deadline_ms = later_ms(gossip);
        members_timed(gossip, member);
        return;
    }
    helped = helped && (together || probe_may(gossip, 3));
    silence_note_unanswered(gossip, member);
    ping(gossip, member, NULL);
    probe->doubt = (uint16_t)(probe->doubt + ping_doubt(gossip, member));
    if (helped) ask_helpers(gossip, member);
    if (probe->doubt > UINT16_MAX / 2) probe->doubt = UINT16_MAX / 2;
    if (!probe->judged && probe->enough_ms == NEVER && probe->doubt >= doubt_enough(member))
        probe->enough_ms = gossip->now_ms + answers_ms(gossip, member);
    if (probe->sure_ms == NEVER && probe->doubt >= DOUBT_DOWN)
        probe->sure_ms = gossip->now_ms + answers_ms(gossip, member);
    bool waits = probe->enough_ms != NEVER && member->state != MEMBER_SUSPECT;
    probe->deadline_ms = waits ? probe->enough_ms : gossip->now_ms + gap_ms(gossip, member);
    members_timed(gossip, member);
}

static void fail(struct gossip *gossip, struct member *member) {
    member->probe.enough_ms = NEVER;
    member->probe.judged = true;
    if (member->state != MEMBER_SUSPECT) member->probe.deadline_ms = NEVER;
    members_timed(gossip, member);
    gossip->counters.probes_failed++;
    /* Not even the helpers spoke: perhaps it is us who are slow or cut off. */
    if (member->probe.helpers > 0 && member->probe.nacks == 0) probe_look_well(gossip, false);
    if (member_is_visible(member) && !accusation_may(gossip)) {
        probe_member(gossip, member);
    } else if (member_is_visible(member)) {
        carrier_want(gossip, member, CARRIER_NEED_MS);
        accusation_suspect(gossip, member, NULL);
        gossip->next_probe_ms = gossip->now_ms; /* who is behind it in the ring has lost who asks it */
    } else if (member->known && member->state == MEMBER_UNVERIFIED && gossip->now_ms < member->made_ms + YOUNG_MS)
        probe_member(gossip, member);
}

void probe_tick_member(struct gossip *gossip, struct member *member) {
    struct probe *probe = &member->probe;
    if (probe->deadline_ms == NEVER) return;
    if (gossip->now_ms >= probe->enough_ms)
        fail(gossip, member);
    else if (gossip->now_ms >= probe->deadline_ms)
        ask_again(gossip, member);
}

uint64_t probe_member_deadline_ms(const struct member *member) {
    return earlier(member->probe.deadline_ms, member->probe.enough_ms);
}

/* Somebody is suspect. Is it alone, or is it us or a cable? That must be known before anybody is evicted. */
void probe_all(struct gossip *gossip) {
    if (members_are_many(gossip)) return;
    struct member *member;
    for (size_t i = 0; (member = members_visible(gossip, i)); i++)
        if (member->state == MEMBER_ALIVE && member->probe.deadline_ms == NEVER && probe_may(gossip, 1))
            probe_member(gossip, member);
}

bool probe_next(struct gossip *gossip, const struct message *more) {
    struct member *turn = members_next_to_ask(gossip);
    if (!turn || turn->probe.deadline_ms != NEVER) return false;
    bool told = more && carrier_reaches(gossip, turn);
    probe_with(gossip, turn, told ? more : NULL);
    if (told) digest_asked(gossip, turn);
    return told;
}

uint64_t probe_interval_ms(const struct gossip *gossip) {
    uint32_t passes = 65536u - (gossip->loss < LOSS_SLOWS_MAX ? gossip->loss : LOSS_SLOWS_MAX);
    return (uint64_t)gossip->limits.probe_interval_ms * 65536 / passes;
}

static void probe_in_turn(struct gossip *gossip) {
    probe_may(gossip, 2);                                    /* they go in any case */
    if (!members_are_many(gossip)) probe_next(gossip, NULL); /* else with a digest (repair.c) */
    struct member *next = members_successor(gossip);
    if (next && next->probe.deadline_ms == NEVER) probe_member(gossip, next);
    watch_turn(gossip);
    gossip->next_probe_ms = gossip->now_ms + patience(gossip, probe_interval_ms(gossip));
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

void probe_tick(struct gossip *gossip) {
    helpers_tick(gossip);
    if (gossip->now_ms >= gossip->next_probe_ms) probe_in_turn(gossip);
    watch_tick(gossip);
}

uint64_t probe_deadline_ms(const struct gossip *gossip) {
    return earlier(earlier(gossip->next_probe_ms, gossip->watch.due_ms), helpers_deadline_ms(gossip));
}

void probe_delay(struct gossip *gossip, uint64_t ms) {
    for (size_t i = 0; i < gossip->members.awake_count; i++) {
        struct member *member = members_awake(gossip, i);
        struct probe *probe = &member->probe;
        if (probe->deadline_ms == NEVER) continue;
        probe->deadline_ms += ms;
        if (probe->enough_ms != NEVER) probe->enough_ms += ms;
        if (probe->sure_ms != NEVER) probe->sure_ms += ms;
        timers_set(&gossip->timers, &member->timer, member_deadline_ms(gossip, member));
    }
}

void probe_forget(struct gossip *gossip) {
    for (size_t i = 0; i < gossip->members.awake_count; i++) {
        struct member *member = members_awake(gossip, i);
        if (member->probe.deadline_ms == NEVER) continue;
        probe_stop(member);
        if (member->state == MEMBER_SUSPECT) ask_suspect_from(gossip, member, gossip->now_ms);
        members_timed(gossip, member);
    }
}
