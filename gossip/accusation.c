/* Who accuses whom, and how much of it is believed: one broker with a bad cable must not condemn the others. */
#include "gossip/verbs.h"

#include <stdlib.h>
#include <string.h>

#define ACCUSED_KEEP_MS 60000u
#define ACCUSED_AGAIN_MS 5000u
#define NEWCOMER_MS 30000u

struct message accusation_of(const struct member *member) {
    return (struct message){
        .kind = MESSAGE_ACCUSE,
        .version = {.id = member->id, .epoch = member->accused_epoch, .incarnation = member->accused_incarnation},
        .other = member_trouble(member)->accuser,
        .bytes = member_trouble(member)->accusation,
        .size = member_trouble(member)->accusation_signed ? GOSSIP_SIGNATURE_SIZE : 0};
}

bool accusation_stands(const struct member *member) {
    return member->accused_epoch > 0 && member->accused_epoch == member->epoch &&
           member->accused_incarnation >= member->incarnation;
}

/* Who accused it was right: that costs no credit, so that several deaths in a minute are all believed. */
void accusation_proved(struct gossip *gossip, const struct member *dead) {
    const struct suspicion *suspicion = &member_trouble(dead)->suspicion;
    for (size_t i = 0; i < suspicion->accuser_count; i++) {
        struct member *accuser = members_find(gossip, &suspicion->accusers[i]);
        for (size_t slot = 0; accuser && accuser->trouble && slot < ACCUSED_MAX; slot++)
            if (id_equal(&accuser->trouble->accused[slot].id, &dead->id)) accuser->trouble->accused[slot].until_ms = 0;
    }
}

struct trouble *trouble_make(struct member *member) {
    if (!member->trouble) member->trouble = calloc(1, sizeof *member->trouble);
    return member->trouble;
}

/* One broker with a bad cable must not condemn the others: beyond a twentieth of the members, but two at least, in a
 * minute its word counts as nothing. */
static bool is_credible(struct gossip *gossip, struct member *accuser, const struct member_id *accused) {
    size_t allowed = members_visible_count(gossip) / 20, live = 0, slot = ACCUSED_MAX;
    struct trouble *trouble = trouble_make(accuser);
    if (!trouble) return false;
    allowed = allowed < 2 ? 2 : allowed > ACCUSED_MAX ? ACCUSED_MAX : allowed;
    for (size_t i = 0; i < ACCUSED_MAX; i++) {
        bool fresh = trouble->accused[i].until_ms > gossip->now_ms;
        if (fresh && id_equal(&trouble->accused[i].id, accused)) {
            /* It was wrong, or it would not say so again: it cries wolf. */
            if (gossip->now_ms + ACCUSED_KEEP_MS < trouble->accused[i].until_ms + ACCUSED_AGAIN_MS) return false;
            trouble->accused[i].until_ms = gossip->now_ms + ACCUSED_KEEP_MS;
            return live < allowed || i < allowed;
        }
        live += fresh;
        if (!fresh && slot == ACCUSED_MAX) slot = i;
    }
    if (live >= allowed) return false;
    trouble->accused[slot].id = *accused;
    trouble->accused[slot].until_ms = gossip->now_ms + ACCUSED_KEEP_MS;
    return true;
}

/* What changes nothing costs its accuser no credit: of a death that all see, only the first few are given theirs back.
 */
static bool is_news(const struct member *member, const struct member_id *accuser) {
    if (!member_is_visible(member)) return false;
    return member->state != MEMBER_SUSPECT || suspicion_lacks(&member_trouble(member)->suspicion, accuser);
}

/* To some of many who join at once, the brokers that let them in seem dead. Who was here before them sees better, and
 * asks. But of those who all started together none did. */
static bool is_newcomer(const struct gossip *gossip, const struct member *accuser) {
    return members_are_many(gossip) && accuser->made_ms > gossip->self->made_ms + NEWCOMER_MS &&
           gossip->now_ms < accuser->made_ms + NEWCOMER_MS;
}

/* While we come to know many, with others who do, whoever does not answer in time has too much to do. */
bool accusation_may(const struct gossip *gossip) {
    bool is_young = gossip->now_ms < gossip->self->made_ms + NEWCOMER_MS;
    return !is_young || !members_are_many(gossip) || !roll_is_called(gossip);
}

/* Kept with its signature, so that it can be passed on. */
static void keep_accusation(struct gossip *gossip, struct member *member, const struct message *word) {
    struct trouble *trouble = member->trouble;
    member->accused_epoch = member->epoch;
    member->accused_incarnation = member->incarnation;
    trouble->accuser = word ? word->other : gossip->self->id;
    trouble->accusation_signed = word && word->size == sizeof trouble->accusation;
    if (!word)
        witness_accuse(gossip, member);
    else if (trouble->accusation_signed)
        memcpy(trouble->accusation, word->bytes, sizeof trouble->accusation);
}

void accusation_suspect(struct gossip *gossip, struct member *member, const struct message *word) {
    const struct member_id *accuser = word ? &word->other : &gossip->self->id;
    if (!member_is_visible(member) || !trouble_make(member)) return; /* the next probe fails too */
    if (member->state == MEMBER_SUSPECT) {
        bool confirmed = suspicion_confirm(&member->trouble->suspicion, accuser);
        members_changed(gossip, member); /* it lasts less long */
        if (confirmed && !word) {
            keep_accusation(gossip, member, NULL);
            rumors_accusation(gossip, member);
        }
        return;
    }
    keep_accusation(gossip, member, word);
    gossip->counters.suspicions++;
    suspicion_start(&member->trouble->suspicion, gossip->now_ms, accuser);
    evidence_set_state(gossip, member, MEMBER_SUSPECT);
    probe_suspect(gossip, member);
    rumors_accusation(gossip, member);
    probe_all(gossip);
}

/* Its accuser says so itself, or has signed it: nobody spends another's credit, or ends a suspicion in its name. */
static bool is_its_word(struct gossip *gossip, const struct member *accuser, const struct message *message) {
    if (message->size == 0) return accuser == gossip->sender;
    return witness_accused(gossip, accuser, message);
}

void accusation_on_accuse(struct gossip *gossip, const struct message *message) {
    const struct version *version = &message->version;
    if (id_equal(&version->id, &gossip->self->id)) {
        if (version->epoch == gossip->self->epoch && version->incarnation >= gossip->self->incarnation)
            own_refute(gossip, message);
        else
            own_told_epoch(gossip, version->epoch);
        reply_acknowledge(gossip); /* with our head, unless it has that */
        return;
    }
    struct member *member = members_find(gossip, &version->id);
    struct member *accuser = members_find(gossip, &message->other);
    if (!gossip->authentic || !member || !member->known || !accuser || accuser->self || !member_is_visible(accuser))
        return;
    if (evidence_is_above(member->epoch, member->incarnation, version->epoch, version->incarnation)) {
        evidence_answer_older(gossip, member); /* refuted already */
        return;
    }
    if (evidence_is_above(version->epoch, version->incarnation, member->epoch, member->incarnation)) {
        repair_want(gossip, member, gossip->sender); /* about a head we have not seen */
        return;
    }
    if (!is_news(member, &accuser->id)) return;
    bool own_word = is_its_word(gossip, accuser, message),
         believed = accusation_may(gossip) && !is_newcomer(gossip, accuser);
    if (own_word && believed && is_credible(gossip, accuser, &member->id)) {
        accusation_suspect(gossip, member, message);
        return;
    }
    if (own_word && believed && member->state == MEMBER_ALIVE) conduct_note(gossip, accuser, MISDEED_ACCUSES);
    if (member->probe.deadline_ms == NEVER) probe_member(gossip, member);
}
