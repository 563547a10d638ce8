/* Joining, and joining again, for ever: addresses where nobody alive answers (configured, or good in an earlier run),
 * members that are down, and those we only heard of. */
#include "gossip/verbs.h"

#include <string.h>

#define SELF_KEEP_MS 60000u
#define DIALS_AT_ONCE 3u
#define LOOK_AT_MAX 64u
#define FORGET_MS (7u * 24 * 3600 * 1000) /* a member gone for so long; its address is still dialled */
/* A member that is down is dialled so often in an interval by all together (serf's rule: else thousands would dial the
 * one), and an address, which others need not know, by each at least once in so many intervals. */
#define DIALS_OF_ALL 3u
#define ADDRESS_EVERY 15u

static uint64_t gap_min_ms(const struct gossip *gossip) {
    return gossip->limits.rejoin_ms > 10 ? gossip->limits.rejoin_ms / 10 : 1;
}

/* Decorrelated jitter: those who start together are soon apart. */
static uint64_t next_gap_ms(struct gossip *gossip) {
    uint64_t least = gap_min_ms(gossip), most = gossip->limits.rejoin_ms > least ? gossip->limits.rejoin_ms : least;
    uint64_t gap = least + chance_below(&gossip->chance, (uint32_t)(3 * gossip->dial_gap_ms - least + 1));
    return gap < most ? gap : most;
}

static bool is_alone(const struct gossip *gossip) {
    return members_visible_count(gossip) == 1;
}

void rejoin_hurry(struct gossip *gossip) {
    gossip->dial_gap_ms = 0;
    gossip->next_rejoin_ms = gossip->now_ms;
}

static size_t contact_count(const struct gossip *gossip) {
    return gossip->bootstrap_count + gossip->remembered_count;
}

static struct bootstrap *contact_at(struct gossip *gossip, size_t index) {
    return index < gossip->bootstrap_count ? &gossip->bootstrap[index]
                                           : &gossip->remembered[index - gossip->bootstrap_count];
}

bool rejoin_is_contact(const struct gossip *gossip, const struct member_id *id) {
    for (size_t i = 0; i < gossip->bootstrap_count; i++)
        if (gossip->bootstrap[i].answered && id_equal(&gossip->bootstrap[i].member, id)) return true;
    for (size_t i = 0; i < gossip->remembered_count; i++)
        if (gossip->remembered[i].answered && id_equal(&gossip->remembered[i].member, id)) return true;
    return false;
}

/* Somebody who dialled us may be there. With many members it is quicker to ask there than to look through them. */
static bool look_for(struct gossip *gossip, struct bootstrap *contact) {
    const struct member *member;
    for (size_t i = 0; i < LOOK_AT_MAX && (member = members_visible(gossip, i)); i++) {
        struct gossip_address route = member_route(member);
        if (!address_equal(&route, &contact->address) && !address_equal(&member->address, &contact->address)) continue;
        contact->member = member->id;
        contact->answered = true;
        return true;
    }
    return false;
}

bool rejoin_is_answered(struct gossip *gossip, struct bootstrap *contact) {
    if (gossip->now_ms < contact->self_until_ms || address_equal(&contact->address, &gossip->self->address))
        return true;
    const struct member *member = contact->answered ? members_find(gossip, &contact->member) : NULL;
    if (member && member_is_visible(member)) return true;
    return look_for(gossip, contact);
}

void rejoin_dial(struct gossip *gossip, struct bootstrap *contact) {
    while (contact->number == 0)
        contact->number = chance_next(&gossip->chance);
    contact->answered = false;
    struct packet packet;
    packet_begin(&packet, NULL, &contact->address);
    packet.dial = true;
    struct message ping = {.kind = MESSAGE_PING, .number = contact->number};
    packet_add(gossip, &packet, &ping);
    struct message head = evidence_head_of(gossip->self);
    packet_add(gossip, &packet, &head);
    packet_end(gossip, &packet, false);
    carrier_dial(gossip, &contact->address); /* when datagrams stay unanswered */
}

static void note_self(struct gossip *gossip, struct bootstrap *contact) {
    contact->self_until_ms = gossip->now_ms + SELF_KEEP_MS;
}

void rejoin_on_link(struct gossip *gossip, const struct gossip_address *address, const struct member_id *id) {
    for (size_t i = 0; i < contact_count(gossip); i++) {
        struct bootstrap *contact = contact_at(gossip, i);
        if (!address_equal(&contact->address, address)) continue;
        if (id_equal(id, &gossip->self->id)) {
            note_self(gossip, contact);
            continue;
        }
        contact->member = *id;
        contact->answered = true;
    }
}

static void answer(struct gossip *gossip, struct bootstrap *contact, uint64_t number) {
    struct member *sender = gossip->sender;
    if (contact->number != number) return;
    contact->number = 0;
    contact->member = sender->id;
    contact->answered = true;
    carrier_heard(gossip);
    if (!gossip->authentic) return;
    sender->heard_ms = gossip->now_ms;
    sender->fresh_epoch = gossip->header->epoch;
    sender->follow_ms = sender->follow_gap_ms = 0;
    evidence_consider(gossip, sender);
}

void rejoin_on_pong(struct gossip *gossip, uint64_t number) {
    if (!gossip->sender || number == 0) return;
    for (size_t i = 0; i < contact_count(gossip); i++)
        answer(gossip, contact_at(gossip, i), number);
    for (size_t i = 0; gossip->seek.group_count > 0 && i < SOUGHT_MAX; i++)
        answer(gossip, &gossip->seek.sought[i], number);
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
        for (size_t i = 0; message.kind == MESSAGE_PING && i < contact_count(gossip); i++)
            if (contact_at(gossip, i)->number == message.number) note_self(gossip, contact_at(gossip, i));
}

static bool is_gone(const struct member *member) {
    return member->state == MEMBER_DOWN || member->state == MEMBER_LEFT;
}

static bool is_absent(const struct member *member) {
    bool absent = member->state == MEMBER_DOWN || (member->state == MEMBER_UNVERIFIED && !member->refused);
    /* Where no way to it is known one may be to others, who ask it for us. */
    return !member->self && absent && (member->known || member_route(member).family != 0);
}

static void call(struct gossip *gossip, struct member *member) {
    if (!member->known) identity_ask(gossip, member);
    probe_member(gossip, member);
    carrier_dial(gossip, &member->address);
}

static void remember(struct gossip *gossip, const struct gossip_address *address) {
    for (size_t i = 0; i < contact_count(gossip); i++)
        if (address_equal(&contact_at(gossip, i)->address, address)) return;
    size_t place = gossip->remembered_count < REMEMBERED_MAX ? gossip->remembered_count++
                                                             : chance_below(&gossip->chance, REMEMBERED_MAX);
    gossip->remembered[place] = (struct bootstrap){.address = *address};
}

/* P12: what is gone for good takes no place for ever. */
static bool forget(struct gossip *gossip, struct member *member) {
    if (!is_gone(member) || gossip->now_ms - member->down_since_ms < FORGET_MS) return false;
    if (member->state == MEMBER_DOWN && member->address.family != 0) remember(gossip, &member->address);
    holdings_bury(gossip, member);
    members_remove(gossip, member);
    return true;
}

/* Every unanswered address in turn: first one, that not all who start together choose, and when it does not answer,
 * which is as likely for being busy as for being away, some at a time. */
static void dial_some(struct gossip *gossip, bool first) {
    size_t count = contact_count(gossip), dialled = 0, tried = 0, most = first ? 1 : DIALS_AT_ONCE;
    if (first && count > 0) gossip->dial_from = chance_below(&gossip->chance, (uint32_t)count);
    for (; tried < count && dialled < most; tried++) {
        struct bootstrap *contact = contact_at(gossip, (gossip->dial_from + tried) % count);
        if (rejoin_is_answered(gossip, contact)) continue;
        rejoin_dial(gossip, contact);
        dialled++;
    }
    gossip->dial_from = count > 0 ? (gossip->dial_from + tried) % count : 0;
}

/* The dice first: who need not dial now need not look through its contacts. */
static void dial_one(struct gossip *gossip) {
    struct bootstrap *chosen = NULL;
    uint32_t count = (uint32_t)contact_count(gossip), choices = 0;
    uint32_t among_all = chance_below(&gossip->chance, members_visible_count(gossip));
    bool is_due = chance_below(&gossip->chance, ADDRESS_EVERY) == 0;
    if (!is_due && among_all >= DIALS_OF_ALL * count) return;
    for (size_t i = 0; i < count; i++) {
        struct bootstrap *contact = contact_at(gossip, i);
        if (!rejoin_is_answered(gossip, contact) && chance_below(&gossip->chance, ++choices) == 0) chosen = contact;
    }
    if (chosen && (is_due || among_all < DIALS_OF_ALL * choices)) rejoin_dial(gossip, chosen);
}

static void call_one(struct gossip *gossip) {
    struct member *chosen = members_pick_absent(gossip);
    uint32_t choices = members_absent_count(gossip), visible = members_visible_count(gossip);
    if (!chosen || forget(gossip, chosen) || !is_absent(chosen)) return;
    if (chance_below(&gossip->chance, visible) < DIALS_OF_ALL * choices) call(gossip, chosen);
}

void rejoin_tick(struct gossip *gossip) {
    if (gossip->now_ms < gossip->next_rejoin_ms) return;
    bool first = gossip->dial_gap_ms == 0;
    gossip->dial_gap_ms = first ? gap_min_ms(gossip) : gossip->dial_gap_ms;
    if (is_alone(gossip))
        dial_some(gossip, first);
    else
        dial_one(gossip);
    call_one(gossip);
    gossip->next_rejoin_ms = gossip->now_ms + gossip->dial_gap_ms;
    gossip->dial_gap_ms = next_gap_ms(gossip);
}

uint64_t rejoin_deadline_ms(const struct gossip *gossip) {
    return gossip->next_rejoin_ms;
}

/* What was there before keeps what is known of it. */
static bool replace(struct bootstrap *list, size_t *used, size_t max, const struct gossip_address *addresses,
                    size_t count) {
    struct bootstrap next[BOOTSTRAP_MAX > REMEMBERED_MAX ? BOOTSTRAP_MAX : REMEMBERED_MAX] = {0};
    size_t kept = 0;
    bool changed = false;
    for (size_t i = 0; i < count && kept < max; i++) {
        if (addresses[i].family != 4 && addresses[i].family != 6) continue;
        size_t known = 0;
        while (known < *used && !address_equal(&list[known].address, &addresses[i]))
            known++;
        changed = changed || known == *used;
        next[kept++] = known < *used ? list[known] : (struct bootstrap){.address = addresses[i]};
    }
    memcpy(list, next, max * sizeof *list);
    *used = kept;
    return changed;
}

void gossip_set_bootstrap(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *addresses,
                          size_t count) {
    if (!replace(gossip->bootstrap, &gossip->bootstrap_count, BOOTSTRAP_MAX, addresses, count)) return;
    gossip->now_ms = now_ms > gossip->now_ms ? now_ms : gossip->now_ms;
    rejoin_hurry(gossip);
}

void gossip_set_remembered(struct gossip *gossip, uint64_t now_ms, const struct gossip_address *addresses,
                           size_t count) {
    if (!replace(gossip->remembered, &gossip->remembered_count, REMEMBERED_MAX, addresses, count)) return;
    gossip->now_ms = now_ms > gossip->now_ms ? now_ms : gossip->now_ms;
    rejoin_hurry(gossip);
}

static bool is_good(const struct member *member) {
    return member_is_visible(member) && member->heard_ms != NEVER && member->address.family != 0;
}

size_t gossip_good_peers(const struct gossip *gossip, struct gossip_address *out, size_t max) {
    const struct member *member;
    struct member copy;
    size_t good = 0, seen = 0, taken = 0;
    struct member_id after = {{0}};
    for (size_t i = 0; i + 1 < members_visible_count(gossip); i++)
        good += is_good(members_look(gossip, i, &copy));
    for (; taken < max && (member = members_look_after(gossip, &after, &copy)); after = member->id) {
        if (!is_good(member)) continue;
        /* Spread over the ids, which are random: of many, each broker of which was good is as likely kept as another.
         */
        if (good <= max || seen * max / good >= taken) out[taken++] = member->address;
        seen++;
    }
    return taken;
}
