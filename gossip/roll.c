/* The roll: keys, tokens and heads in bulk, for who knows few of many (P25). A joiner of a thousand brokers needs a
 * thousand tokens, and would else ask a thousand questions, all of them of the brokers that let it in.
 *
 * It asks one visible member after the other, at random, for those of a range of ids that it lacks, and names those it
 * has by the first bytes of their ids, so that only what differs is sent, and what is lost comes in the next pass. One
 * question at a time is the flow control; who is asked for too much says how long to wait. */
#include "gossip/verbs.h"

#include <string.h>

#define PREFIX_SIZE 4u
#define ASKED_FOR_MAX 32u  /* members in one answer */
#define ASKED_FOR_FIRST 4u /* of one whom all ask who come: enough to go on with others */
#define OTHER_PEER_TRIES 8u
#define NAMED_MAX (MESSAGE_ROLL_MAX / PREFIX_SIZE)
#define LOOKED_AT_MAX 1024u   /* members passed over for one answer */
#define SERVED_PER_S_MAX 640u /* members, to all together, */
#define SERVED_SIZE 2200u     /* and so that they take half of what we may send */
#define WELCOME_SIZE 3000u    /* what a stranger costs that begins to join, about */
#define BUSY_PART 8u          /* of a second: what waits for so long already need not be made longer */
#define GAP_MIN_MS 40u
#define GAP_MAX_MS 2000u
#define ANSWER_MS 200u /* and some round trips; twice as long each time that none comes */
#define ANSWER_MAX_MS 500u
#define UNANSWERED_MAX 3u  /* in a row: then it is perhaps not there */
#define PEER_QUESTIONS 16u /* of one peer; each new one costs a proof of addresses both ways */
#define EMPTY_PASSES 3u    /* with different peers: then there is nobody left to be found so */
#define UNPROVEN_MS 5u     /* how long a proof takes, at least */
#define SERVE_MS 100u      /* the measure of what is served is for so long */
#define STAY_MS 250u       /* a peer that is busy for longer, */
#define STAY_TIMES 3u      /* or again and again, is left: another costs a proof of addresses, both ways */
#define AGAIN_MIN_MS 2000u /* after the last pass */
#define AGAIN_MAX_MS 600000u

static const struct member_id last_id = {
    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

bool roll_is_called(const struct gossip *gossip) {
    return gossip->roll.next_ms != NEVER;
}

static uint64_t jitter(struct gossip *gossip, uint64_t ms) {
    return ms / 2 + chance_below(&gossip->chance, (uint32_t)ms + 1);
}

static void begin_pass(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    roll->found = 0;
    roll->wrapped = false;
    for (size_t i = 0; i < sizeof roll->first.bytes; i += 8)
        wire_store_u64(roll->first.bytes + i, chance_next(&gossip->chance)); /* not all who join ask for the same */
    roll->after = roll->first;
}

bool roll_start(struct gossip *gossip, uint64_t listed) {
    struct roll *roll = &gossip->roll;
    if (roll_is_called(gossip)) return true;
    if (gossip->now_ms < roll->again_ms) return false;
    roll->listed = listed;
    if (roll->gap_ms == 0) roll->gap_ms = GAP_MIN_MS;
    roll->next_ms = gossip->now_ms;
    begin_pass(gossip);
    return true;
}

bool roll_answers(const struct gossip *gossip) {
    return roll_is_called(gossip) && gossip->roll.asked && gossip->sender && members_are_many(gossip) &&
           id_equal(&gossip->sender->id, &gossip->roll.peer);
}

void roll_found(struct gossip *gossip) {
    gossip->roll.found++;
}

static void change_peer(struct roll *roll) {
    roll->peer_questions = roll->unanswered = roll->put_off = 0;
}

static uint64_t answer_ms(const struct roll *roll, const struct member *peer) {
    uint64_t ms = (uint64_t)ANSWER_MS << roll->unanswered;
    return (ms < ANSWER_MAX_MS ? ms : ANSWER_MAX_MS) + 4 * (uint64_t)peer->probe.rtt_ms;
}

/* As many as are lost everywhere say nothing of its being busy. */
static bool is_usual_loss(struct gossip *gossip) {
    uint32_t passes = 65536u - gossip->loss;
    return chance_below(&gossip->chance, 65536) >= passes * (uint64_t)passes / 65536;
}

static void no_answer(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    if (!is_usual_loss(gossip)) roll->gap_ms = roll->gap_ms * 2 < GAP_MAX_MS ? roll->gap_ms * 2 : GAP_MAX_MS;
    if (++roll->unanswered >= UNANSWERED_MAX) change_peer(roll);
}

/* Nothing new from several peers: who is still missing is not many, and comes by rumours and digests. */
static void end_pass(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    roll->empty_passes = roll->found > 0 ? 0 : roll->empty_passes + 1;
    roll->found_any = roll->found_any || roll->found > 0;
    change_peer(roll);
    if (roll->empty_passes < EMPTY_PASSES && roll->empty_passes + 1 < members_visible_count(gossip)) {
        begin_pass(gossip);
        return;
    }
    roll->empty_passes = 0;
    roll->next_ms = NEVER;
    uint64_t wait = roll->found_any ? AGAIN_MIN_MS : 2 * roll->wait_ms;
    roll->wait_ms = wait < AGAIN_MIN_MS ? AGAIN_MIN_MS : wait > AGAIN_MAX_MS ? AGAIN_MAX_MS : wait;
    roll->again_ms = gossip->now_ms + jitter(gossip, roll->wait_ms);
    roll->found_any = false;
    repair_hurry(gossip);
}

static void go_on(struct gossip *gossip, const struct member_id *covered) {
    struct roll *roll = &gossip->roll;
    roll->after = *covered;
    if (id_equal(covered, &last_id) && !roll->wrapped) {
        roll->wrapped = true;
        memset(&roll->after, 0, sizeof roll->after);
    } else if (roll->wrapped && memcmp(covered, &roll->first, sizeof *covered) >= 0) {
        end_pass(gossip);
    }
}

/* ---- what those whom an answer brings have said ---- */

bool roll_want(struct gossip *gossip, const struct member *member) {
    struct roll *roll = &gossip->roll;
    if (!roll_answers(gossip) || member == gossip->sender || roll->wanted_count == ROLL_WANTED_MAX) return false;
    roll->wanted[roll->wanted_count++] = member->id;
    return true;
}

/* All in one packet: else each packet of the answer would be answered by one. */
static void ask_for_entries(struct gossip *gossip, struct packet *packet) {
    struct roll *roll = &gossip->roll;
    while (roll->wanted_count > 0) {
        struct member *member = members_find(gossip, &roll->wanted[--roll->wanted_count]);
        if (!member) continue;
        struct message want = {.kind = MESSAGE_WANT, .version = repair_version_of(member)};
        if (packet)
            packet_add(gossip, packet, &want);
        else
            reply_add(gossip, &want);
    }
}

/* ---- asking ---- */

static void store_prefix(uint8_t out[PREFIX_SIZE], uint32_t prefix) {
    for (unsigned i = 0; i < PREFIX_SIZE; i++)
        out[i] = (uint8_t)(prefix >> (24 - 8 * i));
}

/* Who is not yet seen though its token came is asked for again: the word that it lives was lost. */
static bool is_known(const struct gossip *gossip, uint32_t number) {
    struct member copy;
    if (members_walk_is_visible(gossip, number)) return true;
    const struct member *member = members_look_at(gossip, number, &copy);
    return member->self || (member->known && member->head_size > 0 && member->state != MEMBER_UNVERIFIED);
}

/* Those known behind `after`, as many as have room; *until is how far they go. */
static size_t name_known(struct gossip *gossip, uint8_t *names, struct member_id *until) {
    const struct roll *roll = &gossip->roll;
    size_t size = 0;
    *until = roll->wrapped ? roll->first : last_id;
    struct members_walk walk = members_walk_after(gossip, &roll->after);
    uint32_t last = DIRECTORY_NOBODY;
    for (uint32_t number; (number = members_walk_next(gossip, &walk)) != DIRECTORY_NOBODY;) {
        if (members_walk_is_behind(gossip, &walk, until)) break;
        if (!is_known(gossip, number)) continue;
        if (size == (size_t)NAMED_MAX * PREFIX_SIZE) {
            *until = *members_id_at(&gossip->members, last);
            break;
        }
        store_prefix(names + size, members_walk_prefix(gossip, &walk));
        size += PREFIX_SIZE;
        last = number;
    }
    return size;
}

/* All who come know its address, and ask it first. */
static bool is_beset(const struct gossip *gossip, const struct member *member) {
    return rejoin_is_contact(gossip, &member->id);
}

static bool choose_peer(struct gossip *gossip, struct member **peer) {
    for (size_t tries = 0; tries < OTHER_PEER_TRIES; tries++) {
        if (members_pick_any(gossip, peer, 1, NULL) == 0) return false;
        if (!is_beset(gossip, *peer)) break;
    }
    gossip->roll.peer_questions = is_beset(gossip, *peer) ? 1 : PEER_QUESTIONS;
    return true;
}

static void ask(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    uint8_t names[NAMED_MAX * PREFIX_SIZE];
    struct message question = {
        .kind = MESSAGE_ROLL, .number = ASKED_FOR_MAX, .version.id = roll->after, .bytes = names};
    struct member *other = members_find(gossip, &roll->peer);
    roll->next_ms = gossip->now_ms + ANSWER_MAX_MS;
    if (!other || !member_is_visible(other) || roll->peer_questions == 0) {
        roll->asked = choose_peer(gossip, &other);
        if (!roll->asked) return;
        roll->peer = other->id;
    }
    roll->asked = true;
    roll->peer_questions--;
    roll->next_ms = gossip->now_ms + answer_ms(roll, other);
    if (is_beset(gossip, other)) question.number = ASKED_FOR_FIRST;
    question.size = name_known(gossip, names, &question.other);
    struct packet packet;
    struct gossip_address to = member_route(other);
    struct message prove = {.kind = MESSAGE_PROVE};
    packet_begin(&packet, other, &to);
    packet.dial = address_equal(&to, &other->address);
    if (!other->path_proven) packet_add(gossip, &packet, &prove); /* what it then brings counts for more */
    packet_add(gossip, &packet, &question);
    ask_for_entries(gossip, &packet);
    packet_end(gossip, &packet, false);
}

void roll_tick(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    if (gossip->now_ms < roll->next_ms) return;
    if (members_visible_count(gossip) == 1) { /* nobody to ask; who is found next begins it anew */
        roll->next_ms = NEVER;
        return;
    }
    if (roll->asked) no_answer(gossip);
    ask(gossip);
}

uint64_t roll_deadline_ms(const struct gossip *gossip) {
    return gossip->roll.next_ms;
}

static void on_answer(struct gossip *gossip, const struct message *message) {
    struct roll *roll = &gossip->roll;
    bool awaited = roll_is_called(gossip) && roll->asked && id_equal(&message->version.id, &roll->after) &&
                   id_equal(&gossip->header->id, &roll->peer);
    if (!awaited || memcmp(&message->other, &roll->after, sizeof message->other) < 0) return;
    if (message->number > 0) { /* once more: it waits for our proof, or is busy, and then another is better */
        uint64_t wait = message->number < STAY_MS ? message->number : SERVE_MS;
        roll->asked = false;
        roll->next_ms = gossip->now_ms + wait + chance_below(&gossip->chance, (uint32_t)wait / 4 + 1);
        if (message->number > UNPROVEN_MS && (message->number > STAY_MS || ++roll->put_off > STAY_TIMES))
            change_peer(roll);
        return;
    }
    roll->asked = false;
    roll->unanswered = 0;
    if (!gossip->authentic) {
        roll->next_ms = gossip->now_ms + jitter(gossip, UNPROVEN_MS);
        return;
    }
    ask_for_entries(gossip, NULL);
    roll->put_off = 0;
    roll->gap_ms = roll->gap_ms / 2 > GAP_MIN_MS ? roll->gap_ms / 2 : GAP_MIN_MS;
    roll->next_ms = gossip->now_ms + jitter(gossip, roll->gap_ms);
    go_on(gossip, &message->other);
}

static bool is_answered(const struct gossip *gossip) {
    return roll_is_called(gossip) && gossip->authentic && id_equal(&gossip->header->id, &gossip->roll.peer);
}

struct member *roll_brings(struct gossip *gossip, const struct member_id *id) {
    return is_answered(gossip) ? members_make(gossip, id) : members_meet(gossip, id);
}

/* ---- answering ---- */

bool roll_is_busy(const struct gossip *gossip) {
    return budget_waiting(&gossip->budget, BUDGET_MEMBERS) > gossip->limits.datagram_bytes_per_s / BUSY_PART;
}

/* Joining costs us some kilobytes, and half-joined is not joined: more than can be brought to the end are not begun
 * with. Who is turned away comes again at growing random gaps, and there are others. */
bool roll_may_welcome(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    if (budget_waiting(&gossip->budget, BUDGET_NEWCOMERS) > gossip->limits.datagram_bytes_per_s / BUSY_PART)
        return false;
    if (gossip->now_ms >= roll->welcome_ms) {
        roll->welcome_ms = gossip->now_ms + 100;
        roll->welcome_left = gossip->limits.datagram_bytes_per_s / WELCOME_SIZE / 10 + 1;
    }
    if (roll->welcome_left == 0) return false;
    roll->welcome_left--;
    return true;
}

static uint32_t may_serve(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    if (gossip->now_ms >= roll->serve_ms) {
        uint32_t members = gossip->limits.datagram_bytes_per_s / SERVED_SIZE;
        uint64_t passed = (gossip->now_ms - roll->serve_ms) / SERVE_MS + 1;
        roll->serve_ms = gossip->now_ms + SERVE_MS;
        roll->serve_left = (members < SERVED_PER_S_MAX ? members : SERVED_PER_S_MAX) * SERVE_MS / 1000 + 1;
        roll->serve_waiting = roll->serve_waiting > passed ? roll->serve_waiting - (uint32_t)passed : 0;
    }
    return roll_is_busy(gossip) ? 0 : roll->serve_left;
}

/* Each who is put off gets a time of its own. */
static uint64_t when_served(struct gossip *gossip) {
    struct roll *roll = &gossip->roll;
    uint64_t ms = roll->serve_ms - gossip->now_ms + (uint64_t)roll->serve_waiting * SERVE_MS;
    if (ms < GAP_MAX_MS) roll->serve_waiting++;
    return ms < GAP_MAX_MS ? ms : GAP_MAX_MS;
}

static void tell(struct gossip *gossip, const struct member *member) {
    struct message token = identity_token_of(member), head = evidence_head_of(member), vouch = vouch_for(member);
    /* Nobody need be pinged who is vouched for before both are there, and the next datagram may come first. */
    reply_add(gossip, &vouch);
    reply_add(gossip, &token);
    reply_add(gossip, &vouch);
    reply_add(gossip, &head);
    gossip->roll.serve_left--;
}

/* Whether an id that begins so is among those named from *at on; both go up in the order of ids. */
static bool is_named(const struct message *message, size_t *at, uint32_t prefix) {
    uint8_t bytes[PREFIX_SIZE];
    store_prefix(bytes, prefix);
    while (*at + PREFIX_SIZE <= message->size && memcmp(message->bytes + *at, bytes, PREFIX_SIZE) < 0)
        *at += PREFIX_SIZE;
    return *at + PREFIX_SIZE <= message->size && memcmp(message->bytes + *at, bytes, PREFIX_SIZE) == 0;
}

/* Shown to others; not to itself. */
static bool is_told(const struct gossip *gossip, uint32_t number) {
    if (number == gossip->self->number) return digest_lists(gossip->self);
    return members_walk_is_visible(gossip, number) && !(gossip->sender && number == gossip->sender->number);
}

static void on_question(struct gossip *gossip, const struct message *message) {
    struct message answer = {.kind = MESSAGE_ROLL, .flag = true, .version.id = message->version.id};
    uint32_t left = may_serve(gossip), looked_at = 0;
    if (left > ASKED_FOR_MAX) left = ASKED_FOR_MAX;
    if (left > message->number) left = (uint32_t)message->number;
    answer.other = message->version.id;
    if (left == 0) {
        answer.number = when_served(gossip);
        reply_add(gossip, &answer);
        return;
    }
    size_t at = 0;
    struct members_walk walk = members_walk_after(gossip, &answer.other);
    for (uint32_t number, last = DIRECTORY_NOBODY;; last = number) {
        number = members_walk_next(gossip, &walk);
        if (number == DIRECTORY_NOBODY || members_walk_is_behind(gossip, &walk, &message->other)) {
            answer.other = message->other;
            break;
        }
        if (left == 0 || ++looked_at > LOOKED_AT_MAX) { /* at least one was passed */
            answer.other = *members_id_at(&gossip->members, last);
            break;
        }
        if (is_named(message, &at, members_walk_prefix(gossip, &walk)) || !is_told(gossip, number)) continue;
        struct member *member = members_wake_at(gossip, number);
        if (!member) continue;
        tell(gossip, member);
        left--;
    }
    reply_add(gossip, &answer);
}

/* Until it has proved where it is, which it is asked to do in the same packet. */
static void put_off(struct gossip *gossip, const struct message *message) {
    struct message answer = {.kind = MESSAGE_ROLL,
                             .flag = true,
                             .number = UNPROVEN_MS,
                             .version.id = message->version.id,
                             .other = message->version.id};
    reply_add(gossip, &answer);
}

void roll_on_roll(struct gossip *gossip, const struct message *message) {
    if (message->size % PREFIX_SIZE != 0) return;
    if (message->flag)
        on_answer(gossip, message);
    else if (!gossip->authentic)
        put_off(gossip, message);
    else if (memcmp(&message->other, &message->version.id, sizeof message->other) > 0)
        on_question(gossip, message);
}

/* ---- who vouches for whom ---- */

struct message vouch_for(const struct member *member) {
    return (struct message){.kind = MESSAGE_VOUCH, .version = {.id = member->id, .epoch = member->epoch}};
}

/* In a large federation a joiner would have to ping everybody, and everybody each joiner, before it is shown: there the
 * word of a member is taken for that another is alive, as is its word for the opposite. Probes find out soon if it is
 * not so. */
void vouch_on_vouch(struct gossip *gossip, const struct message *message) {
    struct member *member =
        is_answered(gossip) ? members_make(gossip, &message->version.id) : members_find(gossip, &message->version.id);
    if (!gossip->authentic || !member_is_visible(gossip->sender) || !members_are_many(gossip) || !member ||
        member->self || member_is_visible(member) || member == gossip->sender ||
        member->fresh_epoch == message->version.epoch || !evidence_may_follow(gossip, member))
        return;
    member->fresh_epoch = message->version.epoch;
    evidence_consider(gossip, member);
    members_changed(gossip, member);
}
