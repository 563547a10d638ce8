/* Alive, suspect, down, left: what follows from the newest evidence. Order: (epoch, incarnation), and at the same one
 * suspicion beats life, death beats suspicion. The highest of each is kept even when it does not change the state, and
 * is told to whoever is older. */
#include "gossip/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNVERIFIED_KEEP_MS 60000u
#define ANSWER_OLDER_MS 100u
#define SUSPICION_LONGEST 9u /* minima: it ends then, if we could not ask as much as we would */
#define HEARSAY_MS 250u      /* so long the word of the one who brought it is waited for */
#define FOLLOW_MIN_MS 500u
#define IDLE_TALK_MS 1000u
#define FOLLOW_MAX_MS 300000u
#define CLONED_AGAIN_MS 60000u

bool evidence_is_above(uint64_t epoch, uint64_t incarnation, uint64_t than_epoch, uint64_t than_incarnation) {
    return epoch > than_epoch || (epoch == than_epoch && incarnation > than_incarnation);
}

struct message evidence_head_of(const struct member *member) {
    return (struct message){.kind = MESSAGE_HEAD, .bytes = member->head, .size = member->head_size};
}

static bool is_suspected(const struct member *member) {
    return member_trouble(member)->suspicion.running;
}

static void end_suspicion(struct member *member) {
    if (!is_suspected(member)) return;
    member->trouble->suspicion.running = false;
    probe_stop(member);
}

/* What the roll brings others know, and what its owner says perhaps nobody else. Among many, a head goes with the word
 * that its owner lives: else all who hear it would ping it at once. */
static void tell_head(struct gossip *gossip, struct member *member) {
    bool waits = member->state == MEMBER_UNVERIFIED && members_are_many(gossip);
    if (!waits && (!roll_is_called(gossip) || member == gossip->sender)) rumors_head(gossip, member);
}

void evidence_set_state(struct gossip *gossip, struct member *member, enum member_state state) {
    if (member->state == state) return;
    bool was_visible = member_is_visible(member), was_told = member->visible_told;
    bool was_unverified = member->state == MEMBER_UNVERIFIED;
    member->state = state;
    bool visible = member_is_visible(member);
    if (state != MEMBER_SUSPECT) end_suspicion(member);
    member->hearsay_ms = 0;
    if (state == MEMBER_DOWN || state == MEMBER_LEFT) {
        member->down_since_ms = gossip->now_ms;
        member->fresh_epoch = 0;
        proof_forget(member); /* another may live at its address by the time it returns */
    }
    if (state == MEMBER_DOWN) {
        gossip->counters.deaths++;
        accusation_proved(gossip, member);
    }
    member->visible_told = visible;
    members_changed(gossip, member);
    if (visible && was_unverified) tell_head(gossip, member);
    if (state != MEMBER_UNVERIFIED && (visible || was_told)) event_member(gossip, member);
    if (visible && !was_visible) {
        event_rows_all(gossip, member);
        event_knows(gossip, member);
        if (!members_are_many(gossip)) own_resend_soon(gossip, member);
        repair_want(gossip, member, gossip->sender ? gossip->sender : member);
        digest_meet(gossip, member);
    }
}

/* A head may announce anybody's address, and each of many brokers would ask there: ever more rarely, until the member
 * itself answers. */
bool evidence_may_follow(struct gossip *gossip, struct member *member) {
    if (member->path_proven) return true;
    if (gossip->now_ms < member->follow_ms) return false;
    uint32_t gap = member->follow_gap_ms;
    member->follow_gap_ms = gap == 0 ? FOLLOW_MIN_MS : gap * 2 < FOLLOW_MAX_MS ? gap * 2 : FOLLOW_MAX_MS;
    member->follow_ms = gossip->now_ms + gap;
    return true;
}

/* Much is said of it and it never answers: helpers would only make more of it. */
bool evidence_is_idle_talk(const struct member *member) {
    return !member_is_visible(member) && member->follow_gap_ms > IDLE_TALK_MS;
}

/* Is it really there? */
static void ask_hearsay(struct gossip *gossip, struct member *member) {
    member->hearsay_ms = 0;
    if (member->probe.deadline_ms == NEVER && evidence_may_follow(gossip, member)) probe_member(gossip, member);
}

void evidence_consider(struct gossip *gossip, struct member *member) {
    if (member->self || !member->known || member->head_size == 0) return;
    if (member->leaving) {
        evidence_set_state(gossip, member, MEMBER_LEFT);
        return;
    }
    /* It left, and its key says that it is back: from now on it is one we have heard of, and is called until it
     * answers. */
    if (member->state == MEMBER_LEFT) evidence_set_state(gossip, member, MEMBER_UNVERIFIED);
    bool refuted =
        evidence_is_above(member->epoch, member->incarnation, member->accused_epoch, member->accused_incarnation);
    bool buried = member->down_epoch != 0 &&
                  !evidence_is_above(member->epoch, member->incarnation, member->down_epoch, member->down_incarnation);
    if (member->state == MEMBER_SUSPECT && refuted) {
        probe_note_refutation(member);
        evidence_set_state(gossip, member, MEMBER_ALIVE);
    }
    if (member_is_visible(member) || buried) return;
    if (member->fresh_epoch == member->epoch)
        evidence_set_state(gossip, member, MEMBER_ALIVE);
    else if (roll_answers(gossip))
        member->hearsay_ms = gossip->now_ms + HEARSAY_MS + chance_below(&gossip->chance, HEARSAY_MS);
    else
        ask_hearsay(gossip, member);
    members_changed(gossip, member); /* of whoever's word this was: until when it is waited for */
}

void evidence_answer_older(struct gossip *gossip, struct member *member) {
    if (member->head_size == 0 || gossip->now_ms < member->evidence_sent_ms) return;
    member->evidence_sent_ms = gossip->now_ms + ANSWER_OLDER_MS;
    struct message head = evidence_head_of(member);
    reply_add(gossip, &head);
}

/* ---- heads ---- */

static void on_own_head(struct gossip *gossip, const struct head *head, const uint8_t *bytes, size_t size) {
    struct member *self = gossip->self;
    bool ours = size == self->head_size && memcmp(bytes, self->head, size) == 0;
    /* An earlier life in this epoch that has left has the last word in it: nobody takes ours for newer. */
    bool has_ended = head->leaving && !gossip->own.leaving && !gossip->own.left;
    bool earlier_head =
        head->incarnation < self->incarnation && !has_ended && head->sequence <= registry_sequence(self->registry);
    if (ours || head->epoch < self->epoch || (head->epoch == self->epoch && earlier_head)) return;
    if (!proof_may_check(gossip)) return;
    if (!signed_verify(bytes, size, &gossip->crypto, self->public_key)) {
        receive_forged(gossip);
        return;
    }
    /* Its packet comes from where it is; one that somebody else passes on tells only what it announces. */
    bool direct = gossip->header && !gossip->over_link && id_equal(&gossip->header->id, &self->id);
    if (head->leaving && !gossip->own.leaving)
        own_follow(gossip, head->epoch);
    else
        own_raise_epoch(gossip, head->epoch, direct ? &gossip->source : &head->address);
    /* Where it may not be raised yet, a newer head says that two use the key. */
    bool tied = head->epoch == self->epoch && head->incarnation == self->incarnation;
    if (tied) own_say_again(gossip);
}

static void new_epoch(struct gossip *gossip, struct member *member, const struct head *head) {
    member->epoch = head->epoch;
    member->known_sequence = 0;
    member->known_incarnation = 0;
    end_suspicion(member);
    holdings_free(gossip, member);
}

/* Heads that say so and take it back in turn fill no log. */
static void tell_cloned(struct gossip *gossip, struct member *member, const struct head *head) {
    struct trouble *trouble = trouble_make(member);
    gossip->counters.clones_seen++;
    if (!trouble || gossip->now_ms < trouble->cloned_told_ms) return;
    trouble->cloned_told_ms = gossip->now_ms + CLONED_AGAIN_MS;
    char text[200];
    snprintf(text, sizeof text,
             "%.63s says that another broker uses its key: stop one of the two, or give it a key of its own",
             head->name);
    event_plain(gossip, GOSSIP_WARNING, member, head->epoch, 0, text);
}

static void take_head(struct gossip *gossip, struct member *member, const struct head *head, const uint8_t *bytes,
                      size_t size) {
    bool restarted = head->epoch > member->epoch, was_visible = member_is_visible(member);
    const struct gossip_address before = member->address;
    struct statement *said = statement_new(gossip->shared, &gossip->crypto, head, bytes, size);
    if (!said) return; /* it will be told again */
    if (restarted) new_epoch(gossip, member, head);
    member->incarnation = head->incarnation;
    member_set_said(member, said);
    member->leaving = head->leaving;
    if (head->cloned && !member->cloned) tell_cloned(gossip, member, head);
    member->cloned = head->cloned;
    member->address = head->address;
    if (!address_is_usable(&head->address) ||
        (address_is_loopback(&head->address) && !address_is_loopback(&gossip->self->address) &&
         gossip->self->address.family != 0))
        member->address = (struct gossip_address){0}; /* that is we, or nobody: its packets tell where it is */
    ring_note(gossip, member, head);
    bool moved = !address_equal(&before, &member->address);
    if (moved && member->head_size > 0 && member->address.family != 0)
        member->path_proven = member->path_proven && address_equal(&member->path, &member->address);
    repair_head(gossip, member, head, bytes, size);
    if (was_visible && restarted && !head->leaving) {
        /* A new life takes the place of the old one at once; the event's epoch says that the old rows are gone. */
        member->state = MEMBER_ALIVE;
        members_changed(gossip, member);
        event_member(gossip, member);
        event_rows_all(gossip, member);
        repair_want(gossip, member, gossip->sender ? gossip->sender : member);
        own_resend_soon(gossip, member);
    } else if (was_visible && moved && !head->leaving) {
        event_member(gossip, member);
    }
    evidence_consider(gossip, member);
    tell_head(gossip, member);
    members_changed(gossip, member);
}

/* One that is not newer, and names a checkpoint above what we hold, or a later one than ours. But not above the newest
 * head's: in one life that never falls, so it would be of a life that was lost. */
static bool helps(const struct member *member, const struct head *head, const uint8_t *bytes, size_t size) {
    struct head newest;
    if (head->epoch != member->epoch) return false;
    bool knows = head_read(member->head, member->head_size, &newest);
    if (knows && head->checkpoint_sequence > newest.checkpoint_sequence) return false;
    if (head->checkpoint_sequence > registry_sequence(member->registry)) return true;
    return knows && two_states_base_yields(member, &newest, head, bytes, size);
}

/* What it said last in this epoch is that it leaves, in whatever order that is heard. */
static bool is_last_word(const struct member *member, const struct head *head) {
    return head->epoch == member->epoch && head->incarnation != member->incarnation && head->leaving &&
           !member->leaving;
}

/* brought: by the sender of the packet in hand, who has seen the key. */
static void check_head(struct gossip *gossip, struct member *member, const struct head *head, const uint8_t *bytes,
                       size_t size, bool brought) {
    bool newer = evidence_is_above(head->epoch, head->incarnation, member->epoch, member->incarnation) ||
                 is_last_word(member, head);
    bool same = size == member->head_size && memcmp(bytes, member->head, size - GOSSIP_SIGNATURE_SIZE) == 0;
    if (!newer && !same && two_states_head_wins(gossip, member, head, bytes, size)) {
        if (gossip->header) evidence_answer_older(gossip, member);
        take_head(gossip, member, head, bytes, size);
        return;
    }
    if (!newer && !helps(member, head, bytes, size)) {
        /* Older, or as new and different: then two speak with one key, and both should know. */
        if (gossip->header && !same) {
            two_states_answer_base(gossip, member, head);
            evidence_answer_older(gossip, member);
        } else if (gossip->header && member != gossip->sender) {
            rumors_say_had(gossip, member);
        }
        return;
    }
    if (newer && member->leaving && head->epoch == member->epoch && !head->leaving) {
        /* Who leaves comes back in a higher epoch, with rows that it has to send again. */
        if (gossip->header) evidence_answer_older(gossip, member);
        return;
    }
    if (!proof_may_check(gossip)) return;
    if (!signed_verify(bytes, size, &gossip->crypto, member->public_key)) {
        if (brought)
            receive_forged(gossip);
        else
            gossip->counters.bad_signature++;
        return;
    }
    if (newer && !holdings_let_pass(gossip, member, head)) return;
    if (newer)
        take_head(gossip, member, head, bytes, size);
    else
        repair_head(gossip, member, head, bytes, size);
}

/* Until its key is known. When memory is short it is told again. */
static void keep_waiting(struct member *member, const struct head *head, const uint8_t *bytes, size_t size) {
    struct copied_head *waiting = member->waiting_head;
    struct head before;
    if (!waiting) waiting = member->waiting_head = calloc(1, sizeof *waiting);
    if (!waiting) return;
    bool older = waiting->size > 0 && head_read(waiting->bytes, waiting->size, &before) &&
                 !evidence_is_above(head->epoch, head->incarnation, before.epoch, before.incarnation);
    if (older) return;
    memcpy(waiting->bytes, bytes, size);
    waiting->size = size;
}

void evidence_on_head(struct gossip *gossip, const uint8_t *bytes, size_t size) {
    struct head head;
    if (!head_read(bytes, size, &head)) {
        receive_malformed(gossip);
        return;
    }
    if (id_equal(&head.id, &gossip->self->id)) {
        on_own_head(gossip, &head, bytes, size);
        return;
    }
    struct member *member = roll_brings(gossip, &head.id);
    if (!member) return;
    if (member == gossip->sender) reply_acknowledge(gossip);
    if (!member->known) {
        keep_waiting(member, &head, bytes, size);
        identity_ask(gossip, member);
        return;
    }
    check_head(gossip, member, &head, bytes, size, true);
}

void evidence_take_waiting(struct gossip *gossip, struct member *member) {
    struct head head;
    struct copied_head *waiting = member->waiting_head;
    member->waiting_head = NULL;
    if (waiting && head_read(waiting->bytes, waiting->size, &head))
        check_head(gossip, member, &head, waiting->bytes, waiting->size, false);
    free(waiting);
}

/* ---- suspicion ---- */

/* The accusation must reach it, and its refutation us, each perhaps at the second try. */
static uint32_t suspicion_min_ms(const struct gossip *gossip, const struct member *member) {
    return gossip->limits.suspicion_min_ms + (uint32_t)(4 * probe_extra_ms(gossip, member));
}

static bool has_answered(const struct member *member) {
    return member->heard_ms != NEVER && member->heard_ms > member_trouble(member)->suspicion.started_ms;
}

/* Nobody dies whom we have not asked often enough ourselves, unless we cannot ask. */
static uint64_t suspicion_ends_ms(const struct gossip *gossip, const struct member *member) {
    uint32_t min_ms = suspicion_min_ms(gossip, member);
    const struct suspicion *suspicion = &member_trouble(member)->suspicion;
    uint64_t due_ms = suspicion_deadline_ms(suspicion, min_ms, members_visible_count(gossip));
    uint64_t sure_ms = earlier(member->probe.sure_ms, suspicion->started_ms + (uint64_t)SUSPICION_LONGEST * min_ms);
    return has_answered(member) || due_ms > sure_ms ? due_ms : sure_ms;
}

static void tick_suspect(struct gossip *gossip, struct member *member, bool in_partition) {
    struct suspicion *suspicion = &member->trouble->suspicion;
    if (gossip->now_ms < suspicion_ends_ms(gossip, member)) return;
    /* It answered us since: whatever others see, it lives. The accusation is told again, since whoever should have
     * heard it may have been out of reach, and only its refutation ends it. */
    bool answered = has_answered(member);
    if (answered || in_partition) {
        struct member_id accuser = suspicion->accusers[0];
        suspicion_start(suspicion, gossip->now_ms, &accuser);
        members_changed(gossip, member);
        if (answered) rumors_accusation(gossip, member);
        return;
    }
    member->down_epoch = member->epoch;
    member->down_incarnation = member->incarnation;
    evidence_set_state(gossip, member, MEMBER_DOWN);
}

bool evidence_tick(struct gossip *gossip, struct member *member) {
    if (member->state == MEMBER_SUSPECT && is_suspected(member))
        tick_suspect(gossip, member, probe_in_partition(gossip));
    if (member->hearsay_ms != 0 && gossip->now_ms >= member->hearsay_ms) ask_hearsay(gossip, member);
    two_states_tick(gossip, member);
    if (member->state == MEMBER_UNVERIFIED)
        return member->has_key || gossip->now_ms < member->made_ms + UNVERIFIED_KEEP_MS;
    bool gone = member->state == MEMBER_DOWN || member->state == MEMBER_LEFT;
    if (gone && gossip->now_ms >= member->down_since_ms + gossip->limits.down_keep_ms && member->registry)
        holdings_bury(gossip, member);
    return true;
}

static uint64_t state_deadline_ms(const struct gossip *gossip, const struct member *member) {
    switch (member->state) {
    case MEMBER_SUSPECT: return is_suspected(member) ? suspicion_ends_ms(gossip, member) : NEVER;
    case MEMBER_UNVERIFIED: return member->has_key ? NEVER : member->made_ms + UNVERIFIED_KEEP_MS;
    case MEMBER_DOWN:
    case MEMBER_LEFT: return member->registry ? member->down_since_ms + gossip->limits.down_keep_ms : NEVER;
    case MEMBER_ALIVE: break;
    }
    return NEVER;
}

uint64_t evidence_deadline_ms(const struct gossip *gossip, const struct member *member) {
    uint64_t hearsay_ms = member->hearsay_ms != 0 ? member->hearsay_ms : NEVER;
    return earlier(state_deadline_ms(gossip, member), earlier(hearsay_ms, two_states_deadline_ms(member)));
}

void evidence_restart_suspicions(struct gossip *gossip) {
    struct member *member;
    for (size_t i = 0; (member = members_suspect(gossip, i)); i++) {
        if (!is_suspected(member)) continue;
        struct suspicion *suspicion = &member->trouble->suspicion;
        struct member_id accuser = suspicion->accusers[0];
        suspicion_start(suspicion, gossip->now_ms, &accuser);
        members_changed(gossip, member);
    }
}
