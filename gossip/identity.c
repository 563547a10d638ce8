/* Who a member is: its key, and the token that makes it a broker. Asked for by whoever hears of an unknown id, answered
 * by the member or by anybody who verified it. */
#include "gossip/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_AGAIN_MS 150u
#define REFUSED_AGAIN_MS 60000u
#define TOLD_AT_ONCE 32u /* members of a token of ours */
#define TELL_MORE_MS 100u
#define RENEW_BEFORE_MS 10000u /* a token about to end: is there a newer one? */
/* Each costs two signature checks, and strangers can make us ask. */
#define WHO_IS_PER_S 200u
#define WHO_IS_PER_PLACE_PER_S 50u
#define WHO_IS_FOR_MEMBERS_PER_S 640u /* of what a member brings: what one roll asks for */

struct message identity_token_of(const struct member *member) {
    return (struct message){
        .kind = MESSAGE_TOKEN, .key = member->public_key, .bytes = member->token, .size = member->token_size};
}

/* How many tokens may still be judged in this second. */
static uint32_t *who_is_left(struct gossip *gossip) {
    bool member = gossip->authentic;
    if (gossip->now_ms >= gossip->who_budget[member].until_ms) {
        memset(&gossip->who_budget[member], 0, sizeof gossip->who_budget[member]);
        gossip->who_budget[member].until_ms = gossip->now_ms + 1000;
        gossip->who_budget[member].left = member ? WHO_IS_FOR_MEMBERS_PER_S : WHO_IS_PER_S;
    }
    return &gossip->who_budget[member].left;
}

/* Nobody takes all of it by garbage: neither a member, nor strangers of one IP, or of one network of IPv6. */
static bool may_judge(struct gossip *gossip) {
    uint32_t *left = who_is_left(gossip);
    if (*left == 0 || !receive_may(gossip, ALLOW_REFUSED, 0)) return false;
    if (!gossip->authentic && !gossip->over_link && gossip->header) {
        struct gossip_address place = gossip->source;
        uint8_t hash[8];
        place.port = 0;
        if (place.family == 6) memset(place.ip + 8, 0, 8);
        cookie_for(gossip, &place, hash);
        uint8_t *taken = &gossip->who_budget[0].taken[hash[0] % WHO_PLACES];
        if (*taken == WHO_IS_PER_PLACE_PER_S) return false;
        ++*taken;
    }
    --*left;
    return true;
}

static bool is_worth_asking(struct gossip *gossip, const struct member *member) {
    if (member->self || gossip->now_ms < member->who_asked_ms) return false;
    if (member->known || !gossip->header) return true;
    /* An answer that could not be judged now would be for nothing; they come again. The roll brings the others. */
    return *who_is_left(gossip) > 0 && (member == gossip->sender || !roll_is_called(gossip));
}

void identity_ask(struct gossip *gossip, struct member *member) {
    if (!is_worth_asking(gossip, member)) return;
    member->who_asked_ms = gossip->now_ms + ASK_AGAIN_MS;
    members_changed(gossip, member);
    bool proof_only = member->known && member == gossip->sender && !gossip->authentic;
    struct message who = {.kind = proof_only ? MESSAGE_PROVE : MESSAGE_WHO, .version.id = member->id};
    if (gossip->header) {
        reply_add(gossip, &who); /* the bearer, or the member itself */
        if (member == gossip->sender) return;
    }
    struct gossip_address route = member_route(member);
    if (route.family != 0) {
        send_one(gossip, member, &who);
        return;
    }
    struct member *helper;
    if (!gossip->header && members_pick(gossip, &helper, 1, member) == 1) send_one(gossip, helper, &who);
}

void identity_on_who(struct gossip *gossip, const struct member_id *id) {
    const struct member *member = members_find(gossip, id);
    if (!member || !member->known) return;
    if (member->self) {
        if (gossip->introduced) return; /* in this packet */
        gossip->introduced = gossip->proof_due = true;
    }
    if (!member->self && roll_is_busy(gossip)) return;
    struct message token = identity_token_of(member), vouch = vouch_for(member);
    /* First: with the token, a head that waits for it is looked at, and nobody need be pinged. */
    if (member_is_visible(member) && members_are_many(gossip)) reply_add(gossip, &vouch);
    reply_add(gossip, &token);
    if (member->head_size > 0) {
        struct message head = evidence_head_of(member);
        reply_add(gossip, &head);
    }
}

static void refuse(struct gossip *gossip, struct member *member, const uint8_t hash[8], const struct gossip_who *who) {
    receive_may(gossip, ALLOW_REFUSED, 1);
    member->refused = true;
    memcpy(member->refused_hash, hash, 8);
    members_changed(gossip, member);
    gossip->counters.refused_token++;
    if (gossip->now_ms >= member->refused_event_ms) {
        member->refused_event_ms = gossip->now_ms + REFUSED_AGAIN_MS;
        event_plain(gossip, GOSSIP_REFUSED, member, 0, 0, who->reason);
    }
}

/* An earlier token of a member whose present one is good, brought by others: it is no trouble of the member's. */
static void pass_over(struct gossip *gossip, struct member *member, const uint8_t hash[8]) {
    receive_may(gossip, ALLOW_REFUSED, 1);
    memcpy(member->refused_hash, hash, 8);
    member->passed_over_ms = gossip->now_ms + REFUSED_AGAIN_MS;
    members_changed(gossip, member);
    gossip->counters.refused_token++;
}

/* Only to itself, and as its reply: within what its address may be sent. */
static void tell_refused(struct gossip *gossip, struct member *member, const char *reason) {
    if (member != gossip->sender || gossip->now_ms < member->refused_told_ms) return;
    member->refused_told_ms = gossip->now_ms + 1000;
    struct message refused = {.kind = MESSAGE_REFUSED, .bytes = (const uint8_t *)reason, .size = strlen(reason)};
    reply_add(gossip, &refused);
}

static void accept(struct gossip *gossip, struct member *member, struct who *who, uint64_t valid_for_ms) {
    if (!member->has_key) gossip->members.unverified--;
    if (!member->known) roll_found(gossip);
    member->has_key = true;
    if (!member->known) proof_forget(member); /* a stranger's path was not signed */
    member->known = true;
    member->refused = member->name_taken = false;
    member_set_who(member, who);
    member->valid_until_ms = valid_for_ms >= NEVER - gossip->now_ms ? NEVER : gossip->now_ms + valid_for_ms;
    members_changed(gossip, member);
    evidence_take_waiting(gossip, member);
    evidence_consider(gossip, member);
    if (member == gossip->sender) proof_offer(gossip);
}

/* What it would be called, for the listing. */
static void keep_name(struct gossip *gossip, struct member *member, const struct message *message, const char *name) {
    struct who *who = who_new(gossip->shared, &member->id, message->key, name, message->bytes, 0);
    if (!who) return;
    member_set_who(member, who);
}

void identity_on_token(struct gossip *gossip, const struct message *message) {
    struct member_id id;
    if (message->size == 0 || !gossip->crypto.id_of(gossip->crypto.context, message->key, &id) ||
        id_equal(&id, &gossip->self->id))
        return;
    struct member *member = members_make(gossip, &id);
    if (!member) return;
    bool own_word = member == gossip->sender && gossip->authentic;
    if (member->known && member->token_size == message->size &&
        memcmp(member->token, message->bytes, message->size) == 0) {
        if (own_word && member->refused) { /* it has gone back to this one */
            member->refused = member->name_taken = false;
            members_changed(gossip, member);
        }
        return;
    }
    uint8_t digest[32];
    gossip->crypto.sha256(gossip->crypto.context, message->bytes, message->size, digest);
    struct gossip_who who = {0};
    bool passed_over = member->known && !own_word && gossip->now_ms < member->passed_over_ms;
    bool same = (member->refused || passed_over) && memcmp(member->refused_hash, digest, 8) == 0;
    if (same && !(member->name_taken && names_free(gossip, member->name, &id))) {
        tell_refused(gossip, member, "your token was refused before, and is the same");
        return;
    }
    if (!may_judge(gossip)) return;
    gossip->crypto.who_is(gossip->crypto.context, message->key, message->bytes, message->size, &who);
    who.reason[sizeof who.reason - 1] = who.name[GOSSIP_NAME_MAX] = '\0';
    bool name_taken = who.allowed && !names_check(gossip, &id, who.name, who.reason);
    if (member->known && !own_word && (name_taken || !who.allowed || who.valid_for_ms == 0)) {
        pass_over(gossip, member, digest);
        return;
    }
    member->name_taken = name_taken;
    if (member->name_taken) {
        if (!member->known) keep_name(gossip, member, message, who.name);
        gossip->counters.names_refused++;
        who.allowed = false;
    }
    if (!who.allowed || who.valid_for_ms == 0) {
        /* Who has been a member keeps the name that it had then. */
        if (!member->name_taken && !member->has_key && who.name[0]) keep_name(gossip, member, message, who.name);
        refuse(gossip, member, digest, &who);
        tell_refused(gossip, member, who.reason);
        return;
    }
    who.name[GOSSIP_NAME_MAX] = '\0';
    struct who *known = who_new(gossip->shared, &id, message->key, who.name, message->bytes, message->size);
    if (known) accept(gossip, member, known, who.valid_for_ms); /* else it will be offered again */
}

void identity_on_refused(struct gossip *gossip, const struct message *message) {
    struct member *member = gossip->sender;
    if (!member || !gossip->source_proven) return;
    if (gossip->authentic) member->refuses_us = true;
    if (gossip->now_ms < member->refused_us_ms) return;
    member->refused_us_ms = gossip->now_ms + REFUSED_AGAIN_MS;
    char text[MESSAGE_REASON_MAX + 1] = {0};
    for (size_t i = 0; i < message->size; i++) /* it ends up in logs */
        text[i] = message->bytes[i] >= 0x20 && message->bytes[i] != 0x7f ? (char)message->bytes[i] : ' ';
    event_plain(gossip, GOSSIP_REFUSED_US, member, 0, 0, text);
}

static void expire(struct gossip *gossip, struct member *member) {
    if (member->state == MEMBER_ALIVE || member->state == MEMBER_SUSPECT)
        evidence_set_state(gossip, member, MEMBER_DOWN);
    member->known = false;
    member->refused = false;
    member->fresh_epoch = 0;
    member->valid_until_ms = NEVER;
    member->token = NULL;
    member->token_size = 0;
    members_changed(gossip, member);
}

/* When a newer token should be asked for. */
static uint64_t renew_ms(const struct member *member) {
    uint64_t renew = member->valid_until_ms > RENEW_BEFORE_MS ? member->valid_until_ms - RENEW_BEFORE_MS : 0;
    return renew > member->who_asked_ms ? renew : member->who_asked_ms;
}

void identity_tick(struct gossip *gossip, struct member *member) {
    if (gossip->now_ms >= member->valid_until_ms) {
        expire(gossip, member);
    } else if (member->valid_until_ms != NEVER && gossip->now_ms >= renew_ms(member)) {
        identity_ask(gossip, member);
        member->who_asked_ms = gossip->now_ms + 2000;
    }
}

uint64_t identity_deadline_ms(const struct member *member) {
    if (member->valid_until_ms == NEVER) return NEVER;
    return earlier(renew_ms(member), member->valid_until_ms);
}

/* ---- our own ---- */

void identity_tell_more(struct gossip *gossip) {
    struct own *own = &gossip->own;
    const struct message token = identity_token_of(gossip->self);
    struct member *member = NULL;
    for (uint32_t told = 0; told < TOLD_AT_ONCE && (member = members_after(gossip, &own->token_after));) {
        own->token_after = member->id;
        if (!member_is_visible(member)) continue;
        send_one(gossip, member, &token);
        told++;
    }
    own->token_ms = member ? gossip->now_ms + TELL_MORE_MS : 0;
}

void identity_tell_token(struct gossip *gossip) {
    const struct message token = identity_token_of(gossip->self);
    struct member *member;
    gossip->own.token_after = (struct member_id){{0}};
    if (members_are_many(gossip)) {
        identity_tell_more(gossip);
        return;
    }
    gossip->own.token_ms = 0;
    for (size_t i = 0; (member = members_visible(gossip, i)); i++)
        send_one(gossip, member, &token);
}
