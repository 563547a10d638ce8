/* An owner that has signed two entries with one sequence, or two heads with one incarnation. Which of them counts is
 * its own affair, but all should believe the same, or they would compare it for ever: the one whose bytes are higher.
 * Whoever yields goes back to before that entry and takes all of the other's log: so of two logs the one counts that is
 * higher where they part, and with each step ours only becomes higher. Both are signed by the owner, so nobody can
 * bring that about for another. An honest one whose disk is lost may do so as well, but it raises its epoch or signs a
 * newer checkpoint as soon as it is told. */
#include "gossip/conduct.h"
#include "gossip/verbs.h"

#include <stdlib.h>
#include <string.h>

#define TOLD 8u        /* members by each who finds it, so that nearly all hear of it */
#define ASKED 5u       /* times the owner is, which one counts, and heard us, */
#define ASKED_MS 2000u /* at such gaps */
#define AGAIN_MS 1000u /* others are told, or ours is undone */

static bool is_signed(struct gossip *gossip, const struct member *member, const uint8_t *bytes, size_t size) {
    if (!proof_may_check(gossip)) return false;
    if (signed_verify(bytes, size, &gossip->crypto, member->public_key)) return true;
    receive_forged(gossip);
    return false;
}

static void tell_one(struct gossip *gossip, struct member *to, const struct message both[2]) {
    struct packet packet;
    struct gossip_address route = member_route(to);
    packet_begin(&packet, to, &route);
    packet_add(gossip, &packet, &both[0]);
    packet_add(gossip, &packet, &both[1]);
    packet_end(gossip, &packet, false);
}

/* The owner, which can say what is true, and some that hold the one and learn by the other that there are two. */
static void tell(struct gossip *gossip, struct member *member, const struct message both[2]) {
    struct member *some[TOLD];
    size_t count = members_pick(gossip, some, TOLD, member);
    tell_one(gossip, member, both);
    for (size_t i = 0; i < count; i++)
        tell_one(gossip, some[i], both);
}

void trouble_free(struct trouble *trouble) {
    if (trouble) free(trouble->two_states.other);
    free(trouble);
}

bool two_states_are_known(const struct member *member) {
    return member_trouble(member)->two_states.epoch == member->epoch;
}

/* The owner is asked by both: of its own alone it would learn nothing. */
static bool keep_other(struct two_states *known, const struct message *ours, const struct message *theirs) {
    const struct message *other =
        signed_compare(theirs->bytes, theirs->size, ours->bytes, ours->size) > 0 ? ours : theirs;
    if (!known->other) known->other = malloc(sizeof *known->other);
    if (!known->other) return false;
    memcpy(known->other->bytes, other->bytes, other->size);
    known->other->size = other->size;
    return true;
}

/* True if something may be done about it. */
static bool note(struct gossip *gossip, struct member *member, const struct message *ours, const struct message *theirs,
                 const struct two_states *found) {
    if (!trouble_make(member)) return false;
    struct two_states *known = &member->trouble->two_states;
    if (found->incarnation > 0 && !keep_other(known, ours, theirs)) return false;
    bool first = !two_states_are_known(member), may = gossip->now_ms >= known->again_ms;
    uint64_t again_ms = may ? gossip->now_ms + AGAIN_MS : known->again_ms;
    if (first && may) tell(gossip, member, (const struct message[]){*ours, *theirs});
    if (first) {
        struct copied_head *other = known->other;
        *known = *found;
        known->other = other;
        known->due_ms = gossip->now_ms + ASKED_MS;
    }
    known->epoch = member->epoch;
    known->again_ms = again_ms;
    members_changed(gossip, member);
    return may;
}

static struct message entry_of(const struct log_entry *entry) {
    return (struct message){.kind = MESSAGE_ENTRY, .bytes = entry->bytes, .size = entry->size};
}

static bool is_settled(const struct member *member) {
    const struct two_states *known = &member_trouble(member)->two_states;
    if (!two_states_are_known(member) || member->cloned || !member_is_visible(member)) return true;
    return known->incarnation > 0 ? member->incarnation > known->incarnation
                                  : registry_base_sequence(member->registry) >= known->sequence;
}

uint64_t two_states_deadline_ms(const struct member *member) {
    uint64_t due_ms = member_trouble(member)->two_states.due_ms;
    return due_ms != 0 ? due_ms : NEVER;
}

static void ask(struct gossip *gossip, struct member *member, const struct two_states *known) {
    const struct message head = evidence_head_of(member);
    if (known->incarnation > 0) {
        const struct message other = {.kind = MESSAGE_HEAD, .bytes = known->other->bytes, .size = known->other->size};
        tell_one(gossip, member, (const struct message[]){head, other});
        return;
    }
    const struct log_entry *held = registry_entry(member->registry, known->sequence);
    const struct message which = held ? entry_of(held) : head;
    send_one(gossip, member, &which);
}

void two_states_tick(struct gossip *gossip, struct member *member) {
    if (gossip->now_ms < two_states_deadline_ms(member)) return;
    struct two_states *known = &member->trouble->two_states;
    known->due_ms = 0;
    if (is_settled(member)) return;
    /* By others it may be known to live when it does not hear us, or we not what it says. */
    known->answered += known->asked_ms != 0 && known->answered_ms >= known->asked_ms;
    if (known->answered == ASKED) {
        conduct_note(gossip, member, MISDEED_CONTRADICTS);
        return;
    }
    known->asked_ms = gossip->now_ms;
    known->due_ms = gossip->now_ms + ASKED_MS;
    ask(gossip, member, known);
    probe_member(gossip, member);
}

void two_states_answered(struct gossip *gossip, struct member *member) {
    if (member->trouble) member->trouble->two_states.answered_ms = gossip->now_ms;
}

bool two_states_head_wins(struct gossip *gossip, struct member *member, const struct head *head, const uint8_t *bytes,
                          size_t size) {
    const struct message ours = evidence_head_of(member), theirs = {.kind = MESSAGE_HEAD, .bytes = bytes, .size = size};
    if (head->epoch != member->epoch || head->incarnation != member->incarnation || ours.size == 0) return false;
    int order = head->leaving != member->leaving ? (head->leaving ? 1 : -1)
                                                 : signed_compare(bytes, size, ours.bytes, ours.size);
    bool known = two_states_are_known(member);
    if (order == 0 || (known && order < 0) || !is_signed(gossip, member, bytes, size)) return false;
    note(gossip, member, &ours, &theirs, &(struct two_states){.incarnation = head->incarnation});
    return order > 0;
}

/* ---- checkpoints ---- */

static bool names(const struct head *head, const struct checkpoint *base) {
    return head->checkpoint_sequence == base->sequence &&
           memcmp(head->checkpoint_root, base->root, sizeof base->root) == 0;
}

/* That of the newest head counts; until it is there, of others the one with the later head. */
bool two_states_base_yields(const struct member *member, const struct head *newest, const struct head *head,
                            const uint8_t *bytes, size_t size) {
    const struct checkpoint *base = member->registry ? member->registry->base : NULL;
    if (registry_sequence(member->registry) >= newest->checkpoint_sequence) return false;
    if (!base) return head->checkpoint_sequence > 0;
    return !names(head, base) && checkpoint_is_outdated(base, head, bytes, size);
}

void two_states_answer_base(struct gossip *gossip, const struct member *member, const struct head *head) {
    const struct checkpoint *base = member->registry ? member->registry->base : NULL;
    bool asks = base && head->epoch == member->epoch && !names(head, base);
    if (asks && gossip->now_ms >= member->evidence_sent_ms) repair_tell_base(gossip, base);
}

void two_states_compare(struct gossip *gossip, const struct member *member, uint64_t their_sequence) {
    struct message head = evidence_head_of(member);
    if (two_states_are_known(member)) repair_hurry(gossip);
    if (!sweep_may_begin(gossip)) return;
    reply_add(gossip, &head);
    repair_tell_base(gossip, member->registry ? member->registry->base : NULL);
    sweep_begin(gossip, member, registry_base_sequence(member->registry), their_sequence);
}

/* ---- entries ---- */

/* What stood behind ours comes again, from the one who has the other. */
static void yield(struct gossip *gossip, struct member *member, const struct entry *entry,
                  const struct message *theirs) {
    struct event_rows rows = {gossip, member};
    struct registry_watch watch = {event_row, &rows};
    uint64_t end = registry_sequence(member->registry);
    holdings_begin(gossip, member);
    if (registry_rewind(&member->registry, &gossip->rules, entry->sequence - 1, &watch) == REGISTRY_OK)
        transfers_entry(&gossip->transfers, &member->registry, &gossip->rules, entry, theirs->bytes, theirs->size,
                        &watch);
    holdings_end(gossip, member);
    sweep_go_on(gossip, member, entry->sequence, end);
}

void two_states_on_entry(struct gossip *gossip, struct member *member, const struct entry *entry,
                         const struct message *theirs) {
    const struct log_entry *held = registry_entry(member->registry, entry->sequence);
    if (!held) return;
    const struct message ours = entry_of(held);
    int order = signed_compare(theirs->bytes, theirs->size, ours.bytes, ours.size);
    if (order == 0) sweep_follow(gossip, member, entry->sequence);
    if (order == 0 || gossip->now_ms < member_trouble(member)->two_states.again_ms ||
        !is_signed(gossip, member, theirs->bytes, theirs->size))
        return;
    sweep_differs(gossip, member);
    struct two_states found = {.sequence = entry->sequence};
    if (!note(gossip, member, &ours, theirs, &found)) return;
    if (order > 0)
        yield(gossip, member, entry, theirs);
    else if (gossip->header)
        reply_add(gossip, &ours);
}
