/* The key ring that an issuer signed. It is taken from an admin's hand or from a link, never from a datagram: who stole
 * the old key could read the new one. Each head says which ring its owner uses, so that whoever has an older one is
 * noticed and, over a link, given the newer. */
#include "gossip/verbs.h"

#include <stdio.h>
#include <string.h>

#define TELL_MS 1000u
#define TELL_MAX_MS 16000u /* while nobody catches up: an old version, or one that says it is behind and is not */
#define FETCH_MS 4000u     /* who is ahead comes sooner, if he can reach us */
#define FETCH_MAX_MS 120000u
#define TELL_AT_ONCE 3u /* members: what spreads by threes is everywhere soon */
#define ASK_AT_ONCE 2u
#define TELL_ABSENT_MS 10000u
#define GREET_MS 20u
#define REFUSED_AGAIN_MS 60000u

/* Numbers first; of two rings with one number everybody takes the same one, whichever came first. */
static int order(uint64_t number, const uint8_t mark[8], uint64_t than_number, const uint8_t than_mark[8]) {
    if (number != than_number) return number < than_number ? -1 : 1;
    return memcmp(mark, than_mark, 8);
}

/* Without waking it: nearly all sleep, and use ours. */
static bool sleeps_with_ours(const struct gossip *gossip, size_t place) {
    const struct member *self = gossip->self;
    const struct statement *said = quiet_said(&gossip->members, place);
    return said && order(said->ring, said->ring_mark, self->ring, self->ring_mark) == 0;
}

bool ring_is_behind(const struct gossip *gossip, const struct member *member) {
    const struct member *self = gossip->self;
    return member->known && !member->self && member->head_size > 0 && member->state != MEMBER_LEFT &&
           order(member->ring, member->ring_mark, self->ring, self->ring_mark) < 0;
}

bool ring_init(struct gossip *gossip, const struct gossip_options *options) {
    gossip->ring.next_tell_ms = gossip->ring.owed_ms = gossip->ring.next_fetch_ms = NEVER;
    gossip->ring.tell_gap_ms = TELL_MS;
    gossip->ring.fetch_gap_ms = FETCH_MS;
    if (options->ring_size == 0) return options->ring_number == 0;
    if (options->ring_size > GOSSIP_RING_SIZE_MAX || options->ring_number == 0) return false;
    memcpy(gossip->ring.bytes, options->ring, options->ring_size);
    gossip->ring.size = options->ring_size;
    gossip->self->ring = options->ring_number;
    memcpy(gossip->self->ring_mark, options->ring_digest, sizeof gossip->self->ring_mark);
    return true;
}

/* What came with a new ring and could not be done for want of memory is done later. */
static void pay(struct gossip *gossip) {
    struct ring *ring = &gossip->ring;
    if (!ring->head_owed && !ring->event_owed) return;
    if (ring->event_owed && event_ring(gossip, &ring->from)) ring->event_owed = false;
    if (ring->head_owed && own_sign_head(gossip)) {
        ring->head_owed = false;
        own_tell_head(gossip);
    }
    ring->owed_ms = ring->head_owed || ring->event_owed ? gossip->now_ms + TELL_MS : NEVER;
}

static void adopt(struct gossip *gossip, const struct gossip_ring *read, const uint8_t *bytes, size_t size,
                  const struct member *from) {
    struct ring *ring = &gossip->ring;
    struct member *self = gossip->self;
    seal_set_keys(&gossip->seal, read->keys, read->key_count);
    memcpy(ring->bytes, bytes, size);
    ring->size = size;
    self->ring = read->number;
    memcpy(self->ring_mark, read->digest, sizeof self->ring_mark);
    ring->from = from->id;
    ring->head_owed = ring->event_owed = true;
    ring->next_tell_ms = gossip->now_ms;
    ring->tell_gap_ms = TELL_MS;
    ring->next_fetch_ms = NEVER;
    ring->fetch_gap_ms = FETCH_MS;
    pay(gossip);
}

/* Two were signed under one number: said once for each. */
static void tell_conflict(struct gossip *gossip, const struct member *member, const uint8_t mark[8]) {
    struct ring *ring = &gossip->ring;
    if (memcmp(mark, ring->other_mark, sizeof ring->other_mark) == 0) return;
    memcpy(ring->other_mark, mark, sizeof ring->other_mark);
    gossip->counters.rings_conflicting++;
    const uint8_t *ours = gossip->self->ring_mark;
    bool stays = memcmp(ours, mark, 8) > 0;
    const uint8_t *winner = stays ? ours : mark, *loser = stays ? mark : ours;
    char text[200];
    snprintf(text, sizeof text,
             "two key rings have the number %llu: all brokers take that with mark %02x%02x%02x%02x, and none "
             "%02x%02x%02x%02x (%s %.20s): make the next one from the first (hobnob key rotate)",
             (unsigned long long)gossip->self->ring, winner[0], winner[1], winner[2], winner[3], loser[0], loser[1],
             loser[2], loser[3], member->self ? "given to" : "seen at", member->name);
    event_plain(gossip, GOSSIP_WARNING, member, 0, gossip->self->ring, text);
}

static enum gossip_ring_verdict take(struct gossip *gossip, const uint8_t *bytes, size_t size,
                                     const struct member *from, char reason[160]) {
    const struct member *self = gossip->self;
    if (size == gossip->ring.size && size > 0 && memcmp(bytes, gossip->ring.bytes, size) == 0) return GOSSIP_RING_HELD;
    struct gossip_ring read = {0};
    if (size > 0 && size <= GOSSIP_RING_SIZE_MAX && gossip->crypto.read_ring)
        gossip->crypto.read_ring(gossip->crypto.context, bytes, size, &read);
    else
        snprintf(read.reason, sizeof read.reason, "this is no key ring: take the file that hobnob key rotate wrote");
    read.reason[sizeof read.reason - 1] = '\0';
    enum gossip_ring_verdict verdict = GOSSIP_RING_TAKEN;
    if (!read.good || read.number == 0 || read.key_count < 1 || read.key_count > GOSSIP_KEYS_MAX) {
        gossip->counters.rings_refused++;
        verdict = GOSSIP_RING_REFUSED;
        if (reason) memcpy(reason, read.reason, sizeof read.reason);
    } else if (read.number < self->ring) {
        verdict = GOSSIP_RING_OLDER;
        if (reason)
            snprintf(reason, 160, "ring %llu is older than ring %llu, which is used here: make the next one from that",
                     (unsigned long long)read.number, (unsigned long long)self->ring);
    } else {
        int above = order(read.number, read.digest, self->ring, self->ring_mark);
        if (read.number == self->ring && above != 0) tell_conflict(gossip, from, read.digest);
        verdict = above > 0 ? GOSSIP_RING_TAKEN : above == 0 ? GOSSIP_RING_HELD : GOSSIP_RING_OUTDONE;
        if (verdict == GOSSIP_RING_OUTDONE && reason)
            snprintf(reason, 160,
                     "another ring with number %llu is used here, and goes before this one: make the next one from "
                     "that",
                     (unsigned long long)self->ring);
    }
    if (verdict == GOSSIP_RING_TAKEN) adopt(gossip, &read, bytes, size, from);
    memset(&read, 0, sizeof read);
    return verdict;
}

enum gossip_ring_verdict gossip_take_ring(struct gossip *gossip, uint64_t now_ms, const uint8_t *bytes, size_t size,
                                          char reason[160]) {
    if (now_ms > gossip->now_ms) gossip->now_ms = now_ms;
    return take(gossip, bytes, size, gossip->self, reason);
}

uint64_t gossip_ring_held(const struct gossip *gossip, const uint8_t **bytes, size_t *size) {
    *bytes = gossip->ring.bytes;
    *size = gossip->ring.size;
    return gossip->self->ring;
}

static bool is_ahead(const struct gossip *gossip, const struct member *member) {
    const struct member *self = gossip->self;
    return member->known && !member->self && member->head_size > 0 && member->state != MEMBER_LEFT &&
           order(member->ring, member->ring_mark, self->ring, self->ring_mark) > 0;
}

void ring_note(struct gossip *gossip, struct member *member, const struct head *head) {
    const struct member *self = gossip->self;
    struct ring *ring = &gossip->ring;
    bool changed = member->ring != head->ring;
    member->ring = head->ring;
    memcpy(member->ring_mark, head->ring_mark, sizeof member->ring_mark);
    if (is_ahead(gossip, member) && ring->next_fetch_ms == NEVER) {
        ring->fetch_gap_ms = FETCH_MS;
        ring->next_fetch_ms = gossip->now_ms + FETCH_MS + chance_below(&gossip->chance, FETCH_MS);
    }
    if (self->ring == 0) return;
    if (member->ring == self->ring && memcmp(member->ring_mark, self->ring_mark, 8) != 0)
        tell_conflict(gossip, member, member->ring_mark);
    if (changed) ring->tell_gap_ms = TELL_MS; /* it goes on */
    if (!ring_is_behind(gossip, member) || (!changed && ring->next_tell_ms != NEVER)) return;
    ring->next_tell_ms = earlier(ring->next_tell_ms, gossip->now_ms + chance_below(&gossip->chance, TELL_MS));
}

/* ---- passing it on ---- */

static void give(struct gossip *gossip, const struct member_id *id) {
    struct member *member = members_find(gossip, id);
    if (!member) return;
    const struct message ring = {.kind = MESSAGE_RING, .bytes = gossip->ring.bytes, .size = gossip->ring.size};
    if (carrier_send_one(gossip, member, &ring))
        gossip->counters.rings_sent++;
    else
        carrier_want(gossip, member, CARRIER_NEED_MS);
}

/* Some of those who are behind. Who is cut off by an old ring looks down, and so does who is down: such a one is called
 * now and then, and calls by itself. False when nobody is behind. */
static bool tell(struct gossip *gossip) {
    struct ring *ring = &gossip->ring;
    struct member_id chosen[TELL_AT_ONCE], absent;
    struct member copy;
    uint32_t seen = 0, absent_seen = 0;
    for (size_t i = 0; i < gossip->members.count; i++) {
        if (sleeps_with_ours(gossip, i)) continue;
        const struct member *member = members_look(gossip, i, &copy);
        if (!ring_is_behind(gossip, member)) continue;
        if (!member_is_visible(member)) {
            if (chance_below(&gossip->chance, ++absent_seen) == 0) absent = member->id;
            continue;
        }
        uint32_t slot = seen < TELL_AT_ONCE ? seen : chance_below(&gossip->chance, seen + 1);
        if (slot < TELL_AT_ONCE) chosen[slot] = member->id;
        seen++;
    }
    for (uint32_t i = 0; i < seen && i < TELL_AT_ONCE; i++)
        give(gossip, &chosen[i]);
    if (absent_seen > 0 && gossip->now_ms >= ring->next_absent_ms) {
        ring->next_absent_ms = gossip->now_ms + TELL_ABSENT_MS + chance_below(&gossip->chance, TELL_ABSENT_MS);
        give(gossip, &absent);
    }
    return seen > 0 || absent_seen > 0;
}

static void ask(struct gossip *gossip, const struct member_id *id) {
    struct member *member = members_find(gossip, id);
    if (!member) return;
    const struct message head = evidence_head_of(gossip->self);
    if (!carrier_send_one(gossip, member, &head)) carrier_want(gossip, member, CARRIER_NEED_MS);
}

/* Who is ahead and cannot reach us waits for our dial, and gives the ring to whoever says by link that he is behind.
 * Many of them may be as hard to reach as we are: so some are asked at once, and one whose address we were given. */
static void fetch(struct gossip *gossip) {
    struct ring *ring = &gossip->ring;
    struct member_id chosen[ASK_AT_ONCE], contact;
    struct member copy;
    uint32_t seen = 0, contacts_seen = 0;
    bool any = false;
    for (size_t i = 0; i < gossip->members.count; i++) {
        if (sleeps_with_ours(gossip, i)) continue;
        const struct member *member = members_look(gossip, i, &copy);
        if (!is_ahead(gossip, member)) continue;
        any = true;
        if (!member_is_visible(member)) continue;
        if (rejoin_is_contact(gossip, &member->id) && chance_below(&gossip->chance, ++contacts_seen) == 0)
            contact = member->id;
        uint32_t slot = seen < ASK_AT_ONCE ? seen : chance_below(&gossip->chance, seen + 1);
        if (slot < ASK_AT_ONCE) chosen[slot] = member->id;
        seen++;
    }
    for (uint32_t i = 0; i < seen && i < ASK_AT_ONCE; i++)
        ask(gossip, &chosen[i]);
    if (contacts_seen > 0) ask(gossip, &contact);
    ring->next_fetch_ms = NEVER;
    if (!any) return;
    ring->next_fetch_ms = gossip->now_ms + ring->fetch_gap_ms + chance_below(&gossip->chance, ring->fetch_gap_ms);
    ring->fetch_gap_ms = ring->fetch_gap_ms < FETCH_MAX_MS / 2 ? 2 * ring->fetch_gap_ms : FETCH_MAX_MS;
}

void ring_greet(struct gossip *gossip, struct member *sender) {
    if (!gossip->over_link || !gossip->authentic || gossip->now_ms < gossip->ring.next_greet_ms ||
        !ring_is_behind(gossip, sender))
        return;
    gossip->ring.next_greet_ms = gossip->now_ms + GREET_MS;
    give(gossip, &sender->id);
}

void ring_link_up(struct gossip *gossip, struct member *member) {
    if (ring_is_behind(gossip, member)) give(gossip, &member->id);
}

static void tell_refused(struct gossip *gossip, const struct member *sender, const char *reason) {
    if (gossip->now_ms < gossip->ring.next_refused_ms) return;
    gossip->ring.next_refused_ms = gossip->now_ms + REFUSED_AGAIN_MS;
    char text[200];
    snprintf(text, sizeof text, "a key ring from %.24s is refused: %.140s", sender->name, reason);
    event_plain(gossip, GOSSIP_WARNING, sender, 0, 0, text);
}

void ring_on_ring(struct gossip *gossip, const struct message *message) {
    if (!gossip->over_link) {
        gossip->counters.rings_refused++; /* by a datagram, which an old key has sealed */
        return;
    }
    struct member *sender = gossip->sender;
    char reason[160] = "";
    if (!gossip->authentic || !sender || !proof_may_check(gossip)) return;
    if (take(gossip, message->bytes, message->size, sender, reason) == GOSSIP_RING_REFUSED) {
        tell_refused(gossip, sender, reason);
        return;
    }
    struct message head =
        evidence_head_of(gossip->self); /* says that we have it; a datagram might not be opened there */
    reply_add(gossip, &head);
}

void ring_tick(struct gossip *gossip) {
    struct ring *ring = &gossip->ring;
    if (gossip->now_ms >= ring->owed_ms) pay(gossip);
    if (gossip->now_ms >= ring->next_tell_ms) {
        ring->next_tell_ms = tell(gossip) ? gossip->now_ms + ring->tell_gap_ms : NEVER;
        ring->tell_gap_ms = ring->tell_gap_ms < TELL_MAX_MS / 2 ? 2 * ring->tell_gap_ms : TELL_MAX_MS;
    }
    if (gossip->now_ms >= ring->next_fetch_ms) fetch(gossip);
}

uint64_t ring_deadline_ms(const struct gossip *gossip) {
    return earlier(gossip->ring.next_fetch_ms, earlier(gossip->ring.owed_ms, gossip->ring.next_tell_ms));
}
